"""The documentation stays readable: its length, its lines, and links that lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
#: Written by `make docs`.
GENERATED = {"_build", "gallery"}
GUIDES = [
    path for path in sorted((ROOT / "docs").rglob("*.md")) if not GENERATED & {*path.relative_to(ROOT).parts}
]
PAGES = [*GUIDES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
MOST_WORDS, LONGEST_LINE = 18_000, 120


def test_the_guides_are_short() -> None:
    assert sum(len(path.read_text(encoding="utf-8").split()) for path in GUIDES) <= MOST_WORDS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_and_links(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    long = [number for number, line in enumerate(text.splitlines(), 1) if len(line) > LONGEST_LINE]
    assert not long, f"longer than {LONGEST_LINE} characters: lines {long}"
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        if not target.startswith(("http:", "https:", "gallery/")):
            assert (page.parent / target).exists(), target
