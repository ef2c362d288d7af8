"""How much of a prior's shift to keep: Stein's estimate, by trying.

A prior moves the model's own normals m to n(m). Of all answers m + α (n − m) the one with the least expected error has

    α = R / S,    S = mean |n − m|²,    R = −mean (noise of m) · (n − m),

R the noise that the prior removes (C. M. Stein; the risk is α² S − 2 α R + constant). By Stein's lemma R is the
noise's variance times the divergence of m − n(m), and a divergence can be tried (Ramani and others): the same descent once
more from m + ε z, where z is noise of the photographs' own kind, tells how much of a noise like theirs the prior takes away:

    R = −mean z · [ (n(m + ε z) − m − ε z) − (n(m) − m) ] / ε.

A formula would have to know what the descent does with noise, and it does more than count codes: a hard threshold
keeps what noise lifts above it, and a dictionary of 192 atoms learned on a few hundred patches learns their noise by
heart. (Of the noise that counting codes calls removed, a fifth to a third really was, on the small objects of the harm
suite.) z comes from :func:`photostereo.diagnosis.noise_fields.noise_fields`, with its true correlation in space: JPEG's
remains survive a patch prior, and white noise would not. Models that bend noise, or are off by more than it, have another
R: :mod:`photostereo.solver.tried_noise`.

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
from photostereo.solver.descent import half_steps
from photostereo.solver.state import SolveState
from photostereo.solver.tried_noise import STEP
from photostereo.solver.within_noise import WithinNoise


class Moved:
    """The steps of a model whose data term is that of another, moved by t: data(n − t).

    Its minimizer with a prior, over x = n − t, is the other's with the pull q − w t.

    >>> import numpy as np
    >>> from photostereo.reflectance.lambertian.model import Lambertian
    >>> L = np.array([[0, 0.6, 0], [0, 0, 0.6], [1, 0.8, 0.8]])
    >>> n, t = np.array([[0.1, 0.2, 0.9]]), np.array([[0.0, 0.1, 0.0]])
    >>> moved, direct = Moved(Lambertian(n @ L, L), t), Lambertian((n + t) @ L, L)
    >>> weight, pull = np.array([2.0]), np.array([[0.5, 0.0, 1.0]])
    >>> bool(np.allclose(moved.update_normals({}, weight, pull), direct.update_normals({}, weight, pull)))
    True
    """

    def __init__(self, model: Model, by: Array) -> None:
        self._model, self._by = model, by

    def update_normals(self, unknowns: Unknowns, weight: Array, pull: Array) -> Array:
        return self._by + self._model.update_normals(unknowns, weight, pull - weight[..., None] * self._by)

    def update_unknowns(self, normals: Array, unknowns: Unknowns) -> Unknowns:
        return self._model.update_unknowns(normals - self._by, unknowns)


def best_share(
    model: WithinNoise, prior: Prior, start: tuple[Array, Unknowns], end: SolveState, control: Control
) -> float:
    """α of a descent from ``start`` to ``end``; 1 if it moved nothing."""
    normals, unknowns = start
    shift = end.normals - normals
    size = model.size_of(shift)
    if size <= 0.0:
        return 1.0
    noise = model.noise_of_normals.noise
    disturbed = normals + STEP * noise
    state = SolveState(disturbed, unknowns, prior.begin(disturbed))
    moved = Moved(model, STEP * noise)
    control.stage("noise", len(end.history))
    for number in range(len(end.history)):
        half_steps(state, moved, prior, number, control)
        control.advance()
    change = (state.normals - normals - STEP * noise) - shift
    return min(1.0, max(model.removed(shift, change / STEP), 0.0) / size)
