"""A trial: one method with one set of parameters on one corrupted subset of one capture. Plain data.

A trial carries a path and parameters, never photographs. Its hash identifies what is computed, not where: the same
trial in two plans, on two machines or in two runs has the same hash, and is computed once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from photostereo.batch.fingerprint import canonical_json, fingerprint, plain

#: Part of every hash; raised when a trial of the same description begins to mean something else.
HASH_VERSION = 1

Task = Literal["solve", "represent"]


@dataclass(frozen=True)
class Corruption:
    """Noise added to the photographs: its kind, and its level (dB, fraction, standard deviation)."""

    kind: Literal["none", "poisson", "salt_pepper", "gaussian"] = "none"
    level: float = 0.0

    def __str__(self) -> str:
        words = {
            "none": "clean",
            "poisson": f"Poisson {self.level:g} dB",
            "salt_pepper": f"salt and pepper {100 * self.level:g} %",
            "gaussian": f"Gaussian {self.level:g}",
        }
        return words[self.kind]


CLEAN = Corruption()


@dataclass(frozen=True)
class CaptureSpec:
    """Where a capture is, and how it is read."""

    name: str  #: for tables and figures
    path: str  #: of the folder or file, as every worker sees it; not part of the trial's identity
    #: names and sizes of the files (or the content of a single file), so that other data is another trial
    fingerprint: str
    #: ``"truth"`` for the capture's own normals, ``"ls"`` for least squares on its clean photographs
    reference: Literal["truth", "ls"] = "truth"

    @classmethod
    def at(cls, path: str | Path, name: str = "", reference: Literal["truth", "ls"] = "truth") -> CaptureSpec:
        """The capture in a folder or file."""
        place = Path(path).resolve()
        return cls(name or place.stem, str(place), fingerprint(place), reference)


@dataclass(frozen=True)
class Trial:
    """One method, one set of parameters, one corrupted subset of one capture."""

    capture: CaptureSpec  #: which capture
    #: what is run on it; parameters that are not given take the method's defaults
    method: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    images: int | None = None  #: number of randomly chosen photographs; None for all
    corruption: Corruption = CLEAN  #: the noise added to them
    seed: int | None = None  #: of the choice and of the noise; None if nothing is random
    task: Task = (
        "solve"  #: ``"solve"``, or ``"represent"`` to learn a dictionary on the least-squares normals
    )

    @cached_property
    def hash(self) -> str:
        """Twenty-four hexadecimal digits that depend on nothing but what the trial computes."""
        facts = {**asdict(self), "parameters": self.plain_parameters, "version": HASH_VERSION}
        facts["corruption"]["level"] = float(self.corruption.level)
        del facts["capture"]["path"]
        return hashlib.blake2b(canonical_json(facts).encode(), digest_size=12).hexdigest()

    @property
    def scene(self) -> tuple[CaptureSpec, int | None, Corruption, int | None]:
        """What the method sees; trials of one scene share loading, noise and statistics."""
        return (self.capture, self.images, self.corruption, self.seed)

    @property
    def plain_parameters(self) -> dict[str, Any]:
        """The parameters as JSON has them."""
        return {name: plain(value) for name, value in self.parameters.items()}
