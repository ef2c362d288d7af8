"""The cheapest outline in a picture: a graph cut by its convex relaxation.

    minimize  Σ length · |∇u| + Σ cost · u    over  0 ≤ u ≤ 1

``cost`` is the cost of labeling a pixel as object (negative where it looks like one), ``length`` the cost of a unit of
outline there (small on an edge). Every level set of a minimizer is an optimal outline, so cutting u at one half solves the
combinatorial problem, without the corners of a pixel grid. Solved by primal–dual descent from coarse to fine.

References
----------
T. Chan, S. Esedoglu, M. Nikolova, "Algorithms for finding global minimizers of image segmentation and denoising
models", 2006. doi:10.1137/040615286
A. Chambolle, T. Pock, "A first-order primal-dual algorithm for convex problems", 2011. doi:10.1007/s10851-010-0251-1
"""

from __future__ import annotations

import cv2
import numpy as np

from photostereo.core.conventions import BoolArray, Float32
from photostereo.runtime.loops import njit

#: Step of the descent: its square times 8, the bound of the gradient's norm, is below 1.
STEP = 0.35
#: Frames are halved until their shorter side is below this.
COARSEST = 40
#: Iterations on coarse levels, where an outline may still move far, and on the finest, where it does not.
COARSE_ITERATIONS, FINE_ITERATIONS = 150, 60


def cheapest_outline(cost: Float32, length: Float32) -> BoolArray:
    """Region with the smallest sum of pixel costs and outline length, weighted by the cost of a unit there."""
    levels = [(np.asarray(cost, np.float32), np.asarray(length, np.float32))]
    while min(levels[-1][0].shape) > COARSEST:
        fine_cost, fine_length = levels[-1]
        size = (fine_cost.shape[1] // 2, fine_cost.shape[0] // 2)
        # A coarse pixel covers four, a piece of its outline two: the costs weigh twice as much.
        levels.append(
            (
                2 * cv2.resize(fine_cost, size, interpolation=cv2.INTER_AREA),
                cv2.resize(fine_length, size, interpolation=cv2.INTER_AREA),
            )
        )
    u = np.asarray(levels[-1][0] < 0, np.float32)
    for number, (level_cost, level_length) in reversed(list(enumerate(levels))):
        if u.shape != level_cost.shape:
            u = cv2.resize(u, level_cost.shape[::-1], interpolation=cv2.INTER_LINEAR)
        iterations = COARSE_ITERATIONS if number or len(levels) == 1 else FINE_ITERATIONS
        u = descend(u, level_cost, level_length, iterations)
    return np.asarray(u > 0.5)


@njit(cache=True)  # type: ignore[untyped-decorator]
def descend(u: Float32, cost: Float32, length: Float32, iterations: int) -> Float32:
    """``iterations`` steps of the primal–dual descent from u (0 to 1), with the dual variables at zero."""
    height, width = u.shape
    step = np.float32(STEP)
    u = u.copy()
    ahead = u.copy()
    right = np.zeros_like(u)
    down = np.zeros_like(u)
    for _ in range(iterations):
        for i in range(height):
            for j in range(width):
                x, y = right[i, j], down[i, j]
                if j + 1 < width:
                    x += step * (ahead[i, j + 1] - ahead[i, j])
                if i + 1 < height:
                    y += step * (ahead[i + 1, j] - ahead[i, j])
                norm = np.sqrt(x * x + y * y)
                if norm > length[i, j]:
                    x *= length[i, j] / norm
                    y *= length[i, j] / norm
                right[i, j], down[i, j] = x, y
        for i in range(height):
            for j in range(width):
                divergence = right[i, j] + down[i, j]
                if j > 0:
                    divergence -= right[i, j - 1]
                if i > 0:
                    divergence -= down[i - 1, j]
                new = u[i, j] + step * (divergence - cost[i, j])
                new = min(max(new, np.float32(0)), np.float32(1))
                ahead[i, j] = 2 * new - u[i, j]
                u[i, j] = new
    return u
