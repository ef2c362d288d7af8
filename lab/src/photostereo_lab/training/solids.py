"""Random solids as implicit fields f(p) < 0, and their surface seen by the camera.

Five families: constructive solids (superquadrics and rings, merged or cut out), solids of revolution (half of them
hollow: bowls, goblets, vases), convex polyhedra, ellipsoids, and lumps. All of them may be twisted or draped in folds,
and all but some ellipsoids carry relief of several scales, rounded or with sharp crests and grooves.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import accumulate

import torch
from torch import Tensor
from torch.nn import functional

from photostereo_lab.training.tensors import fused, uniform

PARTS = 9  # superquadrics and rings of a constructive solid
PLANES = 14  # faces of a polyhedron
OCTAVES = (2.5, 5.0, 10.0, 20.0, 40.0, 80.0)  # wave numbers of the relief
WAVES = 3  # waves per octave
CONSTRUCTED, TURNED, FACETED, ELLIPSOID, LUMP = range(5)
SHARES = (0.44, 0.22, 0.1, 0.11, 0.13)  # frequencies of the families
#: Depth levels in the search for the surface, and refinement steps.
LEVELS, REFINEMENTS = 40, 4
#: Levels that are evaluated together.
TOGETHER = 8


@dataclass
class Solids:
    """Parameters of S solids; the letters S, K, M, N stand for scenes, parts, planes and waves."""

    turn: Tensor  # (S, 3, 3) rotation of the whole
    twist: Tensor  # (S, 1)
    center: Tensor  # (S, K, 3)
    radius: Tensor  # (S, K, 3)
    frame: Tensor  # (S, K, 3, 3)
    exponent: Tensor  # (S, K) 2 for ellipsoids, large for boxes
    ring: Tensor  # (S, K) whether a part is a ring
    added: Tensor  # (S, K) whether a part exists and is merged
    cut: Tensor  # (S, K) whether a part exists and is cut out
    blend: Tensor  # (S, 1) sharpness of the merge
    profile: Tensor  # (S, 13) radius, four amplitudes, four wave numbers, four phases
    height: Tensor  # (S, 1) half the height of a turned solid
    flatness: Tensor  # (S, 1) of its cross-section
    wall: Tensor  # (S, 1) thickness if hollow, else large
    floor: Tensor  # (S, 1)
    handle: Tensor  # (S, 1)
    plane: Tensor  # (S, M, 3)
    offset: Tensor  # (S, M)
    wave: Tensor  # (S, N, 3)
    phase: Tensor  # (S, N)
    warp: Tensor  # (S, N)
    amplitude: Tensor  # (S, N)
    sharp: Tensor  # (S, 1) -1 for grooves, 0 for rounded waves, 1 for crests

    counts: tuple[int, ...]  # number of each family, in the order of the families

    def __getitem__(self, index: slice) -> Solids:
        tensors = {f.name: getattr(self, f.name) for f in fields(self)}
        return Solids(**{n: v[index] if isinstance(v, Tensor) else v for n, v in tensors.items()})


def rotations(shape: tuple[int, ...], device: torch.device | str) -> Tensor:
    """Random rotation matrices (*shape, 3, 3)."""
    x, y, z, w = functional.normalize(torch.randn(*shape, 4, device=device), dim=-1).unbind(-1)
    rows = [
        1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w),
        2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w),
        2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y),
    ]  # fmt: skip
    return torch.stack(rows, -1).reshape(*shape, 3, 3)


def tilts(count: int, device: torch.device | str, most: float = 0.9) -> Tensor:
    """Rotations (S, 3, 3) of upright objects: about the vertical axis, tipped by up to ``most``, rotated in the picture."""
    tip, roll = ((2 * torch.rand(count, device=device) - 1) * most for _ in range(2))
    roll = torch.where(torch.rand(count, device=device) < 0.3, roll * 3.5, roll * 0.3)
    one, zero = torch.ones_like(tip), torch.zeros_like(tip)
    about_x = torch.stack(
        [one, zero, zero, zero, tip.cos(), -tip.sin(), zero, tip.sin(), tip.cos()], -1
    )
    about_z = torch.stack(
        [roll.cos(), -roll.sin(), zero, roll.sin(), roll.cos(), zero, zero, zero, one], -1
    )
    return about_x.reshape(-1, 3, 3) @ about_z.reshape(-1, 3, 3)


def draw_solids(count: int, device: torch.device | str) -> Solids:
    """Random parameters."""
    u = uniform(count, device)
    ends = [round(count * share) for share in accumulate(SHARES)]
    counts = tuple(b - a for a, b in zip([0, *ends], ends, strict=False))
    family = torch.repeat_interleave(
        torch.arange(5, device=device), torch.tensor(counts, device=device)
    )[:, None]
    turned = (family == TURNED)[..., None]
    center = u(-0.55, 0.55, PARTS, 3) * (1 - torch.eye(PARTS, 1, device=device))
    # Half of the solids consist of many small parts, limbs and heads, the others of few large ones.
    many = u(0, 1, 1, 1) < 0.5
    radius = u(0.12, 0.55, PARTS, 3) * torch.where(many, 0.6, 1.0)
    # Thin rods and plates; the first part is a body of some size.
    thin = torch.where(
        u(0, 1, PARTS, 3) < 0.12, torch.full_like(radius, 0.3), torch.ones_like(radius)
    )
    radius = radius * thin
    radius[:, 0] = u(0.35, 0.8, 3) * torch.where(many[:, 0], 0.75, 1.0)
    there = u(0, 1, PARTS) < torch.where(many[..., 0], 0.85, 0.45)
    there[:, 0] = True
    cut = there & (u(0, 1, PARTS) < 0.22)
    cut[:, 0] = False
    profile = torch.cat(
        [
            u(0.22, 0.65),
            u(-1, 1, 4) * torch.tensor([0.25, 0.16, 0.08, 0.03], device=device),
            u(0.7, 1.4, 4) * torch.tensor([1.5, 3.0, 6.0, 13.0], device=device),
            u(0, 6.2832, 4),
        ],
        -1,
    )
    hollow = u(0, 1) < 0.5
    waves = len(OCTAVES) * WAVES
    number = torch.tensor(OCTAVES, device=device).repeat_interleave(WAVES)
    wave = functional.normalize(torch.randn(count, waves, 3, device=device), dim=-1)
    rough = torch.exp(u(-1.6, 0.35))
    lump = torch.where(family == LUMP, u(0.12, 0.3), torch.zeros_like(rough))
    fine = torch.exp(u(-5.0, -1.9)) * (u(0, 1) < 0.85)
    fine = torch.where((family == ELLIPSOID) & (u(0, 1) < 0.6), torch.zeros_like(fine), fine)
    amplitude = fine * rough ** (number / number[0]).log2() / (number / number[0]) ** 0.8
    amplitude = amplitude * torch.exp(0.5 * torch.randn(count, waves, device=device))
    amplitude[:, :WAVES] += lump
    # Cloth: a few deep folds in similar directions.
    draped = (u(0, 1) < 0.14).float()
    amplitude[:, WAVES] += draped[:, 0] * u(0.03, 0.1)[:, 0]
    amplitude[:, 2 * WAVES] += draped[:, 0] * u(0.01, 0.04)[:, 0]
    sharp = torch.where(u(0, 1) < 0.4, u(-1, 1), torch.zeros_like(rough))
    return Solids(
        turn=torch.where(turned, tilts(count, device), rotations((count,), device)),
        twist=u(-2, 2) * (u(0, 1) < 0.25),
        center=center,
        radius=radius,
        frame=rotations((count, PARTS), device),
        exponent=torch.where(
            u(0, 1, PARTS) < 0.6, 2 * torch.ones_like(thin[..., 0]), u(2, 9, PARTS)
        ),
        ring=u(0, 1, PARTS) < 0.15,
        added=there & ~cut,
        cut=cut,
        blend=torch.exp(u(1.8, 4.2)),
        profile=profile,
        height=u(0.35, 1.0),
        flatness=torch.where(u(0, 1) < 0.6, torch.ones_like(rough), u(0.5, 1.0)),
        wall=torch.where(hollow, u(0.08, 0.18), torch.full_like(rough, 9.0)),
        floor=u(-0.9, 0.2),
        handle=(u(0, 1) < 0.3).float(),
        plane=functional.normalize(torch.randn(count, PLANES, 3, device=device), dim=-1),
        offset=u(0.35, 0.75, PLANES),
        wave=wave * number[:, None] * torch.exp(0.25 * torch.randn(count, waves, 1, device=device)),
        phase=u(0, 6.2832, waves),
        warp=u(0.0, 2.6, waves),
        amplitude=amplitude,
        sharp=sharp,
        counts=counts,
    )


def field(s: Solids, points: Tensor) -> Tensor:
    """f (S, P) at points (S, P, 3) of the camera's frame; approximately a distance near the surface."""
    p = _turn(points, s.turn, s.twist)
    shapes, first = [], 0
    for family, count in enumerate(s.counts):
        some, last = s[first : first + count], first + count
        if count:
            shapes.append(FAMILIES[family](some, p[first:last]))
        first = last
    total = torch.cat(shapes)
    for n in range(s.wave.shape[1]):
        total = _ripple(
            total, p, s.wave[:, n], s.phase[:, n, None], s.phase[:, n - 1, None], s.warp[:, n, None],
            s.amplitude[:, n, None], s.sharp,
        )  # fmt: skip
    return total


