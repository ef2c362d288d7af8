"""Progress and cancellation of long work.

Every potentially slow function takes a :class:`Control` and reports its stages and steps to it. Each report is a point
at which the work can be canceled::

    def integrate(..., control: Control = SILENT) -> Surface:
        control.stage("surface", total=len(levels))
        for level in levels:
            ...
            control.advance()

Subclass :class:`Control` to display progress; call :meth:`Control.cancel`, from any thread, to stop the work. An
exception raised by a subclass (or by Ctrl-C) is as safe as a cancellation: nothing partial is left behind.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from operator import itemgetter
from typing import Any, Self, TypeVar

T = TypeVar("T")
#: Seconds between two checks while another thread works.
LONGEST_WAIT = 0.1


class Cancelled(BaseException):
    """The work was canceled through its :class:`Control`.

    Like ``KeyboardInterrupt`` it is not an :class:`Exception`, so that a handler for failures does not mistake it
    for one.
    """


@dataclass(frozen=True)
class Iteration:
    """Record of one outer iteration."""

    number: int  #: 1, 2, ...
    cost: float  #: the whole objective after the iteration
    data: float  #: the model's part of it
    change: float  #: ‖n − n_previous‖ / ‖n_previous‖
    seconds: float  #: wall-clock time of the iteration
    error: float | None = None  #: mean angular error in degrees if the truth is known, else None
    #: figures of the prior by name: the terms of its cost, and others
    figures: Mapping[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, float | int | None]:
        """All figures by name, in one mapping."""
        own = {name: value for name, value in vars(self).items() if name != "figures"}
        return {**own, **self.figures}

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Iteration:
        """Inverse of :meth:`as_dict`; names that are not fields are figures of the prior."""
        own = {f.name for f in fields(cls)} - {"figures"}
        figures = {name: value for name, value in facts.items() if name not in own}
        return cls(**{name: value for name, value in facts.items() if name in own}, figures=figures)

    def select(self, problem: int) -> Iteration:
        """Return the record of one of several problems solved together, whose figures are arrays."""
        facts: dict[str, Any] = self.as_dict()
        return Iteration.from_dict(
            {name: float(v[problem]) if hasattr(v, "__len__") else v for name, v in facts.items()}
        )


class Control:
    """Receives progress and can cancel the work.

    This base class displays nothing. Override :meth:`on_stage`, :meth:`on_advance` and :meth:`on_iteration` to
    display progress.

    Attributes
    ----------
    seconds : dict of str to float
        Wall-clock time of each stage so far, by name.

    Examples
    --------
    >>> import photostereo as ps
    >>> class Names(Control):
    ...     def on_stage(self, name, total):
    ...         self.names = [*getattr(self, "names", []), name]
    >>> control = Names()
    >>> from photostereo.example import owl
    >>> result = ps.solve(owl(25.0, step=8), "dlnv", max_iter=2, control=control)
    >>> "iterations" in control.names
    True
    >>> control.cancel()
    >>> ps.solve(owl(25.0, step=8), "dlnv", control=control)
    Traceback (most recent call last):
    photostereo.core.control.Cancelled
    """

    seconds: dict[str, float]
    _cancelled: threading.Event
    _current: str | None
    _since: float

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Set the state here, so that a subclass with its own ``__init__`` need not call this one's."""
        self = super().__new__(cls)
        self.seconds = {}
        self._cancelled = threading.Event()
        self._current = None
        self._since = time.perf_counter()
        return self

    def cancel(self) -> None:
        """Stop the work at its next step; may be called from any thread."""
        self._cancelled.set()

    @property
    def cancelled(self) -> bool:
        """Whether :meth:`cancel` was called."""
        return self._cancelled.is_set()

    def unreported(self) -> Control:
        """A control for a part of the work: canceled with this one, or alone; its progress is not displayed."""
        return _Part(self)

    def check(self) -> None:
        """Raise :class:`Cancelled` if the work should stop; for loops that have no progress to report."""
        if self.cancelled:
            raise Cancelled

    def awaited(self, job: Future[T]) -> T:
        """Return the result of work in another thread; cancellation does not wait for it."""
        while not wait([job], timeout=LONGEST_WAIT).done:
            self.check()
        self.check()
        return job.result()

    def aside(self, work: Callable[[], T]) -> T:
        """Return the result of a long call that cannot be canceled; its separate thread is abandoned on cancellation.

        Not for compiled loops that use several threads: only one caller at a time may start them.
        """
        pool = ThreadPoolExecutor(1)
        job = pool.submit(work)
        # An abandoned thread ends by itself; nobody waits for it.
        pool.shutdown(wait=False)
        return self.awaited(job)

    @contextmanager
    def meanwhile(
        self, work: Callable[[Control], T], *, really: bool = True
    ) -> Iterator[Future[T]]:
        """Run ``work`` in a separate thread during the block, which gets its result with :meth:`awaited`.

        Its progress is not displayed. If the block fails or is canceled, the work stops at its next step and leaves
        nothing behind. Unless ``really``, the work is done before the block, which needs less memory.
        """
        if not really:
            done: Future[T] = Future()
            done.set_result(work(self))
            yield done
            return
        part = self.unreported()
        pool = ThreadPoolExecutor(1)
        try:
            yield pool.submit(work, part)
        except BaseException:
            part.cancel()
            raise
        finally:
            pool.shutdown()

    def stage(self, name: str, total: int | None = None) -> None:
        """Begin a stage of ``total`` steps, if their number is known."""
        self.check()
        # The time until now belongs to the stage before.
        self._count_time()
        self._current = name
        self.on_stage(name, total)

    def advance(self, steps: int = 1) -> None:
        """Report ``steps`` more steps of the current stage as done."""
        self.check()
        self.on_advance(steps)

    def iteration(self, record: Iteration) -> None:
        """Report the end of an outer iteration."""
        self.check()
        self.on_iteration(record)

    def finish(self) -> None:
        """End the last stage."""
        self._count_time()
        self._current = None

    def on_stage(self, name: str, total: int | None) -> None:
        """A stage has begun."""

    def on_advance(self, steps: int) -> None:
        """Steps of the current stage are done."""

    def on_iteration(self, record: Iteration) -> None:
        """An outer iteration has ended."""

    def _count_time(self) -> None:
        now = time.perf_counter()
        if self._current is not None:
            self.seconds[self._current] = self.seconds.get(self._current, 0.0) + now - self._since
        self._since = now


