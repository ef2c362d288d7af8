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
    rows = [row | _shown(row, ledger.folder.absolute()) for row in order_rows(ledger.rows())]
    known = {name: FIGURES[name] for name in FIGURES if any(name in row["figures"] for row in rows)}
    facts = {"known": known, "rows": rows, "common": take_common_notes(rows)}
    write_page(path, templates().get_template("batch.html").render(title="Batch", **facts))
    return path


def take_common_notes(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return the notes that all finished rows have, by their codes, and remove them there.

    A sentence is given once if it is the same everywhere, else with dots for what differs.
    """
    done = [row for row in rows if row["status"] == "done" and row["warning_codes"]]
    if len(done) < 2 or len(done) < sum(row["status"] == "done" for row in rows):
        return []
    notes = [dict(zip(row["warning_codes"], row["notes"], strict=True)) for row in done]
    common = [code for code in notes[0] if all(code in other for other in notes)]
    common = [code for code in common if code != "note" or len({n[code] for n in notes}) == 1]
    for row in done:
        coded = zip(row["warning_codes"], row["notes"], strict=True)
        row["notes"] = [note for code, note in coded if code not in common]
    first = notes[0]
    return [
        first[code] if len({other[code] for other in notes}) == 1 else outline(code)
        for code in common
    ]


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
        row["strangeness"], row["unusual"] = float("inf"), []
    for row, far in zip(done, robust_distances([row["figures"] for row in done]), strict=True):
        row["strangeness"] = max(far.values(), default=0.0)
        row["unusual"] = [name for name in far if far[name] > UNUSUAL]
    return sorted(rows.values(), key=lambda row: (-row["strangeness"], row["name"]))


def robust_distances(figures: Sequence[Mapping[str, float]]) -> list[dict[str, float]]:
    """Return how far each figure lies from the median, in robust standard deviations (1.4826 × the median distance)."""
    result: list[dict[str, float]] = [{} for _ in figures]
    for name in FIGURES:
        have = [
            (entry, facts[name])
            for entry, facts in zip(result, figures, strict=True)
            if name in facts
        ]
        if len(have) < 4:
            continue
        values = np.array([value for _, value in have])
        middle = float(np.median(values))
        # At least one percent of the median: batches of similar captures have no outliers.
        spread = max(1.4826 * float(np.median(np.abs(values - middle))), 0.01 * abs(middle), 1e-3)
        for entry, value in have:
            entry[name] = abs(value - middle) / spread
    return result


def _shown(row: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return what the template shows besides figures; without local paths, so that the folder can be moved."""
    done, place = row["status"] == "done", folder / row["name"]
    expected, flawed = (row["figures"].get(name) for name in ("expected", "flawed"))
    grade = "" if expected is None else ExpectedError(expected, is_flawed=bool(flawed)).grade
    notes, path = [row["error"]] if row["error"] else row["warnings"], row["path"]
    return {
        "path": os.path.relpath(path, folder),
        "verdict": "failed" if not done else "unusual" if row["unusual"] else grade or "done",
        "grade": "do not trust" if not done else "fair" if row["unusual"] else grade,
        "notes": [note.replace(f"{path}{os.sep}", "").replace(path, row["name"]) for note in notes],
        "report": f"{quote(row['name'])}/report.html" if (place / "report.html").is_file() else "",
        "picture": thumbnail(place / "normals.png") if done else None,
    }


def thumbnail(path: Path) -> str | None:
    """Return a small copy of a picture as a data URL; None if there is no picture."""
    try:
        small = small_map(decode_image(path), THUMBNAIL)
    except PhotostereoError:
        return None
    return jpeg(np.rint(small / 257).astype(np.uint8), quality=80)
