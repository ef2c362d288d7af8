"""Work can be canceled at every step of every stage, and leaves nothing behind."""

from __future__ import annotations

import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import Any

import numpy as np
import psutil
import pytest

import photostereo as ps
from photostereo.capture import write_diligent
from photostereo.core.control import Cancelled
from photostereo_lab.scenes import dome_lights, render_scene

#: Seconds within which a solve of six megapixels must end after it is canceled; and processor seconds of all its threads
#: (on one core), which count beside other programs. The longest gap between two looks at a control is 0.4 of them.
LATENCY, PROCESSOR_LATENCY = 0.5, 0.5
#: Its stages, in their order.
LARGE_STAGES = (
    "photographs", "alignment", "lights", "survey", "sparse Bayesian learning", "iterations", "bands", "colors",
    "arrays and pictures", "integrate", "depth and meshes", "report",
)  # fmt: skip
#: Processor seconds after which a solve of six megapixels reads, or solves; it takes about 18.
BUSY = (2.0, 8.0)


class CancelsAt(ps.Control):
    """Cancels at the k-th report of the work, and keeps the names of the stages."""

    def __init__(self, step: int) -> None:
        self.step, self.reports, self.stages = step, 0, []

    def check(self) -> None:
        self.reports += 1
        if self.reports > self.step:
            self.cancel()
        super().check()

    def on_stage(self, name: str, total: int | None) -> None:
        self.stages.append(name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    scene = render_scene("vase", size=40, lights=dome_lights(6), color=True)
    return write_diligent(scene, tmp_path_factory.mktemp("scene") / "vasePNG")


@pytest.mark.parametrize("method", ["ls", "dlsr", "dlnet"])
def test_cancelling_at_any_step_leaves_nothing(folder, tmp_path, method) -> None:
    settings: dict[str, Any] = {} if method == "ls" else {"parameters": {"max_iter": 2}}
    if method != "dlnet":  # the stages after the solution are the same for all
        settings |= {"report": False, "surface": None}
    through = CancelsAt(10**9)
    ps.Pipeline(folder, method=method, control=through, **settings).write(tmp_path / "whole")
    last = {"surface", "report"} if method == "dlnet" else set()
    assert {"photographs", "arrays and pictures"} | last <= set(through.stages)
    assert through.reports > 20
    before = sorted(path.name for path in tmp_path.iterdir())
    # The first stages have few steps, the others many.
    count = 12 if method == "dlnet" else 6
    steps = {*range(0, 12, 2), *np.linspace(0, through.reports - 1, count, dtype=int).tolist()}
    for step in sorted(steps):
        control = CancelsAt(step)
        with suppress(Cancelled):
            ps.Pipeline(folder, method=method, control=control, **settings).write(tmp_path / "out")
            assert (
                20 < control.reports <= step
            )  # some are made by the clock: now and then there are fewer
            shutil.rmtree(tmp_path / "out")
        assert sorted(path.name for path in tmp_path.iterdir()) == before, step


def test_a_cancelled_pipeline_can_go_on(folder, tmp_path) -> None:
    """What was computed before the cancellation is kept, what was not is computed again."""
    pipeline = ps.Pipeline(folder, method="ls")
    solution = pipeline.solution
    pipeline.control = CancelsAt(2)
    with pytest.raises(Cancelled):
        pipeline.write(tmp_path / "out")
    pipeline.control = ps.Control()
    pipeline.write(tmp_path / "out")
    assert pipeline.solution is solution


def test_a_callback_that_raises_is_as_safe(folder, tmp_path) -> None:
    class Raises(ps.Control):
        def on_stage(self, name: str, total: int | None) -> None:
            if name == "report":
                raise ValueError("from a callback")

    with pytest.raises(ValueError, match="from a callback"):
        ps.Pipeline(folder, method="ls", control=Raises()).write(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Six megapixels, six photographs."""
    scene = render_scene("relief", size=240, lights=dome_lights(6), cast_shadows=False)
    images = np.tile(scene.images, (1, 9, 12))[:, :2000, :2880]
    capture = ps.Capture(images, scene.lights, name="large")
    return write_diligent(capture, tmp_path_factory.mktemp("large") / "largePNG")


class CancelsDuring(ps.Control):
    """Cancels from another thread a moment after a stage has begun."""

    def __init__(self, stage: str) -> None:
        self.named, self.marks = stage, (0.0, 0.0)

    def on_stage(self, name: str, total: int | None) -> None:
        if name == self.named and not self.marks[0]:
            self.marks = (1.0, 0.0)
            threading.Timer(0.3, self.cancel_now).start()

    def cancel_now(self) -> None:
        self.marks = time.perf_counter(), time.process_time()
        self.cancel()


@pytest.mark.slow
def test_every_stage_of_a_large_solve_ends_soon_after_it_is_cancelled(large, tmp_path) -> None:
    """One pipeline, canceled in each of its stages in turn; it goes on from the stages that were complete."""
    ps.Pipeline(large, method="fast", scale=0.1).write(
        tmp_path / "warm"
    )  # compiled kernels are loaded
    pipeline = ps.Pipeline(large, method="fast")

    def is_late(stage: str) -> bool:
        pipeline.control = control = CancelsDuring(stage)
        with pytest.raises(Cancelled):
            pipeline.write(tmp_path / "out")
        waited, worked = (
            time.perf_counter() - control.marks[0],
            time.process_time() - control.marks[1],
        )
        assert [path.name for path in tmp_path.iterdir()] == ["warm"], stage
        return waited > LATENCY and worked > PROCESSOR_LATENCY

    # A machine that was held up for a moment is not held up twice.
    assert not [stage for stage in LARGE_STAGES if is_late(stage) and is_late(stage)]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fast", "best"])
def test_a_large_solve_checks_all_the_time(large, tmp_path, monkeypatch, method: str) -> None:
    """Between two looks at any control there is less than the time in which a cancellation must be felt."""
    ps.Pipeline(large, method=method, scale=0.1).write(tmp_path / "warm")
    last, long = [0.0, 0.0, ""], {}
    honest = ps.Control.check

    def check(self) -> None:
        waited, worked = time.perf_counter() - last[0], time.process_time() - last[1]
        frame = sys._getframe(1)
        while frame.f_code.co_filename.endswith("control.py"):
            frame = frame.f_back
        here = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        if waited > LATENCY and worked > PROCESSOR_LATENCY:
            long[f"{last[2]} to {here}"] = round(waited, 2), round(worked, 2)
        last[:] = time.perf_counter(), time.process_time(), here
        honest(self)

    def gaps(out: str) -> dict[str, tuple[float, float]]:
        long.clear()
        last[:2] = time.perf_counter(), time.process_time()
        ps.Pipeline(large, method=method, control=ps.Control()).write(tmp_path / out)
        return dict(long)

    monkeypatch.setattr(ps.Control, "check", check)
    found = gaps("out")
    # A machine that was held up for a moment is not held up at the same place again.
    assert not found or not found.keys() & gaps("again").keys()


@pytest.mark.slow
@pytest.mark.parametrize("busy", BUSY)
def test_control_c_ends_a_large_solve_soon(large, tmp_path, busy: float) -> None:
    """Soon by the clock of the processor, which other programs do not slow down."""
    script = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    script += "from photostereo.__main__ import main; main()"
    words = ["solve", str(large), "--method", "fast", "--out", str(tmp_path / "out"), "-q"]
    process = subprocess.Popen(
        [sys.executable, "-c", script, *words], stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    watched = psutil.Process(process.pid)
    while not list(tmp_path.glob(".out.partial-*")) or sum(watched.cpu_times()[:2]) < busy:
        assert process.poll() is None
        time.sleep(0.05)
    spent = sum(watched.cpu_times()[:2])
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert process.returncode == 130
    assert list(tmp_path.iterdir()) == []
    whole = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert whole - spent < PROCESSOR_LATENCY + 1.0  # the interpreter's own end included


def test_a_call_that_cannot_be_cancelled_is_left_behind() -> None:
    control, end, ended = ps.Control(), threading.Event(), []
    assert control.aside(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        control.aside(lambda: 1 / 0)
    threading.Timer(0.2, control.cancel).start()
    with pytest.raises(Cancelled):
        control.aside(lambda: ended.append(end.wait(60)))
    assert not ended
    end.set()


def test_work_beside_a_block_ends_with_it() -> None:
    """Its result and its error arrive; a block that fails or is cancelled stops it and leaves nothing of it running."""
    control, running = ps.Control(), threading.Event()
    with control.meanwhile(lambda quiet: 3) as begun:
        assert control.awaited(begun) == 3
    with pytest.raises(ZeroDivisionError), control.meanwhile(lambda quiet: 1 / 0) as begun:
        control.awaited(begun)

    def works(quiet: ps.Control) -> None:
        running.set()
        try:
            while True:
                quiet.check()
                time.sleep(0.01)
        finally:
            running.clear()

    with suppress(KeyError), control.meanwhile(works):
        assert running.wait(60)
        raise KeyError
    assert not running.is_set()
    control.check()  # what it belongs to was not cancelled
    threading.Timer(0.2, control.cancel).start()
    with pytest.raises(Cancelled), control.meanwhile(works) as begun:
        control.awaited(begun)
    assert not running.is_set()
