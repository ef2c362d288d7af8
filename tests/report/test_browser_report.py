"""The report in a real browser: it shows, moves, answers keys, and says nothing to anyone."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from photostereo.diagnosis.expected_error import ExpectedError
from photostereo.report import write_report

pytestmark = pytest.mark.browser

RELIGHT = "#relight-view canvas"
SURFACE = "#surface-view canvas"
NO_WEBGL = """
const original = HTMLCanvasElement.prototype.getContext;
HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
  return kind.startsWith("webgl") ? null : original.call(this, kind, ...rest);
};
"""


@pytest.fixture(scope="module")
def shared(long_visit, report_page):
    """A page for tests that find everything as they need it, whatever others did before."""
    return long_visit(report_page)


@pytest.fixture(scope="module")
def wide(long_visit, report_page):
    """The same in a large window."""
    return long_visit(report_page, width=1440, height=900)


@pytest.fixture(scope="module")
def phone(long_visit, report_page):
    """The same on a phone."""
    return long_visit(report_page, width=390, height=844, touch=True)


def halves(picture):
    """Mean brightness of the left and the right half of the sphere's inner part."""
    height, width = picture.shape[:2]
    rows, cols = np.mgrid[:height, :width]
    x, y = (cols - width / 2) / (height / 2), (rows - height / 2) / (height / 2)
    inner = x**2 + y**2 < 0.6**2
    gray = picture.mean(axis=-1)
    return gray[inner & (x < -0.15)].mean(), gray[inner & (x > 0.15)].mean()


def move_light(seen, x, y):
    box = seen.page.locator(RELIGHT).bounding_box()
    seen.page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])


def test_light_follows_the_pointer_in_the_right_direction(shared):
    seen = shared
    box = seen.page.locator(RELIGHT).bounding_box()
    reach = 0.35 * box["height"] / box["width"]
    move_light(seen, 0.5 - reach, 0.5)
    from_left = seen.picture(RELIGHT)
    assert from_left.std() > 10  # not blank
    left, right = halves(from_left)
    assert left > right + 30
    move_light(seen, 0.5 + reach, 0.5)
    left, right = halves(seen.picture(RELIGHT))
    assert right > left + 30
    # From the top the upper half is the brighter one.
    move_light(seen, 0.5, 0.15)
    gray = seen.picture(RELIGHT).mean(axis=-1)
    height, width = gray.shape
    middle = gray[:, int(0.45 * width) : int(0.55 * width)]
    top, bottom = (
        middle[int(0.2 * height) : int(0.4 * height)].mean(),
        middle[int(0.6 * height) : int(0.8 * height)].mean(),
    )
    assert top > bottom + 30


def test_shading_equals_the_formula(visit, report_page, sphere, make_result):
    """Clay, no highlight, no ambient light: brightness is the cosine, pixel by pixel."""
    seen = visit(report_page)
    seen.page.locator("#relight-view .segments label:has-text('Clay')").click()
    for name, value in (("specular", 0), ("ambient", 0), ("diffuse", 1)):
        seen.set_range(f'#relight-view [data-look="{name}"]', value)
    seen.set_range('#relight-view [data-light="azimuth"]', 30)
    seen.set_range('#relight-view [data-light="elevation"]', 40)
    picture = seen.picture(RELIGHT)
    azimuth, elevation = np.radians(30), np.radians(40)
    light = [
        np.cos(azimuth) * np.cos(elevation),
        np.sin(azimuth) * np.cos(elevation),
        np.sin(elevation),
    ]
    normals = make_result().normals
    rows, cols = np.flatnonzero(sphere.mask.any(axis=1)), np.flatnonzero(sphere.mask.any(axis=0))
    edge = int(np.ceil(0.03 * max(np.ptp(rows) + 1, np.ptp(cols) + 1)))
    normals = normals[rows[0] - edge : rows[-1] + 1 + edge, cols[0] - edge : cols[-1] + 1 + edge]
    side = normals.shape[0]
    height, width = picture.shape[:2]
    scale = 0.94 * min(width, height) / side
    worst = 0.0
    for row in range(15, side - 15, 7):
        for col in range(15, side - 15, 7):
            x = int(width / 2 + (col + 0.5 - side / 2) * scale)
            y = int(height / 2 + (row + 0.5 - side / 2) * scale)
            cosine = max(float(normals[row, col] @ light), 0.0)
            linear = np.array([0.52, 0.50, 0.47]) * cosine
            expected = 255 * np.where(
                linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055
            )
            worst = max(worst, float(np.abs(picture[y, x] - expected).max()))
    assert worst < 6  # a screen pixel is not exactly at the center of a picture pixel


