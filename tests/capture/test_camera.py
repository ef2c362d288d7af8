"""What cameras write beside the pixels: EXIF, color tags, and what is made of them."""

from __future__ import annotations

import struct
import zlib

import cv2
import numpy as np
import pytest

from photostereo.capture import load
from photostereo.core.conventions import linear_from_srgb
from photostereo.core.findings import by_code
from photostereo.io import camera
from photostereo.io.camera import Shot, exposures, read_shot, shot_of
from photostereo.photographs import protocol


def exif(
    order="<", seconds=(1, 50), iso=200, aperture=(80, 10), focal=(50, 1), white_balance=0
) -> bytes:
    """An EXIF block written by hand: a directory with a pointer to another."""
    mark = b"II*\0" if order == "<" else b"MM\0*"
    entries = [(0x829A, 5, seconds), (0x829D, 5, aperture), (0x8827, 3, iso), (0x920A, 5, focal)]
    entries.append((0xA403, 3, white_balance))
    first, second = 8, 26
    after = second + 2 + 12 * len(entries) + 4
    block = mark + struct.pack(order + "I", first)
    block += struct.pack(order + "HHHIII", 1, 0x8769, 4, 1, second, 0)
    body, tail = struct.pack(order + "H", len(entries)), b""
    for tag, kind, value in entries:
        if kind == 5:
            body += struct.pack(order + "HHII", tag, kind, 1, after + len(tail))
            tail += struct.pack(order + "II", *value)
        else:
            body += struct.pack(order + "HHIHH", tag, kind, 1, value, 0)
    return block + body + struct.pack(order + "I", 0) + tail


def jpeg(picture, block=None) -> bytes:
    plain = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, 100])[1].tobytes()
    if block is None:
        return plain
    body = b"Exif\0\0" + block
    return plain[:2] + b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body + plain[2:]


def png(picture, *chunks) -> bytes:
    plain = cv2.imencode(".png", picture)[1].tobytes()
    extra = b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in chunks
    )
    return plain[:33] + extra + plain[33:]


GRAY = np.tile(np.arange(40, 200, 4, dtype=np.uint8), (40, 1))


@pytest.mark.parametrize("order", ["<", ">"])
def test_exif_is_read_in_jpeg_and_png(order):
    block = exif(order)
    expected = Shot(seconds=0.02, iso=200, aperture=8, focal=50, white_balance=0, srgb=True)
    assert shot_of(jpeg(GRAY, block)) == expected
    assert shot_of(png(GRAY, (b"eXIf", block), (b"sRGB", b"\0"))) == expected


def test_what_is_tagged_as_srgb():
    assert not shot_of(png(GRAY)).srgb
    assert shot_of(png(GRAY, (b"sRGB", b"\0"))).srgb
    assert shot_of(png(GRAY, (b"iCCP", b"sRGB IEC61966-2.1\0\0" + zlib.compress(b"profile")))).srgb
    assert not shot_of(png(GRAY, (b"iCCP", b"linear\0\0" + zlib.compress(b"profile")))).srgb
    assert shot_of(png(GRAY, (b"cICP", b"\x01\x0d\0\x01"))).srgb
    assert not shot_of(
        png(GRAY, (b"cICP", b"\x01\x08\0\x01"), (b"sRGB", b"\0"))
    ).srgb  # linear, by the newer tag


def test_damaged_entries_count_as_absent(tmp_path):
    whole = jpeg(GRAY, exif())
    for end in range(0, 200, 3):
        shot_of(whole[:end])
    rng = np.random.default_rng(0)
    for _ in range(300):
        bytes_ = bytearray(whole[:260])
        for place in rng.integers(0, len(bytes_), 4):
            bytes_[place] = rng.integers(256)
        shot_of(bytes(bytes_))
    assert read_shot(tmp_path / "none.jpg") == Shot()
    (tmp_path / "empty.jpg").touch()
    assert read_shot(tmp_path / "empty.jpg") == Shot()


def write(folder, pictures, suffix=".jpg"):
    folder.mkdir()
    for number, data in enumerate(pictures):
        (folder / f"{number}{suffix}").write_bytes(data)
    (folder / "lights.txt").write_text("0 0 1\n0.6 0 0.8\n0 0.6 0.8\n")
    return folder


