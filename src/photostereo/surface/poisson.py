"""Least squares inside a mask, each slope equation weighted by n_z.

    minimise_z   Σ_links  c̄ ( n̄_z (z_b − z_a) − t̄ )² ,        t̄ = −n̄_x along columns, +n̄_y along rows

over the links between neighbours inside the mask, n̄ the mean normal and c̄ the mean confidence of the two
ends. Divided by n̄_z this is the least squares over half-point slopes of Simchony et al. (1990), weighted
by n̄_z²: grazing normals, whose slopes explode, do not rule the rest. On a ball it is exact, whatever the
size of a pixel, because the sum of the normals at both ends of a chord is orthogonal to the chord.
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


def mean_equations(field: SlopeField, links: Links) -> tuple[Float64, Float64]:
    """Weight and target of every link, from the mean normal of its two ends, weighted by their confidence."""
    a, b = links.first, links.second
    trust_a, trust_b = field.confidence[a], field.confidence[b]
    total = trust_a + trust_b
    facing = (trust_a * field.facing[a] + trust_b * field.facing[b]) / total
    goal = np.empty(a.size)
    for axis, tilt in enumerate((field.tilt_col, field.tilt_row)):
        part = links.axis(axis)
        mean = trust_a[part] * tilt[a[part]] + trust_b[part] * tilt[b[part]]
        goal[part] = mean / (total[part] * facing[part])
    return 0.5 * total * facing**2, goal


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
    """Heights of the packed mask pixels; see :func:`photostereo.surface.integration`."""
    weight, goal = mean_equations(field, links)
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
