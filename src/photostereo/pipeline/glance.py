"""A look at photographs that do not fit into memory: every n-th pixel of each."""

from __future__ import annotations

from photostereo.capture import Capture
from photostereo.core.control import SILENT, Control
from photostereo.solver.near import every_nth

#: Pixels along the longer side. The diagnosis needs shares and medians, which change by less than a percent beyond it.
SIDE = 512
#: Pixels of a frame from which a glance is enough for a second opinion: at 6 megapixels, of an error of 6.1°, it says 6.3°
#: in a fifteenth of the time, all of the pixels 5.5°.
ENOUGH = 2_000_000


def glance(capture: Capture, control: Control = SILENT) -> Capture:
    """A small capture in memory, with every n-th pixel of one on disk; each photograph is decoded once."""
    return every_nth(capture, max(1, max(capture.frame) // SIDE), control)
