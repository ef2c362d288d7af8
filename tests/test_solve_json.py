"""``solve --json`` and what ``summary.json`` says: everything that is needed to repeat a result."""

from __future__ import annotations

import hashlib
import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import pytest

from photostereo.__main__ import main
from photostereo.capture import write_diligent
from photostereo.cli.shell import print_json
from photostereo_lab.scenes import dome_lights, render_scene


@pytest.fixture(scope="module")
def scene(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("scene") / "my sphere"
    return write_diligent(render_scene("sphere", size=32, lights=dome_lights(8)), place)


def run(*words: object) -> tuple[int, dict]:
    said, failed = io.StringIO(), io.StringIO()
    with (
        patch.object(sys, "argv", ["photostereo", *map(str, words)]),
        redirect_stdout(said),
        redirect_stderr(failed),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    assert failed.getvalue() == ""
    assert said.getvalue().count("\n") == 1
    return ended.value.code, json.loads(said.getvalue())


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
    assert (tmp_path / "o" / "normals.npy").read_bytes() == (
        tmp_path / "p" / "normals.npy"
    ).read_bytes()


def test_errors_are_objects_with_a_code_and_the_file(scene, tmp_path):
    code, facts = run("solve", tmp_path / "gone", "--json")
    assert code == 2
    assert set(facts["error"]) == {"kind", "code", "message", "file", "values"}
    assert (facts["error"]["kind"], facts["error"]["file"]) == ("capture", str(tmp_path / "gone"))
    code, facts = run("solve", scene, "--method", "lss", "--json")
    assert (code, facts["error"]["kind"], facts["error"]["file"]) == (2, "parameter", None)
    code, facts = run("solve", scene, "--nonsense", "--json")
    assert (code, facts["error"]["kind"], facts["error"]["code"]) == (2, "usage", "usage")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    code, facts = run("solve", scene, "-m", "ls", "--out", tmp_path / "full", "--json")
    assert (code, facts["error"]["kind"], facts["error"]["file"]) == (
        2,
        "output",
        str(tmp_path / "full"),
    )
    assert "--force" in facts["error"]["message"]
    code, facts = run("info", str(tmp_path / "nothing"), "--json")
    assert (code, facts["error"]["kind"], facts["error"]["file"]) == (
        2,
        "capture",
        str(tmp_path / "nothing"),
    )


def test_every_command_with_results_has_json(scene, tmp_path):
    """One object each; nothing else is printed."""
    out = tmp_path / "o"
    run("solve", scene, "-m", "ls", "--out", out, "--no-report", "--json")
    for words, key in (
        (("info", scene), "photographs"),
        (("methods",), "methods"),
        (("methods", "pls"), "parameters"),
        (("reproduce", "--list"), "runs"),
        (("mesh", out), "surface"),
        (("export", out, "--to", "tiff", "--out", tmp_path / "e"), "files"),
        (
            ("compare", scene, "--methods", "ls,pls", "--out", tmp_path / "c", "--no-report"),
            "methods",
        ),
    ):
        code, facts = run(*words, "--json")
        assert code == 0 and key in facts, words


def test_names_that_no_encoding_takes_are_printed_as_escapes(capsys):
    print_json({"file": "caf\udce9 ö 😀"})
    said = capsys.readouterr().out
    assert said.isascii() and json.loads(said) == {"file": "caf\udce9 ö 😀"}