def test_the_curve_of_jpeg_and_tagged_png_is_undone_unless_told_otherwise(tmp_path):
    tagged = write(tmp_path / "tagged", [png(GRAY, (b"sRGB", b"\0"))] * 3, ".png")
    plain = write(tmp_path / "plain", [png(GRAY)] * 3, ".png")
    expected = linear_from_srgb(GRAY / 255.0)
    assert np.allclose(load(tagged).images[0], expected, atol=1e-6)
    assert np.allclose(load(plain).images[0], GRAY / 255.0, atol=1e-6)
    assert np.allclose(load(tagged, srgb=False).images[0], GRAY / 255.0, atol=1e-6)
    assert np.allclose(load(plain, srgb=True).images[0], expected, atol=1e-6)
    photographs = write(tmp_path / "jpeg", [jpeg(GRAY)] * 3)
    assert np.allclose(load(photographs).images[0], expected, atol=0.03)
    assert "srgb-undone" in by_code(load(photographs).origin.notes)
    assert "srgb-undone" not in by_code(load(plain).origin.notes)


def test_exposure_time_and_sensitivity_are_compensated(tmp_path):
    double = np.rint(255 * np.clip(_encoded(2 * linear_from_srgb(GRAY / 255.0)), 0, 1)).astype(
        np.uint8
    )
    shots = [jpeg(GRAY, exif(seconds=(1, 50))), jpeg(double, exif(seconds=(1, 25)))]
    place = write(tmp_path / "c", [*shots, jpeg(double, exif(iso=400))])
    capture = load(place)
    dark = double < 250  # what is not saturated
    assert np.abs(capture.images[1] / capture.images[0] - 1)[dark].max() < 0.06
    assert np.abs(capture.images[2] / capture.images[0] - 1)[dark].max() < 0.06
    assert by_code(capture.origin.notes)["exposure-compensated"].values["factor"] == pytest.approx(
        2
    )


def _encoded(linear):
    return 1.055 * linear ** (1 / 2.4) - 0.055


def test_what_changes_is_named_and_never_guessed():
    factors, notes = exposures(
        [Shot(aperture=4, focal=50, white_balance=0), Shot(aperture=8, focal=70, white_balance=1)]
    )
    assert factors is None
    assert [note.code for note in notes] == [
        "aperture-changes",
        "focal-changes",
        "white-balance-changes",
    ]
    factors, notes = exposures([Shot(seconds=1), Shot(seconds=2), Shot()])
    assert factors is None and by_code(notes)["exposure-not-recorded"].values["missing"] == 1
    assert exposures([Shot(seconds=0.02), Shot(seconds=0.02)]) == (None, ())


def _place(tmp_path, name, pictures, **companions):
    place = tmp_path / name
    place.mkdir()
    for number, picture in enumerate(pictures):
        cv2.imwrite(str(place / f"{number}.png"), picture)
    for stem, picture in companions.items():
        cv2.imwrite(str(place / f"{stem}.png"), picture)
    (place / "lights.txt").write_text("0 0 1 2\n0.6 0 0.8 1\n0 0.6 0.8 4\n")
    return place


@pytest.mark.parametrize("color", [False, True])
def test_ambient_light_is_subtracted_and_a_flat_field_divided(tmp_path, color):
    rng = np.random.default_rng(3)
    scene = rng.uniform(2000, 9000, (3, 20, 30, 3)).round()
    room = rng.uniform(500, 3000, (20, 30, 3)).round()
    fall_off = np.linspace(0.5, 1.5, 30)[None, :, None] * np.ones((20, 1, 3))
    lit = np.rint((scene + room) * fall_off)
    shots = lit.astype(np.uint16)
    flat = np.rint(20000 * fall_off).astype(np.uint16)
    with_both = _place(
        tmp_path, "both", shots, ambient=np.rint(room * fall_off).astype(np.uint16), flat=flat
    )
    plain = _place(tmp_path, "plain", scene.astype(np.uint16))
    found, expected = load(with_both, color=color), load(plain, color=color)
    assert len(found) == 3
    assert np.abs(found.images - expected.images).max() < 1e-4
    assert np.allclose(
        load(with_both, color=color, crop=(3, 4, 10, 8)).images, found.images[:, 4:12, 3:13]
    )
    assert {"ambient-subtracted", "divided-by-flat"} <= by_code(found.origin.notes).keys()
    elsewhere = _place(tmp_path, "elsewhere", (scene + room).astype(np.uint16))
    cv2.imwrite(str(tmp_path / "room.png"), room.astype(np.uint16))
    named = load(elsewhere, color=color, ambient=tmp_path / "room.png")
    assert np.abs(named.images - expected.images).max() < 1e-5
    moved = tmp_path / "even.png"
    (with_both / "flat.png").rename(moved)
    assert np.abs(load(with_both, color=color, flat=moved).images - found.images).max() < 1e-6


