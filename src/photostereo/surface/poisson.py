"""Least squares inside a mask, each slope equation weighted by n_z.

    minimize_z   Σ_links  c̄ ( n̄_z (z_b − z_a) − t̄ )² ,        t̄ = −n̄_x along columns, +n̄_y along rows

over the links between neighbors inside the mask, with n̄ the mean normal and c̄ the mean confidence of the two
ends. Divided by n̄_z this is the least squares over half-point slopes of Simchony et al. (1990), weighted
by n̄_z²: grazing normals, whose slopes explode, do not dominate the rest. On a ball it is exact for any pixel size,
because the sum of the normals at both ends of a chord is orthogonal to the chord.
"""

from __future__ import annotations

import numpy as np

from photostereo.core.control import SILENT, Control
from photostereo.surface.arrays import Bool, Float32, Float64
from photostereo.surface.lattice import Ends, Lattice, strips
from photostereo.surface.multigrid import Heights, conjugate_gradients
from photostereo.surface.slopes import SlopeField, SlopeSource

#: Ten usually suffice.
MOST_ITERATIONS = 200


def mean_equations(field: SlopeField, axis: int, ends: Ends) -> tuple[Float32, Float64]:
    """Return the weights of the links along an axis (0: columns, 1: rows), and weight times target.

    They are computed from the mean normal of the two ends, weighted by their confidence.
    """
    tilt = (field.tilt_col, field.tilt_row)[axis]
    near, far = ends
    a, b = field.confidence[near].astype(np.float64), field.confidence[far].astype(np.float64)
    linked = (a > 0) & (b > 0)
    total = np.where(linked, a + b, 1.0)
    facing = np.where(linked, a * field.facing[near] + b * field.facing[far], 1.0)
    goal = (a * tilt[near] + b * tilt[far]) / facing
    weight = np.where(linked, 0.5 * facing**2 / total, 0.0).astype(np.float32)
    return weight, weight * goal


def assemble(
    source: SlopeSource,
    inside: Bool,
    pull: Float64 | None = None,
    target: Float64 | None = None,
    control: Control = SILENT,
) -> tuple[Lattice, Float64, Float64]:
    """Assemble the lattice of the pixels of ``inside``, its right-hand side, and a start: the plane of the mean slopes.

    Works strip by strip, so that temporaries take little memory.
    """
    control.check()
    height, width = inside.shape
    lattice = Lattice.empty(inside.shape, pull)
    side = np.zeros(inside.shape) if lattice.pull is None or target is None else lattice.pull * target
    total, flow = np.zeros(2), np.zeros(2)
    for rows, both in strips(height):
        control.check()
        field = source.equations(rows, inside[rows])
        for axis, (near, far) in enumerate(both):
            weight, push = mean_equations(field, axis, (near, far))
            lattice.links(axis)[rows][near] = weight
            side[rows][far] += push
            side[rows][near] -= push
            total[axis] += weight.sum(dtype=np.float64)
            flow[axis] += push.sum()
    control.check()
    slope = np.divide(flow, total, out=np.zeros(2), where=total > 0)
    start = slope[0] * np.arange(width) + slope[1] * np.arange(height)[:, None]
    start[~inside] = 0.0
    return lattice, side, start


def solve_poisson(
    source: SlopeSource,
    inside: Bool,
    pull: Float64 | None = None,
    target: Float64 | None = None,
    *,
    rtol: float = 1e-10,
    max_iter: int | None = None,
    control: Control = SILENT,
) -> Heights:
    """Return the heights of the pixels of ``inside``, zero elsewhere."""
    lattice, side, start = assemble(source, inside, pull, target, control)
    most = MOST_ITERATIONS if max_iter is None else max_iter
    return conjugate_gradients(lattice, side, start, rtol=rtol, max_iter=most, control=control)
