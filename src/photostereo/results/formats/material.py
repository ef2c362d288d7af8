"""The maps of a flat sample for renderers and game engines."""

from __future__ import annotations

import json

from photostereo.core.errors import ParameterError
from photostereo.results.formats.format import Format, Job
from photostereo.results.material import encode_material, make_material
from photostereo.results.roughness import estimate_roughness


def write_material(job: Job) -> dict[str, str]:
    """Write the subfolder ``material/``; return the meanings of its files."""
    rough = None
    if job.capture is not None:
        if job.capture.frame != job.mask.shape:
            raise ParameterError(
                f"The photographs are {job.capture.frame[1]} × {job.capture.frame[0]} pixels, the result is "
                f"{job.mask.shape[1]} × {job.mask.shape[0]}: they are not from the same capture.",
                code="sizes-differ",
            )
        rough = estimate_roughness(job.capture, job.normals)
    assert job.albedo is not None
    material = make_material(
        job.normals,
        job.albedo,
        job.mask,
        roughness=rough,
        tileable=job.tileable,
        stretch=job.stretch,
        size=job.texels,
    )
    files = encode_material(material, job.size, job.stem)
    for name, content in files.items():
        job.write(f"material/{name}", content)
    facts = f"{job.stem}.json"
    said = {
        **json.loads(files[facts])["maps"],
        facts: "Size, heights, quality of the seams, meaning of each map.",
    }
    return {f"material/{name}": words for name, words in said.items()}


FORMAT = Format(write_material)
