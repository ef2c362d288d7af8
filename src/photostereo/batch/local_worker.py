"""A worker process of :mod:`.local_pool`: reads jobs from its input and writes their outcomes.

A message is its length in eight bytes, then that number of bytes. The worker ends when its input does, so that no
worker outlives the run.
"""

from __future__ import annotations

import _thread
import os
import pickle
import queue
import sys
import threading
from contextlib import suppress
from typing import IO

#: Seconds after which a worker whose run has ended no longer waits for its job to stop.
PATIENCE = 2.0


def write_frame(stream: IO[bytes], message: bytes) -> None:
    """Write one message."""
    stream.write(len(message).to_bytes(8, "little"))
    stream.write(message)
    stream.flush()


def read_frame(stream: IO[bytes]) -> bytes | None:
    """Read one message; None if the stream ends, even in the middle of a message."""
    head = stream.read(8)
    if len(head) < 8:
        return None
    length = int.from_bytes(head, "little")
    message = stream.read(length)
    return message if len(message) == length else None


def run_job(job: bytes) -> bytes:
    """Run a pickled call; return whether it succeeded, and its result or its error, pickled."""
    try:
        return pickle.dumps((True, pickle.loads(job)()))
    except Exception as problem:
        text = f"{type(problem).__name__}: {problem}"
        return pickle.dumps((False, RuntimeError(text)))


def serve(jobs: IO[bytes], outcomes: IO[bytes]) -> None:
    """Run jobs until the input ends; a job that is running then is interrupted."""
    waiting: queue.Queue[bytes | None] = queue.Queue()

    def listen() -> None:
        while (job := read_frame(jobs)) is not None:
            waiting.put(job)
        waiting.put(None)
        _thread.interrupt_main()
        threading.Timer(PATIENCE, os._exit, [1]).start()

    threading.Thread(target=listen, daemon=True).start()
    while (job := waiting.get()) is not None:
        write_frame(outcomes, run_job(job))


def main() -> None:
    """Serve the process that started this one, through standard input and output."""
    outcomes = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints goes to the log, not between the messages
    with suppress(KeyboardInterrupt, BrokenPipeError):
        serve(sys.stdin.buffer, outcomes)
    os._exit(0)


if __name__ == "__main__":
    main()
