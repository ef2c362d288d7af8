"""Mean and Gaussian curvature, as 16-bit TIFF and EXR."""

from __future__ import annotations

from photostereo.results.formats.format import Format, Job
from photostereo.results.formats.measures import write_measures
from photostereo.surface.differential import curvature


def _write(job: Job) -> dict[str, str]:
    pixel_size = job.size.millimeters if job.size.known else None
    bend = curvature(job.result.normals, job.result.mask, pixel_size=pixel_size)
    sign = "positive where the surface bulges toward the camera"
    pictures = {
        "mean": (bend.mean, f"Mean curvature in {bend.unit}, {sign}."),
        "gaussian": (bend.gaussian, f"Gaussian curvature in ({bend.unit})^2."),
    }
    return write_measures(job, "curvature", pictures)


FORMAT = Format(
    title="Curvature",
    purpose="mean and Gaussian curvature, for inspection",
    write=_write,
)
