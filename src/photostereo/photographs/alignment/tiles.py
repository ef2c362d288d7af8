r"""How far each small tile of a photograph is displaced from what the other photographs predict.

Under distant light a tile of a matte surface is nearly a linear combination of a few basis pictures, whatever the
light; the basis is taken from the other photographs. A photograph of a moved camera is such a combination at another
place. For small displacements p

.. math:: I(x) + \nabla I(x) \cdot p \approx \sum_k c_k B_k(x),

which is linear in the coefficients c and in p. Both are fitted together, with robust weights, so that shadow edges
and highlights, which no basis explains, count little. If the displacement cannot be distinguished from a change of light
(smooth shading without texture or outline), its information is small and the tile counts little.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import Float32, FloatArray
from photostereo.runtime.quantiles import MAD_TO_SIGMA, row_medians

#: Pixels along the side of a tile: enough of them to fit eight unknowns, few enough for one plane of surface.
SIDE = 24
#: Basis pictures of a tile: three for a matte plane under distant light, and one for what departs from it. With two a
#: change of light is mistaken for movement; with five or more a shifted photograph explains itself.
BASIS = 4
#: Maximum number of tiles: enough to average over shadows and highlights, few enough to be quick at any size.
MOST = 300
#: Photographs are predicted from those outside their fold, so that none explains itself.
FOLDS = 4
#: Photographs that predict the others. Four basis pictures need no more, and the time grows with their cube.
PREDICTING = 24
#: Rounds of robust weighting. The fourth changes displacements by less than 0.01 pixel.
ROUNDS = 3
#: Residuals beyond this many standard deviations count little (Cauchy weights).
OUTLIER = 3.0
#: Tiles that are fitted at a time at most, so that their numbers stay in the processor's cache.
AT_ONCE = 16
#: The same for tiles times photographs. Half and twice as many take up to a fifth longer.
PAIRS = 96


class TileShifts(NamedTuple):
    """Displacements of T tiles in d photographs."""

    shifts: FloatArray  #: (T, d, 2) columns and rows, in pixels
    information: FloatArray  #: (T, d, 2, 2) inverse covariances
    misfit: FloatArray  #: (T, d) variance that basis and displacement leave unexplained
    #: (T, 2) columns and rows of the tiles' centers, from the center of the picture
    places: FloatArray


def cut_tiles(picture: Float32, side: int, chosen: NDArray[np.int64]) -> Float32:
    """The chosen tiles of a picture (H, W), without margin: (T, side²)."""
    rows = picture.shape[0] // side
    columns = picture.shape[1] // side
    cut = picture[: rows * side, : columns * side].reshape(rows, side, columns, side)
    row, column = np.divmod(chosen, columns)
    return cut[row, :, column].reshape(-1, side * side)


def tile_means(picture: Float32, side: int) -> Float32:
    """The mean of every tile of a picture: (T,)."""
    rows = picture.shape[0] // side
    columns = picture.shape[1] // side
    whole = picture[: rows * side, : columns * side]
    return np.asarray(cv2.resize(whole, (columns, rows), interpolation=cv2.INTER_AREA)).ravel()


def tile_shifts(
    pictures: Sequence[Float32], side: int, judged: Sequence[Float32] | None = None
) -> TileShifts:
    """Displacement of the tiles of every picture (H, W) from what the others predict.

    Only the :data:`MOST` tiles with the steepest slopes are used: the others carry little information. With ``judged``,
    its pictures are compared instead, with what the others in ``pictures`` predict.
    """
    count = len(pictures)
    (height, width) = pictures[0].shape

    edges = map(derivatives, pictures)
    steep = sum(tile_means(across * across + down * down, side) for across, down in edges)
    chosen = np.sort(np.argsort(-steep, kind="stable")[: min(MOST, np.count_nonzero(steep))])

    def of_chosen(those: Sequence[Float32]) -> tuple[Float32, Float32]:
        """Values (T, d, n) and their derivatives by columns and rows (T, d, 2, n)."""
        values = np.empty((len(chosen), len(those), side * side), np.float32)
        slopes = np.empty((len(chosen), len(those), 2, side * side), np.float32)
        for number, picture in enumerate(those):
            values[:, number] = cut_tiles(picture, side, chosen)
            for axis, slope in enumerate(derivatives(picture)):
                slopes[:, number, axis] = cut_tiles(slope, side, chosen)
        return values, slopes

    values, slopes = of_chosen(pictures)
    own_values, own_slopes = (values, slopes) if judged is None else of_chosen(judged)
    folds = np.arange(count) % FOLDS if count >= 2 * FOLDS else np.arange(count)
    row, column = np.divmod(chosen, width // side)
    places = side * (np.stack([column, row], axis=1) + 0.5) - 0.5 * np.array([width, height])

    def of_fold(fold: int) -> tuple[FloatArray, ...]:
        own = folds == fold
        size = max(1, min(AT_ONCE, PAIRS // int(np.count_nonzero(own))))
        parts = (slice(first, first + size) for first in range(0, max(len(chosen), 1), size))
        fits = [
            _fit(own_values[p, own], own_slopes[p, own], _basis(values[p, ~own])) for p in parts
        ]
        return tuple(map(np.concatenate, zip(*fits, strict=True)))

    # In two threads this takes longer: each step is so short that they mostly wait for the interpreter.
    parts = [of_fold(fold) for fold in range(int(folds.max()) + 1)]
    order = np.argsort(np.argsort(folds, kind="stable"))
    shifts, information, misfit = (
        np.concatenate(part, axis=1)[:, order] for part in zip(*parts, strict=True)
    )
    return TileShifts(shifts, information, misfit, places)


def derivatives(picture: Float32) -> list[Float32]:
    """Derivatives of a picture by columns and rows."""
    return [cv2.Scharr(picture, cv2.CV_32F, *axis, scale=1 / 32) for axis in ((1, 0), (0, 1))]


def _basis(others: Float32) -> Float32:
    """(T, k, n) leading right singular vectors of each tile's photographs (T, d, n), and slow changes of light.

    The light of a near source varies across a tile, which without detail looks as if the tile had moved. The mean picture
    times the two coordinates explains that.
    """
    others = others[:, :: max(1, others.shape[1] // PREDICTING)]
    gram = others @ others.transpose(0, 2, 1)
    size = min(BASIS, others.shape[1] - 1)
    leading = np.linalg.eigh(gram)[1][..., -size:]
    side = round(others.shape[2] ** 0.5)
    across = np.tile(np.linspace(-1, 1, side, dtype=np.float32), (side, 1))
    slow = others.mean(axis=1, keepdims=True) * np.stack([across, across.T]).reshape(2, -1)
    basis = np.concatenate([leading.transpose(0, 2, 1) @ others, slow], axis=1)
    return np.asarray(
        basis / (np.linalg.norm(basis, axis=2, keepdims=True) + 1e-12), dtype=np.float32
    )


def _fit(
    values: Float32, slopes: Float32, basis: Float32
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Displacement, information and misfit of each tile and photograph, by iteratively reweighted least squares."""
    tiles, count = values.shape[:2]
    unknowns = basis.shape[1] + 2
    common = np.broadcast_to(basis[:, None], (tiles, count, *basis.shape[1:]))
    columns = np.concatenate([common, -slopes], axis=2)  # (T, d, k + 2, n)
    weights = np.ones_like(values)
    for _ in range(ROUNDS):
        weighted = columns * weights[:, :, None]
        normal = (weighted @ columns.transpose(0, 1, 3, 2)).astype(np.float64)
        scale = np.trace(normal, axis1=2, axis2=3)[..., None, None] / unknowns
        inverse = np.linalg.inv(normal + (1e-9 * scale + 1e-12) * np.eye(unknowns))
        solution = inverse @ (weighted @ values[..., None]).astype(np.float64)
        left = values - (solution.transpose(0, 1, 3, 2).astype(np.float32) @ columns)[:, :, 0]
        spread = MAD_TO_SIGMA * row_medians(np.abs(left)) + 1e-9
        weights = (1.0 / (1.0 + (left / (OUTLIER * spread)) ** 2)).astype(np.float32)
    freedom = np.maximum(weights.sum(axis=2) - unknowns, 1.0)
    variance = (weights * left * left).sum(axis=2) / freedom + 1e-18
    information = np.linalg.inv(inverse[..., -2:, -2:]) / variance[..., None, None]
    return solution[..., -2:, 0], information, variance
