"""The smoothness prior on the normal map, by majorization.

    λ Σ_{i~j} φ(|n_i − n_j|),      φ(t) = t² for t ≤ δ,  2 δ t − δ² beyond

At the current normals, let two neighbors have difference d and mean m. Huber's φ lies below a
parabola of the difference, which lies below two parabolas, one per pixel. Both bounds are tight at
the current normals:

    φ(|n_i − n_j|) ≤ ω |n_i − n_j|² + constant,   ω = min(1, δ / |d|),
    |n_i − n_j|² ≤ 2 |n_i − m|² + 2 |n_j − m|².

So each pixel has the bound w |n|² − 2 n·q with w = 2 λ Σ_j ω and q = 2 λ Σ_j ω m. The model's step
is exact, and the cost never increases. The prior has no unknowns of its own.

References
----------
P. J. Huber, Robust estimation of a location parameter, Annals of Mathematical Statistics 35(1),
1964, doi:10.1214/aoms/1177703732. L. I. Rudin, S. Osher, E. Fatemi, Nonlinear total variation based
noise removal algorithms, Physica D 60, 1992, doi:10.1016/0167-2789(92)90242-F.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import BoolArray
from photostereo.priors.protocol import Prior, PriorState
from photostereo.runtime.arrays import (
    CPU,
    Array,
    Device,
    cast,
    contiguous,
    is_tensor,
    like,
    namespace,
)
from photostereo.runtime.loops import njit, prange

#: Offsets of the neighbors of a pixel: right and down, whose links the cost has, then left and up.
STEPS = ((0, 1), (1, 0), (0, -1), (-1, 0))


def neighbors_of(mask: BoolArray, side: int = 0) -> NDArray[np.int32]:
    """Return indices (N, 4) of the right, down, left and up neighbors; -1 outside the mask.

    With ``side``, the picture is a stack of crops of so many rows, which are not neighbors.
    """
    # A margin of one pixel, so that every pixel has four places to look at.
    place = np.full((mask.shape[0] + 2, mask.shape[1] + 2), -1, dtype=np.int32)
    place[1:-1, 1:-1][mask] = np.arange(np.count_nonzero(mask), dtype=np.int32)
    rows, cols = np.nonzero(mask)
    table = np.stack([place[rows + 1 + down, cols + 1 + right] for down, right in STEPS], axis=1)
    if side:  # crops are not neighbors of each other
        table[rows % side == side - 1, 1] = -1
        table[rows % side == 0, 3] = -1
    return table


class SmoothnessPrior(Prior):
    """Huber's function of the differences between neighboring normals.

    The module docstring has the cost and its bound. The prior has no unknowns, so its state is
    empty.

    Parameters
    ----------
    mask : array of bool (H, W)
        The pixels.
    side : int
        If not 0, the picture is a stack of crops of so many rows, which are not neighbors.
    lam : float
        λ, the weight. With tensors, it may also be a tensor with one value per problem on the
        leading axis.
    delta : float
        δ, the difference above which there is an edge; likewise.
    device : Device
        Of the normals.

    References
    ----------
    P. J. Huber, Robust estimation of a location parameter, Annals of Mathematical Statistics 35(1),
    1964, doi:10.1214/aoms/1177703732. L. I. Rudin, S. Osher, E. Fatemi, Nonlinear total variation
    based noise removal algorithms, Physica D 60, 1992, doi:10.1016/0167-2789(92)90242-F.
    """

    def __init__(
        self, mask: BoolArray, side: int = 0, *, lam: Array, delta: Array, device: Device = CPU
    ) -> None:
        self.lam = lam
        self.delta = delta
        table = neighbors_of(mask, side)
        self._neighbors = device.put(table)
        self._present = device.put(table >= 0)

    def pull(self, state: PriorState, normals: Array) -> tuple[Array, Array]:
        """w = 2 λ Σ_j ω and q = λ Σ_j ω (n_i + n_j)."""
        # One compiled pass over the pixels, without arrays of links.
        if not is_tensor(normals):
            n = contiguous(cast(normals, "float64"))
            weight = np.empty(len(n))
            pull = np.empty_like(n)
            bound(n, self._neighbors, float(self.lam), float(self.delta), weight, pull)
            return weight, pull
        there, length = self._links(normals, 4)
        lam, delta = self._each(normals)
        xp = namespace(normals)
        edge = delta[..., None]
        # 1 + 0 · length broadcasts over problems with different δ.
        omega = xp.where(length <= edge, 1.0 + 0.0 * length, edge / length) * self._present
        weight = 2.0 * lam * omega.sum(-1)
        pull = (omega[..., None] * (there + normals[..., None, :])).sum(-2)
        return weight, lam[..., None] * pull

    def cost(self, state: PriorState, normals: Array) -> dict[str, Array]:
        """``roughness``, λ Σ φ."""
        _, length = self._links(normals, 2)
        lam, delta = self._each(normals)
        xp = namespace(normals)
        edge = delta[..., None]
        rough = xp.where(length <= edge, length * length, edge * (2.0 * length - edge))
        return {"roughness": lam[..., 0] * (rough * self._present[:, :2]).sum(-1).sum(-1)}

    def _links(self, normals: Array, count: int) -> tuple[Array, Array]:
        """Return the first ``count`` neighbors of each pixel, and their distances.

        Of shapes (..., N, count, 3) and (..., N, count).
        """
        there = normals[..., self._neighbors[:, :count].clip(0), :]
        length = ((there - normals[..., None, :]) ** 2).sum(-1) ** 0.5
        return there, length

    def _each(self, normals: Array) -> tuple[Array, Array]:
        """Return λ and δ, each with an axis for the pixels."""
        return _with_pixel_axis(self.lam, normals), _with_pixel_axis(self.delta, normals)


def _with_pixel_axis(value: Array, normals: Array) -> Array:
    if not is_tensor(value):
        value = like(np.asarray(value, dtype=np.float64), normals)
    return value[..., None]


@njit(cache=True, parallel=True)
def bound(n, neighbors, lam, delta, weight, pull):  # type: ignore[no-untyped-def]
    """Fill w = 2 λ Σ ω (N,) and q = λ Σ ω (n_i + n_j) (N, 3), pixel by pixel.

    Parameters
    ----------
    n : array (N, 3)
        The normals.
    neighbors : array of int (N, 4)
        From :func:`neighbors_of`.
    lam, delta : float
        λ and δ.
    weight, pull : arrays (N,) and (N, 3)
        w and q.
    """
    for i in prange(n.shape[0]):
        total = 0.0
        x = 0.0
        y = 0.0
        z = 0.0
        for k in range(4):
            j = neighbors[i, k]
            if j >= 0:
                right = n[j, 0] - n[i, 0]
                up = n[j, 1] - n[i, 1]
                near = n[j, 2] - n[i, 2]
                length = np.sqrt(right * right + up * up + near * near)
                omega = 1.0 if length <= delta else delta / length
                total += omega
                x += omega * (n[i, 0] + n[j, 0])
                y += omega * (n[i, 1] + n[j, 1])
                z += omega * (n[i, 2] + n[j, 2])
        weight[i] = 2.0 * lam * total
        pull[i, 0] = lam * x
        pull[i, 1] = lam * y
        pull[i, 2] = lam * z
