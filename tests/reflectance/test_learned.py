"""The learned model: its two NumPy forms agree, what must not matter does not, damaged weights are refused."""

from __future__ import annotations

import os

import numpy as np
import pytest

from photostereo.core.control import SILENT, Cancelled, Control
from photostereo.core.errors import ParameterError
from photostereo.diagnosis.metrics import angular_error
from photostereo.diagnosis.noise import Noise
from photostereo.io.network_weights import digest_of
from photostereo.reflectance.learned import kernels
from photostereo.reflectance.learned.matte import (
    Witness,
    combine,
    fit_both,
    matte_witness,
    misfits_around,
)
from photostereo.reflectance.learned.model import Learned
from photostereo.reflectance.learned.neighbors import average_neighbors
from photostereo.reflectance.learned.outline import rim_of, with_rim
from photostereo.reflectance.learned.weights import SHIPPED_DIGEST, set_network
from photostereo.runtime.illumination import PixelLights
from photostereo.runtime.matte_fits import fit_all, fit_lit
from photostereo_lab import scenes

from . import readable_network


def angles(a, b) -> np.ndarray:
    a, b = (np.asarray(v, float) / np.linalg.norm(v, axis=-1, keepdims=True) for v in (a, b))
    return np.degrees(
        2 * np.arctan2(np.linalg.norm(a - b, axis=-1), np.linalg.norm(a + b, axis=-1))
    )


def witness(pixels, lights, noise) -> Witness:
    return matte_witness(fit_both(pixels, lights, noise), noise)


@pytest.fixture(scope="module")
def shiny():
    """A shiny ball in color under 20 lights: colors (N, d, 3), lights (d, 3), true normals (N, 3)."""
    capture = scenes.render_scene("sphere", size=40, reflectance="ggx", color=True)
    return (
        capture.colors(),
        capture.lights.directions.astype(np.float32),
        capture.truth[capture.mask],
    )


def test_compiled_equals_readable(shiny) -> None:
    colors, lights, _ = shiny
    readable = readable_network.predict(colors, lights, set_network())
    compiled = kernels.predict(colors, lights, set_network())
    assert angles(readable[0], compiled[0]).max() < 0.01
    np.testing.assert_allclose(readable[1], compiled[1], rtol=1e-3)


def test_a_shiny_ball(shiny) -> None:
    colors, lights, truth = shiny
    normals, spread = kernels.predict(colors, lights, set_network())
    errors = angles(normals, truth)
    matte = fit_all(colors.mean(-1), np.ascontiguousarray(lights.T)).scaled
    assert errors.mean() < 3.0
    assert errors.mean() < 0.7 * angles(matte, truth).mean()
    assert 0.3 < np.degrees(spread.mean()) / errors.mean() < 4.0


def test_the_order_of_the_photographs_does_not_matter(shiny) -> None:
    colors, lights, _ = shiny
    order = np.random.default_rng(0).permutation(len(lights))
    first = kernels.predict(colors, lights, set_network())[0]
    second = kernels.predict(np.ascontiguousarray(colors[:, order]), lights[order], set_network())[
        0
    ]
    assert angles(first, second).max() < 0.01


@pytest.mark.parametrize("degrees", [30.0, 180.0])
def test_a_turned_object_gives_the_turned_answer(shiny, degrees: float) -> None:
    colors, lights, _ = shiny
    c, s = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    turn = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]], np.float32)
    first = kernels.predict(colors, lights, set_network())[0]
    second = kernels.predict(colors, lights @ turn.T, set_network())[0]
    assert angles(first @ turn.T, second).max() < 0.02


def test_the_scale_of_the_intensities_does_not_matter(shiny) -> None:
    colors, lights, _ = shiny
    first = kernels.predict(colors, lights, set_network())
    second = kernels.predict(1000 * colors, lights, set_network())
    assert angles(first[0], second[0]).max() < 0.01


def test_black_pixels_and_negative_values_have_an_answer() -> None:
    lights = scenes.dome_lights(6).astype(np.float32)
    for value in (0.0, -1.0):
        normals, spread = kernels.predict(
            np.full((3, 6, 3), value, np.float32), lights, set_network()
        )
        assert np.isfinite(normals).all() and np.isfinite(spread).all()


