"""A look at photographs that do not fit into memory: every n-th pixel of each."""

from __future__ import annotations

import numpy as np

from photostereo.capture import Capture
from photostereo.core.control import SILENT, Control

#: Pixels along the longer side. The diagnosis needs shares and medians, which change by less than a percent beyond it.
SIDE = 512


def glance(capture: Capture, control: Control = SILENT) -> Capture:
    """A small capture in memory, with every n-th pixel of one on disk; each photograph is decoded once."""
    step = max(1, max(capture.frame) // SIDE)
    capture.photographs.keep_decoded()
    control.stage("photographs", len(capture))
    sampled = []
    for frame in capture.photographs.frames():
        sampled.append(frame[::step, ::step].copy())  # a view would keep the whole frame
        control.advance()
    return Capture(
        images=np.stack(sampled),
        lights=capture.lights,
        mask=capture.mask[::step, ::step],
        name=capture.name,
        origin=capture.origin,
    )
