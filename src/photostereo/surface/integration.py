"""From a normal map to heights: three methods, parts, cameras, anchors and flattening behind one function."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.errors import ConvergenceWarning, ParameterError, did_you_mean
from photostereo.runtime.threads import shorten_spinning
from photostereo.surface.integrated import Surface
from photostereo.surface.lattice import place_pixels
from photostereo.surface.links import find_links
from photostereo.surface.reporting import Progress, reporter
from photostereo.surface.slopes import Camera, SlopeSource, prepare_mask

Float64 = NDArray[np.float64]
Bool = NDArray[np.bool_]

METHODS = ("poisson", "simchony", "robust")
#: Parts up to this many pixels are solved together: a separate solve costs more than it is worth.
SMALL_PART = 4_000


def check_method(name: str) -> None:
    """Raise a :class:`ParameterError` for a name that is no integration method."""
    if name not in METHODS:
        raise ParameterError(
            f'Unknown integration method "{name}"; known: {", ".join(METHODS)}.' + did_you_mean(name, METHODS)
        )


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

    Solves ``minimize_z Σ w (n_z ∂z/∂col + n_x)² + w (n_z ∂z/∂row − n_y)²`` in one of three readings: over a
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
        Known heights, NaN where unknown, in the units of the result; not for ``simchony``. They count
        ``anchor_weight`` times as much as a slope, which makes them nearly exact; lower it for noisy ones.
    highpass : float, optional
        Flatten forms longer than about this many pixels, which accumulate the errors of all normals. A wave
        of this length is halved, shorter ones stay: ``Σ w (2π/highpass)² z²`` is added to the cost.
    rtol : float
        Relative residual of the linear solve (``poisson``).
    max_iter : int, optional
        Of ``robust``: the maximum number of reweightings (150).
    tol : float, optional
        Of ``robust``: it stops when the energy falls by less than this fraction.
    sharpness : float, optional
        Of ``robust``: how sharply (k) it chooses between the two sides, in 1/pixel².
    control : Control
        Receives progress: the iterations of ``robust``, percents of the digits that ``poisson`` has to win.

    Returns
    -------
    Surface

    Raises
    ------
    ParameterError
        If the mask is empty, no normal is usable, most face away, or an option does not fit the method.

    Notes
    -----
    Time and memory are linear in pixels: ``poisson`` takes 0.75 processor seconds and 95 MB a megapixel, from
    1 to 24 of them, the normals included; ``robust`` takes 2 seconds a megapixel on a smooth surface, 10 on one
    that tears, and 100 to 115 MB.
    It fails, as all least squares do, by smearing depth discontinuities; ``robust`` keeps those that end
    somewhere inside the mask. No integrator can know the height of a step that separates two regions
    completely.

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
        raise ParameterError(f"highpass is a length of at least one pixel; it is {highpass}.")
    if not (0 < tol < 1 and sharpness > 0 and 0 < rtol < 1 and anchor_weight > 0):
        raise ParameterError(
            "tol and rtol must lie between 0 and 1; sharpness and anchor_weight must be positive."
        )
    source = SlopeSource(normals, inside, weights=weights, camera=pinhole)
    labels = np.asarray(label(inside)[0], dtype=np.int32)
    options = _Options(method, rtol, max_iter, tol, sharpness, reporter(control, method))

    if method == "simchony":
        if weights is not None or anchors is not None:
            raise ParameterError(
                "simchony solves an unweighted rectangle and takes neither weights nor anchors; use poisson."
            )
        outcome = _integrate_rectangle(source, highpass)
    else:
        pull, target = _pulls(source, anchors, anchor_weight, highpass)
        outcome = _integrate_parts(source, labels, pull, target, options)

    depth = outcome.values
    if pinhole is not None:
        depth = pinhole.depth_from_log(depth)
    depth[~inside] = np.nan
    if outcome.status == "max_iter":
        warnings.warn(
            f"{method} stopped after {outcome.iterations} iterations before it met its tolerance; the "
            "surface is usable. Raise max_iter for the last digits.",
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
    progress: Progress | None


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
    equations = source.field(mask)
    slope_col = place_pixels(mask, equations.tilt_col / equations.facing)
    slope_row = place_pixels(mask, equations.tilt_row / equations.facing)
    del equations
    screen = 0.0 if highpass is None else (2.0 * np.pi / highpass) ** 2
    values = solve_rectangle(slope_col, slope_row, screen=screen)
    # The mean over the rectangle means nothing to who looks at the mask; a high pass has its own zero.
    if highpass is None:
        values -= values[mask].mean()
    whole = np.zeros_like(mask)
    return _Outcome(values, whole, whole.copy(), "direct", 0, 0.0)


def _pulls(
    source: SlopeSource, anchors: ArrayLike | None, anchor_weight: float, highpass: float | None
) -> tuple[Float64 | None, Float64 | None]:
    """What draws pixels to a height: anchors, and the flat zero of a high pass; pictures."""
    if anchors is None and highpass is None:
        return None, None
    mask, camera = source.mask, source.camera
    pull, target = np.zeros(mask.shape), np.zeros(mask.shape)
    if highpass is not None:
        pull[mask] = (2.0 * np.pi / highpass) ** 2 * source.field(mask).weight
    if anchors is not None:
        known = np.asarray(anchors, dtype=np.float64)
        if known.shape != mask.shape:
            raise ParameterError(f"The anchors are {known.shape} but the mask is {mask.shape} pixels.")
        if camera is not None:
            if (known[mask & np.isfinite(known)] >= 0).any():
                raise ParameterError(
                    "With a camera, heights are −Z, the negative distance along the optical axis: anchors "
                    "must be negative."
                )
            known = camera.log_from_depth(known)
        found = mask & np.isfinite(known)
        if not found.any():
            raise ParameterError("No anchor lies inside the mask: all are NaN there.")
        pull[found] += anchor_weight
        target[found] = anchor_weight * known[found] / pull[found]
    return pull, target


def _groups(labels: NDArray[np.int32]) -> Iterator[tuple[tuple[slice, slice], Bool]]:
    """Boxes and masks to be solved apart: every large part, and all small ones together; largest first."""
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
    """Solve every group of parts and put the results together."""
    shape = source.mask.shape
    values = np.zeros(shape)
    torn_right, torn_down = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    statuses, iterations, residual = [], 0, 0.0
    energy: tuple[float, ...] = ()
    for box, group in _groups(labels):
        result = _solve_group(
            source.crop(box),
            group,
            labels[box],
            None if pull is None else np.where(group, pull[box], 0.0),
            None if target is None else target[box],
            options,
        )
        values[box][group] = result.values[group]
        torn_right[box] |= result.torn_right
        torn_down[box] |= result.torn_down
        statuses.append(result.status)
        iterations = max(iterations, result.iterations)
        residual = max(residual, result.residual)
        energy = energy or result.energy
    status = next((s for s in ("max_iter", "converged") if s in statuses), "direct")
    return _Outcome(values, torn_right, torn_down, status, iterations, residual, energy)


def _solve_group(
    source: SlopeSource,
    group: Bool,
    labels: NDArray[np.int32],
    pull: Float64 | None,
    target: Float64 | None,
    options: _Options,
) -> _Outcome:
    """Heights of the pixels of ``group``, a mask of the source's picture."""
    from photostereo.surface.multigrid import DIRECT_LIMIT, center_parts

    whole = np.zeros_like(group)
    if options.method == "poisson" and np.count_nonzero(group) > DIRECT_LIMIT:
        from photostereo.surface.poisson import solve_large_poisson

        most = 200 if options.max_iter is None else options.max_iter
        solution = solve_large_poisson(
            source,
            group,
            pull=pull,
            target=target,
            rtol=options.rtol,
            max_iter=most,
            progress=options.progress,
        )
        status = "converged" if solution.residual <= options.rtol else "max_iter"
        pulled = None if pull is None else pull[group]
        solution.values[group] = center_parts(solution.values[group], labels[group], pulled)
        return _Outcome(solution.values, whole, whole, status, solution.iterations, solution.residual)

    found, parts = np.unique(labels[group], return_inverse=True)
    parts = parts.astype(np.min_scalar_type(len(found)))
    pull_packed = None if pull is None else pull[group]
    target_packed = None if target is None else target[group]
    if not ((group[:, 1:] & group[:, :-1]).any() or (group[1:] & group[:-1]).any()):  # only single pixels
        values = np.zeros(len(parts))
        if pull_packed is not None and target_packed is not None:
            values = np.where(pull_packed > 0, target_packed, 0.0)
        return _Outcome(place_pixels(group, values), whole, whole, "direct", 0, 0.0)
    equations = source.field(group, large=len(parts) > DIRECT_LIMIT)
    if options.method == "poisson":
        from photostereo.surface.poisson import solve_poisson

        direct = solve_poisson(equations, find_links(group), parts, pull=pull_packed, target=target_packed)
        values = place_pixels(group, direct.values)
        return _Outcome(values, whole, whole, "direct", direct.iterations, direct.residual)
    from photostereo.surface.robust import RobustProblem, solve_robust

    robust = solve_robust(
        RobustProblem(equations, parts, pull_packed, target_packed, options.sharpness),
        max_iter=150 if options.max_iter is None else options.max_iter,
        tol=options.tol,
        progress=options.progress,
    )
    return _Outcome(
        place_pixels(group, robust.values),
        *robust.torn,
        "converged" if robust.converged else "max_iter",
        robust.iterations,
        robust.residual,
        robust.energy,
    )
