"""RTI files show the pictures of the result.

They are read by two readers that are written from what is published about the formats and use nothing of this package:

T. Malzbender, D. Gelb, "Polynomial Texture Map (.ptm) File Format", version 1.2, Hewlett-Packard, 2001.
P. Gautron et al., "A Novel Hemispherical Basis for Accurate and Efficient Rendering", EGSR 2004.
F. Ponchio et al., relight, https://github.com/cnr-isti-vclab/relight (its web format: info.json and plane_K pictures).
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.special import lpmv

from photostereo.core.shading import relight
from photostereo.core.units import PixelSize
from photostereo.results.formats.ptm import encode_ptm
from photostereo.results.formats.relight import encode_relight
from photostereo.results.relighting import BASES, fit_lights, spread_lights

#: Version, format, width, height, six scales, six biases: words of ASCII between white space, "an optional space
#: before the newline" that ends them; what follows is binary.
WORD = rb"(\S+)\s+"
HEADER = re.compile(WORD * 15 + rb"(\S+) ?\n")


class PtmFile:
    """PTM_1.2, PTM_FORMAT_LRGB: a block of a0 … a5 for every texel, a block of R, G, B, both from bottom to top."""

    def __init__(self, data: bytes) -> None:
        head = HEADER.match(data)
        assert head is not None, "no header of a PTM"
        version, kind, width, height, *numbers = (word.decode("ascii") for word in head.groups())
        assert (version, kind) == ("PTM_1.2", "PTM_FORMAT_LRGB")
        self.width, self.height = int(width), int(height)
        self.scale = [float(word) for word in numbers[:6]]
        self.bias = [int(word) for word in numbers[6:]]
        self.body = data[head.end() :]
        assert len(self.body) == 9 * self.width * self.height, (
            "nine bytes for every texel, and no more"
        )

    def texel(self, x: int, y: int, u: float, v: float) -> tuple[float, float, float]:
        """The color of the pixel in column x of row y, counted from above, under a light, in 0 … 255."""
        number = (self.height - 1 - y) * self.width + x
        raw = self.body[6 * number : 6 * number + 6]
        a0, a1, a2, a3, a4, a5 = ((raw[k] - self.bias[k]) * self.scale[k] for k in range(6))
        luminance = a0 * u * u + a1 * v * v + a2 * u * v + a3 * u + a4 * v + a5
        start = 6 * self.width * self.height + 3 * number
        red, green, blue = (
            min(255.0, max(0.0, luminance * value / 255)) for value in self.body[start : start + 3]
        )
        return red, green, blue

    def picture(self, u: float, v: float) -> np.ndarray:
        rows = [[self.texel(x, y, u, v) for x in range(self.width)] for y in range(self.height)]
        return np.array(rows)


#: (l, m) of the planes of an "hsh" file, in order. relight writes the second order (|m| = 2) with the other sign.
HARMONICS = [(0, 0), (1, 1), (1, 0), (1, -1), (2, 2), (2, 1), (2, 0), (2, -1), (2, -2)]


def harmonic(degree: int, order: int, u: float, v: float) -> float:
    """Gautron's hemispherical harmonic: associated Legendre polynomials of 2 cos θ − 1, normalized, without the
    phase of Condon and Shortley (which scipy has); the sign is relight's."""
    cos_theta, phi, m = math.sqrt(max(0.0, 1 - u * u - v * v)), math.atan2(v, u), abs(order)
    factor = math.sqrt(
        (2 * degree + 1) / (2 * math.pi) * math.factorial(degree - m) / math.factorial(degree + m)
    )
    legendre = (-1) ** m * float(lpmv(m, degree, 2 * cos_theta - 1))
    wave = (
        1.0
        if order == 0
        else math.sqrt(2) * (math.cos(m * phi) if order > 0 else math.sin(m * phi))
    )
    return (-1.0 if m == 2 else 1.0) * factor * legendre * wave


def relight_picture(folder: Path, u: float, v: float, suffix: str = "") -> np.ndarray:
    """A folder of relight under a light, in 0 … 255: Σ_k h_k (c_k − bias_k) · scale_k with c_k in 0 … 1."""
    info = json.loads((folder / "info.json").read_text())
    assert (info["type"], info["colorspace"]) == ("hsh", "rgb")
    assert info["nplanes"] == 3 * len(HARMONICS)
    (material,) = info["materials"]
    shape = (info["height"], info["width"], 3)
    total = np.zeros(shape)
    for number, (degree, order) in enumerate(HARMONICS):
        with Image.open(folder / f"plane_{number}.{suffix or info['format']}") as image:
            plane = np.asarray(image.convert("RGB"), dtype=float) / 255
        assert plane.shape == shape
        part = slice(3 * number, 3 * number + 3)
        total += (
            harmonic(degree, order, u, v)
            * (plane - material["bias"][part])
            * np.array(material["scale"][part])
        )
    return np.clip(255 * total, 0, 255)


#: Two texels side by side, written by hand from the description: a0 … a5 of each, then the two colors.
BY_HAND = (
    b"PTM_1.2 \nPTM_FORMAT_LRGB\n2 1\n2 2 2 2 2 2 \n128 128 128 128 128 0\n"
    + bytes([138, 128, 108, 178, 128, 50, 128, 148, 128, 128, 88, 100])
    + bytes([255, 102, 0, 51, 255, 255])
)


