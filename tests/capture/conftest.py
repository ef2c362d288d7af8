"""Small captures on disk, in the layouts that are read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import pytest

from photostereo.capture import Capture


@dataclass(frozen=True)
class Shots:
    """Stored 16-bit RGB numbers with lights, and tools to put them on disk."""

    stored: np.ndarray  # (d, H, W, 3) uint16
    lights: np.ndarray  # (d, 3) unit

    def write(
        self,
        folder: Path,
        *,
        suffix: str = ".png",
        bits: int = 16,
        gray: bool = False,
        stem: str = "shot",
    ) -> list[Path]:
        folder.mkdir(parents=True, exist_ok=True)
        files = []
        for number, image in enumerate(self.stored, start=1):
            picture = image[..., 1] if gray else image[..., ::-1]
            if bits == 8:
                picture = (picture >> 8).astype(np.uint8)
            file = folder / f"{stem}{number}{suffix}"
            file.write_bytes(cv2.imencode(suffix, np.ascontiguousarray(picture))[1].tobytes())
            files.append(file)
        return files

    def write_lights(self, folder: Path, name: str = "lights.txt") -> Path:
        file = folder / name
        np.savetxt(file, self.lights, fmt="%.17g")
        return file


@pytest.fixture
def shots() -> Shots:
    rng = np.random.default_rng(7)
    lights = rng.normal(size=(11, 3)) * [0.5, 0.5, 0.1] + [
        0,
        0,
        1,
    ]  # 11: a count whose natural order is not the plain one
    lights /= np.linalg.norm(lights, axis=1, keepdims=True)
    return Shots(rng.integers(0, 65536, size=(11, 12, 9, 3), dtype=np.uint16), lights)


@pytest.fixture
def folder(tmp_path: Path, shots: Shots) -> Path:
    """A plain folder: eleven 16-bit RGB PNG files and ``lights.txt``."""
    place = tmp_path / "thing"
    shots.write(place)
    shots.write_lights(place)
    return place


@pytest.fixture
def capture() -> Capture:
    """A capture with every kind of truth, values above 1 and a mask that leaves a border."""
    rng = np.random.default_rng(3)
    mask = np.zeros((12, 9), dtype=bool)
    mask[2:-1, 1:-2] = True
    truth = rng.normal(size=(12, 9, 3)) + np.array([0, 0, 3])
    truth /= np.linalg.norm(truth, axis=-1, keepdims=True)
    truth[~mask] = 0
    lights = rng.normal(size=(5, 3)) * 0.4 + np.array([0, 0, 1])
    return Capture(
        images=rng.gamma(1.0, 0.7, size=(5, 12, 9)),
        lights=lights,
        mask=mask,
        name="thing",
        truth=truth,
        truth_depth=rng.normal(size=(12, 9)),
        truth_albedo=rng.uniform(0.2, 1, size=(12, 9, 3)),
    )
