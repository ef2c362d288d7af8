"""Slope: the angle between normal and viewing direction, as 16-bit TIFF and EXR."""

from __future__ import annotations

from photostereo.results.formats.format import Format, Job
from photostereo.results.formats.measures import write_measures
from photostereo.surface.differential import slope


def _write(job: Job) -> dict[str, str]:
    angle = slope(job.result.normals, job.result.mask)
    pictures = {"slope": (angle, "Angle between normal and viewing direction in degrees.")}
    return write_measures(job, "slope", pictures, limits=(0.0, 90.0))


FORMAT = Format(
    title="Slope",
    purpose="angle to the viewing direction, for inspection",
    write=_write,
)
