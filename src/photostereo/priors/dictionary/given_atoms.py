"""The ``dictionary`` parameter: a kind of initial dictionary, the user's own array, or a file that holds
one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from photostereo.parameters import array_in_file
from photostereo.priors.dictionary.atoms import KINDS

#: What it accepts, in words.
EXPECTS = f"one of {', '.join(KINDS)}, the path of a .npy file, or an array with one atom per row"


def kind_or_array(value: Any) -> Any:
    """A kind of dictionary as it is; anything else as an array with one atom per row."""
    if isinstance(value, (str, Path)):
        if str(value) in KINDS:
            return str(value)
        return _read_dictionary(Path(value))
    return np.asarray(value, dtype=np.float64)


def _read_dictionary(path: Path) -> Any:
    if path.suffix != ".npy":
        raise ValueError(path)
    remedy = f"Give the dictionary.npy that a former solve wrote, or one of {', '.join(KINDS)}."
    return array_in_file(path, "dictionary", remedy)
