"""Every supported file format gives back the numbers that were put into it."""

from __future__ import annotations

import sys

import cv2
import numpy as np
import pytest
import tifffile

from photostereo.core.errors import CaptureError, MissingDependencyError
from photostereo.io.images import decode_image, list_images

RNG = np.random.default_rng(0)
GRAY8, GRAY16 = (
    RNG.integers(0, 256, (13, 17), dtype=np.uint8),
    RNG.integers(0, 65536, (13, 17), dtype=np.uint16),
)
RGB8, RGB16 = (
    RNG.integers(0, 256, (13, 17, 3), dtype=np.uint8),
    RNG.integers(0, 65536, (13, 17, 3), dtype=np.uint16),
)


def encode(path, picture, options=()):
    """Write with OpenCV through memory, RGB(A) order in, any file name."""
    if picture.ndim == 3:
        picture = (
            picture[..., [2, 1, 0, 3][: picture.shape[2]]]
            if picture.shape[2] == 4
            else picture[..., ::-1]
        )
    path.write_bytes(
        cv2.imencode(path.suffix, np.ascontiguousarray(picture), list(options))[1].tobytes()
    )
    return path


@pytest.mark.parametrize(
    "picture", [GRAY8, GRAY16, RGB8, RGB16], ids=["gray8", "gray16", "rgb8", "rgb16"]
)
@pytest.mark.parametrize("suffix", [".png", ".tif"])
def test_lossless_formats_keep_every_bit(tmp_path, picture, suffix):
    decoded = decode_image(encode(tmp_path / f"a{suffix}", picture))
    assert decoded.dtype == picture.dtype
    np.testing.assert_array_equal(decoded, picture)


@pytest.mark.parametrize("picture", [RGB8, RGB16], ids=["8", "16"])
def test_alpha_is_dropped(tmp_path, picture):
    alpha = np.full((*picture.shape[:2], 1), 77, picture.dtype)
    path = encode(tmp_path / "a.png", np.concatenate([picture, alpha], axis=2))
    np.testing.assert_array_equal(decode_image(path), picture)


def test_tiff_written_by_others(tmp_path):
    floats = RNG.normal(size=(13, 17, 3)).astype(np.float32) * 100
    cases = {
        "float": (floats, {}),
        "deflate": (RGB16, {"compression": "zlib"}),
        "planar": (np.moveaxis(RGB16, -1, 0), {"planarconfig": "separate", "photometric": "rgb"}),
        "big": (RGB16, {"bigtiff": True}),
        "bigendian": (RGB16, {"byteorder": ">"}),
        "tiled": (RGB16, {"tile": (16, 16)}),
        "half": (floats.astype(np.float16), {}),
    }
    for name, (data, options) in cases.items():
        path = tmp_path / f"{name}.tif"
        tifffile.imwrite(path, data, **({"photometric": "rgb"} | options))
        expected = np.moveaxis(data, 0, -1) if name == "planar" else data
        np.testing.assert_array_equal(decode_image(path), expected, err_msg=name)


def test_lzw_tiff_needs_no_further_package(tmp_path):
    path = encode(tmp_path / "a.tif", RGB16, [cv2.IMWRITE_TIFF_COMPRESSION, 5])
    np.testing.assert_array_equal(decode_image(path), RGB16)


def test_white_is_zero_tiff_is_inverted(tmp_path):
    tifffile.imwrite(tmp_path / "a.tif", GRAY8, photometric="miniswhite")
    np.testing.assert_array_equal(decode_image(tmp_path / "a.tif"), 255 - GRAY8)


def test_jpeg_is_close(tmp_path):
    smooth = np.broadcast_to(
        np.linspace(0, 255, 64).astype(np.uint8)[:, None, None], (64, 64, 3)
    ).copy()
    smooth[..., 0] = 200
    decoded = decode_image(encode(tmp_path / "a.jpg", smooth, [cv2.IMWRITE_JPEG_QUALITY, 100]))
    assert decoded.dtype == np.uint8
    assert np.abs(decoded.astype(int) - smooth).max() <= 4


