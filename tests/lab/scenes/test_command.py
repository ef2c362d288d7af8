"""``photostereo scene`` of the lab."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import typer
from typer.testing import CliRunner

from photostereo import load
from photostereo.cli.command import command
from photostereo_lab.commands.scene import scene

PROJECT = Path(__file__).resolve().parents[3] / "lab" / "pyproject.toml"


def call(*words: object):
    app = typer.Typer()
    app.command()(command(scene))
    return CliRunner().invoke(app, [str(word) for word in words])


def test_it_is_a_command_of_photostereo():
    points = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["entry-points"]
    assert points["photostereo.commands"]["scene"] == f"{scene.__module__}:{scene.__name__}"


def test_it_writes_a_capture_and_says_so_in_json(tmp_path):
    done = call("sphere", "--size", 32, "--lights", 6, "--out", tmp_path / "s", "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["photographs"] == 6
    capture = load(tmp_path / "s")
    assert len(capture) == 6 and capture.frame == (32, 32) and capture.truth is not None


def test_seeds_are_not_negative(tmp_path):
    assert call("sphere", "--seed", -1, "--out", tmp_path / "out").exit_code == 2
    assert not (tmp_path / "out").exists()
