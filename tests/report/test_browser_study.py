"""Looking closely, in a real browser: every picture is compared with the arrays behind it."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import numpy as np
import pytest

from photostereo.core.conventions import linear_from_srgb, srgb_from_linear
from photostereo.report import write_report
from photostereo.report.pictures import color_table, frame_around

pytestmark = pytest.mark.browser

HEIGHT, WIDTH = 540, 560
CLAY = np.array([0.52, 0.50, 0.47])
FLAT = "&diffuse=1&specular=0&ambient=0"


class Study:
    """Waves over a frame of two by two tiles, with a hole in it, and the page that shows them."""

    def __init__(self, folder, make_result) -> None:
        rows, cols = np.mgrid[:HEIGHT, :WIDTH].astype(float)
        bump = 9 * np.exp(-((cols - 300) ** 2 + (rows - 260) ** 2) / 900)
        ripple = 0.5 * np.sin(cols / 1.7)
        self.depth = 6 * np.sin(cols / 17) * np.cos(rows / 23) + 0.05 * rows + bump + ripple
        down, right = np.gradient(self.depth)
        normals = np.stack([-right, down, np.ones_like(right)], axis=-1)
        self.mask = np.ones((HEIGHT, WIDTH), bool)
        self.mask[:20] = self.mask[100:110, 200:210] = False
        self.normals = (normals / np.linalg.norm(normals, axis=-1, keepdims=True)).astype(
            np.float32
        )
        self.normals[~self.mask] = 0
        self.albedo = np.where(self.mask, 0.3 + 0.5 * ((rows // 7 + cols // 5) % 2), 0).astype(
            np.float32
        )
        self.depth = np.where(self.mask, self.depth, np.nan)
        self.result = replace(
            make_result(),
            normals=self.normals,
            albedo=self.albedo,
            mask=self.mask,
            maps={},
            history=(),
            arrays={},
        )
        frame = frame_around(self.mask)
        self.origin = (frame.cols.start, frame.rows.start)
        self.path = folder / "report.html"
        write_report(self.path, self.result, depth=self.depth)


@pytest.fixture(scope="module")
def study(tmp_path_factory, make_result):
    return Study(tmp_path_factory.mktemp("study"), make_result)


@pytest.fixture(scope="module")
def seen(long_visit, study):
    return long_visit(study.path, width=760, height=520)


def look(seen, study, text, zoom, col, row):
    """The view with the middle of a pixel of the arrays in the middle of the canvas."""
    x, y = col - study.origin[0] + 0.5, row - study.origin[1] + 0.5
    return seen.look(f"light=30,40&{text}&zoom={zoom}&at={x},{y}")


def pixels(picture, zoom, reach=4):
    """Colors at the middles of the pixels around the one in the middle: (2 reach + 1, 2 reach + 1, 3)."""
    height, width = picture.shape[:2]
    steps = zoom * np.arange(-reach, reach + 1)
    return picture[np.ix_((height / 2 + steps).astype(int), (width / 2 + steps).astype(int))]


def around(array, col, row, reach=4):
    return array[row - reach : row + reach + 1, col - reach : col + reach + 1]


def screen(linear):
    return 255 * srgb_from_linear(np.clip(linear, 0, 1))


def light(azimuth, elevation):
    a, e = np.radians(azimuth), np.radians(elevation)
    return np.array([np.cos(a) * np.cos(e), np.sin(a) * np.cos(e), np.sin(e)])


#: Inside a tile, across the border of four tiles (they begin at the frame's corner), beside the hole.
PLACES = [(300, 260), (512, 520), (203, 104)]


@pytest.mark.parametrize(("col", "row"), PLACES)
def test_zoom_shows_the_pixels_of_the_arrays(seen, study, col, row):
    normals, known = around(study.normals, col, row), around(study.mask, col, row)
    shown = pixels(look(seen, study, "mode=normals", 24, col, row), 24)
    expected = screen((normals * 0.5 + 0.5) ** 2.2)
    assert np.abs(shown - expected)[known].max() <= 1.5
    assert (shown[~known].max(axis=-1) < 60).all()  # the backdrop
    shown = pixels(look(seen, study, "mode=clay" + FLAT, 24, col, row), 24)
    assert (
        np.abs(shown - screen(CLAY * np.maximum(normals @ light(30, 40), 0)[..., None]))[
            known
        ].max()
        <= 1.5
    )
    shown = pixels(
        look(seen, study, "mode=albedo&diffuse=0&specular=0&ambient=0.5", 24, col, row), 24
    )
    white = np.percentile(study.albedo[study.mask], 99)
    linear = linear_from_srgb(
        np.rint(255 * srgb_from_linear(around(study.albedo, col, row) / white)) / 255
    )
    assert np.abs(shown - screen(0.5 * linear)[..., None])[known].max() <= 1.5


def test_scalars_are_the_colors_of_their_scales(seen, study):
    col, row, zoom = 300, 260, 24
    normals = around(study.normals, col, row).astype(float)

    def expected(scale, values, low, high):
        return color_table(scale)[
            np.rint(np.clip((values - low) / (high - low), 0, 1) * 255).astype(int)
        ]

    slope = np.degrees(np.arccos(normals[..., 2]))
    shown = pixels(look(seen, study, "mode=slope", zoom, col, row), zoom)
    assert np.abs(shown - expected("ember", slope, 0, 90)).max() <= 3
    height = study.depth - np.nanmin(study.depth)
    shown = pixels(look(seen, study, "mode=depth", zoom, col, row), zoom)
    assert (
        np.abs(shown - expected("depth", around(height, col, row), 0, np.nanmax(height))).max() <= 3
    )
    top = seen.page.evaluate(
        "JSON.parse(document.getElementById('data').textContent).relight.curvature_top"
    )
    n = study.normals.astype(float)
    curvature = np.zeros((HEIGHT, WIDTH))
    curvature[1:-1, 1:-1] = (
        n[1:-1, 2:, 0] - n[1:-1, :-2, 0] + n[:-2, 1:-1, 1] - n[2:, 1:-1, 1]
    ) / 4
    shown = pixels(look(seen, study, "mode=curvature", zoom, col, row), zoom)
    # The bytes of the page give a normal within 0.06 degrees, so a color or two of the scale.
    assert np.abs(shown - expected("weight", around(curvature, col, row), -top, top)).max() <= 12
    shown = pixels(
        look(
            seen,
            study,
            "mode=occlusion",
            zoom,
            col,
            row,
        ),
        zoom,
    )
    sky = np.array(
        [
            [open_sky(study.depth, c, r) for c in range(col - 4, col + 5)]
            for r in range(row - 4, row + 5)
        ]
    )
    assert np.abs(shown - expected("sky", sky, 0.3, 1)).max() <= 3
    assert np.ptp(sky) > 0.005


def open_sky(depth, col, row):
    """The mean over sixteen ways of cos² of the horizon's height, up to 48 pixels away."""
    total = 0.0
    for angle in np.arange(16) * np.pi / 8:
        steepest = 0.0
        for step in (1, 2, 3, 4, 6, 8, 11, 15, 20, 27, 36, 48):
            dx, dy = np.floor(np.array([np.cos(angle), np.sin(angle)]) * step + 0.5).astype(int)
            if not (0 <= row + dy < HEIGHT and 0 <= col + dx < WIDTH):
                break
            rise = depth[row + dy, col + dx] - depth[row, col]
            if np.isfinite(rise):
                steepest = max(steepest, rise / np.hypot(dx, dy))
        total += 1 / (1 + steepest**2)
    return total / 16


