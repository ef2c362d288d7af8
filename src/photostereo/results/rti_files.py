"""Files for RTI viewers: PTM (LRGB) for RTIViewer and archives, relight's web format (HSH) for OpenLIME.

References
----------
T. Malzbender, D. Gelb, "Polynomial Texture Map (.ptm) File Format", version 1.2, Hewlett-Packard, 2001.
F. Ponchio et al., "Relight web format", https://github.com/cnr-isti-vclab/relight
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.errors import OutputError
from photostereo.core.units import PixelSize
from photostereo.io.json_text import json_bytes
from photostereo.io.png import encode_png
from photostereo.results.relighting import LightModel, quantize

#: The order of a PTM, u², v², uv, u, v, 1, among 1, u, v, u², uv, v².
PTM_ORDER = (3, 5, 4, 1, 2, 0)


def encoding_in_words(linear: bool) -> str:
    """What the values are."""
    return "linear intensities" if linear else "sRGB, as viewers show it"


def encode_ptm(model: LightModel) -> bytes:
    """A PTM_1.2 file, PTM_FORMAT_LRGB: six bytes of luminance per pixel, then three of color, rows bottom up.

    A reader takes ``(byte − bias) · scale`` for a coefficient; the luminance that they make is in 0 … 255.
    ``model`` must be in the basis ``ptm``.
    """
    planes, scale, bias = quantize(model.coefficients, model.mask)
    height, width = model.mask.shape
    order = list(PTM_ORDER)
    head = "\n".join(
        [
            "PTM_1.2",
            "PTM_FORMAT_LRGB",
            str(width),
            str(height),
            " ".join(f"{255.0 * value:.9g}" for value in scale[order]),
            " ".join(str(int(value)) for value in bias[order]),
            "",
        ]
    )
    return head.encode() + planes[::-1, :, order].tobytes() + model.color[::-1].tobytes()


def encode_relight(model: LightModel, size: PixelSize) -> dict[str, bytes]:
    """File name → content of a relight folder: ``info.json`` and a picture ``plane_K`` for every function K.

    The pictures hold the coefficients of red, green and blue. They are PNG, as ``info.json`` says; the same as
    JPEG beside them, for readers that know no other pictures.
    """
    height, width = model.mask.shape
    count = model.coefficients.shape[-1]
    planes = np.empty((count, height, width, 3), dtype=np.uint8)
    scale, bias = np.empty((count, 3)), np.empty((count, 3))
    for channel in range(3):
        tinted = model.coefficients * (model.color[..., channel, None] / np.float32(255))
        found, scale[:, channel], bias[:, channel] = quantize(tinted, model.mask)
        planes[..., channel] = np.moveaxis(found, -1, 0)
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
        info["pixelSizeInMM"] = size.millimetres
    files = {"info.json": json_bytes(info, indent=1)}
    for number, picture in enumerate(planes):
        words = (
            f"Coefficient {number} of the light in R, G, B: (value / 255 - bias) * scale, both in info.json."
        )
        files[f"plane_{number}.png"] = encode_png(picture, size=size, comment=words)
        files[f"plane_{number}.jpg"] = _encode_jpeg(picture)
    return files


def _encode_jpeg(picture: NDArray[np.uint8]) -> bytes:
    import cv2

    full = [cv2.IMWRITE_JPEG_QUALITY, 100, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, 0x111111]  # 4:4:4
    done, data = cv2.imencode(".jpg", picture[..., ::-1], full)
    if not done:
        raise OutputError(
            f"A picture of shape {picture.shape} cannot be encoded as JPEG.",
            code="cannot-encode",
            shape=picture.shape,
        )
    return bytes(data.tobytes())
