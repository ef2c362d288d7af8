"""Files that we read back are checked once, at the door."""

from __future__ import annotations

import math

import numpy as np
import pytest

from photostereo.io.schema import NUMBER, ArraySpec, check_arrays, check_facts

SPECS = {
    "mask": ArraySpec("H W", kinds="b", nonzero=True),
    "normals": ArraySpec("H W 3", low=-1, high=1),
    "albedo": ArraySpec("H W | H W 3", kinds="fu"),
}


def good():
    return {
        "mask": np.ones((4, 5), bool),
        "normals": np.zeros((4, 5, 3)),
        "albedo": np.ones((4, 5), "u1"),
    }


def test_what_fits_passes_and_gives_its_sizes():
    assert check_arrays(good(), SPECS, ValueError) == {"H": 4, "W": 5}
    assert check_arrays({**good(), "albedo": np.ones((4, 5, 3))}, SPECS, ValueError) == {
        "H": 4,
        "W": 5,
    }
    assert check_arrays({**good(), "other": np.ones(3)}, SPECS, ValueError)
    assert check_arrays({"n": np.array(3.0)}, {"n": ArraySpec("")}, ValueError) == {}
    assert (
        check_arrays({"m": np.ones((4, 5, 7, 2))}, {"m": ArraySpec("H W *")}, ValueError, {"H": 4})[
            "W"
        ]
        == 5
    )


@pytest.mark.parametrize(
    ("name", "array", "problem"),
    [
        ("mask", np.zeros((4, 5), bool), "zero everywhere"),
        ("mask", np.ones((4, 5)), "expected truth values"),
        ("mask", np.ones((0, 5), bool), "0 × 5"),
        ("normals", np.zeros((4, 5)), r"expected 4 × 5 × 3"),
        ("normals", np.zeros((5, 4, 3)), r"5 × 4 × 3; expected 4 × 5 × 3"),
        ("normals", np.full((4, 5, 3), np.nan), "not finite"),
        ("normals", np.full((4, 5, 3), 1.5), "outside -1 to 1"),
        ("normals", np.zeros((4, 5, 3), "U3"), "holds text"),
        ("albedo", np.ones((4, 5, 1)), "4 × 5 or 4 × 5 × 3"),
        ("albedo", np.array(1.0), "a single number"),
    ],
)
def test_what_does_not_fit_is_named(name, array, problem):
    with pytest.raises(ValueError, match=problem):
        check_arrays({**good(), name: array}, SPECS, ValueError)


def test_a_missing_array_is_named():
    with pytest.raises(ValueError, match="normals is missing"):
        check_arrays({"mask": np.ones((4, 5), bool)}, SPECS, ValueError)


def test_a_bad_value_is_found_in_any_part():
    for at in range(30):
        array = np.zeros((10, 3))
        array.flat[at] = np.inf
        with pytest.raises(ValueError, match="not finite"):
            check_arrays({"a": array}, {"a": ArraySpec("N 3")}, ValueError)


FACTS = {"name": str, "count": int, "parts": [{"size": NUMBER}], "more?": {str: NUMBER}}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"name": 3}, "name is not text"),
        ({"name": None}, "name is missing"),
        ({"count": 1.5}, "count is not a whole number"),
        ({"count": True}, "count is not a whole number"),
        ({"parts": {}}, "parts is not a list"),
        ({"parts": [{"size": math.inf}]}, r"parts\[0\].size is not a number"),
        ({"parts": [{"size": 10**400}]}, "not a number"),
        ({"parts": [3]}, "not a mapping"),
        ({"more": {"x": "y"}}, "more.x is not a number"),
    ],
)
def test_facts_are_checked_by_type(change, problem):
    facts = {"name": "cat", "count": 3, "parts": [{"size": 1}, {"size": 2.5}], "more": None}
    check_facts(facts, FACTS, ValueError)
    with pytest.raises(ValueError, match=problem):
        check_facts({**facts, **change}, FACTS, ValueError)
    with pytest.raises(ValueError, match="the content is not a mapping"):
        check_facts([], FACTS, ValueError)


def test_alternatives_and_closed_mappings():
    check_facts({"a": [1, 2.5]}, {"a": (str, [NUMBER]), "b?": str}, ValueError)
    with pytest.raises(ValueError, match=r"a\[1\] is not a number"):
        check_facts({"a": [1, "x"]}, {"a": [NUMBER]}, ValueError)
    with pytest.raises(ValueError, match="colour is not known here"):
        check_facts({"colour": 1}, {"color?": int}, ValueError, closed=True)
