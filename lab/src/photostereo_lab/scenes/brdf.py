"""How a surface reflects: Lambert, Blinn–Phong, GGX (Cook–Torrance) and Oren–Nayar.

All of them are isotropic and reciprocal, so they depend on three cosines only: n·l, n·v and l·v,
where n is the normal, l points to the light and v to the camera. With the half vector h = (l +
v)/‖l + v‖ and ‖l + v‖² = 2 + 2 l·v:

    n·h = (n·l + n·v) / ‖l + v‖,      l·h = v·h = ‖l + v‖ / 2.

A model returns the factor of the albedo (diffuse) and a white part (specular); its BRDF is

    f(l, v) = (albedo · diffuse + specular) / π

and under a distant light of irradiance π the camera sees π f max(0, n·l): a Lambertian pixel shows
albedo · n·l.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from photostereo.core.errors import ParameterError, require_known
from photostereo_lab.scenes.jets import Array


class Brdf(Protocol):
    """Reflectance of a synthetic surface."""

    def terms(self, nl: Array, nv: Array, lv: Array) -> tuple[Array, Array]:
        """Return the diffuse factor and the specular part, both times π.

        ``nl``, ``nv`` and ``lv`` are the cosines n·l, n·v (both above 0) and l·v.
        """
        ...


@dataclass(frozen=True)
class Lambertian:
    """The same radiance in every direction: f = albedo / π.

    >>> Lambertian().terms(np.array([0.3]), np.array([0.9]), np.array([0.5]))
    (array([1.]), array([0.]))
    """

    def terms(self, nl: Array, nv: Array, lv: Array) -> tuple[Array, Array]:
        shape = np.broadcast_shapes(np.shape(nl), np.shape(nv), np.shape(lv))
        return np.ones(shape), np.zeros(shape)


@dataclass(frozen=True)
class BlinnPhong:
    """A glossy lobe (n·h)^m on a Lambertian base.

        π f = albedo (1 − k) + k c_m (n·h)^m,     c_m = (m + 2)(m + 4) / (8 (2^(−m/2) + m)),

    so that at normal incidence the lobe reflects exactly the fraction k (``specular``), and no more
    in any other direction. The larger m ≥ 1 (``shininess``), the smaller the highlight.

    J. F. Blinn, "Models of light reflection for computer synthesized pictures", 1977.
    https://doi.org/10.1145/965141.563893
    """

    shininess: float = 40.0
    specular: float = 0.15

    def __post_init__(self) -> None:
        _require(self.shininess >= 1.0, "shininess", self.shininess, "at least 1")
        _require(0.0 <= self.specular <= 1.0, "specular", self.specular, "between 0 and 1")

    def terms(self, nl: Array, nv: Array, lv: Array) -> tuple[Array, Array]:
        m = self.shininess
        normalization = (m + 2.0) * (m + 4.0) / (8.0 * (2.0 ** (-0.5 * m) + m))
        lobe = half_cosine(nl, nv, lv) ** m
        return np.full_like(lobe, 1.0 - self.specular), self.specular * normalization * lobe


@dataclass(frozen=True)
class Ggx:
    """Microfacets (Cook–Torrance) with the GGX distribution, on a diffuse base below the coat.

        π f = albedo (1 − F(n·l)) (1 − F(n·v)) + π D(n·h) G(n·l, n·v) F(l·h) / (4 n·l n·v)

    with D(c) = α² / (π (c² (α² − 1) + 1)²), Smith's height-correlated masking G = 1 / (1 + Λ(l) +
    Λ(v)) and Schlick's F(c) = F₀ + (1 − F₀)(1 − c)⁵. Light that the coat reflects does not reach
    the base, on the way in or out. α in (0, 1] is the ``roughness``; F₀, the ``reflectance``, is
    0.04 for lacquer, plastic and glaze.

    R. L. Cook and K. E. Torrance, "A reflectance model for computer graphics", 1982.
    https://doi.org/10.1145/357290.357293 B. Walter et al., "Microfacet models for refraction
    through rough surfaces", 2007. https://doi.org/10.2312/EGWR/EGSR07/195-206 C. Schlick, "An
    inexpensive BRDF model for physically-based rendering", 1994.
    https://doi.org/10.1111/1467-8659.1330233 E. Heitz, "Understanding the masking-shadowing
    function in microfacet-based BRDFs", JCGT 3(2), 2014.
    """

    roughness: float = 0.2
    reflectance: float = 0.05

    def __post_init__(self) -> None:
        _require(0.0 < self.roughness <= 1.0, "roughness", self.roughness, "above 0 and at most 1")
        _require(0.0 <= self.reflectance <= 1.0, "reflectance", self.reflectance, "between 0 and 1")

    def distribution(self, nh: Array) -> Array:
        """D(n·h): facets per solid angle; ∫ D (n·h) dω over the hemisphere is 1."""
        a2 = self.roughness**2
        return a2 / (np.pi * (nh * nh * (a2 - 1.0) + 1.0) ** 2)

    def masking(self, nl: Array, nv: Array) -> Array:
        """G / (4 n·l n·v), Smith's term with heights correlated."""
        a2 = self.roughness**2
        towards_light = nv * np.sqrt(a2 + (1.0 - a2) * nl * nl)
        towards_camera = nl * np.sqrt(a2 + (1.0 - a2) * nv * nv)
        return 0.5 / (towards_light + towards_camera)

    def fresnel(self, cosine: Array) -> Array:
        """Schlick's F: the share that a facet reflects."""
        return self.reflectance + (1.0 - self.reflectance) * np.clip(1.0 - cosine, 0.0, 1.0) ** 5

    def terms(self, nl: Array, nv: Array, lv: Array) -> tuple[Array, Array]:
        facing = np.sqrt(np.maximum(0.0, 0.5 + 0.5 * lv))
        coat = (
            self.distribution(half_cosine(nl, nv, lv)) * self.masking(nl, nv) * self.fresnel(facing)
        )
        base = (1.0 - self.fresnel(nl)) * (1.0 - self.fresnel(nv))
        return np.broadcast_to(base, coat.shape), np.pi * coat


