"""Estimate depth and normals in turn for near lights, on a small copy, before the actual solve.

The direction of a near light from a pixel depends on the pixel's depth. The depth starts as a plane; the method's model
gives normals, integrating them gives a better depth, and so on. A depth error matters only relative to the distance to
the light, so each round leaves a small part of the previous error, and every n-th pixel suffices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from photostereo.capture import Capture
from photostereo.capture.capture import gray_of
from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import FloatArray
from photostereo.core.findings import Finding
from photostereo.diagnosis.metrics import angle_between
from photostereo.lights.lights import Lights
from photostereo.runtime.matte_fits import fit_lit
from photostereo.solver.reconstruction import Reconstruction
from photostereo.surface.integrated import Camera
from photostereo.surface.integration import integrate

#: Pixels of the small copy. Using a quarter of them changes normals by less than 0.02°.
PIXELS = 25_000
#: Rounds stop when the normals move by less than this on average, in degrees.
MOVED = 0.05
#: Maximum number of rounds.
ROUNDS = 6
#: Number of pixels used to search for the object's height.
SAMPLED = 1000
#: Largest height in the search, as a share of the lowest light's height.
HIGHEST = 0.5
#: A height other than the origin's is used if it leaves less than this share of the misfit. On rendered domes at 1.5
#: to 6 object sizes, matte and glossy, a correct origin leaves 0.94 or more; one that is off by a tenth of the object
#: leaves 0.14 to 0.81 at up to 3 sizes (0.93 in one case), where it matters most.
BETTER = 0.9


def with_depth(
    capture: Capture, solve: Callable[[Capture], Reconstruction], control: Control = SILENT
) -> tuple[Capture, Finding]:
    """Return the capture with near lights that use its depth, and a description of how the depth was found.

    ``solve`` estimates the normals of a small copy.
    """
    step = max(1, int(np.ceil((capture.pixel_count / PIXELS) ** 0.5)))
    small = every_nth(capture, step, control) if step > 1 else capture
    given = small.lights
    small = replace(small, lights=given.changed(depth=np.zeros(small.frame)))
    control.stage("near lights", ROUNDS)
    normals = None
    moved = np.inf
    rounds = 0
    while moved > MOVED and rounds < ROUNDS:
        rounds += 1
        found = solve(small).normals
        small = replace(small, lights=lowered(given, depth_of(found, small), small))
        if normals is not None:
            moved = float(angle_between(found[small.mask], normals[small.mask]).mean())
        normals = found
        control.advance()
    depth = small.lights.depth
    positions = small.lights.positions
    assert depth is not None and positions is not None and given.positions is not None
    height = step * float(given.positions[0, 2] - positions[0, 2])
    depth = depth if step == 1 else enlarged(depth, step, capture.frame)
    said = Finding("near-lights-solved", rounds=rounds, degrees=moved, height=height)
    return replace(capture, lights=capture.lights.lowered(height).changed(depth=depth)), said


def camera_of(capture: Capture) -> Camera | None:
    """Return the camera used with near lights, in pixels of the capture; None for parallel rays."""
    eye = capture.lights.camera
    (height, width) = capture.frame
    if eye is None:
        return None
    return Camera(eye[2], eye[2], 0.5 * (width - 1) + eye[0], 0.5 * (height - 1) - eye[1])


def depth_of(normals: FloatArray, capture: Capture) -> FloatArray:
    """Return the depth (H, W) in pixels relative to the mean of each part, toward the camera; NaN outside the mask."""
    camera = camera_of(capture)
    depth = integrate(normals, capture.mask, camera=camera).depth
    if camera is None:
        return depth
    return depth - np.nanmean(depth)


def lowered(lights: Lights, depth: FloatArray, capture: Capture) -> Lights:
    """Return the lights for this depth, moved up or down to where a matte surface explains the photographs best.

    Normals do not determine the object's height above the origin of the positions. The fall-off and the directions do.
    """
    from scipy.optimize import minimize_scalar

    inside = np.flatnonzero(capture.mask)
    inside = inside[:: max(1, len(inside) // SAMPLED)]
    gray = np.stack([gray_of(frame, inside) for frame in capture.photographs.frames()], axis=1)
    none = np.zeros(len(inside), np.float32)
    lights = lights.changed(depth=depth)
    assert lights.positions is not None
    reach = HIGHEST * float(lights.positions[:, 2].min())

    def misfit(height: float) -> float:
        seen = replace(capture, lights=lights.lowered(height)).lights_at(inside)
        fit = fit_lit(seen.even(gray.copy()), seen.matrix, none)
        return float(np.median(fit.misfit / ((fit.scaled**2).sum(-1) + 1e-12)))

    best = minimize_scalar(
        misfit, bounds=(-reach, reach), method="bounded", options={"xatol": 1e-3 * reach}
    )
    if best.fun < BETTER * misfit(0.0):
        return lights.lowered(float(best.x))
    return lights


def every_nth(capture: Capture, step: int, control: Control = SILENT) -> Capture:
    """Return a small in-memory capture with every n-th pixel; each photograph is decoded once."""
    capture.photographs.keep_decoded()
    control.stage("photographs", len(capture))
    sampled = []
    for frame in capture.photographs.frames():
        sampled.append(frame[::step, ::step].copy())  # a view would keep the whole frame
        control.advance()
    return Capture(
        images=np.stack(sampled),
        lights=capture.lights.thinned(step, capture.frame),
        mask=capture.mask[::step, ::step],
        name=capture.name,
        origin=capture.origin,
    )


def enlarged(depth: FloatArray, step: int, frame: tuple[int, int]) -> FloatArray:
    """Interpolate the depth of every n-th pixel to the pixels of the whole frame."""
    from scipy.ndimage import distance_transform_edt, map_coordinates

    nearest = distance_transform_edt(np.isnan(depth), return_distances=False, return_indices=True)
    rows, columns = np.meshgrid(
        np.arange(frame[0]) / step, np.arange(frame[1]) / step, indexing="ij"
    )
    return np.asarray(
        step * map_coordinates(depth[tuple(nearest)], [rows, columns], order=1, mode="nearest")
    )
