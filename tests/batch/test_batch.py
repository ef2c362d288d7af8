"""Many captures: killed workers, broken captures, resuming, folders that fill up."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from photostereo import load, solve
from photostereo.batch import find as watching
from photostereo.batch.find import Watch, find_captures, name_captures
from photostereo.batch.ledger import Ledger
from photostereo.batch.options import RunControl, RunOptions
from photostereo.batch.run import batch
from photostereo.batch.settings import check_settings, key_of, read_plan
from photostereo.batch.worker import run_capture
from photostereo.capture import write_archive, write_diligent
from photostereo.capture.options import ReadOptions
from photostereo.core.errors import CaptureError, ParameterError, PhotostereoError
from photostereo.pipeline.settings import Settings
from photostereo_lab.scenes import render_scene

PLAIN = Settings().changed(method="ls", surface=False, report=False)


@pytest.fixture(scope="module")
def one(tmp_path_factory) -> Path:
    """A capture as a file."""
    return write_archive(
        render_scene("sphere", size=32), tmp_path_factory.mktemp("one") / "sphere.npz"
    )


@pytest.fixture
def folder(one, tmp_path):
    """Makes a folder of so many captures; the last is broken."""

    def make(count: int) -> Path:
        place = tmp_path / "captures"
        place.mkdir()
        for number in range(count):
            (place / f"coin {number:02d}.npz").write_bytes(one.read_bytes())
        (place / f"coin {count - 1:02d}.npz").write_bytes(one.read_bytes()[:700])
        return place

    return make


class KillsAWorker(RunControl):
    """Kills a worker of this run, once some captures are done; other tests may have workers of their own."""

    def __init__(self, after):
        self.after, self.killed, self.others = after, None, set(self.workers())

    def workers(self):
        import psutil

        children = psutil.Process().children()
        return [child.pid for child in children if "local_worker" in " ".join(child.cmdline())]

    def progress(self, now):
        if self.killed is None and now.done >= self.after:
            self.killed = next(pid for pid in self.workers() if pid not in self.others)
            os.kill(self.killed, signal.SIGKILL)


def test_ten_captures_one_broken_one_worker_killed_one_not_utf8(folder, tmp_path):
    place, out = folder(10), tmp_path / "out"
    (place / "coin 00.npz").rename(place / os.fsdecode(b"coin \xff.npz"))
    control = KillsAWorker(after=2)
    end = batch([place], out, PLAIN, options=RunOptions(workers=2), control=control)
    assert control.killed is not None
    assert (end.total, end.done, end.failed) == (10, 9, 1)
    rows = Ledger(out).rows()
    lines = [
        json.loads(line) for line in (out / "batch.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert (
        sorted(line["name"] for line in lines)
        == sorted(rows)
        == ["coin", *(f"coin-{n:02d}" for n in range(1, 10))]
    )
    broken = rows.pop("coin-09")
    assert (broken["status"], broken["code"]) == ("failed", "unreadable-file")
    assert "coin 09.npz" in broken["error"]
    for name, row in rows.items():
        summary = json.loads((out / name / "summary.json").read_text(encoding="utf-8"))
        assert summary["batch"]["key"] == row["key"]
        assert np.load(out / name / "normals.npy").shape == (32, 32, 3)
        assert row["figures"]["residual"] >= 0
        assert row["figures"]["expected"] == pytest.approx(
            summary["expected_error"]["degrees"], abs=0.006
        )
    # Nothing half-written and nothing of the broken one.
    allowed = {*rows, "batch.sqlite", "batch.jsonl", "index.html"}
    assert {path.name for path in out.iterdir()} <= allowed
    page = (out / "index.html").read_text(encoding="utf-8")
    assert page.index("coin-09") < page.index("coin-01")

    # Again: nothing is solved a second time; the failed one only if asked for.
    again = batch([place], out, PLAIN, options=RunOptions(workers=2))
    assert (again.done, again.failed, again.failed_earlier) == (9, 1, 1)
    assert Ledger(out).rows() == {**rows, "coin-09": broken}


def run_here(one: Path, out: Path, settings: Settings = PLAIN, key: str = "k"):
    return run_capture(one, out, key, settings, ["photostereo", "batch"])


def test_results_whose_worker_died_before_it_reported_are_not_made_again(one, tmp_path):
    first = run_here(one, tmp_path / "a")
    stamp = (tmp_path / "a" / "normals.npy").stat().st_mtime_ns
    again = run_here(one, tmp_path / "a")
    assert (tmp_path / "a" / "normals.npy").stat().st_mtime_ns == stamp
    assert (again.status, again.seconds, again.figures) == ("done", first.seconds, first.figures)
    run_here(one, tmp_path / "a", key="other settings")
    assert (tmp_path / "a" / "normals.npy").stat().st_mtime_ns > stamp


def test_a_capture_that_is_not_loaded_is_solved_from_disk(tmp_path, monkeypatch):
    from photostereo.pipeline import budget

    folder = write_diligent(render_scene("sphere", size=96), tmp_path / "sphere")
    whole = run_here(folder, tmp_path / "whole")
    monkeypatch.setattr(budget, "LOADED", 0)
    parts = run_here(folder, tmp_path / "parts")
    assert (whole.status, parts.status) == ("done", "done"), parts.error
    assert "residual" in whole.figures and "residual" not in parts.figures
    first, second = (np.load(tmp_path / name / "normals.npy") for name in ("whole", "parts"))
    np.testing.assert_allclose(first, second, atol=1e-4)


def test_what_belongs_to_the_user_stays(one, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "thesis.tex").write_text("x", encoding="utf-8")
    outcome = run_here(one, tmp_path / "a")
    assert (outcome.status, outcome.code) == ("failed", "not-our-folder")
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["thesis.tex"]


def test_keys_change_with_files_and_settings(one, tmp_path):
    lights = tmp_path / "lights.csv"
    lights.write_text("1", encoding="utf-8")
    base = Settings().changed(method="ls", lights=lights)
    key = key_of(base, "f")
    lights.write_text("2", encoding="utf-8")
    assert len({key, key_of(base, "f"), key_of(base, "g"), key_of(PLAIN, "f")}) == 4
    moved = tmp_path / "elsewhere.csv"
    moved.write_text("1", encoding="utf-8")
    assert key_of(Settings().changed(method="ls", lights=moved), "f") == key


def test_every_folder_counts_and_names_are_unique(one, tmp_path):
    for name in ("b/x", "a/x", ".hidden", "out"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "c.npz").write_bytes(one.read_bytes())
    (tmp_path / "notes.txt").write_text("no capture", encoding="utf-8")
    found = find_captures([tmp_path], out=tmp_path / "out")
    assert [path.name for path in found] == ["a", "b", "c.npz"]
    taken: dict[str, str] = {}
    named = name_captures([tmp_path / "a" / "x", tmp_path / "b" / "x"], taken)
    assert list(named) == ["x", "x-2"]
    # A capture keeps the name that it was given.
    assert list(name_captures([tmp_path / "b" / "x"], taken)) == ["x-2"]
    with pytest.raises(CaptureError) as caught:
        find_captures([tmp_path / "gone"], out=tmp_path)
    assert caught.value.code == "missing-capture"


def test_pictures_and_results_beside_captures_are_no_captures(one, tmp_path):
    (tmp_path / "coin").mkdir()
    (tmp_path / "coin-lights.png").write_bytes(b"x")  # as the command `lights` leaves it
    run_here(one, tmp_path / "coin-ls")
    assert find_captures([tmp_path], out=tmp_path / "out") == [tmp_path / "coin"]


@pytest.mark.parametrize(("shots", "names"), [(4, ["coin"]), (3, ["chrome", "coin"])])
def test_the_ball_of_a_capture_is_no_capture(shots, names, tmp_path):
    for name, count in (("coin", 4), ("chrome", shots)):
        (tmp_path / name).mkdir()
        for number in range(count):
            (tmp_path / name / f"{number + 1}.png").write_bytes(b"x")
    assert [path.name for path in find_captures([tmp_path], out=tmp_path / "out")] == names


def test_a_folder_without_captures_is_an_error_and_makes_nothing(tmp_path):
    for code, settings in (
        ("no-captures", PLAIN),
        ("unknown-method", Settings().changed(method="lss")),
    ):
        with pytest.raises(PhotostereoError) as caught:
            batch([tmp_path], tmp_path / "out", settings)
        assert caught.value.code == code
    assert list(tmp_path.iterdir()) == []


def test_a_plan(tmp_path):
    plan = tmp_path / "plan.toml"
    (tmp_path / "rig.csv").write_text("", encoding="utf-8")
    plan.write_text(
        'captures = ["coins"]\nmethod = "pls"\nlights = "rig.csv"\nparameters = { p = 3 }\nreport = false\n',
        encoding="utf-8",
    )
    places, settings = read_plan(plan)
    assert places == [tmp_path / "coins"]
    assert settings == Settings().changed(
        method="pls", parameters={"p": 3}, lights=str(tmp_path / "rig.csv"), report=False
    )


def test_captures_are_read_as_by_solve(one, tmp_path):
    """Axes of the light file, from a plan and from the command line, which goes before it."""
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f'captures = ["{one}"]\nlights_axes = "x,-y,z"\ncrop = [4, 4, 16, 20]\nreverse_lights = true\n',
        encoding="utf-8",
    )
    _, settings = read_plan(plan)
    assert settings.reading == ReadOptions(
        lights_axes="x,-y,z", reverse_lights=True, crop=(4, 4, 16, 20)
    )
    read = replace(PLAIN, reading=settings.reading)
    assert key_of(read, "f") != key_of(PLAIN, "f")
    assert run_here(one, tmp_path / "a", read).status == "done"
    expected = solve(
        load(one, lights_axes="x,-y,z", reverse_lights=True, crop=(4, 4, 16, 20)), "ls"
    )
    np.testing.assert_array_equal(np.load(tmp_path / "a" / "normals.npy"), expected.normals)
    with pytest.raises(ParameterError) as caught:
        check_settings(PLAIN.changed(ambient="gone.png"))
    assert (caught.value.code, caught.value.values["option"]) == ("missing-file", "ambient")
    check_settings(PLAIN.changed(mask="bright"))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("captures = [", "invalid-toml"),
        ('method = "ls"', "invalid-plan"),
        ("captures = []", "invalid-plan"),
        ('captures = ["a"]\nmetod = "ls"', "invalid-plan"),
        ('captures = ["a"]\nxyzzy = "ls"', "invalid-plan"),
        ('captures = ["a"]\nseed = true', "invalid-plan"),
        ('captures = ["a"]\nreport = "yes"', "invalid-plan"),
        ('captures = ["a"]\ncrop = [1, 2]', "bad-option"),
        ('captures = ["a"]\ncircle = "1,2,3"', "invalid-plan"),
    ],
)
def test_a_bad_plan_is_refused(tmp_path, text, code):
    plan = tmp_path / "plan.toml"
    plan.write_text(text, encoding="utf-8")
    with pytest.raises(ParameterError) as caught:
        read_plan(plan)
    assert caught.value.code == code
    assert not str(caught.value).endswith(("..", "?."))


def test_a_capture_is_taken_when_its_files_stand_still(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(watching.time, "monotonic", lambda: now[0])
    place = tmp_path / "coin"
    watch = Watch(
        lambda: [place] if place.exists() else [], quiet=5, every=1, idle=20, _last_news=0.0
    )
    seen = {}
    for step in range(40):
        now[0] = float(step)
        if step == 2:
            place.mkdir()
        if step in (3, 5, 8):  # photographs arrive
            (place / f"{step}.png").write_bytes(b"x" * step)
        seen[step] = watch.ready()
    taken = [step for step, found in seen.items() if found]
    assert taken == [13]  # five seconds after the last change was seen
    assert seen[13] == [place]
    assert seen[33] == []
    assert seen[34] is None


def test_watch_solves_what_comes_and_ends(one, tmp_path, monkeypatch):
    place, out = tmp_path / "in", tmp_path / "out"
    place.mkdir()
    said = []

    class Copies(RunControl):
        """A capture comes when the watch has begun, another when the first is done."""

        def progress(self, now):
            said.append(now)
            coming = place / f"{now.total}.npz"
            if now.total < 2 and now.done == now.total and not coming.exists():
                coming.write_bytes(one.read_bytes())

    monkeypatch.setattr("photostereo.batch.run.Watch", partial(Watch, every=0.1))
    seconds = {"quiet_seconds": 0.2, "idle_seconds": 1.5}
    end = batch(
        [place], out, PLAIN, options=RunOptions(workers=1), watch=True, control=Copies(), **seconds
    )
    assert (end.total, end.done) == (2, 2)
    assert sorted(Ledger(out).rows()) == ["0", "1"]


def test_a_pipe_in_the_place_of_the_records_is_refused(tmp_path):
    os.mkfifo(tmp_path / "batch.jsonl")
    with pytest.raises(PhotostereoError) as caught:
        Ledger(tmp_path)
    assert caught.value.code == "not-a-file"