@dataclass(frozen=True)
class OrenNayar:
    """A rough matte surface (clay, plaster) of Lambertian facets, flatter toward the rim.

        π f = albedo (A + B max(0, l·v − n·l n·v) / max(n·l, n·v)),
        A = 1 − σ² / (2 (σ² + 0.33)),   B = 0.45 σ² / (σ² + 0.09).

    σ ≥ 0 is the standard deviation of the facets' slope angle in radians; 0 is Lambert.

    M. Oren and S. K. Nayar, "Generalization of Lambert's reflectance model", 1994.
    https://doi.org/10.1145/192161.192213
    """

    sigma: float = 0.4

    def __post_init__(self) -> None:
        _require(self.sigma >= 0.0, "sigma", self.sigma, "at least 0")

    def terms(self, nl: Array, nv: Array, lv: Array) -> tuple[Array, Array]:
        s2 = self.sigma**2
        a = 1.0 - 0.5 * s2 / (s2 + 0.33)
        b = 0.45 * s2 / (s2 + 0.09)
        # l·v − n·l n·v = sin θ_l sin θ_v cos(φ_l − φ_v), and dividing by the larger cosine makes it
        # sin α tan β.
        retro = np.maximum(0.0, lv - nl * nv) / np.maximum(np.maximum(nl, nv), 1e-12)
        factor = a + b * retro
        return factor, np.zeros_like(factor)


#: Reflectances by name.
BRDFS: dict[str, type[Lambertian] | type[BlinnPhong] | type[Ggx] | type[OrenNayar]] = {
    "lambertian": Lambertian,
    "blinn-phong": BlinnPhong,
    "ggx": Ggx,
    "oren-nayar": OrenNayar,
}


def brdf_named(name: str) -> Brdf:
    """A reflectance by name, with its default parameters.

    >>> brdf_named("oren-nayar")
    OrenNayar(sigma=0.4)
    """
    require_known(name, BRDFS, "reflectance")
    return BRDFS[name]()


def half_cosine(nl: Array, nv: Array, lv: Array) -> Array:
    """n·h from the three cosines."""
    return np.clip((nl + nv) / np.sqrt(np.maximum(2.0 + 2.0 * lv, 1e-12)), 0.0, 1.0)


def _require(holds: bool, name: str, value: float, wanted: str) -> None:
    if not holds:
        raise ParameterError(
            f'The reflectance parameter "{name}" is {value!r}, but it must be {wanted}.',
            code="bad-reflectance-parameter",
            name=name,
            value=value,
            wanted=wanted,
        )
