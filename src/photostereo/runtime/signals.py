r"""Handle Ctrl-C and the other signals that end a program: one line, the right exit code, never a traceback.

A terminal that is closed, or a lost connection, sends SIGHUP (Windows: SIGBREAK); Ctrl-\ sends SIGQUIT.

During imports nothing has been written yet, and an exception raised inside an import may be swallowed or replaced
by another one, so the process ends immediately. Once a command is running, the signal becomes an exception, so that
partly written files are removed on the way out. This module is imported before anything else and uses the standard
library only.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

#: Signals that end the program, and what is said then; a system has only some of them.
_WORDS = {
    getattr(signal, name): words
    for name, words in {
        "SIGINT": "Interrupted",
        "SIGTERM": "Terminated",
        "SIGHUP": "The terminal was closed",
        "SIGQUIT": "Quit",
        "SIGBREAK": "Interrupted",
    }.items()
    if hasattr(signal, name)
}
#: End of the message, true in every case.
END = "nothing was left half-written."


class _State:
    """What a signal handler must know, which gets no arguments of ours."""

    loading = True  #: whether modules are still imported, and nothing has been written
    received: int | None = None  #: the signal that ends the work


@contextmanager
def orderly_signals() -> Iterator[None]:
    """Handle the signals within the block; a signal ignored by the caller stays ignored."""
    if threading.current_thread() is not threading.main_thread():  # Python allows it only there
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
    """Delay Ctrl-C to the end of the block (a second one acts at once); processes started in it never receive it.

    For work that must not be interrupted halfway, such as starting a cluster. A terminal sends Ctrl-C to all processes:
    those started in the block inherit the blocked signal, and end when this process ends them.
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

    # If it is started later, it unblocks the signal in the thread that starts it.
    ensure_running()
    signal.signal(signal.SIGINT, remember)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        # A pending signal is delivered to ``remember`` here.
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, before)
        if struck:
            signal.raise_signal(signal.SIGINT)


def work_begins() -> None:
    """Mark the start of work that may have to be cleaned up."""
    _State.loading = False


def ended_by() -> int | None:
    """Return the signal that ended the work, whatever exception it has become."""
    return _State.received


def tell_end() -> int:
    """Print one line that the work was ended, and return the exit code."""
    number = _State.received or signal.SIGINT
    with suppress(OSError):
        os.write(2, f"{_WORDS[signal.Signals(number)]}; {END}\n".encode())
    return 128 + number


def _receive(number: int, frame: FrameType | None) -> None:
    _State.received = number
    if _State.loading:
        os._exit(tell_end())
    while frame is not None:
        if frame.f_code is _not_swallowed.__code__:  # an exception would be ignored there too
            return _send_again(number)
        frame = frame.f_back
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)


def _not_swallowed(problem: sys.UnraisableHookArgs) -> None:
    """Send the signal again if the exception was raised where Python ignores exceptions (a finalizer, a callback)."""
    if _State.received is not None and isinstance(
        problem.exc_value, (KeyboardInterrupt, SystemExit)
    ):
        _send_again(_State.received)
    else:
        sys.__unraisablehook__(problem)


def _send_again(number: int) -> None:
    """Send a signal after a short delay, without ``threading``, whose locks the interrupted code may hold."""

    def send() -> None:
        # By then the finalizer or callback that swallowed the exception has ended.
        time.sleep(0.01)
        _thread.interrupt_main(signal.Signals(number))

    _thread.start_new_thread(send, ())
