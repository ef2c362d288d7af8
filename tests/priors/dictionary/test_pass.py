"""The dictionary pass: the readable form against brute force, the compiled form against the readable one.

A code whose size is within rounding of mu may be kept by one form and dropped by the other: both are right.
Such a tie is accepted only where the kept code is mu to within the precision tested; anything else fails.
"""

from __future__ import annotations

import cv2
import numba
import numpy as np
import pytest

from photostereo.core.errors import ParameterError
from photostereo.priors.dictionary.atoms import initial_dictionary
from photostereo.priors.dictionary.compiled import dictionary_pass, squared_norm
from photostereo.priors.dictionary.patches import PatchGrid

from . import readable
from .readable import best_atom, extract, hard_threshold, update_dictionary


@pytest.fixture(autouse=True)
def one_thread():
    """The threads meet at each atom, which is slow on a busy machine; one test below is about threads."""
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(threads)


def unit_rows(rng: np.random.Generator, count: int, length: int) -> np.ndarray:
    D = rng.standard_normal((count, length))
    return D / np.linalg.norm(D, axis=1, keepdims=True)


def random_problem(w: int = 700, m: int = 48, K: int = 70, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Patches, atoms, and codes that are already partly filled."""
    rng = np.random.default_rng(seed)
    B = np.where(rng.random((K, w)) < 0.05, rng.standard_normal((K, w)), 0)
    return rng.standard_normal((w, m)), unit_rows(rng, K, m), B


def cost(P: np.ndarray, D: np.ndarray, B: np.ndarray, mu: float) -> float:
    return float(np.sum((P - B.T @ D) ** 2) + mu**2 * np.count_nonzero(B))


@pytest.fixture(scope="module")
def cat_patches(data_dir):
    """1500 patches of the least-squares normals of a real object, scaled as the solver does."""
    folder = data_dir / "diligent" / "pmsData" / "catPNG"
    names = (folder / "filenames.txt").read_text().split()[::8]
    directions = np.loadtxt(folder / "light_directions.txt")[::8]
    intensities = np.loadtxt(folder / "light_intensities.txt")[::8]
    mask = cv2.imread(str(folder / "mask.png"), cv2.IMREAD_GRAYSCALE) > 0
    weights = np.array([0.114021, 0.587043, 0.298936])  # OpenCV reads blue, green, red
    photographs = [
        (cv2.imread(str(folder / name), cv2.IMREAD_UNCHANGED)[mask] / 65535 / strength[::-1])
        @ weights
        for name, strength in zip(names, intensities, strict=True)
    ]
    Y = np.clip(np.stack(photographs, axis=1), 0, 1)
    n = (Y / np.percentile(Y, 99)) @ np.linalg.pinv(directions.T)
    P = extract(PatchGrid.from_mask(mask), n)
    return P[:: len(P) // 1500][:1500].copy()


# The readable form is right.


def test_code_update_by_brute_force():
    """No value on a fine grid of [-q, q], and no zero, does better than the closed form."""
    rng = np.random.default_rng(3)
    E, d = rng.standard_normal((40, 6)), unit_rows(rng, 1, 6)
    for mu, q in [(0.7, 1.1), (0.7, 0.7), (1.5, 10), (0.0, 0.5)]:
        _, g = update_dictionary(E, d, np.zeros((1, 40)), mu=mu, q=q, update_atoms=False)
        assert np.abs(g).max() <= q
        candidates = np.linspace(-q, q, 4001) if q < 5 else np.linspace(-5, 5, 4001)
        found = np.sum((E - g.T * d) ** 2, axis=1) + mu**2 * (g[0] != 0)
        tried = np.sum((E[:, None] - candidates[:, None] * d) ** 2, axis=2) + mu**2 * (
            candidates != 0
        )
        assert (found <= tried.min(axis=1) + 1e-12).all()
        assert (found <= np.sum(E**2, axis=1) + 1e-12).all()


def test_atom_update_by_brute_force():
    rng = np.random.default_rng(4)
    E, g = rng.standard_normal((30, 3)), rng.standard_normal(30)
    best = best_atom(E, g, np.array([1.0, 0, 0]))
    found = np.sum((E - np.outer(g, best)) ** 2)
    tried = [np.sum((E - np.outer(g, d)) ** 2) for d in unit_rows(rng, 5000, 3)]
    assert abs(np.linalg.norm(best) - 1) < 1e-15
    assert found <= min(tried) and found == pytest.approx(min(tried), rel=1e-2)


def test_atoms_without_direction():
    d = np.array([0.0, 0.6, 0.8])
    np.testing.assert_array_equal(best_atom(np.ones((4, 3)), np.zeros(4), d), [1, 0, 0])
    E, g = np.array([[1.0, 0, 0], [-1.0, 0, 0]]), np.ones(2)  # E^T g = 0 although g is not
    np.testing.assert_array_equal(best_atom(E, g, d), d)


def test_threshold_keeps_its_edge():
    np.testing.assert_array_equal(hard_threshold(np.array([-0.5, 0.5, 0.49]), 0.5), [-0.5, 0.5, 0])
    R = np.array([[0.5, 0.0], [-0.5, 0.0], [0.49, 0.0]])
    B = np.zeros((1, 3))
    dictionary_pass(R, np.array([[1.0, 0.0]]), B, mu=0.5)
    np.testing.assert_array_equal(B, [[-0.0 + 0.5, -0.5, 0]])


# The compiled form equals it.


def assert_same_passes(
    P,
    D,
    B,
    *,
    mu,
    q=np.inf,
    dtype,
    reference,
    tolerance,
    passes=3,
    update_atoms=True,
    ties_allowed=True,
):
    """Compiled in ``dtype`` against readable in ``reference``: codes, atoms and residual."""
    P_ref = P.astype(dtype).astype(reference)
    D_ref, B_ref = (x.astype(dtype).astype(reference) for x in (D, B))
    D_new, B_new = (np.ascontiguousarray(x, dtype=dtype) for x in (D, B))
    R = P.astype(dtype) - B_new.T @ D_new
    for _ in range(passes):
        D_ref, B_ref = update_dictionary(P_ref, D_ref, B_ref, mu=mu, q=q, update_atoms=update_atoms)
        dictionary_pass(R, D_new, B_new, mu=mu, q=q, update_atoms=update_atoms)
        ties = (B_new != 0) != (B_ref != 0)
        if ties_allowed and ties.any():
            kept = np.maximum(np.abs(B_new[ties]), np.abs(B_ref[ties]))
            assert ties.sum() <= 3 and np.abs(kept / mu - 1).max() < tolerance, (
                "a difference that is no tie"
            )
            return
        scale = np.abs(B_ref).max(initial=mu)
        assert np.abs(B_new - B_ref).max() <= tolerance * scale
        assert np.abs(D_new - D_ref).max() <= tolerance
        residual = P_ref - B_ref.T @ D_ref
        assert np.abs(R - residual).max() <= tolerance * np.abs(P).max()


PRECISIONS = {
    "double": {"dtype": np.float64, "reference": np.float64, "tolerance": 1e-12},
    "single": {"dtype": np.float32, "reference": np.float32, "tolerance": 1e-4},
    "single against double": {"dtype": np.float32, "reference": np.float64, "tolerance": 1e-4},
}
precisions = pytest.mark.parametrize("precision", PRECISIONS.values(), ids=PRECISIONS.keys())

SETTINGS = {
    "sparse": {"mu": 2.2},
    "medium": {"mu": 1.3},
    "q active": {"mu": 1.2, "q": 1.5},
    "q equals mu": {"mu": 1.5, "q": 1.5},
    "most atoms empty": {"mu": 3.6},
    "all atoms empty": {"mu": 50.0},
    "codes only": {"mu": 1.3, "update_atoms": False},
}


@precisions
@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS.keys())
def test_compiled_equals_readable_on_random_data(setting, precision):
    assert_same_passes(*random_problem(), **setting, **precision)


@pytest.mark.parametrize("w", [1, 3, 5, 257, 767, 768, 769, 1540])
@pytest.mark.parametrize(("m", "K"), [(1, 1), (7, 3), (16, 31), (48, 32), (9, 33), (12, 67)])
def test_compiled_equals_readable_at_the_edges_of_chunks_blocks_and_tiles(w, m, K):
    assert_same_passes(*random_problem(w, m, K, seed=w), mu=0.8, **PRECISIONS["double"])


@precisions
def test_compiled_equals_readable_with_equal_and_empty_atoms(precision):
    """Atoms that were emptied are all e_1, so the block's corrections between equal atoms matter."""
    P, D, B = random_problem()
    D[5:60:2] = np.eye(1, 48)
    B[5:60:2] = 0
    B[20] = 0
    assert_same_passes(P, D, B, mu=1.6, **precision)


def test_every_code_kept_at_mu_zero():
    assert_same_passes(*random_problem(300, 20, 25), mu=0.0, **PRECISIONS["double"])


@pytest.mark.data
@pytest.mark.parametrize("kind", ["dct", "dct-separable"])
def test_compiled_equals_readable_on_real_patches(cat_patches, kind):
    D = initial_dictionary(kind, (8, 8, 3))
    B = np.zeros((192, len(cat_patches)))
    assert_same_passes(cat_patches, D, B, mu=0.05, **PRECISIONS["double"])


@pytest.fixture(scope="module", params=["dct", "dct-separable"])
def real_problem_without_ties(request, cat_patches):
    """Some real patches, and the mu near 0.05 that keeps most distance from every code of three passes.

    In single precision one code in about 100,000 lies within rounding of a given mu, and once it is kept by
    one form and dropped by the other, the later atoms differ for good. So that all codes can be compared,
    choose mu where there are none.
    """
    P, D = cat_patches[::5], initial_dictionary(request.param, (8, 8, 3))
    margins = {}
    with pytest.MonkeyPatch.context() as patch:
        for mu in np.linspace(0.05, 0.06, 21):
            nearest = []

            def watched(y, mu, nearest=nearest):
                nearest.append(np.abs(np.abs(y) - mu).min())
                return hard_threshold(y, mu)

            patch.setattr(readable, "hard_threshold", watched)
            D_new, B_new = D, np.zeros((192, len(P)))
            for _ in range(3):
                D_new, B_new = update_dictionary(P, D_new, B_new, mu=mu)
            margins[mu] = min(nearest)
    return P, D, max(margins, key=margins.get)


@pytest.mark.data
@pytest.mark.parametrize("precision", list(PRECISIONS.values())[1:], ids=list(PRECISIONS)[1:])
def test_single_precision_on_real_patches(real_problem_without_ties, precision):
    P, D, mu = real_problem_without_ties
    B = np.zeros((192, len(P)))
    assert_same_passes(P, D, B, mu=mu, ties_allowed=False, **precision)


@pytest.mark.data
@pytest.mark.parametrize("kind", ["dct", "dct-separable"])
def test_ties_in_single_precision_hardly_change_the_cost(cat_patches, kind):
    """With all the patches, ties and all, three passes end near the cost of double precision."""
    costs, supports = [], []
    for dtype in (np.float32, np.float64):
        P, D = cat_patches.astype(dtype), initial_dictionary(kind, (8, 8, 3)).astype(dtype)
        R, B = P.copy(), np.zeros((192, len(P)), dtype)
        for _ in range(3):
            dictionary_pass(R, D, B, mu=0.05)
        costs.append(cost(P.astype(float), D.astype(float), B.astype(float), 0.05))
        supports.append(B != 0)
    assert costs[0] == pytest.approx(costs[1], rel=5e-4)
    assert np.mean(supports[0] != supports[1]) < 1e-2


@pytest.mark.data
def test_compiled_equals_readable_on_real_patches_with_q_active(cat_patches):
    D = initial_dictionary("random-patches", (8, 8, 3), 250, patches=cat_patches, rng=0)
    B = np.zeros((250, len(cat_patches)))
    assert_same_passes(cat_patches, D, B, mu=0.1, q=0.5, **PRECISIONS["double"])


# What must hold whatever the form.


@pytest.mark.parametrize("q", [np.inf, 1.4])
def test_cost_never_rises_in_any_step(q):
    """Each atom alone, codes first and then the atom, is a half-step of the pass."""
    mu = 1.2
    P, D, B = random_problem()
    B = np.clip(B, -q, q)
    D_whole, B_whole = D.copy(), B.copy()
    R = P - B.T @ D
    R_whole = R.copy()
    costs = [cost(P, D, B, mu)]
    for _ in range(2):
        for i in range(len(D)):
            for update_atoms in (False, True):
                dictionary_pass(
                    R, D[i : i + 1], B[i : i + 1], mu=mu, q=q, update_atoms=update_atoms
                )
                costs.append(cost(P, D, B, mu))
        dictionary_pass(R_whole, D_whole, B_whole, mu=mu, q=q)
    assert np.diff(costs).max() <= 1e-10 * costs[0]
    assert costs[-1] < 0.9 * costs[0]
    # And the steps in turn are the pass: blocks change nothing.
    np.testing.assert_allclose(D, D_whole, rtol=0, atol=1e-12)
    np.testing.assert_allclose(B, B_whole, rtol=0, atol=1e-12)


def test_fixed_orthonormal_dictionary_has_a_closed_form():
    P = np.random.default_rng(5).standard_normal((600, 60))
    D = initial_dictionary("dct", (5, 4, 3))
    R, kept, B = P.copy(), D.copy(), np.zeros((60, 600))
    dictionary_pass(R, kept, B, mu=1.1, q=1.8, update_atoms=False)
    np.testing.assert_array_equal(kept, D)
    products = D @ P.T
    np.testing.assert_allclose(
        B, np.clip(np.where(np.abs(products) >= 1.1, products, 0), -1.8, 1.8), rtol=0, atol=1e-13
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_bits_again_and_for_any_number_of_threads(dtype):
    P, D, B = (x.astype(dtype) for x in random_problem(3000))
    results = []
    for threads in (1, 1, min(2, numba.config.NUMBA_NUM_THREADS), numba.config.NUMBA_NUM_THREADS):
        numba.set_num_threads(threads)
        R, D_new, B_new = P - B.T @ D, D.copy(), B.copy()
        for _ in range(3):
            dictionary_pass(R, D_new, B_new, mu=1.3)
        results.append((R, D_new, B_new))
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_single_precision_residual_does_not_drift():
    """Twenty passes update R in place; it stays the residual of D and B to a few roundings."""
    P, D, B = (x.astype(np.float32) for x in random_problem())
    R = P - B.T @ D
    for _ in range(20):
        dictionary_pass(R, D, B, mu=1.3)
    exact = P.astype(float) - B.T.astype(float) @ D.astype(float)
    assert np.abs(R - exact).max() < 1e-5
    assert np.abs(np.linalg.norm(D.astype(float), axis=1) - 1).max() < 1e-6
    assert squared_norm(R) == pytest.approx(np.sum(exact**2), rel=1e-6)


def test_squared_norm_adds_in_double_precision():
    R = np.full((5000, 7), 0.1, dtype=np.float32)
    assert squared_norm(R) == pytest.approx(35000 * float(np.float32(0.1)) ** 2, rel=1e-12)


@pytest.mark.parametrize(
    ("mu", "q", "code"),
    [
        (-0.1, 1, "threshold-out-of-range"),
        (np.nan, 1, "threshold-out-of-range"),
        (np.inf, np.inf, "threshold-out-of-range"),
        (1, 0.9, "bound-below-threshold"),
        (0, 0, "bound-below-threshold"),
        (1, np.nan, "bound-below-threshold"),
    ],
)
def test_bad_thresholds(mu, q, code):
    P, D, B = random_problem(20, 4, 3)
    for form in (update_dictionary, dictionary_pass):
        with pytest.raises(ParameterError) as caught:
            form(P, D, B, mu=mu, q=q)
        assert caught.value.code == code


def test_bad_arrays():
    P, D, B = random_problem(20, 4, 3)
    for bad in [
        (P, D.T.copy(), B),
        (P, D, B.T.copy()),
        (P.astype(np.float32), D, B),
        (np.asfortranarray(P), D, B),
    ]:
        with pytest.raises(ValueError):
            dictionary_pass(*bad, mu=1.0)
