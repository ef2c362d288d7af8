"""The public names are what they say, whatever was imported before."""

from __future__ import annotations

import subprocess
import sys


def test_a_submodule_does_not_hide_the_function_of_its_name():
    code = "from photostereo.solver.prepared import prepare; import photostereo as ps; assert callable(ps.solve), ps.solve"
    subprocess.run([sys.executable, "-c", code], check=True)
    code = "import photostereo.solver.solve; import photostereo as ps; assert callable(ps.solve) and callable(ps.load)"
    subprocess.run([sys.executable, "-c", code], check=True)
