"""Work can be cancelled at every step of every stage, and leaves nothing behind."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import photostereo as ps
from photostereo.capture import write_diligent
from photostereo.core.control import Cancelled
from photostereo.scenes import dome_lights

#: Seconds within which a solve of six megapixels must end after it is cancelled, and processor seconds of two threads, which
#: count beside other programs.
LATENCY, PROCESSOR_LATENCY = 0.5, 1.0


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
    scene = ps.render_scene("vase", size=40, lights=dome_lights(6), color=True)
    return write_diligent(scene, tmp_path_factory.mktemp("scene") / "vasePNG")


@pytest.mark.parametrize("method", ["ls", "dlsr", "dlnet"])
def test_cancelling_at_any_step_leaves_nothing(folder, tmp_path, method) -> None:
    settings = {} if method == "ls" else {"max_iter": 2}
    through = CancelsAt(10**9)
    ps.Pipeline(folder, method=method, control=through, **settings).write(tmp_path / "whole")
    assert {"photographs", "arrays and pictures", "surface", "report"} <= set(through.stages)
    assert through.reports > 20
    before = sorted(path.name for path in tmp_path.iterdir())
    # Every step of the rare stages, a few of the many steps of a stage.
    steps = {*range(12), *np.linspace(0, through.reports - 1, 25, dtype=int).tolist()}
    for step in sorted(steps):
        with pytest.raises(Cancelled):
            ps.Pipeline(folder, method=method, control=CancelsAt(step), **settings).write(tmp_path / "out")
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
    scene = ps.render_scene("relief", size=240, lights=dome_lights(6), cast_shadows=False)
    images = np.tile(scene.images, (1, 9, 12))[:, :2000, :2880]
    capture = ps.Capture(images, scene.lights, name="large")
    return write_diligent(capture, tmp_path_factory.mktemp("large") / "largePNG")


@pytest.mark.slow
def test_a_large_solve_ends_soon_after_it_is_cancelled(large, tmp_path) -> None:
    """At random moments; the longest wait of all is what counts."""
    ps.Pipeline(large, method="fast", scale=0.1).write(tmp_path / "warm")  # compiled kernels are loaded
    rng, waits = random.Random(0), {}
    for _ in range(3):
        control = CancelsAt(10**12)
        delay = rng.uniform(0.2, 20.0)
        cancelled_at: list[float] = []

        def cancel(control: CancelsAt = control, marks: list[float] = cancelled_at) -> None:
            marks.extend((time.perf_counter(), time.process_time()))
            control.cancel()

        timer = threading.Timer(delay, cancel)
        timer.start()
        try:
            ps.Pipeline(large, method="fast", control=control).write(tmp_path / "out", force=True)
        except Cancelled:
            waited, worked = time.perf_counter() - cancelled_at[0], time.process_time() - cancelled_at[1]
            waits[f"{control.stages[-1]} after {delay:.1f} s"] = (waited, worked)
        finally:
            timer.cancel()
    assert waits
    assert all(waited < LATENCY or worked < PROCESSOR_LATENCY for waited, worked in waits.values()), waits
    assert sorted(path.name for path in tmp_path.iterdir()) in (["warm"], ["out", "warm"])


@pytest.mark.slow
@pytest.mark.parametrize("delay", [3.0, 6.0, 10.0])
def test_control_c_ends_a_large_solve_soon(large, tmp_path, delay) -> None:
    script = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    script += "from photostereo.__main__ import main; main()"
    words = ["solve", str(large), "--method", "fast", "--out", str(tmp_path / "out"), "-q"]
    process = subprocess.Popen(
        [sys.executable, "-c", script, *words], stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    time.sleep(delay)
    process.send_signal(signal.SIGINT)
    began = time.perf_counter()
    _, error = process.communicate(timeout=60)
    waited = time.perf_counter() - began
    assert process.returncode == 130
    assert error.splitlines()[-1] == "Interrupted; nothing was left half-written."
    assert list(tmp_path.iterdir()) == []
    assert waited < LATENCY + 3.0  # the interpreter's own end included, and other programs


def test_a_call_that_cannot_be_cancelled_is_left_behind() -> None:
    control, end = ps.Control(), threading.Event()
    assert control.aside(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        control.aside(lambda: 1 / 0)
    threading.Timer(0.2, control.cancel).start()
    began = time.perf_counter()
    with pytest.raises(Cancelled):
        control.aside(lambda: end.wait(20))
    assert time.perf_counter() - began < 10
    end.set()