@fused
def _turn(points: Tensor, turn: Tensor, twist: Tensor) -> Tensor:
    x, y, z = ((points * turn[:, None, :, k]).sum(-1) for k in range(3))
    angle = twist * y
    c, i = torch.cos(angle), torch.sin(angle)
    return torch.stack([c * x - i * z, y, i * x + c * z], -1)


@fused
def _ripple(
    total: Tensor,
    p: Tensor,
    wave: Tensor,
    phase: Tensor,
    other_phase: Tensor,
    warp: Tensor,
    amplitude: Tensor,
    sharp: Tensor,
) -> Tensor:
    """One wave of the relief, bent and swelling."""
    along = (p * wave[:, None]).sum(-1) + phase
    other = (
        0.5 * (p * torch.stack([wave[:, 2], wave[:, 0], wave[:, 1]], -1)[:, None]).sum(-1)
        + other_phase
    )
    swell = 0.65 + 0.55 * torch.sin(0.7 * other + 2 * phase)
    at = along + warp * torch.sin(other)
    crest = sharp * (1 - 2 * torch.sin(0.5 * at).abs())
    return total + amplitude * swell * ((1 - sharp.abs()) * torch.sin(at) + crest)


@fused
def _part(
    p: Tensor, center: Tensor, frame: Tensor, radius: Tensor, exponent: Tensor, ring: Tensor
) -> Tensor:
    """A superquadric, or a ring."""
    q = [((p - center[:, None]) * frame[:, None, :, k]).sum(-1) for k in range(3)]
    r = [radius[:, k, None] for k in range(3)]
    size = (r[0] + r[1] + r[2]) / 3
    powers = [((q[k] / r[k]).abs() + 1e-6) ** exponent for k in range(3)]
    box = (powers[0] + powers[1] + powers[2]) ** (1 / exponent) - 1
    around = torch.sqrt((q[0] / r[0]) ** 2 + (q[1] / r[1]) ** 2 + 1e-12) - 1
    hoop = torch.sqrt((around * size) ** 2 + q[2] ** 2 + 1e-8) - 0.3 * size
    return torch.where(ring, hoop, box * size)


