"""What every capture of a batch is solved with."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from photostereo.errors import ParameterError, did_you_mean
from photostereo.jobs.trial import canonical_json


@dataclass(frozen=True)
class Settings:
    """The same for all captures; the names are those of ``photostereo solve``.

    Attributes
    ----------
    method, prior, parameters : how it is solved
    images, seed : so many photographs drawn at random; None for all
    color, srgb, mask, lights : how a capture is read; ``lights`` and ``mask`` are files for all of them
    surface, surface_method, pixel_size : depth and mesh
    report : a page for each capture
    flip_y : ``normals.png`` in the DirectX convention
    """

    method: str = "dlsr"
    prior: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    images: int | None = None
    seed: int = 0
    color: bool = False
    srgb: bool = False
    mask: str | None = None
    lights: str | None = None
    surface: bool = True
    surface_method: str = "poisson"
    pixel_size: str | None = None
    report: bool = True
    flip_y: bool = False

    @property
    def reading(self) -> dict[str, Any]:
        """The options of :func:`photostereo.load`."""
        return {"color": self.color, "srgb": self.srgb, "mask": self.mask, "lights": self.lights}

    def check(self) -> None:
        """Raise what would be wrong with every capture, before the first is read."""
        from photostereo.exports.pixel_size import PixelSize
        from photostereo.solver.methods import find_method
        from photostereo.surface.integration import check_method

        find_method(self.method, self.prior).resolve(self.parameters)
        check_method(self.surface_method)
        PixelSize.of(self.pixel_size)
        for label, path in (("lights", self.lights), ("mask", self.mask)):
            named = path is not None and path not in ("full", "auto", "refined", "directions")
            if named and not Path(str(path)).is_file():
                raise ParameterError(
                    f"The {label} file {path} does not exist. Give the path of a file for all captures."
                )

    def key_of(self, fingerprint: str) -> str:
        """Twenty-four digits that depend on a capture's files and on what is computed from them."""
        facts = {**asdict(self), "capture": fingerprint}
        for label in ("lights", "mask"):
            path = facts[label]
            if path is not None and Path(path).is_file():
                facts[label] = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        return hashlib.blake2b(canonical_json(facts).encode(), digest_size=12).hexdigest()

    @classmethod
    def of(cls, values: Mapping[str, Any], where: str) -> Settings:
        """Settings from a table of names and values; an unknown or mistyped one is an error that names ``where``."""
        kinds = {entry.name: str(entry.type) for entry in fields(cls)}
        for name, value in values.items():
            if name not in kinds:
                known = ", ".join(kinds)
                raise ParameterError(
                    f'{where}: there is no setting "{name}".{did_you_mean(name, kinds)} Known: {known}.'
                )
            if not _fits(value, kinds[name]):
                raise ParameterError(
                    f"{where}: {name} must be {_WORDS[kinds[name].split(' ')[0]]}, not {value!r}."
                )
        return cls(**values)


_WORDS = {
    "str": "a text in quotes",
    "int": "a whole number",
    "bool": "true or false",
    "Mapping[str,": "a table such as { mu = 0.1 }",
}


def _fits(value: Any, kind: str) -> bool:
    if value is None:
        return "None" in kind
    if kind.startswith("bool"):
        return isinstance(value, bool)
    if kind.startswith("int"):
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, Mapping if kind.startswith("Mapping") else str)
