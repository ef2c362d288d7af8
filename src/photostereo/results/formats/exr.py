"""Heights and normals as 32-bit EXR.

Normals are signed, R, G, B = x, y, z; heights are in the channel Z.
"""

from __future__ import annotations

import numpy as np

from photostereo.results.formats.format import Format, Job
from photostereo.results.maps import describe_heights, describe_normals, write_exr


def _write(job: Job) -> dict[str, str]:
    mask = job.surface.mask
    x, y, z = np.moveaxis(np.where(mask[..., None], job.unit_normals, np.float32(0)), -1, 0)
    heights = np.where(mask, job.surface.depth * job.size.millimeters, np.nan)
    planes = {
        "normals.exr": {"R": x, "G": -y if job.flip_y else y, "B": z},
        "depth.exr": {"Z": heights},
    }
    meanings = {
        "normals.exr": describe_normals(job.flip_y, signed=True),
        "depth.exr": describe_heights(job.size, "NaN"),
    }
    for name, channels in planes.items():
        write_exr(job.folder / name, channels, size=job.size, comment=meanings[name])
        job.files.append(name)
    return meanings


FORMAT = Format(
    title="EXR",
    purpose="heights and normals in 32 bits, for compositing",
    write=_write,
    of_surface=True,
    files=("normals.exr", "depth.exr"),
)
