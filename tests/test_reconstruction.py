"""What is saved is what is loaded."""

from __future__ import annotations

import numpy as np
import pytest

from photostereo.core.errors import CaptureError
from photostereo.solver.reconstruction import Reconstruction
from photostereo.solver.solve import solve
from photostereo_lab.scenes import render_scene


def test_round_trip(tmp_path) -> None:
    capture = render_scene("relief", size=48)
    result = solve(capture, "pdlnv", max_iter=3, patch=(4, 4, 3), stride=2)
    result.save(tmp_path)
    again = Reconstruction.load(tmp_path)
    for name in ("normals", "albedo", "mask"):
        assert np.array_equal(getattr(result, name), getattr(again, name))
    assert again.history == result.history
    assert again.angular_error == result.angular_error
    assert again.summary() == result.summary()
    assert set(again.maps) == set(result.maps) == {"slopes"}
    for name, array in result.arrays.items():
        assert np.array_equal(array, again.arrays[name])
    with pytest.raises(ValueError, match="read-only"):
        again.normals[0] = 1


def test_a_folder_of_something_else_is_told(tmp_path) -> None:
    with pytest.raises(CaptureError) as caught:
        Reconstruction.load(tmp_path)
    assert caught.value.file == tmp_path / "summary.json"
