"""Training data of the context network: whole objects with per-pixel estimates, and the truth.

Objects under the same lights are placed side by side in one mask and processed by the code of the package itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from photostereo.diagnosis.noise import PixelNoise
from photostereo.io.network_weights import Weights
from photostereo.reflectance.learned.context.correct import SIDE, pixel_maps
from photostereo.reflectance.learned.context.features import BRIGHTNESS, VECTORS, constants_of
from photostereo.reflectance.learned.evidence import Observations, gather_evidence
from photostereo.reflectance.learned.matte import Witness
from photostereo.runtime.arrays import in_full_precision
from photostereo_lab.training.layouts import draw_directions, draw_distances, miscalibrated
from photostereo_lab.training.scenes import Pool, mirrored, photograph, symmetry
from photostereo_lab.training.sensor import LUMA, expose
from photostereo_lab.training.tensors import uniform

#: Pixels along a side of a cell, and of a scene.
FINE = 2
SIZE = FINE * SIDE
#: Lights are at least 8 half frames away; directions and strengths are off by up to these values.
NEAREST, DEGREES, STRENGTH = 8.0, 2.5, 0.06
#: Share of wide lenses, and the tangent of their largest half angle.
WIDE, WIDEST = 0.6, 0.5
#: Logarithm of a variance that represents infinity.
MOST_LOG = 12.0


@dataclass
class Examples:
    """Maps of S objects and, at full resolution, the per-pixel estimates; half precision."""

    maps: Tensor  # (S, CHANNELS, SIDE, SIDE)
    network: Tensor  # (S, 4, SIZE, SIZE) normal and logarithm of the variance
    matte: Tensor  # (S, 4, SIZE, SIZE)
    truth: Tensor  # (S, 3, SIZE, SIZE), zero outside

    def __getitem__(self, index: Tensor | slice) -> Examples:
        return Examples(self.maps[index], self.network[index], self.matte[index], self.truth[index])

    def turned(self, turns: int, flip: bool) -> Examples:
        """Rotate counterclockwise by right angles, optionally after mirroring left to right."""
        matrix = symmetry(turns, flip, self.maps.device)[:2, :2].to(self.maps.dtype)

        def of(maps: Tensor, vectors: tuple[int, ...]) -> Tensor:
            result = mirrored(maps, turns, flip).clone()
            for x in vectors:
                result[:, x : x + 2] = torch.einsum("ij,sjhw->sihw", matrix, result[:, x : x + 2])
            return result

        return Examples(
            of(self.maps, VECTORS),
            of(self.network, (0,)),
            of(self.matte, (0,)),
            of(self.truth, (0,)),
        )


def draw_views(count: int, device: torch.device | str) -> Tensor:
    """Slopes (S, 3) of the view at the border of the frame and at its center: some lenses are wide."""
    u = uniform(count, device)
    field = u(0.0, WIDEST) * (u() < WIDE)
    share = u(0.3, 1.0)  # of the picture that the object fills
    center = (1 - share) * u(-1, 1, 2)
    return torch.cat([field * share, field * center], -1)


@torch.no_grad()  # type: ignore[untyped-decorator]
def draw_examples(
    pool: Pool,
    photographs: int,
    weights: Weights,
    *,
    strong: float = 0.4,
    damage: float = 0.05,
    spoiled: float = 0.1,
) -> Examples:
    """Photograph the scenes of a pool, all under the same lights, and compute the per-pixel estimates."""
    scenes, device = len(pool.heights), pool.heights.device
    lights = draw_directions(1, photographs, device)
    true, strength = miscalibrated(lights.expand(scenes, -1, -1), DEGREES, STRENGTH, spoiled)
    clean = photograph(
        pool, true, draw_distances(scenes, device, NEAREST), wide=draw_views(scenes, device)
    )
    clean = clean * strength[..., None, None, None]
    images, noise = expose(clean, pool.mask, strong=strong, damage=damage)
    return examples_of(images, noise, pool, lights[0], weights)


@in_full_precision
def examples_of(
    images: Tensor, noise: Tensor, pool: Pool, lights: Tensor, weights: Weights
) -> Examples:
    """Examples from photographs (S, d, 3, SIZE, SIZE) with noise of variance (S, SIZE, SIZE) under lights (d, 3)."""
    mask = pool.mask.cpu().numpy()
    inside = pool.mask
    columns = images.permute(0, 3, 4, 1, 2)[inside].contiguous()  # (N, d, 3), scene by scene
    gray = (columns * torch.tensor(LUMA, device=images.device)).sum(-1)
    scale = torch.quantile(gray.flatten()[:: max(1, gray.numel() // 100_000)], 0.99).clamp_min(1e-9)
    there = np.ascontiguousarray(lights.cpu().numpy().T.astype(np.float64))
    evidence = gather_evidence(
        Observations(gray / scale, columns / scale, there),
        mask.reshape(-1, mask.shape[2]),
        PixelNoise(noise[inside] / scale**2),
        weights,
    )

    def picture(values: Tensor) -> Tensor:
        """Arrange values (N, K) of the pixels as maps (S, K, SIZE, SIZE)."""
        maps = values.new_zeros(*inside.shape, values.shape[1])
        maps[inside] = values
        return maps.permute(0, 3, 1, 2)

    values = picture(pixel_maps(evidence))
    cover = functional.avg_pool2d(inside[:, None].float(), FINE)
    cells = functional.avg_pool2d(values, FINE) / cover.clamp_min(1e-3)
    mean = (cells[:, BRIGHTNESS] * cover[:, 0]).sum((1, 2)) / cover.sum((1, 2, 3)).clamp_min(1)
    cells[:, BRIGHTNESS] -= mean[:, None, None]
    constants = torch.tensor(constants_of(there, there.shape[1]), device=images.device)
    maps = torch.cat(
        [cells, constants[None, :, None, None].expand(len(cells), -1, SIDE, SIDE), cover], 1
    )

    def witness(found: Witness) -> Tensor:
        log = torch.log(found.variance).clamp(-MOST_LOG, MOST_LOG)
        return picture(torch.cat([found.normals, log[:, None]], 1)).half()

    truth = (pool.normals * inside[..., None]).permute(0, 3, 1, 2).half()
    found = Examples(
        (maps * (cover > 0)).half(), witness(evidence.network), witness(evidence.matte), truth
    )
    whole = torch.stack(
        [
            torch.isfinite(part).flatten(1).all(1)
            for part in (found.maps, found.network, found.matte)
        ]
    )
    return found[whole.all(0)]
