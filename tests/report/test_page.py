"""The written page: complete, closed, safe, small."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from photostereo.capture import Capture
from photostereo.core.control import Cancelled, Control
from photostereo.core.errors import OutputError, ParameterError
from photostereo.core.findings import Finding
from photostereo.core.units import PixelSize
from photostereo.diagnosis.expected_error import ExpectedError
from photostereo.report import renew_surface, write_comparison, write_report
from photostereo.report.document import json_for_script, safe_links

HOSTILE = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>'",
    "</script><svg onload=alert(1)>",
    "{{ 7 * 7 }} ${alert(1)} `\u2028\u2029",
    "Büste № 7 — 彫刻 🗿 \u202egnp.exe",
    "x" * 5000,
)


class Outline(HTMLParser):
    """Elements and attributes as a browser would find them."""

    def __init__(self, text):
        super().__init__()
        self.elements = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


def data_of(text):
    return json.loads(DATA.search(text).group(1))


def test_page_holds_every_part(report_page):
    text = report_page.read_text(encoding="utf-8")
    for identity in (
        "relight",
        "surface",
        "evidence",
        "photographs",
        "learning",
        "diagnosis",
        "details",
    ):
        assert f'id="{identity}"' in text
    for word in (
        "Normal map",
        "Albedo",
        "Depth",
        "Angular error",
        "True normals",
        "Cost by term",
        "Atoms after",
    ):
        assert word in text
    data = data_of(text)
    assert len(data["photographs"]) == 12
    assert all(photo["verdict"].startswith("data:image/png") for photo in data["photographs"])
    assert 'href="mesh.ply"' in text


def test_page_without_capture_depth_or_learning(tmp_path, make_result):
    path = tmp_path / "report.html"
    bare = replace(
        make_result(), history=(), arrays={}, maps={}, angular_error=None, method="unheard of"
    )
    write_report(path, bare)
    text = path.read_text(encoding="utf-8")
    for identity in ("surface", "photographs", "learning", "diagnosis"):
        assert f'id="{identity}"' not in text
    assert 'id="relight"' in text and "unheard of" in text
    assert "Expected error" not in text


def test_the_expected_error_is_on_the_page_where_the_method_has_one(tmp_path, make_result):
    result = make_result()
    spread = np.where(result.mask, 7.25, 0.0).astype(np.float32)
    spread[:48] *= 3
    unsure = replace(result, maps={"spread": spread})
    write_report(tmp_path / "report.html", unsure, expected=ExpectedError(7.25))
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Expected error" in text and "Fair" in text and "about 7° on average" in text
    mean = spread[result.mask].mean()
    assert f"estimate of the error of each normal: {mean:.1f}° on average, below " in text


@pytest.mark.parametrize("before", ["another surface", "no surface"])
def test_a_renewed_surface_is_as_if_written_with_it(tmp_path, make_result, capture, sphere, before):
    """Whatever the page's capture is called: a name cannot pass for the marks."""
    result = replace(
        make_result(), capture="<!-- surface-section --> x <!-- end of surface-section -->"
    )
    renewed, fresh = tmp_path / "renewed.html", tmp_path / "fresh.html"
    old = (
        {"depth": -sphere.depth, "files": {"mesh.ply": "mesh.ply"}}
        if before == "another surface"
        else {}
    )
    write_report(renewed, result, capture, **old)
    tears = np.zeros(sphere.mask.shape, bool)
    tears[40, 20:60] = True
    new = {
        "depth": sphere.depth,
        "tears": tears,
        "files": {"mesh.stl": "mesh.stl"},
        "pixel_size": PixelSize.of("0.1mm"),
    }
    assert renew_surface(renewed, result, **new)
    write_report(fresh, result, capture, **new)
    pages = [path.read_text(encoding="utf-8") for path in (renewed, fresh)]
    assert data_of(pages[0]) == data_of(pages[1])
    bare = [re.sub(r"\b(bar-\w+-|sky)\d+", r"\1", DATA.sub("", page)) for page in pages]
    assert bare[0] == bare[1]
    identities = [
        element.get("id") for _, element in Outline(pages[0]).elements if element.get("id")
    ]
    assert len(identities) == len(set(identities))


def test_what_was_found_and_corrected_is_at_the_top_and_in_the_diagnosis(tmp_path, capture, result):
    notes = (
        Finding(
            "camera-moved", count=1, photographs=12, pixels=11.0, degrees=0.4, names="IMG_3.jpg"
        ),
        Finding("srgb-undone", some=""),
        Finding("room-light", share=0.26),
    )
    moved = replace(capture, origin=replace(capture.origin, notes=notes))
    uneven = replace(result, strengths=np.linspace(1, 1.5, len(capture), dtype=np.float32))
    write_report(tmp_path / "report.html", uneven, moved)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    top, rest = text.split('<section id="relight"')
    diagnosis = rest.split('id="diagnosis"')[1].split("</section>")[0]
    for part in (top, diagnosis):
        said = re.findall(r'<span class="badge">Corrected</span>\s*<(?:span|p)>(.*?)</', part)
        assert [words.split()[:3] for words in said] == [
            ["The", "camera", "moved:"],
            ["Other", "light", "in"],
            ["The", "exposure", "varies"],
        ]
        assert all(words.endswith(".") and not words.endswith("..") for words in said)


