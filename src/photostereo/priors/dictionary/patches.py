"""Extract overlapping patches of a normal map, and the exact adjoint of the extraction.

``P_j`` extracts patch j from the normals n. A patch is ``w_x`` columns by ``w_y`` rows by ``w_z``
components. In its vector, the component varies slowest, then y (the rows of the picture), and x
fastest. The paper writes its vectors column by column; the two are equal up to transposing the
picture.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.core.errors import ParameterError
from photostereo.runtime.loops import njit, shared

IntArray = NDArray[np.int32]


def patch_starts(length: int, width: int, stride: int) -> IntArray:
    """Return the first indices of the windows along one axis: 0, s, 2s, ..., and the last.

    Parameters
    ----------
    length : int
        Pixels of the axis; the last window ends at its border.
    width : int
        Pixels of a window.
    stride : int
        s.
    """
    starts = list(range(0, length - width + 1, stride))
    if starts[-1] != length - width:
        starts.append(length - width)
    return np.array(starts, dtype=np.int32)


@dataclass(frozen=True, eq=False)
class PatchGrid:
    """The patches of a masked picture that touch the mask; outside the mask the normals are zero.

    Build it with :meth:`from_mask`. With ``w_z = 3`` a patch holds all three components of the
    normals; with ``w_z = 1`` each window gives three patches, one after another, for x, y and z.

    >>> grid = PatchGrid.from_mask(np.ones((612, 512), bool), size=(8, 8, 3), stride=4)
    >>> grid.n_patches, grid.patch_length
    (19304, 192)
    >>> n = np.ones((grid.n_pixels, 3))
    >>> patches = grid.add_extract(n, np.zeros((grid.n_patches, grid.patch_length)))
    >>> bool(np.all(grid.pull(n, patches) == 0))  # the patches put back are count * n
    True
    """

    mask: BoolArray  #: (H, W) array of bool
    size: tuple[int, int, int]  #: (w_x, w_y, w_z)
    row_starts: IntArray  #: Window positions along y, whether or not a window touches the mask.
    col_starts: IntArray  #: The same along x.
    window_rows: IntArray  #: The top row of each window that touches the mask.
    window_cols: IntArray  #: Its left column.

    @classmethod
    def from_mask(
        cls,
        mask: BoolArray,
        *,
        size: tuple[int, int, int] = (8, 8, 3),
        stride: int = 4,
        side: int = 0,
    ) -> PatchGrid:
        """Build the grid.

        Parameters
        ----------
        mask : array of bool (H, W)
            The pixels.
        size : tuple of three int
            (w_x, w_y, w_z).
        stride : int
            Pixels from one window to the next.
        side : int
            If not 0, the picture is a stack of crops of so many rows, and no patch crosses from one
            to the next.

        Examples
        --------
        >>> grid = PatchGrid.from_mask(np.ones((32, 16), bool), side=16)
        >>> grid.row_starts.tolist(), grid.n_patches
        ([0, 4, 8, 16, 20, 24], 18)
        """
        mask = np.array(mask, dtype=bool)
        if mask.ndim != 2 or not mask.any():
            raise ParameterError(
                f"Patches need a mask with pixels; its shape is {mask.shape}.", code="empty-mask"
            )
        height, width = mask.shape
        _check((side or height, width), size, stride)
        # One set of window rows per crop; without crops there is one.
        tops = np.arange(0, height, side or height, dtype=np.int32)
        row_starts = (tops[:, None] + patch_starts(side or height, size[1], stride)).ravel()
        col_starts = patch_starts(width, size[0], stride)
        # Count mask pixels in each window with a summed-area table.
        table = np.zeros((height + 1, width + 1), dtype=np.int32 if mask.size < 2**31 else np.int64)
        np.cumsum(mask, axis=0, dtype=table.dtype, out=table[1:, 1:])
        np.cumsum(table[1:, 1:], axis=1, out=table[1:, 1:])
        top = row_starts[:, None]
        left = col_starts[None, :]
        low = top + size[1]
        right = left + size[0]
        rows, cols = np.nonzero(
            table[low, right] - table[top, right] - table[low, left] + table[top, left]
        )
        mask.setflags(write=False)
        return cls(mask, size, row_starts, col_starts, row_starts[rows], col_starts[cols])

    @cached_property
    def n_pixels(self) -> int:
        """Number of mask pixels, N."""
        return int(np.count_nonzero(self.mask))

    @property
    def n_patches(self) -> int:
        """Number of patches, w."""
        return int(self.window_rows.size) * (3 // self.size[2])

    @property
    def patch_length(self) -> int:
        """Number of values in one patch, ``m = w_x w_y w_z``."""
        return self.size[0] * self.size[1] * self.size[2]

    @cached_property
    def count(self) -> NDArray[np.float64]:
        """Number of patches (N,) that cover each pixel: the diagonal of ``sum_j P_j^T P_j``."""
        first_row, last_row, first_col, last_col = self._covering_lines
        counts = np.outer(last_row - first_row, last_col - first_col)[self.mask].astype(np.float64)
        counts.setflags(write=False)
        return counts

    def add_extract(self, n: FloatArray, out: FloatArray) -> FloatArray:
        """Add all patches ``P_j n`` of normals (N, 3) to the rows of ``out`` (w, m), in place.

        For a change of n this updates ``R = P - B^T D``.
        """
        n = self._checked_normals(n)
        windows = self._as_windows(out, writes=True)
        # In the precision of the patches: half the memory traffic in single precision.
        picture = np.empty((3, *self.mask.shape), dtype=out.dtype)
        paste(n, self._pixel_index, picture)
        cut(picture, self.window_rows, self.window_cols, windows)
        return out

    def pull(self, n: FloatArray, R: FloatArray, lam: Any = 1.0) -> FloatArray:
        """Return ``lam sum_j P_j^T D b_j`` (N, 3) from the residual.

        It is ``lam (count * n - sum_j P_j^T r_j)``.

        Parameters
        ----------
        n : array (N, 3)
            The normals.
        R : array (w, m)
            The residual.
        lam : float
            λ.
        """
        n = self._checked_normals(n)
        windows = self._as_windows(R, writes=False)
        height, width = self.mask.shape
        out = np.empty_like(n)
        lines = np.empty((height, 3, width), windows.dtype)
        pull_back(
            windows, self._window_index, self._pixel_index, self.count, n, float(lam), lines, out
        )
        return out

    # Index tables for the kernels, computed once per grid.

    @cached_property
    def _pixel_index(self) -> IntArray:
        """Index of each pixel of the picture among the mask pixels; -1 outside the mask."""
        index = np.full(self.mask.shape, -1, dtype=np.int32)
        index[self.mask] = np.arange(self.n_pixels, dtype=np.int32)
        return index

    @cached_property
    def _window_index(self) -> NDArray[np.int32]:
        """Index of the window, top row and left column for each row start and column start.

        The index is -1 if the window does not touch the mask.
        """
        table = np.full((self.row_starts.size, self.col_starts.size, 3), -1, dtype=np.int32)
        # Both lists are sorted, so the place of a window is found by bisection.
        at_row = np.searchsorted(self.row_starts, self.window_rows)
        at_col = np.searchsorted(self.col_starts, self.window_cols)
        table[at_row, at_col, 0] = np.arange(self.window_rows.size)
        table[..., 1] = self.row_starts[:, None]
        table[..., 2] = self.col_starts[None, :]
        return table

    @cached_property
    def _covering_lines(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Range [first, last) of the row starts that cover each row, and likewise for columns."""
        w_x, w_y, _ = self.size
        height, width = self.mask.shape

        def covering(starts: IntArray, length: int, width: int) -> tuple[IntArray, IntArray]:
            places = np.arange(length)
            first = np.searchsorted(starts, places - (width - 1))
            last = np.searchsorted(starts, places, side="right")
            return first.astype(np.int32), last.astype(np.int32)

        return *covering(self.row_starts, height, w_y), *covering(self.col_starts, width, w_x)

    def _checked_normals(self, n: FloatArray) -> FloatArray:
        if n.shape != (self.n_pixels, 3) or n.dtype not in (np.float32, np.float64):
            raise ValueError(f"The normals must be floats of shape ({self.n_pixels}, 3).")
        return np.ascontiguousarray(n)

    def _as_windows(self, P: FloatArray, *, writes: bool) -> NDArray[Any]:
        """View patches as (windows, 3, w_y, w_x).

        For ``w_z = 1``, three consecutive rows form one window.
        """
        shape = (self.n_patches, self.patch_length)
        in_place = P.flags.c_contiguous or not writes
        if P.shape != shape or not in_place or P.dtype not in (np.float32, np.float64):
            raise ValueError(f"The patches must be contiguous floats of shape {shape}.")
        return np.ascontiguousarray(P).reshape(-1, 3, self.size[1], self.size[0])


