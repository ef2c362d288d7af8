"""The packaged example is the figure that the lab renders, up to the precision of the file."""

from __future__ import annotations

from importlib.resources import files

import numpy as np

from photostereo.diagnosis.metrics import angle_between
from photostereo.example import owl
from photostereo_lab.corruptions import SNR_LIMIT
from photostereo_lab.scenes import dome_lights, render_scene
from photostereo_lab.scenes.example import write_example


def test_the_example_is_the_rendered_figure():
    rendered = render_scene(
        "figure", size=400, lights=dome_lights(20), reflectance="oren-nayar", color=True
    )
    stored = owl(SNR_LIMIT)
    assert stored.images.shape == rendered.images.shape
    assert np.array_equal(stored.mask, rendered.mask)
    assert np.allclose(stored.lights.directions, rendered.lights.directions)
    assert np.abs(stored.images - rendered.images).max() < 0.003
    assert angle_between(stored.truth[stored.mask], rendered.truth[stored.mask]).max() < 0.02


def test_the_file_is_small_and_can_be_made_again(tmp_path):
    packaged = files("photostereo.example").joinpath("owl.npz").read_bytes()
    assert len(packaged) < 500_000
    write_example(tmp_path / "owl.npz")
    with (
        np.load(tmp_path / "owl.npz") as made,
        files("photostereo.example").joinpath("owl.npz").open("rb") as file,
    ):
        stored = np.load(file)
        assert sorted(made) == sorted(stored)
        for name in made:
            assert np.abs(made[name].astype(float) - stored[name].astype(float)).max() <= 1.0, name
