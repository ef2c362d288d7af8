"""Balls in the photographs, written down as comments of a light file, so that they are known when it is read back."""

from __future__ import annotations

import numpy as np

from photostereo.lights.ball.circle import Circle

_BEGINNING = "# ball in the frame (column row radius):"


def ball_line(circle: Circle) -> str:
    """The comment for one ball.

    >>> ball_line(Circle(30.5, 20, 9.25))
    '# ball in the frame (column row radius): 30.50 20.00 9.25'
    """
    return f"{_BEGINNING} {circle.x:.2f} {circle.y:.2f} {circle.radius:.2f}"


def balls_in(text: str) -> tuple[tuple[float, float, float], ...]:
    """Column, row and radius of the balls in a light file; a line that somebody has changed says nothing.

    >>> balls_in(ball_line(Circle(30.5, 20, 9.25)) + "\\nx y z\\n" + _BEGINNING + " there")
    ((30.5, 20.0, 9.25),)
    """
    found = []
    for line in text.splitlines():
        if not line.strip().startswith(_BEGINNING):
            continue
        try:
            x, y, radius = (float(word) for word in line.strip().removeprefix(_BEGINNING).split())
        except ValueError:
            continue
        if np.isfinite([x, y, radius]).all() and radius > 0:
            found.append((x, y, radius))
    return tuple(found)
