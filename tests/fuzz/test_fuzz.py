"""A short run of the fuzzer; `make fuzz N=10000` has more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

RUNS = 100


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_no_input_meets_a_traceback(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fuzz", "--count", str(RUNS), "--seed", "0", "--workers", "2"],
        cwd=Path(__file__).resolve().parents[1],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert f"{RUNS} runs" in done.stdout and "; 0 failed" in done.stdout


def test_the_fuzzer_notices(tmp_path: Path) -> None:
    """A traceback, half an output, a NaN and a deleted file are each complained of."""
    script = """
import json, sys
from pathlib import Path
import numpy as np
from fuzz.cases import Case
from fuzz.checks import complaints, snapshot
case = Case(Path(sys.argv[1]), ["solve"])
(case.folder / "mine.txt").write_text("mine")
before = snapshot(case.folder)
def told(code, error=""):
    return " ".join(complaints(case, code, "", error, before))
assert told(0) == "" and told(2, "Error: no.") == ""
assert "exit code 1" in told(1) and "traceback" in told(2, "Error: Traceback")
assert "without a word" in told(2) and "escape" in told(2, "Error: \x1b")
case.out.mkdir()
np.save(case.out / "normals.npy", np.full((2, 2, 3), np.nan))
(case.out / "summary.json").write_text('{"cost": NaN}')
assert "left out" in told(2, "Error: no.")
assert "not finite" in told(0) and "NaN is not JSON" in told(0)
(case.folder / "mine.txt").unlink()
assert "deleted mine.txt" in told(0)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        cwd=Path(__file__).resolve().parents[1],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
