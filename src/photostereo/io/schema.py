"""Check the content of files that we read back (names, shapes, types, ranges), once, when they are opened.

``fail`` turns the description of a problem into an error; the first problem is raised.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from sys import float_info
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.errors import did_you_mean

Fail = Callable[[str], Exception]

#: A finite number in a JSON file.
NUMBER = (int, float)
_KINDS = {"b": "truth values", "i": "integers", "u": "integers", "f": "floating-point numbers", "U": "text"}
#: Values are checked in parts of this many, so that a large mapped file is never copied as a whole.
_PART = 1 << 22


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
    """Check arrays by name and return the sizes of the letters in their shapes; other arrays are ignored."""
    known = dict(sizes or {})
    for name, spec in specs.items():
        array = arrays.get(name)
        if array is None:
            raise fail(f"{name} is missing")
        if array.dtype.kind not in spec.kinds:
            found, wanted = (_KINDS.get(kind, str(array.dtype)) for kind in (array.dtype.kind, spec.kinds[0]))
            raise fail(f"{name} holds {found}; expected {wanted}")
        for shape in spec.shapes.split("|"):
            agreed = _agree(array.shape, shape.split(), known)
            if agreed is not None:
                known = agreed
                break
        else:
            size = " × ".join(map(str, array.shape)) or "a single number"
            raise fail(f"{name} is {size}; expected {_in_words(spec.shapes, known)}")
        if array.dtype.kind in "fiu":
            _check_values(name, array, spec, fail)
        if spec.nonzero and not array.any():
            raise fail(f"{name} is zero everywhere")
    return known


def check_facts(value: Any, spec: Any, fail: Fail, where: str = "", *, closed: bool = False) -> None:
    """Check a value from a JSON or TOML file against types, ``{name: spec}``, ``[spec of each]`` or alternatives.

    A name that ends in ``?`` may be missing or null; ``object`` is anything; :data:`NUMBER` is a finite number;
    ``{str: spec}`` is a mapping of any names; a tuple lists alternatives, chosen by type. With ``closed``,
    names that are not in the spec are rejected.

    >>> check_facts({"a": [1, 2.5]}, {"a": (str, [NUMBER]), "b?": str}, ValueError)
    >>> check_facts({"a": [1, "x"]}, {"a": [NUMBER]}, ValueError)
    Traceback (most recent call last):
    ValueError: a[1] is not a number
    >>> check_facts({"colour": 1}, {"color?": int}, ValueError, closed=True)
    Traceback (most recent call last):
    ValueError: colour is not known here. Did you mean "color"?
    """
    alternatives = spec if isinstance(spec, tuple) and spec is not NUMBER else (spec,)
    chosen = next((kind for kind in alternatives if _is_a(value, kind)), None)
    if chosen is None:
        words = " or ".join(_words(kind) for kind in alternatives)
        raise fail(f"{where or 'the content'} is not {words}")
    if isinstance(chosen, list):
        for number, item in enumerate(value):
            check_facts(item, chosen[0], fail, f"{where}[{number}]", closed=closed)
    elif isinstance(chosen, dict):
        inside = f"{where}." if where else ""
        known = {name.removesuffix("?"): name for name in chosen if name is not str}
        for key, item in value.items():
            if key in known:
                if item is not None:
                    check_facts(item, chosen[known[key]], fail, f"{inside}{key}", closed=closed)
            elif str in chosen:
                check_facts(item, chosen[str], fail, f"{inside}{key}", closed=closed)
            elif closed:
                raise fail(f"{inside}{key} is not known here.{did_you_mean(key, known)}")
        for key, name in known.items():
            if key == name and value.get(key) is None:
                raise fail(f"{inside}{key} is missing")


_TYPES = {str: "text", int: "a whole number", dict: "a mapping", list: "a list", bool: "true or false"}


def _is_a(value: Any, kind: Any) -> bool:
    if kind is NUMBER:
        # Comparison handles integers of hundreds of digits, unlike math.isfinite.
        return isinstance(value, NUMBER) and not isinstance(value, bool) and abs(value) <= float_info.max
    outer = type(kind) if isinstance(kind, (dict, list)) else kind
    return isinstance(value, outer) and not (kind is int and isinstance(value, bool))


def _words(kind: Any) -> str:
    if kind is NUMBER:
        return "a number"
    return _TYPES.get(type(kind) if isinstance(kind, (dict, list)) else kind, "of the expected type")


def _agree(shape: tuple[int, ...], wanted: list[str], known: Mapping[str, int]) -> dict[str, int] | None:
    """The sizes of the letters if the shape fits, else None."""
    if wanted[-1:] == ["*"]:
        wanted = wanted[:-1]
        shape = shape[: len(wanted)]
    if len(shape) != len(wanted):
        return None
    found = dict(known)
    for side, word in zip(shape, wanted, strict=True):
        expected = int(word) if word.isdigit() else found.setdefault(word, side)
        if side != expected or side < 1:
            return None
    return found


def _in_words(shapes: str, known: Mapping[str, int]) -> str:
    options = (
        " × ".join(str(known.get(word, word)) for word in shape.split()) for shape in shapes.split("|")
    )
    return " or ".join(option or "a single number" for option in options)


def _check_values(name: str, array: NDArray[Any], spec: ArraySpec, fail: Fail) -> None:
    rows = max(1, _PART // max(1, array[:1].size)) if array.ndim else 1
    for part in (array[at : at + rows] for at in range(0, len(array), rows)) if array.ndim else (array,):
        if spec.finite and array.dtype.kind == "f" and not np.isfinite(part).all():
            raise fail(f"{name} has values that are not finite")
        if part.size and (np.less(part, spec.low).any() or np.greater(part, spec.high).any()):
            raise fail(f"{name} has values outside {spec.low:g} to {spec.high:g}")
