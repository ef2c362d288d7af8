"""PTM (LRGB), fitted to the relit result, for RTIViewer and archives.

References
----------
T. Malzbender, D. Gelb, "Polynomial Texture Map (.ptm) File Format", version 1.2, Hewlett-Packard,
2001.
"""

from __future__ import annotations

from photostereo.results.formats.format import Format, Job
from photostereo.results.relighting import LightModel, encoding_in_words, fit_lights, quantize

#: Indices of the PTM order u², v², uv, u, v, 1 in 1, u, v, u², uv, v².
PTM_ORDER = (3, 5, 4, 1, 2, 0)


def encode_ptm(model: LightModel) -> bytes:
    """Encode a PTM_1.2 file, PTM_FORMAT_LRGB.

    It has six bytes of luminance per pixel, then three of color.

    Rows run bottom up. A reader decodes a coefficient as ``(byte − bias) · scale``; the resulting
    luminance is in 0 … 255. ``model`` must use the basis ``ptm``.
    """
    planes, scale, bias = quantize(model.coefficients, model.mask)
    height, width = model.mask.shape
    order = list(PTM_ORDER)
    scales = " ".join(f"{255.0 * value:.9g}" for value in scale[order])
    biases = " ".join(str(int(value)) for value in bias[order])
    head = f"PTM_1.2\nPTM_FORMAT_LRGB\n{width}\n{height}\n{scales}\n{biases}\n"
    return head.encode() + planes[::-1, :, order].tobytes() + model.color[::-1].tobytes()


def _write(job: Job) -> dict[str, str]:
    result = job.result
    model = fit_lights(result.normals, result.albedo, result.mask, linear=job.linear)
    name = f"{job.stem}.ptm"
    job.write(name, encode_ptm(model))
    encoding = encoding_in_words(job.linear)
    return {name: f"PTM 1.2, LRGB, fitted to the relit result; {encoding}."}


FORMAT = Format(
    title="PTM",
    purpose="relightable picture, for RTIViewer and archives",
    write=_write,
)
