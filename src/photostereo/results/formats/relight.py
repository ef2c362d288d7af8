"""relight's web format (HSH), fitted to the relit result, for OpenLIME.

References
----------
F. Ponchio et al., "Relight web format", https://github.com/cnr-isti-vclab/relight
"""

from __future__ import annotations

from typing import Any

import numpy as np

from photostereo.core.units import PixelSize
from photostereo.io.json_text import json_bytes
from photostereo.io.png import encode_picture, encode_png
from photostereo.results.formats.format import Format, Job
from photostereo.results.relighting import LightModel, encoding_in_words, fit_lights, quantize


def encode_relight(model: LightModel, size: PixelSize) -> dict[str, bytes]:
    """Return the files of a relight folder, name → content.

    They are ``info.json`` and a picture ``plane_K`` for every function K.

    The pictures hold the coefficients of red, green and blue. They are PNG, as declared in
    ``info.json``, with JPEG copies for readers that support nothing else.
    """
    height, width = model.mask.shape
    count = model.coefficients.shape[-1]
    planes = np.empty((count, height, width, 3), dtype=np.uint8)
    scale = np.empty((count, 3))
    bias = np.empty((count, 3))
    for channel in range(3):
        tinted = model.coefficients * (model.color[..., channel, None] / np.float32(255))
        picture, scale[:, channel], bias[:, channel] = quantize(tinted, model.mask)
        planes[..., channel] = np.moveaxis(picture, -1, 0)
    info: dict[str, Any] = {
        "width": width,
        "height": height,
        "format": "png",
        "type": model.basis,
        "colorspace": "rgb",
        "nplanes": 3 * count,
        "quality": 100,
        "materials": [
            {
                # (c − bias) · scale with c = byte / 255 is an intensity, 0 … 1.
                "scale": (255.0 * scale).ravel().tolist(),
                "bias": (bias / 255.0).ravel().tolist(),
                "range": [0.0] * (3 * count),
            }
        ],
    }
    if size.known:
        info["pixelSizeInMM"] = size.millimeters
    files = {"info.json": json_bytes(info, indent=1)}
    for number, picture in enumerate(planes):
        comment = (
            f"Coefficient {number} of the light in R, G, B: "
            "(value / 255 - bias) * scale, both in info.json."
        )
        files[f"plane_{number}.png"] = encode_png(picture, size=size, comment=comment)
        files[f"plane_{number}.jpg"] = encode_picture(picture, "jpeg", quality=100, full_color=True)
    return files


def _write(job: Job) -> dict[str, str]:
    result = job.result
    model = fit_lights(result.normals, result.albedo, result.mask, basis="hsh", linear=job.linear)
    for name, content in encode_relight(model, job.size).items():
        job.write(f"relight/{name}", content)
    encoding = encoding_in_words(job.linear)
    return {"relight": f"relight, HSH, RGB, fitted to the relit result; {encoding}."}


FORMAT = Format(
    title="Relight",
    purpose="relightable picture, for OpenLIME on a web page",
    write=_write,
)
