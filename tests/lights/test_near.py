"""Near lights at pixels, and the depth that they need, against scenes in closed form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import photostereo as ps
from photostereo.diagnosis.diagnose import diagnose
from photostereo.diagnosis.exposure import typical_residual
from photostereo.diagnosis.noise import Noise
from photostereo.lights.lights import Lights
from photostereo.report.photographs import find_verdicts
from photostereo.report.pictures import frame_around
from photostereo.results.roughness import estimate_roughness
from photostereo.solver.confidence_ball import is_matte
from photostereo.solver.near import depth_of, every_nth
from photostereo_lab.scenes import dome_lights
from photostereo_lab.scenes.near import render_near

FRAME = (31, 45)


@pytest.mark.parametrize("focal", [None, 60.0])
def test_every_pixel_has_its_own_lights(focal: float | None) -> None:
    rng = np.random.default_rng(0)
    positions, depth = 80.0 * dome_lights(5), rng.normal(0, 4, FRAME)
    lights = Lights(
        positions=positions, depth=depth, camera=None if focal is None else [2.0, 1.0, focal]
    )
    rows, columns = np.divmod(rng.permutation(31 * 45)[:40], 45)
    seen = lights.over(rows, columns, FRAME)
    for i, (row, column) in enumerate(zip(rows, columns, strict=True)):
        at_zero, height = np.array([column - 22.0, 15.0 - row, 0.0]), depth[row, column]
        if focal is None:
            view = np.array([0.0, 0.0, 1.0])
            point = at_zero + height * view
        else:
            camera = np.array([2.0, 1.0, focal])
            point = at_zero + (camera - at_zero) * height / focal
            view = (camera - point) / np.linalg.norm(camera - point)
            np.testing.assert_allclose(
                seen.in_view(view[None].repeat(40, 0))[i], [0, 0, 1], atol=1e-6
            )
        for j, position in enumerate(positions):
            distance = np.linalg.norm(position - point)
            toward = (position - point) / distance
            own = seen.matrix[i, :, j]
            assert own[2] == pytest.approx(toward @ view, abs=1e-6)  # in the frame of the pixel
            in_camera = own if seen.turn is None else own @ seen.turn[i]
            np.testing.assert_allclose(in_camera, toward, atol=1e-6)
            assert seen.fall_off[i, j] == pytest.approx((80.0 / distance) ** 2, rel=1e-5)


def test_every_nth_pixel_sees_the_same_lights() -> None:
    depth = np.random.default_rng(0).normal(0, 4, FRAME)
    lights = Lights(positions=80.0 * dome_lights(5), depth=depth, camera=[0.0, 0.0, 60.0])
    rows, columns = (part.ravel() for part in np.mgrid[0:31:3, 0:45:3])
    whole = lights.over(rows, columns, FRAME)
    part = lights.thinned(3, FRAME).over(rows // 3, columns // 3, (11, 15))
    for one, other in zip(whole, part, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("method", ["ls", "sbl"])
@pytest.mark.parametrize(("focal", "base"), [(None, 0.0), (150.0, 0.2)])
def test_normals_as_good_as_under_distant_lights(
    method: str, focal: float | None, base: float
) -> None:
    """Lights at 1.5 object sizes, perhaps with a perspective camera and an object above the origin of the positions."""
    positions = 1.5 * dome_lights(12, max_angle=45)
    near = render_near(positions, size=64, noise=0.01, focal=focal, base=base)
    distant = render_near(positions, size=64, noise=0.01, distant=True)
    found, best = ps.solve(near, method), ps.solve(distant, method)
    ignored = ps.solve(replace(near, lights=near.lights.as_distant()), method)
    assert found.angular_error.mean < 1.2 * best.angular_error.mean
    assert ignored.angular_error.mean > 20 * found.angular_error.mean
    error = (depth_of(found.normals, near) - near.truth_depth)[near.mask]
    assert np.abs(error - error.mean()).max() < 0.01 * 0.9 * 64
    assert found.near
    assert found.summary()["near_lights"] == found.near
    assert not best.near


def test_low_rank_knows_that_the_fall_off_made_the_noise_uneven() -> None:
    """Without that knowledge its errors are 1.26 times those under distant lights."""
    positions = 1.5 * dome_lights(20, max_angle=45)
    near, distant = (
        ps.solve(render_near(positions, size=48, noise=0.01, distant=far), "rpca")
        for far in (False, True)
    )
    assert near.angular_error.mean < 1.2 * distant.angular_error.mean


def test_the_piecewise_model_knows_it_too() -> None:
    """On gloss, without that knowledge its errors are 1.25 times those under distant lights, with it 1.20 times."""
    positions, gloss = 2.0 * dome_lights(20, max_angle=45), {"reflectance": "ggx", "noise": 0.01}
    near, distant = (
        ps.solve(render_near(positions, size=48, distant=far, **gloss), "pls")
        for far in (False, True)
    )
    assert near.angular_error.mean < 1.21 * distant.angular_error.mean


@pytest.mark.parametrize(("reflectance", "matte"), [("lambertian", True), ("ggx", False)])
def test_uneven_noise_does_not_hide_that_a_surface_is_matte(reflectance: str, matte: bool) -> None:
    """Removing the fall-off leaves more noise in some pixels; that is no sign of gloss."""
    near = render_near(
        1.5 * dome_lights(12, max_angle=45), size=48, noise=0.01, reflectance=reflectance
    )
    inside = np.flatnonzero(near.mask)
    lights = replace(near, lights=near.lights.changed(depth=near.truth_depth)).lights_at(inside)
    pixels = lights.even(near.images.reshape(len(near), -1).T[inside].astype(np.float32))
    assert is_matte(Noise(pixels, lights.matrix, near.mask, lights.amplified)) is matte
    assert not is_matte(Noise(pixels, lights.matrix, near.mask))  # as if the noise were even


def test_a_large_object_finds_its_depth_on_a_part_of_its_pixels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    near = render_near(2.0 * dome_lights(8, max_angle=45), size=64)
    whole = ps.solve(near, "ls")
    monkeypatch.setattr("photostereo.solver.near.PIXELS", 400)
    part = ps.solve(near, "ls")
    assert part.angular_error.mean < whole.angular_error.mean + 0.1
    assert every_nth(near, 3).frame == (22, 22)


@pytest.mark.parametrize("method", ["pdlnv", "dlsr", "cbr+dictionary"])
def test_a_method_with_a_prior_finds_the_depth_with_its_model(method: str) -> None:
    found = ps.solve(render_near(2.0 * dome_lights(8, max_angle=35), size=32), method, max_iter=2)
    assert found.near and found.angular_error.mean < 0.5


@pytest.mark.parametrize("method", ["ls", "pls"])
def test_bands_see_near_lights(method: str) -> None:
    near = render_near(2.0 * dome_lights(8, max_angle=45), size=96, noise=0.01)
    near = replace(near, lights=near.lights.changed(depth=near.truth_depth))
    np.testing.assert_allclose(
        ps.solve(near, method, crops=4, strengths="given").normals,
        ps.solve(near, method, strengths="given").normals,
        atol=1e-6,
    )


@pytest.mark.parametrize("focal", [None, 150.0])
def test_diagnosis_page_and_roughness_see_near_lights(focal: float | None) -> None:
    """Of the true normals, a matte surface under near lights leaves the photographs' noise alone."""
    near = render_near(1.5 * dome_lights(12, max_angle=45), size=64, focal=focal)
    near = replace(near, lights=near.lights.changed(depth=near.truth_depth))
    assert typical_residual(near.truth, near) < 0.01
    assert np.nanmedian(diagnose(near).residual) < 0.01
    frame = frame_around(near.mask, max_pixels=1200)
    photographs = [frame.cut(image) for image in near.images]
    result = replace(ps.solve(near, "ls"), normals=near.truth)
    shown = find_verdicts(result, near, range(len(near)), photographs, frame)
    assert shown.kind == "model" and np.nanmedian(np.abs(shown.maps)) < 0.01
    assert np.median(estimate_roughness(near, near.truth)[near.mask]) > 0.95
