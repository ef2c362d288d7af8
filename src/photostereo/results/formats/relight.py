"""relight's web format, fitted to the relit result."""

from __future__ import annotations

from photostereo.results.formats.format import Format, Job
from photostereo.results.relighting import fit_lights
from photostereo.results.rti_files import encode_relight, encoding_in_words


def _write(job: Job) -> dict[str, str]:
    assert job.albedo is not None
    model = fit_lights(job.normals, job.albedo, job.mask, basis="hsh", linear=job.linear)
    for name, content in encode_relight(model, job.size).items():
        job.write(f"relight/{name}", content)
    return {"relight": f"relight, HSH, RGB, fitted to the relit result; {encoding_in_words(job.linear)}."}


FORMAT = Format("relight", "relight's web format (OpenLIME)", _write)
