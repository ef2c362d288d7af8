"""The tools of the app in a real browser, on one capture with two results that all tests share."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time

import numpy as np
import pytest

import photostereo as ps
from photostereo.app import user_folders
from photostereo.app.process import WorkerProcess
from photostereo.app.protocol import WriteExample
from photostereo.app.tasks import Tasks
from photostereo.app.worker import Reporter
from photostereo.capture.edits import EDITS_FILE

from .conftest import go, step

#: A folder whose name a shell would read otherwise.
HOSTILE = "owl; touch $(id) 'x' & \"y\""
TABLET = {"width": 820, "height": 1100, "has_touch": True}


@pytest.fixture(scope="module")
def desk(served, jpegs, tmp_path_factory):
    """An open capture with two results."""
    folder = tmp_path_factory.mktemp("tools") / HOSTILE
    folder.mkdir()
    for file in jpegs.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / "IMG_9.JPG").write_bytes((folder / "IMG_1.JPG").read_bytes())
    desk = served.open(folder)
    served.settled(desk)
    for choice in ({"method": "ls"}, {"method": "pls", "parameters": {"p": "2"}, "scale": 0.5}):
        assert served.client.post(f"/api/c/{desk}/solve", json=choice).status_code == 200
        board = served.wait(desk, lambda b: b["job"]["state"] not in ("running", "canceling"))
        assert board["job"]["state"] == "done", board["job"]
    return desk


def settled_share(served, desk, before: float) -> float:
    """The share of the mask, once it has changed."""
    board = served.wait(desk, lambda b: abs(b["mask"]["share"] - before) > 1e-4)
    return float(board["mask"]["share"])


def until(page, met, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < end
        page.wait_for_timeout(50)


def settled_box(page, name: str):
    """Where something is once it has stopped moving."""
    boxes = [page.locator(name).bounding_box()]
    while len(boxes) < 4 or boxes[-1] != boxes[-4]:
        page.wait_for_timeout(70)
        boxes.append(page.locator(name).bounding_box())
    return boxes[-1]


def test_mask_tools_on_a_tablet(tab, served, desk):
    page = tab(**TABLET)
    go(page, served, desk, "mask")
    assert page.evaluate("document.documentElement.scrollWidth") <= 820
    page.wait_for_function("() => document.querySelector('.mask-stage canvas')?.width > 300")
    page.wait_for_selector(".panel .lead")
    box = settled_box(page, ".mask-stage canvas")
    at = lambda x, y: (box["x"] + x * box["width"], box["y"] + y * box["height"])  # noqa: E731
    first = served.board(desk)["mask"]["share"]

    # A polygon by taps: an eighth of the frame above the object, closed at its first corner.
    page.check("input[value=polygon]", force=True)
    for corner in ((0.02, 0.02), (0.5, 0.02), (0.5, 0.2), (0.02, 0.2), (0.02, 0.02)):
        page.touchscreen.tap(*at(*corner))
    with_polygon = settled_share(served, desk, first)
    assert with_polygon > first + 0.04

    # Grow and shrink by a pixel; undo and redo go through all of it.
    page.click("text=Grow")
    grown = settled_share(served, desk, with_polygon)
    assert with_polygon < grown < with_polygon + 0.03
    page.click("text=Shrink")
    shrunk = settled_share(served, desk, grown)
    assert shrunk == pytest.approx(with_polygon, abs=0.003)
    for expected in (grown, with_polygon, first):
        before = served.board(desk)["mask"]["share"]
        page.click("text=Undo")
        assert settled_share(served, desk, before) == pytest.approx(expected, abs=0.003)
    page.keyboard.press("Control+Shift+Z")
    assert settled_share(served, desk, first) == pytest.approx(with_polygon, abs=0.003)

    # Zoomed in by two fingers, a stroke of one finger covers less; two fingers do not paint.
    canvas = "document.querySelector('.mask-stage canvas')"
    touch = page.context.new_cdp_session(page)

    def fingers(kind, *points):
        touch.send(
            "Input.dispatchTouchEvent",
            {"type": kind, "touchPoints": [{"x": x, "y": y} for x, y in points]},
        )

    page.evaluate(
        f"{canvas}.addEventListener('pointermove', () => window.moved = (window.moved ?? 0) + 1)"
    )
    fingers("touchStart", at(0.4, 0.5))
    fingers("touchStart", at(0.4, 0.5), at(0.6, 0.5))
    fingers("touchMove", at(0.2, 0.5), at(0.8, 0.5))
    fingers("touchEnd")
    page.wait_for_timeout(600)
    assert served.board(desk)["mask"]["share"] == pytest.approx(with_polygon, abs=0.003)
    page.check("input[value=eraser]", force=True)
    strokes = []
    for zoomed in (True, False):
        if not zoomed:
            page.click("text=Fit")
        before = served.board(desk)["mask"]["share"]
        fingers("touchStart", at(0.4, 0.5))
        fingers("touchMove", at(0.6, 0.5))
        fingers("touchEnd")
        strokes.append(before - settled_share(served, desk, before))
    assert 0 < 2 * strokes[0] < strokes[1]
    go(page, served, desk, "result")
    assert page.evaluate("document.documentElement.scrollWidth") <= 820


def test_a_mask_that_comes_back_late_does_not_replace_newer_strokes(tab, served, desk):
    page = tab()
    go(page, served, desk, "mask")
    loaded = page.evaluate("""async () => {
      const { MaskStep } = await import("/static/mask.js");
      const state = { opening: { state: "done", small: [60, 40] }, lights: { kind: "ball" }, capture: { files: ["a.png"] } };
      const capture = { id: "x", path: "/none", state, picture: () => "", edit: () => {} };
      const step = new MaskStep(capture), loaded = [];
      step.board.load = () => loaded.push(step.version);
      const comes = (version) => {
        state.mask = { version, share: 0.5, notes: [] };
        step.update(new Set(["mask"]));
      };
      comes(1);
      step.board.grow(1);
      clearTimeout(step.saving);
      step.saving = null;  // saved
      comes(2);
      step.begin("auto");
      comes(3);
      step.end();
      return loaded;
    }""")
    assert loaded == [1, 3]


def test_zoom_by_wheel_and_buttons(tab, served, desk):
    page = tab()
    go(page, served, desk, "mask")
    page.wait_for_function("() => document.querySelector('.mask-stage canvas')?.width > 300")
    page.wait_for_selector(".panel .lead")
    box = settled_box(page, ".mask-stage canvas")
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    picture = lambda: page.locator(".mask-stage canvas").screenshot()  # noqa: E731
    page.wait_for_timeout(300)
    whole = picture()
    page.mouse.wheel(0, -600)
    until(page, lambda: picture() != whole)
    page.mouse.wheel(0, 2000)  # no farther than the whole photograph
    until(page, lambda: picture() == whole)
    page.click("[title='Zoom in']")
    until(page, lambda: picture() != whole)


def test_a_photograph_that_was_left_out_is_forced_back(tab, served, desk):
    page = tab()
    go(page, served, desk, "photographs")
    tile = page.locator(".tile", has_text="IMG_9.JPG")
    tile.locator(".badge.off", has_text="not used").wait_for()
    assert "duplicate" in tile.inner_text()
    tile.locator(".tile-button").click()
    tile.locator(".badge.kept").wait_for()
    board = served.wait(desk, lambda b: "IMG_9.JPG" in b["lights"]["files"])
    assert board["edits"]["keep"] == ["IMG_9.JPG"]
    folder = board["capture"]["folder"]
    assert len(ps.load(folder, mask="full")) == 9  # the command line and Python follow
    assert len(ps.load(folder, mask="full", edits=False)) == 8
    assert len(ps.load(folder, mask="full", edits=False, keep=["IMG_9.JPG"])) == 9
    tile.locator(".tile-button").click()
    tile.locator(".badge.off").wait_for()
    served.wait(desk, lambda b: "IMG_9.JPG" not in b["lights"]["files"])


def test_the_dome_counts_degrees_as_the_page_of_a_result_does(tab, served, desk):
    page = tab()
    go(page, served, desk, "lights")
    page.wait_for_selector(".light")
    rings = page.evaluate(
        "[...document.querySelectorAll('.dome-degrees')].map((t) => [Number(t.getAttribute('y')), t.textContent])"
    )
    assert [words for _, words in sorted(rings)[:3]] == [
        "0°",
        "30°",
        "60°",
    ]  # from the rim to the middle
    direction = served.board(desk)["lights"]["directions"][0]
    height = round(np.degrees(np.arcsin(direction[2])))
    assert f"{height}° above the image plane" in page.get_attribute(".light >> nth=0", "aria-label")
    # What is said of the selected light is never behind the button below it.
    detail, onward = settled_box(page, ".detail"), settled_box(page, ".next")
    assert detail["height"] > 0 and detail["y"] + detail["height"] <= onward["y"]


def test_times_are_estimated_from_the_photographs_and_shown_alike(tab, served, desk):
    page = tab()
    go(page, served, desk, "solve")
    page.wait_for_function("() => !document.querySelector('[data-choice=best]').disabled")
    for kind in ("fast", "best"):
        assert page.inner_text(f".{kind} .badge-line") == "About 10 seconds"
    said = page.evaluate("""async () => {
      const { estimate } = await import("/static/solve.js");
      const cases = [["best", 1], ["best", 24], ["fast", 24]];
      return cases.map(([kind, photographs]) => estimate(kind, [4000, 3000], photographs, 1, 2));
    }""")
    assert said == [
        "About 10 seconds",
        "About 90 seconds",
        "About 50 seconds",
    ]  # measured: 88 and 42 seconds
    # The time of the last solve is the same beside its progress and in the list of results.
    spent = page.inner_text(".job header .small")
    name = served.board(desk)["job"]["result"]
    go(page, served, desk, "result")
    key = next(one["key"] for one in served.board(desk)["results"] if one["name"] == name)
    page.select_option("select[aria-label=Result]", key)
    assert f" · {spent} ·" in page.inner_text(".take-words")


def test_results_are_compared(tab, served, desk):
    page = tab()
    go(page, served, desk, "result")
    page.frame_locator("iframe").locator("#relight-view.live").wait_for()
    page.click("text=Side by side")
    assert page.locator("iframe").count() == 2
    for number in (0, 1):
        page.frame_locator(f"iframe >> nth={number}").locator("#relight-view.live").wait_for()
    page.click("text=Swipe")
    page.wait_for_function(
        "() => [...document.querySelectorAll('.swipe img')].filter((i) => i.naturalWidth).length === 2"
    )

    def cut():
        return page.evaluate("getComputedStyle(document.querySelector('.swipe .right')).clipPath")

    assert "50%" in cut()
    page.focus(".swipe input")
    page.keyboard.press("End")
    assert "100%" in cut()
    boxes = [page.locator(f".swipe .{side}").bounding_box() for side in ("left", "right")]
    assert boxes[0] == pytest.approx(boxes[1])  # one lies on the other


def test_show_in_folder_runs_no_shell(tab, served, desk, monkeypatch):
    started = []
    monkeypatch.setattr(
        user_folders.subprocess,
        "Popen",
        lambda command, **options: started.append((command, options)),
    )
    monkeypatch.setattr(user_folders.shutil, "which", lambda name: f"/usr/bin/{name}")
    page = tab()
    go(page, served, desk, "result")
    for platform, expected in (
        ("linux", ["/usr/bin/xdg-open"]),
        ("darwin", ["/usr/bin/open", "-R"]),
        ("win32", ["explorer"]),
    ):
        monkeypatch.setattr(user_folders.sys, "platform", platform)
        with page.expect_response("**/reveal"):
            page.click("text=Show in folder")
        command, options = started.pop()
        folder = served.board(desk)["results"][0]["folder"]
        assert command == [*expected, f"/select,{folder}" if platform == "win32" else folder]
        assert HOSTILE in command[-1] and not options.get("shell")
    assert served.client.post(f"/api/c/{desk}/reveal", json={"result": "../.."}).status_code == 404


def test_the_copied_call_gives_the_same_files(tab, served, desk):
    page = tab(permissions=["clipboard-read", "clipboard-write"])
    go(page, served, desk, "result")
    result = next(one for one in served.board(desk)["results"] if one["method"] == "pls")
    page.select_option("select[aria-label=Result]", result["key"])
    folder, out = (
        served.state.open_sessions[desk].folder,
        served.state.open_sessions[desk].folder / "results" / result["name"],
    )
    copied = {}
    for name in ("command", "Python"):
        page.click("summary:has-text('More files')")
        page.click(f"text=Copy as {name}")
        page.wait_for_selector(f"text=Copied as {name}.")
        copied[name] = page.evaluate("navigator.clipboard.readText()")
        page.keyboard.press("Escape")
    place = [str(folder), "--method", "pls", "--set", "p=2", "--scale", "0.5", "--out", str(out)]
    assert copied["command"] == shlex.join(["photostereo", "solve", *place])
    assert "method='pls',\n    scale=0.5,\n" in copied["Python"]  # p = 2 is the default
    (folder / EDITS_FILE).unlink(missing_ok=True)  # of the tests before
    kept = {file.name for file in out.iterdir()}
    normals = np.load(out / "normals.npy")
    words = shlex.split(copied["command"])
    for call in ([sys.executable, "-m", *words], [sys.executable, "-c", copied["Python"]]):
        out.rename(out.with_name("away"))
        subprocess.run(call, check=True, capture_output=True)
        assert {file.name for file in out.iterdir()} == kept
        assert np.array_equal(np.load(out / "normals.npy"), normals)
        for file in out.with_name("away").iterdir():
            file.unlink()
        out.with_name("away").rmdir()


def test_the_example_to_its_result(tab, served, monkeypatch):
    async def small_example(self, task):  # a smaller one than users see
        assert isinstance(task, WriteExample)
        return Tasks().write_example(task, Reporter(lambda event, **values: None), step=3)

    monkeypatch.setattr(WorkerProcess, "ask", small_example)
    page = tab()
    page.click("text=Try the example")
    page.wait_for_selector("html[data-step=photographs]")
    step(page, "solve")
    page.wait_for_function("() => !document.querySelector('[data-choice=fast]').disabled")
    page.click("[data-choice=fast]")
    page.click("text=Show the result", timeout=300_000)
    page.frame_locator("iframe").locator("#relight-view.live").wait_for()
    with page.expect_download() as download:
        page.click("text=Mesh with color (GLB)")
    assert download.value.suggested_filename == "mesh.glb"