def test_enhancements_follow_their_formulas(seen, study):
    col, row, zoom = 310, 250, 24
    normals = around(study.normals, col, row).astype(float)
    cosine = normals @ light(30, 40)
    shown = pixels(look(seen, study, "mode=clay&gain=4" + FLAT, zoom, col, row), zoom)
    assert np.abs(shown - screen(CLAY * np.maximum(1 + 4 * (cosine - 1), 0)[..., None])).max() <= 2
    shown = pixels(
        look(seen, study, "mode=clay&diffuse=0.3&specular=0.2&gloss=20&ambient=0", zoom, col, row),
        zoom,
    )
    half = light(30, 40) + np.array([0, 0, 1])
    half /= np.linalg.norm(half)
    shine = 28 / 25.13274 * np.maximum(normals @ half, 0) ** 20 * np.maximum(cosine, 0)
    linear = 0.3 * CLAY * np.maximum(cosine, 0)[..., None] + 0.2 * shine[..., None]
    assert (
        np.abs(
            shown
            - screen(
                np.where(linear < 0.8, linear, 0.8 + 0.2 * (1 - np.exp(-(linear - 0.8) / 0.2)))
            )
        ).max()
        <= 2
    )
    # Normal unsharp masking with a Gaussian of three pixels.
    shown = pixels(look(seen, study, "mode=clay&detail=3&radius=3" + FLAT, zoom, col, row), zoom)
    offsets = np.arange(-9, 10)
    kernel = np.exp(-0.5 * (offsets / 3) ** 2)
    weights = np.outer(kernel, kernel)
    sharp = np.empty_like(normals)
    for j in range(9):
        for i in range(9):
            patch = around(study.normals, col - 4 + i, row - 4 + j, 9)
            mean = (patch * weights[..., None]).sum((0, 1)) / weights.sum()
            sharp[j, i] = normals[j, i] + 3 * (normals[j, i] - mean)
    sharp /= np.linalg.norm(sharp, axis=-1, keepdims=True)
    assert np.abs(shown - screen(CLAY * np.maximum(sharp @ light(30, 40), 0)[..., None])).max() <= 2
    assert np.abs(screen(CLAY * np.maximum(cosine, 0)[..., None]) - shown).max() > 20
    # Two colored lights at once.
    x, y = col - study.origin[0] + 0.5, row - study.origin[1] + 0.5
    shown = pixels(
        seen.look(f"light=30,40,ff0000;200,50,0000ff&mode=clay{FLAT}&zoom=24&at={x},{y}"), zoom
    )
    red, blue = np.maximum(normals @ light(30, 40), 0), np.maximum(normals @ light(200, 50), 0)
    assert np.abs(shown - screen(CLAY * np.stack([red, 0 * red, blue], axis=-1))).max() <= 2


