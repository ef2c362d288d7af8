"""The page of a batch: a thumbnail of every capture, failures and outliers first."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from photostereo._version import __version__
from photostereo.batch.ledger import Ledger

#: Pixels along the longer side of a thumbnail.
THUMBNAIL = 128
#: A figure this number of robust standard deviations from the median of its batch is an outlier.
UNUSUAL = 4.0
#: The words for the figures of :func:`.worker.figures_of`.
WORDS = {
    "residual": "unexplained brightness",
    "dark": "dark values",
    "saturated": "saturated values",
    "mask_share": "share of the frame",
    "albedo": "albedo",
    "tilt": "mean tilt",
    "away": "facing away",
    "error": "mean error",
}
_PERCENT = {"dark", "saturated", "mask_share", "away", "residual"}
_DEGREES = {"tilt", "error"}


def write_overview(ledger: Ledger, path: Path) -> Path:
    """Write the page from the ledger and the pictures beside it."""
    from photostereo.report.document import source_hash, templates, write_page

    rows = order_rows(ledger.rows())
    failed = sum(row["status"] != "done" for row in rows)
    style = (templates().loader.get_source(templates(), "batch.css"))[0]  # type: ignore[union-attr]
    from markupsafe import Markup

    text = (
        templates()
        .get_template("batch.html")
        .render(
            title="Batch",
            style=Markup(style),
            policy=f"default-src 'none'; style-src '{source_hash(style)}'; img-src data:; base-uri 'none'",
            version=__version__,
            rows=[_entry(row, ledger.folder) for row in rows],
            done=len(rows) - failed,
            failed=failed,
            unusual=sum(bool(row["unusual"]) for row in rows if row["status"] == "done"),
        )
    )
    write_page(path, text)
    return path


def order_rows(rows: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Failed ones first, then by how far their figures lie from those of the others.

    Each row gets ``strangeness`` (the largest distance of a figure from the median, in robust standard deviations) and
    ``unusual`` (the figures that lie further than :data:`UNUSUAL`, furthest first).

    >>> figures = [{"tilt": t} for t in (30, 31, 32, 33, 70)]
    >>> rows = {str(n): {"name": str(n), "status": "done", "figures": f} for n, f in enumerate(figures)}
    >>> order_rows(rows)[0]["name"], order_rows(rows)[0]["unusual"]
    ('4', ['tilt'])
    """
    done = [row for row in rows.values() if row["status"] == "done"]
    distances = robust_distances([row["figures"] for row in done])
    for row in rows.values():
        row["strangeness"], row["unusual"] = float("inf"), []
    for row, far in zip(done, distances, strict=True):
        row["strangeness"] = max(far.values(), default=0.0)
        row["unusual"] = sorted((name for name in far if far[name] > UNUSUAL), key=lambda name: -far[name])
    return sorted(rows.values(), key=lambda row: (-row["strangeness"], row["name"]))


def robust_distances(figures: Sequence[Mapping[str, float]]) -> list[dict[str, float]]:
    """How far each figure lies from the median, in robust standard deviations (1.4826 × the median distance).

    A spread below one per cent of the median counts as that: batches of equal captures have no outliers.
    """
    result: list[dict[str, float]] = [{} for _ in figures]
    for name in WORDS:
        have = [(entry, facts[name]) for entry, facts in zip(result, figures, strict=True) if name in facts]
        if len(have) < 4:
            continue
        values = np.array([value for _, value in have])
        middle = float(np.median(values))
        spread = 1.4826 * float(np.median(np.abs(values - middle)))
        spread = max(spread, 0.01 * abs(middle), 1e-3)
        for entry, value in have:
            entry[name] = abs(value - middle) / spread
    return result


def _entry(row: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """What the template shows of a row."""
    done = row["status"] == "done"
    place = quote(row["name"])
    links = {
        label: f"{place}/{file}" for label, file in (("report", "report.html"), ("summary", "summary.json"))
    }
    return {
        "name": row["name"],
        "path": row["path"],
        "done": done,
        "error": row["error"],
        "warnings": row["warnings"],
        "seconds": None if row["seconds"] is None else f"{row['seconds']:.1f} s",
        "links": {
            k: v for k, v in links.items() if done and (folder / row["name"] / v.split("/")[-1]).is_file()
        },
        "picture": thumbnail(folder / row["name"] / "normals.png") if done else None,
        "figures": [
            {"label": WORDS[name], "value": _number(name, value), "unusual": name in row["unusual"]}
            for name, value in row["figures"].items()
            if name in WORDS
        ],
    }


def _number(name: str, value: float) -> str:
    if name in _PERCENT:
        return f"{100 * value:.1f} %"
    return f"{value:.1f}°" if name in _DEGREES else f"{value:.3g}"


def thumbnail(path: Path) -> str | None:
    """A small copy of a picture as a data URL; None where there is none."""
    import cv2

    try:
        picture = cv2.imdecode(np.frombuffer(path.read_bytes(), np.uint8), cv2.IMREAD_COLOR)
    except (OSError, cv2.error):
        return None
    if picture is None:
        return None
    scale = min(1.0, THUMBNAIL / max(picture.shape[:2]))
    size = (max(1, round(picture.shape[1] * scale)), max(1, round(picture.shape[0] * scale)))
    small = cv2.resize(picture, size, interpolation=cv2.INTER_AREA)
    data = cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, 80])[1]
    return "data:image/jpeg;base64," + base64.b64encode(data.tobytes()).decode("ascii")
