"""Choose how much of a prior's shift to keep, from a Monte-Carlo version of Stein's estimate.

A prior moves the model's own normals m to n(m). Of all answers m + α (n − m) the one with the least expected error has

    α = R / S,    S = mean |n − m|²,    R = −mean (noise of m) · (n − m),

where R is the noise that the prior removes (C. M. Stein; the risk is α² S − 2 α R + constant). By Stein's lemma R is the
variance of the noise times the divergence of m − n(m). The divergence can be estimated by a trial (Ramani et al.): a second
descent from m + ε z, where z is noise like that of the photographs, shows how much of such noise the prior removes:

    R = −mean z · [ (n(m + ε z) − m − ε z) − (n(m) − m) ] / ε.

A formula would have to model the effect of the descent on noise, and counting codes is not enough: a hard threshold
keeps whatever noise lifts above it, and a dictionary of 192 atoms learned on a few hundred patches overfits their noise.
(On the small objects of the harm suite, only a fifth to a third of the noise that counting codes predicts to be removed
was removed.) z comes from :func:`photostereo.diagnosis.noise_fields.noise_fields`, with its true spatial correlation:
JPEG artifacts survive a patch prior, white noise does not. Models that distort noise, or have errors larger than it, use
another R: :mod:`photostereo.solver.confidence_ball`.

On a matte surface the coarse part of the shift (its mean over 7 × 7 pixels) and the rest have shares of their own, which
minimize the same risk together: a patch prior removes fine noise, and its coarse shift is mostly lost detail. Elsewhere
one share serves for both: gloss counts as noise in R, and the estimate for a part is worse than for the whole.

References
----------
C. M. Stein, Estimation of the mean of a multivariate normal distribution, Annals of Statistics 9(6), 1981,
doi:10.1214/aos/1176345632. S. Ramani, T. Blu, M. Unser, Monte-Carlo SURE, IEEE Transactions on Image Processing
17(9), 2008, doi:10.1109/TIP.2008.2001404.
"""

from __future__ import annotations

from photostereo.core.control import Control
from photostereo.priors.protocol import Prior
from photostereo.reflectance.model import Model, Unknowns
from photostereo.runtime.arrays import Array
from photostereo.solver.confidence_ball import STEP, Shares, WithinNoise
from photostereo.solver.state import SolveState

#: Rounds of finding one share at fixed others; ten are enough for two parts.
ROUNDS = 50


class Moved:
    """Steps of a model whose data term is that of another model, moved by t: data(n − t).

    Its minimizer with a prior, over x = n − t, is that of the other model with the pull q − w t.
    """

    def __init__(self, model: Model, by: Array) -> None:
        self._model = model
        self._by = by

    def update_normals(self, unknowns: Unknowns, weight: Array, pull: Array) -> Array:
        return self._by + self._model.update_normals(
            unknowns, weight, pull - weight[..., None] * self._by
        )

    def update_unknowns(self, normals: Array, unknowns: Unknowns) -> Unknowns:
        return self._model.update_unknowns(normals - self._by, unknowns)


def best_share(
    model: WithinNoise,
    prior: Prior,
    start: tuple[Array, Unknowns],
    end: SolveState,
    control: Control,
) -> Shares:
    """Return α of a descent from ``start`` to ``end``; 1 if nothing moved."""
    normals, unknowns = start
    shift = end.normals - normals
    if model.product(shift, shift) <= 0.0:
        return 1.0, 1.0
    noise = model.noise_of_normals.noise
    disturbed = normals + STEP * noise
    state = SolveState(disturbed, unknowns, prior.begin(disturbed))
    moved = Moved(model, STEP * noise)
    control.stage("noise", len(end.history))
    for number in range(len(end.history)):
        state.step(moved, prior, number, control)
        control.advance()
    change = (state.normals - normals - STEP * noise) - shift
    parts = model.parts(shift)
    shares = [0.0, 0.0]
    removed = [model.removed(*part) for part in zip(parts, model.parts(change / STEP), strict=True)]
    products = [[model.product(one, other) for other in parts] for one in parts]
    for _ in range(ROUNDS):
        for k, row in enumerate(products):
            others = sum(share * row[j] for j, share in enumerate(shares[: len(row)]) if j != k)
            shares[k] = min(1.0, max(removed[k] - others, 0.0) / max(row[k], 1e-300))
    return shares[0], shares[len(parts) - 1]