def test_ambient_light_is_taken_at_the_exposure_of_each_photograph(tmp_path):
    # Linear values in PNG with EXIF: the second photograph is exposed twice as long, the ambient one four times.
    scene, room = np.full((20, 30), 40.0), np.full((20, 30), 10.0)
    place = tmp_path / "c"
    place.mkdir()
    for number, times in enumerate((1, 2, 1)):
        picture = (times * (scene + room)).astype(np.uint8)
        (place / f"{number}.png").write_bytes(png(picture, (b"eXIf", exif(seconds=(times, 100)))))
    (place / "ambient.png").write_bytes(
        png((4 * room).astype(np.uint8), (b"eXIf", exif(seconds=(4, 100))))
    )
    (place / "lights.txt").write_text("0 0 1\n0.6 0 0.8\n0 0.6 0.8\n")
    images = load(place).images
    assert np.ptp(images) < 1e-6 * images.max()
    brightness = images / images.max()
    (place / "ambient.png").unlink()
    assert load(place).images.max() > 0 and np.allclose(brightness, 1)


def test_an_ambient_photograph_of_another_size_is_refused(tmp_path):
    from photostereo.core.errors import CaptureError

    place = _place(
        tmp_path, "c", np.full((3, 20, 30), 99, np.uint8), ambient=np.zeros((10, 30), np.uint8)
    )
    with pytest.raises(
        CaptureError,
        check=lambda e: e.code == "companion-mismatch" and e.file.name == "ambient.png",
    ):
        load(place)


def directory(order, entries, start):
    """A directory of ready-made entries (tag, type, count, four bytes or the bytes to point to) at ``start``."""
    body, tail = struct.pack(order + "H", len(entries)), b""
    after = start + 2 + 12 * len(entries) + 4
    for tag, kind, count, value in entries:
        body += struct.pack(order + "HHI", tag, kind, count)
        body += (
            value.ljust(4, b"\0")
            if len(value) <= 4
            else struct.pack(order + "I", after + len(tail))
        )
        tail += value if len(value) > 4 else b""
    return body + struct.pack(order + "I", 0) + tail


def block_of(order, entries):
    return (
        (b"II*\0" if order == "<" else b"MM\0*")
        + struct.pack(order + "I", 8)
        + directory(order, entries, 8)
    )


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ((0x829A, 5, 1, (10, 4000)), {"seconds": 0.0025}),
        ((0x829A, 10, 1, (1, 30)), {"seconds": 1 / 30}),
        ((0x829A, 5, 1, (1, 0)), {}),
        ((0x829A, 5, 1, (0, 0)), {}),
        ((0x829A, 5, 1, (4294967295, 1)), {}),
    ],
)
def test_odd_rationals(order, entry, expected):
    tag, kind, count, value = entry
    raw = struct.pack(order + ("II" if kind == 5 else "ii"), *value)
    assert shot_of(jpeg(GRAY, block_of(order, [(tag, kind, count, raw)]))) == Shot(
        **expected, srgb=True
    )


@pytest.mark.parametrize("order", ["<", ">"])
def test_sensitivity_is_found_where_cameras_put_it(order):
    short, long = (lambda v: struct.pack(order + "H", v)), (lambda v: struct.pack(order + "I", v))

    def iso(*entries):
        return shot_of(jpeg(GRAY, block_of(order, list(entries)))).iso

    assert iso((0x8827, 3, 2, short(400) + short(0))) == 400  # two numbers
    assert iso((0x8827, 4, 1, long(1600))) == 1600  # of the wrong type
    assert iso((0x8827, 3, 1, short(65535)), (0x8832, 4, 1, long(102400))) == 102400
    assert iso((0x8833, 4, 1, long(800))) == 800
    assert iso((0x8827, 2, 4, b"400\0")) is None  # text


def test_garbage_beside_the_entries_does_not_matter():
    rng = np.random.default_rng(0)
    seconds = struct.pack("<II", 1, 125)
    for _ in range(50):
        note = rng.integers(0, 256, 400, dtype=np.uint8).tobytes()
        entries = [(0x010F, 2, 6, b"Maker\0"), (0x829A, 5, 1, seconds), (0x927C, 7, 400, note)]
        assert shot_of(jpeg(GRAY, block_of("<", entries))).seconds == 1 / 125
    wrong = [
        (0x829A, 5, 1, seconds),
        (0x8769, 4, 1, struct.pack("<I", 10**9)),
    ]  # a pointer to nowhere
    assert shot_of(jpeg(GRAY, block_of("<", wrong))).seconds == 1 / 125
    filled = jpeg(GRAY, exif())
    assert shot_of(filled[:2] + b"\xff\xff" + filled[2:]).seconds == 0.02  # filling before a marker
    xmp = b"\xff\xe1" + struct.pack(">H", 40) + b"http://ns.adobe.com/xap/1.0/\0".ljust(38, b"x")
    assert shot_of(filled[:2] + xmp + filled[2:]).seconds == 0.02


