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
        u = _descend(u, level_cost, level_length, iterations)
    return np.asarray(u > 0.5)


def _descend(u: Float32, cost: Float32, length: Float32, iterations: int) -> Float32:
    """Steps of the primal–dual descent from u (0 to 1), with the dual variables at zero."""
    # Compiled, it would take four fifths of the time.
    step, ahead = np.float32(STEP), u
    right, down = np.zeros_like(u), np.zeros_like(u)
    for _ in range(iterations):
        right[:, :-1] += step * np.diff(ahead, axis=1)
        down[:-1] += step * np.diff(ahead, axis=0)
        norm = np.sqrt(right * right + down * down)
        shrink = np.divide(length, norm, out=np.ones_like(u), where=norm > length)
        right *= shrink
        down *= shrink
        divergence = right + down
        divergence[:, 1:] -= right[:, :-1]
        divergence[1:] -= down[:-1]
        new = np.clip(u + step * (divergence - cost), np.float32(0), np.float32(1))
        ahead, u = 2 * new - u, new
    return u