def test_the_shipped_weights_are_small_and_are_those_of_the_source() -> None:
    weights = set_network()
    assert weights.digest == SHIPPED_DIGEST == digest_of(weights.arrays)
    assert sum(array.nbytes for array in weights.arrays.values()) <= 2_000_000


def _archive(path, arrays, digest=None):
    np.savez(path, digest=np.array(digest or digest_of(arrays)), **arrays)
    return path


def _with(name, change):
    arrays = {key: array.astype(np.float16) for key, array in set_network().arrays.items()}
    if change is None:
        del arrays[name]
    else:
        arrays[name] = change(arrays.get(name))
    return arrays


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("0.first.shift", lambda array: array[:1]),
        ("1.second.linear.weight", lambda array: array[:, :-1]),
        ("0.second.linear.bias", lambda array: array[:0]),
        ("0.out.bias", lambda array: array.astype(np.float32)),
        ("0.out.bias", lambda array: array * np.float16(np.nan)),
        ("2.first.shift", lambda _: np.zeros(96, np.float16)),
        ("words", lambda _: np.zeros(3, np.float16)),
        ("1.head.gain", None),
    ],
)
def test_weights_of_another_form_are_refused(tmp_path, name, change) -> None:
    """Each with a valid digest, which anybody can compute: a compiled loop would read beyond its arrays."""
    with pytest.raises(ParameterError) as caught:
        set_network(_archive(tmp_path / "w.npz", _with(name, change)))
    assert caught.value.code == "not-weights" and caught.value.file == tmp_path / "w.npz"


def test_damaged_weights_are_refused(tmp_path) -> None:
    arrays = {key: array.astype(np.float16) for key, array in set_network().arrays.items()}
    assert set_network(_archive(tmp_path / "good.npz", arrays)).digest == SHIPPED_DIGEST
    changed = _with("0.out.bias", lambda array: array + np.float16(1.0))
    with pytest.raises(ParameterError) as caught:
        set_network(_archive(tmp_path / "bad.npz", changed, digest_of(arrays)))
    assert caught.value.code == "damaged-weights"


def test_files_that_are_no_archives_are_refused_at_once(tmp_path) -> None:
    (tmp_path / "text.npz").write_text("no archive")
    np.savez_compressed(tmp_path / "bomb.npz", digest=np.zeros(80 << 20, np.uint8))
    os.mkfifo(tmp_path / "pipe.npz")  # reading it would never end
    for name in ("text", "bomb", "pipe", "nowhere"):
        with pytest.raises(ParameterError) as caught:
            set_network(tmp_path / f"{name}.npz")
        assert caught.value.code == "unreadable-weights"


def test_a_matte_pixel_trusts_the_matte_fit() -> None:
    """Noise-free and matte: the matte witness is exact, its variance nearly nothing, the average its normal."""
    lights = scenes.dome_lights(12, max_angle=30.0).T
    truth = np.array([[0.1, 0.2, 0.97]]) / np.linalg.norm([0.1, 0.2, 0.97])
    matte = witness((0.7 * truth @ lights).astype(np.float32), lights, np.full(1, 1e-6, np.float32))
    wrong = Witness(np.array([[0.0, 0.0, 1.0]], np.float32), np.array([0.05**2], np.float32))
    assert angles(matte.normals, truth).max() < 0.01
    assert angles(combine(wrong, matte).normals, truth).max() < 0.1


def test_variance_of_the_matte_fit_is_that_of_its_errors() -> None:
    """2 σ² g / albedo² against the scatter over many noisy draws."""
    rng = np.random.default_rng(0)
    lights = scenes.dome_lights(12, max_angle=40.0).T
    truth = np.array([0.0, 0.0, 1.0])
    pixels = (0.8 * truth @ lights + rng.normal(0, 0.02, (20_000, 12))).astype(np.float32)
    found = witness(pixels, lights, np.full(len(pixels), 0.02**2, np.float32))
    true = np.mean(np.deg2rad(angles(found.normals, truth[None])) ** 2)
    # g is the mean over three components, two of which turn the normal: a factor of two either way.
    assert 0.4 < np.median(found.variance) / true < 2.5