def _check(shape: tuple[int, ...], size: tuple[int, int, int], stride: int) -> None:
    if np.shape(size) != (3,) or any(int(side) != side or side < 1 for side in size):
        raise ParameterError(
            f"A patch size must be three positive whole numbers (w_x, w_y, w_z); got {size}.",
            code="bad-patch-size",
            size=size,
        )
    if size[2] not in (1, 3):
        raise ParameterError(
            "A patch must span w_z = 3 components of the normals, or w_z = 1 to treat them "
            f"separately; got w_z = {size[2]}.",
            code="bad-patch-depth",
            depth=size[2],
        )
    if np.shape(stride) != () or int(stride) != stride or stride < 1:
        raise ParameterError(
            f"The patch stride must be a positive whole number; got {stride}.",
            code="bad-stride",
            stride=stride,
        )
    for axis, length, width in zip("xy", shape[::-1], size[:2], strict=True):
        if width > length:
            raise ParameterError(
                f"The patch is larger than the picture: w_{axis} = {width} pixels, but the "
                f"picture has {length} along {axis}. Choose a smaller patch size.",
                code="patch-larger-than-picture",
                axis=axis,
                width=width,
                length=length,
            )
        if stride > width:
            raise ParameterError(
                f"The stride is larger than the patch: {stride} against w_{axis} = {width}, which "
                "would leave pixels between the patches uncovered. Choose a stride of at most "
                f"{width}.",
                code="stride-larger-than-patch",
                step=stride,
                axis=axis,
                width=width,
            )


