"""A polynomial texture map, fitted to the relit result."""

from __future__ import annotations

from photostereo.results.formats.format import Format, Job
from photostereo.results.relighting import fit_lights
from photostereo.results.rti_files import encode_ptm, encoding_in_words


def _write(job: Job) -> dict[str, str]:
    assert job.albedo is not None
    model = fit_lights(job.normals, job.albedo, job.mask, linear=job.linear)
    job.write(f"{job.stem}.ptm", encode_ptm(model))
    return {f"{job.stem}.ptm": f"PTM 1.2, LRGB, fitted to the relit result; {encoding_in_words(job.linear)}."}


FORMAT = Format("ptm", "a polynomial texture map (RTIViewer, archives)", _write)
