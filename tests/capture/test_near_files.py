"""Positions of near lamps from a light file, crops of a capture with a ball, and exposures beside strengths."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

import photostereo as ps
from photostereo.capture import write_archive
from photostereo.core.errors import CaptureError
from photostereo.core.findings import by_code
from photostereo.diagnosis.metrics import angle_between
from photostereo.io.camera import Shot, focal_in_pixels, read_shot
from photostereo.lights.files.reading import read_lights
from photostereo_lab.scenes import dome_lights

from ..ball_scenes.balls import shoot_table
from ..ball_scenes.studio import Ball, Studio


def write_png(path: Path, image: np.ndarray) -> None:
    stored = np.rint(np.clip(image, 0, 1) * 65535).astype(np.uint16)
    path.write_bytes(
        cv2.imencode(".png", stored[..., ::-1] if stored.ndim == 3 else stored)[1].tobytes()
    )


def near_capture(folder: Path, *, color: bool) -> tuple[np.ndarray, np.ndarray]:
    """A wavy sheet under lamps at 400 pixels; its normals and the lamps."""
    frame = (81, 121)
    positions = dome_lights(10, max_angle=45) * 400.0
    rows, cols = np.mgrid[: frame[0], : frame[1]].astype(float)
    slope = np.stack([0.4 * np.sin(cols / 9), 0.4 * np.cos(rows / 11), np.ones(frame)], axis=-1)
    normals = slope / np.linalg.norm(slope, axis=-1, keepdims=True)
    points = np.stack([cols - 60, 40 - rows, 0 * rows], axis=-1)
    folder.mkdir(parents=True)
    lines = ["file,x,y,z,intensity,position_x,position_y,position_z"]
    for number, position in enumerate(positions):
        towards = position - points
        distance = np.linalg.norm(towards, axis=-1)
        shade = (
            np.maximum((towards * normals).sum(-1) / distance, 0) * (400.0 / distance) ** 2 * 0.5
        )
        image = shade[..., None] * np.array([1.0, 0.6, 0.3]) if color else shade
        write_png(folder / f"s{number:02d}.png", image)
        x, y, z = position / 400.0
        lines.append(f"s{number:02d}.png,{x},{y},{z},1,{position[0]},{position[1]},{position[2]}")
    (folder / "lights.csv").write_text("\n".join(lines))
    return normals, positions


def normals_error(capture: ps.Capture, truth: np.ndarray) -> float:
    """Of the sheet, whose points all lie in one plane."""
    if capture.lights.is_near:
        capture = replace(capture, lights=capture.lights.changed(depth=np.zeros(capture.frame)))
    return float(
        angle_between(ps.solve(capture, "ls").normals.reshape(-1, 3), truth.reshape(-1, 3)).mean()
    )


@pytest.mark.parametrize("color", [False, True])
def test_near_lamps_from_a_light_file(tmp_path: Path, color: bool) -> None:
    normals, positions = near_capture(tmp_path / "near", color=color)
    table = read_lights(tmp_path / "near" / "lights.csv")
    np.testing.assert_allclose(table.positions, positions)
    capture = ps.load(tmp_path / "near", color=color)
    assert "near-lights" in by_code(capture.origin.notes)
    assert normals_error(capture, normals) < 0.05
    text = (tmp_path / "near" / "lights.csv").read_text()
    (tmp_path / "near" / "lights.csv").write_text(text.replace("position_", "where_"))
    assert normals_error(ps.load(tmp_path / "near", color=color), normals) > 2.0  # taken as distant


def test_positions_follow_a_crop(tmp_path: Path) -> None:
    normals, _ = near_capture(tmp_path / "near", color=False)
    capture = ps.load(tmp_path / "near", crop=(60, 20, 60, 50))
    assert normals_error(capture, normals[20:70, 60:120]) < 0.05


@pytest.mark.parametrize("kind", ["lp", "csv", "json", "json in cm"])
def test_positions_in_millimeters(tmp_path: Path, kind: str) -> None:
    """A pixel shows 0.25 mm; the lamps stand at 100 mm."""
    folder, options = tmp_path / "near", {"pixel_size": "0.25mm"}
    normals, positions = near_capture(folder, color=False)
    names = [f"s{number:02d}.png" for number in range(len(positions))]
    (folder / "lights.csv").unlink()
    rows = 0.25 * positions
    if kind.startswith("json"):
        options, shrink = {}, 10.0 if kind.endswith("cm") else 1.0
        lights = [
            {"file": name, "position": row.tolist()}
            for name, row in zip(names, rows / shrink, strict=True)
        ]
        content = {"pixel_size": 0.25, "lights": lights, **({"unit": "cm"} if shrink > 1 else {})}
        (folder / "lights.json").write_text(json.dumps(content))
    else:
        mark, lines = (" ", [str(len(rows))]) if kind == "lp" else (",", ["file,mm_x,mm_y,mm_z"])
        lines += [
            mark.join([name, *map(repr, row.tolist())])
            for name, row in zip(names, rows, strict=True)
        ]
        (folder / f"lights.{kind}").write_text("\n".join(lines))
    capture = ps.load(folder, **options)
    np.testing.assert_allclose(capture.lights.positions, positions, rtol=1e-6)
    assert normals_error(capture, normals) < 0.05
    if kind == "csv":
        with pytest.raises(CaptureError, check=lambda e: e.code == "lights-need-scale"):
            ps.load(folder)
        with pytest.raises(
            CaptureError, check=lambda e: e.code == "light-units" and e.values["frame"] > 1000
        ):
            ps.load(folder, pixel_size="1cm")


def test_the_focal_length_goes_with_near_lights(tmp_path: Path) -> None:
    near_capture(tmp_path / "near", color=False)
    camera = ps.load(tmp_path / "near", focal=300.0, crop=(60, 20, 60, 50), scale=0.5).lights.camera
    np.testing.assert_allclose(camera, [-14.75, 2.25, 150.0])


def test_an_archive_keeps_near_lights(tmp_path: Path) -> None:
    normals, positions = near_capture(tmp_path / "near", color=False)
    again = ps.load(write_archive(ps.load(tmp_path / "near"), tmp_path / "near.npz"))
    np.testing.assert_allclose(again.lights.positions, positions)
    assert normals_error(again, normals) < 0.05


def test_a_position_below_the_table_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "lights.csv"
    file.write_text("x,y,z,position_x,position_y,position_z\n0,0,1,0,0,-5\n")
    with pytest.raises(
        CaptureError, check=lambda e: e.code == "light-position" and e.file.name == "lights.csv"
    ):
        read_lights(file)


def test_crop_and_scale_with_a_ball(tmp_path: Path) -> None:
    shoot = shoot_table(
        [Ball("black", 195.3, 60.7, 34)],
        size=(130, 240),
        scene="vase",
        lights=dome_lights(8, max_angle=45),
        studio=Studio(table=0.03, second=0.0, window=0.3),
    )
    (tmp_path / "vase").mkdir()
    for number, image in enumerate(shoot.images):
        write_png(tmp_path / "vase" / f"s{number}.png", image)
    whole = ps.load(tmp_path / "vase")
    part = ps.load(tmp_path / "vase", crop=(10, 10, 100, 100), scale=0.5)
    assert part.frame == (50, 50)
    np.testing.assert_allclose(part.lights.directions, whole.lights.directions)
    np.testing.assert_allclose(
        np.asarray(part.images[0]),
        cv2.resize(
            np.asarray(whole.images[0])[10:110, 10:110], (50, 50), interpolation=cv2.INTER_AREA
        ),
        atol=1e-6,
    )


def exif_jpeg(path: Path, seconds: float, level: float, *, film: int = 0) -> None:
    """A plain JPEG with an exposure time, and perhaps a focal length, in EXIF."""
    entries = [(0x829A, 5, 1, 0)] + ([(0xA405, 3, 1, film)] if film else [])
    start = 8 + 18 + 2 + 12 * len(entries) + 4
    body = b"MM\0*" + struct.pack(">I", 8) + struct.pack(">HHHII", 1, 0x8769, 4, 1, 26) + b"\0" * 4
    body += struct.pack(">H", len(entries))
    for tag, kind, count, value in entries:
        body += struct.pack(">HHI", tag, kind, count)
        body += struct.pack(">I", start) if kind == 5 else struct.pack(">HH", value, 0)
    body += b"\0" * 4 + struct.pack(">II", round(seconds * 1000), 1000)
    image = cv2.imencode(".jpg", np.full((40, 60), round(255 * level), np.uint8))[1].tobytes()
    block = b"Exif\0\0" + body
    path.write_bytes(
        image[:2] + b"\xff\xe1" + struct.pack(">H", len(block) + 2) + block + image[2:]
    )


def test_the_focal_length_of_exif(tmp_path: Path) -> None:
    exif_jpeg(tmp_path / "a.jpg", 0.1, 0.5, film=50)
    shot = read_shot(tmp_path / "a.jpg")
    assert shot.focal_35mm == 50 and shot.seconds == pytest.approx(0.1)
    focal = focal_in_pixels([shot, shot], (40, 60))
    assert focal == pytest.approx(50 * np.hypot(40, 60) / 43.27, rel=1e-6)
    # The other way that cameras tell it: so many pixels per inch on the sensor.
    other = Shot(focal=50.0, plane_resolution=60 * 25.4 / 36, plane_unit=2, width=120, height=80)
    assert focal_in_pixels([other], (40, 60)) == pytest.approx(50 * 60 / 36 / 2)
    assert focal_in_pixels([other], (40, 40)) is None  # cropped since
    assert focal_in_pixels([shot, Shot()], (40, 60)) is None


def test_exif_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    block = (
        b"Exif\0\0MM\0*" + struct.pack(">I", 8) + b"\xff\xff\xff"
    )  # a directory that ends too early
    for number in range(3):
        image = cv2.imencode(".jpg", np.full((40, 60), 100 + number, np.uint8))[1].tobytes()
        (tmp_path / f"{number}.jpg").write_bytes(
            image[:2] + b"\xff\xe1" + struct.pack(">H", len(block) + 2) + block + image[2:]
        )
    (tmp_path / "lights.csv").write_text("x,y,z\n0,0,1\n0.5,0,1\n0,0.5,1\n")
    shot = read_shot(tmp_path / "0.jpg")
    assert shot.damaged and shot.srgb and shot.seconds is None
    assert by_code(ps.load(tmp_path).origin.notes)["exif-damaged"].values["damaged"] == 3
    plain = cv2.imencode(".jpg", np.full((40, 60), 100, np.uint8))[1].tobytes()
    (tmp_path / "0.jpg").write_bytes(plain)
    assert not read_shot(tmp_path / "0.jpg").damaged  # none at all is nothing to speak of


@pytest.mark.parametrize("contained", [False, True])
def test_exposure_and_strength_are_not_counted_twice(tmp_path: Path, contained: bool) -> None:
    """Lamps of equal strength, exposures of 1 : 2 : 4; the light file has the lamps' strengths, or the pictures'."""
    exposures = (0.1, 0.2, 0.4)
    lines = ["file,x,y,z,intensity"]
    for number, seconds in enumerate(exposures):
        exif_jpeg(tmp_path / f"{number}.jpg", seconds, 0.8 * seconds / 0.4)
        strength = (
            seconds / 0.2 * (1.05, 0.97, 1.0)[number] if contained else (1.05, 0.97, 1.0)[number]
        )
        lines.append(f"{number}.jpg,{0.3 * number},{0.2 * (number == 1)},1,{strength}")
    (tmp_path / "lights.csv").write_text("\n".join(lines))
    capture = ps.load(tmp_path, srgb=False)
    level = np.asarray(capture.images).mean(axis=(1, 2)) * (1.05, 0.97, 1.0)
    np.testing.assert_allclose(level / level[0], 1, atol=0.02)
    said = {"exposure-in-strengths", "exposure-compensated"} & by_code(capture.origin.notes).keys()
    assert said == {"exposure-in-strengths" if contained else "exposure-compensated"}


def in_widths(folder: Path, width: float, middle: tuple[float, float]) -> None:
    """Its light file with the positions in widths of an object of this width at this place."""
    positions = read_lights(folder / "lights.csv").positions
    assert positions is not None
    lines = ["file,widths_x,widths_y,widths_z"]
    for number, position in enumerate((positions - [*middle, 0.0]) / width):
        lines.append(f"s{number:02d}.png," + ",".join(f"{value:.9f}" for value in position))
    (folder / "lights.csv").write_text("\n".join(lines))


def test_positions_in_object_widths(tmp_path: Path) -> None:
    folder = tmp_path / "near"
    near_capture(folder, color=False)
    mask = np.zeros((81, 121))
    mask[20:61, 30:91] = 1
    write_png(folder / "mask.png", mask)
    expected = ps.load(folder)
    in_widths(folder, 61, (0, 0))
    found = ps.load(folder)
    np.testing.assert_allclose(found.lights.directions, expected.lights.directions, atol=1e-6)
    np.testing.assert_allclose(found.lights.positions, expected.lights.positions, rtol=1e-6)
    assert "near-lights" in by_code(found.origin.notes)
    np.testing.assert_allclose(
        ps.load(folder, scale=0.5).lights.directions, expected.lights.directions, atol=0.02
    )
    with pytest.raises(
        CaptureError, check=lambda e: e.code == "crop-with-widths" and e.file.name == "lights.csv"
    ):
        ps.load(folder, crop=(30, 20, 61, 41))


def test_object_widths_count_from_the_objects_middle(tmp_path: Path) -> None:
    folder = tmp_path / "near"
    near_capture(folder, color=False)
    mask = np.zeros((81, 121))
    mask[0:41, 60:121] = (
        1  # the upper right: its middle is 30 to the right and 20 above that of the frame
    )
    write_png(folder / "mask.png", mask)
    expected = ps.load(folder)
    in_widths(folder, 61, (30, 20))
    np.testing.assert_allclose(
        ps.load(folder).lights.positions, expected.lights.positions, atol=1e-4
    )