def _constructed(s: Solids, p: Tensor) -> Tensor:
    merged = torch.zeros(p.shape[:2], device=p.device)
    removed = torch.full(p.shape[:2], 9.0, device=p.device)
    for k in range(PARTS):
        part = _part(
            p,
            s.center[:, k],
            s.frame[:, k],
            s.radius[:, k],
            s.exponent[:, k, None],
            s.ring[:, k, None],
        )
        merged = merged + torch.exp(-s.blend * part.clamp(-2, 2)) * s.added[:, k, None]
        removed = torch.where(s.cut[:, k, None], torch.minimum(removed, part), removed)
    return torch.maximum(-torch.log(merged.clamp_min(1e-30)) / s.blend, -removed)


def _turned(s: Solids, p: Tensor) -> Tensor:
    return _turned_body(p, s.profile, s.height, s.flatness, s.wall, s.floor, s.handle)


@fused
def _turned_body(
    p: Tensor,
    shape: Tensor,
    height: Tensor,
    flatness: Tensor,
    wall: Tensor,
    floor: Tensor,
    handle: Tensor,
) -> Tensor:
    t = p[..., 1]
    across = torch.sqrt(p[..., 0] ** 2 + (p[..., 2] / flatness) ** 2 + 1e-8)
    profile = shape[:, :1].expand_as(t)
    for k in range(4):
        profile = profile + shape[:, 1 + k, None] * torch.sin(
            shape[:, 5 + k, None] * t + shape[:, 9 + k, None]
        )
    profile = profile.clamp_min(0.07)
    body = torch.maximum(across - profile, t.abs() - height)
    inside = torch.maximum(across - profile + wall, floor * height - t)
    body = torch.maximum(body, -inside)
    side = shape[:, :1]
    bow = torch.sqrt((p[..., 0] - side) ** 2 + t**2 + 1e-8) - 0.28
    bow = torch.sqrt(bow**2 + p[..., 2] ** 2 + 1e-8) - 0.06
    bow = torch.maximum(bow, side - p[..., 0])  # the half that is outside
    return torch.where(handle > 0, torch.minimum(body, bow), body)


