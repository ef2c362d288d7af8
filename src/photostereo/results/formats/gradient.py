"""Gradients of the heights, along x and y, as 16-bit TIFF and EXR."""

from __future__ import annotations

from photostereo.results.formats.format import Format, Job
from photostereo.results.formats.measures import write_measures
from photostereo.surface.differential import gradients


def _write(job: Job) -> dict[str, str]:
    picture = gradients(job.result.normals, job.result.mask)
    pictures = {
        "x": (picture[..., 0], "Gradient dz/dx of the height, x to the right, no unit."),
        "y": (picture[..., 1], "Gradient dz/dy of the height, y up, no unit."),
    }
    return write_measures(job, "gradient", pictures)


FORMAT = Format(
    title="Gradient",
    purpose="slopes along x and y, for inspection",
    write=_write,
)
