"""The masked solver against planes, quadratics, dense least squares and its own optimality."""

from __future__ import annotations

import numpy as np
import pytest

from photostereo.surface import integrate


def ragged_mask(size: int) -> np.ndarray:
    row, col = np.mgrid[:size, :size]
    ring = (row - size / 2) ** 2 + (col - size / 2) ** 2
    return (ring < (0.48 * size) ** 2) & ((ring > (0.1 * size) ** 2) | (col % 3 == 0))


@pytest.mark.parametrize("size", [40, 180])
@pytest.mark.parametrize("method", ["poisson", "robust"])
def test_plane_is_exact(shapes, size: int, method: str) -> None:
    mask = ragged_mask(size)
    row, col = np.mgrid[:size, :size]
    truth = 0.8 * col - 1.7 * row
    normals = shapes.normals_of(np.full(truth.shape, 0.8), np.full(truth.shape, -1.7))
    surface = integrate(normals, mask, method=method)
    for part in range(1, surface.parts + 1):
        assert np.abs(shapes.aligned(surface.depth, truth, surface.labels == part)).max() < 1e-10
    assert np.isnan(surface.depth[~mask]).all()
    assert surface.tears == 0


@pytest.mark.parametrize("method", ["simchony", "poisson", "robust"])
def test_quadratic_up_to_discretization(shapes, method: str) -> None:
    """Halving the pixel quarters the error (second order), and the rectangle solver is exact."""
    errors = []
    for size in (32, 64):
        row, col = (np.mgrid[:size, :size] + 0.5) / size
        truth = size * (0.3 * col**2 - 0.2 * row**2 + 0.25 * row * col + 0.1 * col)
        normals = shapes.normals_of(0.6 * col + 0.25 * row + 0.1, -0.4 * row + 0.25 * col)
        surface = integrate(normals, method=method)
        everywhere = np.ones(truth.shape, dtype=bool)
        errors.append(np.abs(shapes.aligned(surface.depth, truth, everywhere)).max() / size)
    if method == "simchony":
        assert max(errors) < 1e-12
    else:
        assert errors[1] < errors[0] / 3.5
        assert errors[1] < 1e-4


def dense_solution(
    normals: np.ndarray, mask: np.ndarray, weights: np.ndarray, anchors=None
) -> np.ndarray:
    """Every link equation as one row of a dense matrix, as the docstring writes them."""
    number = -np.ones(mask.shape, dtype=int)
    number[mask] = np.arange(mask.sum())
    unit = normals / np.linalg.norm(normals, axis=-1, keepdims=True)
    unit[..., 2] = np.maximum(unit[..., 2], 0.05)
    rows, goals = [], []
    for r, c in zip(*np.nonzero(mask), strict=True):
        for rr, cc in ((r, c + 1), (r + 1, c)):
            if rr < mask.shape[0] and cc < mask.shape[1] and mask[rr, cc]:
                share = weights[r, c] / (weights[r, c] + weights[rr, cc])
                mean = share * unit[r, c] + (1 - share) * unit[rr, cc]
                root = np.sqrt(0.5 * (weights[r, c] + weights[rr, cc]))
                line = np.zeros(mask.sum())
                line[number[rr, cc]], line[number[r, c]] = root * mean[2], -root * mean[2]
                rows.append(line)
                goals.append(root * (-mean[0] if rr == r else mean[1]))
    if anchors is not None:
        for r, c in zip(*np.nonzero(mask & np.isfinite(anchors)), strict=True):
            line = np.zeros(mask.sum())
            line[number[r, c]] = 100.0
            rows.append(line)
            goals.append(100.0 * anchors[r, c])
    return np.linalg.lstsq(np.array(rows), np.array(goals), rcond=None)[0]


def test_ball_is_exact(shapes) -> None:
    """The sum of the normals at both ends of a chord is orthogonal to it: no discretization error at all."""
    truth, normals, mask, _ = shapes.sphere(61)
    assert np.abs(shapes.aligned(integrate(normals, mask).depth, truth, mask)).max() < 1e-9


@pytest.mark.parametrize("anchored", [False, True])
def test_equals_dense_least_squares(anchored: bool) -> None:
    rng = np.random.default_rng(3)
    mask = rng.random((11, 13)) > 0.15
    normals = rng.normal(size=(11, 13, 3))
    normals[..., 2] = np.abs(normals[..., 2])
    weights = rng.random(mask.shape) + 0.1
    weights /= weights[mask].max()
    surface = integrate(normals, mask, weights=weights)
    anchors = None
    if anchored:
        anchors = np.full(mask.shape, np.nan)
        for part in range(1, surface.parts + 1):
            r, c = np.argwhere(surface.labels == part)[0]
            anchors[r, c] = rng.normal()
        surface = integrate(normals, mask, weights=weights, anchors=anchors)
    best = np.full(mask.shape, np.nan)
    best[mask] = dense_solution(normals, mask, weights, anchors)
    for part in range(1, surface.parts + 1):
        here = surface.labels == part
        error = surface.depth[here] - best[here]
        if not anchored:
            assert abs(surface.depth[here].mean()) < 1e-12
            error = error - error.mean()
        assert np.abs(error).max() < 1e-6


