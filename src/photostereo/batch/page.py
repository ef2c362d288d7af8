"""The overview page of a batch: a row with a thumbnail for every capture, failures and outliers first."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from photostereo.batch.ledger import Ledger
from photostereo.core.errors import PhotostereoError
from photostereo.core.findings import outline
from photostereo.diagnosis.expected_error import ExpectedError
from photostereo.io.images import decode_image
from photostereo.report.document import templates, write_page
from photostereo.report.pictures import jpeg, small_map

#: Pixels along the longer side of a thumbnail, made from 16-bit normals.
THUMBNAIL = 128
#: A figure more than this number of robust standard deviations from the median of its batch is an outlier. In batches of
#: similar captures, three would mark one in a hundred by chance.
UNUSUAL = 4.0
#: Fewest captures among which an outlier can be told.
FEWEST = 4
#: The code of notes that are sentences of other packages, which have no outline.
PLAIN_NOTE = "note"
#: Headings and formats of the figures of :func:`.worker.figures_of`.
FIGURES = {
    "expected": ("expected error", "{:.1f}°"),
    "error": ("mean error", "{:.1f}°"),
    "residual": ("unexplained brightness", "{:.1%}"),
    "tilt": ("mean tilt", "{:.1f}°"),
    "away": ("facing away", "{:.1%}"),
    "dark": ("dark values", "{:.1%}"),
    "saturated": ("saturated values", "{:.1%}"),
    "mask_share": ("share of the frame", "{:.1%}"),
    "albedo": ("median albedo", "{:.3g}"),
}


def write_overview(ledger: Ledger, path: Path) -> Path:
    """Write the page from the ledger and the pictures in the folder."""
    folder = ledger.folder.absolute()
    rows = [row | _page_values(row, folder) for row in order_rows(ledger.rows())]
    names = set().union(*(row["figures"] for row in rows))
    template = templates().get_template("batch.html")
    text = template.render(
        title="Batch",
        figures={name: FIGURES[name] for name in FIGURES if name in names},
        rows=rows,
        common=take_common_notes(rows),
    )
    write_page(path, text)
    return path


def take_common_notes(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return the notes that all finished rows have, by their codes, and remove them there.

    A sentence is given once if it is the same everywhere, else with dots for what differs.
    """
    done = [row for row in rows if row["status"] == "done"]
    if len(done) < 2:
        return []
    if any(len(row["warning_codes"]) != len(row["notes"]) for row in done):
        return []  # of an earlier version, without codes
    notes = [dict(zip(row["warning_codes"], row["notes"], strict=True)) for row in done]
    shared = set.intersection(*(set(by_code) for by_code in notes))
    sentences: dict[str, str] = {}
    for code in notes[0]:
        variants = {by_code[code] for by_code in notes if code in shared}
        if len(variants) == 1:
            sentences[code] = variants.pop()
        elif variants and code != PLAIN_NOTE:
            sentences[code] = outline(code)
    for row in done:
        coded = zip(row["warning_codes"], row["notes"], strict=True)
        row["notes"] = [note for code, note in coded if code not in sentences]
    return list(sentences.values())


def order_rows(rows: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Sort rows: failed ones first, then by how far their figures lie from those of the others.

    Each row gets ``strangeness`` (the largest distance of a figure from the median, in robust standard deviations) and
    ``unusual`` (the figures further away than :data:`UNUSUAL`).

    >>> figures = [{"tilt": t} for t in (30, 31, 32, 33, 70)]
    >>> rows = {str(n): {"name": str(n), "status": "done", "figures": f} for n, f in enumerate(figures)}
    >>> order_rows(rows)[0]["name"], order_rows(rows)[0]["unusual"]
    ('4', ['tilt'])
    """
    done = [row for row in rows.values() if row["status"] == "done"]
    for row in rows.values():
        row["strangeness"] = float("inf")
        row["unusual"] = []
    for row, distances in zip(done, robust_distances([r["figures"] for r in done]), strict=True):
        row["strangeness"] = max(distances.values(), default=0.0)
        row["unusual"] = [name for name in distances if distances[name] > UNUSUAL]
    return sorted(rows.values(), key=lambda row: (-row["strangeness"], row["name"]))


def robust_distances(figures: Sequence[Mapping[str, float]]) -> list[dict[str, float]]:
    """Return how far each figure lies from the median, in robust standard deviations (1.4826 × the median distance)."""
    result: list[dict[str, float]] = [{} for _ in figures]
    for name in FIGURES:
        present = [number for number, entry in enumerate(figures) if name in entry]
        if len(present) < FEWEST:
            continue
        values = np.array([figures[number][name] for number in present])
        middle = float(np.median(values))
        deviation = 1.4826 * float(np.median(np.abs(values - middle)))
        # At least one percent of the median: batches of similar captures have no outliers.
        spread = max(deviation, 0.01 * abs(middle), 1e-3)
        for number in present:
            result[number][name] = abs(figures[number][name] - middle) / spread
    return result


def _page_values(row: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return what the template shows besides figures; without local paths, so that the folder can be moved."""
    name = row["name"]
    path = row["path"]
    result = folder / name
    verdict, grade = _verdict(row)
    notes = [row["error"]] if row["error"] else row["warnings"]
    has_report = (result / "report.html").is_file()
    return {
        "path": os.path.relpath(path, folder),
        "verdict": verdict,
        "grade": grade,
        "notes": [note.replace(f"{path}{os.sep}", "").replace(path, name) for note in notes],
        "report": f"{quote(name)}/report.html" if has_report else "",
        "picture": thumbnail(result / "normals.png") if row["status"] == "done" else None,
    }


def _verdict(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return a word about a row, and the grade that gives it its color."""
    if row["status"] != "done":
        return "failed", "do not trust"
    if row["unusual"]:
        return "unusual", "fair"
    expected = row["figures"].get("expected")
    if expected is None:
        return "done", ""
    is_flawed = bool(row["figures"].get("flawed"))
    grade = ExpectedError(expected, is_flawed=is_flawed).grade
    return grade or "done", grade


def thumbnail(path: Path) -> str | None:
    """Return a small copy of a picture as a data URL; None if there is no picture."""
    try:
        small = small_map(decode_image(path), THUMBNAIL)
    except PhotostereoError:
        return None
    return jpeg(np.rint(small / 257).astype(np.uint8), quality=80)
