"""Where a key of a TOML document stands, so that an error can name its line.

Python's TOML reader gives values without positions. This index is a plain scan of the text: headers, keys,
and the lines that a value spans. It never decides what a document means, only where to point.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

Path = tuple[str | int, ...]

_HEADER = re.compile(r"^\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"^\s*([A-Za-z0-9_\-\"'. ]+?)\s*=(?!=)")


@dataclass(frozen=True)
class _Entry:
    path: Path
    first: int
    last: int


class LineIndex:
    """Lines of the keys of a TOML text, counted from 1.

    Examples
    --------
    >>> text = 'seeds = 3\\n[[methods]]\\nname = "ls"\\n[[methods]]\\nname = "pls"\\ngrid.p = [2,\\n  99]'
    >>> index = LineIndex(text)
    >>> index.line(("methods", 1, "name")), index.line(("methods", 1, "grid", "p")), index.line(("seeds",))
    (5, 6, 1)
    >>> index.line(("methods", 1, "grid", "p"), item=99)
    7
    """

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        self._entries = self._scan()

    def _scan(self) -> list[_Entry]:
        starts: list[tuple[Path, int]] = []
        counts: dict[Path, int] = {}
        table: Path = ()
        depth = 0  # open brackets: a key inside a list or an inline table belongs to the value around it
        for number, raw in enumerate(self._lines, start=1):
            line = _without_strings(raw)
            header = _HEADER.match(raw) if depth == 0 else None
            if header:
                table = self._table(_split(header[2]), header[1] == "[[", counts)
                starts.append((table, number))
                continue
            key = _KEY.match(raw) if depth == 0 else None
            if key:
                starts.append((table + _split(key[1]), number))
            depth = max(0, depth + line.count("[") + line.count("{") - line.count("]") - line.count("}"))
        ends = [number - 1 for _, number in starts[1:]] + [len(self._lines)]
        return [_Entry(path, first, last) for (path, first), last in zip(starts, ends, strict=True)]

    @staticmethod
    def _table(names: Path, repeated: bool, counts: dict[Path, int]) -> Path:
        path: Path = ()
        for position, name in enumerate(names):
            path = (*path, name)
            if repeated and position == len(names) - 1:
                counts[path] = counts.get(path, -1) + 1
            if path in counts:
                path = (*path, counts[path])
        return path

    def line(self, path: Path, item: object | None = None) -> int:
        """The line of a key; of a value within it where ``item`` is given; 1 where nothing is found."""
        best: _Entry | None = None
        shared = 0
        for entry in self._entries:
            # A missing key is pointed at by its table; a key of an inline table by the key around it.
            common = _common(entry.path, path)
            if common == len(entry.path) and common > shared:
                best, shared = entry, common
        if best is None:
            return 1
        words = [str(part) for part in path[shared:] if isinstance(part, str)]
        if item is not None:
            words.append(str(item))
        line = best.first
        for word in words:
            line = self._find(word, line, best.last) or line
        return line

    def _find(self, word: str, first: int, last: int) -> int | None:
        pattern = re.compile(rf"(?<![\w.]){re.escape(word)}(?![\w.])")
        return next((n for n in range(first, last + 1) if pattern.search(self._lines[n - 1])), None)


def _split(dotted: str) -> Path:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def _without_strings(line: str) -> str:
    return re.sub(r"#.*", "", re.sub(r"\"[^\"]*\"|'[^']*'", "", line))


def _common(a: Path, b: Path) -> int:
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
