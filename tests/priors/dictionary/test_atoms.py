"""Initial dictionaries against SciPy's transforms and against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft

from photostereo.core.errors import ParameterError
from photostereo.priors.dictionary.atoms import KINDS, check_atom_count, cosines, initial_dictionary
from photostereo.solver.solve import solve
from photostereo_lab.scenes import render_scene

SIZE = (5, 4, 3)
LENGTH = 60
PATCHES = np.random.default_rng(7).standard_normal((300, LENGTH))


def dct_matrix(length: int) -> np.ndarray:
    """Orthonormal DCT-II atoms as rows, from SciPy."""
    return scipy.fft.dct(np.eye(length), norm="ortho", axis=0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("atoms", [1, 17, 59, 60, 61, 100, 240, 250])
def test_shape_unit_norm_and_no_atom_twice(kind, atoms):
    D = initial_dictionary(kind, SIZE, atoms, patches=PATCHES, rng=0)
    assert D.shape == (atoms, LENGTH) and D.dtype == np.float64 and D.flags.c_contiguous
    np.testing.assert_allclose(np.linalg.norm(D, axis=1), 1, rtol=0, atol=1e-14)
    assert np.linalg.matrix_rank(D) == min(atoms, LENGTH)  # it spans what it can
    gram = np.abs(D @ D.T) - np.eye(atoms)
    assert gram.max() < 1 - 1e-6


def test_square_dct_is_scipys():
    np.testing.assert_allclose(initial_dictionary("dct", SIZE), dct_matrix(LENGTH), atol=1e-13)


def test_square_separable_dct_is_scipys_three_dimensional_transform():
    D = initial_dictionary("dct-separable", SIZE)
    patch = np.random.default_rng(0).standard_normal((3, 4, 5))  # z, y, x
    np.testing.assert_allclose(
        D @ patch.ravel(), scipy.fft.dctn(patch, norm="ortho").ravel(), atol=1e-13
    )


def test_fewer_atoms_are_the_lowest_frequencies():
    np.testing.assert_allclose(
        initial_dictionary("dct", SIZE, 9), dct_matrix(LENGTH)[:9], atol=1e-13
    )
    D = initial_dictionary("dct-separable", (8, 8, 1), 3)
    rows = [
        np.kron(dct_matrix(8)[k_y], dct_matrix(8)[k_x]) for k_y, k_x in [(0, 0), (0, 1), (1, 0)]
    ]
    np.testing.assert_allclose(D, rows, atol=1e-13)


def test_overcomplete_dct_has_evenly_finer_frequencies():
    k, t = 13, np.arange(LENGTH)
    atom = np.cos(np.pi * k * (t + 0.5) / 150)
    atom -= atom.mean()
    D = initial_dictionary("dct", SIZE, 150)
    np.testing.assert_allclose(D[k], atom / np.linalg.norm(atom), atol=1e-14)
    np.testing.assert_allclose(
        D[1:].sum(axis=1), 0, atol=1e-12
    )  # only the first atom sees the mean


def test_four_times_overcomplete_separable_dct_is_the_usual_one():
    D = initial_dictionary("dct-separable", (8, 8, 1), 256)
    usual = np.kron(cosines(8, 16), cosines(8, 16))
    matches = np.abs(D @ usual.T) > 1 - 1e-12
    assert (matches.sum(axis=0) == 1).all() and (matches.sum(axis=1) == 1).all()
    np.testing.assert_allclose(D[:64], initial_dictionary("dct-separable", (8, 8, 1)), atol=1e-14)


def test_identity_and_its_continuation():
    np.testing.assert_array_equal(initial_dictionary("identity", SIZE, 20), np.eye(20, LENGTH))
    D = initial_dictionary("identity", SIZE, 70)
    np.testing.assert_array_equal(D[:60], np.eye(LENGTH))
    np.testing.assert_allclose(D[60:], dct_matrix(LENGTH)[:10], atol=1e-13)


def test_random_patches_are_seeded_different_and_never_empty():
    patches = PATCHES.copy()
    patches[::2] = 0
    first, again, other = (
        initial_dictionary("random-patches", SIZE, 100, patches=patches, rng=seed)
        for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0.1
    unit = patches[1::2] / np.linalg.norm(patches[1::2], axis=1, keepdims=True)
    drawn = np.argmax(first @ unit.T, axis=1)
    np.testing.assert_allclose(first, unit[drawn], atol=1e-15)
    assert len(set(drawn)) == 100
    with pytest.raises(ParameterError) as caught:
        initial_dictionary("random-patches", SIZE, 151, patches=patches)
    assert caught.value.code == "too-few-patches-to-draw"


def test_an_array_is_checked_and_normalized():
    D = initial_dictionary("dct", SIZE, 30)
    given = D.astype(np.float32)
    result = initial_dictionary(given, SIZE)
    np.testing.assert_allclose(result, D, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(result, axis=1), 1, rtol=0, atol=1e-15)
    bad = D.copy()
    bad[4] *= 1.1
    with pytest.raises(ParameterError) as caught:
        initial_dictionary(bad, SIZE)
    assert caught.value.code == "atoms-not-unit"
    bad[4, 0] = np.nan
    with pytest.raises(ParameterError) as caught:
        initial_dictionary(bad, SIZE)
    assert caught.value.code == "dictionary-not-finite"
    with pytest.raises(ParameterError) as caught:
        initial_dictionary(D.T, SIZE)
    assert caught.value.code == "dictionary-of-another-shape"
    with pytest.raises(ParameterError) as caught:
        initial_dictionary(D[:, :-1], SIZE)
    assert caught.value.code == "dictionary-of-another-shape"
    with pytest.raises(ParameterError) as caught:
        initial_dictionary(D, SIZE, 31)
    assert caught.value.code == "dictionary-of-another-size"


def test_other_errors():
    with pytest.raises(ParameterError) as caught:
        initial_dictionary("dct-seperable", SIZE)
    assert caught.value.code == "unknown-dictionary"
    with pytest.raises(ParameterError) as caught:
        initial_dictionary("dct", SIZE, 0)
    assert caught.value.code == "atoms-not-a-count"
    with pytest.raises(ParameterError) as caught:
        initial_dictionary("random-patches", SIZE)
    assert caught.value.code == "no-patches-to-draw"
    with pytest.raises(ParameterError) as caught:
        initial_dictionary("dct-separable", (1, 1, 3), 4)
    assert caught.value.code == "too-few-cosines"
    check_atom_count(10, 10)
    with pytest.raises(ParameterError) as caught:
        check_atom_count(11, 10)
    assert caught.value.code == "more-atoms-than-patches"


@pytest.mark.parametrize("size", [(1, 8, 3), (8, 1, 1), (1, 1, 1), (2, 3, 1)])
@pytest.mark.parametrize("factor", [1, 2])
def test_thin_patches(size, factor):
    m = int(np.prod(size))
    if m > 1 or factor == 1:
        D = initial_dictionary("dct-separable", size, factor * m)
        assert np.linalg.matrix_rank(D) == m and np.isfinite(D).all()


def test_a_dictionary_without_rows_is_refused_in_words(tmp_path) -> None:
    np.save(tmp_path / "atoms.npy", np.array(3.0))
    capture = render_scene("sphere", size=24)
    for given in (str(tmp_path / "atoms.npy"), 3.0):
        with pytest.raises(ParameterError) as caught:
            solve(capture, "dlnv", dictionary=given, lam=1.0, mu=0.1, max_iter=1)
        assert (caught.value.code, caught.value.values["name"]) == ("bad-parameter", "dictionary")
