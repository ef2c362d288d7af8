"""Light files that other programs write, and our own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from photostereo.core.errors import CaptureError
from photostereo.lights.files.reading import read_lights

LIGHTS = np.array([[0.6, 0.0, 0.8], [0.0, 0.6, 0.8], [-0.6, 0.0, 0.8], [0.0, -0.6, 0.8]])


def test_header_and_count(tmp_path: Path) -> None:
    file = tmp_path / "lights.txt"
    file.write_text(
        "Header: ../images/chrome/chrome.txt\n4\n"
        + "\n".join(" ".join(map(str, row)) for row in LIGHTS)
    )
    np.testing.assert_array_equal(read_lights(file, count=4).vectors, LIGHTS)


@pytest.mark.data
def test_lights_of_washington(data_dir: Path) -> None:
    table = read_lights(data_dir / "uw" / "lights.txt", count=12)
    assert table.vectors.shape == (12, 3)
    np.testing.assert_allclose(table.lengths, 1, atol=1e-3)


def test_meshroom(tmp_path: Path) -> None:
    file = tmp_path / "lights.json"
    entries = [
        {
            "viewId": str(i),
            "type": "directional",
            "direction": [str(x), str(-y), str(-z)],
            "intensity": ["2", "2", "2"],
        }
        for i, (x, y, z) in enumerate(LIGHTS)
    ]
    file.write_text(json.dumps({"lights": entries}))
    table = read_lights(file)
    np.testing.assert_allclose(table.vectors, LIGHTS)
    np.testing.assert_allclose(table.intensities, 2)
    entries[1]["type"] = "SH"
    file.write_text(json.dumps({"lights": entries}))
    with pytest.raises(CaptureError, check=lambda e: e.code == "light-file-type"):
        read_lights(file)


@pytest.mark.parametrize("name", ["L", "light_directions", "something"])
@pytest.mark.parametrize("transposed", [False, True])
def test_matlab(tmp_path: Path, name: str, transposed: bool) -> None:
    file = tmp_path / "lights.mat"
    savemat(file, {name: LIGHTS.T if transposed else LIGHTS, "intensities": [1.0, 2.0, 3.0, 4.0]})
    table = read_lights(file, count=4)
    np.testing.assert_array_equal(table.vectors, LIGHTS)
    np.testing.assert_array_equal(table.intensities, [1, 2, 3, 4])


def test_matlab_that_does_not_say_which(tmp_path: Path) -> None:
    file = tmp_path / "lights.mat"
    savemat(file, {"a": LIGHTS, "b": LIGHTS})
    with pytest.raises(CaptureError, check=lambda e: e.code == "light-file-columns"):
        read_lights(file, count=4)
    (tmp_path / "bad.mat").write_bytes(b"nothing")
    with pytest.raises(CaptureError, check=lambda e: e.code == "light-file-format"):
        read_lights(tmp_path / "bad.mat")
