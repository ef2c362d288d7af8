"""The rectangle solver of Simchony, Chellappa and Shao.

    minimize_z   Σ_links  (z_b − z_a − ½(p_a + p_b))²

over all links of a rectangle with natural boundaries, where ``p`` is the slope along the axis. The normal equations are a
Poisson problem with constant coefficients, which the discrete cosine transform (DCT-II) diagonalizes with the
eigenvalues ``2 cos(πk/H) − 2 + 2 cos(πl/W) − 2``: two transforms, no iteration.

References
----------
T. Simchony, R. Chellappa, M. Shao, "Direct Analytical Methods for Solving Poisson Equations in Computer
Vision Problems", IEEE TPAMI 12(5), 1990, doi:10.1109/34.55103.
"""

from __future__ import annotations

import numpy as np

from photostereo.surface.arrays import Float64


def solve_rectangle(slope_col: Float64, slope_row: Float64, *, screen: float = 0.0) -> Float64:
    """Return the height with mean zero whose differences are closest to the slopes on a rectangle. ``screen · Σ z²`` in
    the cost is a high pass.

    >>> z = solve_rectangle(np.full((3, 4), 2.0), np.zeros((3, 4)))
    >>> np.round(z[0], 12).tolist()
    [-3.0, -1.0, 1.0, 3.0]
    """
    from scipy.fft import dctn, idctn

    height, width = slope_col.shape
    divergence = np.zeros((height, width))
    half = 0.5 * (slope_col[:, :-1] + slope_col[:, 1:])
    divergence[:, :-1] += half
    divergence[:, 1:] -= half
    half = 0.5 * (slope_row[:-1] + slope_row[1:])
    divergence[:-1] += half
    divergence[1:] -= half

    spectrum = dctn(divergence, type=2, norm="ortho", overwrite_x=True, workers=-1)
    along_rows = 2.0 * np.cos(np.pi * np.arange(height) / height) - 2.0
    along_cols = 2.0 * np.cos(np.pi * np.arange(width) / width) - 2.0
    eigenvalues = (along_rows - screen)[:, None] + along_cols[None, :]
    eigenvalues[0, 0] = 1.0
    spectrum /= eigenvalues
    spectrum[0, 0] = 0.0
    return np.asarray(idctn(spectrum, type=2, norm="ortho", overwrite_x=True, workers=-1))
