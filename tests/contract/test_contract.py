"""The contract that every registered method keeps. Registering a method enrols it here.

Methods that do not claim to be exact say so in the registry (``exact=False``); there are no other exceptions.
What runs on a GPU keeps the same contract on torch's CPU device, and on a GPU where there is one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from photostereo.capture import Capture
from photostereo.quality.metrics import angle_between
from photostereo.scenes import dome_lights, lambertian_reference, render_scene
from photostereo.solver.methods import find_method, method_names
from photostereo.solver.solve import solve

METHODS = method_names()

try:
    import torch
except ImportError:
    torch = None
else:
    torch.set_num_threads(1)  # these problems are small: more threads would only wait for each other

SKIPPED = {
    "cpu": None,
    "torch-cpu": "PyTorch is not installed (the gpu extra)" if torch is None else None,
    "cuda": None if torch is not None and torch.cuda.is_available() else "there is no NVIDIA GPU here",
}


def on_every_device(names):
    """(name, device) pairs: every method on the CPU, and on torch's devices those that run there."""
    for device, reason in SKIPPED.items():
        for name in names:
            if device == "cpu" or find_method(name).on_gpu:
                marks = [pytest.mark.skip(reason=reason)] if reason else []
                if device != "cpu":
                    marks.append(pytest.mark.torch)
                yield pytest.param(name, device, id=f"{name}-{device}", marks=marks)


CASES = list(on_every_device(METHODS))
EXACT = list(on_every_device([name for name in METHODS if find_method(name).exact]))

#: Enough iterations to exercise every step; convergence is tested elsewhere.
FEW = 4


def run(capture: Capture, name: str, device: str):
    method = find_method(name)
    options = {"max_iter": FEW} if method.has_prior else {}
    return solve(capture, method=name, device=device, **options)


@pytest.fixture(scope="module")
def matte() -> Capture:
    """Noise-free, shadow-free, Lambertian, textured."""
    return lambertian_reference(size=48)


@pytest.fixture(scope="module")
def shiny() -> Capture:
    """Highlights and cast shadows: nothing is exact here, so a difference would show."""
    return render_scene("vase", size=40, lights=dome_lights(12), reflectance="ggx")


def angles(a, b, mask):
    return angle_between(a.normals[mask], b.normals[mask])


@pytest.mark.parametrize(("name", "device"), EXACT)
def test_exact_on_a_matte_scene(name: str, device: str, matte: Capture) -> None:
    if find_method(name).has_prior:
        result = solve(matte, method=name, device=device, max_iter=FEW, lam=0.0, mu=0.01)
    else:
        result = solve(matte, method=name, device=device)
    error = angle_between(result.normals[matte.mask], matte.truth[matte.mask])
    assert error.max() < find_method(name).tolerance


@pytest.mark.parametrize(("name", "device"), CASES)
def test_order_of_the_lights_does_not_matter(name: str, device: str, shiny: Capture) -> None:
    order = np.random.default_rng(1).permutation(len(shiny))
    error = angles(run(shiny, name, device), run(shiny.take(order), name, device), shiny.mask)
    # Sums run in another order; a threshold may fall the other way for single codes.
    assert np.percentile(error, 99) < 0.02
    assert error.mean() < 0.01


@pytest.mark.parametrize(("name", "device"), CASES)
@pytest.mark.parametrize("factor", [0.125, 37.0])
def test_a_factor_on_the_photographs_changes_the_albedo_only(
    name: str, device: str, factor: float, shiny: Capture
) -> None:
    scaled = replace(shiny, images=shiny.images * np.float32(factor))
    first, second = run(shiny, name, device), run(scaled, name, device)
    error = angles(first, second, shiny.mask)
    assert np.percentile(error, 99) < 0.02
    assert error.mean() < 0.01
    inside = first.albedo[shiny.mask]
    ratio = second.albedo[shiny.mask] / np.maximum(inside, 1e-6)
    assert np.median(ratio) == pytest.approx(factor, rel=1e-3)


@pytest.mark.parametrize(("name", "device"), CASES)
def test_pixels_outside_the_mask_do_not_matter(name: str, device: str, shiny: Capture) -> None:
    images = shiny.images.copy()
    images[:, ~shiny.mask] = np.random.default_rng(2).uniform(0, 9, size=images[:, ~shiny.mask].shape)
    first, second = run(shiny, name, device), run(replace(shiny, images=images), name, device)
    assert np.array_equal(first.normals, second.normals)
    assert np.array_equal(first.albedo, second.albedo)


@pytest.mark.parametrize(("name", "device"), CASES)
def test_input_unmodified_same_answer_again(name: str, device: str, shiny: Capture) -> None:
    before = shiny.images.copy(), shiny.lights.copy(), shiny.mask.copy()
    first, second = run(shiny, name, device), run(shiny, name, device)
    for kept, now in zip(before, (shiny.images, shiny.lights, shiny.mask), strict=True):
        assert np.array_equal(kept, now)
    assert np.array_equal(first.normals, second.normals)
    assert np.array_equal(first.albedo, second.albedo)


@pytest.mark.parametrize(("name", "device"), CASES)
def test_unit_inside_zero_outside(name: str, device: str, shiny: Capture) -> None:
    result = run(shiny, name, device)
    assert result.normals.shape == (*shiny.frame, 3)
    assert result.normals.dtype == np.float32
    assert not result.normals[~shiny.mask].any()
    assert not result.albedo[~shiny.mask].any()
    seen = shiny.images[:, shiny.mask].max(axis=0) > 0
    length = np.linalg.norm(result.normals[shiny.mask], axis=1)
    assert np.abs(length[seen] - 1).max() < 1e-5
    assert np.isfinite(result.albedo).all() and result.albedo.min() >= 0


@pytest.mark.parametrize(("name", "device"), CASES)
def test_black_pixels_are_no_trouble(name: str, device: str, shiny: Capture) -> None:
    images = shiny.images.copy()
    rows, cols = np.nonzero(shiny.mask)
    images[:, rows[:50], cols[:50]] = 0
    result = run(replace(shiny, images=images), name, device)
    assert np.isfinite(result.normals).all() and np.isfinite(result.albedo).all()


@pytest.mark.parametrize("name", METHODS)
def test_every_method_describes_itself(name: str) -> None:
    method = find_method(name)
    assert method.title and method.assumes and method.citation
    for parameter in method.parameters:
        assert parameter.doc
        assert parameter.convert(parameter.default, name) == parameter.default or parameter.default is None
