"""Diagnose a capture and a result: numbers, maps and plain advice. Needs NumPy only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from photostereo.capture import Capture
from photostereo.core.attempt import attempt
from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import FloatArray
from photostereo.core.display import Displayed
from photostereo.core.findings import Finding, by_code
from photostereo.diagnosis.advice import advise
from photostereo.diagnosis.checks import find_mistakes
from photostereo.diagnosis.exposure import (
    dark_counts,
    dim_photographs,
    least_squares_normals,
    matte_fit,
    saturation_share,
)
from photostereo.diagnosis.near_lights import find_near_lights
from photostereo.diagnosis.noise import Noise, NoiseEstimate
from photostereo.diagnosis.unequal import relative_strengths, unequal_photographs
from photostereo.lights.geometry import LightGeometry, light_geometry

if TYPE_CHECKING:
    from photostereo.solver.reconstruction import Reconstruction


@dataclass(frozen=True, eq=False)
class Diagnosis(Displayed):
    """The state of a capture and, if given, of a result."""

    photographs: int  #: number of photographs
    #: (H, W) number of photographs in which each pixel is dark; -1 outside the mask
    dark_count: NDArray[np.int32]
    lights: LightGeometry  #: conditioning of the light directions
    noise: NoiseEstimate  #: estimated noise level
    saturation: float  #: share of saturated values inside the mask
    saturation_by_photograph: FloatArray  #: (d,) the same for each photograph
    #: (H, W) relative misfit of a matte surface with the computed normals; NaN outside the mask
    residual: FloatArray
    dim_photographs: tuple[int, ...] = ()  #: numbers (from 1) of photographs that are nearly dark
    findings: tuple[Finding, ...] = ()  #: all findings, each with its severity, worst first

    @property
    def advice(self) -> tuple[str, ...]:
        """The findings as plain sentences."""
        return tuple(map(str, self.findings))

    @property
    def poorly_lit(self) -> float:
        """Share of the mask pixels that are lit in fewer than four photographs."""
        dark = self.dark_count[self.dark_count >= 0]
        return float((self.photographs - dark < 4).mean())


def diagnose(
    capture: Capture, result: Reconstruction | None = None, control: Control = SILENT
) -> Diagnosis:
    """Examine a capture as an experienced photographer would, and report what to improve.

    Parameters
    ----------
    capture : Capture
        The photographs, lights and mask.
    result : Reconstruction, optional
        The result whose normals are checked against the photographs; by default those of least squares.
    control : Control
        Can cancel the work.

    Returns
    -------
    Diagnosis
        Arrays have the frame of the capture.

    Examples
    --------
    >>> lights = np.array([[0, 0, 1], [0.7, 0, 0.7], [0, 0.7, 0.7], [-0.7, 0, 0.7], [0, -0.7, 0.7]])
    >>> shading = np.linalg.norm(lights, axis=1)[:, None, None] * np.ones((5, 16, 16))
    >>> diagnosis = diagnose(Capture(images=shading, lights=lights, name="wall"))
    >>> diagnosis.photographs, diagnosis.saturation
    (5, 0.0)
    """
    seen = _SEEN.get(capture)
    shown = (capture if result is not None and seen is not None else capture.gray()).evened()
    if seen is None:
        seen = _SEEN[capture] = _look_at(shown, control)
    control.check()
    lights = shown.lights_at(np.flatnonzero(shown.mask))
    if result is None:
        normals = least_squares_normals(shown.images, lights, shown.mask)
    else:
        normals = result.normals
    residual = np.full(shown.mask.shape, np.nan, dtype=np.float32)
    residual[shown.mask] = matte_fit(shown.images, normals, lights, shown.mask, control).residual
    bare = replace(seen, residual=residual)
    failures: list[Finding] = []
    check = "the advice on the capture"
    advice = attempt(check, advise, bare, capture, result, failures=failures, otherwise=())
    return replace(bare, findings=(*seen.findings, *advice, *failures))


#: Cache: a capture is examined once, before the solve for the terminal and after it for the page.
_SEEN: WeakKeyDictionary[Capture, Diagnosis] = WeakKeyDictionary()


def _look_at(gray: Capture, control: Control) -> Diagnosis:
    """Examine everything that does not depend on the normals: all but the residual."""
    saturation, by_photograph = saturation_share(gray.images, gray.mask)
    dark_count = dark_counts(gray.images, gray.mask, gray.intensity_scale())
    dark_count.flags.writeable = by_photograph.flags.writeable = False
    control.check()
    noise = Noise.of_images(gray.images, gray.lights, gray.mask).estimate(control)
    control.check()
    return Diagnosis(
        photographs=len(gray),
        residual=np.empty((0, 0)),
        dark_count=dark_count,
        lights=light_geometry(gray.lights.directions),
        noise=noise,
        saturation=saturation,
        saturation_by_photograph=by_photograph,
        dim_photographs=dim_photographs(gray.images, gray.mask),
        findings=tuple(_contradictions(gray, noise.sigma, control)),
    )


def _contradictions(gray: Capture, noise: float, control: Control) -> list[Finding]:
    """Find contradictions between photographs and lights."""
    if gray.lights.is_near:  # they vary over the object by more than most mistakes do
        return [Finding("near-lights-unchecked")]
    images = gray.images
    lights = gray.lights.directions
    mask = gray.mask
    origin = gray.origin
    axes = ""
    straightened = False
    if origin is not None:
        axes = origin.axes
        straightened = origin.straightened
    failures: list[Finding] = []
    find = partial(find_mistakes, axes_given=axes, straightened=straightened)
    check = "the search for mistakes in the light file"
    findings = [*attempt(check, find, images, lights, mask, failures=failures, otherwise=())]
    control.check()

    def compare_strengths() -> Iterator[Finding]:
        strengths = relative_strengths(images, lights, mask, noise)
        if "light-order" not in by_code(findings):  # a wrong light looks like a near one
            near = find_near_lights(images, lights, mask, strengths.factors)
            yield from () if near is None else (near,)
        control.check()
        yield from unequal_photographs(images, lights, mask, strengths)

    check = "the comparison of the light strengths"
    findings += attempt(check, lambda: list(compare_strengths()), failures=failures, otherwise=[])
    return findings + failures