def _faceted(s: Solids, p: Tensor) -> Tensor:
    return ((p @ s.plane.mT) - s.offset[:, None]).amax(-1)


def _round(s: Solids, p: Tensor) -> Tensor:
    scale = s.radius[:, 0].clamp_min(0.4)
    return ((p / scale[:, None]).norm(dim=-1) - 1) * scale.amin(-1)[:, None]


FAMILIES = (_constructed, _turned, _faceted, _round, _round)


@torch.no_grad()  # type: ignore[untyped-decorator]
def see_solids(s: Solids, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Heights (S, G, G) in units of half the frame, normals (S, G, G, 3) and masks (S, G, G).

    The frame is the bounding square of the outline with a margin of about 8 %. x runs right, y up: row 0 is the top.
    """
    device, count = s.turn.device, len(s.turn)
    middle = torch.zeros(count, 2, device=device)
    half = torch.full((count, 1), 1.7, device=device)
    coarse, _ = _march(s, *_window(middle, half, 32), levels=28)
    axis = torch.linspace(-1, 1, 32, device=device)
    seen = coarse > -5
    low, high = [], []
    for along in (seen.any(1), seen.flip(1).any(2)):  # columns; rows from the bottom
        low.append(torch.where(along, axis, torch.full_like(axis, 9.0)).amin(1))
        high.append(torch.where(along, axis, torch.full_like(axis, -9.0)).amax(1))
    lows, highs = torch.stack(low, -1).clamp(-1, 1), torch.stack(high, -1).clamp(-1, 1)
    middle = (lows + highs) / 2 * half
    margin = 1.05 + 0.12 * torch.rand(count, 1, device=device)
    half = ((highs - lows).amax(-1, keepdim=True) / 2 * half + 1.7 / 31).clamp_min(0.1) * margin
    x, y = _window(middle, half, size)
    seen_depth = torch.where(seen, coarse, torch.full_like(coarse, -9.0)).amax((1, 2))
    lowest = torch.where(seen, coarse, torch.full_like(coarse, 9.0)).amin((1, 2))
    z, mask = _march(s, x, y, levels=LEVELS, top=seen_depth + 0.15, bottom=lowest - 0.25)
    points = torch.stack([x, y, z], -1).reshape(count, -1, 3)
    step = 0.4 * half[:, :, None] * 2 / size
    slopes = [
        field(s, points + step * direction) - field(s, points - step * direction)
        for direction in torch.eye(3, device=device)
    ]
    normals = functional.normalize(torch.stack(slopes, -1), dim=-1)
    normals = functional.normalize(
        torch.cat([normals[..., :2], normals[..., 2:].clamp_min(0.02)], -1), dim=-1
    )
    normals = normals.reshape(count, size, size, 3) * mask[..., None]
    return torch.where(mask, z / half[:, :, None], torch.full_like(z, -9.0)), normals, mask


def _window(middle: Tensor, half: Tensor, size: int) -> tuple[Tensor, Tensor]:
    axis = torch.linspace(-1, 1, size, device=middle.device)
    x = middle[:, :1] + half * axis
    y = middle[:, 1:] - half * axis
    return x[:, None, :].expand(-1, size, -1), y[:, :, None].expand(-1, -1, size)


def _march(
    s: Solids,
    x: Tensor,
    y: Tensor,
    levels: int,
    top: Tensor | None = None,
    bottom: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Find the first crossing from above: depth (S, G, G), −9 if there is none, and the mask."""
    shape = x.shape
    flat = [v.reshape(shape[0], -1) for v in (x, y)]
    high = torch.full_like(flat[0][:, :1], 1.5) if top is None else top[:, None].clamp(-1.5, 1.6)
    low = (
        torch.full_like(flat[0][:, :1], -1.5)
        if bottom is None
        else bottom[:, None].clamp(-1.6, 1.5)
    )
    depths = high + (low - high) * torch.linspace(0, 1, levels, device=x.device)  # (S, levels)
    above, below = high.expand_as(flat[0]), torch.full_like(flat[0], -9.0)
    outside, inside = torch.full_like(flat[0], 1.0), torch.full_like(flat[0], -1.0)
    before = torch.full_like(flat[0], 1.0)
    for start in range(0, levels, TOGETHER):
        some = depths[:, start : start + TOGETHER]
        count = some.shape[1]
        places = [v[:, None].expand(-1, count, -1).reshape(shape[0], -1) for v in flat]
        deep = some[:, :, None].expand(-1, -1, flat[0].shape[1]).reshape(shape[0], -1)
        values = field(s, torch.stack([*places, deep], -1)).reshape(shape[0], count, -1)
        for number in range(count):
            value = values[:, number]
            fresh = (value < 0) & (below < -5)
            above = torch.where(fresh, depths[:, max(start + number - 1, 0), None], above)
            outside = torch.where(fresh, before, outside)
            inside = torch.where(fresh, value, inside)
            below = torch.where(fresh, some[:, number, None], below)
            before = value
    hit = below > -5
    guess = below
    for number in range(REFINEMENTS):
        share = (outside / (outside - inside).clamp_min(1e-9)).clamp(0.05, 0.95)
        guess = above + (below - above) * (share if number % 2 == 0 else 0.5)
        value = field(s, torch.stack([*flat, guess], -1))
        under = value < 0
        above, outside = torch.where(under, above, guess), torch.where(under, outside, value)
        below, inside = torch.where(under, guess, below), torch.where(under, value, inside)
    share = (outside / (outside - inside).clamp_min(1e-9)).clamp(0, 1)
    z = torch.where(hit, above + (below - above) * share, torch.full_like(below, -9.0))
    return z.reshape(shape), hit.reshape(shape)
