"""Small captures and plans for the experiments' tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from photostereo.batch.options import RunOptions
from photostereo.capture import write_archive
from photostereo_lab.scenes import render_scene
from photostereo_lab.sweeps.plan import CaptureSpec


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    """Two synthetic captures, 40 × 40 pixels, as .npz files."""
    place = tmp_path_factory.mktemp("captures")
    for name in ("sphere", "vase"):
        write_archive(render_scene(name, size=40), place / f"{name}.npz")
    return place


@pytest.fixture(scope="session")
def captures(folder) -> tuple[CaptureSpec, ...]:
    return tuple(CaptureSpec.at(folder / f"{name}.npz") for name in ("sphere", "vase"))


@pytest.fixture(scope="session")
def executor():
    """Two worker processes."""
    with RunOptions(workers=2).connect() as pool:
        yield pool


@pytest.fixture
def write_plan(tmp_path, folder):
    """Writes a plan of fast trials, 28 per seed."""
    return lambda seeds: _write_plan(tmp_path / "plan.toml", folder, seeds)


def _write_plan(path: Path, folder: Path, seeds: int) -> Path:
    path.write_text(
        f"""
data = "{folder}"
captures = ["sphere.npz", "vase.npz"]
images = [8]
corruptions = [{{ poisson = [5, 20] }}]
seeds = {seeds}

[[methods]]
name = "ls"

[[methods]]
name = "pls"
grid = {{ p = [2, 3] }}

[[methods]]
name = "dlnv"
fixed = {{ patch = [4, 4, 3], stride = 2, atoms = 24, max_iter = 3, lam = 1 }}
grid = {{ mu = [0.1, 0.2, 0.4] }}
defaults = false
""",
        encoding="utf-8",
    )
    return path
