"""Integrates a normal map into heights: three methods, with parts, cameras, anchors and flattening."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.errors import ConvergenceWarning, ParameterError, require_known
from photostereo.runtime.threads import shorten_spinning
from photostereo.surface.camera import Camera
from photostereo.surface.integrated import Surface
from photostereo.surface.multigrid import center_parts
from photostereo.surface.progress import Progress
from photostereo.surface.slopes import SlopeSource, prepare_mask

Float64 = NDArray[np.float64]
Bool = NDArray[np.bool_]

METHODS = ("poisson", "simchony", "robust")
#: Parts up to this many pixels are solved together: separate solves would cost more.
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
        x right, y up, z towards the camera (see :mod:`photostereo.core.conventions`); need not be unit. Zero and
        NaN inside the mask mean "unknown" and are filled from their neighbors.
    mask : (H, W) array, optional
        Where to integrate; without one, wherever there is a normal.
    method : {"poisson", "simchony", "robust"}
        ``simchony`` sets the slopes outside the mask to zero: use it for a full rectangle.
    weights : (H, W) array, optional
        Confidence of each normal, not negative; not for ``simchony``.
    camera : 3 × 3 matrix or Camera, optional
        Pinhole camera in pixels (columns, rows from the top left pixel center); orthographic without.
    anchors : (H, W) array, optional
        Known heights, NaN where unknown, in the units of the result; not for ``simchony``.
    anchor_weight : float
        How much more a known height counts than a slope. The default makes them nearly exact; lower it for noisy ones.
    highpass : float, optional
        Flatten forms longer than about this many pixels, which accumulate the errors of all normals. A wave
        of this length is halved, shorter ones stay: ``Σ w (2π/highpass)² z²`` is added to the cost.
    rtol : float
        Relative residual of the linear solve (``poisson``).
    max_iter : int, optional
        For ``robust``: the maximum number of reweightings (150).
    tol : float, optional
        For ``robust``: it stops when the energy falls by less than this fraction.
    sharpness : float, optional
        For ``robust``: how sharply (k) it chooses between the two sides, in 1/pixel².
    control : Control
        Receives progress (iterations of ``robust``, percent of ``poisson``) and can cancel the work.

    Returns
    -------
    Surface

    Raises
    ------
    ParameterError
        If the mask is empty, no normal is usable, most face away, or an option does not fit the method.

    Notes
    -----
    Time and memory are linear in pixels: see ``benchmarks/README.md``. ``poisson`` fails, as all least squares do, by
    smearing depth discontinuities; ``robust`` keeps those that end somewhere inside the mask. No integrator can know
    the height of a step that separates two regions completely.

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
    from scipy.ndimage import label

    shorten_spinning()  # before the compiled kernels bring OpenMP
    check_method(method)
    normals = np.asarray(normals)
    inside = prepare_mask(normals, mask)
    pinhole = camera if camera is None or isinstance(camera, Camera) else Camera.from_matrix(camera)
    if highpass is not None and not highpass >= 1:
        raise ParameterError(
            f"The high-pass length must be at least one pixel; it is {highpass}.",
            code="bad-highpass",
            highpass=highpass,
        )
    if not (0 < tol < 1 and sharpness > 0 and 0 < rtol < 1 and anchor_weight > 0):
        raise ParameterError(
            "tol and rtol must lie between 0 and 1; sharpness and anchor_weight must be positive.",
            code="bad-integration-option",
        )
    control.check()
    source = SlopeSource(normals, inside, weights=weights, camera=pinhole)
    control.check()
    labels = np.asarray(label(inside)[0], dtype=np.int32)
    stage = "integrate (robust)" if method == "robust" else "integrate"
    options = _Options(method, rtol, max_iter, tol, sharpness, Progress(stage, control))

    if method == "simchony":
        if weights is not None or anchors is not None:
            raise ParameterError(
                "simchony solves an unweighted rectangle and takes neither weights nor anchors; use poisson.",
                code="simchony-is-unweighted",
            )
        options.progress.report(0, 100)
        outcome = _integrate_rectangle(source, highpass)
        options.progress.report(100, 100)
    else:
        pull, target = _pulls(source, anchors, anchor_weight, highpass)
        outcome = _integrate_parts(source, labels, pull, target, options)

    depth = outcome.values
    if pinhole is not None:
        depth = pinhole.depth_from_log(depth)
    depth[~inside] = np.nan
    if outcome.status == "max_iter":
        warnings.warn(
            f"{method} stopped after {outcome.iterations} iterations before it met its tolerance. The surface is "
            "usable; raise max_iter for the last digits.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return Surface(
        depth,
        inside,
        labels,
        outcome.torn_right,
        outcome.torn_down,
        method,
        outcome.status,
        outcome.iterations,
        outcome.residual,
        outcome.energy,
        pinhole,
        source.unknown,
        source.away,
    )


@dataclass(frozen=True)
class _Options:
    method: str
    rtol: float
    max_iter: int | None
    tol: float
    sharpness: float
    progress: Progress


@dataclass(frozen=True)
class _Outcome:
    """Heights and torn links of all parts together, as pictures."""

    values: Float64
    torn_right: Bool
    torn_down: Bool
    status: str
    iterations: int
    residual: float
    energy: tuple[float, ...] = ()


def _integrate_rectangle(source: SlopeSource, highpass: float | None) -> _Outcome:
    from photostereo.surface.rectangle import solve_rectangle

    mask = source.mask
    field = source.field(mask)
    facing = np.where(mask, field.facing, 1.0)
    slope_col, slope_row = field.tilt_col / facing, field.tilt_row / facing
    del field, facing
    screen = 0.0 if highpass is None else (2.0 * np.pi / highpass) ** 2
    values = solve_rectangle(slope_col, slope_row, screen=screen)
    # Only the mean over the mask is meaningful; a high pass has its own zero.
    if highpass is None:
        values -= values[mask].mean()
    whole = np.zeros_like(mask)
    return _Outcome(values, whole, whole.copy(), "direct", 0, 0.0)


def _pulls(
    source: SlopeSource, anchors: ArrayLike | None, anchor_weight: float, highpass: float | None
) -> tuple[Float64 | None, Float64 | None]:
    """Pulls towards heights, and those heights: anchors, and the flat zero of a high pass; pictures."""
    if anchors is None and highpass is None:
        return None, None
    mask, camera = source.mask, source.camera
    pull, target = np.zeros(mask.shape), np.zeros(mask.shape)
    if highpass is not None:
        pull += (2.0 * np.pi / highpass) ** 2 * source.field(mask).weight
    if anchors is not None:
        known = np.asarray(anchors, dtype=np.float64)
        if known.shape != mask.shape:
            raise ParameterError(
                f"The anchors have {known.shape} pixels, but the mask has {mask.shape}.",
                code="anchors-shape",
                anchors=known.shape,
                mask=mask.shape,
            )
        if camera is not None:
            if (known[mask & np.isfinite(known)] >= 0).any():
                raise ParameterError(
                    "With a camera, heights are −Z, the negative distance along the optical axis: anchors "
                    "must be negative.",
                    code="anchors-not-negative",
                )
            known = camera.log_from_depth(known)
        found = mask & np.isfinite(known)
        if not found.any():
            raise ParameterError("No anchor lies inside the mask: all are NaN there.", code="no-anchors")
        pull[found] += anchor_weight
        target[found] = anchor_weight * known[found] / pull[found]
    return pull, target


def _groups(labels: NDArray[np.int32]) -> Iterator[tuple[tuple[slice, slice], Bool]]:
    """Boxes and masks that are solved separately: every large part, and all small ones together; largest first."""
    from scipy.ndimage import find_objects

    sizes = np.bincount(labels.ravel())
    sizes[0] = 0
    boxes = find_objects(labels)
    large = [int(part) for part in np.argsort(-sizes) if sizes[part] > SMALL_PART]
    for part in large:
        box = boxes[part - 1]
        yield box, labels[box] == part
    small = (sizes <= SMALL_PART)[labels] & (labels > 0)
    if small.any():
        box = find_objects(small.astype(np.int8))[0]
        yield box, small[box]


def _integrate_parts(
    source: SlopeSource,
    labels: NDArray[np.int32],
    pull: Float64 | None,
    target: Float64 | None,
    options: _Options,
) -> _Outcome:
    """Solve every group of parts and combine the results."""
    shape = source.mask.shape
    values = np.zeros(shape)
    torn_right, torn_down = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    statuses, iterations, residual = [], 0, 0.0
    energy: tuple[float, ...] = ()
    for box, group in _groups(labels):
        result = _solve_group(
            source.crop(box),
            group,
            None if pull is None else np.where(group, pull[box], 0.0),
            None if target is None else target[box],
            options,
        )
        found = np.where(group, result.values, 0.0)
        center_parts(found, np.where(group, labels[box], 0), None if pull is None else pull[box])
        values[box] += found
        torn_right[box] |= result.torn_right
        torn_down[box] |= result.torn_down
        statuses.append(result.status)
        iterations = max(iterations, result.iterations)
        residual = max(residual, result.residual)
        energy = energy or result.energy
    status = "max_iter" if "max_iter" in statuses else "converged"
    return _Outcome(values, torn_right, torn_down, status, iterations, residual, energy)


def _solve_group(
    source: SlopeSource, group: Bool, pull: Float64 | None, target: Float64 | None, options: _Options
) -> _Outcome:
    """Heights of the pixels of ``group``, a mask of the source's picture."""
    if options.method == "poisson":
        from photostereo.surface.poisson import solve_poisson

        solution = solve_poisson(
            source,
            group,
            pull=pull,
            target=target,
            rtol=options.rtol,
            max_iter=200 if options.max_iter is None else options.max_iter,
            progress=options.progress,
        )
        whole = np.zeros_like(group)
        status = "converged" if solution.residual <= options.rtol else "max_iter"
        return _Outcome(solution.values, whole, whole, status, solution.iterations, solution.residual)
    from photostereo.surface.robust import Descent, RobustProblem, solve_robust

    robust = solve_robust(
        RobustProblem(source.field(group), pull, target, options.sharpness),
        Descent(150 if options.max_iter is None else options.max_iter, options.tol),
        options.progress,
    )
    return _Outcome(
        robust.values,
        *robust.torn,
        "converged" if robust.converged else "max_iter",
        robust.iterations,
        robust.residual,
        robust.energy,
    )
