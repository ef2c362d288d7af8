"""One self-contained page: templates, style, script and data in a single file that loads nothing else.

Three defenses keep hostile names harmless: templates escape by default, data is JSON without ``<``, and the
Content-Security-Policy of the page allows no connections and only the script with the given hash.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from photostereo._version import __version__
from photostereo.core.errors import ParameterError
from photostereo.io.atomic import write_bytes
from photostereo.io.json_text import json_text
from photostereo.io.schema import check_facts
from photostereo.report import wording

#: Filters that format numbers in templates.
WORDS = (wording.decibels, wording.duration, wording.plain, wording.sentence, wording.thousands)

#: Start of the page's data. No name from outside can forge it: templates escape "<".
DATA_ELEMENT = '<script type="application/json" id="data">'
#: Schema of the data that is read back from a page.
PAGE_DATA = {"relight?": {"sets": {str: {"channels": dict, "folder?": str}}, "held": int}}


@dataclass(frozen=True)
class Page:
    """A page before and after the data of its viewers, and that data."""

    before: str
    after: str
    data: dict[str, Any]

    @property
    def text(self) -> str:
        """The whole page. Lone surrogates (undecodable file names), which have no UTF-8 encoding, are question marks."""
        whole = f"{self.before}{json_for_script(self.data)}{self.after}"
        return whole.encode("utf-8", "replace").decode()

    def room(self, limit: int) -> int:
        """Characters left for more data in a page of at most ``limit`` characters."""
        return limit - len(self.before) - len(self.after) - len(json_for_script(self.data))

    def with_parts(self, parts: Mapping[str, Markup]) -> Page | None:
        """Replace parts of the page by name; None if the page does not have each of them once."""
        before = self.before
        for name, part in parts.items():
            marks = re.compile(rf"<!-- {name} -->.*?<!-- end of {name} -->", re.DOTALL)
            before, count = marks.subn(lambda _, part=part: str(part), before)  # type: ignore[misc]
            if count != 1:
                return None
        return replace(self, before=before)

    def write(
        self,
        path: str | Path,
        files: Mapping[str, str] | None = None,
        meanings: Mapping[str, str] | None = None,
        seconds: Mapping[str, float] | None = None,
    ) -> None:
        """Write the page; a report may still be given the files that it offers, and what took how long."""
        parts = {} if files is None else files_part(files, meanings)
        parts |= {} if seconds is None else time_parts(seconds)
        page = self.with_parts(parts)
        assert page is not None
        write_page(path, page.text)


def parse_page(text: str) -> Page:
    """Split a page into its parts; the data is empty if photostereo did not write the page."""
    before, element, rest = text.partition(DATA_ELEMENT)
    written, end, after = rest.partition("</script>")
    try:
        data = json.loads(written) if end else {}
        check_facts(data, PAGE_DATA, ValueError)
    except (ValueError, RecursionError):
        data = {}
    return Page(before + element, end + after, data)


def render_page(template: str, data: dict[str, Any], **context: Any) -> Page:
    """Render a page; ``data`` is not yet part of the text, so that it can grow."""
    return replace(parse_page(templates().get_template(template).render(context)), data=data)


def render_part(name: str, **facts: Any) -> Markup:
    """Render a part of a page, between marks by which another one can replace it."""
    # No name from outside can forge a mark: templates escape "<".
    text = templates().get_template("surface.html").render(part=name, **facts)
    return Markup(f"<!-- {name} -->\n{text}<!-- end of {name} -->")


def files_part(
    files: Mapping[str, str] | None = None, meanings: Mapping[str, str] | None = None
) -> dict[str, Markup]:
    """Return the part of the page that offers files."""
    return {"files": render_part("files", links=safe_links(files or {}, meanings))}


def time_parts(seconds: Mapping[str, float]) -> dict[str, Markup]:
    """Return the parts of the page that say what took how long."""
    return {name: render_part(name, seconds=seconds) for name in ("time", "stages")}


@cache
def templates() -> Environment:
    """Return the Jinja environment of the templates."""
    made = Environment(
        loader=PackageLoader("photostereo.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"one": "{:.1f}".format, "two": "{:.2f}".format, "status": wording.status_words}
    made.filters |= {filter.__name__: filter for filter in (*WORDS, source_hash)}
    made.globals |= {"bundle": bundle, "version": __version__}
    return made


@cache
def bundle(folder: str, *names: str) -> Markup:
    """Concatenate source files."""
    root = files("photostereo.report") / folder
    text = "\n".join((root / name).read_text(encoding="utf-8") for name in names)
    # These would close the enclosing element.
    assert "</script" not in text.lower() and "</style" not in text.lower()
    return Markup(text)


def source_hash(text: str) -> str:
    """Return the hash by which a policy allows an inline script or style sheet."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode(
        "ascii"
    )


def json_for_script(data: Mapping[str, Any]) -> Markup:
    """JSON that is safe inside a script element: no ``<``, ``>``, ``&`` and no JavaScript line separators."""
    text = json_text(data, indent=None)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def safe_links(
    links: Mapping[str, str], meanings: Mapping[str, str] | None = None
) -> list[dict[str, str]]:
    """Labels, percent-encoded relative URLs and meanings; raise an error for a URL outside the page's folder."""
    result = []
    for label, target in links.items():
        parts = urlsplit(target)
        # A colon in the first segment could be parsed as a scheme ("javascript:").
        if (
            parts.scheme
            or parts.netloc
            or target.startswith(("/", "\\"))
            or ":" in target.split("/")[0]
        ):
            raise ParameterError(
                f'The report links files beside it, but "{label}" points to "{target}". Give a '
                "path relative to the report's folder.",
                code="link-leaves-folder",
                label=str(label),
                target=target,
            )
        note = (meanings or {}).get(target, "")
        result.append({"label": str(label), "href": quote(target), "note": note})
    return result


def write_page(path: str | Path, text: str) -> None:
    """Write the page atomically."""
    # Lone surrogates (undecodable file names) have no UTF-8 encoding; they become question marks.
    write_bytes(path, text.encode("utf-8", errors="replace"))