def test_a_matte_pixel_in_shadows_keeps_the_fit_to_its_lit_photographs() -> None:
    """A quarter of the photographs dark: the fit to all is far off and knows it, that to the others is exact."""
    rng = np.random.default_rng(0)
    lights, sigma = scenes.dome_lights(20, max_angle=50.0).T, 0.002
    truth = np.array([0.3, -0.2, np.sqrt(1 - 0.13)])
    pixels = 0.7 * truth @ lights + rng.normal(0, sigma, (500, 20))
    pixels[:, ::4] = rng.normal(0, sigma, (500, 5))
    pixels, noise = pixels.astype(np.float32), np.full(500, sigma**2, np.float32)
    found = witness(pixels, lights, noise)
    errors = angles(found.normals, truth[None])
    assert angles(fit_all(pixels, lights).scaled, truth[None]).mean() > 3.0
    assert errors.mean() < 0.3
    assert 0.4 < np.median(found.variance) / np.mean(np.deg2rad(errors) ** 2) < 2.5


def test_the_rim_points_outwards() -> None:
    capture = scenes.render_scene("sphere", size=64)
    rim = rim_of(capture.mask)
    truth = capture.truth[capture.mask][rim.index]
    outward = np.column_stack([rim.outward, np.full(len(truth), 1e-9)])
    assert angles(outward, truth * [1, 1, 0] + [0, 0, 1e-9]).mean() < 5.0
    assert not len(rim_of(np.ones((8, 8), bool)).index)  # a frame is no outline
    assert not len(rim_of(np.eye(8, dtype=bool)).index)  # too thin to look inside


def test_the_outline_corrects_a_rim_that_shows_the_ground() -> None:
    """Witnesses that are right but for the rim, where they are halfway to the ground's normal."""
    capture = scenes.render_scene("sphere", size=96)
    truth, rim = capture.truth[capture.mask], rim_of(capture.mask).index
    variance = np.full(len(truth), 0.05**2, np.float32)
    kept = with_rim(Witness(truth.astype(np.float32), variance), capture.mask).normals
    assert angles(kept, truth)[rim].mean() < 1.0
    wrong = truth.copy()
    wrong[rim] = (truth[rim] + [0, 0, 1]) / np.linalg.norm(
        truth[rim] + [0, 0, 1], axis=1, keepdims=True
    )
    before = angles(wrong, truth)[rim].mean()
    after = angles(
        with_rim(Witness(wrong.astype(np.float32), variance), capture.mask).normals, truth
    )
    assert before > 35.0
    assert after[rim].mean() < 12.0
    assert np.delete(after, rim).max() < 0.1


def test_a_rim_that_a_matte_surface_explains_stays() -> None:
    """What looks like ground behind an outline may be a flat rim; where the photographs say so exactly, they count."""
    capture = scenes.render_scene("sphere", size=96)
    told, rim = capture.truth[capture.mask].astype(np.float32), rim_of(capture.mask).index
    told[rim] = [0.0, 0.0, 1.0]
    sure = Witness(told, np.full(len(told), 1e-5, np.float32))
    bent = with_rim(sure, capture.mask).normals
    kept = with_rim(sure, capture.mask, matte=np.ones(len(told), np.float32)).normals
    assert angles(bent, told)[rim].mean() > 30.0
    assert angles(kept, told)[rim].max() < 0.1


def test_an_outline_that_is_no_contour_says_nothing() -> None:
    capture = scenes.render_scene("coin", size=96)
    flat = Witness(capture.truth[capture.mask].astype(np.float32), np.full(capture.mask.sum(), 0.1))
    assert with_rim(flat, capture.mask) is flat
    cut = scenes.render_scene(
        "sphere", size=96, max_tilt=40.0
    )  # a mask that ends where the surface still faces us
    faces = Witness(cut.truth[cut.mask].astype(np.float32), np.full(cut.mask.sum(), 0.1))
    assert with_rim(faces, cut.mask) is faces
    down, right = np.mgrid[-40:41, -40:41]
    bevel = np.hypot(down, right) < 35  # steep, but it does not turn away
    outwards = (
        np.stack([right, -down, 0 * right], -1)[bevel]
        / np.maximum(np.hypot(down, right), 1)[bevel, None]
    )
    cone = Witness((0.9 * outwards + [0, 0, 0.436]).astype(np.float32), np.full(bevel.sum(), 0.1))
    assert with_rim(cone, bevel) is cone