# The loops. The normals are copied to a picture of three planes (3, H, W), in which a row of a
# patch is contiguous. Every output is written by one thread, in a fixed order, so the results do
# not depend on the number of threads.


@shared(of="pixel_index")
def paste(first, last, n, pixel_index, picture):  # type: ignore[no-untyped-def]
    """Copy the normals of the mask pixels to a picture (3, H, W), zero outside the mask."""
    for row in range(first, last):
        for col in range(picture.shape[2]):
            pixel = pixel_index[row, col]
            if pixel >= 0:
                for c in range(3):
                    picture[c, row, col] = n[pixel, c]
            else:
                for c in range(3):
                    picture[c, row, col] = 0


@shared(of="window_rows")
def cut(first, last, picture, window_rows, window_cols, windows):  # type: ignore[no-untyped-def]
    """Add ``picture[c, row_j + y, col_j + x]`` to ``windows[j, c, y, x]``."""
    w_y = windows.shape[2]
    w_x = windows.shape[3]
    for j in range(first, last):
        for c in range(3):
            for y in range(w_y):
                source = picture[c, window_rows[j] + y, window_cols[j] : window_cols[j] + w_x]
                target = windows[j, c, y]
                for x in range(w_x):
                    target[x] += source[x]


@njit(cache=True)
def _sum_row(windows, window_index, row, line):  # type: ignore[no-untyped-def]
    """Sum the values of all windows across this row of the picture into ``line[c, col]``."""
    w_y = windows.shape[2]
    w_x = windows.shape[3]
    for c in range(3):
        for col in range(line.shape[1]):
            line[c, col] = 0
    for a in range(window_index.shape[0]):
        y = row - window_index[a, 0, 1]
        if 0 <= y < w_y:
            for b in range(window_index.shape[1]):
                j = window_index[a, b, 0]
                left = window_index[a, b, 2]
                if j >= 0:
                    for c in range(3):
                        target = line[c, left : left + w_x]
                        source = windows[j, c, y]
                        for x in range(w_x):
                            target[x] += source[x]


@shared(of="pixel_index")
def pull_back(first, last, windows, window_index, pixel_index, count, n, lam, lines, out):  # type: ignore[no-untyped-def]
    """Compute λ (``count n`` − the sum over the windows that cover it) for every mask pixel.

    ``lines`` (H, 3, W) is scratch.
    """
    for row in range(first, last):
        line = lines[row]
        _sum_row(windows, window_index, row, line)
        for col in range(pixel_index.shape[1]):
            pixel = pixel_index[row, col]
            if pixel >= 0:
                for c in range(3):
                    out[pixel, c] = lam * (count[pixel] * n[pixel, c] - line[c, col])
