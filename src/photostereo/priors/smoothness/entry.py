"""Registry entry of the smoothness prior: its parameters, and its strengths from the noise.

Noise σ of an intensity causes noise τ of a component of n, τ² = σ² trace(H⁻¹) / 3, with H the mean
Hessian of the data cost. The noise of the difference between two neighbors is √6 τ, root mean
square.

- **δ = κ τ**: larger differences are edges.
- **4 λ = ρ trace(H) / 3**: the four neighbors together weigh ρ times as much as the photographs.

As for the dictionary, the result stays within the noise, and of the prior's shift only the share is
kept that removes more error than it adds (:mod:`photostereo.solver.confidence_ball`,
:mod:`photostereo.solver.shrinkage`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from photostereo.core.parameters import integer, number, number_or_auto
from photostereo.priors.entry import PriorEntry, Setting, filled

if TYPE_CHECKING:
    from photostereo.priors.smoothness.prior import SmoothnessPrior

#: κ = δ / τ; κ and ρ were chosen on four scenes at 5, 15 and 25 dB: the mean error is within 3 % of
#: the best for κ from 0.5 to 1 and ρ from 2 to 4. Larger values remove more of strong noise but
#: begin to harm clean captures.
EDGE_IN_NOISE = 0.75
#: ρ = 4 λ / mean curvature of the data cost.
PRIOR_TO_DATA = 2.0
#: Minimum δ, as a share of the brightness scale, so that φ has a quadratic part.
SMALLEST_DELTA = 1e-4


@dataclass(frozen=True)
class SmoothnessParameters:
    """Parameters of :class:`.prior.SmoothnessPrior` and of the descent with it."""

    lam: float | None = number_or_auto(
        "λ, weight of the prior; auto: from the noise of the photographs", minimum=0
    )
    delta: float | None = number_or_auto(
        "δ, differences above it are edges; auto: from the noise of the photographs", above=0
    )
    max_iter: int = integer(40, "outer iterations", minimum=1)
    tol: float = number(
        0.0,
        "stop when the cost falls by less than this fraction per iteration; 0: never",
        minimum=0,
    )


def _build(values: Mapping[str, Any], setting: Setting) -> tuple[SmoothnessPrior, dict[str, Any]]:
    from photostereo.priors.smoothness.prior import SmoothnessPrior

    # τ and the mean curvature, from the module docstring.
    variance = float(np.trace(np.linalg.inv(setting.hessian))) / 3.0
    noise_of_normals = setting.noise * float(np.sqrt(variance))
    curvature = float(np.trace(setting.hessian)) / 3.0
    lam = PRIOR_TO_DATA * curvature / 4.0
    delta = max(EDGE_IN_NOISE * noise_of_normals, SMALLEST_DELTA)
    values = filled(values, {"lam": lam, "delta": delta})
    prior = SmoothnessPrior(
        setting.mask, setting.side, lam=values["lam"], delta=values["delta"], device=setting.device
    )
    return prior, values


SMOOTHNESS = PriorEntry(
    name="smoothness",
    title="Neighboring normals are alike, except across edges",
    parameters=SmoothnessParameters,
    build=_build,
    citation="P. J. Huber, Robust estimation of a location parameter, Annals of Mathematical Statistics 35(1), 1964; "
    "L. I. Rudin, S. Osher, E. Fatemi, Nonlinear total variation based noise removal algorithms, Physica D 60, 1992",
    strengths=("lam", "delta"),
)
