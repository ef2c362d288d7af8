"""How surfaces reflect, in torch, for many pixels at once, each with its own material; and materials over a surface.

The radiance toward the camera, times π over the irradiance of a light that faces the pixel, is

    base · diffuse(l) · (1 − F(n·l)) (1 − F(n·v)) · shade(n·l) + specular(l) · max(0, n·l)

with the GGX coat of :class:`photostereo_lab.scenes.Ggx` (here also brushed: α differs along the two tangents), and
a diffuse part that is Lambert, Oren–Nayar (:class:`photostereo_lab.scenes.OrenNayar`), Disney, or a power of n·l. A
translucent material lets light around the edge: shade = max(0, (n·l + w)/(1 + w)). A clear coat and a sheen lie
on top. A pixel is made of facets (:func:`reflect_uneven`). No formula is exact: both parts may deviate from theirs by a
smooth factor exp(a sin(k·(n·l, n·h, l·h) + φ)).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import torch
from torch import Tensor
from torch.nn import functional

from photostereo_lab.training.reliefs import smooth_noise
from photostereo_lab.training.tensors import fused, uniform

LAMBERT, OREN_NAYAR, DISNEY, POWER = range(4)
#: How far the diffuse part may deviate from its formula: real ones at moderate angles are within some 5 % of Lambert's
#: law. A larger deviation cannot be told from tilt.
RIPPLE = 0.1
#: Pairs of opposite facets that represent a pixel.
FACET_PAIRS = 3
#: Largest rms slope of facets (33°; the median is 7°), and the share of materials that have any. Without facets, what was
#: trained is 3 to 10 % too flat on real surfaces.
ROUGHEST, UNEVEN = 0.65, 0.85
#: Share of the captures in which facets at grazing light hide behind each other.
MASKED = 0.5


@dataclass
class Materials:
    """Parameters of B materials; every field is (B, 1) unless noted, ``base`` is (B, 3)."""

    base: Tensor
    kind: Tensor  # one of LAMBERT ... POWER
    sigma: Tensor  # Oren–Nayar's σ
    power: Tensor  # exponent of n·l
    wrap: Tensor  # w of translucent materials
    metallic: Tensor
    reflectance: Tensor  # F0 of the dielectric part
    alpha: Tensor  # GGX width along the first tangent
    alpha_across: Tensor  # and across it
    brush: Tensor  # angle of the first tangent
    coat: Tensor
    coat_alpha: Tensor
    sheen: Tensor
    ripple: Tensor  # (B, 2) how far the diffuse and the specular part deviate from their formulas
    wave: Tensor  # (B, 8) weights of the cosines, and phases
    rough: Tensor  # rms slope of the facets within a pixel

    def __getitem__(self, index: Tensor | slice) -> Materials:
        return Materials(**{f.name: getattr(self, f.name)[index] for f in fields(self)})

    def blended(self, other: Materials, share: Tensor) -> Materials:
        """Blend the parameters of two materials (worn, patchy surfaces); the kinds are chosen, not blended."""
        values = {}
        for f in fields(self):
            mine, others = getattr(self, f.name), getattr(other, f.name)
            values[f.name] = (
                torch.where(share > 0.5, others, mine)
                if f.name == "kind"
                else torch.lerp(mine, others, share)
            )
        return Materials(**values)

    def diffuse_albedo(self) -> Tensor:
        """The approximate reflectance of the surface for light from all sides, (B, 3)."""
        return self.base * (1 - self.metallic) + 0.6 * self.metallic * self.base


def draw_materials(count: int, device: torch.device | str) -> Materials:
    """Random materials: gray to saturated, matte to metallic, plain, coated, brushed, translucent."""
    u = uniform(count, device)

    def when(share: float) -> Tensor:
        return (u() < share).float()

    saturation = u() * when(0.75)
    hue = torch.rand(count, 3, device=device)
    base = (1 - saturation) + saturation * hue
    base = base / base.amax(-1, keepdim=True) * torch.exp(u(-3.2, 0.0))
    metallic = when(0.3) * torch.where(u() < 0.6, torch.ones_like(saturation), u())
    alpha = u(0.2, 1.0) ** 2
    brushed = when(0.12)
    ratio = torch.exp(u(0.0, 1.4)) * brushed + (1 - brushed)
    kind = torch.multinomial(
        torch.tensor([0.3, 0.25, 0.25, 0.2], device=device), count, replacement=True
    )
    return Materials(
        base=base,
        kind=kind[:, None],
        sigma=u(0.1, 0.9),
        power=u(0.6, 1.7),
        wrap=torch.exp(u(-3.5, -0.7)) * when(0.3),
        metallic=metallic,
        # A fifth are perfectly matte: no coat at all.
        reflectance=u(0.01, 0.09) * when(0.8),
        alpha=(alpha * ratio).clamp(0.03, 1.0),
        alpha_across=(alpha / ratio).clamp(0.03, 1.0),
        brush=u(0.0, 3.1416),
        coat=u(0.2, 1.0) * when(0.25),
        coat_alpha=u(0.17, 0.6) ** 2,
        sheen=u(0.0, 0.5) * when(0.18),
        ripple=torch.rand(count, 2, device=device)
        * torch.tensor([RIPPLE, 0.5], device=device)
        * when(0.8),
        wave=torch.randn(count, 8, device=device) * 2.5,
        # What gleams is polished.
        rough=ROUGHEST * u() ** 1.2 * torch.sqrt(alpha) * when(UNEVEN),
    )


def frames(normals: Tensor, brush: Tensor) -> tuple[Tensor, Tensor]:
    """Return two tangents (B, 3) of each normal, rotated by the angle of the brush."""
    helper = torch.zeros_like(normals)
    steep = normals[:, 2].abs() < 0.7
    helper[:, 2] = steep.float()
    helper[:, 0] = (~steep).float()
    first = functional.normalize(torch.linalg.cross(normals, helper), dim=-1)
    second = torch.linalg.cross(normals, first)
    c, s = torch.cos(brush), torch.sin(brush)
    return c * first + s * second, c * second - s * first


def schlick(f0: Tensor, cosine: Tensor) -> Tensor:
    return f0 + (1 - f0) * (1 - cosine).clamp(0, 1) ** 5


def reflect(m: Materials, normals: Tensor, lights: Tensor) -> Tensor:
    """Intensity (B, d, 3) of unit lights (B, d, 3) on pixels with normals (B, 3), with attached shadows only."""
    return _reflect(normals, lights, *(getattr(m, f.name) for f in fields(m)))


@fused
def _reflect(normals: Tensor, lights: Tensor, *values: Tensor) -> Tensor:
    m = Materials(*values)
    first, second = frames(normals, m.brush)
    x = (lights * first[:, None]).sum(-1)
    y = (lights * second[:, None]).sum(-1)
    raw = (lights * normals[:, None]).sum(-1)
    nl = raw.clamp_min(1e-4)
    vx, vy = first[:, 2:], second[:, 2:]
    nv = normals[:, 2:].clamp_min(1e-3)
    facing = torch.sqrt((0.5 + 0.5 * lights[..., 2]).clamp_min(1e-6))  # l·h = v·h
    double = 2 * facing
    hx, hy = (x + vx) / double, (y + vy) / double
    nh = ((nl + nv) / double).clamp(0, 1)

    def ggx(ax: Tensor, ay: Tensor) -> Tensor:
        """π D G / (4 n·l n·v)."""
        slope = (hx / ax) ** 2 + (hy / ay) ** 2 + nh * nh
        light = nv * torch.sqrt((ax * x) ** 2 + (ay * y) ** 2 + nl * nl)
        camera = nl * torch.sqrt((ax * vx) ** 2 + (ay * vy) ** 2 + nv * nv)
        return 0.5 / (ax * ay * slope * slope * (light + camera)).clamp_min(1e-9)

    retro = (lights[..., 2] - nl * nv).clamp_min(0) / torch.maximum(nl, nv)
    s2 = m.sigma**2
    oren = 1 - 0.5 * s2 / (s2 + 0.33) + 0.45 * s2 / (s2 + 0.09) * retro
    f90 = 2 * torch.sqrt(m.alpha) * facing**2 - 0.5
    disney = (1 + f90 * (1 - nl) ** 5) * (1 + f90 * (1 - nv) ** 5)
    power = nl.clamp_min(0.01) ** (m.power - 1)
    diffuse = torch.where(m.kind == OREN_NAYAR, oren, torch.ones_like(nl))
    diffuse = torch.where(m.kind == DISNEY, disney, diffuse)
    diffuse = torch.where(m.kind == POWER, power, diffuse)
    k = m.wave[:, :, None]

    def strayed(part: int) -> Tensor:
        phase = (
            k[:, 4 * part] * nl
            + k[:, 4 * part + 1] * nh
            + k[:, 4 * part + 2] * facing
            + k[:, 4 * part + 3]
        )
        return torch.exp(m.ripple[:, part, None] * torch.sin(phase))

    diffuse = diffuse * strayed(0)
    matte = m.reflectance == 0
    through = torch.where(
        matte,
        torch.ones_like(nl),
        (1 - schlick(m.reflectance, nl)) * (1 - schlick(m.reflectance, nv)),
    )
    shade = ((raw + m.wrap) / (1 + m.wrap)).clamp_min(0)
    lit = (raw > 0).float() * nl
    under = (diffuse * through * shade * (1 - m.metallic))[..., None] * m.base[:, None]
    f0 = torch.lerp(m.reflectance.expand(-1, 3), m.base, m.metallic)[:, None]
    tint = f0 + (1 - f0) * ((1 - facing).clamp(0, 1) ** 5)[..., None]
    tint = tint * ((~matte) | (m.metallic > 0)).float()[..., None]
    colors = under + (ggx(m.alpha, m.alpha_across) * strayed(1) * lit)[..., None] * tint
    colors = colors + (m.sheen * (1 - facing).clamp(0, 1) ** 3 * (1 - nv) ** 2 * lit)[..., None]
    covered = (1 - m.coat * schlick(torch.full_like(nl, 0.04), nl)) * (
        1 - m.coat * schlick(torch.full_like(nv, 0.04), nv)
    )
    coat = (
        m.coat
        * ggx(m.coat_alpha, m.coat_alpha)
        * schlick(torch.full_like(facing, 0.04), facing)
        * lit
    )
    return colors * covered[..., None] + coat[..., None]


def reflect_uneven(m: Materials, normals: Tensor, lights: Tensor) -> Tensor:
    """Like :func:`reflect`, for pixels made of facets: the average of what the camera sees of them.

    The camera sees more of the facets that face it, so a steep pixel looks less steep than it is, and facets that
    face a light beyond the horizon make the edge of a shadow soft.
    """
    total = torch.zeros_like(lights)
    areas = torch.zeros_like(m.rough)
    for facet, area in _facets(normals, m.rough):
        total = total + reflect(m, facet, lights) * area[..., None]
        areas = areas + area
    masked = torch.rand(len(normals), 1, device=normals.device) < MASKED
    cosine = (lights * normals[:, None]).sum(-1)
    arriving = torch.where(masked, _unmasked(cosine, normals[:, 2:], m.rough), 1.0)
    return total / areas[..., None] * arriving[..., None]


def _facets(normals: Tensor, slope: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield unit normals (B, 3) of facets, opposite ones in turn, and their areas (B, 1) as the camera sees them."""
    turn = 6.2832 * torch.rand_like(slope)
    for pair in range(FACET_PAIRS):
        across, _ = frames(normals, turn + torch.pi * pair / FACET_PAIRS)
        # A Rayleigh distribution in equal parts.
        rest = (pair + torch.rand_like(slope)).clamp_min(0.02) / FACET_PAIRS
        radius = slope * torch.sqrt(-2 * torch.log(rest))
        for sign in (1.0, -1.0):
            leaning = normals + sign * radius * across
            yield functional.normalize(leaning, dim=-1), leaning[:, 2:].clamp_min(1e-4)


