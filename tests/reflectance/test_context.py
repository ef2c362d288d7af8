"""The context of the learned model: what it must not change stays, and parts of an object agree with the whole."""

from __future__ import annotations

import numpy as np
import pytest

import photostereo as ps
from photostereo.core.control import SILENT
from photostereo.diagnosis.metrics import angular_error
from photostereo.io.network_weights import SHIPPED
from photostereo.reflectance.learned.context import network
from photostereo.reflectance.learned.context.correct import SIDE, Square
from photostereo.reflectance.learned.context.features import CHANNELS, VECTORS
from photostereo.reflectance.learned.model import Learned
from photostereo.reflectance.learned.weights import context_network
from photostereo.reflectance.model import Overview
from photostereo_lab.scenes import dome_lights, render_scene


def test_a_turned_object_has_turned_corrections() -> None:
    maps = np.random.default_rng(0).normal(size=(SIDE, SIDE, CHANNELS)).astype(np.float32)
    weights = context_network().arrays
    turned = network.predict(weights, network._turned(maps, VECTORS, 1))
    np.testing.assert_allclose(
        turned, network._turned(network.predict(weights, maps), (0,), 1), atol=1e-3
    )
    back = network._turned(network._turned(maps, VECTORS, 3), VECTORS, 1)
    np.testing.assert_array_equal(back, maps)


@pytest.mark.parametrize("size", [50, 150, 400])
def test_cells_average_and_spread(size: int) -> None:
    """A slope comes back as it was, at any resolution; and every cell inside is fully covered."""
    rows, columns = np.mgrid[:size, :size] - size / 2
    mask = np.zeros((size + 40, size + 30), bool)
    mask[20:-20, 15:-15] = rows**2 + columns**2 < (0.48 * size) ** 2
    square = Square.around(mask)
    places = np.nonzero(mask)
    slope = np.stack([places[0] * 0.01, 1.0 - places[1] * 0.02], -1)
    average, count = square.average(*places, slope)
    inner = np.hypot(places[0] - square.row, places[1] - square.column) < 0.38 * size
    found = square.spread(*places, average, count > 0)
    assert np.abs(found - slope)[inner].max() < 0.02 * square.cell
    cover = count / np.maximum(square.pixels, 1)
    down, right = (part[inner].astype(int) for part in square.places(*places))
    assert (cover[down, right] == 1).all()


def test_weights_are_small() -> None:
    from importlib.resources import files

    both = ("photostereo.reflectance.learned", "photostereo.reflectance.learned.context")
    assert sum(len((files(package) / SHIPPED).read_bytes()) for package in both) < 3_000_000


def test_a_matte_object_stays_as_it_is() -> None:
    scene = render_scene("sphere", size=48)
    options = {"outline": False}
    with_context, without = (ps.solve(scene, "net", context=c, **options) for c in (True, False))
    apart = angular_error(with_context.normals, without.normals, scene.mask)[scene.mask]
    assert apart.mean() < 0.02 and np.percentile(apart, 99) < 0.5
    assert with_context.angular_error.mean < without.angular_error.mean + 0.02


def test_parts_of_an_object_agree_with_the_whole() -> None:
    """A glossy ball: what is found on small photographs is what its own pixels give."""
    scene = render_scene("sphere", size=90, reflectance="ggx", color=True, lights=dome_lights(8))
    lights, mask = scene.lights.matrix, scene.mask
    pixels, colors = scene.pixels(), scene.colors()
    whole = Learned(pixels, lights, colors=colors, mask=mask, outline=False)
    alone = Learned(pixels, lights, colors=colors, mask=mask, outline=False, context=False)
    facts = Learned.survey(Overview(pixels, lights, mask, mask, colors), SILENT)
    upper = np.arange(np.count_nonzero(mask[:45]))
    rows, columns = np.nonzero(mask)
    part = Learned(
        pixels[upper],
        lights,
        colors=colors[upper],
        mask=mask[:45],
        outline=False,
        facts=facts.at(rows[upper], columns[upper]),
    )
    found, wanted, plain = (model.alone(SILENT).normals[upper] for model in (part, whole, alone))
    assert np.linalg.norm(wanted - plain, axis=1).mean() > 1e-3  # the context does something here
    assert np.linalg.norm(found - wanted, axis=1).mean() < 1e-3