def test_a_gloss_below_the_noise_is_seen_over_many_pixels() -> None:
    """A misfit of half the noise: no pixel can tell it, forty-nine can, and the matte fit loses its weight."""
    rng = np.random.default_rng(0)
    lights, mask, sigma = scenes.dome_lights(20, max_angle=40.0).T, np.ones((40, 40), bool), 0.02
    noise = np.full(1600, sigma**2, np.float32)
    matte = 0.5 * lights[2] + rng.normal(0, sigma, (1600, 20))
    lobe = np.maximum(lights[2] - 0.93, 0.0)
    lobe -= lobe @ np.linalg.pinv(lights) @ lights
    gloss = matte + 0.7 * sigma * lobe / np.sqrt(np.mean(lobe**2))
    weights = {}
    for name, pixels in (("matte", matte), ("gloss", gloss)):
        pixels = pixels.astype(np.float32)
        fits = fit_both(pixels, lights, noise)
        around = misfits_around(fits, noise, mask)
        weights[name] = np.median(
            matte_witness(fits, noise, around).variance / matte_witness(fits, noise).variance
        )
    assert weights["matte"] < 1.01
    assert weights["gloss"] > 10.0


def test_neighbors_alike_are_averaged_and_others_left_alone() -> None:
    rng = np.random.default_rng(0)
    mask = np.ones((30, 30), bool)
    clean = np.ones((900, 16), np.float32)
    clean[mask.nonzero()[1] >= 15] = 3.0  # an edge far above the noise
    noisy = clean + rng.normal(0, 0.1, clean.shape).astype(np.float32)
    quiet, share = average_neighbors(noisy, noisy, mask, np.full(900, 0.01, np.float32))
    assert np.std(quiet - clean) < 0.025
    assert abs(np.sqrt(share.mean()) * 0.1 / np.std(quiet - clean) - 1) < 0.5
    untouched, share = average_neighbors(clean, clean, mask, np.full(900, 1e-12, np.float32))
    np.testing.assert_allclose(untouched, clean)


def test_many_photographs_tell_neighbors_apart_more_finely() -> None:
    """Halves that differ by 0.6 σ in every photograph: little beside the noise of eight, much beside that of ninety-six."""
    rng = np.random.default_rng(0)
    mask = np.ones((30, 30), bool)
    right = mask.nonzero()[1] >= 15
    kept = {}
    for count in (8, 96):
        noisy = (0.06 * right[:, None] + rng.normal(0, 0.1, (900, count))).astype(np.float32)
        quiet, _ = average_neighbors(noisy, noisy, mask, np.full(900, 0.01, np.float32))
        beside = (mask.nonzero()[1] == 14) | (mask.nonzero()[1] == 15)
        difference = quiet[right & beside].mean() - quiet[~right & beside].mean()
        kept[count] = difference / (noisy[right & beside].mean() - noisy[~right & beside].mean())
    assert kept[96] > 1.5 * kept[8]


def test_noise_that_blocks_share_hides_no_gloss_around() -> None:
    """In blocks of 8 × 8 pixels with one error each, 49 pixels are no more than about two."""
    rng, lights, mask = np.random.default_rng(0), scenes.dome_lights(12).T, np.ones((64, 64), bool)
    shared = np.kron(rng.normal(0, 0.05, (8, 8, 12)), np.ones((8, 8, 1))).reshape(-1, 12)
    matte, noise = (
        (0.5 * lights[2] + shared).astype(np.float32),
        np.full(64 * 64, 0.05**2, np.float32),
    )
    glossy = matte + np.float32(0.2) * (np.arange(12) < 2)
    found = {
        (name, blocks): (
            misfits_around(fit_both(pixels, lights, noise), noise, mask, blocks)[0] > 0
        ).mean()
        for name, pixels in (("matte", matte), ("glossy", glossy))
        for blocks in (False, True)
    }
    assert found["matte", False] > 0.2 and found["matte", True] < 0.03
    assert found["glossy", True] > 0.9


