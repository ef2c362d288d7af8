"""Heights and normals as 32-bit EXR."""

from __future__ import annotations

from photostereo.results.formats.format import Format, Job
from photostereo.results.maps import describe_heights, describe_normals, write_heights_exr, write_normals_exr


def _write(job: Job) -> dict[str, str]:
    assert job.surface is not None
    normals, heights = job.folder / "normals.exr", job.folder / "depth.exr"
    write_normals_exr(normals, job.normals, job.mask, flip_y=job.flip_y, size=job.size)
    write_heights_exr(heights, job.surface.depth, job.mask, job.size)
    job.files += [normals.name, heights.name]
    return {
        normals.name: describe_normals(job.flip_y, signed=True),
        heights.name: describe_heights(job.size, "NaN"),
    }


FORMAT = Format(
    "exr", "heights and normals as 32-bit EXR", _write, of_surface=True, files=("normals.exr", "depth.exr")
)