def test_files_of_other_programs(tmp_path):
    """Pillow's JPEG and PNG, tifffile's TIFF and BigTIFF in both byte orders."""
    import tifffile
    from PIL import Image
    from PIL.TiffImagePlugin import IFDRational

    for name in ("a.jpg", "a.png"):
        info = Image.Exif()
        info.get_ifd(0x8769).update(
            {0x829A: IFDRational(1, 60), 0x829D: IFDRational(56, 10), 0x8827: 320}
        )
        Image.fromarray(GRAY).save(tmp_path / name, exif=info.tobytes())
        shot = read_shot(tmp_path / name)
        assert (shot.seconds, shot.iso, shot.aperture) == (1 / 60, 320, 5.6), name
    whole = (tmp_path / "a.png").read_bytes()
    place, size = (
        whole.index(b"eXIf") - 4,
        struct.unpack_from(">I", whole, whole.index(b"eXIf") - 4)[0],
    )
    chunk = whole[place : place + 12 + size]
    late = whole[:place] + whole[place + 12 + size : -12] + chunk + whole[-12:]
    assert shot_of(late).seconds == 1 / 60  # after the pixels
    for order in ("<", ">"):
        for big in (False, True):
            extra = [(0x829A, 5, 1, (1, 80), True), (0x8827, 3, 1, 100, True)]
            tifffile.imwrite(
                tmp_path / "b.tif",
                GRAY,
                photometric="minisblack",
                byteorder=order,
                bigtiff=big,
                extratags=extra,
            )
            shot = read_shot(tmp_path / "b.tif")
            assert (shot.seconds, shot.iso) == (1 / 80, 100)


def test_the_head_of_a_file_is_looked_at_once(tmp_path, monkeypatch):
    """For EXIF, for the declared size and for several exposures of a light."""
    for k in range(4):
        cv2.imwrite(str(tmp_path / f"{k}.png"), np.full((12, 10), 50 + k, np.uint8))
    (tmp_path / "lights.txt").write_text(
        "\n".join(f"{0.3 * (k % 2)} {0.3 * (k // 2)} 1" for k in range(4))
    )
    seen = []
    monkeypatch.setattr(
        protocol, "read_shot", lambda path: seen.append(path.name) or read_shot(path)
    )
    capture = load(tmp_path)
    assert len(capture) == 4
    assert sorted(seen) == [f"{k}.png" for k in range(4)]
    assert read_shot(tmp_path / "0.png").frame == (12, 10)


def test_photographs_that_viewers_turn_are_noted():
    from photostereo.io.camera import orientation_notes

    assert orientation_notes([Shot(), Shot(orientation=1)]) == ()
    assert orientation_notes([Shot(orientation=6)] * 2)[0].code == "orientation-undone"
    assert orientation_notes([Shot(orientation=6), Shot()])[0].code == "orientation-differs"
    assert orientation_notes([Shot(orientation=99)]) == ()


def test_a_shot_in_numbers():
    assert shot_of(b"no image") == Shot() and shot_of(b"\xff\xd8").srgb
    assert (camera.exposure_of(Shot(seconds=0.5, iso=200)), camera.exposure_of(Shot(iso=200))) == (
        100.0,
        None,
    )
    two = [Shot(seconds=0.1, iso=100), Shot(seconds=0.4, iso=100)]
    assert [round(exposure, 9) for exposure in exposures(two)[0]] == [0.5, 2.0]
    (changed,) = camera.changes([Shot(aperture=8), Shot(aperture=11)])
    assert (changed.code, changed.values) == ("aperture-changes", {"least": 8, "most": 11})
    (turned,) = camera.orientation_notes([Shot(orientation=6)])
    assert (turned.code, turned.values["orientation"]) == ("orientation-undone", 6)
    assert round(camera.focal_in_pixels([Shot(focal_35mm=50.0)] * 3, (400, 600))) == 833
    assert (
        camera.focal_in_pixels([Shot(focal_35mm=50.0, width=600, height=400)], (400, 400)) is None
    )
