"""Local contrast of the relief, whatever its color, as 16-bit TIFF and EXR."""

from __future__ import annotations

from photostereo.results.formats.format import Format, Job
from photostereo.results.formats.measures import write_measures
from photostereo.surface.differential import CONTRAST_SIGMA, contrast

#: The largest contrast of the TIFF, in degrees: normals that point anywhere.
MOST = 60.0


def _write(job: Job) -> dict[str, str]:
    angle = contrast(job.result.normals, job.result.mask)
    meaning = (
        "Root mean square angle of the normals from their local trend in degrees "
        f"(Gaussian weights, sigma {CONTRAST_SIGMA:g} pixels)."
    )
    return write_measures(job, "contrast", {"contrast": (angle, meaning)}, limits=(0.0, MOST))


FORMAT = Format(
    title="Contrast",
    purpose="fine relief without color: scratches, dents, grain",
    write=_write,
)
