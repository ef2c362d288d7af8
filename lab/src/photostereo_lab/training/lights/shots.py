"""Photographs under lights to be estimated, and the truth."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from photostereo_lab.training.layouts import draw_directions, draw_distances, draw_strengths
from photostereo_lab.training.scenes import Pool, mirrored, photograph, symmetry
from photostereo_lab.training.sensor import expose, imperfect
from photostereo_lab.training.tensors import uniform

#: Lights are at least 3 half frames away.
NEAREST = 3.0
#: Share of captures with a strongly bent tone curve, or with falloff toward the corners, as in unknown cameras.
STRANGE_CAMERAS = 0.2


@dataclass
class Shot:
    """Photographs of S scenes under d lights."""

    images: Tensor  # (S, d, 3, G, G), zero outside the mask
    mask: Tensor  # (S, G, G)
    lights: Tensor  # (S, d, 3) unit, at the center of the object
    strengths: Tensor  # (S, d) logarithms, mean 0
    normals: Tensor  # (S, 3, G, G), zero where unknown
    relief: Tensor  # (S,)

    def turned(self, turns: int, flip: bool) -> Shot:
        """Rotate the photographs counterclockwise by right angles, optionally after mirroring left to right."""
        matrix = symmetry(turns, flip, self.lights.device)
        images, mask, normals = (
            mirrored(maps, turns, flip) for maps in (self.images, self.mask, self.normals)
        )
        normals = torch.einsum("ij,sjhw->sihw", matrix, normals)
        return Shot(images, mask, self.lights @ matrix.T, self.strengths, normals, self.relief)


@torch.no_grad()  # type: ignore[untyped-decorator]
def show(pool: Pool, photographs: int) -> Shot:
    count, device = len(pool.heights), pool.heights.device
    lights = draw_directions(count, photographs, device)
    strengths = draw_strengths(count, photographs, device)
    clean = photograph(pool, lights, draw_distances(count, device, NEAREST))
    clean = clean * strengths[..., None, None, None]
    background = clean.mean((1, 2, 3, 4), keepdim=True) * torch.rand(
        count, 1, 1, 1, 1, device=device
    )
    clean = torch.where(pool.mask[:, None, None], clean, background)
    mask = imperfect(pool.mask)
    # Pixels of a thumbnail are averages: there is little noise, and lost values are invisible.
    images, _ = expose(_strange(clean), mask, strong=0.05, damage=0.0)
    logs = torch.log(strengths)
    normals = pool.normals.permute(0, 3, 1, 2)
    return Shot(
        images.clamp_min(0), mask, lights, logs - logs.mean(1, keepdim=True), normals, pool.relief
    )


def _strange(clean: Tensor) -> Tensor:
    """Photographs (S, d, 3, G, G) from uncalibrated cameras."""
    count, device, size = len(clean), clean.device, clean.shape[-1]
    u = uniform(count, device, 4)
    strange = u(0, 1) < STRANGE_CAMERAS
    axis = torch.linspace(-1, 1, size, device=device)
    corner = axis[:, None] ** 2 + axis**2
    mean = clean.mean((1, 2, 3, 4), keepdim=True).clamp_min(1e-8)
    bent = mean * (clean / mean).clamp_min(1e-5) ** u(0.7, 1.35) * (1 - u(0, 0.25) * corner)
    return torch.where(strange, bent, clean)
