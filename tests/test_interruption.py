"""Ctrl-C and SIGTERM at any moment: one line, the right exit code, nothing half-written, no traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from photostereo.capture import write_archive
from photostereo_lab.scenes import dome_lights, render_scene

# A shell's background job ignores Ctrl-C, and its children inherit that; "ready" is said before anything is loaded.
RUN = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from photostereo.__main__ import main
from photostereo.runtime.signals import orderly_signals
sys.argv = ["photostereo", *sys.argv[1:]]
with orderly_signals():
    sys.stdout.write("ready\\n")
    sys.stdout.flush()
    main()
"""


def ended(words: list[str], delay: float, number: int = signal.SIGINT) -> tuple[int, str]:
    """Exit code and standard error of a command that gets a signal so many seconds after its start."""
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    time.sleep(delay)
    process.send_signal(number)
    _, error = process.communicate(timeout=120)
    return process.returncode, error


@pytest.fixture(scope="module")
def capture(tmp_path_factory) -> Path:
    scene = render_scene("sphere", size=64, lights=dome_lights(8))
    return write_archive(scene, tmp_path_factory.mktemp("scene") / "sphere.npz")


@pytest.mark.parametrize("delay", [0.0, 0.03, 0.1, 0.25, 0.5])
def test_control_c_at_any_moment(capture, tmp_path, delay):
    """While modules are imported, while photographs are read, while the dictionary is learnt."""
    words = ["solve", str(capture), "--out", str(tmp_path / "out"), "--set", "max_iter=100000"]
    code, error = ended(words, delay)
    assert code == 130 and "Traceback" not in error
    assert error.splitlines()[-1] == "Interrupted; nothing was left half-written."
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "delay", "beginning"),
    [
        ("SIGTERM", 0.05, "Terminated"),
        ("SIGHUP", 0.05, "The terminal was closed"),
        ("SIGHUP", 0.4, "The terminal was closed"),
        ("SIGQUIT", 0.4, "Quit"),
    ],
)
def test_other_signals_clean_up_too(capture, tmp_path, name, delay, beginning):
    """While modules are imported, and during the work."""
    number = getattr(signal, name)
    # A solve of this capture takes about a second on an idle machine.
    words = ["solve", str(capture), "--out", str(tmp_path / "out"), "--set", "max_iter=100000"]
    code, error = ended(words, delay, number)
    assert code == 128 + number
    assert error.splitlines()[-1] == f"{beginning}; nothing was left half-written."
    assert list(tmp_path.iterdir()) == []


def test_handlers_are_put_back():
    from photostereo.runtime.signals import orderly_signals

    inherited = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # ignored in a shell's background job
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM), sys.unraisablehook
    with orderly_signals():
        assert signal.getsignal(signal.SIGINT) is not before[0]
    after = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM), sys.unraisablehook
    signal.signal(signal.SIGINT, inherited)
    assert after == before


def test_an_interruption_in_a_finaliser_is_not_lost():
    """Python ignores exceptions there, and the work would go on."""
    script = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from photostereo.runtime import signals
from photostereo.runtime.signals import orderly_signals, work_begins
class Finalised:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
with orderly_signals():
    work_begins()
    later = signals._send_again
    def slow(number):
        signals._send_again = later
        later(number)
        end = time.monotonic() + 0.3
        while time.monotonic() < end:  # a busy machine: the signal comes back before the hook has ended
            pass
    if len(sys.argv) > 1:
        signals._send_again = slow
    try:
        Finalised()
        for _ in range(6000):
            time.sleep(0.01)
    except KeyboardInterrupt:
        sys.exit(7)
"""
    for words in ([], ["busy"]):
        done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True)
        assert done.returncode == 7, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("delay", [1.0, 3.0])
def test_control_c_while_a_sweep_starts(capture, tmp_path, delay):
    """Sent to the whole group, as a terminal does: the workers must not answer with tracebacks of their own."""
    # Noise makes every seed a scene of its own, so that no machine is through with the sweep before the signal.
    (tmp_path / "plan.toml").write_text(
        f'captures = ["{capture}"]\ncorruptions = [{{ gaussian = 0.02 }}]\nseeds = 2000\n'
        '[[methods]]\nname = "dlnv"\n[[methods]]\nname = "dlsr"\n'
    )
    script = tmp_path / "run.py"
    script.write_text(RUN.replace("with orderly", 'if __name__ == "__main__":\n  with orderly'))
    process = subprocess.Popen(
        [
            sys.executable,
            str(script),
            "sweep",
            str(tmp_path / "plan.toml"),
            "--out",
            str(tmp_path / "out"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    time.sleep(delay)
    os.killpg(process.pid, signal.SIGINT)
    _, error = process.communicate(timeout=200)
    assert (
        process.returncode == 130 and "Traceback" not in error and "KeyboardInterrupt" not in error
    )


def test_an_interruption_is_deferred_and_not_lost():
    from photostereo.runtime.signals import deferred_interrupt

    done = []

    def work():
        with deferred_interrupt():
            signal.raise_signal(signal.SIGINT)
            done.append("the block")
        done.append("beyond")

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            work()
    finally:
        signal.signal(signal.SIGINT, before)
    assert done == ["the block"]
