"""EXIF as cameras and phones write it, and orientation tags, which turn no photograph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from PIL.TiffImagePlugin import IFDRational

from photostereo.capture import load
from photostereo.core.findings import by_code
from photostereo.io.camera import focal_in_pixels, read_shot
from photostereo.io.images import decode_image

EXIF, GPS, INTEROP = 0x8769, 0x8825, 0xA005
EXPOSURE, F_NUMBER, ISO, SHUTTER_APEX, FOCAL, WHITE, FOCAL_35 = (
    0x829A,
    0x829D,
    0x8827,
    0x9201,
    0x920A,
    0xA403,
    0xA405,
)
WIDTH, HEIGHT, PLANE_X, PLANE_Y, PLANE_UNIT, MAKER_NOTE, COMMENT = (
    0xA002,
    0xA003,
    0xA20E,
    0xA20F,
    0xA210,
    0x927C,
    0x9286,
)
MAKE, MODEL, ORIENTATION, XP_TITLE, RATING = 0x010F, 0x0110, 0x0112, 0x9C9B, 0x4746
GRAY = np.tile(np.arange(60, dtype=np.uint8) * 4, (40, 1))


def ratio(above: int, below: int) -> IFDRational:
    return IFDRational(above, below)


def camera_block(first: dict[int, Any], inner: dict[int, Any], **further: dict[int, Any]) -> bytes:
    info = Image.Exif()
    info.update(first)
    info.get_ifd(EXIF).update(inner)
    if "gps" in further:
        info.get_ifd(GPS).update(further["gps"])
    return info.tobytes()


#: What the maker writes, and the (seconds, iso, aperture, focal length, focal length in pixels) that it means.
BRANDS: dict[str, tuple[dict[int, Any], dict[int, Any], tuple[float, float, float, float, float | None]]] = {
    "Canon": (
        {MAKE: "Canon", MODEL: "Canon EOS 5D", ORIENTATION: 8, XP_TITLE: "Münze".encode("utf-16-le") + b"\0\0"},
        {
            EXPOSURE: ratio(1, 160),
            F_NUMBER: ratio(8, 1),
            ISO: 100,
            SHUTTER_APEX: ratio(483328, 65536),
            FOCAL: ratio(100, 1),
            WHITE: 1,
            MAKER_NOTE: bytes(range(256)) * 8,
            COMMENT: b"\0" * 64,
            WIDTH: 60,
            HEIGHT: 40,
            PLANE_X: ratio(60000, 1414),  # pixels per inch
            PLANE_Y: ratio(40000, 942),
            PLANE_UNIT: 2,
        },
        (1 / 160, 100, 8, 100, 100 * 60000 / 1414 / 25.4),
    ),
    "Nikon": (
        {MAKE: "NIKON CORPORATION", ORIENTATION: 6},
        {
            EXPOSURE: ratio(10, 600),
            F_NUMBER: ratio(110, 10),
            ISO: (200,),
            FOCAL: ratio(600, 10),
            FOCAL_35: 90,
            WHITE: 0,
            MAKER_NOTE: b"Nikon\0\2\x10\0\0MM\0*\0\0\0\x08\xff\xff" + b"\xee" * 300,
        },
        (1 / 60, 200, 11, 60, 90 * np.hypot(60, 40) / 43.27),
    ),
    "Sony": (
        {MAKE: "SONY", RATING: 0},
        {EXPOSURE: ratio(1, 4), F_NUMBER: ratio(56, 10), ISO: (65535, 0), 0x8830: 2, 0x8832: 102400, FOCAL: ratio(350, 10)},
        (0.25, 102400, 5.6, 35, None),
    ),
    "phone": (
        {MAKE: "Google", MODEL: "Pixel", ORIENTATION: 6},
        {
            EXPOSURE: ratio(33333, 1000000),
            F_NUMBER: ratio(185, 100),
            ISO: 55,
            FOCAL: ratio(4380, 1000),
            FOCAL_35: 0,  # not known
            WIDTH: 60,
            HEIGHT: 40,
        },
        (0.033333, 55, 1.85, 4.38, None),
    ),
}  # fmt: skip


@pytest.mark.parametrize("brand", BRANDS)
@pytest.mark.parametrize("suffix", [".jpg", ".tif", ".png"])
def test_each_maker_is_understood(tmp_path: Path, brand: str, suffix: str) -> None:
    first, inner, (seconds, iso, aperture, focal, pixels) = BRANDS[brand]
    path = tmp_path / f"shot{suffix}"
    block = camera_block(first, inner, gps={1: "N", 2: (ratio(52, 1), ratio(30, 1), ratio(0, 1))})
    Image.fromarray(GRAY).save(path, exif=block)
    shot = read_shot(path)
    found = (shot.seconds, shot.iso, shot.aperture, shot.focal)
    assert found == pytest.approx((seconds, iso, aperture, focal))
    assert not shot.damaged and shot.srgb == (suffix == ".jpg")
    assert focal_in_pixels([shot] * 3, (40, 60)) == (
        None if pixels is None else pytest.approx(pixels)
    )
    assert focal_in_pixels([shot] * 3, (60, 40)) == focal_in_pixels([shot] * 3, (40, 60))


def test_the_unit_of_the_sensor_is_an_inch_where_none_is_named(tmp_path: Path) -> None:
    entries = {FOCAL: ratio(50, 1), PLANE_X: ratio(1000, 1), WIDTH: 60, HEIGHT: 40}
    Image.fromarray(GRAY).save(tmp_path / "a.jpg", exif=camera_block({}, entries))
    assert focal_in_pixels([read_shot(tmp_path / "a.jpg")], (40, 60)) == pytest.approx(
        50 * 1000 / 25.4
    )


@pytest.mark.parametrize("orientation", [2, 3, 6, 8])
@pytest.mark.parametrize("packing", [".jpg", ".png", "raw", "tiff_lzw", "tiff_deflate"])
def test_orientation_tags_turn_nothing(tmp_path: Path, orientation: int, packing: str) -> None:
    if packing.startswith("."):
        path, how = tmp_path / f"a{packing}", {"exif": camera_block({ORIENTATION: orientation}, {})}
    else:
        path, how = (
            tmp_path / "a.tif",
            {"compression": packing, "tiffinfo": {ORIENTATION: orientation}},
        )
    Image.fromarray(GRAY).save(path, **how)
    assert np.abs(decode_image(path).astype(int) - GRAY).max() < 6


def test_a_capture_whose_orientation_tags_differ_is_one_capture(tmp_path: Path) -> None:
    """A camera that looks down cannot tell which way is up: its tags change from photograph to photograph."""
    for number, orientation in enumerate((1, 6, 8, 3)):
        Image.fromarray(GRAY).save(
            tmp_path / f"{number}.tif", compression="tiff_lzw", tiffinfo={ORIENTATION: orientation}
        )
    (tmp_path / "lights.txt").write_text("0 0 1\n0.6 0 0.8\n0 0.6 0.8\n-0.6 0 0.8\n")
    images = load(tmp_path).images
    assert images.shape == (4, 40, 60) and np.ptp(images, axis=0).max() < 1e-6


@pytest.mark.parametrize("fault", ["pointer", "cut"])
def test_unreadable_exif_is_told_and_does_no_harm(tmp_path: Path, fault: str) -> None:
    block = camera_block({MAKE: "Canon"}, {EXPOSURE: ratio(1, 160), ISO: 100})
    where = block.index(b"\x87\x69") if block[6:8] == b"MM" else block.index(b"\x69\x87")
    broken = bytearray(block)
    if fault == "pointer":
        broken[where + 8 : where + 12] = b"\xff\xff\xff\x7f"  # to nowhere
    else:
        broken = broken[: where + 6]
    for number in range(4):
        Image.fromarray(GRAY).save(
            tmp_path / f"{number}.jpg", exif=bytes(broken if number else block)
        )
    (tmp_path / "lights.txt").write_text("0 0 1\n0.6 0 0.8\n0 0.6 0.8\n-0.6 0 0.8\n")
    capture = load(tmp_path)
    assert np.ptp(capture.images, axis=0).max() < 1e-6
    assert by_code(capture.origin.notes)["exif-damaged"].values == {"damaged": 3, "photographs": 4}
