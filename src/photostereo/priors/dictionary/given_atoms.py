"""The ``dictionary`` parameter: a kind of initial dictionary, the user's own array, or a file that holds
one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from photostereo.io.parameter_file import array_in_file
from photostereo.priors.dictionary.atoms import KINDS

#: What it accepts, in words.
EXPECTS = f"one of {', '.join(KINDS)}, the path of a .npy file, or an array with one atom per row"


def kind_or_array(value: Any) -> Any:
    """A kind of dictionary as it is; anything else as an array with one atom per row."""
    if isinstance(value, (str, Path)):
        if str(value) in KINDS:
            return str(value)
        return _with_rows(_read_dictionary(Path(value)), value)
    return _with_rows(np.asarray(value, dtype=np.float64), value)


def _with_rows(array: Any, value: Any) -> Any:
    """The array, where it has rows at all; how long they have to be depends on the patches."""
    if np.ndim(array) == 0:
        raise ValueError(value)
    return array


def _read_dictionary(path: Path) -> Any:
    if path.suffix != ".npy":
        raise ValueError(path)
    remedy = f"Give the dictionary.npy that a former solve wrote, or one of {', '.join(KINDS)}."
    return array_in_file(path, "dictionary", remedy)
