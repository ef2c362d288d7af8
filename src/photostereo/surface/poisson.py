"""Least squares inside a mask, each slope equation weighted by n_z.

    minimise_z   Σ_pixels  c ½ Σ_± [ (n_z ∂z/∂col± + n_x)² + (n_z ∂z/∂row± − n_y)² ]

over the forward (+) and backward (−) differences that stay inside the mask, ``c`` the confidence of the
pixel. Without the weights n_z this is the least squares over half-point averaged slopes of Simchony et al.
(1990), restricted to the mask; with them grazing normals do not rule the rest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.surface.links import Laplacian, Links
from photostereo.surface.multigrid import (
    DIRECT_LIMIT,
    LinearSolution,
    build_preconditioner,
    centre_parts,
    conjugate_gradients,
    solve_direct,
)
from photostereo.surface.slopes import SlopeField

Float64 = NDArray[np.float64]


def link_equations(
    field: SlopeField, links: Links, forward: tuple[Float64, Float64]
) -> tuple[Float64, Float64]:
    """Weight and target of every link, when pixels give the share ``forward`` to their forward difference.

    A link carries the forward equation of its first pixel and the backward one of its second; the sum of two
    weighted squares of the same difference is one weighted square (and a constant).
    """
    weight = np.empty(links.first.size)
    goal = np.empty(links.first.size)
    for axis, tilt in enumerate((field.tilt_col, field.tilt_row)):
        part = links.axis(axis)
        a, b = links.first[part], links.second[part]
        slope = tilt / field.facing
        share_a = forward[axis][a] * field.weight[a]
        share_b = (1.0 - forward[axis][b]) * field.weight[b]
        weight[part] = share_a + share_b
        goal[part] = (share_a * slope[a] + share_b * slope[b]) / weight[part]
    return weight, goal


def start_plane(field: SlopeField, links: Links, weight: Float64, goal: Float64) -> Float64:
    """The plane of the mean slopes: exact if the surface is a plane, else a good start."""
    rows, cols = np.nonzero(field.mask)
    plane = np.zeros(links.size)
    for axis, position in enumerate((cols, rows)):
        part = links.axis(axis)
        total = float(weight[part].sum())
        if total > 0:
            plane += position * (float(weight[part] @ goal[part]) / total)
    return plane


def solve_poisson(
    field: SlopeField,
    links: Links,
    parts: NDArray[np.integer[Any]],
    *,
    pull: Float64 | None = None,
    target: Float64 | None = None,
    rtol: float = 1e-10,
    max_iter: int = 200,
) -> LinearSolution:
    """Heights of the packed mask pixels; see :func:`photostereo.surface.integrate`."""
    half = np.full(links.size, 0.5)
    weight, goal = link_equations(field, links, (half, half))
    laplacian = Laplacian(links)
    laplacian.set_weights(weight, pull)
    side = laplacian.right_hand_side(weight, goal, pull, target)
    if links.size <= DIRECT_LIMIT:
        solution = solve_direct(laplacian.matrix, side, parts, pull)
    else:
        solution = conjugate_gradients(
            laplacian.matrix,
            side,
            start_plane(field, links, weight, goal),
            build_preconditioner(laplacian.matrix),
            rtol=rtol,
            max_iter=max_iter,
            singular=pull is None,
        )
    return replace(solution, values=centre_parts(solution.values, parts, pull))