def test_what_jpeg_leaves_is_no_misfit_of_a_matte_surface() -> None:
    """Noise that hangs together over blocks: the learned model stays beside least squares, where the network is not."""
    rng = np.random.default_rng(0)
    lights, side = np.ascontiguousarray(scenes.dome_lights(20, max_angle=35.0).T), 64
    slopes = rng.normal(0, 0.15, (side * side, 2))
    truth = (
        np.column_stack([slopes, np.ones(side * side)]) / np.sqrt(1 + (slopes**2).sum(1))[:, None]
    )
    blocks = np.kron(rng.normal(0, 0.02, (side // 8, side // 8, 20)), np.ones((8, 8, 1))).reshape(
        -1, 20
    )
    pixels = (0.8 * truth @ lights + blocks + rng.normal(0, 0.003, blocks.shape)).astype(np.float32)
    found = Learned(pixels, lights, mask=np.ones((side, side), bool)).alone(SILENT).normals
    assert (
        angles(found, truth).mean()
        < 1.1 * angles(fit_all(pixels, lights).scaled, truth).mean() + 0.1
    )


def test_the_model_is_its_own_minimizer_and_the_update_is_exact(shiny) -> None:
    colors, lights, _ = shiny
    model = Learned(colors.mean(-1), np.ascontiguousarray(lights.T), colors=colors)
    normals = model.alone(SILENT).normals
    assert model.cost(normals, {}) < 1e-12
    rng = np.random.default_rng(0)
    weight, pull = rng.uniform(0, 3, len(normals)), rng.normal(size=normals.shape)

    def cost(n) -> float:
        return float(model.cost(n, {}) + (weight[:, None] * n * n - 2 * n * pull).sum())

    best = model.update_normals({}, weight, pull)
    lowest = cost(best)
    for _ in range(5):
        assert cost(best + 1e-3 * rng.normal(size=best.shape)) > lowest


def test_noise_is_told_by_brightness_and_highlights_are_no_noise() -> None:
    """Shot noise on a plain ball: σ² = k I; and a shiny ball without noise has next to none."""
    rng = np.random.default_rng(0)
    ball = scenes.render_scene(
        "sphere", size=96, texture="uniform", cast_shadows=False, max_tilt=60.0
    )
    pixels, lights = ball.pixels(), ball.lights.matrix
    noisy = (rng.poisson(pixels * 400) / 400).astype(np.float32)
    found = Noise(noisy, lights, ball.mask).by_brightness().at(noisy).fine
    np.testing.assert_allclose(found.mean(), pixels.mean() / 400, rtol=0.2)
    shiny = scenes.render_scene("sphere", size=96, texture="uniform", reflectance="ggx")
    pixels = shiny.pixels()
    noise = Noise(pixels, shiny.lights.matrix, shiny.mask).by_brightness()
    assert np.sqrt(noise.at(pixels).fine.mean()) < 0.005


def test_noise_grows_where_near_lights_are_evened() -> None:
    """Beside a light that is dim there, equal noise of the camera is larger once the fall-off is taken away."""
    rng = np.random.default_rng(0)
    ball = scenes.render_scene(
        "sphere", size=96, texture="uniform", cast_shadows=False, max_tilt=60.0
    )
    pixels, lights = ball.pixels(), ball.lights.matrix
    fall_off = np.linspace(0.5, 1.5, len(pixels), dtype=np.float32)[:, None].repeat(
        lights.shape[1], 1
    )
    near = PixelLights(lights, fall_off)
    evened = near.even((pixels * fall_off + rng.normal(0, 0.01, pixels.shape)).astype(np.float32))
    measured = Noise(evened, lights, ball.mask, near.amplified)
    found = measured.by_brightness().at(evened, near.amplified)
    np.testing.assert_allclose(np.sqrt(found.fine), 0.01 / fall_off[:, 0], rtol=0.1)


def test_a_prior_removes_noise_and_nothing_else() -> None:
    """Without noise the prior has nothing to do; with noise it knows how much the normals scatter."""
    rng = np.random.default_rng(0)
    ball = scenes.render_scene(
        "sphere", size=64, texture="uniform", cast_shadows=False, max_tilt=60.0
    )
    pixels, lights = ball.pixels(), ball.lights.matrix
    noisy = (pixels + rng.normal(0, 0.02, pixels.shape)).astype(np.float32)
    clean = Learned(pixels, lights, mask=ball.mask, neighbors=False)
    shaken = Learned(noisy, lights, mask=ball.mask, neighbors=False)
    scatter = shaken.alone(SILENT).normals - clean.alone(SILENT).normals
    assert clean.noise < 0.003
    assert 0.6 < shaken.noise / np.sqrt(np.median((scatter**2).sum(-1)) / (2 * np.log(2))) < 1.6


def test_spread_is_a_map_and_the_albedo_that_of_the_photographs() -> None:
    import photostereo as ps

    capture = scenes.render_scene("sphere", size=40, texture="uniform")
    result = ps.solve(capture, "net")
    assert result.maps["spread"].shape == capture.frame
    truth = capture.truth_albedo[capture.mask]
    assert abs(np.median(result.albedo[capture.mask] / truth) - 1) < 0.05
    assert angular_error(result.normals, capture.truth, capture.mask)[capture.mask].mean() < 3.0


def test_compiled_matte_fits_equal_the_readable_ones(shiny) -> None:
    colors, lights, _ = shiny
    pixels, matrix = colors.mean(-1), np.ascontiguousarray(lights.T, dtype=np.float64)
    pixels[:40, :16] = 0.0  # too few lit photographs
    noise = np.full(len(pixels), 1e-4, np.float32)
    for found, expected in zip(
        fit_both(pixels, matrix, noise),
        (fit_all(pixels, matrix), fit_lit(pixels, matrix, noise)),
        strict=True,
    ):
        usable = expected.photographs >= 5
        np.testing.assert_allclose(found.scaled[usable], expected.scaled[usable], atol=1e-4)
        np.testing.assert_allclose(found.misfit[usable], expected.misfit[usable], atol=1e-5)
        np.testing.assert_array_equal(found.photographs, expected.photographs)
        np.testing.assert_allclose(found.gain[usable], expected.gain[usable], rtol=1e-3)
        assert (found.gain[~usable] > 1e5).all()


@pytest.fixture(scope="module")
def half_glossy():
    """Half of a textured relief is matte, half is glossy; little noise: pixels, lights, mask."""
    rng = np.random.default_rng(0)
    lights = scenes.dome_lights(12)
    matte, glossy = (
        scenes.render_scene("relief", size=64, lights=lights, reflectance=kind, cast_shadows=False)
        for kind in ("lambertian", "ggx")
    )
    images = np.where(np.arange(64) < 32, matte.images, glossy.images)
    images = images + rng.normal(0, 0.001, images.shape)
    capture = matte.with_images(images.astype(np.float32))
    return capture.pixels(capture.intensity_scale()), capture.lights.matrix, capture.mask


def test_the_network_runs_only_on_pixels_that_the_matte_fit_does_not_settle(
    half_glossy, monkeypatch
) -> None:
    pixels, lights, mask = half_glossy
    asked = []

    class Counter(Control):
        def on_stage(self, name, total):
            if name == "network":
                asked.append(total)

    found = Learned(pixels, lights, mask=mask).alone(Counter()).normals
    monkeypatch.setattr("photostereo.reflectance.learned.evidence.MATTE_ALONE", 0.0)
    everywhere = Learned(pixels, lights, mask=mask).alone(Counter()).normals
    assert asked[0] < 0.8 * len(pixels) and asked[1] == len(pixels)
    assert angles(found, everywhere).mean() < 0.01
    assert np.percentile(angles(found, everywhere), 99) < 0.1


def test_nothing_long_runs_in_the_constructor_and_the_work_can_be_cancelled(shiny) -> None:
    colors, lights, _ = shiny
    model = Learned(colors.mean(-1), np.ascontiguousarray(lights.T), colors=colors)

    class Impatient(Control):
        def on_stage(self, name, total):
            self.name = name
            self.cancel()

    control = Impatient()
    with pytest.raises(Cancelled):
        model.alone(control)
    assert control.name == "network"
    assert np.isfinite(model.alone(SILENT).normals).all()  # asked again, it answers
