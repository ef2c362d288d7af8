"""Small functions of `core`, each by an example."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from photostereo.core.conventions import row_bands
from photostereo.core.errors import (
    MissingDependencyError,
    ParameterError,
    did_you_mean,
    require_extra,
    require_known,
)
from photostereo.core.findings import Finding
from photostereo.core.parameters import integer, parameters_of
from photostereo.core.plugins import announced
from photostereo.core.remedies import remedy_text


def test_bands_of_rows_cover_the_picture() -> None:
    assert [(rows.start, rows.stop) for rows in row_bands(5, 100, pixels=200)] == [
        (0, 2),
        (2, 4),
        (4, 5),
    ]


def test_a_finding_is_facts_with_a_sentence() -> None:
    found = Finding("normals-away", share=0.02)
    assert str(found).startswith("2.0 % of the normals point away f")
    assert (found.code, found.severity, found.values) == ("normals-away", "notice", {"share": 0.02})


def test_parameters_are_the_fields_of_a_dataclass() -> None:
    @dataclass(frozen=True)
    class Curve:
        pieces: int = integer(2, "how many", minimum=1)

    assert [(p.name, p.default) for p in parameters_of(Curve)] == [("pieces", 2)]


def test_nobody_announces() -> None:
    assert announced("photostereo.nobody-announces-here", int) == ()


def test_remedies_in_the_words_of_the_terminal() -> None:
    text = remedy_text("replace-output", "terminal", {})
    assert text == "Choose another name, or use --force to replace it."


def test_codes_and_hints() -> None:
    assert did_you_mean("pdnlv", ["ls", "pls", "pdlnv"]) == ' Did you mean "pdlnv"?'
    assert did_you_mean("zebra", ["ls", "pls"]) == ""
    with pytest.raises(ParameterError) as caught:
        require_known("spere", ["plane", "sphere"], "scene")
    assert (
        str(caught.value)
        == 'There is no scene "spere". Did you mean "sphere"? Choose from plane, sphere.'
    )


def test_a_missing_library_names_its_extra() -> None:
    require_extra("json", "nothing", "This")
    with pytest.raises(MissingDependencyError, match=r"need no_such_library.*photostereo\[batch\]"):
        require_extra("no_such_library", "batch", "Many captures at once")
