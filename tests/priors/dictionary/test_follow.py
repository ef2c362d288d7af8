"""Atoms that are given beforehand: each patch by itself, with the result of the pass that goes atom by atom."""

from __future__ import annotations

import numpy as np
import pytest

from photostereo.priors.dictionary.compiled import follow_atoms

from .readable import update_dictionary


@pytest.mark.parametrize(("patches", "length", "atoms"), [(100, 24, 40), (37, 12, 7), (1, 5, 3)])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_patch_by_patch_is_atom_by_atom(patches: int, length: int, atoms: int, kind: type) -> None:
    rng = np.random.default_rng(0)
    D = rng.normal(size=(atoms, length))
    D = (D / np.linalg.norm(D, axis=1, keepdims=True)).astype(kind)
    P = rng.normal(size=(patches, length)).astype(kind)
    history = [D + 0.1 * rng.normal(size=D.shape) for _ in range(3)]
    history = [
        (atom / np.linalg.norm(atom, axis=1, keepdims=True)).astype(kind) for atom in history
    ]
    two = [P.copy(), D.copy(), np.zeros((atoms, patches), kind)]
    D_one, B_one = D.copy(), np.zeros((atoms, patches), kind)
    for given in history:
        D_one, B_one = update_dictionary(P, D_one, B_one, mu=0.7, q=2.0, given=given)
        follow_atoms(*two, given, mu=0.7, q=2.0)
    assert 0.05 < (B_one != 0).mean() < 0.95
    assert np.array_equal(two[1], history[-1])
    close = {"rtol": 0, "atol": 1e-4 if kind is np.float32 else 1e-11}
    assert np.allclose(two[2], B_one, **close)
    assert np.allclose(two[0], P - two[2].T @ two[1], **close)


def test_other_atoms_are_refused() -> None:
    with pytest.raises(ValueError):
        follow_atoms(np.zeros((2, 3)), np.eye(3), np.zeros((3, 2)), np.eye(2), mu=1.0)