def test_a_page_that_is_no_report_of_the_result_is_left_alone(
    tmp_path, make_result, comparison_page, sphere
):
    for text in ("<p>mine</p>", comparison_page.read_text(encoding="utf-8")):
        path = tmp_path / "report.html"
        path.write_text(text, encoding="utf-8")
        assert not renew_surface(path, make_result(), depth=sphere.depth)
        assert path.read_text(encoding="utf-8") == text


def test_policy_names_exactly_the_script_and_the_style(report_page):
    text = report_page.read_text(encoding="utf-8")
    outline = Outline(text)
    (policy,) = [
        a["content"]
        for a in outline.all("meta")
        if a.get("http-equiv") == "Content-Security-Policy"
    ]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    for kind, pattern in (
        ("script", r"<script>(.*?)</script>"),
        ("style", r"<style>(.*?)</style>"),
    ):
        (source,) = re.findall(pattern, text, re.S)
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    # The policy must come before anything that it governs.
    assert text.index("Content-Security-Policy") < text.index("<style>")


def test_page_refers_to_nothing_outside(report_page, comparison_page):
    for path in (report_page, comparison_page):
        outline = Outline(path.read_text(encoding="utf-8"))
        for _, attributes in outline.elements:
            for name in ("src", "href", "srcset", "poster", "action"):
                value = attributes.get(name)
                assert value is None or value.startswith(("data:", "#", "mesh")), (name, value[:60])
            assert not any(name.startswith("on") or name == "style" for name in attributes)


def test_pictures_have_alternative_texts_and_controls_have_names(report_page, comparison_page):
    for path in (report_page, comparison_page):
        outline = Outline(path.read_text(encoding="utf-8"))
        for attributes in outline.all("img"):
            assert attributes.get("alt") is not None
            assert attributes["alt"] or "still" in attributes.get("class", "")
        for attributes in outline.all("svg"):
            assert attributes.get("aria-label") or attributes.get("aria-hidden")
        for attributes in outline.all("canvas"):
            assert attributes.get("aria-label") and attributes.get("tabindex") == "0"
        assert outline.all("html")[0]["lang"] == "en"


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_make_no_elements(tmp_path, make_capture, make_result, name):
    capture = make_capture(name=name)
    capture = replace(
        capture, origin=replace(capture.origin, files=(name,) * len(capture), notes=(name,))
    )
    result = replace(
        make_result(name=name), method=name, parameters={name: name}, versions={name: name}
    )
    path = tmp_path / "report.html"
    write_report(path, result, capture, files={name: "mesh.ply"})
    text = path.read_text(encoding="utf-8")
    outline = Outline(text)
    assert len(outline.all("script")) == 2
    assert not any("onerror" in a or "onload" in a for _, a in outline.elements)
    assert data_of(text)["photographs"][0]["name"].endswith(name)
    write_comparison(path, [result, result], capture)
    assert len(Outline(path.read_text(encoding="utf-8")).all("script")) == 2


def test_json_cannot_leave_its_element():
    text = str(
        json_for_script(
            {"a": "</script>&<!--\u2028\u2029", "b": float("nan"), "c": [1.5, float("inf")]}
        )
    )
    assert not set(text) & set("<>&\u2028\u2029")
    assert json.loads(text) == {"a": "</script>&<!--\u2028\u2029", "b": None, "c": [1.5, None]}


@pytest.mark.parametrize(
    "target",
    [
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        "http://example.org/x",
        "//example.org/x",
        "/etc/passwd",
        "data:x",
    ],
)
def test_links_that_leave_the_folder_are_refused(target):
    with pytest.raises(ParameterError) as caught:
        safe_links({"mesh": target})
    assert caught.value.code == "link-leaves-folder"


def test_undecodable_names_are_written(tmp_path, make_result):
    path = tmp_path / "report.html"
    write_report(path, make_result(name="b\udcffse"))
    assert "b?se" in path.read_text(encoding="utf-8")


def test_a_failed_write_leaves_the_old_page(tmp_path, result):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError) as caught:
        write_report(tmp_path / "file" / "report.html", result)
    assert caught.value.code == "cannot-write"
    (tmp_path / "file").unlink()
    path = tmp_path / "report.html"
    path.write_text("old")
    if os.geteuid() != 0:
        tmp_path.chmod(0o500)
        with pytest.raises(OutputError):
            write_report(path, result)
        tmp_path.chmod(0o700)
        assert path.read_text() == "old"
    write_report(path, result)
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


def test_page_of_a_full_frame_is_small(tmp_path, full_frame):
    """How long it takes to write is the business of benchmarks/report.py."""
    capture, result, depth = full_frame
    path = tmp_path / "report.html"
    write_report(path, result, capture, depth=depth)
    assert path.stat().st_size < 10_000_000


