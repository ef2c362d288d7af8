"""What is published: metadata, workflows, the recipe."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

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


#: Libraries by the name under which they are imported, if it is not the name of the package.
PACKAGES = {
    "cv2": "opencv-python-headless",
    "PIL": "pillow",
    "fast_simplification": "fast-simplification",
    "lazy_loader": "lazy-loader",
}


def imported_at_once(file: Path) -> set[str]:
    """Libraries that a module imports when it is imported itself, not later in a function."""
    names: set[str] = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(str(node.module).partition(".")[0])
    return names - sys.stdlib_module_names


def test_a_plain_installation_can_import_every_module_except_those_for_torch() -> None:
    declared = {requirement.split(">=")[0] for requirement in PROJECT["dependencies"]}
    files = list((ROOT / "src" / "photostereo").rglob("*.py"))
    for file in files:
        if "torch" in file.name:
            continue
        needed = {PACKAGES.get(name, name) for name in imported_at_once(file)}
        assert needed <= declared | {"photostereo"}, file


def test_the_recipe_needs_what_the_package_needs() -> None:
    recipe = (ROOT / "packaging" / "conda" / "meta.yaml").read_text(encoding="utf-8")
    for requirement in PROJECT["dependencies"]:
        name, version = requirement.replace("opencv-python-headless", "py-opencv").split(">=")
        assert f"- {name} >={version}\n" in recipe
    version = (
        (ROOT / "src" / "photostereo" / "_version.py").read_text(encoding="utf-8").split('"')[-2]
    )
    assert f'version = "{version}"' in recipe


def test_the_lab_has_the_version_of_the_package_that_it_needs() -> None:
    """It uses more than the public interface."""
    lab = tomllib.loads((ROOT / "lab" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for place in (ROOT / "src" / "photostereo", ROOT / "lab" / "src" / "photostereo_lab"):
        version = (place / "_version.py").read_text(encoding="utf-8").split('"')[-2]
        assert lab["dependencies"] == [f"photostereo[batch,figures]=={version}"]
        assert (place / "py.typed").is_file()
    assert (ROOT / "lab" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert (
        lab["requires-python"] == PROJECT["requires-python"]
        and lab["license"] == PROJECT["license"]
    )


def test_the_hook_and_the_tests_use_the_same_ruff() -> None:
    hook = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    (least,) = (
        p.partition(">=")[2]
        for p in PROJECT["optional-dependencies"]["dev"]
        if p.startswith("ruff")
    )
    assert f"ruff-pre-commit\n    rev: v{least}." in hook


def test_no_address_is_invented() -> None:
    """The project has no public home yet; one that is nobody's, or somebody else's, must not be published."""
    assert set(PROJECT["urls"]) == {"Paper"}
    texts = (
        "pyproject.toml",
        "packaging/conda/meta.yaml",
        "README.md",
        "SECURITY.md",
        "CONTRIBUTING.md",
    )
    for name in texts:
        text = (ROOT / name).read_text(encoding="utf-8")
        assert "github.com/photostereo" not in text and "readthedocs.io" not in text
    assert "py.typed" in {path.name for path in (ROOT / "src" / "photostereo").iterdir()}


def test_continuous_integration_is_defined_once() -> None:
    """In the Makefile; GitHub runs the same targets, and nothing is published before all of them have passed."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"^ci:\n((?:\t.*\n)+)", makefile, flags=re.MULTILINE)
    targets = set(re.findall(r"\b(?:lint|test[a-z-]*)\b", recipe))
    assert {"lint", "test", "test-torch", "test-slow"} == targets
    run = (ROOT / ".ci" / "run").read_text(encoding="utf-8").split("\n")
    assert [line for line in run if line.startswith("make")] == ["make ci"]
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    (matrix,) = re.findall(r"target: \[(.*)\]", workflow)
    assert targets <= set(matrix.split(", ")) and "workflow_call:" in workflow
    release = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    jobs = release.partition("jobs:\n")[2]
    assert re.search(r"  ci:\n(    .*\n)*    uses: ./.github/workflows/ci.yml\n", jobs)
    assert re.search(r"  publish:\n    needs: ci\b", jobs)


def test_workflows_and_recipe_are_yaml() -> None:
    """Every job has steps or uses a workflow; every action has a version; scripts that are run exist."""
    yaml = pytest.importorskip("yaml")
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml")):
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert found[True]  # "on", which YAML 1.1 takes for a truth value
        for job in found["jobs"].values():
            for step in [] if "uses" in job else job["steps"]:
                assert "@" in step.get("uses", "@") and ("uses" in step) != ("run" in step)
                for script in re.findall(r"python (tools/\S+)", step.get("run", "")):
                    assert (ROOT / script).is_file()
    templates = (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")
    files = (
        ".pre-commit-config.yaml",
        ".readthedocs.yaml",
        "CITATION.cff",
        ".github/dependabot.yml",
    )
    for file in (*templates, *(ROOT / name for name in files)):
        assert yaml.safe_load(file.read_text(encoding="utf-8"))
    recipe = (ROOT / "packaging" / "conda" / "meta.yaml").read_text(encoding="utf-8")
    rendered = (
        re.sub(r"{%.*?%}", "", recipe)
        .replace("{{ version }}", "0")
        .replace("{{ PYTHON }}", "python")
    )
    assert {"package", "source", "build", "requirements", "test", "about"} <= set(
        yaml.safe_load(rendered)
    )
