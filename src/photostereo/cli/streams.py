"""Standard output that cannot be written to: lost words never end the work that they describe."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO


class LastingStream:
    """A text stream that goes on after its first failure, without printing.

    The terminal may be closed, the disk full, or the reader of a pipe gone: results on their way are worth more.

    Parameters
    ----------
    stream : text stream
        Where to print.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.failure: OSError | None = None  #: what ended the printing

    def write(self, text: str) -> int:
        """Print a text; return its length in any case."""
        if self.failure is None:
            try:
                self._stream.write(text)
            except OSError as problem:
                self._give_up(problem)
        return len(text)

    def flush(self) -> None:
        """Print what is buffered."""
        if self.failure is None:
            try:
                self._stream.flush()
            except OSError as problem:
                self._give_up(problem)

    def _give_up(self, problem: OSError) -> None:
        """Remember the failure, and send the rest nowhere, as Python flushes the stream once more at the end."""
        self.failure = problem
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def lasting_output() -> Iterator[LastingStream]:
    """Make standard output and standard error last within the block, which is given standard output.

    A program without a terminal (a service, ``pythonw``, ``>&-``) has neither.
    """
    before = (sys.stdout, sys.stderr)
    output = _lasting(sys.stdout)
    errors = _lasting(sys.stderr)
    sys.stdout = output
    sys.stderr = errors
    try:
        yield output
    finally:
        output.flush()
        errors.flush()
        sys.stdout, sys.stderr = before


def _lasting(stream: TextIO | LastingStream | None) -> LastingStream:
    if isinstance(stream, LastingStream):
        return stream
    if stream is None:
        stream = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (until the program ends)
    if isinstance(stream, io.TextIOWrapper):  # a terminal without × or ° shows question marks
        stream.reconfigure(errors="replace")
    return LastingStream(stream)


def report_lost_output(stream: LastingStream, code: int) -> int:
    """Say on standard error that output was lost; return the exit code, 2 instead of 0.

    Whoever closes a pipe early wants no more, and is told nothing.
    """
    problem = stream.failure
    if problem is None or isinstance(problem, BrokenPipeError):
        return code
    reason = problem.strerror or problem
    sys.stderr.write(f"Standard output cannot be written to: {reason}. The work itself is done.\n")
    return code or 2
