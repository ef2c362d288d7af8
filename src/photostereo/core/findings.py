"""Findings about a capture or a result: the facts, and a sentence or two about them.

As with errors (:mod:`photostereo.core.errors`), the ``code`` identifies a finding for programs and tests, ``values`` are
the numbers and names in its text (``core/texts.toml``), and ``remedy`` names a remedy there, which is worded for each shell.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Literal

from photostereo.core.errors import plain
from photostereo.core.texts import remedy_text, text_of

Severity = Literal["problem", "notice", "good"]


class Finding(str):
    """A sentence, worded for Python, together with the facts behind it."""

    code: str  #: identifies it; never changes, the text may
    severity: Severity  #: how much it matters
    remedy: str | None  #: what to do, a key of the catalog
    effect: float  #: degrees by which it turns a typical normal, as far as known
    is_mistake: bool  #: whether something is wrong with the light file, the mask or the tone curve
    values: dict[str, Any]  #: numbers and names in the text

    def __new__(
        cls,
        code: str,
        severity: Severity = "notice",
        *,
        remedy: str | None = None,
        effect: float = 0.0,
        is_mistake: bool = False,
        **values: Any,
    ) -> Finding:
        self = super().__new__(cls, _words(code, remedy, "python", values))
        self.code, self.severity, self.values = code, severity, values
        self.remedy, self.effect, self.is_mistake = remedy, effect, is_mistake
        return self

    def rendered(self, shell: str = "python") -> str:
        """The text with its remedy in the words of a shell: ``"python"``, ``"terminal"`` or ``"app"``."""
        return _words(self.code, self.remedy, shell, self.values)

    def changed(self, **values: Any) -> Finding:
        """Return the same finding with other values, or another severity."""
        make, (code,) = self.__reduce__()
        changed: Finding = make(code, **values)
        return changed

    def as_dict(self, shell: str = "python") -> dict[str, Any]:
        """For JSON: code, severity, text, values."""
        values = {name: plain(value) for name, value in self.values.items()}
        return {
            "code": self.code,
            "severity": self.severity,
            "text": self.rendered(shell),
            "values": values,
        }

    def __reduce__(self) -> Any:  # keep all fields when it is sent to another process
        own = {name: getattr(self, name) for name in ("severity", "remedy", "effect", "is_mistake")}
        return partial(Finding, **own, **self.values), (self.code,)


def _words(code: str, remedy: str | None, shell: str, values: dict[str, Any]) -> str:
    said = text_of("findings", code, values)
    return said if remedy is None else f"{said} {remedy_text(remedy, shell, values)}"


def as_finding(note: str) -> Finding:
    """Return a finding unchanged; wrap a plain sentence, as layouts of other packages may give, in a finding."""
    return note if isinstance(note, Finding) else Finding("note", note=note)


def by_code(findings: Iterable[str]) -> dict[str, Finding]:
    """Findings by their codes."""
    return {finding.code: finding for finding in map(as_finding, findings)}


def listed(names: Iterable[Any], most: int = 4) -> str:
    """List the first names, and count the others."""
    every = [str(name) for name in names]
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more