def test_grazing_normals_do_not_rule(shapes) -> None:
    """The slope of a grazing normal is large and uncertain: an error there must stay there."""
    truth, normals, mask, _ = shapes.sphere(65, 0.7)
    spoiled = normals.copy()
    spoiled[32, 32] = (0.9987, 0.0, 0.0510)
    plain = integrate(spoiled, mask, method="simchony")
    weighted = integrate(spoiled, mask)
    worst = np.abs(shapes.aligned(weighted.depth, truth, mask)).max()
    assert worst < 0.2
    assert worst * 5 < np.abs(shapes.aligned(plain.depth, truth, mask)).max()


@pytest.mark.parametrize("size", [61, 161])
def test_parts_are_separate(shapes, size: int) -> None:
    """Two parts, pooled when small and apart when large: each is what it is alone, with mean zero."""
    _, normals, mask, _ = shapes.sphere(size)
    cut = mask.copy()
    cut[:, size // 2] = False
    both = integrate(normals, cut)
    assert both.parts == 2
    left = cut.copy()
    left[:, size // 2 :] = False
    alone = integrate(normals, left)
    assert np.abs(both.depth[left] - alone.depth[left]).max() < 1e-8
    assert abs(both.depth[left].mean()) < 1e-9


def test_a_part_inside_another(shapes) -> None:
    """A disc in a ring, both large: their boxes overlap, their heights do not mix."""
    size = 221
    truth, normals, mask, _ = shapes.sphere(size, 0.8)
    row, col = np.mgrid[:size, :size] - size // 2
    gap = np.abs(np.hypot(row, col) - 65) < 1.5
    disc = mask & ~gap & (np.hypot(row, col) < 65)
    surface = integrate(normals, mask & ~gap)
    assert surface.parts == 2
    assert np.abs(surface.depth[disc] - integrate(normals, disc).depth[disc]).max() < 1e-8
    for part in (1, 2):
        assert np.abs(shapes.aligned(surface.depth, truth, surface.labels == part)).max() < 1e-7


def test_anchors_join_parts_and_set_the_height(shapes) -> None:
    truth, normals, mask, _ = shapes.sphere(61, 0.6)
    cut = mask.copy()
    cut[:, 30] = False
    anchors = np.full(mask.shape, np.nan)
    anchors[30, 20] = truth[30, 20]
    anchors[30, 40] = truth[30, 40]
    surface = integrate(normals, cut, anchors=anchors)
    assert np.abs(surface.depth[cut] - truth[cut]).max() < 0.05
    assert abs(surface.depth[30, 20] - truth[30, 20]) < 1e-3


@pytest.mark.parametrize("method", ["simchony", "poisson", "robust"])
def test_highpass_halves_a_wave_of_its_length(shapes, method: str) -> None:
    """Forms of the given length are halved, long ones vanish, short ones stay."""
    length, kept = 60.0, {}
    col = np.arange(720) + np.zeros((12, 1))
    for wave in (12.0, 60.0, 360.0):
        amplitude = 0.02 * wave
        turn = 2 * np.pi / wave
        phase = turn * (col + 0.5)
        normals = shapes.normals_of(-amplitude * turn * np.sin(phase), np.zeros(col.shape))
        depth = integrate(normals, method=method, highpass=length).depth
        kept[wave] = np.abs(depth[:, 200:520]).max() / amplitude
    assert abs(kept[60.0] - 0.5) < 0.03
    assert kept[360.0] < 0.05
    assert 0.9 < kept[12.0] < 1.0  # 25/26, times what a pixel grid takes from so short a wave


def test_confidence_silences_bad_normals(shapes) -> None:
    truth, normals, mask, _ = shapes.sphere(61, 0.7)
    spoiled, weights = normals.copy(), np.ones(mask.shape)
    spoiled[20:30, 20:30] = (0.7, 0.0, 0.7)
    weights[20:30, 20:30] = 0.0
    trusting = np.abs(shapes.aligned(integrate(spoiled, mask).depth, truth, mask))
    doubting = np.abs(shapes.aligned(integrate(spoiled, mask, weights=weights).depth, truth, mask))
    assert doubting.mean() * 5 < trusting.mean()
