"""Integrate a normal map into heights, by three methods.

The object may have several parts; cameras, anchors and flattening are options.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

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

#: Names of the integration methods.
METHODS = ("poisson", "simchony", "robust")
#: Parts of up to this many pixels are solved together: separate solves would cost more.
SMALL_PART = 4_000


def check_method(name: str) -> None:
    """Raise a :class:`ParameterError` if this is not an integration method."""
    require_known(name, METHODS, "integration method", "unknown-integration")


@dataclass(frozen=True)
class _Limits:
    """When the iterations of a solver stop, and how sharply ``robust`` chooses."""

    rtol: float
    max_iter: int | None
    tol: float
    sharpness: float


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

    Solves ``minimize_z Σ w (n_z ∂z/∂col + n_x)² + w (n_z ∂z/∂row − n_y)²`` in one of three
    versions: over a rectangle without weights (``simchony``: two cosine transforms), over the links
    inside a mask (``poisson``), or with a soft choice between the forward and the backward
    difference of each pixel, so that the surface may tear at occlusions (``robust``).

    Parameters
    ----------
    normals : (H, W, 3) array
        x right, y up, z toward the camera (see :mod:`photostereo.core.conventions`); need not be
        unit. Zero and NaN inside the mask mean "unknown" and are filled from their neighbors.
    mask : (H, W) array, optional
        Pixels to integrate; by default, all pixels with a normal.
    method : {"poisson", "simchony", "robust"}
        ``simchony`` sets the slopes outside the mask to zero: use it for a full rectangle.
    weights : (H, W) array, optional
        Non-negative confidence of each normal; not for ``simchony``.
    camera : 3 × 3 matrix or Camera, optional
        Pinhole camera in pixels (columns, rows from the top left pixel center); by default
        orthographic.
    anchors : (H, W) array, optional
        Known heights, NaN where unknown, in the units of the result; not for ``simchony``.
    anchor_weight : float
        Weight of a known height relative to a slope. The default fits them almost exactly; lower
        it for noisy ones.
    highpass : float, optional
        Flatten shapes wider than about this many pixels, over which errors of the normals
        accumulate. A wave of this length is halved, shorter ones are kept:
        ``Σ w (2π/highpass)² z²`` is added to the cost.
    rtol : float
        Relative residual of the linear solve (``poisson``).
    max_iter : int, optional
        Maximum number of iterations: of the conjugate gradients (``poisson``, 200), or of the
        reweighting (``robust``, 150).
    tol : float, optional
        For ``robust``: stop when the energy falls by less than this fraction.
    sharpness : float, optional
        For ``robust``: how sharply (k) it chooses between the two sides, in 1/pixel².
    control : Control
        Receives progress (iterations of ``robust``, percent of ``poisson``) and can cancel the
        work.

    Returns
    -------
    Surface
        Heights in pixels; every connected part has mean height zero, unless anchors fix it.

    Raises
    ------
    ParameterError
        If the mask is empty, no normal is usable, most face away, or an option does not fit the
        method.

    Notes
    -----
    Time and memory are linear in pixels: see ``benchmarks/README.md``. Like all least squares,
    ``poisson`` smears depth discontinuities; ``robust`` keeps those that end somewhere inside the
    mask. No integrator can determine the height of a step that separates two regions completely.

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
    if camera is not None and not isinstance(camera, Camera):
        camera = Camera.from_matrix(camera)
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
    source = SlopeSource(normals, inside, weights=weights, camera=camera)
    control.check()
    labels, parts = cv2.connectedComponentsWithStats(inside.astype(np.uint8), connectivity=4)[1:3]
    control.check()
    if method == "simchony":
        if weights is not None or anchors is not None:
            raise ParameterError(
                "simchony solves an unweighted rectangle and takes neither weights nor anchors; "
                "use poisson.",
                code="simchony-is-unweighted",
            )
        control.stage("integrate", 1)
        heights = Heights(_integrate_rectangle(source, highpass), 0, 0.0, converged=True)
        control.advance()
    else:
        pulls = _pulls(source, anchors, anchor_weight, highpass)
        solver = _Solver(method, _Limits(rtol, max_iter, tol, sharpness), control)
        heights = _integrate_parts(source, labels, parts, pulls, solver)

    depth = heights.values
    if camera is not None:
        depth = camera.depth_from_log(depth)
    depth[~inside] = np.nan
    status = "direct" if method == "simchony" else "converged"
    if not heights.converged:
        status = "max_iter"
        warnings.warn(
            ConvergenceWarning(
                Finding("surface-not-converged", method=method, iterations=heights.iterations)
            ),
            stacklevel=2,
        )
    torn_right, torn_down = heights.torn or (np.zeros_like(inside), np.zeros_like(inside))
    return Surface(
        depth=depth,
        mask=inside,
        labels=labels,
        torn_right=torn_right,
        torn_down=torn_down,
        method=method,
        status=status,
        iterations=heights.iterations,
        residual=heights.residual,
        energy=heights.energy,
        camera=camera,
        unknown=source.unknown,
        away=source.away,
    )


def _integrate_rectangle(source: SlopeSource, highpass: float | None) -> Float64:
    """Return the heights of ``simchony``, over the whole picture."""
    from photostereo.surface.poisson import solve_rectangle

    mask = source.mask
    field = source.field(mask)
    facing = np.where(mask, field.facing, 1.0)
    slope_col = field.tilt_col / facing
    slope_row = field.tilt_row / facing
    del field, facing
    if highpass is not None:
        # A high pass defines its own zero.
        return solve_rectangle(slope_col, slope_row, screen=_screen(highpass))
    values = solve_rectangle(slope_col, slope_row)
    # Center on the mask, the only region that matters.
    values -= values[mask].mean()
    return values


def _screen(highpass: float) -> float:
    """Return the weight of z² that halves a wave of ``highpass`` pixels."""
    return float((2.0 * np.pi / highpass) ** 2)


def _pulls(
    source: SlopeSource, anchors: ArrayLike | None, anchor_weight: float, highpass: float | None
) -> Pulls | None:
    """Return the pulls of anchors and of a high pass, if there are any."""
    if anchors is None and highpass is None:
        return None
    mask = source.mask
    pull = np.zeros(mask.shape)
    target = np.zeros(mask.shape)
    if highpass is not None:
        field = source.field(mask)
        pull += _screen(highpass) * (field.confidence * field.facing**2)
    if anchors is not None:
        goals = np.asarray(anchors, dtype=np.float64)
        if goals.shape != mask.shape:
            raise ParameterError(
                f"The anchors have {goals.shape} pixels, but the mask has {mask.shape}.",
                code="anchors-shape",
                anchors=goals.shape,
                mask=mask.shape,
            )
        if source.camera is not None:
            if (goals[mask & np.isfinite(goals)] >= 0).any():
                raise ParameterError(
                    "With a camera, heights are −Z, the negative distance along the optical "
                    "axis: anchors must be negative.",
                    code="anchors-not-negative",
                )
            goals = source.camera.log_from_depth(goals)
        anchored = mask & np.isfinite(goals)
        if not anchored.any():
            raise ParameterError(
                "No anchor lies inside the mask: all are NaN there.", code="no-anchors"
            )
        pull[anchored] += anchor_weight
        target[anchored] = anchor_weight * goals[anchored] / pull[anchored]
    return pull, target


@dataclass(frozen=True)
class _Solver:
    """Solves the slope equations of some pixels by ``poisson`` or ``robust``."""

    method: str
    limits: _Limits
    control: Control

    def __call__(self, part: SlopeSource, group: BoolArray, pulls: Pulls | None) -> Heights:
        from photostereo.surface.multigrid import MOST_ITERATIONS, conjugate_gradients
        from photostereo.surface.poisson import assemble
        from photostereo.surface.robust import MOST_REWEIGHTINGS, RobustProblem, solve_robust

        limits = self.limits
        if self.method == "poisson":
            lattice, side, start = assemble(part, group, pulls, self.control)
            return conjugate_gradients(
                lattice,
                side,
                start,
                rtol=limits.rtol,
                max_iter=MOST_ITERATIONS if limits.max_iter is None else limits.max_iter,
                control=self.control,
            )
        problem = RobustProblem(
            part.field(group),
            pulls,
            limits.sharpness,
            max_iter=MOST_REWEIGHTINGS if limits.max_iter is None else limits.max_iter,
            tol=limits.tol,
        )
        return solve_robust(problem, self.control)


def _groups(
    labels: NDArray[np.int32], parts: NDArray[np.int32]
) -> Iterator[tuple[tuple[slice, slice], BoolArray]]:
    """Yield boxes and masks of the pixels to solve together, largest first.

    Every large part is a group of its own; all small ones are one group.
    """
    sizes = parts[:, cv2.CC_STAT_AREA]
    sizes[0] = 0  # the background
    # The first group is the largest, whose energies are reported.
    for part in np.argsort(-sizes):
        if sizes[part] > SMALL_PART:
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
    solver: _Solver,
) -> Heights:
    """Solve every group of parts and combine the results.

    ``labels`` and ``parts`` (boxes and sizes) are the connected parts, as OpenCV counts them.
    """
    shape = source.mask.shape
    values = np.zeros(shape)
    torn = (np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool))
    results = []
    for box, group in _groups(labels, parts):
        solver.control.check()
        pull = None
        group_pulls = None
        if pulls is not None:
            pull = pulls[0][box]
            group_pulls = (np.where(group, pull, 0.0), pulls[1][box])
        result = solver(source.crop(box), group, group_pulls)
        heights = np.where(group, result.values, 0.0)
        center_parts(heights, np.where(group, labels[box], 0), pull)
        values[box] += heights
        if result.torn is not None:
            torn[0][box] |= result.torn[0]
            torn[1][box] |= result.torn[1]
        # Keep the figures only: a picture per part would be kept until the end.
        results.append((result.iterations, result.residual, result.converged, result.energy))
    iterations, residuals, converged, energies = zip(*results, strict=True)
    return Heights(values, max(iterations), max(residuals), all(converged), torn, energies[0])


def center_parts(values: Float64, labels: NDArray[np.int32], pull: Float64 | None) -> None:
    """Shift every connected part without a pull to mean zero, in place.

    Parameters
    ----------
    values : (H, W) array
        Heights; they are changed.
    labels : (H, W) integer array
        Number of the part of each pixel, 1, 2, …; zero outside.
    pull : (H, W) array, optional
        Strength of the pull toward a given height.
    """
    flat = labels.ravel()
    count = int(flat.max()) + 1
    size = np.maximum(np.bincount(flat, minlength=count), 1)
    mean = np.bincount(flat, values.ravel(), count) / size
    mean[0] = 0.0
    if pull is not None:
        mean[np.bincount(flat, pull.ravel(), count) > 0] = 0.0
    values -= mean[labels]
