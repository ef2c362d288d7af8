"""The comparison page in a real browser."""

from __future__ import annotations

import numpy as np
import pytest

pytestmark = pytest.mark.browser

VIEW = "#relight-view canvas"
NO_WEBGL = """
const original = HTMLCanvasElement.prototype.getContext;
HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
  return kind.startsWith("webgl") ? null : original.call(this, kind, ...rest);
};
"""


@pytest.fixture(scope="module")
def seen(long_visit, comparison_page):
    """A page for tests that find everything as they need it, whatever others did before."""
    return long_visit(comparison_page)


def show_normals(seen):
    before = seen.picture(VIEW)
    seen.page.locator("#relight-view .segments label:has-text('Normals')").click()
    after = seen.picture(VIEW)
    assert (
        np.ptp(before, axis=-1).max() < 40 < np.ptp(after, axis=-1).max()
    )  # the sphere is gray, its normals are not


def test_the_slider_compares(visit, comparison_page):
    seen = visit(comparison_page)
    show_normals(seen)
    alone = {}
    for side, value in (("right", 0), ("left", 1000)):
        seen.set_range("[data-divider]", value)
        alone[side] = seen.picture(VIEW)
    assert np.abs(alone["left"] - alone["right"]).mean() > 2
    seen.set_range("[data-divider]", 500)
    both = seen.picture(VIEW)
    height, width = both.shape[:2]
    # Away from the divider, its handle, the captions and the hint, each side shows its own result.
    band = slice(int(0.2 * height), int(0.8 * height))
    left, right = slice(0, width // 2 - 40), slice(width // 2 + 40, width)
    assert np.abs(both[band, left] - alone["left"][band, left]).max() < 3
    assert np.abs(both[band, right] - alone["right"][band, right]).max() < 3
    assert np.abs(both[band, left] - alone["right"][band, left]).mean() > 1


def test_divider_follows_pointer_and_keys(visit, comparison_page):
    seen = visit(comparison_page)
    stage = seen.page.locator("#relight-view .stage").bounding_box()
    middle = stage["y"] + stage["height"] / 2
    seen.page.mouse.move(stage["x"] + stage["width"] / 2, middle)
    seen.page.mouse.down()
    seen.page.mouse.move(stage["x"] + 0.25 * stage["width"], middle, steps=3)
    seen.page.mouse.up()
    slider = seen.page.locator("[data-divider]")
    assert float(slider.input_value()) == pytest.approx(250, abs=10)
    before = float(slider.input_value())
    slider.focus()
    for _ in range(5):
        seen.page.keyboard.press("ArrowRight")
    assert float(slider.input_value()) == pytest.approx(before + 50, abs=10)
    line = seen.page.locator(".divider").bounding_box()
    share = (line["x"] + line["width"] / 2 - stage["x"]) / stage["width"]
    assert share == pytest.approx(float(slider.input_value()) / 1000, abs=0.01)


def test_any_two_can_be_chosen_and_swapped(visit, comparison_page):
    seen = visit(comparison_page)
    show_normals(seen)
    first = seen.picture(VIEW)
    seen.page.select_option("[data-side=left]", "truth")
    assert seen.page.locator(".caption-left").inner_text() == "truth"
    seen.until(lambda: np.abs(first - seen.picture(VIEW)).mean() > 1)
    seen.page.click("[data-action=swap]")
    assert seen.page.locator(".caption-right").inner_text() == "truth"


def test_errors_are_shown_on_one_scale(visit, comparison_page):
    seen = visit(comparison_page)
    seen.page.locator("#relight-view .segments label:has-text('Error')").click()
    picture = seen.picture(VIEW)
    height, width = picture.shape[:2]
    left, right = (
        picture[int(0.4 * height), int(width / 2 - 60)],
        picture[int(0.4 * height), int(width / 2 + 60)],
    )
    # Thirty degrees against four: the scale runs from dark to bright.
    assert left.sum() > right.sum() + 150
    # The truth has no error: clay stands in for it.
    seen.page.select_option("[data-side=right]", "truth")
    seen.until(lambda: np.ptp(seen.picture(VIEW)[int(0.4 * height), int(width / 2 + 60)]) < 25)


def test_light_and_panel_work_here_too(visit, comparison_page):
    seen = visit(comparison_page)
    before = seen.picture(VIEW)
    seen.set_range('#relight-view [data-look="diffuse"]', 0.2)
    dim = seen.picture(VIEW)
    assert dim.mean() < before.mean() - 5
    seen.page.click("[data-preset=raking]")
    assert seen.page.locator('#relight-view [value="clay"]').is_checked()


def test_surfaces_of_all_methods(seen):
    seen.page.locator("#surface-view").scroll_into_view_if_needed()
    seen.page.wait_for_selector("#surface-view[data-ready]")
    assert seen.page.locator("[data-surface=result]").input_value() == "r2"  # the best
    before = seen.picture("#surface-view canvas")
    seen.page.select_option("[data-surface=result]", "r0")
    seen.until(lambda: np.abs(seen.picture("#surface-view canvas") - before).mean() > 0.5)


def test_the_table_is_sorted_by_any_column(seen):
    def column(number):
        return seen.page.eval_on_selector_all(
            "table.sortable tbody tr",
            f"(rows) => rows.map((row) => row.cells[{number}].innerText.split('\\n')[0])",
        )

    seen.page.click("[data-sort='1']")
    errors = [float(text.rstrip("°")) for text in column(1)]
    assert errors == sorted(errors) and column(0) == ["pdlnv", "pls", "ls"]
    seen.page.click("[data-sort='1']")
    assert column(0) == ["ls", "pls", "pdlnv"]
    assert seen.page.locator("th[aria-sort=descending]").inner_text() == "Mean error"
    seen.page.click("[data-sort='0']")
    assert column(0) == ["ls", "pdlnv", "pls"]


def test_no_two_methods_look_alike():
    from photostereo.report.plots import style_of

    assert len({style_of(number) for number in range(30)}) == 30


def test_stills_are_compared_without_webgl(visit, comparison_page):
    seen = visit(comparison_page, script=NO_WEBGL)
    assert seen.page.get_by_text("This browser does not support WebGL2").first.is_visible()
    seen.set_range("[data-divider]", 0)
    right = seen.picture("#relight-view .stage")
    seen.set_range("[data-divider]", 1000)
    left = seen.picture("#relight-view .stage")
    assert np.abs(left - right).mean() > 1
    seen.page.select_option("[data-side=left]", "truth")
    assert "truth" in seen.page.locator(".still-left").get_attribute("alt")


def test_difference_is_the_angle_between_the_two(seen, sphere, make_result):
    """Thirty degrees against eight, both tilted about one axis: the angle follows from the arrays."""
    from photostereo.report.pictures import color_table, frame_around

    top = seen.page.evaluate(
        "JSON.parse(document.getElementById('data').textContent).relight.difference_top"
    )
    frame = frame_around(sphere.mask)
    left, right = (
        make_result(tilt=30.0).normals.astype(float),
        make_result(tilt=8.0).normals.astype(float),
    )
    for col, row in ((48, 48), (60, 30), (30, 70)):
        x, y = col - frame.cols.start + 0.5, row - frame.rows.start + 0.5
        picture = seen.look(f"light=30,40&mode=difference&sides=r0,r1&zoom=24&at={x},{y}")
        angle = np.degrees(np.arccos(left[row, col] @ right[row, col]))
        expected = color_table("ember")[round(min(angle / top, 1) * 255)]
        height, width = picture.shape[:2]
        assert np.abs(picture[height // 2, width // 2] - expected).max() <= 4
    assert not seen.page.locator(".divider").is_visible()
    assert seen.page.locator(".legend-bar").is_visible()


def test_blinking_shows_one_after_the_other(seen):
    sides = {}
    for split in (0, 1):
        sides[split] = seen.look(f"light=30,40&mode=normals&sides=r0,r2&split={split}")
    seen.look("light=30,40&mode=normals&sides=r0,r2&split=0.4")
    seen.page.locator("[data-action=blink]").evaluate("(e) => e.click()")
    found = set()
    for _ in range(100):
        picture = seen.picture(VIEW)
        found |= {side for side, whole in sides.items() if np.abs(picture - whole).mean() < 0.5}
        if found == {0, 1}:
            break
        seen.page.wait_for_timeout(250)
    assert found == {0, 1}
    seen.page.locator("[data-action=blink]").evaluate("(e) => e.click()")
    assert float(seen.page.locator("[data-divider]").input_value()) == 400


def test_both_sides_share_light_and_zoom(seen):
    """The same result on both sides: no seam at the divider, wherever one looks."""
    one = seen.look("light=210,30&mode=clay&zoom=9&at=40,45&sides=r1,r1&split=0.5")
    other = seen.look("light=210,30&mode=clay&zoom=9&at=40,45&sides=r1,r1&split=1")
    assert np.abs(one - other).max() <= 2


def test_heights_of_both_sides_are_measured_on_one_level(
    visit, make_result, capture, sphere, tmp_path
):
    """A surface and the same one flattened and lifted: profiles, pointer and colors follow the arrays."""
    import io

    from photostereo.core.units import PixelSize
    from photostereo.report import write_comparison
    from photostereo.report.pictures import color_table, frame_around

    path = tmp_path / "report.html"
    depths = [sphere.depth, 0.5 * sphere.depth + 70]
    results = [make_result(method="ls"), make_result(method='"=1+1",pls')]
    write_comparison(path, results, capture, depths=depths, pixel_size=PixelSize.of("0.5mm"))
    level = [depth - np.nanmedian(depth[capture.mask]) for depth in depths]
    bottom = min(np.nanmin(depth[capture.mask]) for depth in level)
    heights = [0.5 * (depth - bottom) for depth in level]
    seen = visit(path)
    seen.page.click("[data-drawer=measure]")
    for field, value in zip(seen.page.locator("[data-end]").all(), (30, 48, 66, 48), strict=True):
        field.fill(str(value))
    seen.page.wait_for_selector(".measure path.line.tone-3", state="attached")
    with seen.page.expect_download() as waiting:
        seen.page.click("[data-action=save-profile]")
    text = waiting.value.path().read_text()
    head, rows = text.split("\n", 1)
    assert head == 'column,row,along (mm),"height by ls (mm)","height by ""=1+1"",pls (mm)"'
    found = np.genfromtxt(io.StringIO(rows), delimiter=",")
    assert np.array_equal(found[:, 0], np.arange(30, 67))
    for height, column in zip(heights, found.T[3:], strict=True):
        assert np.abs(column - height[48, 30:67]).max() < 2e-3
    # The figures name the sides; another side is measured along the same line.
    spread = seen.page.locator(
        ".measure dl div:has-text('Between lowest') dd span"
    ).all_inner_texts()
    assert [float(words.split()[-2]) for words in spread] == pytest.approx(
        [np.ptp(height[48, 30:67]) for height in heights], rel=2e-3
    )
    seen.page.select_option("[data-side=right]", "r0")
    seen.page.wait_for_selector(".measure path.line.tone-3", state="detached")
    # One scale of colors for both.
    frame = frame_around(sphere.mask)
    col, row = 40, 52
    at = f"zoom=24&at={col - frame.cols.start + 0.5},{row - frame.rows.start + 0.5}"
    top = max(np.nanmax(height[capture.mask]) for height in heights)
    for side, height in enumerate(heights):
        picture = seen.look(f"light=30,40&mode=depth&{at}&sides=r{side},r{side}&split=1")
        expected = color_table("depth")[round(height[row, col] / top * 255)]
        assert np.abs(picture[picture.shape[0] // 2, picture.shape[1] // 2] - expected).max() <= 4
