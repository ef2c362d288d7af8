"""The object is found in the photographs, before black and on textured ground; holes stay."""

from __future__ import annotations

import numpy as np
import pytest

from photostereo.capture import load, write_archive
from photostereo.capture.auto_mask import mask_from_stack
from photostereo.scenes import dome_lights, render_scene


@pytest.fixture(scope="module")
def vase():
    return render_scene("vase", size=128, lights=dome_lights(10))


def overlap(found, mask):
    return (found & mask).sum() / (found | mask).sum()


def grounded(images, mask, level, seed=0):
    rng = np.random.default_rng(seed)
    texture = level * (0.4 + 0.6 * np.kron(rng.random((32, 32)), np.ones((4, 4))))
    ground = texture * rng.uniform(0.6, 1, (len(images), 1, 1)) + rng.normal(0, 0.003, images.shape)
    return np.where(mask, images, np.maximum(ground, 0)).astype(np.float32)


@pytest.mark.parametrize("level", [0.0, 0.1, 0.4])
def test_the_object_is_found_on_black_and_on_textured_ground(vase, level):
    images = grounded(vase.images, vase.mask, level)
    assert overlap(mask_from_stack(lambda: images), vase.mask) > 0.97


def test_a_hole_through_which_the_ground_is_seen_stays(vase):
    mask = vase.mask.copy()
    rows, cols = np.nonzero(mask)
    centre = int(rows.mean()), int(cols.mean())
    down, right = np.mgrid[:128, :128]
    hole = np.hypot(down - centre[0], right - centre[1]) < 10
    images = grounded(vase.images, mask & ~hole, 0.0)
    found = mask_from_stack(lambda: images)
    assert found[hole].mean() < 0.1
    assert overlap(found, mask & ~hole) > 0.95


def test_nothing_is_found_where_nothing_stands_out():
    assert not mask_from_stack(lambda: np.zeros((4, 40, 40), np.float32)).any()
    assert not mask_from_stack(lambda: np.full((4, 40, 40), 0.5, np.float32)).any()


def test_colour_and_a_factor_change_nothing(vase):
    images = grounded(vase.images, vase.mask, 0.1)
    found = mask_from_stack(lambda: images)
    colour = np.repeat(images[..., None], 3, axis=-1)
    assert overlap(mask_from_stack(lambda: colour), found) > 0.995
    assert overlap(mask_from_stack(lambda: 16 * images), found) > 0.995


def test_large_photographs_are_cut_small(vase, monkeypatch):
    monkeypatch.setattr("photostereo.capture.auto_mask.CUT_PIXELS", 64 * 64)
    images = grounded(vase.images, vase.mask, 0.1)
    assert overlap(mask_from_stack(lambda: images), vase.mask) > 0.93


def test_load_finds_it_with_mask_auto(tmp_path, vase):
    file = write_archive(vase, tmp_path / "vase.npz")
    capture = load(file, mask="auto")
    assert overlap(capture.mask, vase.mask) > 0.97
    assert any("found in the photographs" in note for note in capture.origin.notes)
    assert overlap(load(file, mask="bright").mask, vase.mask) > 0.8
