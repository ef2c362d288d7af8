"""Location of the research captures."""

from __future__ import annotations

import os
from pathlib import Path

ABSENT = "the DiLiGenT captures are absent: set PHOTOSTEREO_DATA to the folder that holds diligent/pmsData"


def diligent_folder() -> Path | None:
    """``diligent`` in PHOTOSTEREO_DATA or in the data beside the checkout; None if neither exists."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    for place in (os.environ.get("PHOTOSTEREO_DATA"), beside):
        if place and (Path(place) / "diligent").is_dir():
            return Path(place) / "diligent"
    return None
