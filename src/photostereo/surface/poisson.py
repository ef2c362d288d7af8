"""Least squares inside a mask, each slope equation weighted by n_z.

    minimize_z   Σ_links  c̄ ( n̄_z (z_b − z_a) − t̄ )² ,        t̄ = −n̄_x along columns, +n̄_y
    along rows

over the links between neighbors inside the mask, with n̄ the mean normal and c̄ the mean confidence
of the two ends. Divided by n̄_z this is the least squares over half-point slopes of Simchony et al.
(1990), weighted by n̄_z²: grazing normals, whose slopes explode, do not dominate the rest. On a
ball it is exact for any pixel size, because the sum of the normals at both ends of a chord is
orthogonal to the chord.

References
----------
T. Simchony, R. Chellappa, M. Shao, "Direct Analytical Methods for Solving Poisson Equations in
Computer Vision Problems", IEEE TPAMI 12(5), 1990, doi:10.1109/34.55103.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray, Float64
from photostereo.surface.integrated import Pulls
from photostereo.surface.lattice import Lattice, strips
from photostereo.surface.slopes import SlopeSource


def assemble(
    source: SlopeSource, inside: BoolArray, pulls: Pulls | None = None, control: Control = SILENT
) -> tuple[Lattice, Float64, Float64]:
    """Assemble the least-squares problem of some pixels.

    A link has the mean normal of its two ends, weighted by their confidence.

    Parameters
    ----------
    source : SlopeSource
        The slope equations.
    inside : (H, W) array
        The pixels.
    pulls : pair of (H, W) arrays, optional
        Strengths and target heights.
    control : Control
        Can cancel the work.

    Returns
    -------
    lattice : Lattice
        The matrix.
    side : (H, W) array
        The right-hand side.
    start : (H, W) array
        A first solution: the plane of the mean slopes.
    """
    control.check()
    height, width = inside.shape
    lattice = Lattice.empty(inside.shape)
    side = np.zeros(inside.shape)
    if pulls is not None:
        pull = pulls[0].astype(np.float32)
        lattice = replace(lattice, pull=pull)
        side += pull * pulls[1]
    links = (lattice.right, lattice.down)
    # Sums of weights, and of weighted slopes, along columns and rows: their ratio is the mean
    # slope.
    total = np.zeros(2)
    flow = np.zeros(2)
    for rows, both in strips(height):
        control.check()
        field = source.equations(rows, inside[rows])
        tilts = (field.tilt_col, field.tilt_row)
        trust = field.confidence.astype(np.float64)
        for axis, (near, far) in enumerate(both):
            tilt = tilts[axis]
            a = trust[near]
            b = trust[far]
            linked = (a > 0) & (b > 0)
            facing = np.where(linked, a * field.facing[near] + b * field.facing[far], 1.0)
            weight = np.where(linked, 0.5 * facing**2 / np.where(linked, a + b, 1.0), 0.0)
            weight = weight.astype(np.float32)
            push = weight * ((a * tilt[near] + b * tilt[far]) / facing)
            links[axis][rows][near] = weight
            side[rows][far] += push
            side[rows][near] -= push
            total[axis] += weight.sum(dtype=np.float64)
            flow[axis] += push.sum()
    control.check()
    slope = np.divide(flow, total, out=np.zeros(2), where=total > 0)
    start = slope[0] * np.arange(width) + slope[1] * np.arange(height)[:, None]
    start[~inside] = 0.0
    return lattice, side, start


def solve_rectangle(slope_col: Float64, slope_row: Float64, *, screen: float = 0.0) -> Float64:
    """Integrate slopes over a whole rectangle.

    The differences of the height are closest to the half-point slopes. The normal equations are a
    Poisson problem with constant coefficients, which the discrete cosine transform (DCT-II)
    diagonalizes: two transforms, no iteration (Simchony et al. 1990).

    Parameters
    ----------
    slope_col, slope_row : (H, W) arrays
        ∂z/∂col and ∂z/∂row.
    screen : float
        A high pass: ``screen · Σ z²`` is added to the cost.

    Returns
    -------
    (H, W) array
        Heights with mean zero.
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
