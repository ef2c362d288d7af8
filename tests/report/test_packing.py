"""Packed normals and heights give back what went in."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from photostereo.report.pictures import Frame, frame_around
from photostereo.report.pyramid import pack_normals
from photostereo.report.surface_parts import pack_heights

from .unpacking import unpack_normals


def test_every_direction_survives_twelve_bits():
    vectors = np.random.default_rng(0).normal(size=(300, 300, 3))
    vectors[0, 0] = (0, 0, -1)
    vectors[0, 1] = (0, 0, 1)
    vectors[0, 2] = (-1, 0, 0)
    vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
    packed = pack_normals(vectors, np.ones((300, 300), bool))
    assert packed.any(axis=-1).all()  # black is kept for "unknown"
    sine = np.linalg.norm(np.cross(unpack_normals(packed), vectors), axis=-1)
    assert np.degrees(np.arcsin(sine.max())) < 0.06
    assert (np.sum(unpack_normals(packed) * vectors, axis=-1) > 0).all()


def test_unknown_normals_are_black():
    inside = np.array([[True, False]])
    packed = pack_normals(np.array([[[0.0, 0, 1], [0, 0, 1]]]), inside)
    assert packed[0, 0].any() and not packed[0, 1].any()
    assert (unpack_normals(packed)[0, 1] == 0).all()


def codes_of(grid):
    return np.frombuffer(base64.b64decode(grid["codes"]), "<u2").reshape(grid["rows"], grid["cols"])


@pytest.mark.parametrize("limit", [10**6, 1200])
def test_heights_come_back(sphere, limit):
    frame = frame_around(sphere.mask, max_pixels=10**6, margin=0.03)
    grid = pack_heights(sphere.depth, sphere.mask, frame, max_vertices=limit)
    assert grid["rows"] * grid["cols"] <= limit
    codes, step = codes_of(grid).astype(float), int(grid["step"])
    heights = grid["low"] + (codes - 1) / 65534 * (grid["high"] - grid["low"])
    cut = frame.cut(sphere.depth)
    worst = 0.0
    for j in range(grid["rows"]):
        for i in range(grid["cols"]):
            cell = cut[j * step : (j + 1) * step, i * step : (i + 1) * step]
            if np.isfinite(cell).any():
                worst = max(worst, abs(heights[j, i] - np.nanmean(cell)))
                assert codes[j, i] > 0
    assert worst <= (grid["high"] - grid["low"]) / 65534


def test_one_ring_is_carried_beyond_the_rim():
    depth = np.full((5, 5), np.nan)
    depth[2, 2] = 7.0
    grid = pack_heights(depth, np.isfinite(depth), Frame(slice(0, 5), slice(0, 5), 5, 5))
    filled = codes_of(grid) > 0
    assert filled[1:4, 1:4].all() and filled.sum() == 9


def test_tears_are_carried(sphere):
    tears = np.zeros(sphere.mask.shape, bool)
    tears[40, 30:50] = True
    frame = frame_around(sphere.mask, max_pixels=10**6)
    grid = pack_heights(sphere.depth, sphere.mask, frame, tears=tears)
    cuts = np.frombuffer(base64.b64decode(grid["cuts"]), np.uint8).reshape(
        grid["rows"], grid["cols"]
    )
    assert (cuts > 0).sum() == 20
