"""Names in a light file decide which photograph has which light, wherever the photographs lie."""

from __future__ import annotations

import numpy as np
import pytest

from photostereo.capture import load
from photostereo.capture.layouts.folder import is_ball_series
from photostereo.core.errors import CaptureError
from photostereo.core.findings import by_code


def write_shuffled(path, files, lights, *, name=lambda file: file.stem):
    """Write lights.csv with the rows in another order than the photographs."""
    rows = [
        f"{name(file)},{x:.9f},{y:.9f},{z:.9f}"
        for file, (x, y, z) in zip(files, lights, strict=True)
    ]
    order = np.random.default_rng(3).permutation(len(rows))
    path.write_text("\n".join(["file,x,y,z", *(rows[number] for number in order)]) + "\n")


def lights_by_name(capture):
    files = capture.origin.files
    return dict(zip(files, capture.lights.directions.tolist(), strict=True))


@pytest.mark.parametrize("suffix", ["", ".tif", ".CR2", ".JPEG"])
def test_names_without_the_extension_or_with_another_one(tmp_path, shots, suffix):
    files = shots.write(tmp_path)
    write_shuffled(
        tmp_path / "lights.csv", files, shots.lights, name=lambda file: file.stem + suffix
    )
    found = lights_by_name(load(tmp_path))
    for file, light in zip(files, shots.lights, strict=True):
        np.testing.assert_allclose(found[file.name], light, atol=1e-6)


def test_photographs_in_a_folder_below_the_light_file(tmp_path, shots):
    files = shots.write(tmp_path / "images")
    shots.write(tmp_path / "details", stem="detail")
    write_shuffled(tmp_path / "lights.csv", files, shots.lights, name=lambda file: file.name)
    found = lights_by_name(load(tmp_path))
    for file, light in zip(files, shots.lights, strict=True):
        np.testing.assert_allclose(found[file.name], light, atol=1e-6)


def test_two_folders_of_photographs_that_no_name_tells_apart(tmp_path, shots):
    shots.write(tmp_path / "images")
    shots.write(tmp_path / "details")
    shots.write_lights(tmp_path, "lights.txt")
    with pytest.raises(CaptureError):
        load(tmp_path)


def write_lp(path, names, lights, count):
    body = [
        f"{name} " + " ".join(f"{v:.9f}" for v in row)
        for name, row in zip(names, lights, strict=True)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([str(count), *body]) + "\n")


def test_a_project_of_rtibuilder(tmp_path, shots):
    files = shots.write(tmp_path / "jpeg-exports", suffix=".png")
    names = [f"{file.stem}.tif" for file in files]
    write_lp(tmp_path / "assembly-files" / "coin.lp", names, shots.lights, len(files))
    capture = load(tmp_path)
    assert capture.origin.layout == "RTI"
    np.testing.assert_allclose(capture.lights.directions, shots.lights, atol=1e-6)


def test_an_lp_file_with_one_line_too_many(tmp_path, shots):
    files = shots.write(tmp_path / "coin")
    lp = tmp_path / "coin" / "coin.lp"
    names = [file.name for file in files]
    lights = np.insert(shots.lights, 4, [0.0, 0.6, 0.8], axis=0)
    write_lp(lp, [*names[:4], "lost.png", *names[4:]], lights, len(files))
    capture = load(lp)
    np.testing.assert_allclose(capture.lights.directions, shots.lights, atol=1e-6)
    note = by_code(capture.origin.notes)["lights-without-photographs"]
    assert (note.values["count"], note.values["names"]) == (1, "lost.png")


def test_light_files_in_utf_16(tmp_path, shots):
    """Excel's "Unicode text"."""
    shots.write(tmp_path)
    shots.write_lights(tmp_path, "lights.csv")
    file = tmp_path / "lights.csv"
    file.write_bytes(file.read_text().encode("utf-16"))
    np.testing.assert_allclose(load(tmp_path).lights.directions, shots.lights, atol=1e-6)


@pytest.mark.parametrize(
    ("header", "code", "named"),
    [
        ("file,phi,theta", "light-file-columns", ["phi", "theta"]),
        ("file,azimuth,elevation", "light-angles-radians", ["radians"]),
    ],
)
def test_angles_of_another_kind_are_named(tmp_path, shots, header, code, named):
    files = shots.write(tmp_path)
    azimuth = np.arctan2(shots.lights[:, 1], shots.lights[:, 0])
    elevation = np.arcsin(shots.lights[:, 2])
    rows = [
        f"{file.name},{a:.4f},{e:.4f}" for file, a, e in zip(files, azimuth, elevation, strict=True)
    ]
    (tmp_path / "lights.csv").write_text("\n".join([header, *rows]) + "\n")
    with pytest.raises(CaptureError) as caught:
        load(tmp_path)
    assert caught.value.code == code
    assert all(word in str(caught.value) for word in named)


@pytest.mark.parametrize("name", ["Kugel", "sphere1", "ball-left", "ball_right", "black-ball"])
def test_folders_named_like_a_ball(tmp_path, name):
    assert is_ball_series(tmp_path / name)


@pytest.mark.parametrize("name", ["balloon", "ballad-1", "spherical", "cat", "ball bearing"])
def test_folders_that_are_not(tmp_path, name):
    assert not is_ball_series(tmp_path / name)