class _Part(Control):
    def __init__(self, whole: Control) -> None:
        self._whole = whole

    @property
    def cancelled(self) -> bool:
        return super().cancelled or self._whole.cancelled

    def check(self) -> None:
        self._whole.check()  # a subclass may have its own
        super().check()


class _Silent(Control):
    """The default everywhere: shared by all callers, so it keeps nothing and cannot be canceled."""

    def cancel(self) -> None:
        raise RuntimeError(
            "The default control is shared. Pass a Control of your own to be able to cancel."
        )

    def stage(self, name: str, total: int | None = None) -> None:
        pass

    def aside(self, work: Callable[[], T]) -> T:
        return work()


SILENT = _Silent()


@dataclass
class Stage:
    """A stage as a shell displays it."""

    name: str = ""
    total: int | None = None
    done: int = 0
    note: str = ""
    _steps: list[tuple[float, int]] = field(default_factory=list)

    def reach(self, done: int) -> None:
        """Record that this number of steps is done."""
        self.done = done
        self._steps.append((time.monotonic(), done))

    def forget_pace(self) -> None:
        """Estimate the remaining time from later steps only, because something was compiled."""
        self._steps.clear()

    @property
    def seconds_left(self) -> float | None:
        """Estimate of the remaining time, from the later half of the steps done so far; None if it is not known yet."""
        if not self.total or len(self._steps) < 3 or self.done >= self.total:
            return None
        now, last = self._steps[-1]
        # The earlier half may include compilation; with only a few steps, the estimate would jump between their parts.
        half = bisect_left(self._steps, last / 2, key=itemgetter(1))
        began, first = self._steps[min(half, len(self._steps) - 2)]
        return (now - began) / max(last - first, 1) * (self.total - last)
