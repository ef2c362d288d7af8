"""``photostereo info``: what was found in a capture, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

from photostereo.capture import Capture
from photostereo.capture.loading import read_lazily
from photostereo.capture.options import ReadOptions
from photostereo.commands.state import glance
from photostereo.commands.terminal import Terminal
from photostereo.diagnosis.diagnose import Diagnosis, diagnose
from photostereo.io.json_text import json_text
from photostereo.io.memory import available_memory
from photostereo.io.names import printable


def run(path: Path, *, reading: ReadOptions, as_json: bool) -> None:
    """Describe the capture as a table and advice, or as JSON."""
    terminal = Terminal()
    capture = read_lazily(path, reading)
    small = capture.stack_bytes <= available_memory() // 4
    capture = capture.loaded() if small else capture
    # A capture that does not fit is judged, as before a solve, by a part of its pixels.
    diagnosis = diagnose(capture if capture.in_memory else glance(capture))
    facts = describe(capture)
    if as_json:
        terminal.out.print_json(json_text({**facts, "advice": list(diagnosis.advice)}), ensure_ascii=True)
        return
    table = Table(show_header=False)
    table.add_column(style="bold")
    table.add_column()
    for name, value in facts.items():
        table.add_row(name.replace("_", " "), Text(printable(_words(value))))
    terminal.say(table)
    _tell_advice(terminal, diagnosis)


def describe(capture: Capture) -> dict[str, Any]:
    """The plain facts of a capture."""
    origin = capture.origin
    height, width = capture.frame
    values = np.linalg.svd(capture.lights.directions, compute_uv=False)
    tilt = np.degrees(np.arccos(np.clip(capture.lights.directions[:, 2], -1, 1)))
    unknown = 0 if capture.truth is None else int((~capture.truth[capture.mask].any(axis=1)).sum())
    return {
        "name": capture.name,
        "layout": origin.layout if origin else "in memory",
        "photographs": len(capture),
        "size": f"{width} × {height} pixels (width × height)",
        "channels": "RGB" if capture.is_color else "gray",
        "bit_depth": origin.bit_depth if origin else 0,
        "mask_pixels": capture.pixel_count,
        "mask_share": round(capture.pixel_count / capture.mask.size, 4),
        "lights_condition": round(float(values[0] / values[-1]), 3),
        "lights_tilt_degrees": [round(float(tilt.min()), 1), round(float(tilt.max()), 1)],
        "brightness_99": round(capture.intensity_scale(), 5),
        "truth": "none" if capture.truth is None else "normals",
        "truth_unknown_pixels": unknown,
        "truth_depth": capture.truth_depth is not None,
        "digest": capture.digest,
        "notes": list(origin.notes) if origin else [],
    }


def _words(value: Any) -> str:
    if isinstance(value, list):
        return "; ".join(str(part) for part in value) or "-"
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def _tell_advice(terminal: Terminal, diagnosis: Diagnosis) -> None:
    for sentence in diagnosis.advice or ("Nothing is wrong with it.",):
        terminal.say(f"• {sentence}")
