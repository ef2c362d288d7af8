"""Findings and errors carry codes, values and words."""

from __future__ import annotations

import ast
import json
import pickle
import re
from pathlib import Path
from string import Formatter

import pytest

from photostereo.core.errors import CaptureError, without_message
from photostereo.core.findings import Finding, Kind, Subject, as_finding, by_code, distinct, table
from photostereo.core.wording import listed, percent

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "photostereo", ROOT / "lab" / "src" / "photostereo_lab"
MODULES = [(path.relative_to(source), path) for source in SOURCES for path in source.rglob("*.py")]
#: Makers of findings, and the values that they add.
MAKERS: dict[str, set[str]] = {"Finding": set(), "mistake": set(), "doubt": {"names", "numbers"}}


def calls() -> list[tuple[str, list[str], set[str | None], str]]:
    """Where findings are made: the place, their codes, the names of their values, the maker."""
    found = []
    for _, file in MODULES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            call = node.func if isinstance(node, ast.Call) else None
            name = getattr(call, "id", "") or getattr(call, "attr", "")  # a function, or a method
            if name in MAKERS and file.name != "automatic.py":
                parts = ast.walk(node.args[0])
                codes = [part.value for part in parts if isinstance(part, ast.Constant)]
                values = {keyword.arg for keyword in node.keywords}
                found.append((f"{file.name}:{node.lineno}", codes, values | MAKERS[name], name))
    return found


def test_every_finding_has_its_sentence_and_the_values_that_it_names() -> None:
    assert len(calls()) > 90
    for place, codes, values, _ in calls():
        for code in codes:
            if code == "-changes":  # of the aperture or the focal length
                continue
            assert re.fullmatch("[a-z]+(-[a-z]+)*", code), place
            named = {field for _, field, _, _ in Formatter().parse(table()[code].sentence) if field}
            assert None in values or named <= values, (place, named - values)


def test_every_error_has_a_code_and_a_message() -> None:
    """A message is the first argument; a code without one would print a poor sentence."""
    wordless = []
    for place, file in MODULES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "id", "") or getattr(node.func, "attr", "")
            keywords = {keyword.arg for keyword in node.keywords}
            if name.endswith("Error") and "code" in keywords and not node.args:
                wordless.append(f"{place}:{node.lineno}")
    assert wordless == []


def test_an_error_without_a_message_is_a_mistake_here_and_says_something_elsewhere() -> None:
    with pytest.raises(AssertionError):
        CaptureError(code="lens-cap-on", count=3)
    words = without_message("lens-cap-on", {"count": 3})
    assert words == "Lens cap on (count: 3)."


def test_an_error_keeps_its_facts_in_another_process() -> None:
    error = CaptureError("Two masks.", code="several-masks", file="cat", names="a, b")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.code, again.values) == ("Two masks.", "several-masks", error.values)


def test_library_messages_name_no_option_of_the_command_line() -> None:
    """Options belong to the command line, the app and the remedies, which have words for each shell."""
    option = re.compile(r"(?<![\w`-])--[a-z]{2,}")
    named = []
    for place, file in MODULES:
        if place.parts[0] in ("cli", "commands", "app") or place.name in (
            "remedies.py",
            "cuda_kernels.py",
        ):
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"))
        said = {
            id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)
        }  # docstrings
        for node in ast.walk(tree):
            text = node.value if isinstance(node, ast.Constant) and id(node) not in said else ""
            if isinstance(text, str) and option.search(text):
                named.append(f"{place}:{node.lineno} {text}")
    named += [entry.sentence for entry in table().values() if option.search(entry.sentence)]
    assert named == []


def test_a_finding_is_data_and_its_words_belong_to_shells() -> None:
    found = Finding(
        "light-axes", "problem", remedy="lights-axes", effect=30.0,
        kind="other axes", why="curl", agree="", axes="x,-y,z", instead="", note="",
    )  # fmt: skip
    assert (found.subject, found.kind) == (Subject.LIGHTS, Kind.MISTAKE)
    assert str(found) == found.rendered() != found.rendered("terminal")
    assert pickle.loads(pickle.dumps(found)) == found
    with pytest.raises(AttributeError):
        found.severity = "good"  # type: ignore[misc]
    other = found.changed(severity="notice", axes="-x,y,z")
    assert (other.values["axes"], other.severity, other.remedy, other.effect) == (
        "-x,y,z", "notice", "lights-axes", 30.0,
    )  # fmt: skip
    facts = json.loads(json.dumps(found.as_dict("terminal")))
    assert facts["text"] == found.rendered("terminal")
    assert (facts["code"], facts["kind"], facts["subject"]) == ("light-axes", "mistake", "lights")
    assert facts["values"]["axes"] == "x,-y,z"


def test_findings_that_say_the_same_are_reported_once() -> None:
    found = Finding("full-mask")
    stored = str(found)  # as in the description of a capture that photostereo wrote
    assert distinct([found, stored, Finding("no-lights"), Finding("full-mask")]) == (
        found,
        Finding("no-lights"),
    )


def test_a_finding_of_another_package_may_have_its_own_code() -> None:
    assert str(Finding("lens-hood", note="take the hood off")) == "take the hood off"
    assert str(Finding("lens-hood")) == "lens-hood" and not Finding("lens-hood").is_routine


def test_plain_words_of_other_packages_are_findings_too() -> None:
    mask = Finding("full-mask")
    assert as_finding(mask) is mask
    assert str(as_finding("plain words")) == "plain words"
    assert list(by_code([mask, "plain words"])) == ["full-mask", "note"]


def test_words_for_names_and_shares() -> None:
    low = Finding("low-noise", snr_db=40, degrees=1)
    assert list(by_code([low, "It is late."])) == ["low-noise", "note"]
    assert (listed("abcdef"), listed("ab")) == ("a, b, c, d and 2 more", "a, b")
    assert (percent(0.1234), percent(0.0123), percent(0.00004)) == ("12 %", "1.2 %", "under 0.1 %")
