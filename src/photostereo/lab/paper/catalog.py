"""The objects of the paper's experiments, as far as the data folder has them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from photostereo.core.errors import CaptureError
from photostereo.lab.paper.published import OBJECTS
from photostereo.lab.sweeps.trial import CaptureSpec

#: Where a folder may keep DiLiGenT objects, and the Harvard set.
_DILIGENT = ("diligent/pmsData", "DiLiGenT/pmsData", "pmsData", ".")
_HARVARD = ("harvard", "Harvard", ".")


@dataclass
class Catalog:
    """What is in the data folder; remembers what was asked for in vain.

    Parameters
    ----------
    root : holds ``diligent/pmsData/<object>PNG`` and ``harvard/<object>``, or one of the two sets itself
    """

    root: Path
    missing: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.root = Path(self.root).expanduser()
        if not self.root.is_dir():
            raise CaptureError(
                f"The data folder {self.root} does not exist. Give the folder that holds diligent/pmsData "
                "and harvard "
                "with --data."
            )

    def diligent(self, name: str) -> CaptureSpec | None:
        """A DiLiGenT object, or None, remembered as missing."""
        for place in _DILIGENT:
            folder = self.root / place / f"{name}PNG"
            if folder.is_dir():
                return CaptureSpec.at(folder, name)
        self._miss(name)
        return None

    def harvard(self, name: str) -> CaptureSpec | None:
        """A Harvard object, compared with least squares on its clean photographs."""
        for place in _HARVARD:
            folder = self.root / place / name
            if (folder / "Objects").is_dir():
                return CaptureSpec.at(folder, f"harvard {name}", "ls")
        self._miss(f"harvard {name}")
        return None

    def all_diligent(self) -> tuple[CaptureSpec, ...]:
        """Every DiLiGenT object that is there, in the paper's order."""
        return tuple(found for name in OBJECTS if (found := self.diligent(name)) is not None)

    def diligent_or(self, wanted: str, instead: str) -> CaptureSpec | None:
        """The paper's object, or another one in its place, which the notes then say."""
        found = self.diligent(wanted)
        if found is not None:
            return found
        other = self.diligent(instead)
        if other is not None:
            self.notes.append(f"{wanted} is not in the data folder; {instead} takes its place.")
        return other

    def _miss(self, name: str) -> None:
        if name not in self.missing:
            self.missing.append(name)