def test_exr(tmp_path):
    OpenEXR = pytest.importorskip("OpenEXR")
    rgb = RNG.random((13, 17, 3)).astype(np.float32) * 5
    header = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage}
    for name, channels, expected in (
        ("rgb.exr", {"RGB": rgb}, rgb),
        ("gray.exr", {"Y": rgb[..., 0].copy()}, rgb[..., 0]),
        ("half.exr", {"RGB": rgb.astype(np.float16)}, rgb.astype(np.float16).astype(np.float32)),
    ):
        with OpenEXR.File(header, channels) as file:
            file.write(str(tmp_path / name))
        decoded = decode_image(tmp_path / name)
        assert decoded.dtype == np.float32
        np.testing.assert_array_equal(decoded, expected)
    whole = (tmp_path / "rgb.exr").read_bytes()
    (tmp_path / "cut.exr").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CaptureError) as caught:
        decode_image(tmp_path / "cut.exr")
    assert (caught.value.code, caught.value.file.name) == ("damaged-image", "cut.exr")


def write_dng(path, bayer):
    """The least that makes a digital negative: one Bayer plane with its pattern and a color matrix."""
    matrix = [x for value in np.eye(3).ravel() for x in (int(value * 10000), 10000)]
    tags = [
        (50706, "B", 4, bytes([1, 4, 0, 0]), True),  # DNGVersion
        (33421, "H", 2, (2, 2), True),  # CFARepeatPatternDim
        (33422, "B", 4, bytes([0, 1, 1, 2]), True),  # CFAPattern: R G / G B
        (50714, "I", 1, 0, True),  # BlackLevel
        (50717, "I", 1, 65535, True),  # WhiteLevel
        (50721, "2i", 9, matrix, True),  # ColorMatrix1
        (50778, "H", 1, 21, True),  # CalibrationIlluminant1: D65
        (50728, "2I", 3, [1, 1, 1, 1, 1, 1], True),  # AsShotNeutral
        (50708, "s", 0, "test camera", True),  # UniqueCameraModel
    ]
    tifffile.imwrite(path, bayer, photometric=32803, extratags=tags)


def test_raw_is_developed_linearly_and_alike(tmp_path):
    pytest.importorskip("rawpy")
    flat = np.zeros((64, 64), dtype=np.uint16)
    flat[0::2, 0::2], flat[0::2, 1::2], flat[1::2, 0::2], flat[1::2, 1::2] = (
        8000,
        60000,
        60000,
        12000,
    )
    results = []
    for number, factor in enumerate((1.0, 0.5, 0.1)):
        write_dng(tmp_path / f"{number}.dng", (flat * factor).astype(np.uint16))
        image = decode_image(tmp_path / f"{number}.dng")
        assert image.dtype == np.uint16
        assert image.shape == (64, 64, 3)
        results.append(image[32, 32].astype(float))
    # No gamma, no brightness or white balance of its own: half the light is half the value, in every channel.
    np.testing.assert_allclose(results[1], 0.5 * results[0], atol=2)
    np.testing.assert_allclose(results[2], 0.1 * results[0], atol=2)
    np.testing.assert_allclose(results[0], [8000, 60000, 12000], rtol=0.01)


def test_raw_that_is_none(tmp_path):
    pytest.importorskip("rawpy")
    (tmp_path / "a.nef").write_bytes(b"this is not a photograph" * 100)
    with pytest.raises(CaptureError) as caught:
        decode_image(tmp_path / "a.nef")
    assert (caught.value.code, caught.value.file.name) == ("damaged-image", "a.nef")
    assert "'" not in caught.value.values["problem"]  # LibRaw's errors are bytes


@pytest.mark.parametrize(
    ("suffix", "module", "extra"), [(".exr", "OpenEXR", "exr"), (".nef", "rawpy", "raw")]
)
def test_missing_extra_says_what_to_install(tmp_path, monkeypatch, suffix, module, extra):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"1234")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError) as caught:
        decode_image(path)
    assert caught.value.code == f"missing-{extra}"


ENCODINGS = {
    "png": (".png", RGB16, ()),
    "jpeg": (".jpg", RGB8, ()),
    "progressive": (".jpg", RGB8, (cv2.IMWRITE_JPEG_PROGRESSIVE, 1)),
    "restarts": (".jpg", RGB8, (cv2.IMWRITE_JPEG_RST_INTERVAL, 1)),
    "tiff": (".tif", RGB16, ()),
    "float": (".tif", RGB8.astype(np.float32), ()),
}


