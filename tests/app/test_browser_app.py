"""The app in a real browser: from dropped photographs to a mesh, with corrections by hand, by mouse and by keyboard."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import photostereo as ps
from photostereo.capture.edits import read_edits

from .conftest import BALL, step

#: axe-core's script, if the machine has one: ``npm pack axe-core``.
AXE = Path(os.environ.get("AXE_CORE", "/usr/share/nodejs/axe-core/axe.min.js"))
STEPS = ("photographs", "lights", "mask", "solve", "result")


def desk_of(page) -> str:
    page.wait_for_function("() => location.hash.startsWith('#/c/')")
    return page.url.split("/")[5]


def drag(page, start: tuple[float, float], end: tuple[float, float]) -> None:
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
    page.mouse.move(*end)
    page.mouse.up()


def test_from_dropped_photographs_to_a_mesh(tab, served, jpegs, tmp_path):
    page = tab()
    page.set_input_files("#files", sorted(jpegs.glob("*.JPG")))
    desk = desk_of(page)
    page.wait_for_function(
        "() => [...document.querySelectorAll('.tile img')].filter((i) => i.naturalWidth).length === 8"
    )
    board = served.settled(desk)
    folder = Path(board["capture"]["folder"])

    # A click leaves a photograph out; the others stay.
    page.click(".tile-button >> nth=2")
    page.wait_for_selector(".tile.out")
    served.wait(desk, lambda b: "IMG_3.JPG" not in b["lights"]["files"])

    # The circle is dragged off the ball by hand: the lights follow, and stay so.
    step(page, "lights")
    page.wait_for_selector(".light")
    assert page.locator(".light").count() == 7
    before = np.array(served.board(desk)["lights"]["directions"])
    box = page.locator(".over").bounding_box()
    scale = box["width"] / 300
    center = (box["x"] + BALL[0] * scale, box["y"] + BALL[1] * scale)
    drag(page, center, (center[0] + 5 * scale, center[1]))
    changed = lambda b: not np.array_equal(b["lights"]["directions"], before)  # noqa: E731
    served.wait(
        desk, lambda b: "circle" in b["edits"] and changed(b) and b["looking"]["state"] == "idle"
    )
    after = np.array(served.board(desk)["lights"]["directions"])
    turned = np.degrees(np.arccos(np.clip((before * after).sum(axis=1), -1, 1)))
    assert 5 < np.median(turned) < 25  # 5 pixels of 32, twice the turn of the normal
    assert read_edits(folder).circle[0] == pytest.approx(BALL[0] + 5, abs=1.5)

    # A mask that is painted changes the mask, in every tab.
    step(page, "mask")
    page.wait_for_function("() => document.querySelector('.mask-stage canvas')?.width > 300")
    page.wait_for_selector(".panel .lead")
    share = served.board(desk)["mask"]["share"]
    page.check("input[value=eraser]", force=True)
    page.locator("input[type=range]").fill("100")
    box = page.locator(".mask-stage canvas").bounding_box()
    middle = box["y"] + box["height"] / 2
    drag(page, (box["x"] + 0.1 * box["width"], middle), (box["x"] + 0.6 * box["width"], middle))
    served.wait(desk, lambda b: b["mask"]["share"] < 0.9 * share)
    assert ps.load(folder).mask.mean() == pytest.approx(
        served.board(desk)["mask"]["share"], abs=0.02
    )
    page.click("text=Undo")
    served.wait(desk, lambda b: abs(b["mask"]["share"] - share) < 0.005)

    # Solve; a reload in the middle shows the same job, and the result comes by itself.
    step(page, "solve")
    page.click("summary:has-text('Other methods')")
    page.select_option("#method", "ls")
    page.click("text=Solve with these")
    page.wait_for_selector(".job h2")
    page.reload()
    page.wait_for_selector(".job h2")
    page.click("text=Show the result")
    frame = page.frame_locator("iframe")
    frame.locator("h1").wait_for()
    frame.locator("#relight-view.live").wait_for()
    with page.expect_download() as download:
        page.click("text=Mesh with color (GLB)")
    saved = tmp_path / "mesh.glb"
    download.value.save_as(saved)
    assert saved.read_bytes()[:4] == b"glTF"
    assert (folder / "IMG_1.JPG").read_bytes() == (jpegs / "IMG_1.JPG").read_bytes()


def test_one_photograph_is_a_problem_and_no_way_on(tab, served, folder):
    for file in sorted(folder.glob("*.JPG"))[1:]:
        file.unlink()
    desk = served.open(folder)
    page = tab()
    page.goto(f"{served.address.origin}/#/c/{desk}/photographs")
    page.wait_for_selector("[data-step=photographs] .mark.problem")
    page.wait_for_selector(".alert.problem:has-text('owl has 1')")
    assert (
        not page.is_visible(".next")
        and page.locator("[data-step=lights] .mark.problem").count() == 0
    )


def test_narrow_by_keyboard_with_cancel(tab, served, folder):
    page = tab(390, 800)
    desk = served.open(folder)
    page.goto(f"{served.address.origin}/#/c/{desk}/photographs")
    served.settled(desk)
    for name in STEPS:
        page.focus(f"#steps [data-step={name}]")
        page.keyboard.press("Enter")
        page.wait_for_selector(f"html[data-step={name}]")
        page.wait_for_timeout(150)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
        if AXE.is_file():
            page.evaluate(AXE.read_text(encoding="utf-8"))
            found = page.evaluate("axe.run(document, { iframes: false }).then((r) => r.violations)")
            serious = [
                (one["id"], one["nodes"][0]["html"])
                for one in found
                if one["impact"] in ("serious", "critical")
            ]
            assert serious == [], name
    # A light is moved with the arrow keys.
    page.focus("#steps [data-step=lights]")
    page.keyboard.press("Enter")
    page.focus(".light >> nth=1")
    page.keyboard.press("Shift+ArrowLeft")
    served.wait(desk, lambda b: "IMG_2.JPG" in b["edits"].get("moved_lights", {}))
    # The mask is painted with the keyboard.
    page.focus("#steps [data-step=mask]")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('.mask-stage canvas')?.width > 300")
    page.focus(".mask-stage canvas")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Enter")
    served.wait(desk, lambda b: b["edits"].get("mask"))
    # Best is begun and canceled; another tab sees it, too.
    page.focus("#steps [data-step=solve]")
    page.keyboard.press("Enter")
    page.focus("[data-choice=best]")
    page.wait_for_function("() => !document.activeElement.disabled")
    page.keyboard.press("Enter")
    other = tab()
    other.goto(f"{served.address.origin}/#/c/{desk}/solve")
    other.wait_for_selector(".stages li")
    page.focus(".job .cancel")
    page.keyboard.press("Enter")
    for one in (page, other):
        one.wait_for_selector(".job h2:has-text('Canceled')")
    assert not list((folder / "results").glob("*/*"))
