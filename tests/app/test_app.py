"""The way of a capture through the app, without a browser."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

import photostereo as ps
from photostereo.app import protocol, session, user_folders
from photostereo.app.arrange import arrange
from photostereo.app.findings import grouped
from photostereo.app.process import end_error
from photostereo.app.python_code import is_outdated, python_call, solve_settings
from photostereo.app.session import EVENTS, Session
from photostereo.app.shared_state import PARTS, PageState, SharedState
from photostereo.app.small_copies import SmallCopies
from photostereo.app.tasks import HANDLERS, Tasks
from photostereo.app.worker import Reporter
from photostereo.capture import write_archive
from photostereo.capture.edits import EDITS_FILE, Edits, read_edits, write_edits
from photostereo.capture.options import ReadOptions
from photostereo.core.control import Cancelled
from photostereo.core.errors import ParameterError
from photostereo.core.findings import Finding
from photostereo.diagnosis.advice import remarks
from photostereo.io.atomic import write_bytes
from photostereo.photographs.developed import DevelopedFrames
from photostereo_lab.scenes import render_scene

from .conftest import BALL, run_coroutine


def angle_to_truth(lights, jpegs) -> float:
    truth = np.loadtxt(jpegs.parent / "truth.txt")
    cosine = np.einsum(
        "ij,ij->i", np.array(lights["directions"]), truth[: len(lights["directions"])]
    )
    return float(np.degrees(np.arccos(np.clip(cosine, -1, 1))).max())


def test_from_a_folder_to_a_result(served, folder, jpegs):
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    desk = served.open(folder)
    board = served.settled(desk)
    assert [about["name"] for about in board["photographs"]] == [
        f"IMG_{n}.JPG" for n in range(1, 9)
    ]
    assert (
        served.client.get(f"/api/c/{desk}/picture/thumb/0").headers["content-type"] == "image/jpeg"
    )
    assert board["lights"]["kind"] == "ball" and angle_to_truth(board["lights"], jpegs) < 2
    x, y, radius = board["lights"]["balls"][0]["circle"]
    assert np.hypot(x - BALL[0], y - BALL[1]) < 1 and abs(radius - BALL[2]) < 1
    assert 0.05 < board["mask"]["share"] < 0.6

    # Opening it again, in another tab, is the same desk; the state can be read as events.
    assert served.open(folder) == desk
    with served.client.stream("GET", f"/api/c/{desk}/events") as events:
        first = json.loads(
            next(line for line in events.iter_lines() if line.startswith("data:"))[5:]
        )
    assert first["capture"]["files"] == board["capture"]["files"]

    assert served.client.post(f"/api/c/{desk}/solve", json={"method": "ls"}).status_code == 200
    assert (
        served.client.post(f"/api/c/{desk}/solve", json={"method": "ls"}).status_code == 400
    )  # one at a time
    board = served.wait(desk, lambda b: b["job"]["state"] not in ("running", "canceling"))
    assert board["job"]["state"] == "done", board["job"]
    result = board["results"][0]
    assert result["method"] == "ls" and "mesh.glb" in result["files"]
    assert result["command"].startswith("photostereo solve ") and "--method ls" in result["command"]
    glb = served.client.get(f"/api/c/{desk}/file/{result['name']}/mesh.glb")
    assert glb.content[:4] == b"glTF" and "attachment" in glb.headers["content-disposition"]
    assert (
        served.client.get(f"/api/c/{desk}/file/{result['name']}/..%2f..%2fIMG_1.JPG").status_code
        == 404
    )
    address = served.address
    page = served.client.get(f"{address.results_origin}/r/{result['key']}/report.html")
    assert page.status_code == 200 and 'data-tiles="tiles"' in page.text
    # The lights can be kept; the object stays what it was.
    assert served.client.post(f"/api/c/{desk}/save-lights").json() == {"file": "lights.csv"}
    assert read_edits(folder).mask == "auto"
    # The same as from Python, and nothing of the user's was touched.
    normals = np.load(folder / "results" / "ls" / "normals.npy")
    (folder / "lights.csv").unlink()
    assert np.array_equal(normals, ps.Pipeline(folder, method="ls").solution.normals)
    assert {name: (folder / name).read_bytes() for name in before} == before


def test_corrections_take_effect_and_are_kept(served, folder, jpegs):
    desk = served.open(folder)
    board = served.settled(desk)
    version = board["glance"]["version"]
    answer = served.client.post(
        f"/api/c/{desk}/edits",
        json={"moved_lights": {"IMG_1.JPG": [0.6, 0, 0.8]}},
    )
    assert answer.status_code == 200
    answer = served.client.post(f"/api/c/{desk}/edits", json={"leave_out": ["IMG_3.JPG"]})
    assert answer.json()["moved_lights"] == {"IMG_1.JPG": [0.6, 0, 0.8]}
    board = served.wait(
        desk,
        lambda b: b["glance"]["version"] != version and "IMG_3.JPG" not in b["lights"]["files"],
    )
    assert "IMG_3.JPG" not in board["lights"]["files"]
    assert np.allclose(board["lights"]["directions"][0], [0.6, 0, 0.8], atol=1e-6)
    assert read_edits(folder).leave_out == ("IMG_3.JPG",)
    assert len(ps.load(folder, mask="full")) == 7

    # A circle beside the ball gives other lights, without being kept.
    wrong = served.client.post(
        f"/api/c/{desk}/circle", json={"circle": [BALL[0] + 6, BALL[1], BALL[2]]}
    )
    assert wrong.status_code == 200
    found = wrong.json()["lights"]["directions"][1]
    assert np.degrees(np.arccos(np.dot(found, board["lights"]["directions"][1]))) > 4
    assert read_edits(folder).circle is None

    painted = np.zeros(board["opening"]["small"][::-1], np.uint8)
    painted[50:150, 40:140] = 255
    version = board["mask"]["version"]
    answer = served.client.put(
        f"/api/c/{desk}/mask", content=cv2.imencode(".png", painted)[1].tobytes()
    )
    assert answer.json() == {"mask": "photostereo-mask.png"}
    board = served.wait(desk, lambda b: b["mask"]["version"] != version)
    assert board["mask"]["share"] == pytest.approx(10_000 / 60_000, abs=0.02)
    assert ps.load(folder).mask.sum() == pytest.approx(10_000, rel=0.02)

    for bad in (
        {"leave_out": ["../x.jpg"]},
        {"leave_out": [f"IMG_{n}.JPG" for n in range(1, 8)]},
        {"mask": "../../secret.png"},
        {"circle": [1, 2]},
        {"moved_lights": {"IMG_1.JPG": [0, 0, 0]}},
        {"moved_lights": {"IMG_1.JPG": [1e300, 0, 1]}},
        {"circle": [1e308, 1e308, 1e308]},
        {"circle": [1, 2, 1e-300]},
        {"mask": "no-such-mask.png"},
        {"mask": "\\windows\\x.png"},
        {"mask": "\ud800.png"},
        {"lights": "no-such-lights.csv"},
        {"unknown": 1},
        {"leave_out": 5},
    ):
        before = (folder / EDITS_FILE).read_bytes()
        body = json.dumps(bad).encode()
        answer = served.client.post(f"/api/c/{desk}/edits", content=body)
        assert answer.status_code == 400 and answer.json()["code"], bad
        assert (folder / EDITS_FILE).read_bytes() == before
    for bad in (b'{"scale": NaN}', b'{"method": 5}', b'{"parameters": {"p": []}}'):
        assert served.client.post(f"/api/c/{desk}/solve", content=bad).status_code == 400, bad
    assert served.client.put(f"/api/c/{desk}/mask", content=b"no picture").status_code == 400


def test_a_solve_that_is_cancelled_or_killed_leaves_nothing(served, folder):
    desk = served.open(folder)
    served.wait(desk, lambda b: b["opening"]["state"] == "done")
    solve, job = f"/api/c/{desk}/solve", lambda board: board["job"]
    assert served.client.post(solve, json={"method": "dlnet"}).status_code == 200
    served.wait(desk, lambda b: job(b)["stages"])
    served.client.post(f"/api/c/{desk}/cancel")
    served.wait(desk, lambda b: job(b)["state"] == "canceled")
    served.client.post(solve, json={"method": "dlnet"})
    os.kill(
        served.wait(desk, lambda b: job(b)["stages"] and job(b).get("pid"))["job"]["pid"],
        signal.SIGKILL,
    )
    board = served.wait(desk, lambda b: job(b)["state"] == "failed")
    assert board["job"]["error"]["code"] == "worker-out-of-memory"
    assert not list((folder / "results").glob("*/*")) and board["results"] == []
    # Examining the photographs was put off, not forgotten.
    assert served.settled(desk)["lights"]["checked"]


def test_a_correction_shows_before_lights_are_estimated_again(folder, tmp_path):
    write_edits(folder, Edits(lights="estimate"))
    events, tasks = [], Tasks()
    control = Reporter(lambda event, **facts: events.append((event, facts)))
    place = (str(folder), str(tmp_path / "work"))
    tasks.run(protocol.OpenFolder(*place), control)
    tasks.run(protocol.Look(*place), control)
    found = next(facts["lights"] for event, facts in events if event == "lights")
    assert found["kind"] == "estimated"
    events.clear()
    write_edits(folder, Edits(lights="estimate", leave_out=("IMG_3.JPG",)))
    tasks.run(protocol.Look(*place), control)
    told = [
        event if event != "progress" else facts["stages"][-1]["stage"] for event, facts in events
    ]
    assert told.index("glance") < told.index("estimating lights")
    lights = [facts["lights"] for event, facts in events if event == "lights"]
    assert [one["kind"] for one in lights] == ["estimated", "estimated"]
    kept = [place for place, name in enumerate(found["files"]) if name != "IMG_3.JPG"]
    assert np.allclose(lights[0]["directions"], np.array(found["directions"])[kept], atol=1e-4)


def looked_at(folder, work) -> dict[str, dict]:
    """The last of each kind of event after a folder was opened."""
    events, tasks = {}, Tasks()
    control = Reporter(lambda event, **facts: events.update({event: facts.get(event)}))
    tasks.run(protocol.OpenFolder(str(folder), str(work)), control)
    tasks.run(protocol.Look(str(folder), str(work)), control)
    return events


def test_the_app_says_what_the_terminal_says(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("photostereo.app.small_copies.MOST_PIXELS", 20_000)  # a third
    moved = cv2.imread(str(folder / "IMG_4.JPG"))
    cv2.imwrite(
        str(folder / "IMG_4.JPG"), np.roll(moved, 7, axis=1), [cv2.IMWRITE_JPEG_QUALITY, 95]
    )
    events = looked_at(folder, tmp_path / "work")
    pipeline = ps.Pipeline(folder)
    capture, diagnosis = pipeline.capture, pipeline.examined
    lights, said = events["lights"], events["findings"]
    assert [finding["text"] for finding in said["general"]] == [
        finding.rendered("app") for finding in remarks(capture, diagnosis.findings)
    ]
    by_code = {finding["code"]: finding["values"] for finding in said["general"]}
    assert by_code["camera-moved"]["pixels"] == pytest.approx(7, abs=0.5)
    assert not by_code.keys() & {"displaced-photographs", "no-problems"} and "eight-bits" in by_code
    assert said["photographs"]["IMG_4.JPG"] == ["moved back"]
    # Position and accuracy of the ball are those of the photographs, not of their small copies.
    ball = capture.origin.calibration.balls[0].circle
    assert lights["balls"][0]["circle"] == (ball.x, ball.y, ball.radius)
    assert lights["accuracy"] == capture.lights.expected_error.max() and lights["checked"]
    assert lights["source"] == capture.lights.source[0]
    assert np.array_equal(lights["directions"], capture.lights.directions)
    assert events["mask"]["share"] == capture.mask.mean()


def test_previews_have_the_lights_of_the_photographs(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("photostereo.app.small_copies.MOST_PIXELS", 20_000)
    events, tasks = [], Tasks()
    control = Reporter(lambda event, **facts: events.append((event, facts)))
    place = (str(folder), str(tmp_path / "work"))
    tasks.run(protocol.OpenFolder(*place), control)
    tasks.run(protocol.Look(*place), control)
    capture = ps.Pipeline(folder).capture
    shown = tasks.open.corrected(control)
    assert np.allclose(shown.lights.directions, capture.lights.directions, atol=1e-5)
    assert np.allclose(shown.lights.expected_error, capture.lights.expected_error, atol=0.01)
    events.clear()
    tasks.run(protocol.Look(*place, whole=False), control)  # as during a solve
    assert [event for event, _ in events if event != "progress"] == ["lights", "mask", "glance"]


def test_photographs_do_not_stay_in_memory_if_their_examination_is_canceled(
    folder, tmp_path, monkeypatch
):
    tasks, control = Tasks(), Reporter(lambda event, **facts: None)
    place = (str(folder), str(tmp_path / "work"))
    tasks.run(protocol.OpenFolder(*place), control)

    def cancel(capture, **others):
        assert capture.in_memory
        raise Cancelled

    with monkeypatch.context() as patch:
        patch.setattr("photostereo.pipeline.pipeline.diagnose", cancel)
        with pytest.raises(Cancelled):
            tasks.run(protocol.Look(*place), control)
    whole = tasks.open.whole
    assert not whole.is_current("loaded") and not whole.is_current("stack")
    tasks.run(protocol.Look(*place), control)
    monkeypatch.setattr(DevelopedFrames, "all", lambda *given: pytest.fail("read again"))
    tasks.run(protocol.Look(*place), control)  # nothing has changed


def test_estimated_lights_are_a_problem_as_on_the_page(folder, tmp_path):
    write_edits(folder, Edits(lights="estimate"))
    events = looked_at(folder, tmp_path / "work")
    first = events["findings"]["general"][0]
    assert (first["code"], first["severity"]) == ("lights-estimated", "problem")
    assert (
        events["lights"]["warnings"] and events["lights"]["accuracy"] == first["values"]["degrees"]
    )


def test_a_worker_that_was_killed_is_replaced(served, folder):
    desk = served.open(folder)
    board = served.settled(desk)
    version = board["glance"]["version"]
    worker = served.state.open_sessions[desk].worker
    os.kill(worker.pid, signal.SIGKILL)
    while worker._process.returncode is None:  # until then a task would still go to the dead one
        time.sleep(0.01)
    served.client.post(f"/api/c/{desk}/edits", json={"leave_out": ["IMG_2.JPG"]})
    served.wait(desk, lambda b: b["glance"]["version"] != version)


def test_what_is_wrong_with_a_folder_is_said(served, folder, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    board = served.wait(served.open(empty), lambda b: b["opening"]["state"] == "failed")
    assert board["opening"]["error"]["code"] == "no-photographs"
    (folder / "lights.csv").write_text("file,x,y,z\nIMG_1.JPG,0,0,1\nIMG_1.JPG,0,0.6,0.8\n")
    board = served.wait(served.open(folder), lambda b: b["looking"]["state"] == "failed")
    assert len(board["photographs"]) == 8 and board["glance"]
    assert "lights.csv" in board["looking"]["error"]["message"]
    (folder / EDITS_FILE).write_text("{")
    assert served.client.post(
        "/api/open", json={"path": str(tmp_path / "nowhere")}
    ).status_code in (400, 404)


def test_damaged_results_and_light_files_of_another_length_open_all_the_same(folder):
    from photostereo.app.open_capture import find_photographs

    (folder / "lights.txt").write_text("0 0 1\n0 0.5 1\n")
    found = find_photographs(folder)
    assert len(found.files) == 8 and found.lights is None
    for name, text in (("a", "5.0"), ("b", '{"seconds": "long"}'), ("c", "{")):
        (folder / "results" / name).mkdir(parents=True)
        (folder / "results" / name / "summary.json").write_text(text)
    assert Session(folder).state.results == []


def test_a_picture_that_is_replaced_while_it_is_read_is_whole(served, folder):
    desk = served.open(folder)
    served.settled(desk)
    file, short, long = (
        served.state.open_sessions[desk].work / "mask.png",
        b"short",
        1_000_000 * b"long",
    )
    write_bytes(file, short)
    ended = threading.Event()

    def replace_it() -> None:
        while not ended.is_set():
            write_bytes(file, short)
            write_bytes(file, long)

    thread = threading.Thread(target=replace_it)
    thread.start()
    try:
        for _ in range(60):
            assert served.client.get(f"/api/c/{desk}/picture/mask/0").content in (short, long)
    finally:
        ended.set()
        thread.join()


def test_a_damaged_photograph_is_a_fault_and_nothing_else(served, folder):
    (folder / "IMG_5.JPG").write_bytes(b"\xff\xd8 no picture")
    board = served.settled(served.open(folder))
    assert [shot["name"] for shot in board["photographs"] if "error" in shot] == ["IMG_5.JPG"]
    assert "no-such-photograph" not in json.dumps(board["findings"])


def test_dropped_photographs_become_a_capture(served, jpegs):
    drop = served.client.post("/api/drop", json={"name": "my owl"}).json()
    for file in sorted(jpegs.glob("*.JPG")):
        assert (
            served.client.put(
                f"/api/drop/{drop['drop']}/{file.name}", content=file.read_bytes()
            ).status_code
            == 200
        )
    desk = served.client.post(f"/api/drop/{drop['drop']}/done").json()["id"]
    board = served.wait(desk, lambda b: b["opening"]["state"] == "done")
    assert board["capture"]["name"] == "my-owl" and len(board["photographs"]) == 8
    start = served.client.get("/api/start").json()
    assert start["recent"][0]["name"] == "my-owl"
    listed = served.client.get("/api/browse", params={"path": drop["folder"]}).json()
    assert listed["photographs"] == 8 and listed["is_capture"]


def test_files_that_are_not_accepted_leave_no_folder(served, jpegs):
    drop = served.client.post("/api/drop", json={"name": "only films"}).json()
    address, folder = f"/api/drop/{drop['drop']}", Path(drop["folder"])
    for name in ("film.mp4", "film.jpg"):
        assert served.client.put(f"{address}/{name}", content=b"no picture").status_code == 400
        assert not folder.exists()
    picture = (jpegs / "IMG_1.JPG").read_bytes()
    assert served.client.put(f"{address}/IMG_1.JPG", content=picture).status_code == 200
    assert served.client.put(f"{address}/film.jpg", content=b"no picture").status_code == 400
    assert [file.name for file in folder.iterdir()] == ["IMG_1.JPG"]
    # One photograph is not enough: the message names the capture, not its path.
    board = served.wait(served.open(folder), lambda b: b["looking"]["state"] == "failed")
    error = board["looking"]["error"]
    assert error["code"] == "too-few-photographs" and str(folder) not in error["message"]


def test_photographs_that_arrive_together_are_one_capture(served, jpegs):
    drop = served.client.post("/api/drop", json={"name": "together"}).json()
    address, folder = f"/api/drop/{drop['drop']}", Path(drop["folder"])
    first, second = ((jpegs / f"IMG_{n}.JPG").read_bytes() for n in (1, 2))

    def slowly():
        yield first[:1000]
        until = time.monotonic() + 60
        while not list(folder.glob(".*.part")) and time.monotonic() < until:
            time.sleep(0.01)
        assert served.client.put(f"{address}/IMG_2.JPG", content=second).status_code == 200
        yield first[1000:]

    assert served.client.put(f"{address}/IMG_1.JPG", content=slowly()).status_code == 200
    assert sorted(file.name for file in folder.iterdir()) == ["IMG_1.JPG", "IMG_2.JPG"]


def test_doubts_about_a_ball_refer_to_what_a_shell_shows():
    for code in ("balls-disagree", "shading-disagrees"):
        doubt = Finding(code, remedy="check-ball", names="IMG_1.JPG", degrees=20.0, usual=1.0)
        assert "on the ball" in doubt.rendered(
            "app"
        ) and "calibration picture" not in doubt.rendered("app")
        assert "calibration picture" in doubt.rendered("terminal")


def test_an_export_is_complete_or_not_there(tmp_path, monkeypatch):
    scene = render_scene("sphere", size=24)
    ps.save(ps.solve(scene, "ls"), tmp_path / "ls", report=False, surface=None)
    out, tasks, control = tmp_path / "ls-obj", Tasks(), Reporter(lambda event, **facts: None)
    task = protocol.Export(str(tmp_path / "ls"), str(out), ["obj"])

    def stopped(folder, *args, **options):
        (folder / "half.obj").write_text("v 0 0")
        raise OSError("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr("photostereo.results.export.export_result", stopped)
        with pytest.raises(OSError, match="full"):
            tasks.run(task, control)
    assert [path.name for path in tmp_path.iterdir()] == ["ls"]
    assert tasks.run(task, control)["files"] and any(out.glob("*.obj"))
    tasks.run(task, control)  # once more, over the first


@pytest.fixture(scope="module")
def places_of_fixtures() -> tuple[Path, Path]:
    return user_folders.state_folder(), user_folders.captures_folder()


def test_fixtures_keep_away_from_the_folders_of_the_user(places_of_fixtures, monkeypatch):
    for name in ("STATE", "CAPTURES"):
        monkeypatch.delenv(f"PHOTOSTEREO_{name}")
    assert not {user_folders.state_folder(), user_folders.captures_folder()} & set(
        places_of_fixtures
    )


def test_parameters_are_those_of_the_command_line():
    settings, words = solve_settings({"method": "pls", "parameters": {"p": "3"}, "scale": 0.5})
    assert settings == {"method": "pls", "parameters": {"p": 3}, "scale": 0.5}
    assert words == ["--method", "pls", "--set", "p=3", "--scale", "0.5"]
    with pytest.raises(ParameterError):
        solve_settings({"method": "pls", "parameters": {"q": "3"}})
    with pytest.raises(ParameterError):
        solve_settings({"method": "rm -rf"})


def test_the_page_declares_the_names_of_the_server():
    text = (Path(session.__file__).parent / "static" / "api.js").read_text(encoding="utf-8")
    declared = text[text.index("@typedef {object} PageState") : text.index("Refusal */")]
    assert set(re.findall(r"@property .*?\} (\w+)", declared, re.DOTALL)) == set(PARTS)
    (names,) = re.findall(r'@typedef \{("[^}]*")\} ActionName', text)
    assert set(re.findall(r'"([^"]+)"', names)) == set(session.ACTIONS)


def test_every_task_has_a_handler():
    assert set(HANDLERS) == set(protocol.TASKS.values())
    assert set(EVENTS) <= set(HANDLERS)


def test_python_code_has_every_option_of_a_result(tmp_path, monkeypatch):
    scene = write_archive(render_scene("sphere", size=24), tmp_path / "sphere.npz")
    options = {
        "mask": "full",
        "lights_axes": "x,-y,z",
        "crop": (2, 3, 16, 16),
        "leave_out": ("3.png", "it's.png"),
        "lights_strengths": "given",
        "images": 9,
        "seed": 4,
        "strengths": "given",
    }
    method = {"method": "dlnv", "parameters": {"seed": 5, "max_iter": 2, "patch": [4, 4, 3]}}
    ps.Pipeline(scene, report=False, surface=False, **options, **method).write(tmp_path / "result")
    summary = json.loads((tmp_path / "result" / "summary.json").read_text())
    code = python_call(scene, summary, str(tmp_path / "again"))
    called = []
    monkeypatch.setattr(ps, "Pipeline", lambda *given, **named: called.append((given, named)))
    with pytest.raises(AttributeError):  # of what the stand-in returns
        exec(code)
    given, named = called[0]
    assert given == (str(scene),)
    monkeypatch.undo()
    again = ps.Pipeline(*given, **named, report=False, surface=False)
    first = ps.Pipeline(scene, report=False, surface=False, **options, **method)
    chosen = again.settings.parameters  # also λ and μ, which the method settled
    assert first.settings.parameters.items() <= chosen.items()
    assert again.settings == replace(first.settings, parameters=chosen)
    assert (again.settings.seed, chosen["seed"]) == (4, 5)


def test_an_archive_is_opened_as_a_folder(served, tmp_path):
    scene = render_scene("sphere", size=64)
    archive = write_archive(scene, tmp_path / "my sphere.npz")
    listed = served.client.get("/api/browse", params={"path": str(tmp_path)}).json()
    assert listed["files"] == ["my sphere.npz"]
    desk = served.open(archive)
    board = served.settled(desk)
    assert board["capture"]["name"] == "sphere"
    assert len(board["photographs"]) == len(scene) and board["lights"]["kind"] == "file"
    assert np.allclose(board["lights"]["directions"], scene.lights.directions, atol=1e-6)
    assert served.open(archive) == desk  # not a second copy
    (tmp_path / "broken.npz").write_bytes(archive.read_bytes()[:500])
    answer = served.client.post("/api/open", json={"path": str(tmp_path / "broken.npz")})
    assert (answer.status_code, answer.json()["code"]) == (400, "unreadable-file")


def test_a_page_is_told_why_there_will_be_no_more_news():
    state = SharedState(PageState({"name": "owl"}, {}, {}, {}))

    async def read() -> list[str]:
        asyncio.get_running_loop().call_later(0.3, state.end, "app")
        return [message async for message in state.messages()]

    first, last = run_coroutine(asyncio.wait_for(read(), 10))
    assert json.loads(first.removeprefix("data:"))["capture"] == {"name": "owl"}
    assert last.startswith("event: end\n") and '"app"' in last
    with pytest.raises(KeyError):
        state.put(captur={})


def test_circles_follow_the_scale_of_the_copies():
    copies = SmallCopies(Path(), "coin", (400, 600), (100, 150))
    assert copies.scaled((300, 100, 40)) == (74.625, 24.625, 10.0)


def test_why_a_process_ended():
    assert (end_error(-9)["code"], end_error(3)["code"]) == (
        "worker-out-of-memory",
        "worker-stopped",
    )


def pictures_of(jpegs, count=4, scale=1.0) -> list[bytes]:
    """The first photographs, perhaps smaller."""
    encoded = []
    for file in sorted(jpegs.glob("*.JPG"))[:count]:
        picture = cv2.resize(cv2.imread(str(file)), None, fx=scale, fy=scale)
        encoded.append(cv2.imencode(".jpg", picture)[1].tobytes())
    return encoded


def dropped(folder: Path, files: dict[str, bytes]) -> list[str]:
    """What becomes of files, by their paths, when they are dropped together."""
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    arrange(folder)
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*"))


def test_object_and_ball_that_are_dropped_together_are_told_apart(jpegs, tmp_path):
    owl, ball = pictures_of(jpegs), pictures_of(jpegs, scale=0.5)
    whole = [*(f"ball/{n}.jpg" for n in range(4)), *(f"{n}.jpg" for n in range(4))]
    inside = {f"{place}/{n}.jpg": pictures[n] for place, pictures in (("owl", owl), ("boule", ball))
              for n in range(4)}  # fmt: skip
    assert dropped(tmp_path / "folders", inside) == sorted(whole)
    nested = {f"shoot/{path}": content for path, content in inside.items()}
    assert dropped(tmp_path / "nested", nested) == sorted(whole)
    harvard = {path.replace("boule", "LightProbe-1"): content for path, content in inside.items()}
    names = dropped(tmp_path / "harvard", {**harvard, "LightProbe-2/0.jpg": ball[0]})
    assert "0.jpg" in names and "LightProbe-1/0.jpg" in names and "LightProbe-2/0.jpg" in names
    flat = {f"owl-{n}.jpg": owl[n] for n in range(4)} | {f"b{n}.jpg": ball[n] for n in range(4)}
    names = dropped(tmp_path / "flat", flat)
    assert names == [*(f"ball/b{n}.jpg" for n in range(4)), *(f"owl-{n}.jpg" for n in range(4))]
    swapped = {f"boule-{n}.jpg": owl[n] for n in range(4)} | {
        f"b{n}.jpg": ball[n] for n in range(4)
    }
    assert "ball/boule-0.jpg" in dropped(tmp_path / "swapped", swapped)
    assert dropped(tmp_path / "one", {"a/b/0.jpg": owl[0], "a/b/1.jpg": owl[1]}) == [
        "0.jpg",
        "1.jpg",
    ]


def test_a_dropped_folder_keeps_its_folders(served, jpegs):
    drop = served.client.post("/api/drop", json={"name": "owl and ball"}).json()
    for place, scale in (("owl", 1.0), ("chrome", 0.5)):
        for number, content in enumerate(pictures_of(jpegs, 8, scale)):
            path = f"/api/drop/{drop['drop']}/{place}/%2e%2e/{number}.jpg"
            assert served.client.put(path, content=content).is_success
    desk = served.client.post(f"/api/drop/{drop['drop']}/done").json()["id"]
    board = served.wait(desk, lambda b: b["opening"]["state"] == "done")
    assert board["capture"]["files"] == [f"{n}.jpg" for n in range(8)]
    folder = Path(drop["folder"])
    assert [path.name for path in folder.iterdir() if path.is_dir()] == ["chrome"]
    assert folder.parent == user_folders.captures_folder()


def test_many_photographs_left_out_alike_are_one_finding():
    copies = [
        Finding("left-out", file=f"{n}.png", reason="duplicate", why="it is a copy of 0.png")
        for n in range(72)
    ]
    dark = Finding("left-out", file="x.png", reason="dark", why="it is almost black")
    entries = grouped([*copies[:40], dark, *copies[40:]])
    assert [entry["code"] for entry in entries] == ["left-out", "left-out"]
    assert len(entries[0]["values"]["files"]) == 72 and "72" in entries[0]["text"]
    assert entries[1]["text"] == dark.rendered("app")


def test_results_of_other_corrections_are_marked(folder):
    reading = {"mask": None, "leave_out": "()", "edits": True}
    summary = {"provenance": {"reading": reading}}
    now = time.time()
    assert not is_outdated(summary, folder, Edits(), now)
    for edits in (
        Edits(leave_out=("IMG_1.JPG",)),
        Edits(mask="full"),
        Edits(lights="estimate"),
        Edits(circle=(1.0, 2.0, 3.0)),
        Edits(moved_lights={"IMG_1.JPG": (0.0, 0.0, 1.0)}),
    ):
        assert is_outdated(summary, folder, edits, now), edits
        filled = edits.fill_in(ReadOptions(), folder)
        stored = {name: value if value is None or isinstance(value, (bool, int, float, str))
                  else str(value) for name, value in vars(filled).items()}  # fmt: skip
        assert not is_outdated({"provenance": {"reading": stored}}, folder, edits, now), edits
    mask = Edits(mask="photostereo-mask.png")
    (folder / "photostereo-mask.png").write_bytes(b"x")
    stored = {"mask": str(folder / "photostereo-mask.png"), "edits": "mask"}
    assert not is_outdated({"provenance": {"reading": stored}}, folder, mask, now + 60)
    assert is_outdated({"provenance": {"reading": stored}}, folder, mask, now - 60)
