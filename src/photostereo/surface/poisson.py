"""Least squares inside a mask, each slope equation weighted by n_z.

    minimize_z   Σ_links  c̄ ( n̄_z (z_b − z_a) − t̄ )² ,        t̄ = −n̄_x along columns, +n̄_y along rows

over the links between neighbors inside the mask, n̄ the mean normal and c̄ the mean confidence of the two
ends. Divided by n̄_z this is the least squares over half-point slopes of Simchony et al. (1990), weighted
by n̄_z²: grazing normals, whose slopes explode, do not rule the rest. On a ball it is exact, whatever the
size of a pixel, because the sum of the normals at both ends of a chord is orthogonal to the chord.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.surface.lattice import Lattice
from photostereo.surface.links import Laplacian, Links
from photostereo.surface.multigrid import (
    LinearSolution,
    center_parts,
    conjugate_gradients,
    solve_direct,
)
from photostereo.surface.reporting import Progress
from photostereo.surface.slopes import STRIP, SlopeField, SlopeSource

Float64 = NDArray[np.float64]
Bool = NDArray[np.bool_]
#: Confidence, facing and tilt of one end of a link.
End = tuple[Float64, Float64, Float64]


def mean_equation(a: End, b: End) -> tuple[Float64, Float64]:
    """Weight and target of links, from the mean normal of their two ends, weighted by their confidence."""
    total = a[0] + b[0]
    facing = (a[0] * a[1] + b[0] * b[1]) / total
    goal = (a[0] * a[2] + b[0] * b[2]) / (total * facing)
    return 0.5 * total * facing**2, goal


def mean_equations(field: SlopeField, links: Links) -> tuple[Float64, Float64]:
    """Weight and target of every link of a packed field."""
    weight, goal = np.empty(links.first.size), np.empty(links.first.size)
    for axis, tilt in enumerate((field.tilt_col, field.tilt_row)):
        part = links.axis(axis)
        a, b = (
            (field.confidence[end], field.facing[end], tilt[end])
            for end in (links.first[part], links.second[part])
        )
        weight[part], goal[part] = mean_equation(a, b)
    return weight, goal


def assemble(
    source: SlopeSource, inside: Bool, pull: Float64 | None, target: Float64 | None
) -> tuple[Lattice, Float64, Float64]:
    """The lattice of the pixels of ``inside``, its right-hand side, and a start: the plane of the mean slopes.

    Strip by strip, so that nothing but these pictures takes memory.
    """
    height, width = inside.shape
    right, down = np.zeros(inside.shape), np.zeros(inside.shape)
    side = np.zeros(inside.shape) if pull is None or target is None else pull * target
    total, flow = np.zeros(2), np.zeros(2)
    for first in range(0, height, STRIP):
        last = min(first + STRIP, height)
        rows = slice(first, min(last + 1, height))  # one more: the links downwards
        chosen = inside[rows]
        packed = source.packed_rows(rows, chosen)
        facing, tilt_col, tilt_row, trust = (np.zeros(chosen.shape) for _ in range(4))
        for picture, values in zip((facing, tilt_col, tilt_row, trust), packed, strict=True):
            picture[chosen] = values
        own = last - first
        for axis, (weights, tilt, near, far) in enumerate(
            (
                (right, tilt_col, np.s_[:own, :-1], np.s_[:own, 1:]),
                (down, tilt_row, np.s_[: len(chosen) - 1, :], np.s_[1:, :]),
            )
        ):
            ends = chosen[near] & chosen[far]
            a, b = ((trust[end][ends], facing[end][ends], tilt[end][ends]) for end in (near, far))
            weight, goal = mean_equation(a, b)
            weights[rows][near][ends] = weight
            push = weight * goal
            side[rows][far][ends] += push
            side[rows][near][ends] -= push
            total[axis] += weight.sum()
            flow[axis] += push.sum()
    slope = np.divide(flow, total, out=np.zeros(2), where=total > 0)
    start = slope[0] * np.arange(width) + slope[1] * np.arange(height)[:, None]
    start[~inside] = 0.0
    return Lattice(right, down, pull), side, start


def solve_poisson(
    field: SlopeField,
    links: Links,
    parts: NDArray[np.integer[Any]],
    *,
    pull: Float64 | None = None,
    target: Float64 | None = None,
) -> LinearSolution:
    """Heights of the packed pixels of a small mask, by a factorisation."""
    weight, goal = mean_equations(field, links)
    laplacian = Laplacian(links)
    laplacian.set_weights(weight, pull)
    side = laplacian.right_hand_side(weight, goal, pull, target)
    solution = solve_direct(laplacian.matrix, side, parts, pull)
    return replace(solution, values=center_parts(solution.values, parts, pull))


def solve_large_poisson(
    source: SlopeSource,
    inside: Bool,
    *,
    pull: Float64 | None = None,
    target: Float64 | None = None,
    rtol: float = 1e-10,
    max_iter: int = 200,
    progress: Progress | None = None,
) -> LinearSolution:
    """Heights of the pixels of ``inside``, a picture with zeros outside, without a matrix."""
    lattice, side, start = assemble(source, inside, pull, target)
    return conjugate_gradients(lattice, side, start, rtol=rtol, max_iter=max_iter, progress=progress)
