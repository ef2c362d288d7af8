"""A source of any kind gets every stage: here the frames of an animated GIF, as a plugin would read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageSequence

import photostereo.capture.loading as loading
from photostereo.capture import write_archive
from photostereo.capture.capture import Capture
from photostereo.capture.options import ReadOptions
from photostereo.capture.source import Source
from photostereo.core.findings import by_code
from photostereo.io.camera import Shot
from photostereo.lights.files.table import LightTable
from photostereo.photographs.protocol import PhotographsInMemory
from photostereo.pipeline.pipeline import Pipeline
from photostereo_lab.scenes import dome_lights, render_scene

COUNT = 10
LIGHTS = dome_lights(COUNT, max_angle=55)


# The whole plugin: a source of photographs, and a layout that recognizes it.
class Slides:
    """The frames of an animated GIF."""

    def __init__(self, path: Path) -> None:
        with Image.open(path) as file:
            self.frames = [np.asarray(frame.convert("L")) for frame in ImageSequence.Iterator(file)]

    def __len__(self) -> int:
        return len(self.frames)

    def name(self, k: int) -> str:
        return f"frame {k + 1}"

    def head(self, k: int) -> Shot:
        return Shot(frame=self.frames[k].shape)

    def read(self, k: int) -> np.ndarray[Any, Any]:
        return self.frames[k]

    def digest(self, k: int) -> str:
        return str(hash(self.frames[k].tobytes()))


class Gif:
    LAYOUT = "GIF"

    def recognizes(self, path: Path) -> bool:
        return path.suffix == ".gif"

    def find(self, path: Path, options: ReadOptions) -> Source:
        table = LightTable(path, LIGHTS) if "lit" in path.stem else None
        slides = Slides(path)
        return Source(
            path, self.LAYOUT, path.stem, photographs=slides, lights=table, mask_default="auto"
        )


@pytest.fixture(autouse=True)
def plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    own = loading.layouts()
    monkeypatch.setattr(loading, "layouts", lambda: (Gif(), *own))


def scene(shape: str = "figure") -> Capture:
    return render_scene(shape, size=128, lights=LIGHTS, texture="marble", reflectance="ggx")


def write_gif(images: np.ndarray[Any, Any], path: Path) -> Path:
    pictures = [
        Image.fromarray(np.rint(np.clip(0.6 * image, 0, 1) * 255).astype(np.uint8))
        for image in images
    ]
    pictures[0].save(path, save_all=True, append_images=pictures[1:])
    return path


def test_frames_of_a_gif_are_photographs_like_others(tmp_path: Path) -> None:
    images = scene().images.copy()
    images[4] *= 0.01
    images[[2, 7]] = np.roll(images[[2, 7]], (3, 2), (1, 2))
    pipeline = Pipeline(write_gif(images, tmp_path / "lit.gif"), method="ls", report=False)
    capture = pipeline.capture
    assert capture.origin is not None and capture.origin.layout == "GIF"
    assert [(fault.file, fault.reason) for fault in capture.origin.faults] == [("frame 5", "dark")]
    assert pipeline.alignment is not None
    moved = np.flatnonzero(pipeline.alignment.corrected.any(axis=1))
    assert [capture.origin.files[k] for k in moved] == ["frame 3", "frame 8"]
    assert "mask-found" in by_code(capture.origin.notes) and 0.1 < capture.mask.mean() < 0.6
    assert capture.origin.bit_depth == 8
    off = np.degrees(
        np.arccos(
            np.clip((pipeline.solution.normals * scene().truth).sum(axis=2)[capture.mask], -1, 1)
        )
    )
    assert np.median(off) < 8
    summary = pipeline.write(tmp_path / "out").summary
    assert summary["photographs"]["left_out"][0]["file"] == "frame 5"
    left_out = Pipeline(
        tmp_path / "lit.gif", method="ls", leave_out=("frame 1",), scale=0.5
    ).capture
    assert left_out.origin is not None and left_out.frame == (64, 64)
    assert "frame 1" not in left_out.origin.files


def test_light_of_the_room_in_a_gif_is_subtracted(tmp_path: Path) -> None:
    room = 0.25 * scene().images.mean(axis=0)
    capture = loading.load(write_gif(scene().images + room, tmp_path / "lit.gif"), mask="full")
    assert capture.origin is not None and "room-light" in by_code(capture.origin.notes)


def test_lights_of_a_gif_are_estimated(tmp_path: Path) -> None:
    capture = loading.load(write_gif(scene("sphere").images, tmp_path / "alone.gif"), mask="auto")
    assert set(capture.lights.source) == {"estimated"}


def test_arrays_and_archives_are_sources_too(tmp_path: Path) -> None:
    images = scene().images.copy()
    images[4] *= 0.01
    photographs = PhotographsInMemory(np.rint(60000 * np.clip(images, 0, 1)).astype(np.uint16))
    source = Source(
        Path("memory"), "memory", "x", photographs=photographs, lights=LightTable(Path(), LIGHTS)
    )
    for given in (source, write_archive(scene().with_images(images), tmp_path / "x.npz")):
        capture = Pipeline(given, method="ls").capture
        assert capture.origin is not None
        faults = [(fault.file, fault.reason) for fault in capture.origin.faults]
        assert faults == [("photograph-5", "dark")]
