"""A capture too large for one worker: its bands are tasks of their own, on whichever workers are free.

The worker that has the capture learns the dictionary and joins the bands. Each worker opens the capture once and keeps
what it decodes on its own disk. The result is that of one worker alone, bit for bit: the bands are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from photostereo.capture import Capture
from photostereo.core.control import SILENT
from photostereo.pipeline.settings import Settings
from photostereo.solver.tiles import Band

if TYPE_CHECKING:
    from photostereo.solver.bands import SolvedBand
    from photostereo.solver.prepared import Learned

#: The capture whose bands this process has solved last, with what it was opened for.
_opened: tuple[tuple[str, Settings], Capture] | None = None


def for_worker(settings: Settings) -> Settings:
    """The settings on a worker: it decodes with one thread, as the others have the other cores."""
    return settings.changed(workers=1)


def open_capture(path: Path, settings: Settings) -> Capture:
    """The capture as these settings read it, its photographs on disk."""
    from photostereo.pipeline.pipeline import Pipeline

    return Pipeline(path, for_worker(settings)).capture


class OverWorkers:
    """Assigns the bands of a capture to the workers of the cluster that this process belongs to.

    Outside of a cluster, or without a second worker, they are solved here, one after the other.
    """

    def __init__(self, path: Path, settings: Settings) -> None:
        self.path, self.settings = path, settings

    def __call__(
        self, capture: Capture, bands: Sequence[Band], learned: Learned
    ) -> Iterator[tuple[Band, SolvedBand]]:
        if len(bands) < 2 or _others() < 1:
            for band in bands:
                yield band, _solve(capture, self.settings, band, learned)
            return
        from distributed import as_completed, worker_client

        with worker_client() as client:  # gives its place up while it waits: a band may take it
            # To all of them: tasks go where what they need lies already.
            taught = client.scatter(learned, broadcast=True, hash=False)
            waiting = {
                client.submit(solve_one, str(self.path), self.settings, band, taught, pure=False): band
                for band in bands
            }
            for future in as_completed(list(waiting)):
                yield waiting.pop(future), future.result()


def solve_one(path: str, settings: Settings, band: Band, learned: Learned) -> SolvedBand:
    """One band, on a worker."""
    global _opened
    from photostereo.batch.worker import set_threads

    set_threads()
    if _opened is None or _opened[0] != (path, settings):
        _opened = None  # its space on disk first
        capture = open_capture(Path(path), settings)
        capture.photographs.keep_decoded()
        _opened = ((path, settings), capture)
    return _solve(_opened[1], settings, band, learned)


def _solve(capture: Capture, settings: Settings, band: Band, learned: Learned) -> SolvedBand:
    from photostereo.solver.bands import Within, solve_band
    from photostereo.solver.methods import method_for
    from photostereo.solver.prepared import device_for

    entry, _ = method_for(capture, settings.solving.method, settings.solving.prior)
    device = device_for(entry, settings.solving.device)
    return solve_band(capture, entry, learned, band, Within(SILENT, 1), device)


def _others() -> int:
    """Workers of this process's cluster beside it; 0 if it is no worker."""
    try:
        from distributed import get_worker

        return len(get_worker().client.scheduler_info()["workers"]) - 1
    except (ImportError, ValueError):
        return 0
