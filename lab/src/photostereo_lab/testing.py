"""The contract that every method must meet, in this package and in others.

In the tests of a package that provides a model::

    import pytest
    from photostereo_lab.testing import CHECKS

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_contract(check):
        check("mine")                    # also check("mine+dictionary"), check("mine", "torch-cpu")

A model that does not claim to be exact declares that in its entry (``exact=False``); there are no
other exceptions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.capture import Capture
from photostereo.diagnosis.metrics import angle_between
from photostereo.solver.methods import find_method
from photostereo.solver.reconstruction import Reconstruction
from photostereo.solver.solve import solve
from photostereo_lab.scenes import dome_lights, lambertian_reference, render_scene
from photostereo_lab.scenes.near import render_near

#: Enough iterations to exercise every step; convergence is tested elsewhere.
FEW = 4
#: Limit of the mean error on the matte scene in degrees, for any method with its defaults: most are
#: exact to 1e-3.
MATTE_MEAN = 0.02
#: Limit of the error of each pixel there: robust PCA gives up single pixels (0.6°), the smoothness
#: prior bends the outline (0.1°).
MATTE_WORST = 1.0
#: The limit of the mean error under near lights, under which the photographs are not of low rank;
#: treating them as distant costs 5° to 15°.
NEAR_MEAN = 0.2
#: A cost may rise by this share through rounding in single precision.
ROUNDING = 1e-6


@cache
def matte_scene() -> Capture:
    """Noise-free, shadow-free, Lambertian, textured."""
    return lambertian_reference(size=48)


@cache
def near_scene() -> Capture:
    """Matte, under lights at two object sizes and a camera at four, with its depth known."""
    scene = render_near(2.0 * dome_lights(12, max_angle=35), size=40, focal=160.0)
    assert scene.truth_depth is not None
    return replace(scene, lights=scene.lights.changed(depth=scene.truth_depth))


@cache
def shiny_scene() -> Capture:
    """Highlights and cast shadows: no method is exact here, so differences show."""
    return render_scene("vase", size=40, lights=dome_lights(12), reflectance="ggx")


def check_exact_on_a_matte_scene(name: str, device: str = "cpu") -> None:
    """On a matte scene every method finds the ground truth.

    If the model claims to be exact, the error is within the entry's tolerance.
    """
    method = find_method(name)
    matte = matte_scene()
    assert matte.truth is not None
    error = _angles(_run(matte, name, device).normals, matte.truth, matte.mask)
    assert error.mean() < MATTE_MEAN, error.mean()
    assert error.max() < MATTE_WORST, error.max()
    if method.model.exact:
        options: dict[str, Any] = {}
        if method.prior is not None:  # present, but without weight
            options = dict.fromkeys(method.prior.strengths, 0.01)
            options[method.prior.strengths[0]] = 0.0
            options["max_iter"] = FEW
        result = solve(matte, method, device=device, **options)
        worst = _angles(result.normals, matte.truth, matte.mask).max()
        assert worst < method.model.tolerance, worst


def check_near_lights(name: str, device: str = "cpu") -> None:
    """Lights that differ from pixel to pixel are used as such.

    Distant lights would cause errors of several degrees.
    """
    near = near_scene()
    assert near.truth is not None
    error = _angles(_run(near, name, device).normals, near.truth, near.mask)
    assert error.mean() < NEAR_MEAN, error.mean()


def check_cost_never_rises(name: str, device: str = "cpu") -> None:
    """No iteration with a prior raises the total cost of data and prior.

    Without a prior there are no iterations.
    """
    history = _run_shiny(name, device).history
    assert bool(history) == find_method(name).has_prior
    assert len(history) <= FEW  # it may stop earlier
    for before, after in pairwise(history):
        assert after.cost <= before.cost + ROUNDING * abs(before.cost), (before.cost, after.cost)
    assert all(np.isfinite(list(record.figures.values())).all() for record in history)


def check_quarter_turn(name: str, device: str = "cpu") -> None:
    """Photographs and lights turned by 90° give the normals turned by 90°.

    A prior may depend on the grid of pixels (patches, initial atoms), but the turn must change less
    than the prior does.
    """
    method = find_method(name)
    shiny = shiny_scene()
    turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    images = np.ascontiguousarray(np.rot90(shiny.images, axes=(1, 2)))
    directions = shiny.lights.directions @ turn.T
    turned = Capture(images, directions, np.ascontiguousarray(np.rot90(shiny.mask)))
    first = _run_shiny(name, device).normals
    back = np.ascontiguousarray(np.rot90(_run(turned, name, device).normals, -1)) @ turn
    difference = _angles(first, back, shiny.mask).mean()
    allowed = 0.05  # networks that use neighbors learned to turn with the picture: about 0.02
    if method.has_prior:
        allowed += _angles(first, _run_shiny(method.model.name, device).normals, shiny.mask).mean()
    assert difference < allowed, (difference, allowed)


def check_order_of_the_lights(name: str, device: str = "cpu") -> None:
    """The photographs in another order give the same normals."""
    shiny = shiny_scene()
    order = np.random.default_rng(1).permutation(len(shiny))
    _nearly_equal(_run_shiny(name, device), _run(shiny.take(order), name, device))


def check_factor_on_the_photographs(name: str, device: str = "cpu") -> None:
    """Scaling the photographs scales the albedo and changes nothing else."""
    shiny = shiny_scene()
    factor = 37.0
    first = _run_shiny(name, device)
    second = _run(shiny.with_images(shiny.images * np.float32(factor)), name, device)
    _nearly_equal(first, second)
    ratio = np.median(second.albedo[shiny.mask] / np.maximum(first.albedo[shiny.mask], 1e-6))
    assert abs(ratio - factor) < 1e-3 * factor, ratio


def check_outside_of_the_mask(name: str, device: str = "cpu") -> None:
    """Pixels outside the mask do not change a single bit of the result."""
    shiny = shiny_scene()
    images = shiny.images.copy()
    outside = images[:, ~shiny.mask].shape
    images[:, ~shiny.mask] = np.random.default_rng(2).uniform(0, 9, size=outside)
    _equal(_run_shiny(name, device), _run(shiny.with_images(images), name, device))


def check_same_answer_again(name: str, device: str = "cpu") -> None:
    """The input is not modified, and a second call gives the same bits."""
    shiny = shiny_scene()
    before = shiny.images.copy(), shiny.lights.directions.copy(), shiny.mask.copy()
    first = _run_shiny(name, device)
    second = _run(shiny, name, device)
    after = shiny.images, shiny.lights.directions, shiny.mask
    for old, new in zip(before, after, strict=True):
        assert np.array_equal(old, new)
    _equal(first, second)


def check_unit_inside_zero_outside(name: str, device: str = "cpu") -> None:
    """Normals are unit where a photograph saw light, and zero outside the mask.

    The albedo is finite and not negative.
    """
    shiny = shiny_scene()
    result = _run_shiny(name, device)
    assert result.normals.shape == (*shiny.frame, 3)
    assert result.normals.dtype == np.float32
    assert not result.normals[~shiny.mask].any()
    assert not result.albedo[~shiny.mask].any()
    bright = shiny.images[:, shiny.mask].max(axis=0) > 0
    length = np.linalg.norm(result.normals[shiny.mask], axis=1)
    assert np.abs(length[bright] - 1).max() < 1e-5
    assert np.isfinite(result.albedo).all()
    assert result.albedo.min() >= 0


def check_black_pixels(name: str, device: str = "cpu") -> None:
    """Pixels that are black in every photograph give finite results."""
    shiny = shiny_scene()
    images = shiny.images.copy()
    rows, cols = np.nonzero(shiny.mask)
    images[:, rows[:50], cols[:50]] = 0
    result = _run(shiny.with_images(images), name, device)
    assert np.isfinite(result.normals).all()
    assert np.isfinite(result.albedo).all()


def check_describes_itself(name: str, device: str = "cpu") -> None:
    """The method has a title, assumptions, a citation and a line on every parameter.

    Each default is a valid value.
    """
    method = find_method(name)
    assert method.title
    assert method.assumes
    assert method.citation
    for parameter in method.parameters:
        assert parameter.doc
        if parameter.default is not None:
            assert parameter.convert(parameter.default, name) == parameter.default


#: A check takes the name of a method and a device.
Check = Callable[..., None]

#: All checks.
CHECKS: tuple[Check, ...] = (
    check_exact_on_a_matte_scene,
    check_near_lights,
    check_cost_never_rises,
    check_quarter_turn,
    check_order_of_the_lights,
    check_factor_on_the_photographs,
    check_outside_of_the_mask,
    check_same_answer_again,
    check_unit_inside_zero_outside,
    check_black_pixels,
    check_describes_itself,
)


def _run(capture: Capture, name: str, device: str) -> Reconstruction:
    """Solve a capture with few iterations."""
    method = find_method(name)
    options: dict[str, Any] = {"max_iter": FEW} if method.has_prior else {}
    return solve(capture, method, device=device, **options)


@cache
def _run_shiny(name: str, device: str) -> Reconstruction:
    """The result with which several checks compare another."""
    return _run(shiny_scene(), name, device)


def _angles(
    first: NDArray[Any], second: NDArray[Any], mask: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return the angles in degrees between two normal maps, inside a mask."""
    return angle_between(first[mask], second[mask])


def _equal(first: Reconstruction, second: Reconstruction) -> None:
    assert np.array_equal(first.normals, second.normals)
    assert np.array_equal(first.albedo, second.albedo)


def _nearly_equal(first: Reconstruction, second: Reconstruction) -> None:
    error = _angles(first.normals, second.normals, first.mask)
    # Sums are computed in another order; single codes may fall on the other side of a threshold.
    assert np.percentile(error, 99) < 0.02
    assert error.mean() < 0.01