def test_sliders_modes_and_presets_change_the_picture(visit, report_page):
    seen = visit(report_page)
    pictures = {"albedo": seen.picture(RELIGHT)}
    for mode in ("Clay", "Normals"):
        seen.page.locator(f"#relight-view .segments label:has-text('{mode}')").click()
        pictures[mode] = seen.picture(RELIGHT)
    # Normals as colors: what faces right is redder than what faces left.
    height, width = pictures["Normals"].shape[:2]
    row = pictures["Normals"][height // 2, :, 0]
    assert row[int(width / 2 + 0.25 * height)] > row[int(width / 2 - 0.25 * height)] + 60
    seen.page.click("[data-preset=polished]")
    pictures["polished"] = seen.picture(RELIGHT)
    seen.set_range('#relight-view [data-look="specular"]', 1)
    pictures["specular"] = seen.picture(RELIGHT)
    names = list(pictures)
    for a, b in pairwise(names):
        assert np.abs(pictures[a] - pictures[b]).mean() > 1.5, (a, b)


def test_magnifier_and_held_light(visit, report_page):
    seen = visit(report_page, height=1000)  # all of the view, so that nothing scrolls
    move_light(seen, 0.4, 0.45)
    before = seen.picture(RELIGHT)
    seen.page.locator("#relight-view .switch:has-text('Magnifier')").click()
    seen.page.wait_for_selector(".loupe-frame", state="visible")
    frame = seen.page.locator(".loupe-frame").bounding_box()
    stage = seen.page.locator("#relight-view .stage").bounding_box()
    assert frame["x"] + frame["width"] <= stage["x"] + stage["width"]
    move_light(seen, 0.4, 0.45)
    after = seen.picture(RELIGHT)
    x, y, side = (
        round(frame["x"] - stage["x"]),
        round(frame["y"] - stage["y"]),
        round(frame["width"]),
    )
    inset = after[y + 4 : y + side - 4, x + 4 : x + side - 4]
    outside = np.abs(after - before)
    outside[y - 30 : y + side + 40, x - 40 : x + side + 40] = 0
    assert outside.max() < 30 and outside.mean() < 0.5
    # The middle of the inset is what lies under the pointer.
    px, py = round(0.4 * stage["width"]), round(0.45 * stage["height"])
    assert np.abs(inset[side // 2 - 4, side // 2 - 4] - before[py, px]).max() < 14
    seen.page.mouse.click(stage["x"] + px, stage["y"] + py)
    held = seen.page.locator("#relight-view .light-words").inner_text()
    move_light(seen, 0.7, 0.7)
    assert seen.page.locator("#relight-view .light-words").inner_text() == held


def test_keyboard_moves_light_and_camera(visit, report_page):
    seen = visit(report_page)
    seen.page.locator(RELIGHT).focus()
    for _ in range(12):
        seen.page.keyboard.press("ArrowLeft")
    left, right = halves(seen.picture(RELIGHT))
    assert left > right + 20
    for _ in range(24):
        seen.page.keyboard.press("ArrowRight")
    left, right = halves(seen.picture(RELIGHT))
    assert right > left + 20
    seen.page.keyboard.press("3")
    assert seen.page.locator('#relight-view [value="normals"]').is_checked()
    seen.page.keyboard.press("l")
    seen.page.wait_for_selector(".loupe-frame", state="visible")

    seen.page.locator(SURFACE).scroll_into_view_if_needed()
    seen.page.wait_for_selector("#surface-view[data-ready]")
    seen.page.locator(SURFACE).focus()
    views = [seen.picture(SURFACE)]
    for key in ("ArrowRight", "ArrowUp", "Shift+ArrowLeft", "+", "Home"):
        for _ in range(3):
            seen.page.keyboard.press(key)
        views.append(seen.picture(SURFACE))
    for before, after in pairwise(views):
        assert np.abs(before - after).mean() > 0.3
    assert np.abs(views[0] - views[-1]).mean() < 0.5  # Home undoes all


def test_every_control_is_reached_by_the_tab_key(visit, report_page):
    seen = visit(report_page)
    seen.page.click(".adjust summary")
    seen.page.evaluate("document.activeElement.blur()")
    reached = set()
    for _ in range(110):
        seen.page.keyboard.press("Tab")
        reached.add(
            seen.page.evaluate(
                "(() => "
                "{ const e = document.activeElement; return e.dataset.look || e.dataset.light || e.dataset.toggle"
                " || e.dataset.camera || e.dataset.surface || e.dataset.action || e.getAttribute('href') "
                "|| e.dataset.tool || e.dataset.view || e.dataset.make || e.tagName; })()"
            )
        )
    wanted = {
        "CANVAS",
        "mode",
        "azimuth",
        "elevation",
        "diffuse",
        "specular",
        "loupe",
        "pin",
        "sweep",
    }
    wanted |= {
        "nearer",
        "whole",
        "measure",
        "note",
        "snapshot",
        "link",
        "opengl",
        "contours",
        "crispen",
    }
    wanted |= {"paint", "wire", "relief", "left", "reset", "mesh.ply", "#main", "relight-here"}
    assert wanted <= reached, wanted - reached


def test_orbit_zoom_and_looks_of_the_surface(visit, report_page):
    seen = visit(report_page)
    seen.page.locator(SURFACE).scroll_into_view_if_needed()
    seen.page.wait_for_selector("#surface-view[data-ready]")
    box = seen.page.locator(SURFACE).bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    first = seen.picture(SURFACE)
    assert first.std() > 10
    ring = 12  # what has the focus is framed
    seen.page.mouse.move(x, y)
    seen.page.mouse.down()
    seen.page.mouse.move(x + 120, y + 30, steps=3)
    seen.page.mouse.up()
    turned = seen.picture(SURFACE)
    assert np.abs(turned - first)[ring:-ring, ring:-ring].mean() > 1
    covered = (turned.mean(axis=-1) > 60).sum()
    seen.page.mouse.wheel(0, -600)
    seen.until(lambda: (seen.picture(SURFACE).mean(axis=-1) > 60).sum() > 1.1 * covered)
    nearer = seen.picture(SURFACE)
    for label in ("Clay", "Wireframe"):
        seen.page.locator(f"#surface-view label:has-text('{label}')").click()
        changed = seen.picture(SURFACE)
        assert np.abs(changed - nearer).mean() > 0.5, label
        nearer = changed
    seen.page.click("[data-camera=front]")
    seen.page.click("[data-camera=reset]")


def test_the_front_view_of_the_surface_is_the_object_itself(shared):
    """Lit from where the viewer's key light hangs, and as wide as it is high."""
    seen = shared
    seen.page.locator(SURFACE).scroll_into_view_if_needed()
    seen.page.wait_for_selector("#surface-view[data-ready]")
    seen.page.click("[data-camera=front]")
    seen.page.locator("#surface-view label:has-text('Clay')").click()
    gray = seen.picture(SURFACE).mean(axis=-1)
    height, width = gray.shape
    # The key light hangs at the upper left of the viewer.
    upper_left = gray[int(0.3 * height), int(width / 2 - 0.2 * height)]
    lower_right = gray[int(0.7 * height), int(width / 2 + 0.2 * height)]
    assert upper_left > lower_right + 40
    lit = gray > 60  # the backdrop stays below 50
    # The frame of the stage is not part of the object.
    rows, cols = np.flatnonzero(lit[5:-5, width // 2]), np.flatnonzero(lit[height // 2, 5:-5])
    assert np.ptp(cols) == pytest.approx(np.ptp(rows), rel=0.1)


def test_contact_sheet_shows_light_and_weights_of_the_photograph(shared):
    seen = shared
    seen.page.locator(".thumb").nth(4).hover()
    assert "photo 4.png" in seen.page.locator(".photo-name").inner_text()
    assert "Light from" in seen.page.locator(".photo-words").inner_text()
    weights = seen.page.locator(".photo-verdict").get_attribute("src")
    assert seen.page.locator(".light-mark.on").get_attribute("data-photo") == "4"
    seen.page.locator(".thumb").nth(0).focus()
    seen.page.keyboard.press("ArrowRight")
    assert "photo 1.png" in seen.page.locator(".photo-name").inner_text()
    assert seen.page.locator(".photo-verdict").get_attribute("src") != weights
    seen.page.click("[data-action=relight-here]")
    assert seen.page.locator("#relight-view [data-toggle=pin]").is_checked()


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("kind", ["report_page", "comparison_page"])
def test_nothing_overflows(visit, request, kind, width):
    seen = visit(request.getfixturevalue(kind), width=width, height=844, touch=width < 500)
    for scheme in ("light", "dark"):
        seen.page.emulate_media(color_scheme=scheme)
        too_wide = seen.page.evaluate(
            """() => [...document.querySelectorAll('body *')].filter((e) => {
              const box = e.getBoundingClientRect();
              const allowed = '.contents, .scroll, .key-figures, .visually-hidden, .skip, svg, .divider';
              if (!box.width || e.closest(allowed)) return false;
              if (box.right > innerWidth + 1 || box.left < -1) return true;
              const style = getComputedStyle(e);
              return e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1
                && style.overflowX === 'visible' && style.display !== 'inline';
            }).map((e) => e.tagName + '.' + e.className)"""
        )
        assert too_wide == []
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
        background = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
        level = np.mean([int(part) for part in background.strip("rgb()").split(",")])
        assert level < 60 if scheme == "dark" else level > 200


def test_text_has_contrast_in_both_schemes(visit, report_page):
    seen = visit(report_page)
    for scheme in ("light", "dark"):
        seen.page.emulate_media(color_scheme=scheme)
        ratios = seen.page.evaluate(
            """() => {
              const style = getComputedStyle(document.documentElement);
              const lum = (hex) => [1, 3, 5].map((i) => parseInt(hex.trim().slice(i, i + 2), 16) / 255)
                .map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
                .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
              const value = (name) => lum(style.getPropertyValue(name));
              const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
              const pairs = [];
              for (const ink of ['--ink', '--soft', '--accent']) for (const ground of ['--paper', '--card'])
                pairs.push([ink + ground, ratio(value(ink), value(ground))]);
              for (const kind of ['--good', '--notice', '--problem', '--accent'])
                pairs.push([kind, ratio(value(kind), value(kind + '-wash'))]);
              return pairs;
            }"""
        )
        assert all(ratio >= 4.5 for _, ratio in ratios), ratios


def test_stills_stand_in_without_webgl(visit, report_page):
    seen = visit(report_page, script=NO_WEBGL)
    assert seen.page.get_by_text("This browser does not support WebGL2").first.is_visible()
    assert not seen.page.locator(RELIGHT).is_visible()
    stills = seen.page.locator(".stills img")
    assert stills.count() == 4 and stills.first.is_visible()
    assert not seen.page.locator("[data-action=relight-here]").is_visible()


def test_hostile_names_are_text(visit, tmp_path, make_capture, make_result):
    name = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)> Büste 彫刻 " + "long" * 60
    path = tmp_path / "report.html"
    capture = make_capture(name=name)
    write_report(path, make_result(name=name), capture, files={name: "mesh.ply"})
    for width in (390, 1440):
        seen = visit(path, width=width)
        assert seen.page.locator("h1").inner_text() == name
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width


def test_policy_stops_what_should_not_be_there(visit, report_page, tmp_path):
    """The defence behind the escaping: even an injected script does not run, and nothing can be fetched."""
    text = report_page.read_text(encoding="utf-8")
    path = tmp_path / "report.html"
    path.write_text(
        text.replace("<h1>", "<h1><script>window.broken = 1</script>"), encoding="utf-8"
    )
    seen = visit(path)
    assert seen.page.evaluate("window.broken") is None
    outcome = seen.page.evaluate("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'stopped')")
    assert outcome == "stopped"
    complaints = [
        text for text in seen.messages if "Content Security Policy" in text or "violates" in text
    ]
    assert len(complaints) >= 2
    seen.messages.clear()
    seen.requests.clear()


def test_a_lost_context_comes_back(visit, report_page):
    seen = visit(report_page)
    before = seen.picture(RELIGHT)
    seen.page.evaluate(
        """() => new Promise((done) => {
          const canvas = document.querySelector('#relight-view canvas');
          const extension = canvas.getContext('webgl2').getExtension('WEBGL_lose_context');
          canvas.addEventListener('webglcontextrestored', () => setTimeout(done, 500));
          extension.loseContext();
          setTimeout(() => extension.restoreContext(), 100);
        })"""
    )
    assert np.abs(seen.picture(RELIGHT) - before).mean() < 2
    seen.messages[:] = [text for text in seen.messages if "CONTEXT_LOST" not in text]


def test_touch_moves_the_light(phone):
    seen = phone
    box = seen.page.locator(RELIGHT).bounding_box()
    seen.page.touchscreen.tap(box["x"] + 0.2 * box["width"], box["y"] + 0.5 * box["height"])
    assert "left" in seen.page.locator("#relight-view .light-words").inner_text()


def test_a_finger_scrolls_the_page_and_two_zoom_the_picture(phone):
    seen = phone
    box = seen.page.locator(RELIGHT).bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    session = seen.page.context.new_cdp_session(seen.page)

    def touch(kind, *fingers):
        points = [{"x": a, "y": b, "id": number} for number, (a, b) in enumerate(fingers)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def swipe(distance):
        touch("touchStart", (x, y))
        for step in range(1, 10):
            touch("touchMove", (x, y + distance * step / 9))
            seen.page.wait_for_timeout(15)
        touch("touchEnd")

    top = seen.page.evaluate("scrollY")
    swipe(-150)
    seen.until(lambda: seen.page.evaluate("scrollY") > top + 60)
    seen.page.wait_for_timeout(300)  # it may roll on
    seen.page.evaluate("document.getElementById('relight-view').scrollIntoView()")
    touch("touchStart", (x - 30, y), (x + 30, y))
    for spread in (45, 60, 90):
        touch("touchMove", (x - spread, y), (x + spread, y))
    touch("touchEnd")
    seen.page.wait_for_selector(".minimap", state="visible")
    # What is zoomed in moves with the finger, and the page stays.
    before, top = seen.picture(RELIGHT), seen.page.evaluate("scrollY")
    swipe(-80)
    seen.until(lambda: np.abs(seen.picture(RELIGHT) - before).mean() > 1)
    assert seen.page.evaluate("scrollY") == top


def test_two_fingers_zoom_the_surface(phone):
    seen = phone
    seen.page.locator(SURFACE).scroll_into_view_if_needed()
    seen.page.wait_for_selector("#surface-view[data-ready]")
    before = seen.picture(SURFACE)
    box = seen.page.locator(SURFACE).bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    session = seen.page.context.new_cdp_session(seen.page)

    def touch(kind, *fingers):
        points = [{"x": a, "y": b, "id": number} for number, (a, b) in enumerate(fingers)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", (x - 30, y), (x + 30, y))
    for spread in (45, 60, 75):
        touch("touchMove", (x - spread, y), (x + spread, y))
    touch("touchEnd")
    wide = seen.picture(SURFACE)
    assert (wide.mean(axis=-1) > 60).sum() > 1.2 * (before.mean(axis=-1) > 60).sum()
    # One finger turns it.
    touch("touchStart", (x, y))
    touch("touchMove", (x + 60, y + 20))
    touch("touchEnd")
    assert np.abs(seen.picture(SURFACE) - wide).mean() > 1


def test_dragging_with_the_right_button_moves_the_surface(visit, report_page):
    seen = visit(report_page)
    seen.page.locator(SURFACE).scroll_into_view_if_needed()
    seen.page.wait_for_selector("#surface-view[data-ready]")
    seen.page.locator("#surface-view label:has-text('Clay')").click()
    box = seen.page.locator(SURFACE).bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def middle_of_the_object():
        lit = seen.picture(SURFACE).mean(axis=-1)[:-60] > 75
        return np.argwhere(lit).mean(axis=0)

    before = middle_of_the_object()
    seen.page.mouse.move(x, y)
    seen.page.mouse.down(button="right")
    seen.page.mouse.move(x + 80, y - 20, steps=3)
    seen.page.mouse.up(button="right")
    moved = middle_of_the_object() - before
    assert moved[1] == pytest.approx(80, abs=12) and moved[0] == pytest.approx(-20, abs=12)


@pytest.fixture(scope="module")
def graded_page(tmp_path_factory, result, capture, sphere):
    """A result that doubts itself, of photographs with a problem."""
    path = tmp_path_factory.mktemp("graded") / "report.html"
    spread = np.where(sphere.mask, 12.4, 0).astype(np.float32)
    bright = replace(capture, images=np.minimum(3 * capture.images, 1))
    unsure = replace(result, maps={**result.maps, "spread": spread})
    write_report(
        path, unsure, bright, depth=sphere.depth, expected=ExpectedError(12.4, is_flawed=True)
    )
    return path


@pytest.mark.parametrize(
    ("width", "height", "scheme"), [(1440, 900, "light"), (1280, 720, "dark"), (390, 844, "light")]
)
def test_the_first_screen_shows_the_object_its_name_and_how_sure_it_is(
    visit, graded_page, width, height, scheme
):
    seen = visit(graded_page, width=width, height=height, scheme=scheme, touch=width < 500)
    seen.page.evaluate("window.scrollTo(0, 0)")
    for selector in ("h1", ".verdict.do-not-trust .badge", ".first-problem", RELIGHT):
        box = seen.page.locator(selector).bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= height, selector
    assert "Do not trust Expected error about 12°" in seen.page.inner_text(".verdict").replace(
        "\n", " "
    )
    assert "saturated" in seen.page.inner_text(".first-problem")
    if width < 500:  # tools stand below the object, not on it
        canvas, tools = (seen.page.locator(name).bounding_box() for name in (RELIGHT, ".toolbar"))
        assert tools["y"] >= canvas["y"] + canvas["height"] - 1
        assert canvas["height"] >= 300


def test_a_phone_shows_figures_and_the_table_of_origins_whole(visit, tmp_path, capture, result):
    noted = replace(
        capture, origin=replace(capture.origin, notes=("a long note about the photographs " * 5,))
    )
    write_report(tmp_path / "report.html", replace(result, seconds={"solve": 17.61}), noted)
    seen = visit(tmp_path / "report.html", width=390, height=844, touch=True)
    boxes = [figure.bounding_box() for figure in seen.page.locator(".key-figures div").all()]
    assert max(box["x"] + box["width"] for box in boxes) <= 390 - 16
    lines = """(names) => names.map((name) => {
        const range = document.createRange();
        range.selectNodeContents(name);
        return range.getClientRects().length;
    })"""
    assert set(seen.page.locator("#details dt").evaluate_all(lines)) == {1}  # no word is broken


def test_a_method_without_an_estimate_says_so(shared):
    seen = shared
    assert "pdlnv does not estimate its error" in seen.page.inner_text(".verdict.unknown")


def test_the_look_is_marked_and_its_row_stays(wide):
    seen = wide
    pressed = "[data-preset][aria-pressed=true]"
    assert seen.page.locator(pressed).inner_text() == "Natural"
    before = seen.page.locator(".looks").bounding_box()
    for name in ("raking", "lights", "polished", "gain"):
        seen.page.click(f"[data-preset={name}]")
        assert seen.page.eval_on_selector_all(
            pressed, "(all) => all.map((e) => e.dataset.preset)"
        ) == [name]
        assert seen.page.locator(".looks").bounding_box() == before
    seen.page.click(".adjust summary")
    seen.set_range("[data-look=specular]", 0.6)
    assert seen.page.locator(pressed).count() == 0


def test_keys_work_wherever_the_focus_is_except_in_fields(wide):
    seen = wide
    measuring = "#relight-view.tooling"
    for focus in ("[data-preset=raking]", "[name=relight-mode]", "[data-look=contours]"):
        seen.page.focus(focus)
        seen.page.keyboard.press("m")
        assert seen.page.locator(measuring).count() == 1, focus
        seen.page.keyboard.press("m")
        assert seen.page.locator(measuring).count() == 0, focus
    seen.page.focus("[data-end] >> nth=0")  # the tool has opened its panel
    seen.page.keyboard.press("m")
    assert seen.page.locator(measuring).count() == 0


def test_full_screen_by_key_and_button(visit, report_page):
    seen = visit(report_page)
    full = "document.fullscreenElement && document.fullscreenElement.id"
    for press in (
        lambda: seen.page.keyboard.press("f"),
        lambda: seen.page.click("[data-action=fullscreen]"),
    ):
        press()
        seen.page.wait_for_function(f"{full} === 'relight-view'")
        press()
        seen.page.wait_for_function("!document.fullscreenElement")


def test_measuring_off_the_object_says_so(visit, report_page):
    seen = visit(report_page)
    seen.page.click("[data-drawer=measure]")

    def measure(*ends):
        for field, value in zip(seen.page.locator("[data-end]").all(), ends, strict=True):
            field.fill(str(value))

    def words():
        return seen.page.inner_text(".measure-words")

    measure(48, 48, 2, 2)
    seen.until(lambda: "off the object" in words())
    figures = seen.page.inner_text(".measure dl")
    assert (
        "Straight" not in figures and "Along the surface" not in figures and "Rise" not in figures
    )
    measure(40, 48, 56, 48)
    seen.until(lambda: words() == "" and "Along the surface" in seen.page.inner_text(".measure dl"))
    assert "Straight, in space" in seen.page.inner_text(".measure dl")


def test_a_known_length_sets_the_scale(visit, report_page):
    seen = visit(report_page)
    seen.page.click("[data-drawer=measure]")
    for field, value in zip(seen.page.locator("[data-end]").all(), (40, 48, 56, 48), strict=True):
        field.fill(str(value))
    canvas = seen.page.locator(RELIGHT).bounding_box()
    seen.page.mouse.move(canvas["x"] + canvas["width"] / 2, canvas["y"] + canvas["height"] / 2)
    assert seen.page.inner_text(".pointer-words").endswith("px")
    seen.page.fill("[data-known]", "8")
    assert seen.page.inner_text(".pointer-words").endswith("mm")
    assert "8.000 mm" in seen.page.inner_text(".measure dl")
    assert seen.page.inner_text(".scale-bar").endswith("mm")
    assert (
        seen.page.locator(".map [data-pixels]").first.text_content().endswith("mm")
    )  # the card, too
    ticks = seen.page.locator(".map:has([data-pixels]) .tick").all_text_contents()
    assert ticks[:3] == ["0 mm", "5 mm", "10 mm"]  # round in the new unit
    seen.page.check("[name=relight-mode][value=depth]")
    assert seen.page.inner_text(".legend-ends span >> nth=2").endswith("mm")


def test_measuring_begins_with_its_tab(visit, report_page):
    seen = visit(report_page, width=1280, height=800)
    for tab, measures in (("measure", 1), ("measure", 0), ("measure", 1), ("notes", 0)):
        seen.page.click(f"[data-drawer={tab}]")
        assert seen.page.locator("#relight-view.tooling").count() == measures
    seen.page.click("[data-drawer=measure]")
    draw_a_line(seen)
    assert all(
        word in seen.page.inner_text(".ends") for word in ("From column", "To column", "row")
    )
    drawer, known = (
        seen.page.locator(name).bounding_box() for name in (".measure", ".known-length")
    )
    assert known["y"] + known["height"] <= min(drawer["y"] + drawer["height"], 800)


def draw_a_line(seen):
    box = seen.page.locator(RELIGHT).bounding_box()
    seen.page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 0.5 * box["height"])
    seen.page.mouse.down()
    seen.page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.5 * box["height"], steps=3)
    seen.page.mouse.up()


def test_a_line_is_printed_where_it_was_drawn(visit, report_page):
    seen = visit(report_page, width=1280, height=800)
    script = """async () => {
        dispatchEvent(new Event("beforeprint"));
        const picture = document.querySelector("#relight-view .print-picture");
        await picture.decode();
        const canvas = new OffscreenCanvas(picture.naturalWidth, picture.naturalHeight);
        const pen = canvas.getContext("2d");
        pen.drawImage(picture, 0, 0);
        dispatchEvent(new Event("afterprint"));
        return [canvas.width, ...pen.getImageData(0, canvas.height / 2 - 8, canvas.width, 16).data];
    }"""

    def printed():
        width, *values = seen.page.evaluate(script)
        return np.reshape(values, (16, width, 4)).astype(float)

    seen.page.click("[data-drawer=measure]")
    draw_a_line(seen)
    drawn = printed()
    seen.page.evaluate(
        "document.querySelector('[data-action=clear-line]').click()"
    )  # without moving the light
    columns = np.flatnonzero(np.abs(printed() - drawn).max(axis=(0, 2)) > 30) / drawn.shape[1]
    assert columns.min() == pytest.approx(0.4, abs=0.02) and columns.max() == pytest.approx(
        0.6, abs=0.02
    )
    seen.page.emulate_media(media="print")
    assert not seen.page.locator("#relight-view .overlay").is_visible()


def test_a_print_has_at_most_four_pages(visit, graded_page):
    seen = visit(graded_page, width=1440, height=900)
    seen.page.locator("#surface-view").scroll_into_view_if_needed()
    seen.page.wait_for_selector("#surface-view[data-ready]")
    printed = seen.page.pdf(format="A4", print_background=True)
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b(?!s)", printed)) <= 4
    assert printed.count(b"/Subtype /Image") >= 4


def test_what_the_panel_offers_is_always_in_sight(visit, report_page):
    seen, height = visit(report_page, width=1280, height=720), 720
    seen.page.evaluate("window.scrollTo(0, 0)")
    for name in ("measure", "notes", "take", "keys"):
        box = seen.page.locator(f"[data-drawer={name}]").bounding_box()
        assert box["y"] + box["height"] <= height
        seen.page.click(f"[data-drawer={name}]")
        assert seen.page.locator(".drawer:visible").count() == 1
        assert seen.page.locator(f"[data-drawer={name}]").get_attribute("aria-expanded") == "true"


def test_the_whole_object_in_full_resolution(visit, report_page, capture):
    import cv2

    seen = visit(report_page)
    seen.page.keyboard.press("3")
    seen.page.keyboard.press("+")  # the picture is of the whole object all the same
    seen.page.click("[data-drawer=take]")
    with seen.page.expect_download() as waiting:
        seen.page.click("[data-take=whole]")
    assert waiting.value.suggested_filename == f"{capture.name}.png"
    picture = cv2.imread(str(waiting.value.path())).mean(axis=-1)
    rows, cols = np.nonzero(capture.mask)
    shown = np.argwhere(picture > 70)
    assert (
        abs(np.ptp(shown[:, 0]) - np.ptp(rows)) <= 6
        and abs(np.ptp(shown[:, 1]) - np.ptp(cols)) <= 6
    )


def test_a_video_of_the_light(visit, report_page, capture):
    import cv2

    seen = visit(report_page, width=420, height=420)
    seen.page.click("[data-drawer=take]")
    with seen.page.expect_download(timeout=120_000) as waiting:
        seen.page.click("[data-take=sweep]")
    assert waiting.value.suggested_filename == f"{capture.name}-light.webm"
    video = cv2.VideoCapture(str(waiting.value.path()))
    frames = [frame.astype(float) for ok, frame in iter(video.read, (False, None)) if ok]
    assert len(frames) > 3
    assert np.abs(frames[0] - frames[len(frames) // 2]).mean() > 2  # the light has moved


def test_a_photograph_beside_the_relit_view(visit, report_page, capture):
    seen = visit(report_page, width=1440, height=900)
    seen.page.select_option("[data-photo]", "2")

    def fits(zoom):
        """The middle of the object is in the middle of both, at this multiple of the zoom that fits."""
        pane, canvas, photo = (
            seen.page.locator(name).bounding_box()
            for name in (".photo-pane", RELIGHT, ".photo-pane img")
        )
        fitting = 0.94 * min(canvas["width"], canvas["height"])
        return (
            max(abs(pane[side] - canvas[side]) for side in ("width", "height")) <= 2
            and abs(photo["x"] + photo["width"] / 2 - pane["x"] - pane["width"] / 2) <= 1
            and max(photo["width"], photo["height"]) == pytest.approx(zoom * fitting, rel=0.03)
        )

    seen.until(
        lambda: fits(1)
    )  # a key that comes before the views stand side by side zooms another view
    seen.page.locator(RELIGHT).focus()
    seen.page.keyboard.press("+")
    seen.until(lambda: fits(1.25))
    z = capture.lights.directions[2][2]
    shown = float(seen.page.locator("[data-light=elevation]").input_value())
    assert shown == pytest.approx(np.degrees(np.arcsin(z)), abs=1)


def test_inside_another_page_only_the_view_is_shown(visit, report_page):
    seen = visit(report_page, width=800, height=600, at="?embed")
    box = seen.page.locator(RELIGHT).bounding_box()
    assert box["width"] == 800 and box["height"] > 540
    assert (
        not seen.page.locator("h1").is_visible() and not seen.page.locator("#evidence").is_visible()
    )
    assert seen.page.locator(".embed-foot a").is_visible()
