"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]


def find_data() -> Path | None:
    """The folder of shared research captures, or None."""
    for candidate in (os.environ.get("PHOTOSTEREO_DATA"), PROJECT.parent / "shared" / "data"):
        if candidate and Path(candidate).is_dir():
            return Path(candidate)
    return None


@pytest.fixture(scope="session")
def data_dir() -> Path:
    found = find_data()
    if found is None:
        pytest.skip("the shared research captures are absent: set PHOTOSTEREO_DATA to their folder")
    return found
