"""What nobody foresaw: one line, a file to report, exit code 1, and no traceback in the terminal."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from photostereo import cli
from photostereo.capture import write_diligent
from photostereo_lab.scenes import render_scene


@pytest.fixture
def crash(tmp_path, monkeypatch, capsys):
    """Run a solve that fails in the solver; return exit code, standard output, standard error and the crash files."""

    def fail(*values: object, **options: object) -> None:
        raise KeyError("nobody foresaw this")

    folder = write_diligent(render_scene("sphere", size=32), tmp_path / "spherePNG")
    monkeypatch.setattr("photostereo.pipeline.pipeline.solve_planned", fail)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PHOTOSTEREO_DEBUG", raising=False)

    def run(*words: str) -> tuple[int, str, str, list[Path]]:
        command = ["photostereo", "solve", str(folder), "--out", str(tmp_path / "out"), *words]
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as end:
            cli.main()
        captured = capsys.readouterr()
        assert not (tmp_path / "out").exists()
        files = list(tmp_path.glob("photostereo-crash-*.txt"))
        return int(end.value.code or 0), captured.out, captured.err, files

    return run


def test_one_line_and_a_file(crash) -> None:
    code, _, error, files = crash("--scale", "0.5", "-q")
    assert code == 1 and "Traceback" not in error and error.count("\n") == 1
    (file,) = files
    assert str(file) in error and "KeyError" in error
    text = file.read_text()
    assert "nobody foresaw this" in text and "Traceback" in text
    assert "option scale: 0.5" in text and "photographs: 20 of 16 × 16 pixels" in text
    assert f"command: photostereo solve {file.parent / 'spherePNG'}" in text


def test_as_json(crash) -> None:
    code, said, _, files = crash("--json")
    error = json.loads(said)["error"]
    assert code == 1 and error["kind"] == "internal"
    assert error["file"] == str(files[0])


def test_developers_see_the_traceback(crash, monkeypatch) -> None:
    monkeypatch.setenv("PHOTOSTEREO_DEBUG", "1")
    with pytest.raises(KeyError):
        crash()
