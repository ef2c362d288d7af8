"""Levels and tiles: their cut, their means, and what a budget holds."""

from __future__ import annotations

import base64

import cv2
import numpy as np
import pytest

from photostereo.report import pyramid
from photostereo.report.pictures import Frame, frame_around
from photostereo.report.pyramid import Layers, fill, mean_curvature, shrink

from .unpacking import unpack_normals

HEIGHT, WIDTH, TILE = 53, 75, 16


@pytest.fixture(scope="module")
def layers():
    rng = np.random.default_rng(3)
    normals = rng.normal((0, 0, 2), 0.4, (HEIGHT, WIDTH, 3)).astype(np.float32)
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    mask = rng.random((HEIGHT, WIDTH)) < 0.9
    mask[:, [0, -1]] = mask[[0, -1]] = True
    mask[16:32, 32:48] = False  # one tile of level 0 shows nothing
    normals[~mask] = 0
    depth = np.where(mask, rng.normal(0, 5, mask.shape), np.nan)
    albedo = rng.random((HEIGHT, WIDTH, 3)).astype(np.float32)
    return Layers(frame_around(mask), mask, normals, [(albedo, 1.0)], depth, tile=TILE)


def cells(array, known, level):
    """Means over the known pixels of each cell, one cell after the other; NaN where fewer than half are known."""
    step = 1 << level
    rows, cols = -(-array.shape[0] // step), -(-array.shape[1] // step)
    means = np.full((rows, cols, *array.shape[2:]), np.nan)
    for j in range(rows):
        for i in range(cols):
            box = slice(j * step, (j + 1) * step), slice(i * step, (i + 1) * step)
            if known[box].mean() >= 0.5:
                means[j, i] = array[box][known[box]].mean(axis=0)
    return means


def whole(layers, channel, level):
    rows, cols = layers.tiles(level)
    blank = [
        [np.zeros((*_size(layers, level, r, c), 3), np.uint8) for c in range(cols)]
        for r in range(rows)
    ]
    tiles = [[layers.make_tile(channel, level, r, c) for c in range(cols)] for r in range(rows)]
    tiles = [
        [b if t is None else t for t, b in zip(*pair, strict=True)]
        for pair in zip(tiles, blank, strict=True)
    ]
    return np.concatenate([np.concatenate(row, axis=1) for row in tiles])


def _size(layers, level, row, col):
    height, width = layers.size(level)
    return min(TILE, height - row * TILE), min(TILE, width - col * TILE)


@pytest.mark.parametrize("level", [0, 1])
def test_levels_are_means_over_the_known_pixels(layers, level):
    inside = (
        slice(0, HEIGHT >> level << level),
        slice(0, WIDTH >> level << level),
    )  # whole cells only
    normals, mask, depth = layers.normals[inside], layers.mask[inside], layers.depth[inside]
    expected = cells(normals.astype(float), mask, level)
    expected /= np.linalg.norm(expected, axis=-1, keepdims=True)
    rows, cols = expected.shape[:2]
    found = unpack_normals(whole(layers, "normals", level))[:rows, :cols]
    known = np.isfinite(expected[..., 0])
    assert np.array_equal(found.any(axis=-1), known)
    assert np.abs(found - expected)[known].max() < 1.5e-3
    codes = whole(layers, "depth", level)[:rows, :cols].astype(int)
    low, high = layers.heights
    heights = low + (codes[..., 0] * 256 + codes[..., 1] - 1) / 65534 * (high - low)
    assert np.abs(heights - cells(depth, mask, level))[known].max() < 1e-3


def test_a_tile_without_any_pixel_is_left_out(layers):
    assert layers.make_tile("normals", 0, 1, 2) is None
    assert layers.make_tile("normals", 0, 1, 1) is not None


@pytest.mark.parametrize("size", [(16, 16), (17, 16), (53, 75), (128, 3), (1, 1)])
def test_every_pixel_is_in_one_tile_and_the_coarsest_level_is_one(size):
    frame = Frame(slice(0, size[0]), slice(0, size[1]), 1, 1)
    layout = Layers(frame, np.ones((1, 1), bool), tile=TILE)
    assert layout.tiles(layout.levels - 1) == (1, 1)
    for level in range(layout.levels):
        count = np.zeros(size, int)
        rows, cols = layout.tiles(level)
        for row in range(rows):
            for col in range(cols):
                count[layout.box(level, row, col)] += 1
        assert (count == 1).all()


def test_shrinking_in_bands_changes_nothing(layers, monkeypatch):
    whole_values, whole_known = shrink(layers.normals, layers.mask, 2)
    monkeypatch.setattr(pyramid, "BAND", 8 * WIDTH)
    values, known = shrink(layers.normals, layers.mask, 2)
    assert np.array_equal(values, whole_values) and np.array_equal(known, whole_known)


def test_a_budget_holds_whole_levels_from_the_coarsest(layers):
    def held(budget):
        channels = fill([(layers, kind) for kind in ("albedo", *layers.kinds)], budget)
        finest = min(map(int, channels[0]))
        for channel in channels:
            assert list(channel) == [str(level) for level in range(finest, layers.levels)]
        spent = sum(len(a) for c in channels for tiles in c.values() for a in tiles)
        return finest, spent

    everything = held(10**9)
    assert everything[0] == 0
    assert held(0)[0] == layers.levels - 1  # the coarsest is always there
    finest, spent = held(everything[1] - 1)
    assert finest == 1 and spent < everything[1]


def test_tiles_in_the_page_lose_nothing(layers):
    (channel,) = fill([(layers, "normals")], 10**9)
    address = channel["0"][0]
    kind, text = address.split(",", 1)
    assert kind == "data:image/webp;base64"
    picture = cv2.imdecode(np.frombuffer(base64.b64decode(text), np.uint8), cv2.IMREAD_COLOR)[
        ..., ::-1
    ]
    assert np.array_equal(picture, layers.make_tile("normals", 0, 0, 0))
    assert channel["0"][1 * 5 + 2] == ""


def test_curvature_of_a_ball_is_one_over_its_radius():
    radius = 40.0
    rows, cols = np.mgrid[-25:26, -25:26].astype(float)
    normals = np.stack([cols, -rows, np.sqrt(radius**2 - cols**2 - rows**2)], axis=-1) / radius
    assert np.abs(mean_curvature(normals) - 1 / radius).max() < 1e-6
