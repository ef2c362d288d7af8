"""What commands print at the end of their work, line by line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from photostereo.core.findings import Finding

if TYPE_CHECKING:
    from photostereo.batch.options import Progress
    from photostereo.core.errors import PhotostereoError
    from photostereo.diagnosis.expected_error import ExpectedError
    from photostereo.diagnosis.metrics import ErrorSummary
    from photostereo.lights.lights import Lights
    from photostereo.solver.reconstruction import Reconstruction

#: Smallest camera movement that is worth a figure, in pixels: the accuracy of its estimate.
LEAST_MOVEMENT = 0.01


def about_batch(end: Progress, time: str, overview: Path) -> Iterator[str]:
    """Counts of captures, and where the overview is."""
    counts = [f"{end.done} done"]
    failed_now = end.failed - end.failed_earlier
    if failed_now > 0:
        counts.append(f"{failed_now} failed")
    if end.failed_earlier:
        counts.append(f"{end.failed_earlier} failed earlier; use --retry-failed")
    yield ", ".join(counts)
    if time:
        yield time
    yield f"Overview: {overview}"


def about_demo(time: str, out: Path, best: Path) -> Iterator[str]:
    """Where the results are, and what to try next."""
    yield time
    yield f"Results:  {out}"
    yield f"Report:   {best / 'report.html'}"
    yield f"Picture:  {best / 'normals.png'}"
    yield f"Mesh:     {best / 'mesh.glb'}"
    yield f"Next:     photostereo view {best}    or    photostereo solve YOUR_FOLDER"


def about_methods(best: str, fast: str, priors: Sequence[str]) -> Iterator[str]:
    """How the default method is chosen, and how to add a prior."""
    yield (
        f"By default, photostereo solve uses {best}, or {fast} if the capture is too large or has "
        f"too few or too many photographs for {best}. --method best always uses {best}, "
        f"--method fast always uses {fast}."
    )
    yield (
        f"Add a prior ({', '.join(priors)}) to a method without one: "
        f"photostereo solve X --method cbr --prior {priors[0]}"
    )
    yield "Parameters, defaults and citation of one method: photostereo methods NAME"


def about_lights(
    warnings: Iterable[Finding], target: Path, picture: Path | str | None
) -> Iterator[str]:
    """Warnings about estimated lights, and the files."""
    for warning in warnings:
        yield f"Warning: {warning}."
    yield f"Lights:  {target}"
    if picture:
        yield f"Picture: {picture}"


def about_results(time: str, target: Path, page: Path | None) -> Iterator[str]:
    """Where results and page are."""
    if time:
        yield time
    yield f"Results: {target}"
    if page is not None:
        yield f"Report:  {page}  (photostereo view {target})"


def about_capture(
    facts: Mapping[str, Any],
    notes: Iterable[Finding],
    findings: Sequence[Finding | PhotostereoError],
    *,
    still: bool = False,
) -> Iterator[str]:
    """Describe a capture, with notes on how it was read and with findings.

    Parameters
    ----------
    facts : mapping
        What ``info --json`` prints; without lights and mask if these could not be read.
    notes : iterable of Finding
        How it was read.
    findings : sequence of Finding or PhotostereoError
        What may be wrong; an error if it cannot be solved.
    still : bool
        Whether the camera did not move.
    """
    depth = f", {facts['bit_depth']} bits" if facts["bit_depth"] else ""
    yield f"{facts['name']} ({facts['layout']})"
    yield f"Photographs: {facts['photographs']}, {facts['size']}, {facts['channels']}{depth}"
    if "mask_share" in facts:
        steepest, flattest = facts["lights_tilt_degrees"]
        yield f"Lights: {90 - flattest:.0f}° to {90 - steepest:.0f}° above the image plane"
        share = 100 * facts["mask_share"]
        yield f"Object: {share:.0f} % of the frame, {facts['mask_pixels']} pixels"
        if still:
            movement = max(facts["alignment"]["largest_pixels"], LEAST_MOVEMENT)
            yield f"Camera: still, to about {movement:.2g} pixels"
        if facts["truth"] != "none":
            unknown = facts["truth_unknown_pixels"]
            yield "True normals: known" + (f", except at {unknown} pixels" if unknown else "")
    yield from _noted(notes)
    for finding in findings:
        is_problem = getattr(finding, "severity", "problem") == "problem"
        yield ("Warning: " if is_problem else "• ") + finding.rendered("terminal")
    if not findings:
        yield "No problems were found."


def about_state(
    lights: Lights | None,
    warnings: Iterable[Finding],
    notes: Iterable[Finding],
    findings: Sequence[Finding],
) -> Iterator[str]:
    """Describe briefly how a capture was read, before it is solved.

    Parameters
    ----------
    lights : Lights or None
        The lights, if they were found or estimated.
    warnings : iterable of Finding
        Warnings about them.
    notes : iterable of Finding
        How the capture was read.
    findings : sequence of Finding
        Findings of the diagnosis; minor ones are only counted.
    """
    if lights is not None:
        sources = ", ".join(dict.fromkeys(lights.source))
        if sources != "estimated":  # otherwise a warning says so
            yield f"Lights from: {sources}; strengths: {lights.strengths_source}"
    for warning in warnings:
        yield f"Warning: {warning}."
    yield from _noted(notes)
    for finding in findings:
        if finding.severity == "problem":
            yield f"Warning: {finding.rendered('terminal')}"
    minor = sum(finding.severity == "notice" for finding in findings)
    if minor == 1:
        yield "1 minor note; run `photostereo info` to see it."
    elif minor:
        yield f"{minor} minor notes; run `photostereo info` to see them."


def about_solve(
    result: Reconstruction,
    seconds: float,
    *,
    warnings: Iterable[Finding],
    expected: ExpectedError | None,
    correction: Finding | None,
    surface: Mapping[str, Any],
    time: str,
    target: Path,
    page: Path | None,
) -> Iterator[str]:
    """Describe the result of a solve.

    Parameters
    ----------
    result : Reconstruction
        The result.
    seconds : float
        Wall-clock time in total.
    warnings : iterable of Finding
        Warnings about the solve.
    expected : ExpectedError or None
        The expected error, if it could be estimated.
    correction : Finding or None
        How light strengths were corrected, if they were.
    surface : mapping
        The entry of the surface in ``summary.json``; empty without one.
    time : str
        Time by stage.
    target : path
        The folder of results.
    page : path or None
        The page, if there is one.
    """
    for warning in warnings:
        yield f"Warning: {warning}"
    yield f"{result.method}: {_ending(result)}, {seconds:.1f} s in total"
    if result.angular_error is not None:
        yield _angular_error(result.angular_error)
    if expected is not None:
        yield f"Expected error: {expected.words}"
        for reason in expected.reasons:
            yield f"  {reason.rendered('terminal')}"
    for note in (result.near, correction, surface.get("note", "")):
        if note:
            yield str(note)
    yield from about_results(time, target, page)
    if surface.get("unit") == "pixel":
        yield (
            "Scale:   unknown, so lengths are in pixels (mesh.glb: 1 mm per pixel); "
            "set it with --pixel-size 0.1mm"
        )


def _ending(result: Reconstruction) -> str:
    """How the solve ended."""
    if result.status == "closed form":
        return result.status
    count = f"{result.iterations} iteration{'' if result.iterations == 1 else 's'}"
    return f"converged after {count}" if result.status == "converged" else count


def _angular_error(error: ErrorSummary) -> str:
    """The error against ground truth; first without and then with pixels that have none."""
    whole = f"mean {error.mean:.2f}°, median {error.median:.2f}°"
    if not error.unknown_truth:
        return f"Angular error: {whole}"
    unknown = f"{error.unknown_truth} of {error.pixels} pixels have no truth"
    if error.known_mean is None or error.known_median is None:
        return f"Angular error: unknown ({unknown})"
    return (
        f"Angular error: mean {error.known_mean:.2f}°, median {error.known_median:.2f}° over "
        f"pixels with known truth; {whole} if the others count as 90° ({unknown})"
    )


def _noted(notes: Iterable[Finding]) -> Iterator[str]:
    for note in notes:
        yield f"{'Warning: ' if note.severity == 'problem' else '• '}{note}"