def _unmasked(cosine: Tensor, view: Tensor, slope: Tensor) -> Tensor:
    """Share of light at n·l = ``cosine`` (B, d) that reaches the facets the camera sees at n·v = ``view`` (B, 1).

    Smith's shadowing of Gaussian slopes, correlated with the camera's (Walter et al. 2007, Heitz 2014).
    """

    def hidden(x: Tensor) -> Tensor:
        x = x.clamp(0.01, 0.9999)
        a = x / torch.sqrt(1 - x * x) / (1.4142 * slope + 1e-4)
        some = (1 - 1.259 * a + 0.396 * a * a) / (3.535 * a + 2.181 * a * a)
        return torch.where(a < 1.6, some, torch.zeros_like(some))

    camera = 1 + hidden(view)
    return camera / (camera + hidden(cosine))


def dress(heights: Tensor, mask: Tensor) -> tuple[Materials, Tensor]:
    """Materials of all S · G · G pixels, and their diffuse albedo (S, 3, G, G), zero outside the mask."""
    count, size = heights.shape[:2]
    device = heights.device
    u = uniform(count, device, 2)
    one, two = draw_materials(count, device), draw_materials(count, device)
    scale = torch.where(
        u() < 0.5, smooth_noise(count, size, 4, device), smooth_noise(count, size, 12, device)
    )
    blend = torch.sigmoid(u(3, 30) * (scale - 0.7 * torch.randn(count, 1, 1, device=device))) * (
        u() < 0.6
    )
    fine = torch.where(
        u() < 0.5, smooth_noise(count, size, 10, device), smooth_noise(count, size, 30, device)
    )
    fine = torch.where(u() < 0.3, torch.tanh(6 * fine), fine)
    paint = torch.exp(u(0, 0.6) * (u() < 0.7) * fine).clamp(0.1, 3.0)
    filled = torch.where(mask, heights, torch.zeros_like(heights))[:, None]
    share = functional.avg_pool2d(mask.float()[:, None], 9, 1, 4)
    hollow = functional.avg_pool2d(filled, 9, 1, 4) / share.clamp_min(0.05) - filled
    paint = paint * torch.exp(-(u(0, 25) * (u() < 0.25)) * hollow[:, 0].clamp(0, 0.1))
    owner = torch.arange(count, device=device).repeat_interleave(size * size)
    materials = one[owner].blended(two[owner], blend.reshape(-1, 1))
    materials.base = (materials.base * paint.reshape(-1, 1)).clamp_max(1.0)
    albedo = materials.diffuse_albedo().reshape(count, size, size, 3).permute(0, 3, 1, 2)
    return materials, albedo.clamp_max(0.95) * mask[:, None]
