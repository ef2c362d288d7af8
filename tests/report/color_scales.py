"""Make the color scales of the pages: ``python -m tests.report.color_scales > src/photostereo/report/static/colors.json``.

OKLab is B. Ottosson's color space (https://bottosson.github.io/posts/oklab/, public domain).
"""

from __future__ import annotations

import json

import numpy as np

from photostereo.core.conventions import linear_from_srgb, srgb_from_linear

#: Anchors from low to high, interpolated linearly in OKLab, where equal distances look equal.
SCALES: dict[str, tuple[str, ...]] = {
    "ember": ("#15132b", "#4b1d6b", "#96286f", "#d9485a", "#f58b4c", "#fbd46d", "#fdf8d8"),
    "depth": ("#14213d", "#1f4e79", "#2a8a94", "#6fbf8f", "#cfe3a0", "#fbf6e0"),
    "weight": ("#7a1f2b", "#c9543f", "#e9b17b", "#efe9dd", "#8fc0c0", "#2f7f8f", "#0f4a5e"),
    "sky": ("#000000", "#f6f3ee"),
}

LMS_FROM_RGB = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
LAB_FROM_ROOTS = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def made_table(scale: str) -> np.ndarray:
    """256 sRGB colors of a scale."""
    anchors = (
        np.array([[int(code[i : i + 2], 16) for i in (1, 3, 5)] for code in SCALES[scale]]) / 255.0
    )
    roots = np.cbrt(linear_from_srgb(anchors) @ LMS_FROM_RGB.T)
    lab = roots @ LAB_FROM_ROOTS.T
    # Space the anchors by their distance in OKLab so that the scale is uniform.
    distance = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(lab, axis=0), axis=1))])
    wanted = np.linspace(0, distance[-1], 256)
    even = np.stack([np.interp(wanted, distance, lab[:, axis]) for axis in range(3)], axis=1)
    linear = (even @ np.linalg.inv(LAB_FROM_ROOTS).T) ** 3 @ np.linalg.inv(LMS_FROM_RGB).T
    return np.rint(255 * srgb_from_linear(linear)).astype(np.uint8)


if __name__ == "__main__":
    tables = {scale: made_table(scale).tobytes().hex() for scale in SCALES}
    print(json.dumps(tables, indent=1))  # noqa: T201
