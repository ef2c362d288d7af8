"""The progress of an integration."""

from __future__ import annotations

from photostereo.core.control import SILENT, Control


class Progress:
    """Reports the steps of one stage to a control; a count that falls begins the stage again."""

    def __init__(self, stage: str = "integrate", control: Control = SILENT, *, quiet: bool = False) -> None:
        self.stage, self.control, self.quiet = stage, control, quiet
        self._done: int | None = None

    def check(self) -> None:
        """Raise :class:`~photostereo.core.control.Cancelled` if the work should stop."""
        self.control.check()

    def report(self, done: int, total: int) -> None:
        """``done`` of ``total`` steps are done."""
        self.control.check()
        if self.quiet:
            return
        if self._done is None or done < self._done:
            self.control.stage(self.stage, total)
            self._done = 0
        self.control.advance(done - self._done)
        self._done = done

    def without_reports(self) -> Progress:
        """Checks only: for preliminary work whose length is unknown."""
        return Progress(self.stage, self.control, quiet=True)
