"""A pool of worker processes on this machine.

Each worker is a Python process of its own (:mod:`.local_worker`), so a crash in native code or a lack of memory costs
one worker and not the run. Jobs and outcomes are pickled and sent through its pipes; nothing listens on a network. The
pool never waits for a worker: a thread per worker does.
"""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager, suppress
from typing import IO, Any

from photostereo.batch.executor import DeadWorkerError
from photostereo.batch.local_worker import read_frame, write_frame
from photostereo.runtime.signals import deferred_interrupt

#: Libraries read their number of threads from these variables when they are loaded.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
#: Seconds that a worker gets to remove its unfinished files when the run is interrupted; that takes milliseconds.
FAREWELL_SECONDS = 3.0


class LocalAnswer:
    """The outcome of a job; unpickled by the thread that asks for it, so that no other thread imports modules."""

    def __init__(self) -> None:
        self.reply: Future[bytes] = Future()

    def done(self) -> bool:
        return self.reply.done()

    def result(self, timeout: float) -> Any:
        try:
            succeeded, value = pickle.loads(self.reply.result(timeout))
        except CancelledError:
            raise DeadWorkerError from None
        if not succeeded:
            raise value
        return value

    def cancel(self) -> None:
        self.reply.cancel()


class LocalWorker:
    """A worker process, and the thread that sends it jobs and receives their outcomes."""

    def __init__(self, environment: dict[str, str]) -> None:
        own_group = os.name == "posix"  # Ctrl-C in the terminal is for the coordinator only
        self.process = subprocess.Popen(
            [sys.executable, "-m", "photostereo.batch.local_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=own_group,
        )
        self._jobs: queue.Queue[tuple[bytes, LocalAnswer] | None] = queue.Queue()
        threading.Thread(target=self._exchange, daemon=True).start()

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def send(self, call: Callable[[], Any]) -> LocalAnswer:
        answer = LocalAnswer()
        self._jobs.put((pickle.dumps(call), answer))
        return answer

    def close(self) -> None:
        """Ask the process to end; it stops whatever it is running and removes unfinished files."""
        self._jobs.put(None)
        stream: IO[bytes] | None = self.process.stdin
        if stream is not None:
            with suppress(OSError):
                stream.close()

    def _exchange(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        while (item := self._jobs.get()) is not None:
            job, answer = item
            try:
                write_frame(self.process.stdin, job)
                reply = read_frame(self.process.stdout)
            except (OSError, ValueError):  # ValueError: the pool has closed the pipe
                reply = None
            with suppress(Exception):  # the job was canceled meanwhile
                if reply is None:
                    answer.reply.set_exception(DeadWorkerError())
                else:
                    answer.reply.set_result(reply)


class LocalPool:
    """Worker processes on this machine.

    Parameters
    ----------
    count : int
        Number of processes.
    threads : int
        Threads of numerical libraries in each process, unless the user's environment sets their number.
    """

    def __init__(self, count: int, threads: int = 1) -> None:
        self.count = count
        self._started = 0
        self._workers: dict[str, LocalWorker] = {}
        # Modules are found as in this process, also those of a project that is not installed.
        self._environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        for name in THREAD_VARIABLES:
            self._environment.setdefault(name, str(threads))

    def workers(self) -> Collection[str]:
        for name, worker in list(self._workers.items()):
            if not worker.is_alive():
                self._workers.pop(name).close()
        while len(self._workers) < self.count:
            try:
                worker = LocalWorker(self._environment)
            except OSError:  # a limit on processes or open files, which may pass
                break
            self._started += 1
            self._workers[f"local-{self._started}"] = worker
        return list(self._workers)

    def submit(self, worker: str, call: Callable[[], Any]) -> LocalAnswer:
        return self._workers[worker].send(call)

    def restart(self, worker: str) -> None:
        hung = self._workers.pop(worker, None)
        if hung is not None:
            hung.process.kill()
            hung.close()

    def process_ids(self) -> list[int]:
        """Return the process number of every worker."""
        return [worker.process.pid for worker in self._workers.values()]

    def close(self) -> None:
        """End all workers."""
        workers = list(self._workers.values())
        for worker in workers:
            worker.close()
        for worker in workers:
            try:
                worker.process.wait(FAREWELL_SECONDS)
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()


@contextmanager
def local_pool(count: int, threads: int = 1) -> Iterator[LocalPool]:
    """A :class:`LocalPool` that ends with the block."""
    pool = LocalPool(count, threads)
    try:
        with deferred_interrupt():  # a worker that has just been started is known to the pool
            pool.workers()
        yield pool
    finally:
        pool.close()
