"""Integrate a normal map into heights: three methods, with parts, cameras, anchors and flattening."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray, Float64
from photostereo.core.errors import ConvergenceWarning, ParameterError, require_known
from photostereo.core.findings import Finding
from photostereo.runtime.threads import shorten_spinning
from photostereo.surface.integrated import Camera, Heights, Pulls, Surface
from photostereo.surface.slopes import SlopeSource, prepare_mask

Solver = Callable[[SlopeSource, BoolArray, Pulls | None], Heights]

METHODS = ("poisson", "simchony", "robust")
#: Parts of up to this many pixels are solved together: separate solves would cost more.
SMALL_PART = 4_000


def check_method(name: str) -> None:
    """Raise a :class:`ParameterError` if this is not an integration method."""
    require_known(name, METHODS, "integration method", "unknown-integration")


def integrate(
    normals: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    method: str = "poisson",
    weights: ArrayLike | None = None,
    camera: ArrayLike | Camera | None = None,
    anchors: ArrayLike | None = None,
    anchor_weight: float = 1e4,
    highpass: float | None = None,
    rtol: float = 1e-10,
    max_iter: int | None = None,
    tol: float = 1e-5,
    sharpness: float = 4.0,
    control: Control = SILENT,
) -> Surface:
    """Integrate a normal map into heights.

    Solves ``minimize_z Σ w (n_z ∂z/∂col + n_x)² + w (n_z ∂z/∂row − n_y)²`` in one of three versions: over a
    rectangle without weights (``simchony``: two cosine transforms), over the links inside a mask
    (``poisson``), or with a soft choice between the forward and the backward difference of each pixel, so
    that the surface may tear at occlusions (``robust``).

    Parameters
    ----------
    normals : (H, W, 3) array
        x right, y up, z toward the camera (see :mod:`photostereo.core.conventions`); need not be unit. Zero and
        NaN inside the mask mean "unknown" and are filled from their neighbors.
    mask : (H, W) array, optional
        Pixels to integrate; by default, all pixels with a normal.
    method : {"poisson", "simchony", "robust"}
        ``simchony`` sets the slopes outside the mask to zero: use it for a full rectangle.
    weights : (H, W) array, optional
        Non-negative confidence of each normal; not for ``simchony``.
    camera : 3 × 3 matrix or Camera, optional
        Pinhole camera in pixels (columns, rows from the top left pixel center); by default orthographic.
    anchors : (H, W) array, optional
        Known heights, NaN where unknown, in the units of the result; not for ``simchony``.
    anchor_weight : float
        Weight of a known height relative to a slope. The default fits them almost exactly; lower it for noisy ones.
    highpass : float, optional
        Flatten shapes wider than about this many pixels, over which errors of the normals accumulate. A wave
        of this length is halved, shorter ones are kept: ``Σ w (2π/highpass)² z²`` is added to the cost.
    rtol : float
        Relative residual of the linear solve (``poisson``).
    max_iter : int, optional
        For ``robust``: the maximum number of reweightings (150).
    tol : float, optional
        For ``robust``: stop when the energy falls by less than this fraction.
    sharpness : float, optional
        For ``robust``: how sharply (k) it chooses between the two sides, in 1/pixel².
    control : Control
        Receives progress (iterations of ``robust``, percent of ``poisson``) and can cancel the work.

    Raises
    ------
    ParameterError
        If the mask is empty, no normal is usable, most face away, or an option does not fit the method.

    Notes
    -----
    Time and memory are linear in pixels: see ``benchmarks/README.md``. Like all least squares, ``poisson`` smears depth
    discontinuities; ``robust`` keeps those that end somewhere inside the mask. No integrator can determine the height
    of a step that separates two regions completely.

    References
    ----------
    Simchony et al. 1990, doi:10.1109/34.55103; Cao et al. 2022, doi:10.1007/978-3-031-19769-7_32.

    Examples
    --------
    >>> import numpy as np
    >>> tilted = np.zeros((4, 5, 3)) + [-0.6, 0.0, 0.8]
    >>> surface = integrate(tilted)
    >>> np.round(np.diff(surface.depth[0]), 9).tolist()
    [0.75, 0.75, 0.75, 0.75]
    """
    shorten_spinning()  # before the compiled kernels load OpenMP
    check_method(method)
    normals = np.asarray(normals)
    inside = prepare_mask(normals, mask)
    pinhole = camera if camera is None or isinstance(camera, Camera) else Camera.from_matrix(camera)
    if highpass is not None and not highpass >= 1:
        raise ParameterError(code="bad-highpass", highpass=highpass)
    if not (0 < tol < 1 and sharpness > 0 and 0 < rtol < 1 and anchor_weight > 0):
        raise ParameterError(code="bad-integration-option")
    control.check()
    source = SlopeSource(normals, inside, weights=weights, camera=pinhole)
    control.check()
    labels, parts = cv2.connectedComponentsWithStats(inside.astype(np.uint8), connectivity=4)[1:3]
    control.check()
    if method == "simchony":
        if weights is not None or anchors is not None:
            raise ParameterError(code="simchony-is-unweighted")
        control.stage("integrate", 1)
        found = Heights(_integrate_rectangle(source, highpass), 0, 0.0, converged=True)
        control.advance()
    else:
        from photostereo.surface.multigrid import conjugate_gradients
        from photostereo.surface.poisson import assemble
        from photostereo.surface.robust import RobustProblem, solve_robust

        limit = {} if max_iter is None else {"max_iter": max_iter}

        def solve(part: SlopeSource, group: BoolArray, pulls: Pulls | None) -> Heights:
            if method == "poisson":
                lattice, side, start = assemble(part, group, pulls, control)
                return conjugate_gradients(
                    lattice, side, start, rtol=rtol, control=control, **limit
                )
            problem = RobustProblem(part.field(group), pulls, sharpness, tol=tol, **limit)
            return solve_robust(problem, control)

        pulls = _pulls(source, anchors, anchor_weight, highpass)
        found = _integrate_parts(source, labels, parts, pulls, solve, control)

    depth = found.values
    if pinhole is not None:
        depth = pinhole.depth_from_log(depth)
    depth[~inside] = np.nan
    if not found.converged:
        warnings.warn(
            ConvergenceWarning(
                Finding("surface-not-converged", method=method, iterations=found.iterations)
            ),
            stacklevel=2,
        )
    return Surface(
        depth,
        inside,
        labels,
        *(found.torn or (np.zeros_like(inside), np.zeros_like(inside))),
        method,
        "direct" if method == "simchony" else "converged" if found.converged else "max_iter",
        found.iterations,
        found.residual,
        found.energy,
        pinhole,
        source.unknown,
        source.away,
    )


def _integrate_rectangle(source: SlopeSource, highpass: float | None) -> Float64:
    from photostereo.surface.poisson import solve_rectangle

    mask = source.mask
    field = source.field(mask)
    facing = np.where(mask, field.facing, 1.0)
    slope_col, slope_row = field.tilt_col / facing, field.tilt_row / facing
    del field, facing
    screen = 0.0 if highpass is None else (2.0 * np.pi / highpass) ** 2
    values = solve_rectangle(slope_col, slope_row, screen=screen)
    # Center on the mask, the only region that matters; a high pass defines its own zero.
    if highpass is None:
        values -= values[mask].mean()
    return values


def _pulls(
    source: SlopeSource, anchors: ArrayLike | None, anchor_weight: float, highpass: float | None
) -> Pulls | None:
    """Return the pulls of anchors and of a high pass, if there are any."""
    if anchors is None and highpass is None:
        return None
    mask, camera = source.mask, source.camera
    pull, target = np.zeros(mask.shape), np.zeros(mask.shape)
    if highpass is not None:
        field = source.field(mask)
        pull += (2.0 * np.pi / highpass) ** 2 * (field.confidence * field.facing**2)
    if anchors is not None:
        known = np.asarray(anchors, dtype=np.float64)
        if known.shape != mask.shape:
            raise ParameterError(code="anchors-shape", anchors=known.shape, mask=mask.shape)
        if camera is not None:
            if (known[mask & np.isfinite(known)] >= 0).any():
                raise ParameterError(code="anchors-not-negative")
            known = camera.log_from_depth(known)
        found = mask & np.isfinite(known)
        if not found.any():
            raise ParameterError(
                "No anchor lies inside the mask: all are NaN there.", code="no-anchors"
            )
        pull[found] += anchor_weight
        target[found] = anchor_weight * known[found] / pull[found]
    return pull, target


def _groups(
    labels: NDArray[np.int32], parts: NDArray[np.int32]
) -> Iterator[tuple[tuple[slice, slice], BoolArray]]:
    """Yield boxes and masks to solve separately: every large part, and all small ones together; largest first."""
    sizes = parts[:, cv2.CC_STAT_AREA]
    sizes[0] = 0
    large = [int(part) for part in np.argsort(-sizes) if sizes[part] > SMALL_PART]
    for part in large:
        box = _box(*parts[part, :4].tolist())
        yield box, labels[box] == part
    small = (sizes <= SMALL_PART)[labels] & (labels > 0)
    if small.any():
        box = _box(*cv2.boundingRect(small.astype(np.uint8)))
        yield box, small[box]


def _box(left: int, top: int, width: int, height: int) -> tuple[slice, slice]:
    return slice(top, top + height), slice(left, left + width)


def _integrate_parts(
    source: SlopeSource,
    labels: NDArray[np.int32],
    parts: NDArray[np.int32],
    pulls: Pulls | None,
    solve: Solver,
    control: Control,
) -> Heights:
    """Solve every group of parts and combine the results; ``parts`` has their boxes and sizes, as OpenCV counts them."""
    shape = source.mask.shape
    values, torn = np.zeros(shape), (np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool))
    results = []
    for box, group in _groups(labels, parts):
        control.check()
        own = None if pulls is None else (np.where(group, pulls[0][box], 0.0), pulls[1][box])
        result = solve(source.crop(box), group, own)
        found = np.where(group, result.values, 0.0)
        center_parts(
            found, np.where(group, labels[box], 0), None if pulls is None else pulls[0][box]
        )
        values[box] += found
        for whole, part in zip(torn, result.torn or (), strict=False):
            whole[box] |= part
        results.append((result.iterations, result.residual, result.converged, result.energy))
    iterations, residuals, converged, energies = zip(*results, strict=True)
    return Heights(values, max(iterations), max(residuals), all(converged), torn, energies[0])


def center_parts(values: Float64, labels: NDArray[np.int32], pull: Float64 | None) -> None:
    """Shift every connected part without a pull to mean zero, in place."""
    flat = labels.ravel()
    count = int(flat.max()) + 1
    mean = np.bincount(flat, values.ravel(), count) / np.maximum(
        np.bincount(flat, minlength=count), 1
    )
    mean[0] = 0.0
    if pull is not None:
        mean[np.bincount(flat, pull.ravel(), count) > 0] = 0.0
    values -= mean[labels]
