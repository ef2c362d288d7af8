"""A format of light files is one file and one line, or an entry point of another package."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import pytest

import photostereo as ps
from photostereo.core.errors import CaptureError
from photostereo.lights.files import reading
from photostereo.lights.files.format import LightFileError, LightFormat
from photostereo.lights.files.reading import formats, light_file_names, read_lights
from photostereo.lights.files.table import LightTable

LIGHTS = np.array([[0.5, 0, 0.8], [-0.5, 0.1, 0.8], [0, 0.6, 0.8], [0.1, -0.6, 0.8]])


def read_lamps(path: Path, count: int | None) -> LightTable:
    """Read lines such as ``lamp 0.5 0 0.8``."""
    rows = [line.split() for line in path.read_text().splitlines()]
    if any(row[0] != "lamp" for row in rows):
        raise LightFileError("light-file-line", "has a line that is no lamp.")
    return LightTable(path, np.array([row[1:] for row in rows], dtype=np.float64))


LAMPS = LightFormat("lamps", (".lamps",), read_lamps, names=("lights.lamps",))


@pytest.fixture
def lamps(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed package that registers the format."""
    point = SimpleNamespace(name="lamps", value="lamps:LAMPS", load=lambda: LAMPS)
    points = {"photostereo.lights": [point]}
    monkeypatch.setattr(
        "photostereo.core.plugins.entry_points", lambda group: points.get(group, [])
    )
    formats.cache_clear()
    light_file_names.cache_clear()
    yield
    formats.cache_clear()
    light_file_names.cache_clear()


def write_lamps(folder: Path) -> Path:
    file = folder / "lights.lamps"
    file.write_text("\n".join("lamp " + " ".join(map(str, row)) for row in LIGHTS.tolist()))
    return file


@pytest.mark.usefixtures("lamps")
def test_a_format_of_another_package_makes_a_folder_a_capture(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for number in range(len(LIGHTS)):
        picture = rng.integers(0, 255, (20, 30), dtype=np.uint8)
        cv2.imwrite(str(tmp_path / f"{number}.png"), picture)
    write_lamps(tmp_path)
    capture = ps.load(tmp_path, align="off")
    unit = LIGHTS / np.linalg.norm(LIGHTS, axis=1, keepdims=True)
    np.testing.assert_allclose(capture.lights.directions, unit)


@pytest.mark.usefixtures("lamps")
def test_its_errors_name_the_file(tmp_path: Path) -> None:
    file = tmp_path / "lights.lamps"
    file.write_text("candle 0 0 1")
    with pytest.raises(CaptureError) as caught:
        read_lights(file)
    assert caught.value.code == "light-file-line"
    assert str(caught.value).startswith(str(file))


def test_our_own_formats() -> None:
    assert set(formats()) >= {"text", "JSON", "MATLAB", "RTI light positions"}
    expected = ("lights.csv", "lights.txt", "lights.json", "light_directions.txt")
    assert light_file_names()[: len(expected)] == expected
    assert len(reading.OWN) <= len(formats())
