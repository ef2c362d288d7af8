"""Expected error of any result, from its own method or, if that does not estimate one, from the learned model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from photostereo.capture import Capture
from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray
from photostereo.core.findings import Finding
from photostereo.diagnosis.diagnose import diagnose
from photostereo.diagnosis.expected_error import ExpectedError, expected_error, factor_of_detail
from photostereo.diagnosis.metrics import angle_between
from photostereo.solver.near import depth_of
from photostereo.solver.reconstruction import Reconstruction
from photostereo.solver.solve import solve

#: Number of pixels used. Using a third of them changes the mean by about 3 %.
SAMPLE = 1500


def second_opinion(
    result: Reconstruction, capture: Capture, control: Control = SILENT
) -> tuple[float, float, float] | None:
    """Return the expected mean error of a result, the part of it that the method causes, and the mean distance from the
    learned model, in degrees; None if the capture does not allow an estimate.

    The learned model gives a normal m and its expected error, the angle s. A normal at the angle d from m is off by
    √(s² + d²) on average.
    """
    some = _blocks(capture.mask)
    step = round(result.mask.shape[0] / capture.frame[0])  # of a capture with every n-th pixel
    normals = result.normals[::step, ::step]
    if not some.any() or not capture.lights.known or capture.frame != normals.shape[:2]:
        return None
    # The context network needs a whole object, not separate blocks.
    lights = capture.lights
    if lights.is_near:
        lights = lights.changed(depth=depth_of(normals, capture))
    blocks = replace(capture, mask=some, lights=lights)
    opinion = solve(blocks, "net", strengths="auto", context=False, control=control.unreported())
    control.check()
    apart = angle_between(normals[some], opinion.normals[some])
    expected = np.hypot(opinion.maps["spread"][some], apart)
    # The detail is that of the whole surface, not of the sample.
    factor = factor_of_detail(result.normals, result.mask) / factor_of_detail(opinion.normals, some)
    mean, distance = (float(angle.mean(dtype=np.float64)) for angle in (expected, apart))
    return factor * mean, factor * distance, distance


def assess(
    result: Reconstruction,
    capture: Capture | None = None,
    findings: Sequence[Finding] | None = None,
    control: Control = SILENT,
) -> ExpectedError | None:
    """Estimate the expected error of any result, with reasons.

    ``capture`` is the capture of the result, or every n-th pixel of it, in memory; without it only methods that
    estimate their own error have one. ``findings`` are those of the diagnosis, if already available.
    """
    if capture is None or not capture.in_memory:
        return expected_error(result, None if capture is None else capture.lights, findings or ())
    if findings is None:
        findings = diagnose(capture, control=control).findings
    own: float | None = None
    opinion = None
    if "spread" not in result.maps and len(capture) > 3:
        opinion = second_opinion(result, capture, control)
    if opinion is not None:
        own, of_method, apart = opinion
        findings = [*findings, Finding("method-differs", effect=of_method, degrees=apart)]
        if 2 * of_method**2 < own**2:  # the learned model is mostly uncertain itself
            findings.append(Finding("uncertain-normals", effect=(own**2 - of_method**2) ** 0.5))
    control.check()
    return control.aside(lambda: expected_error(result, capture.lights, findings, own=own))


def _blocks(mask: BoolArray) -> BoolArray:
    """Select evenly spread blocks of 4 × 4 mask pixels: noise is measured within blocks."""
    step = max(1, round((int(mask.sum()) / SAMPLE) ** 0.5)) * 4
    rows, columns = (np.arange(side) % step < 4 for side in mask.shape)
    return np.asarray(mask & rows[:, None] & columns)