def test_image_unsharp_masking_adds_what_a_blur_takes_away(seen, study):
    plain = look(seen, study, "mode=clay" + FLAT, 6, 300, 260)
    sharp = look(seen, study, "mode=clay&crispen=2" + FLAT, 6, 300, 260)
    height, width = plain.shape[:2]
    gray = plain @ [0.299, 0.587, 0.114]
    offsets = np.arange(-3, 4)
    kernel = np.exp(-0.5 * (offsets / 1.5) ** 2)
    weights = np.outer(kernel, kernel) / kernel.sum() ** 2
    for y, x in (
        (height // 2, width // 2),
        (height // 2 + 31, width // 2 - 40),
        (height // 3, width // 2),
    ):
        blur = (gray[y - 3 : y + 4, x - 3 : x + 4] * weights).sum()
        expected = np.clip(plain[y, x] + 2 * (gray[y, x] - blur), 0, 255)
        assert np.abs(sharp[y, x] - expected).max() <= 4
    assert np.abs(sharp - plain).max() > 3


def test_contours_lie_where_the_height_is_a_whole_step(seen, study):
    row = 300
    plain = look(seen, study, "mode=clay" + FLAT, 8, 300, row)
    lined = look(seen, study, "mode=clay&contours=1.5" + FLAT, 8, 300, row)
    height, width = plain.shape[:2]
    inked = np.flatnonzero(np.abs(lined - plain)[height // 2].max(axis=-1) > 25)
    places = 300.5 + (inked + 0.5 - width / 2) / 8 - 0.5
    heights = np.interp(places, np.arange(WIDTH), study.depth[row]) - np.nanmin(study.depth)
    slope = np.abs(np.gradient(study.depth[row]))[np.rint(places).astype(int)] + 0.15
    off = np.abs(heights / 1.5 - np.rint(heights / 1.5)) * 1.5
    assert len(inked) >= 4 and (off < 0.45 * slope).all()


def test_raking_light_rakes(seen, study):
    seen.look("light=200,60&mode=albedo")
    seen.page.locator("[data-preset=raking]").evaluate("(e) => e.click()")
    words = seen.page.locator("#relight-view .light-words")
    assert "15° high" in words.inner_text()
    box = seen.page.locator("#relight-view canvas").bounding_box()
    seen.page.mouse.move(box["x"] + 0.75 * box["width"], box["y"] + 0.5 * box["height"])
    assert words.inner_text() == "Light from the right, 15° high"  # it walks around, and stays low


def test_diffuse_gain_raises_a_low_light(seen, study):
    """1 + 3 (n·l − 1) is black wherever n·l is below two thirds: under a low light, nearly everywhere."""
    words = seen.page.locator("#relight-view .light-words")
    for before, after in ((30, 65), (70, 70)):
        seen.look(f"light=200,{before}&mode=clay")
        seen.page.locator("[data-preset=gain]").evaluate("(e) => e.click()")
        assert f"{after}° high" in words.inner_text()


def saved(seen, press):
    with seen.page.expect_download() as waiting:
        press()
    with open(waiting.value.path(), "rb") as file:
        return waiting.value.suggested_filename, file.read()


@pytest.mark.parametrize(
    ("start", "end"), [((40, 300), (540, 300)), ((250, 60), (250, 530)), ((60, 40), (520, 500))]
)
def test_a_profile_is_the_array(seen, study, start, end):
    seen.page.evaluate(
        "document.querySelector('[data-drawer=measure][aria-expanded=false]')?.click()"
    )
    done = seen.page.locator(".measure").get_attribute("data-done") or "0"
    for field, value in zip(seen.page.locator("[data-end]").all(), (*start, *end), strict=True):
        field.fill(str(value))
    seen.page.wait_for_function(
        "(n) => Number(document.querySelector('.measure').dataset.done || 0) > n", arg=int(done)
    )
    name, text = saved(seen, lambda: seen.page.click("[data-action=save-profile]"))
    assert name.endswith("-profile.csv")
    found = np.genfromtxt(io.BytesIO(text), delimiter=",", skip_header=1)
    column, row, along, height = found.T
    assert (column[0], row[0]) == start and (column[-1], row[-1]) == end
    length = np.hypot(end[0] - start[0], end[1] - start[1])
    assert along[-1] == pytest.approx(length)
    # Bilinear in the array, above its lowest point, within a step of the page's 16 bits.
    i, j = np.floor(column).astype(int), np.floor(row).astype(int)
    a, b = column - i, row - j
    i2, j2 = np.minimum(i + 1, WIDTH - 1), np.minimum(j + 1, HEIGHT - 1)
    d = study.depth
    expected = (d[j, i] * (1 - a) + d[j, i2] * a) * (1 - b) + (
        d[j2, i] * (1 - a) + d[j2, i2] * a
    ) * b
    step = (np.nanmax(d) - np.nanmin(d)) / 65534
    assert np.abs(height - (expected - np.nanmin(d))).max() < 1.01 * step
    rows = dict(
        zip(
            seen.page.locator(".measure dt").all_inner_texts(),
            seen.page.locator(".measure dd").all_inner_texts(),
            strict=True,
        )
    )
    assert float(rows["Distance in the picture"].split()[0]) == pytest.approx(length, rel=1e-3)
    walked = np.hypot(np.diff(along), np.diff(height)).sum()
    assert float(rows["Along the surface"].split()[0]) == pytest.approx(walked, rel=1e-3)
    assert seen.page.locator(".measure .profile path.line").count() == 1
    seen.page.click("[data-drawer=measure]")  # puts the tool away, too


def test_a_line_is_drawn_with_the_tool(seen, study):
    seen.look("light=30,40&mode=clay")
    seen.page.click("[data-tool=measure]")
    box = seen.page.locator("#relight-view canvas").bounding_box()
    seen.page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 0.5 * box["height"])
    seen.page.mouse.down()
    seen.page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.5 * box["height"], steps=3)
    seen.page.mouse.up()
    ends = [float(field.input_value()) for field in seen.page.locator("[data-end]").all()]
    scale = 0.94 * min(box["width"] / WIDTH, box["height"] / (HEIGHT - study.origin[1]))
    assert (
        ends[2] - ends[0] == pytest.approx(0.2 * box["width"] / scale, abs=0.5)
        and ends[1] == ends[3]
    )
    assert seen.page.locator(".ruler line").count() == 2
    said = float(seen.page.locator(".ruler-words").text_content().split()[0])
    assert said == pytest.approx(ends[2] - ends[0], rel=1e-2)
    assert not seen.page.locator(
        "#relight-view .hint"
    ).first.is_visible()  # it is for those who have not begun
    seen.page.click("[data-action=clear-line]")
    assert seen.page.locator(".ruler line").count() == 0
    seen.page.click("[data-tool=measure]")


def test_numbers_under_the_pointer_are_the_arrays(seen, study):
    col, row = 301, 255
    look(seen, study, "mode=clay", 20, col, row)
    box = seen.page.locator("#relight-view canvas").bounding_box()
    seen.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    words = seen.page.locator(".pointer-words").inner_text()
    n = study.normals[row, col]
    said = " ".join(f"{value:.3f}".replace("-", "−") for value in n)
    assert f"column {col}, row {row}" in words
    found = [float(part.replace("−", "-")) for part in words.split("normal ")[1].split()[:3]]
    assert np.abs(found - n).max() < 2e-3, (said, words)
    height = float(words.split("height ")[1].split()[0])
    assert height == pytest.approx(study.depth[row, col] - np.nanmin(study.depth), abs=6e-3)


def test_a_link_restores_the_view_to_the_pixel(seen, visit, study):
    text = (
        "light=77.25,33.5,ffaa80;300,20,4080ff&zoom=7.3123457&at=271.3141592,233.7182818"
        "&mode=clay&detail=1.7&contours=2&gain=1.4&hold=1"
    )
    seen.look(text)
    seen.page.evaluate("document.querySelector('[data-action=link]').click()")
    address = seen.page.evaluate("location.hash")
    before = seen.picture("#relight-view canvas")
    again = visit(study.path, width=760, height=520, at=address)
    assert np.array_equal(again.picture("#relight-view canvas"), before)
    assert again.page.locator("[data-toggle=pin]").is_checked()
    plain = again.look("light=77.25,33.5&mode=clay")
    assert np.abs(plain - before).mean() > 2


@pytest.mark.parametrize(
    "text",
    [
        "light=NaN,Infinity&zoom=-1&at=x,y&mode=<img>",
        "light=1e999,5&zoom=1e999&at=1,1",
        "light=&zoom=&at=&sides=__proto__,constructor&detail=-5",
        "mode=error&contours=1e-9&radius=1e9&detail=6",
    ],
)
def test_a_link_that_says_nonsense_does_no_harm(seen, text):
    assert seen.look(text).std() > 5
    assert seen.page.locator("#relight-view .light-words").inner_text().startswith("Light from")


def test_zooming_keeps_the_place_and_the_page_scrolls(visit, study):
    seen = visit(study.path, width=760, height=520)
    canvas = "#relight-view canvas"
    box = seen.page.locator(canvas).bounding_box()
    x, y = box["x"] + 0.3 * box["width"], box["y"] + 0.6 * box["height"]
    seen.page.mouse.move(x, y)
    top = seen.page.evaluate("scrollY")
    seen.page.mouse.wheel(0, 40)
    # Asked from outside: older Playwrights wait by an eval that the page's policy forbids.
    seen.until(lambda: seen.page.evaluate("scrollY") > top)
    assert seen.page.locator(".minimap").is_hidden()
    seen.page.evaluate("document.getElementById('relight-view').scrollIntoView()")
    box = seen.page.locator(canvas).bounding_box()
    x, y = box["x"] + 0.3 * box["width"], box["y"] + 0.6 * box["height"]
    seen.page.mouse.click(x, y)  # holds the light, and gives the view the focus
    place = seen.page.locator(".pointer-words")
    seen.page.mouse.move(x + 1, y)
    seen.page.mouse.move(x, y)
    before, top = place.inner_text(), seen.page.evaluate("scrollY")
    for _ in range(6):
        seen.page.mouse.wheel(0, -200)
    seen.page.wait_for_selector(".minimap", state="visible")
    seen.page.mouse.move(x + 1, y)
    seen.page.mouse.move(x, y)
    assert seen.page.evaluate("scrollY") == top
    column = [
        int(words.split("column ")[1].split(",")[0]) for words in (before, place.inner_text())
    ]
    assert abs(column[0] - column[1]) <= 1
    # Dragging moves the picture with the hand.
    seen.page.mouse.down()
    seen.page.mouse.move(x + 90, y + 30, steps=4)
    seen.page.mouse.up()
    seen.page.mouse.move(x + 91, y + 30)
    assert abs(int(place.inner_text().split("column ")[1].split(",")[0]) - column[0]) <= 1
    # A press on the map of the whole goes there; double-click and keys zoom.
    view = "document.querySelector('[data-action=link]').click(); location.hash"
    there = seen.page.locator(".minimap").bounding_box()
    seen.page.mouse.click(there["x"] + 0.25 * there["width"], there["y"] + 0.75 * there["height"])
    at = [float(part) for part in seen.page.evaluate(view).split("at=")[1].split("&")[0].split(",")]
    assert at == pytest.approx([0.25 * WIDTH, 0.75 * (HEIGHT - study.origin[1])], rel=0.02)
    zoom = float(seen.page.evaluate(view).split("zoom=")[1].split("&")[0])
    seen.page.mouse.dblclick(x, y)
    assert float(seen.page.evaluate(view).split("zoom=")[1].split("&")[0]) == pytest.approx(
        2 * zoom
    )
    seen.page.locator(canvas).focus()
    seen.page.keyboard.press("0")
    assert "zoom" not in seen.page.evaluate(view)


def test_notes_are_kept_shown_saved_and_read(visit, study, tmp_path):
    hostile = "<img src=x onerror=alert(1)> crack </script>"
    seen = visit(study.path, width=760, height=520)
    seen.page.click("[data-tool=note]")
    box = seen.page.locator("#relight-view canvas").bounding_box()
    seen.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    seen.page.locator(".notes textarea").fill(hostile)
    seen.page.reload()
    seen.page.wait_for_selector("html[data-ready]")
    assert seen.page.locator(".pin").count() == 1
    seen.page.locator(".pin").click()
    assert seen.page.locator(".notes textarea").input_value() == hostile
    name, text = saved(seen, lambda: seen.page.click("[data-action=save-notes]"))
    notes = json.loads(text)["notes"]
    middle = (WIDTH / 2 - 0.5, (HEIGHT + study.origin[1]) / 2 - 0.5)
    assert name == "notes.json" and notes[0]["text"] == hostile
    assert (notes[0]["x"], notes[0]["y"]) == pytest.approx(middle, abs=1)
    seen.page.click(".notes li button:has-text('Remove')")
    assert seen.page.locator(".pin").count() == 0
    bad = tmp_path / "bad.json"
    for content in ("{", "[1, null]", '{"notes": 5}', '[{"x": 1e9, "y": 1, "text": "far"}]'):
        bad.write_text(content)
        seen.page.set_input_files("[data-notes=read]", bad)
    good = tmp_path / "notes.json"
    good.write_bytes(text)
    seen.page.set_input_files("[data-notes=read]", good)
    seen.page.wait_for_selector(".pin")
    assert seen.page.locator(".pin").count() == 1


def test_a_snapshot_is_the_view(seen, study):
    import cv2

    shown = look(seen, study, "mode=clay", 5, 300, 260)
    name, content = saved(seen, lambda: seen.page.click("[data-action=snapshot]"))
    picture = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR)[..., ::-1]
    assert name == "sphere-view.png" and np.abs(np.subtract(picture.shape, shown.shape)).max() <= 1
    middle = (
        slice(shown.shape[0] // 4, 3 * shown.shape[0] // 4),
        slice(shown.shape[1] // 4, 3 * shown.shape[1] // 4),
    )
    assert np.abs(picture[middle] - shown[middle]).max() <= 1
    assert (picture[-60:, :200].min(axis=-1) > 240).sum() > 60  # the scale bar


def test_files_that_the_page_makes(seen, study, tmp_path):
    import cv2

    left, top = study.origin
    normals, mask, depth = (
        study.normals[top:, left:],
        study.mask[top:, left:],
        study.depth[top:, left:],
    )

    def made(kind):
        _, content = saved(
            seen, lambda: seen.page.locator(f"[data-make={kind}]").evaluate("(e) => e.click()")
        )
        if kind.endswith("exr"):
            path = tmp_path / "file.exr"
            path.write_bytes(content)
            openexr = pytest.importorskip("OpenEXR")
            with openexr.File(str(path)) as file:
                assert file.header()["comments"]
                return {name: channel.pixels for name, channel in file.channels().items()}
        return cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_UNCHANGED)

    for kind, sign in (("opengl", 1), ("directx", -1)):
        picture = made(kind)[..., ::-1]
        assert picture.dtype == np.uint16
        expected = (normals * [1, sign, 1] * 0.5 + 0.5) * 65535
        assert (
            np.abs(picture - expected)[mask].max() < 60 and not picture[~mask].any()
        )  # 12 + 12 bits
    assert np.array_equal(made("mask") > 0, mask)
    low, high = np.nanmin(depth), np.nanmax(depth)
    codes = made("depth")
    assert codes.dtype == np.uint16 and not codes[~mask].any()
    assert (
        np.abs(low + (codes[mask] - 1.0) / 65534 * (high - low) - depth[mask]).max()
        < (high - low) / 65534
    )
    white = np.percentile(study.albedo[study.mask], 99)
    albedo = made("albedo")[..., 0]
    assert (
        np.abs(albedo - 255 * srgb_from_linear(study.albedo[top:, left:] / white))[mask].max() <= 1
    )
    planes = made("depth-exr")
    (heights,) = planes.values()
    assert np.abs(heights[mask] - (depth[mask] - low)).max() < (high - low) / 65534
    planes = made("normals-exr")
    found = (
        planes["RGB"] if "RGB" in planes else np.stack([planes[name] for name in "RGB"], axis=-1)
    )
    assert np.abs(found - normals).max() < 2e-3


def test_files_that_the_page_makes_carry_the_resolution(visit, tmp_path, make_result, sphere):
    from PIL import Image

    from photostereo.core.units import PixelSize

    openexr = pytest.importorskip("OpenEXR")
    path = tmp_path / "report.html"
    write_report(path, make_result(), depth=sphere.depth, pixel_size=PixelSize.of("0.1mm"))
    seen = visit(path, width=760, height=520)
    for kind in ("opengl", "depth", "normals-exr", "depth-exr"):
        press = seen.page.locator(f"[data-make={kind}]")
        name, content = saved(seen, lambda press=press: press.evaluate("(e) => e.click()"))
        file = tmp_path / name
        file.write_bytes(content)
        if name.endswith(".png"):
            with Image.open(file) as picture:
                assert picture.info["dpi"] == pytest.approx((254, 254), rel=1e-3)
        else:
            with openexr.File(str(file)) as picture:
                assert picture.header()["xDensity"] == pytest.approx(254, rel=1e-6)
