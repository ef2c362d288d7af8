"""``solve --json`` and what ``summary.json`` says: everything that is needed to repeat a result."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from photostereo.commands.as_json import file_in, print_json


@pytest.fixture(scope="module")
def scene(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("scene") / "my sphere"
    words = ["scene", "sphere", "--out", str(place), "--size", "32", "--lights", "8", "-q"]
    subprocess.run([sys.executable, "-m", "photostereo", *words], check=True)
    return place


def run(*words: object) -> tuple[int, dict]:
    command = [sys.executable, "-m", "photostereo", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1
    return done.returncode, json.loads(done.stdout)


def test_one_object_that_says_how_to_repeat_it(scene, tmp_path):
    code, facts = run(
        "solve", scene, "-m", "ls", "--out", tmp_path / "o", "--images", 5, "--seed", 3, "--no-surface",
        "--no-report", "--json",
    )  # fmt: skip
    assert code == 0
    assert facts["out"] == str(tmp_path / "o")
    written = json.loads((tmp_path / "o" / "summary.json").read_text(encoding="utf-8"))
    assert {**written, "out": facts["out"], "warnings": []} == facts
    made = facts["provenance"]
    assert "solve" in made["command"] and "--seed 3" in made["command"]
    assert (made["images"], made["seed"], made["path"]) == (5, 3, str(scene))
    assert made["reading"]["srgb"] is None and made["reading"]["mask"] is None
    assert len(made["photographs"]) == 5
    for photograph in made["photographs"]:
        data = (scene / photograph["file"]).read_bytes()
        assert photograph["sha256"] == hashlib.sha256(data).hexdigest()
    assert facts["versions"]["photostereo"]
    # Asked for again, it draws the same photographs and finds the same.
    _, again = run(
        "solve", scene, "-m", "ls", "--out", tmp_path / "p", "--images", 5, "--seed", 3, "--no-surface",
        "--no-report", "--json",
    )  # fmt: skip
    assert {**again["provenance"], "command": ""} == {**made, "command": ""}
    assert (tmp_path / "o" / "normals.npy").read_bytes() == (tmp_path / "p" / "normals.npy").read_bytes()


def test_errors_are_objects_with_a_code_and_the_file(scene, tmp_path):
    code, facts = run("solve", tmp_path / "gone", "--json")
    assert code == 2
    assert (facts["error"]["code"], facts["error"]["file"]) == ("capture", str(tmp_path / "gone"))
    code, facts = run("solve", scene, "--method", "lss", "--json")
    assert (code, facts["error"]["code"], facts["error"]["file"]) == (2, "parameter", None)
    code, facts = run("solve", scene, "--nonsense", "--json")
    assert (code, facts["error"]["code"]) == (2, "usage")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    code, facts = run("solve", scene, "-m", "ls", "--out", tmp_path / "full", "--json")
    assert (code, facts["error"]["code"], facts["error"]["file"]) == (
        2,
        "output-exists",
        str(tmp_path / "full"),
    )


def test_the_file_of_a_message_may_have_blanks_and_lie_deeper(tmp_path):
    place = tmp_path / "my coins"
    place.mkdir()
    (place / "lights.csv").touch()
    message = f"{place}/lights.csv, line 3: that is no number. Correct it."
    assert file_in(message, ["solve", str(place)]) == f"{place}/lights.csv"
    assert file_in(f"{place} has no lights.", ["solve", f"{place}/"]) == str(place)


def test_the_file_of_a_message_longer_than_any_name(tmp_path):
    """Found by the fuzzer: the rest of a long message was asked for as a file."""
    message = f"{tmp_path / 'photos'} has no photographs. " + 100 * "What is understood: "
    assert file_in(message, ["solve", str(tmp_path / "photos")]) == str(tmp_path / "photos")


def test_names_that_no_encoding_takes_are_printed_as_escapes(capsys):
    print_json({"file": "caf\udce9 ö 😀"})
    said = capsys.readouterr().out
    assert said.isascii() and json.loads(said) == {"file": "caf\udce9 ö 😀"}


def test_info_tells_its_errors_as_json_too(tmp_path):
    code, facts = run("info", str(tmp_path / "nothing"), "--json")
    assert (code, facts["error"]["code"], facts["error"]["file"]) == (2, "capture", str(tmp_path / "nothing"))
