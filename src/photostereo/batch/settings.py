"""What every capture of a batch is solved with."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from photostereo.batch.fingerprint import canonical_json, fingerprint
from photostereo.capture.options import NAMED_FILES, ReadOptions
from photostereo.core.errors import ParameterError, did_you_mean

#: Choices of a mask or of lights that are no files.
WORDS = ("full", "auto", "bright", "refined", "directions")


@dataclass(frozen=True)
class Settings:
    """The same for all captures; the names are those of ``photostereo solve``.

    Attributes
    ----------
    method, prior, parameters : how it is solved
    images, seed : so many photographs drawn at random; None for all
    reading : how a capture is read; what it names (light file, mask, ...) serves for all of them
    surface, surface_method, pixel_size : depth and mesh
    report : a page for each capture
    flip_y : ``normals.png`` in the DirectX convention
    """

    method: str = "auto"
    prior: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    images: int | None = None
    seed: int = 0
    reading: ReadOptions = field(default_factory=ReadOptions)
    surface: bool = True
    surface_method: str = "poisson"
    pixel_size: str | None = None
    report: bool = True
    flip_y: bool = False

    def check(self) -> None:
        """Raise what would be wrong with every capture, before the first is read."""
        from photostereo.core.units import PixelSize
        from photostereo.solver.methods import find_method
        from photostereo.surface.integration import check_method

        find_method(self.method, self.prior).resolve(self.parameters)
        check_method(self.surface_method)
        PixelSize.of(self.pixel_size)
        for label in NAMED_FILES:
            path = self.reading.path_of(label)
            if path is not None and str(path) not in WORDS and not path.exists():
                raise ParameterError(
                    f"The {label} file {path} does not exist. Give the path of a file for all captures."
                )

    def key_of(self, capture: str) -> str:
        """Twenty-four digits that depend on a capture's files (their fingerprint) and on what is computed from them."""
        reading = self.reading.given()
        for label in NAMED_FILES:
            path = self.reading.path_of(label)
            if path is not None and path.is_file():
                reading[label] = hashlib.sha256(path.read_bytes()).hexdigest()
            elif path is not None and path.is_dir():
                reading[label] = fingerprint(path)
        facts = {**asdict(self), "reading": reading, "capture": capture}
        return hashlib.blake2b(canonical_json(facts).encode(), digest_size=12).hexdigest()

    @classmethod
    def of(cls, values: Mapping[str, Any], where: str) -> Settings:
        """Settings from a table of names and values; an unknown or mistyped one is an error that names ``where``."""
        of_reading = {entry.name: str(entry.type) for entry in fields(ReadOptions) if entry.name != "workers"}
        kinds = {entry.name: str(entry.type) for entry in fields(cls) if entry.name != "reading"} | of_reading
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
        reading = ReadOptions(**{name: values[name] for name in values if name in of_reading})
        return cls(reading=reading, **{name: values[name] for name in values if name not in of_reading})


_WORDS = {
    "str": "a text in quotes",
    "int": "a whole number",
    "bool": "true or false",
    "float": "a number",
    "Sequence[int]": "a list of whole numbers",
    "Sequence[float]": "a list of numbers",
    "Mapping[str,": "a table such as { mu = 0.1 }",
}


def _fits(value: Any, kind: str) -> bool:
    if value is None:
        return "None" in kind
    if kind.startswith("bool"):
        return isinstance(value, bool)
    if kind.startswith("int"):
        return isinstance(value, int) and not isinstance(value, bool)
    if kind.startswith("float"):
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind.startswith("Sequence"):
        one = "int" if "int" in kind else "float"
        return isinstance(value, list) and all(_fits(number, one) for number in value)
    return isinstance(value, Mapping if kind.startswith("Mapping") else str)
