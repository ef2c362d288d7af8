"""Save and load a rig: JSON for lights and method, NPZ if there is a mask or a photograph with the lights off, too."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from photostereo.core.errors import CaptureError, ParameterError
from photostereo.io.atomic import write_arrays, write_json
from photostereo.io.safe import TEXT_LIMIT, read_json, read_npz
from photostereo.lights.lights import Lights
from photostereo.rig.rig import Rig

#: Says what a file is; the number rises if its meaning changes.
FORMAT = "photostereo-rig"
VERSION = 1
#: A mask and one photograph of 100 megapixels.
LIMIT = 8 * TEXT_LIMIT

_REMEDY = 'Write one with "photostereo rig" or photostereo.rig.save_rig.'


def save_rig(rig: Rig, file: str | os.PathLike[str]) -> None:
    """Write a rig.

    Parameters
    ----------
    rig : Rig
        The rig.
    file : path
        ``.json`` or ``.npz``; a rig with a mask or ambient light needs ``.npz``.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "rig.json"
    >>> save_rig(Rig([[0.5, 0, 0.8], [-0.5, 0.3, 0.8], [0, -0.5, 0.8]]), file)
    >>> load_rig(file)
    Rig(3 lights, method='ls')
    """
    file = Path(file)
    directions = rig.lights.directions
    strengths = rig.lights.strengths
    if _kind_of(file) == ".json":
        if rig.mask is not None or rig.ambient is not None:
            raise ParameterError(
                f"{file} cannot hold the mask or the ambient light of the rig. Use the suffix .npz.",
                code="rig-needs-npz",
                file=file,
            )
        facts = {
            "format": FORMAT,
            "version": VERSION,
            "method": rig.method,
            "directions": directions.tolist(),
            "strengths": strengths.tolist(),
        }
        write_json(file, facts)
        return
    arrays: dict[str, Any] = {
        "format": np.array(FORMAT),
        "version": np.array(VERSION),
        "method": np.array(rig.method),
        "directions": directions,
        "strengths": strengths,
    }
    if rig.mask is not None:
        arrays["mask"] = rig.mask
    if rig.ambient is not None:
        arrays["ambient"] = rig.ambient
    write_arrays(file, **arrays)


def load_rig(file: str | os.PathLike[str]) -> Rig:
    """Read a rig that :func:`save_rig` has written.

    Parameters
    ----------
    file : path
        ``.json`` or ``.npz``.

    Returns
    -------
    Rig

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "rig.npz"
    >>> save_rig(Rig([[0.5, 0, 0.8], [-0.5, 0.3, 0.8], [0, -0.5, 0.8]], method="l1"), file)
    >>> load_rig(file).method
    'l1'
    """
    file = Path(file)
    if _kind_of(file) == ".json":
        facts = read_json(file, "rig", remedy=_REMEDY)
    else:
        facts = read_npz(file, "rig", remedy=_REMEDY, limit=LIMIT)
    if not isinstance(facts, dict) or str(facts.get("format")) != FORMAT:
        raise CaptureError(f"{file} is not a rig. {_REMEDY}", code="not-a-rig", file=file)
    if int(facts.get("version", 0)) > VERSION:
        raise CaptureError(
            f"{file} was written by a newer version of photostereo. Update photostereo.",
            code="newer-rig",
            file=file,
        )
    lights = Lights(facts["directions"], strengths=facts["strengths"], source=file.name)
    return Rig(lights, facts.get("mask"), method=str(facts["method"]), ambient=facts.get("ambient"))


def _kind_of(file: Path) -> str:
    kind = file.suffix.lower()
    if kind not in (".json", ".npz"):
        raise ParameterError(
            f"{file} is neither a .json nor an .npz file.", code="rig-suffix", file=file
        )
    return kind
