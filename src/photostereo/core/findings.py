"""Findings about a capture or a result, as data; shells turn them into words.

A finding carries facts: what it is about (:class:`Subject`), what kind of remark it is (:class:`Kind`), how much it
matters, the numbers and names that belong to it, and what to do. Programs and tests look at these. The sentence is made
when somebody asks for it, from the one table of sentences, ``core/findings.toml``::

    finding = Finding("room-light", share=0.26)
    finding.kind, finding.values["share"]  # for programs
    str(finding), finding.rendered("terminal")  # for people

To add a finding, add a line to the table, under its subject and kind.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any, Literal

from photostereo.core.errors import plain
from photostereo.core.remedies import remedy_text
from photostereo.core.wording import filled_in

Severity = Literal["problem", "notice", "good"]


class Subject(StrEnum):
    """What a finding is about."""

    CAPTURE = "capture"
    PHOTOGRAPHS = "photographs"
    LIGHTS = "lights"
    BALL = "ball"  #: a calibration ball, and the lights that come from it
    MASK = "mask"
    METHOD = "method"
    RESULT = "result"
    SURFACE = "surface"
    PLUGIN = "plugin"


class Kind(StrEnum):
    """What kind of remark a finding is; this decides who shows it, and where."""

    ROUTINE = "routine"  #: how the capture was read or solved; nothing to do
    SOURCE = "source"  #: where the lights come from if no light file gives them
    ADJUSTMENT = "adjustment"  #: a difference that is usual, and was removed as usual
    CORRECTION = "correction"  #: something was wrong, and was corrected
    DOUBT = "doubt"  #: something may be wrong
    MISTAKE = "mistake"  #: the light file, the mask or the photographs are wrong
    QUALITY = "quality"  #: how good the photographs or the lights are; the severity says which
    CHOICE = "choice"  #: why a method was chosen


#: Kinds that ask for no attention.
ROUTINE_KINDS = frozenset({Kind.ROUTINE, Kind.SOURCE, Kind.ADJUSTMENT})


@dataclass(frozen=True)
class Entry:
    """A line of the table of sentences."""

    subject: Subject
    kind: Kind
    sentence: str  #: a format string; its fields are values of the finding


@cache
def table() -> Mapping[str, Entry]:
    """Return every known finding by its code; the table is read when the first one is needed."""
    text = Path(__file__).with_name("findings.toml").read_text(encoding="utf-8")
    return {
        code: Entry(Subject(subject), Kind(kind), sentence)
        for subject, kinds in tomllib.loads(text).items()
        for kind, sentences in kinds.items()
        for code, sentence in sentences.items()
    }


@dataclass(frozen=True, init=False)
class Finding:
    """Something to know about a capture or a result.

    Parameters
    ----------
    code : str
        Identifies the finding; a line of the table. A finding of another package may have a code of its own and its
        sentence as the value ``note``.
    severity : {"problem", "notice", "good"}
        How much it matters.
    remedy : str, optional
        What to do, by the code of the remedy: shells word it differently.
    effect : float
        Degrees by which it turns a typical normal; 0 if unknown.
    **values
        The numbers and names in the sentence, and further facts.

    Examples
    --------
    >>> finding = Finding("ambient-subtracted", file="dark.png")
    >>> finding.subject.value, finding.kind.value, finding.values
    ('photographs', 'adjustment', {'file': 'dark.png'})
    >>> print(finding)
    the ambient light in dark.png is subtracted
    """

    code: str
    severity: Severity
    values: Mapping[str, Any] = field(hash=False)
    remedy: str | None
    effect: float

    def __init__(
        self,
        code: str,
        severity: Severity = "notice",
        *,
        remedy: str | None = None,
        effect: float = 0.0,
        **values: Any,
    ) -> None:
        fields = {
            "code": code,
            "severity": severity,
            "values": values,
            "remedy": remedy,
            "effect": effect,
        }
        for name, value in fields.items():
            # The class is frozen; only this method may set its fields.
            object.__setattr__(self, name, value)

    @property
    def subject(self) -> Subject:
        """What it is about."""
        return self._entry.subject

    @property
    def kind(self) -> Kind:
        """What kind of remark it is."""
        return self._entry.kind

    @property
    def is_mistake(self) -> bool:
        """Whether something is wrong with the light file, the mask or the photographs."""
        return self.kind is Kind.MISTAKE

    @property
    def is_routine(self) -> bool:
        """Whether it asks for no attention."""
        return self.kind in ROUTINE_KINDS

    @property
    def _entry(self) -> Entry:
        # Another package may have findings of its own, which the table cannot know.
        return table().get(self.code) or Entry(Subject.CAPTURE, Kind.DOUBT, "{note}")

    def rendered(self, shell: str = "python") -> str:
        """Return the sentence, with the remedy in the words of a shell.

        Parameters
        ----------
        shell : {"python", "terminal", "app"}
            Who asks: a remedy is an argument in Python, an option in the terminal, a click in the app.
        """
        values = {"note": self.code, **self.values}
        sentence = filled_in(self._entry.sentence, values)
        if self.remedy is None:
            return sentence
        return f"{sentence} {remedy_text(self.remedy, shell, values)}"

    def __str__(self) -> str:
        return self.rendered()

    def changed(self, *, severity: Severity | None = None, **values: Any) -> Finding:
        """Return the same finding with another severity, or with other values."""
        return Finding(
            self.code,
            severity or self.severity,
            remedy=self.remedy,
            effect=self.effect,
            **{**self.values, **values},
        )

    def as_dict(self, shell: str = "python") -> dict[str, Any]:
        """Return the finding for JSON, with its text in the words of a shell."""
        return {
            "code": self.code,
            "severity": self.severity,
            "subject": str(self.subject),
            "kind": str(self.kind),
            "text": self.rendered(shell),
            "values": {name: plain(value) for name, value in self.values.items()},
        }


def as_finding(note: Finding | str) -> Finding:
    """Return a finding unchanged; wrap a plain sentence, as layouts of other packages may give, in a finding."""
    return note if isinstance(note, Finding) else Finding("note", note=note)


def by_code(findings: Iterable[Finding | str]) -> dict[str, Finding]:
    """Return findings by their codes."""
    return {finding.code: finding for finding in map(as_finding, findings)}


def distinct(findings: Iterable[Finding | str]) -> tuple[Finding, ...]:
    """Return findings without those that say the same as an earlier one.

    Captures written by photostereo include the sentences of earlier findings, so sentences are compared.
    """
    first: dict[str, Finding] = {}
    for finding in map(as_finding, findings):
        first.setdefault(str(finding), finding)
    return tuple(first.values())


def outline(code: str) -> str:
    """Return the sentence of a code with dots for its values.

    >>> outline("light-file")
    'lights from …'
    """
    parts = Formatter().parse(table()[code].sentence)
    return "".join(text if field is None else f"{text}…" for text, field, _, _ in parts)


def sentences(findings: Iterable[Finding | str], shell: str = "python") -> list[str]:
    """Return the sentences of findings in the words of a shell, for JSON and for pages."""
    return [as_finding(finding).rendered(shell) for finding in findings]
