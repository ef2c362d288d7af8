"""The interface of a reflectance model, and the 3 × 3 algebra that all of them share.

Every method minimises

    Σ_pixels data(n_px, u_px)  +  λ ( Σ_patches ‖P_j n − D b_j‖² + μ² ‖B‖₀ )

over the scaled normals n = albedo × normal (N × 3), the model's own unknowns u, and, where there is a
prior, the dictionary D and the codes B. With (D, B) fixed the prior pulls on each pixel alone, because Σ
P_jᵀP_j is diagonal:

    λ ( c |n|² − 2 n·r ) + constant,      c = number of patches that cover the pixel,  r = Σ P_jᵀ D b_j.

So a model never sees patches. It gets (λ, c, r) and answers with the exact minimiser over its own pixel. A
new model is one new file that satisfies :class:`Model` and one line in the registry, and has the dictionary
prior for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from photostereo.backend import to_numpy
from photostereo.monitor import Monitor

#: A NumPy array, or anything with the same operators (a torch tensor).
Array = Any
#: The model's own unknowns: arrays whose first axis is the pixel.
Unknowns = dict[str, Array]


@dataclass(frozen=True)
class Fit:
    """A model's own answer, without a prior.

    Attributes
    ----------
    normals : (N, 3) albedo × normal
    unknowns : the model's own unknowns at the answer
    iterations : 0 for a closed form
    converged : whether every pixel met the model's tolerance
    """

    normals: Array
    unknowns: Unknowns = field(default_factory=dict)
    iterations: int = 0
    converged: bool = True


class Model(Protocol):
    """What :func:`photostereo.solver.solve` needs of a reflectance model; see the module's text for the symbols."""

    @property
    def noise(self) -> float | None:
        """Noise of one intensity that the model counts as noise, or None: the residuals of least squares tell it."""
        ...

    def mean_hessian(self, unknowns: Unknowns) -> Any:
        """How firmly the photographs hold n: the 3 × 3 mean over pixels of H, data = nᵀH n − 2 hᵀn + ...;
        NumPy."""
        ...

    def alone(self, monitor: Monitor) -> Fit:
        """The model's minimiser without a prior."""
        ...

    def start(self, monitor: Monitor) -> tuple[Array, Unknowns]:
        """Where block coordinate descent with a prior begins."""
        ...

    def update_normals(self, unknowns: Unknowns, lam: float, count: Array, pull: Array) -> Array:
        """Exact minimiser over n of data + λ (c |n|² − 2 n·r), with the unknowns fixed or eliminated."""
        ...

    def update_unknowns(self, normals: Array, unknowns: Unknowns) -> Unknowns:
        """Minimiser (or a step that does not raise the cost) over the model's own unknowns at fixed n."""
        ...

    def cost(self, normals: Array, unknowns: Unknowns) -> Array:
        """The data cost, summed over the pixels; a number, or an array of the same kind that holds one."""
        ...

    def maps(self, normals: Array, unknowns: Unknowns) -> dict[str, Array]:
        """What is worth looking at per pixel, beyond the normals: arrays whose first axis is the pixel."""
        ...


def mean_symmetric_3x3(entries: Array) -> Any:
    """The 3 × 3 mean, a NumPy array, of N symmetric matrices given as (N, 6): xx, xy, xz, yy, yz, zz.

    >>> import numpy as np
    >>> mean_symmetric_3x3(np.array([[1.0, 0, 0, 1, 0, 1], [3, 0, 0, 1, 0, 1]])).diagonal()
    array([2., 1., 1.])
    """
    xx, xy, xz, yy, yz, zz = to_numpy(entries.mean(0))
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def solve_symmetric_3x3(
    xx: Array, xy: Array, xz: Array, yy: Array, yz: Array, zz: Array, right: tuple[Array, Array, Array]
) -> tuple[Array, Array, Array]:
    """Solve one symmetric positive definite 3 × 3 system per pixel by an LDLᵀ factorisation.

    Only arithmetic operators are used, so NumPy arrays and torch tensors of any shape serve alike.

    >>> import numpy as np
    >>> one, zero = np.ones(1), np.zeros(1)
    >>> solve_symmetric_3x3(2 * one, zero, zero, 4 * one, zero, 5 * one, (one, one, one))
    (array([0.5]), array([0.25]), array([0.2]))
    """
    b0, b1, b2 = right
    l10, l20 = xy / xx, xz / xx
    d1 = yy - l10 * xy
    e21 = yz - l20 * xy
    l21 = e21 / d1
    d2 = zz - l20 * xz - l21 * e21
    z1 = b1 - l10 * b0
    z2 = b2 - l20 * b0 - l21 * z1
    x2 = z2 / d2
    x1 = z1 / d1 - l21 * x2
    x0 = b0 / xx - l10 * x1 - l20 * x2
    return x0, x1, x2
