"""Bad input gets an answer or a clear error."""

from __future__ import annotations

import numpy as np
import pytest

from photostereo.core.errors import ParameterError
from photostereo.surface import build_mesh, integrate

METHODS = ("poisson", "simchony", "robust")
UP = np.array([0.0, 0.0, 1.0])


def code_of(normals: np.ndarray, *args, **options) -> str:
    """The code of the error that an integration raises."""
    with pytest.raises(ParameterError) as caught:
        integrate(normals, *args, **options)
    return caught.value.code


@pytest.mark.parametrize("method", METHODS)
def test_empty_mask(method: str) -> None:
    assert code_of(np.zeros((5, 5, 3)) + UP, np.zeros((5, 5)), method=method) == "empty-mask"


@pytest.mark.parametrize("method", METHODS)
def test_normals_facing_away(method: str) -> None:
    assert code_of(np.zeros((5, 5, 3)) - UP, method=method) == "normals-face-away"


@pytest.mark.parametrize("method", METHODS)
def test_a_few_facing_away_are_counted(method: str) -> None:
    normals = np.zeros((9, 9, 3)) + UP
    normals[4, 4] = (0.6, 0.0, -0.8)
    surface = integrate(normals, method=method)
    assert surface.away == 1
    assert np.isfinite(surface.depth).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_unknown_normals_are_filled(shapes, method: str, value: float) -> None:
    """A hole of zero, NaN or infinite normals in a tilted plane is bridged; all of them is an error."""
    plane = shapes.normals_of(np.full((20, 20), 0.5), np.zeros((20, 20)))
    everywhere = np.ones((20, 20), dtype=bool)
    holed = plane.copy()
    holed[8:11, 8:11] = value
    surface = integrate(holed, everywhere, method=method)
    assert surface.unknown == 9
    assert np.isfinite(surface.depth).all()
    if method != "simchony":
        truth = 0.5 * np.arange(20) + np.zeros((20, 1))
        assert np.abs(shapes.aligned(surface.depth, truth, everywhere)).max() < 1e-2
    assert code_of(np.full((5, 5, 3), value), np.ones((5, 5)), method=method) == "no-normals"
    assert code_of(np.full((5, 5, 3), value), method=method) == "no-normals"


@pytest.mark.parametrize("method", METHODS)
def test_disconnected_specks(method: str) -> None:
    rng = np.random.default_rng(0)
    mask = np.zeros((60, 60), dtype=bool)
    mask[::4, ::4] = True
    mask[10:20, 10:20] = True
    normals = np.zeros((60, 60, 3)) + UP + 0.1 * rng.normal(size=(60, 60, 3))
    surface = integrate(normals, mask, method=method)
    assert surface.parts > 200
    assert np.isfinite(surface.depth[mask]).all()
    if method != "simchony":
        assert (
            np.abs(
                surface.depth[::4, ::4][surface.labels[::4, ::4] != surface.labels[12, 12]]
            ).max()
            == 0
        )
    assert len(build_mesh(surface, normals).faces) > 150


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(1, 30), (30, 1), (1, 1)])
def test_a_line_of_pixels(method: str, shape: tuple[int, int]) -> None:
    """Heights of a line are exact; a mesh of it is a clear error."""
    normals = np.broadcast_to([-0.6, 0.6, 0.8], (*shape, 3))
    surface = integrate(normals, method=method)
    for axis in (0, 1):
        step = np.diff(surface.depth, axis=axis)
        assert np.abs(step - 0.75).max(initial=0) < 1e-10
    with pytest.raises(ParameterError) as caught:
        build_mesh(surface, normals)
    assert caught.value.code == "no-triangles"


def test_only_specks_have_no_mesh() -> None:
    mask = np.zeros((20, 20), dtype=bool)
    mask[::4, ::4] = True
    normals = np.zeros((20, 20, 3)) + UP
    with pytest.raises(ParameterError) as caught:
        build_mesh(integrate(normals, mask), normals)
    assert caught.value.code == "no-triangles" and caught.value.values == {
        "pixels": 25,
        "parts": 25,
    }


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"method": "possion"}, "unknown-integration"),
        ({"mask": np.ones((3, 3))}, "mask-shape"),
        ({"weights": np.ones((3, 3))}, "weights-shape"),
        ({"weights": -np.ones((5, 5))}, "bad-weights"),
        ({"weights": np.ones((5, 5)), "method": "simchony"}, "simchony-is-unweighted"),
        ({"anchors": np.ones((5, 5)), "method": "simchony"}, "simchony-is-unweighted"),
        ({"anchors": np.ones((3, 3))}, "anchors-shape"),
        ({"anchors": np.full((5, 5), np.nan)}, "no-anchors"),
        ({"highpass": -1.0}, "bad-highpass"),
        ({"highpass": 1e-300}, "bad-highpass"),
        ({"tol": 0.0}, "bad-integration-option"),
    ],
)
def test_options_that_do_not_fit(options: dict, code: str) -> None:
    assert code_of(np.zeros((5, 5, 3)) + UP, **options) == code


def test_not_a_normal_map() -> None:
    assert code_of(np.zeros((5, 5))) == "normals-shape"


def test_result_is_read_only() -> None:
    surface = integrate(np.zeros((5, 5, 3)) + UP)
    with pytest.raises(ValueError):
        surface.depth[0, 0] = 1.0
