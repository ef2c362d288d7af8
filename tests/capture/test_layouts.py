"""Harvard, RTI, plain folders and archives."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from photostereo.capture import load, write_archive
from photostereo.core.conventions import GRAY_WEIGHTS
from photostereo.core.errors import CaptureError, OutputError
from photostereo.core.findings import by_code
from photostereo.io import safe


def gray_of(shots):
    return (shots.stored / 65535.0) @ np.array(GRAY_WEIGHTS)


# ---- Harvard
# ---------------------------------------------------------------------------------------------------


@pytest.fixture
def harvard(tmp_path, shots):
    place = tmp_path / "toad"
    shots.write(place / "Objects", stem="Image_", bits=8, gray=True)
    np.savetxt(place / "light_directions.txt", shots.lights.T, fmt="%19.16f")
    strengths = np.linspace(0.8, 1.3, 11)
    np.savetxt(
        place / "refined_light.txt",
        (shots.lights * strengths[:, None]).T,
        fmt="%.16f",
        delimiter=", ",
    )
    return place, strengths


def test_harvard_strength_is_in_the_norm(harvard, shots):
    place, strengths = harvard
    stored = (shots.stored[..., 1] >> 8) / 255.0
    capture = load(place)
    np.testing.assert_allclose(capture.images, stored / strengths[:, None, None], rtol=1e-6)
    np.testing.assert_allclose(capture.lights.directions, shots.lights, atol=1e-14)
    assert capture.origin.layout == "Harvard"
    assert capture.origin.bit_depth == 8
    plain = load(place, lights="directions")
    np.testing.assert_allclose(plain.images, stored, rtol=1e-6)
    np.testing.assert_allclose(plain.lights.directions, shots.lights, atol=1e-14)
    assert by_code(plain.origin.notes)["light-file"].values["file"] == "light_directions.txt"


def test_harvard_choices(harvard, tmp_path, shots):
    place, _ = harvard
    assert load(place, mask="full").mask.all()
    (place / "refined_light.txt").unlink()
    assert by_code(load(place).origin.notes)["light-file"].values["file"] == "light_directions.txt"
    with pytest.raises(
        CaptureError,
        check=lambda e: e.code == "no-light-file" and e.file.name == "refined_light.txt",
    ):
        load(place, lights="refined")
    shots.write_lights(tmp_path, "other.txt")
    notes = load(place, lights=tmp_path / "other.txt").origin.notes
    assert by_code(notes)["light-file"].values["file"] == "other.txt"


# ---- RTI
# -------------------------------------------------------------------------------------------------------


def write_lp(path, files, lights, *, prefix="", decimal="."):
    body = [
        f"{prefix}{file.name} " + " ".join(f"{v:.10f}".replace(".", decimal) for v in row)
        for file, row in zip(files, lights, strict=True)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{len(files)}\n" + "\n".join(body) + "\n")
    return path


@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("prefix", ["", "C:\\Users\\me\\my coins\\", "/home/me/my coins/"])
def test_rti(tmp_path, shots, decimal, prefix):
    files = shots.write(tmp_path / "coin", stem="my coin ", suffix=".tif")
    order = [3, 1, 2, 0, *range(4, 11)]
    lp = write_lp(
        tmp_path / "coin" / "coin.lp",
        [files[k] for k in order],
        shots.lights[order] * 2,
        prefix=prefix,
        decimal=decimal,
    )
    (tmp_path / "coin" / "preview.jpg").write_bytes(
        cv2.imencode(".jpg", np.zeros((4, 4), np.uint8))[1].tobytes()
    )
    for path in (lp, lp.parent):
        capture = load(path)
        np.testing.assert_allclose(capture.images, gray_of(shots)[order], rtol=1e-6)
        np.testing.assert_allclose(capture.lights.directions, shots.lights[order], atol=1e-9)
        assert capture.origin.layout == "RTI"
        assert capture.name == "coin"
        assert by_code(capture.origin.notes)["unlisted-photographs"].values == {
            "count": 1,
            "file": "coin.lp",
        }


@pytest.mark.parametrize("home", ["assembly-files", "."])
def test_rti_photographs_in_another_folder(tmp_path, shots, home):
    files = shots.write(tmp_path / "project" / "jpeg-exports", suffix=".png")
    lp = write_lp(tmp_path / "project" / home / "coin.lp", files, shots.lights)
    np.testing.assert_allclose(load(lp).images, gray_of(shots), rtol=1e-6)


def test_rti_faults(tmp_path, shots):
    files = shots.write(tmp_path / "coin")
    lp = write_lp(tmp_path / "coin" / "coin.lp", files, shots.lights)
    text = lp.read_text()
    for broken, code in (
        (text.replace("11\n", "12\n", 1), "light-file-count"),
        (text.replace("11\n", "9\n", 1), "light-file-count"),
        (text.replace("11\n", "eleven\n", 1), "light-file-header"),
        ("", "light-file-header"),
        ("0\n", "light-file-empty"),
        (text.replace("shot4.png", "shot44.png"), "missing-photographs"),
        ("1\nshot1.png 0 0\n", "light-file-line"),
        ("1\nshot1.png 0 0 0\n", "light-zero"),
        ("2\nshot1.png 0 0 1\nshot2.png 0 1 1\n", "too-few-photographs"),
    ):
        lp.write_text(broken)
        with pytest.raises(CaptureError) as caught:
            load(lp)
        assert caught.value.code == code
    (tmp_path / "coin" / "second.lp").write_text(text)
    with pytest.raises(CaptureError, check=lambda e: e.code == "several-light-files"):
        load(tmp_path / "coin")


def test_rti_with_another_light_file(tmp_path, shots):
    files = shots.write(tmp_path / "coin")
    first = write_lp(tmp_path / "coin" / "a.lp", files, np.tile([0.3, 0.1, 1.0], (11, 1)))
    write_lp(tmp_path / "coin" / "b.lp", files, shots.lights)
    by_name = load(tmp_path / "coin", lights="b.lp")
    np.testing.assert_allclose(by_name.lights.directions, shots.lights, atol=1e-9)
    table = named_table(
        tmp_path / "named.csv", [file.name for file in files], shots.lights, np.full(11, 2.0)
    )
    capture = load(first, lights=table)
    np.testing.assert_allclose(capture.lights.directions, shots.lights, atol=1e-9)
    np.testing.assert_allclose(capture.images, gray_of(shots) / 2, rtol=1e-6)
    with pytest.raises(CaptureError) as caught:
        load(first, lights="nothing.csv")
    assert caught.value.code == "missing-file"


# ---- a light file of one's own, in any layout


def named_table(path, names, lights, strengths):
    """Names, directions and strengths, in reverse order."""
    rows = [
        f"{name},{x:.12f},{y:.12f},{z:.12f},{strength}"
        for name, (x, y, z), strength in zip(names, lights, strengths, strict=True)
    ]
    path.write_text("file,x,y,z,intensity\n" + "\n".join(rows[::-1]) + "\n")
    return path


def test_named_lights_find_their_photographs_in_every_layout(
    tmp_path, harvard, folder, shots, capture
):
    strengths = np.linspace(0.5, 1.5, 11)
    place, _ = harvard
    table = named_table(
        tmp_path / "h.csv", [f"Image_{n}.png" for n in range(1, 12)], shots.lights, strengths
    )
    found = load(place, lights=table)
    np.testing.assert_allclose(found.lights.directions, shots.lights, atol=1e-9)
    stored = (shots.stored[..., 1] >> 8) / 255.0
    np.testing.assert_allclose(found.images, stored / strengths[:, None, None], rtol=1e-6)

    table = named_table(
        tmp_path / "f.csv", [f"shot{n}.png" for n in range(1, 12)], shots.lights, strengths
    )
    found = load(folder, lights=table)  # in the order of the table
    np.testing.assert_allclose(found.lights.directions[::-1], shots.lights, atol=1e-9)
    np.testing.assert_allclose(
        found.images[::-1], gray_of(shots) / strengths[:, None, None], rtol=1e-6
    )

    from photostereo.capture import write_diligent

    written = write_diligent(capture, tmp_path / "d")
    plain = load(written)
    names = plain.origin.files
    exposures = np.loadtxt(written / "light_intensities.txt")[:, 0]
    found = load(
        written,
        lights=named_table(tmp_path / "d.csv", names, capture.lights.directions, 2 * exposures),
    )
    np.testing.assert_allclose(found.lights.directions, plain.lights.directions, atol=1e-9)
    np.testing.assert_allclose(found.images, plain.images / 2, rtol=1e-5)


# ---- plain folders
# ---------------------------------------------------------------------------------------------


def test_plain_folder_in_natural_order(folder, shots):
    capture = load(folder)
    np.testing.assert_allclose(capture.images, gray_of(shots), rtol=1e-6)
    np.testing.assert_allclose(capture.lights.directions, shots.lights, atol=1e-15)
    assert capture.mask.all()
    assert capture.name == "thing"
    assert capture.origin.files[-1] == "shot11.png"
    assert "no-light-strengths" in by_code(capture.origin.notes)


def test_names_in_the_light_file_decide_the_order(folder, shots):
    (folder / "lights.txt").unlink()
    order = np.random.default_rng(0).permutation(11)
    rows = [
        f"SHOT{k + 1}.png,{','.join(f'{v:.15f}' for v in shots.lights[k])},{k + 1}" for k in order
    ]
    (folder / "lights.csv").write_text("file,x,y,z,intensity\n" + "\n".join(rows))
    capture = load(folder)
    np.testing.assert_allclose(capture.lights.directions, shots.lights[order], atol=1e-14)
    np.testing.assert_allclose(
        capture.images, gray_of(shots)[order] / (order + 1)[:, None, None], rtol=1e-6
    )


def test_strengths_in_their_own_file_and_far_from_one(folder, shots):
    np.savetxt(folder / "intensities.txt", np.linspace(1, 2, 11))
    near = load(folder)
    np.testing.assert_allclose(
        near.images, gray_of(shots) / np.linspace(1, 2, 11)[:, None, None], rtol=1e-6
    )
    np.savetxt(folder / "intensities.txt", np.linspace(1000, 2000, 11))
    far = load(folder)
    np.testing.assert_allclose(far.images, 1.5 * near.images, rtol=1e-6)
    assert by_code(far.origin.notes)["light-strengths-scaled"].values["mean"] == pytest.approx(1500)


def test_masks_of_a_plain_folder(folder):
    mask = np.zeros((12, 9), np.uint8)
    mask[2:5, 3:7] = 1  # 0 and 1 rather than 0 and 255: common, and meant as black and white
    cv2.imwrite(str(folder / "mask.png"), mask)
    np.testing.assert_array_equal(load(folder).mask, mask > 0)
    assert len(load(folder)) == 11
    assert load(folder, mask="full").mask.all()
    np.testing.assert_array_equal(load(folder, mask=mask == 0).mask, mask == 0)
    (folder / "mask.png").rename(folder / "thing.mask.png")
    np.testing.assert_array_equal(load(folder).mask, mask > 0)
    other = folder.parent / "painted.png"
    cv2.imwrite(str(other), 255 - 255 * mask)
    np.testing.assert_array_equal(load(folder, mask=other).mask, mask == 0)
    np.testing.assert_array_equal(load(folder, mask=str(other)).mask, mask == 0)


def test_light_file_from_elsewhere(folder, tmp_path, shots):
    (folder / "lights.txt").rename(tmp_path / "measured.txt")
    np.testing.assert_allclose(
        load(folder, lights=tmp_path / "measured.txt").lights.directions, shots.lights, atol=1e-15
    )
    (tmp_path / "measured.txt").rename(folder / "measured.txt")
    np.testing.assert_allclose(
        load(folder, lights="measured.txt").lights.directions, shots.lights, atol=1e-15
    )
    with pytest.raises(CaptureError) as caught:
        load(folder, lights="nowhere.txt")
    assert (caught.value.code, caught.value.file.name) == ("missing-file", "nowhere.txt")


def test_jpeg_folder_in_srgb(tmp_path, shots):
    place = tmp_path / "phone"
    shots.write(place, suffix=".jpg", bits=8)
    shots.write_lights(place)
    linear, curved = load(place, srgb=False), load(place)
    assert linear.origin.bit_depth == 8
    assert "srgb-undone" in by_code(curved.origin.notes)
    assert "srgb-undone" not in by_code(linear.origin.notes)
    np.testing.assert_array_equal(load(place, srgb=True).images, curved.images)
    assert (curved.images <= linear.images + 1e-6).all()
    assert curved.images.mean() < 0.8 * linear.images.mean()


# ---- archives
# --------------------------------------------------------------------------------------------------


def test_archive_round_trip_is_exact(tmp_path, capture):
    path = write_archive(capture, tmp_path / "thing.npz")
    again = load(path)
    assert again.digest == capture.digest
    assert again.name == "thing"
    for label in ("truth", "truth_depth", "truth_albedo"):
        np.testing.assert_array_equal(getattr(again, label), getattr(capture, label))
    with pytest.raises(OutputError) as caught:
        write_archive(capture, path)
    assert caught.value.code == "output-exists"
    assert write_archive(capture, tmp_path / "plain").name == "plain.npz"
    assert write_archive(capture, path, force=True) == path
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["plain.npz", "thing.npz"]


def test_archive_by_hand(tmp_path, shots):
    strengths = np.random.default_rng(0).uniform(0.5, 2, size=(11, 3))
    np.savez(tmp_path / "a.npz", images=shots.stored, lights=shots.lights, intensities=strengths)
    capture = load(tmp_path / "a.npz")
    expected = (shots.stored / 65535 / strengths[:, None, None]) @ np.array(GRAY_WEIGHTS)
    np.testing.assert_allclose(capture.images, expected, rtol=1e-5)
    assert capture.origin.bit_depth == 16
    assert capture.mask.all()
    color = load(tmp_path / "a.npz", color=True)
    np.testing.assert_allclose(
        color.images, shots.stored / 65535 / strengths[:, None, None], rtol=1e-5
    )


@pytest.mark.parametrize(
    "options", [{}, {"color": True}, {"srgb": True, "scale": 0.5, "crop": (2, 1, 6, 8)}]
)
def test_a_large_archive_waits_on_disk(tmp_path, shots, monkeypatch, options):
    strengths = np.random.default_rng(0).uniform(0.5, 2, size=(11, 3))
    np.savez_compressed(
        tmp_path / "a.npz", images=shots.stored, lights=shots.lights, intensities=strengths
    )
    whole = load(tmp_path / "a.npz", **options)
    monkeypatch.setattr(safe, "SPOOLED", 100)
    lazy = load(tmp_path / "a.npz", lazy=True, **options)
    assert whole.in_memory and load(tmp_path / "a.npz", **options).in_memory and not lazy.in_memory
    assert lazy.digest == whole.digest and lazy.intensity_scale() == whole.intensity_scale()
    np.testing.assert_array_equal(
        lazy.take([1, 4, 7]).photographs.rows(1, 3), whole.images[[1, 4, 7], 1:3]
    )
    images = shots.stored[..., 0] / 65535
    images[3, 2, 1] = np.nan
    np.savez(tmp_path / "a.npz", images=images, lights=shots.lights)
    with pytest.raises(CaptureError) as caught:
        load(tmp_path / "a.npz", strict=True)
    assert caught.value.code == "photograph-not-finite"


def test_archive_faults(tmp_path, shots, capture):
    path = tmp_path / "a.npz"
    images, lights = shots.stored[..., 0] / 65535, shots.lights
    nan = images.copy()
    nan[3, 2, 1] = np.nan
    zero = lights.copy()
    zero[2] = 0
    flat = lights * [1, 1, 0]
    for arrays, code in (
        ({"images": images}, "archive-arrays"),
        ({"images": images[0], "lights": lights}, "archive-images"),
        ({"images": images.astype(int), "lights": lights}, "archive-images"),
        ({"images": nan, "lights": lights}, "photograph-not-finite"),
        ({"images": images, "lights": lights[:-1]}, "lights-count"),
        ({"images": images, "lights": zero}, "light-zero"),
        ({"images": images, "lights": flat}, "lights-coplanar"),
        ({"images": images[:2], "lights": lights[:2]}, "too-few-photographs"),
        ({"images": images, "lights": lights, "mask": np.ones((3, 4), bool)}, "mask-size"),
        ({"images": images, "lights": lights, "mask": np.zeros((12, 9), bool)}, "empty-mask"),
        ({"images": images, "lights": lights, "truth": np.ones((12, 8, 3))}, "truth-size"),
        ({"images": images, "lights": lights, "intensities": -np.ones(11)}, "light-strength"),
        ({"images": images, "lights": lights, "name": np.array({}, dtype=object)}, None),
    ):
        np.savez(path, **arrays)
        with pytest.raises(CaptureError) as caught:
            load(path)
        assert code is None or caught.value.code == code
        assert "a.npz" in str(caught.value)
    whole = write_archive(capture, tmp_path / "b.npz").read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CaptureError) as caught:
        load(path)
    assert caught.value.code == "unreadable-file"
