"""Check the content of files that we read back (names, shapes, types, ranges), once, when they are opened.

``fail`` turns the description of a problem into an error; the first problem is raised.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from sys import float_info
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.errors import did_you_mean

Fail = Callable[[str], Exception]

#: A finite number in a JSON file.
NUMBER = (int, float)
#: Kinds of NumPy's types in words.
_KINDS = {
    "b": "truth values",
    "i": "integers",
    "u": "integers",
    "f": "floating-point numbers",
    "U": "text",
}


@dataclass(frozen=True)
class ArraySpec:
    """Requirements for one array."""

    #: Sizes separated by spaces, alternatives by ``|``: ``"H W | H W 3"``. A number is itself; a letter is any size of at
    #: least 1, the same wherever it occurs; ``*`` is any number of further axes. Empty: a single number.
    shapes: str
    #: NumPy's kinds: ``f`` floating point, ``i`` and ``u`` integers, ``b`` truth values, ``U`` text.
    kinds: str = "f"
    #: The range of the values.
    low: float = -math.inf
    high: float = math.inf
    finite: bool = True  #: Whether NaN and infinity are rejected; otherwise NaN passes any range.
    #: Whether at least one value must not be zero: an empty mask is useless.
    nonzero: bool = False


def check_arrays(
    arrays: Mapping[str, NDArray[Any]],
    specs: Mapping[str, ArraySpec],
    fail: Fail,
    sizes: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """Check arrays by name; other arrays are ignored.

    Parameters
    ----------
    arrays : mapping of str to array
        The content of a file.
    specs : mapping of str to ArraySpec
        What is required of each.
    fail : callable
        Turns the description of a problem into an error.
    sizes : mapping of str to int, optional
        Letters in shapes whose sizes are known.

    Returns
    -------
    dict of str to int
        The sizes of all letters.
    """
    known = dict(sizes or {})
    for name, spec in specs.items():
        array = arrays.get(name)
        if array is None:
            raise fail(f"{name} is missing")
        if array.dtype.kind not in spec.kinds:
            kind = _KINDS.get(array.dtype.kind, str(array.dtype))
            raise fail(f"{name} holds {kind}; expected {_KINDS[spec.kinds[0]]}")
        known = _fitting_sizes(name, array, spec, known, fail)
        _check_values(name, array, spec, fail)
    return known


def _fitting_sizes(
    name: str, array: NDArray[Any], spec: ArraySpec, known: Mapping[str, int], fail: Fail
) -> dict[str, int]:
    """Return the sizes of the letters for the first shape of the spec that the array has."""
    shapes = [shape.split() for shape in spec.shapes.split("|")]
    for shape in shapes:
        sizes = _agree(array.shape, shape, known)
        if sizes is not None:
            return sizes
    expected = " or ".join(_times(known.get(word, word) for word in shape) for shape in shapes)
    raise fail(f"{name} is {_times(array.shape)}; expected {expected}")


def _check_values(name: str, array: NDArray[Any], spec: ArraySpec, fail: Fail) -> None:
    """Check that values are finite, in their range, and not all zero, as far as the spec says so."""
    if spec.finite and array.dtype.kind == "f" and not np.isfinite(array).all():
        raise fail(f"{name} has values that are not finite")
    if array.dtype.kind in "fiu" and ((array < spec.low).any() or (array > spec.high).any()):
        raise fail(f"{name} has values outside {spec.low:g} to {spec.high:g}")
    if spec.nonzero and not array.any():
        raise fail(f"{name} is zero everywhere")


def check_facts(
    value: Any, spec: Any, fail: Fail, where: str = "", *, closed: bool = False
) -> None:
    """Check a value from a JSON or TOML file against types, ``{name: spec}``, ``[spec of each]`` or alternatives.

    A name that ends in ``?`` may be missing or null; ``object`` is anything; :data:`NUMBER` is a finite number;
    ``{str: spec}`` is a mapping of any names; a tuple lists alternatives, chosen by type.

    Parameters
    ----------
    value
        What was read.
    spec
        What it must be.
    fail : callable
        Turns the description of a problem into an error.
    where : str
        The place of the value in its file, such as ``"lights[3].x"``.
    closed : bool
        Reject names that are not in the spec.
    """
    alternatives = (spec,)
    if isinstance(spec, tuple) and spec is not NUMBER:
        alternatives = spec
    chosen = next((kind for kind in alternatives if _is_a(value, kind)), None)
    if chosen is None:
        words = " or ".join(_words(kind) for kind in alternatives)
        raise fail(f"{where or 'the content'} is not {words}")
    if isinstance(chosen, list):
        for number, item in enumerate(value):
            check_facts(item, chosen[0], fail, f"{where}[{number}]", closed=closed)
    elif isinstance(chosen, dict):
        _check_mapping(value, chosen, fail, f"{where}." if where else "", closed)


def _check_mapping(
    value: Mapping[str, Any], spec: Mapping[Any, Any], fail: Fail, prefix: str, closed: bool
) -> None:
    known = {name.removesuffix("?"): name for name in spec if name is not str}
    for key, item in value.items():
        if key in known:
            if item is not None:
                check_facts(item, spec[known[key]], fail, f"{prefix}{key}", closed=closed)
        elif str in spec:
            check_facts(item, spec[str], fail, f"{prefix}{key}", closed=closed)
        elif closed:
            raise fail(f"{prefix}{key} is not known here.{did_you_mean(key, known)}")
    for key, name in known.items():
        if key == name and value.get(key) is None:
            raise fail(f"{prefix}{key} is missing")


#: Types in words.
_TYPES = {
    str: "text",
    int: "a whole number",
    dict: "a mapping",
    list: "a list",
    bool: "true or false",
}


def _is_a(value: Any, kind: Any) -> bool:
    if kind is NUMBER:
        # Comparison handles integers of hundreds of digits, unlike math.isfinite.
        return (
            isinstance(value, NUMBER)
            and not isinstance(value, bool)
            and abs(value) <= float_info.max
        )
    outer = type(kind) if isinstance(kind, (dict, list)) else kind
    return isinstance(value, outer) and not (kind is int and isinstance(value, bool))


def _words(kind: Any) -> str:
    if kind is NUMBER:
        return "a number"
    return _TYPES.get(
        type(kind) if isinstance(kind, (dict, list)) else kind, "of the expected type"
    )


def _agree(
    shape: tuple[int, ...], wanted: list[str], known: Mapping[str, int]
) -> dict[str, int] | None:
    """The sizes of the letters if the shape fits, else None."""
    if wanted[-1:] == ["*"]:
        wanted = wanted[:-1]
        shape = shape[: len(wanted)]
    if len(shape) != len(wanted):
        return None
    sizes = dict(known)
    for side, word in zip(shape, wanted, strict=True):
        expected = int(word) if word.isdigit() else sizes.setdefault(word, side)
        if side != expected or side < 1:
            return None
    return sizes


def _times(sides: Iterable[object]) -> str:
    return " × ".join(map(str, sides)) or "a single number"
