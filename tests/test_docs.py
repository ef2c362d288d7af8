"""The documentation stays true: links, imports, command-line options, methods."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import typer.main

import photostereo as ps
from photostereo.cli.root import app

ROOT = Path(__file__).resolve().parents[1]
#: Written by `make docs`.
GENERATED = {"_build", "gallery"}
GUIDES = [
    path
    for path in sorted((ROOT / "docs").rglob("*.md"))
    if not GENERATED & {*path.relative_to(ROOT).parts}
]
PAGES = [*GUIDES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
LONGEST_LINE = 120
#: Options of other programs.
FOREIGN = {"--tls", "--rm", "--network"}

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def options() -> set[str]:
    """Every option of every command."""
    root = typer.main.get_command(app)
    commands = [root, *root.commands.values()]  # type: ignore[attr-defined]
    found = {
        option
        for c in commands
        for p in c.params
        for option in (*p.opts, *p.secondary_opts)
        if option[:2] == "--"
    }
    return found | {"--help"}


@pages
def test_lines_and_links(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    long = [number for number, line in enumerate(text.splitlines(), 1) if len(line) > LONGEST_LINE]
    assert not long, f"longer than {LONGEST_LINE} characters: lines {long}"
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        if not target.startswith(("http:", "https:", "gallery/", "notebook.ipynb")):
            assert (page.parent / target).exists(), target


@pages
def test_options_exist(page: Path) -> None:
    named = {*re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", page.read_text(encoding="utf-8"))}
    assert named - options() - FOREIGN == set()


@pages
def test_python_examples_import_what_exists(page: Path) -> None:
    for code in re.findall(
        r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL
    ):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("photostereo"):
                for alias in node.names:
                    exec(f"from {node.module} import {alias.name}")
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "ps"
            ):
                assert hasattr(ps, node.attr), node.attr


def test_every_method_is_in_the_table() -> None:
    text = (ROOT / "docs" / "methods" / "index.md").read_text(encoding="utf-8")
    assert [name for name in ps.method_names() if f"| [`{name}`](" not in text] == []