def test_comparison_of_many_on_a_full_frame_is_small(tmp_path, full_frame):
    capture, result, depth = full_frame
    path = tmp_path / "report.html"
    write_comparison(path, [result] * 8, capture, depths=[depth] * 8)
    assert path.stat().st_size < 10_000_000


@pytest.fixture(scope="module")
def full_frame(make_result):
    """512 × 612 pixels of noisy normals, 24 photographs in color: as hard to pack as it gets."""
    rng = np.random.default_rng(0)
    height, width = 512, 612
    normals = rng.normal((0, 0, 2), 0.4, (height, width, 3)).astype(np.float32)
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    lights = rng.normal((0, 0, 1.5), 0.8, (24, 3))
    images = rng.random((24, height, width, 3), dtype=np.float32)
    capture = Capture(images=images, lights=lights, name="full", truth=normals)
    result = replace(
        make_result(),
        normals=normals,
        albedo=rng.random((height, width, 3), dtype=np.float32),
        mask=capture.mask,
        maps={},
    )
    depth = rng.normal(0, 20, (height, width))
    return capture, result, depth


def test_comparison_table_marks_the_best(comparison_page, make_result):
    text = comparison_page.read_text(encoding="utf-8")
    means = [make_result(tilt=tilt).angular_error.mean for tilt in (30.0, 8.0, 4.0)]
    cells = re.findall(r'<td data-value="[0-9.]+"([^>]*)>([0-9.]+)°<svg', text)
    assert cells == [
        ("", f"{means[0]:.2f}"),
        ("", f"{means[1]:.2f}"),
        (' class="best"', f"{means[2]:.2f}"),
    ]
    data = data_of(text)
    assert list(data["relight"]["sets"]) == ["r0", "r1", "r2", "truth"]
    assert list(data["surface"]["grids"]) == ["r0", "r2"] and data["surface"]["first"] == "r2"


def test_comparison_asks_for_results_of_one_capture(tmp_path, capture, result, make_capture):
    with pytest.raises(ParameterError) as caught:
        write_comparison(tmp_path / "x.html", [], capture)
    assert caught.value.code == "nothing-to-compare"
    smaller = Capture(images=capture.images[:, 8:24], lights=capture.lights)
    with pytest.raises(ParameterError) as caught:
        write_comparison(tmp_path / "x.html", [result], smaller)
    assert caught.value.code == "sizes-differ"
    with pytest.raises(ParameterError) as caught:
        write_comparison(tmp_path / "x.html", [result], capture, depths=[])
    assert caught.value.code == "counts-differ"


def test_comparison_without_truth(tmp_path, make_capture, make_result):
    path = tmp_path / "report.html"
    write_comparison(path, [replace(make_result(), angular_error=None)], make_capture(truth=False))
    text = path.read_text(encoding="utf-8")
    assert "Mean error" not in text and "Unexplained" in text


def test_writing_a_page_can_be_cancelled(tmp_path, result, capture, sphere, monkeypatch):
    """At every place where it asks: nothing is left behind."""
    # On a busy machine it would ask once more while it waits.
    monkeypatch.setattr("photostereo.core.control.LONGEST_WAIT", 60)

    class Counting(Control):
        def __init__(self, stop):
            self.stop, self.count = stop, 0

        def check(self):
            self.count += 1
            if self.count == self.stop:
                raise Cancelled

    write_report(
        tmp_path / "whole.html", result, capture, depth=sphere.depth
    )  # the diagnosis is kept
    counting = Counting(0)
    write_report(tmp_path / "whole.html", result, capture, depth=sphere.depth, control=counting)
    assert counting.count >= 5
    for stop in range(1, counting.count + 1):
        with pytest.raises(Cancelled):
            write_report(
                tmp_path / "report.html",
                result,
                capture,
                depth=sphere.depth,
                control=Counting(stop),
            )
        assert [path.name for path in tmp_path.iterdir()] == ["whole.html"]


def test_what_is_known_about_the_object_is_said(tmp_path, result, capture):
    from photostereo.report.about import check_about, read_about

    (tmp_path / "photostereo.json").write_text(
        '{"title": "Vase", "license": "<b>CC0", "notes": [1]}'
    )
    about = {**read_about(tmp_path), **check_about({"credit": "A museum"})}
    write_report(tmp_path / "report.html", result, capture, about=about)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<h1>Vase</h1>" in page and "A museum" in page and "License: &lt;b&gt;CC0" in page
    assert "Weight of each pixel" in page and "1: trusted" in page


@pytest.mark.parametrize("text", ["[1]", '{"title": 5}', "{"])
def test_a_description_that_is_none_is_refused(tmp_path, text):
    from photostereo.core.errors import CaptureError
    from photostereo.report.about import read_about

    (tmp_path / "photostereo.json").write_text(text)
    with pytest.raises(CaptureError) as caught:
        read_about(tmp_path)
    assert caught.value.code in ("bad-sidecar", "invalid-json")