@pytest.mark.parametrize("name", ENCODINGS)
def test_truncation_is_noticed_wherever_it_happens(tmp_path, name):
    suffix, picture, options = ENCODINGS[name]
    path = encode(tmp_path / f"a{suffix}", picture, options)
    whole = path.read_bytes()
    decode_image(path)
    for length in (*range(0, len(whole) - 1, max(1, len(whole) // 23)), len(whole) - 2):
        path.write_bytes(whole[:length])
        with pytest.raises(CaptureError) as caught:
            decode_image(path)
        assert (caught.value.code, caught.value.file) == ("damaged-image", path)


def test_decoders_never_see_truncated_files(tmp_path, monkeypatch):
    """The check is ours: it must not depend on what the installed OpenCV does with half a file."""
    monkeypatch.setattr(cv2, "imdecode", lambda data, flags: RGB8)
    for suffix in (".png", ".jpg"):
        whole = cv2.imencode(suffix, RGB8)[1].tobytes()
        for length in (len(whole) - 2, len(whole) // 2, 40):
            (tmp_path / f"a{suffix}").write_bytes(whole[:length])
            with pytest.raises(CaptureError) as caught:
                decode_image(tmp_path / f"a{suffix}")
            assert caught.value.code == "damaged-image"


def test_thumbnail_in_a_jpeg_does_not_hide_truncation(tmp_path, monkeypatch):
    monkeypatch.setattr(cv2, "imdecode", lambda data, flags: RGB8)
    whole = cv2.imencode(".jpg", RGB8)[1].tobytes()
    thumbnail = cv2.imencode(".jpg", RGB8[:8, :8])[1].tobytes()
    header = b"\xff\xe1" + (len(thumbnail) + 2).to_bytes(2, "big") + thumbnail
    camera = whole[:2] + header + whole[2:]
    (tmp_path / "a.jpg").write_bytes(camera)
    decode_image(tmp_path / "a.jpg")
    (tmp_path / "a.jpg").write_bytes(camera[:-20])
    with pytest.raises(CaptureError) as caught:
        decode_image(tmp_path / "a.jpg")
    assert caught.value.code == "damaged-image"


def test_bytes_after_the_end_are_harmless(tmp_path):
    for suffix in (".png", ".jpg"):
        whole = cv2.imencode(suffix, RGB8)[1].tobytes()
        (tmp_path / f"a{suffix}").write_bytes(whole + b"\0" * 50)
        assert decode_image(tmp_path / f"a{suffix}").shape == RGB8.shape


def test_a_flipped_bit_in_png_is_noticed(tmp_path):
    whole = bytearray(cv2.imencode(".png", RGB8)[1].tobytes())
    whole[len(whole) // 2] ^= 4
    (tmp_path / "a.png").write_bytes(whole)
    with pytest.raises(CaptureError) as caught:
        decode_image(tmp_path / "a.png")
    assert caught.value.code == "damaged-image"


@pytest.mark.parametrize(
    "content", [b"", b"hello, I am no picture", b"\x89PNG\r\n\x1a\n", b"II*\0" + b"\0" * 40]
)
def test_no_image_at_all(tmp_path, content):
    (tmp_path / "a.png").write_bytes(content)
    with pytest.raises(CaptureError) as caught:
        decode_image(tmp_path / "a.png")
    assert (caught.value.code, caught.value.file.name) == ("damaged-image", "a.png")


def test_missing_file_and_strange_number_types(tmp_path):
    with pytest.raises(CaptureError) as caught:
        decode_image(tmp_path / "gone.png")
    assert (caught.value.code, caught.value.file.name) == ("missing-file", "gone.png")
    tifffile.imwrite(tmp_path / "signed.tif", GRAY8.astype(np.int16))
    with pytest.raises(CaptureError) as caught:
        decode_image(tmp_path / "signed.tif")
    assert caught.value.code == "image-type"


def test_names_in_any_script_and_natural_order(tmp_path):
    for name in ("Größe 10.png", "Größe 9.png", "猫.PNG", ".hidden.png", "notes.txt"):
        (tmp_path / name).write_bytes(cv2.imencode(".png", RGB8)[1].tobytes())
    files = list_images(tmp_path)
    assert [file.name for file in files] == ["Größe 9.png", "Größe 10.png", "猫.PNG"]
    for file in files:
        np.testing.assert_array_equal(decode_image(file)[..., ::-1], RGB8)
