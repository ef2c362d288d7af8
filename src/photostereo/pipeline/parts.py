"""Parts of the output that a result is complete without."""

from __future__ import annotations

from collections.abc import Callable
from traceback import walk_tb
from typing import TypeVar

from photostereo.core.attempt import failure_of, log
from photostereo.core.control import Control
from photostereo.core.findings import Finding

Answer = TypeVar("Answer")

#: Methods of a control that a program overrides; an error in one of them ends the work.
CALLBACKS = ("on_stage", "on_advance", "on_iteration", "check")


def make_part(part: str, work: Callable[[], Answer], failures: list[Finding]) -> Answer | None:
    """Make a part of the output that the result is complete without; return None if that fails.

    A lack of memory, and errors that the user can fix, do not end the work either: the solve is done, and its result would
    be lost.

    Parameters
    ----------
    part : str
        What is made, in a few words, such as ``"depth and meshes"``.
    work : callable
        Makes it.
    failures : list of Finding
        If the work fails, a finding ``"part-missing"`` is appended.

    Examples
    --------
    >>> failures = []
    >>> make_part("page", lambda: 1 / 0, failures)
    >>> failures[0].code, failures[0].values["part"], failures[0].values["error"]
    ('part-missing', 'page', 'ZeroDivisionError: division by zero')
    """
    try:
        return work()
    except Exception as error:
        if _is_from_callback(error):
            raise
        log.exception("%s failed", part)
        facts = failure_of(part, error).values
        failures.append(
            Finding("part-missing", part=part, error=facts["error"], place=facts["place"])
        )
        return None


def _is_from_callback(error: Exception) -> bool:
    """Whether an error comes from a callback of a control: a program may raise it to stop the work."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    return any(
        frame.f_code.co_name in CALLBACKS and isinstance(frame.f_locals.get("self"), Control)
        for frame in frames
    )
