"""``photostereo rig`` and the two examples."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

import photostereo as ps
from photostereo.capture.layouts.diligent import write_diligent
from photostereo.cli.root import app
from photostereo_lab.scenes import dome_lights, render_scene

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_a_calibration_becomes_a_rig(tmp_path: Path) -> None:
    calibration = render_scene("coin", size=64, lights=dome_lights(5))
    write_diligent(calibration, tmp_path / "calibration")
    file = tmp_path / "rig.npz"
    arguments = ["rig", str(tmp_path / "calibration"), "--out", str(file)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert len(ps.load_rig(file)) == 5
    again = CliRunner().invoke(app, arguments)
    assert isinstance(again.exception, ps.OutputError)
    example = [sys.executable, str(EXAMPLES / "rig_camera.py"), str(file)]
    # The rig has the mask of its calibration; the example makes pictures of another size.
    assert subprocess.run(example, capture_output=True, check=False).returncode != 0
    ps.save_rig(ps.Rig(dome_lights(4)), tmp_path / "bare.json")
    example[-1] = str(tmp_path / "bare.json")
    printed = subprocess.run(example, capture_output=True, text=True, check=True).stdout
    assert printed.count("part") == 5
