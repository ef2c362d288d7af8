"""Ctrl-C and SIGTERM from the first moment on: one line, the right exit code, never a traceback.

While code is being loaded nothing has been written, and an exception raised inside an import may be swallowed or
turned into another one: the process ends on the spot. Once a command works, the signal becomes an exception, so that
what is half-written is taken away on the way out. This module is imported before anything else: the standard library
only.
"""

from __future__ import annotations

import _thread
import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

_WORDS = {signal.SIGINT: "Interrupted", signal.SIGTERM: "Terminated"}
#: What is true of every end.
END = "nothing was left half-written."


class _State:
    loading = True
    received: int | None = None


@contextmanager
def orderly_signals() -> Iterator[None]:
    """Handle both signals within the block; a signal that the caller ignores stays ignored."""
    if threading.current_thread() is not threading.main_thread():  # Python lets nobody else do it
        yield
        return
    _State.received = None
    before = {number: signal.getsignal(number) for number in _WORDS}
    hook = sys.unraisablehook
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, _receive)
    sys.unraisablehook = _not_swallowed
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def deferred_interrupt() -> Iterator[None]:
    """Ctrl-C within the block strikes at its end (a second one at once); processes started in it never see it.

    For what cannot be left half-way, such as a cluster that starts. A terminal sends Ctrl-C to all processes: those
    that the block starts inherit the signal blocked, and end when this one ends them.
    """
    main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    if not main or not callable(before) or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    struck = False

    def remember(number: int, frame: FrameType | None) -> None:
        nonlocal struck
        if struck:
            signal.signal(signal.SIGINT, before)
            before(number, frame)
        struck = True

    from multiprocessing.resource_tracker import ensure_running

    ensure_running()  # started later, it would unblock the signal in the thread that starts it
    signal.signal(signal.SIGINT, remember)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)  # what waited is remembered here
        signal.signal(signal.SIGINT, before)
        if struck:
            signal.raise_signal(signal.SIGINT)


def work_begins() -> None:
    """From now on there may be something to clear away."""
    _State.loading = False


def ended_by() -> int | None:
    """The signal that ended the work, whatever exception it has become by now."""
    return _State.received


def tell_end() -> int:
    """Say in one line that the work was ended; the exit code for it."""
    number = _State.received or signal.SIGINT
    with suppress(OSError):
        os.write(2, f"{_WORDS[signal.Signals(number)]}; {END}\n".encode())
    return 128 + number


def leave(code: object) -> NoReturn:
    """End the process after a signal, without waiting for its threads.

    They would go on with what nobody needs any more, and one that imports may wait forever for a lock that the interrupted
    import has left closed.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code if isinstance(code, int) else 1)


def _receive(number: int, frame: FrameType | None) -> None:
    _State.received = number
    if _State.loading:
        os._exit(tell_end())
    while frame is not None:
        if frame.f_code is _not_swallowed.__code__:  # an exception would be ignored there, too
            return _send_again(number)
        frame = frame.f_back
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)


def _not_swallowed(problem: sys.UnraisableHookArgs) -> None:
    """The exception struck where Python ignores exceptions (a finaliser, a callback): send the signal again."""
    if _State.received is not None and isinstance(problem.exc_value, (KeyboardInterrupt, SystemExit)):
        _send_again(_State.received)
    else:
        sys.__unraisablehook__(problem)


def _send_again(number: int) -> None:
    """Send a signal in a moment. Not by ``threading``, whose locks the interrupted code may hold."""

    def send() -> None:
        time.sleep(0.01)
        _thread.interrupt_main(signal.Signals(number))

    _thread.start_new_thread(send, ())
