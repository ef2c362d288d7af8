"""What is published: metadata, workflows, the recipe."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_extras_have_no_duplicates_and_all_is_all() -> None:
    extras = PROJECT["optional-dependencies"]
    contents = [tuple(sorted(packages)) for packages in extras.values()]
    assert len(set(contents)) == len(contents)
    for_users = set(extras) - {"all", "dev", "docs"}
    named = set(re.findall(r"[a-z]+", extras["all"][0].partition("[")[2]))
    reached = named | {
        part for name in named for part in re.findall(r"[a-z]+", extras[name][0].partition("[")[2])
    }
    assert for_users <= reached


def test_the_recipe_needs_what_the_package_needs() -> None:
    recipe = (ROOT / "packaging" / "conda" / "meta.yaml").read_text(encoding="utf-8")
    for requirement in PROJECT["dependencies"]:
        name, version = requirement.replace("opencv-python-headless", "py-opencv").split(">=")
        assert f"- {name} >={version}\n" in recipe
    version = (ROOT / "src" / "photostereo" / "_version.py").read_text(encoding="utf-8").split('"')[-2]
    assert f'version = "{version}"' in recipe


def test_links_are_complete() -> None:
    assert {"Homepage", "Documentation", "Issues", "Changelog"} <= set(PROJECT["urls"])
    assert "py.typed" in {path.name for path in (ROOT / "src" / "photostereo").iterdir()}