def test_the_reader_of_ptm_reads_what_was_written_by_hand() -> None:
    file = PtmFile(BY_HAND)
    # L = 20 u² − 40 uv + 100 u + 100 and 40 v² − 80 v + 200.
    assert file.texel(0, 0, 0.5, -0.5) == pytest.approx((165, 66, 0))
    assert file.texel(1, 0, 0.5, -0.5) == pytest.approx((50, 250, 250))
    assert file.texel(1, 0, 0.0, -1.0) == pytest.approx((64, 255, 255))
    # The rows begin at the bottom.
    upright = PtmFile(BY_HAND.replace(b"2 1\n", b"1\n2\n"))
    assert upright.texel(0, 1, 0.5, -0.5) == pytest.approx((165, 66, 0))
    with pytest.raises(AssertionError, match="nine bytes"):
        PtmFile(BY_HAND + b" ")


#: What OpenLIME (ShaderRTI.js, HSH.lightWeights, with its π = 3.1415) gives for three lights.
OPENLIME = {
    (0.6, 0.0): [0.3989, 0.5528, 0.4146, 0.0, -0.4944, 0.7417, 0.0357, 0.0, 0.0],
    (0.36, 0.48): [0.3989, 0.3317, 0.4146, 0.4422, 0.1384, 0.445, 0.0357, 0.5933, -0.4747],
    (-0.48, -0.6): [0.3989, -0.4145, 0.1935, -0.5179, 0.156, -0.2595, -0.3411, -0.3243, -0.6947],
}


@pytest.mark.parametrize("light", OPENLIME)
def test_harmonics_are_those_of_the_viewer(light: tuple[float, float]) -> None:
    found = [harmonic(*one, *light) for one in HARMONICS]
    assert found == pytest.approx(OPENLIME[light], abs=5e-4)
    direction = np.array([*light, np.sqrt(1 - light[0] ** 2 - light[1] ** 2)])
    assert BASES["hsh"](direction[None])[0] == pytest.approx(found, abs=1e-12)


@pytest.fixture(scope="module")
def shallow(bumps):
    """The relief of the other tests, flattened to that of a coin, so that little of it turns from the light."""
    normals = bumps.normals * np.array([0.25, 0.25, 1.0])
    length = np.linalg.norm(normals, axis=-1, keepdims=True)
    return normals / np.where(length > 0, length, 1), bumps.albedo, bumps.mask


LIGHTS = spread_lights(6, 30.0)


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("name", ["bumps", "shallow"])
def test_ptm_is_its_polynomial_to_two_levels(request, name: str, linear: bool) -> None:
    given = request.getfixturevalue(name)
    normals, albedo, mask = (
        given if name == "shallow" else (given.normals, given.albedo, given.mask)
    )
    model = fit_lights(normals, albedo, mask, linear=linear)
    data = encode_ptm(model)
    for light in LIGHTS:
        exact = model.coefficients @ BASES["ptm"](light[None])[0]
        wanted = np.clip(exact[..., None] * model.color, 0, 255)
        assert np.abs(PtmFile(data).picture(*light[:2]) - wanted).max() < 2.0


def test_ptm_of_a_coin_shows_our_picture(shallow) -> None:
    """A quadratic follows √(1 − u² − v²) to 2 % only: so far, and no further, is the picture from ours."""
    data = encode_ptm(fit_lights(*shallow, linear=True))
    off = [
        np.abs(PtmFile(data).picture(*one[:2]) - 255 * relight(*shallow, one, linear=True))[
            shallow[2]
        ]
        for one in LIGHTS
    ]
    assert np.mean(off) < 3.0
    assert np.max(off) < 0.04 * 255
    # The light from the right must brighten what faces right, that from above what faces up.
    file = PtmFile(data)
    right = file.picture(0.5, 0.0) - file.picture(-0.5, 0.0)
    up = file.picture(0.0, 0.5) - file.picture(0.0, -0.5)
    inside = shallow[2]
    for difference, axis in ((right, 0), (up, 1)):
        assert np.corrcoef(difference[inside][:, 1], shallow[0][inside][:, axis])[0, 1] > 0.95


def test_relight_of_a_coin_equals_our_picture(shallow, tmp_path: Path) -> None:
    for name, content in encode_relight(
        fit_lights(*shallow, basis="hsh", linear=True), PixelSize.of("0.1mm")
    ).items():
        (tmp_path / name).write_bytes(content)
    assert json.loads((tmp_path / "info.json").read_text())["pixelSizeInMM"] == 0.1
    for light in LIGHTS:
        ours = 255 * relight(*shallow, light, linear=True)
        assert np.abs(relight_picture(tmp_path, *light[:2]) - ours)[shallow[2]].max() < 2.0
        assert np.abs(relight_picture(tmp_path, *light[:2], "jpg") - ours)[shallow[2]].mean() < 2.0


def test_relight_as_the_eye_sees_it(bumps, tmp_path: Path) -> None:
    model = fit_lights(bumps.normals, bumps.albedo, bumps.mask, basis="hsh")
    for name, content in encode_relight(model, PixelSize()).items():
        (tmp_path / name).write_bytes(content)
    off = []
    for light in LIGHTS:
        ours = 255 * relight(bumps.normals, bumps.albedo, bumps.mask, light)
        off.append(np.abs(relight_picture(tmp_path, *light[:2]) - ours)[bumps.mask])
    assert np.mean(off) < 5.0
