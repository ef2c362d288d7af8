"""What a notebook shows."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import photostereo as ps
from photostereo.core.errors import ParameterError
from photostereo_lab.scenes import render_scene


@pytest.fixture(scope="module")
def scene():
    return render_scene("figure", size=48)


@pytest.fixture(scope="module")
def solved(scene):
    return ps.solve(scene, "ls")


def test_everything_shows_itself(scene, solved):
    surface = ps.integrate(solved.normals, solved.mask)
    for shown, pictures in (
        (scene, 6),
        (solved, 3),
        (surface, 1),
        (ps.diagnose(scene, solved), 2),
        (ps.compare(scene, ["ls", "l1"]), 2),
    ):
        html = shown._repr_html_()
        assert html.count('<img src="data:image/webp;base64,') == pictures
        assert "<table><tr>" in html
        assert len(shown.plot().axes) == pictures


def test_names_are_text(scene):
    from dataclasses import replace

    html = replace(scene, name="<script>")._repr_html_()
    assert "<script>" not in html and "&lt;script&gt;" in html


def test_a_result_under_another_light(scene, solved):
    light = np.array([0.0, 3.0, 4.0])
    picture = solved.relight(light, linear=True)
    lit = np.maximum(solved.normals @ (light / 5), 0)
    where = solved.mask & (lit > 0)
    ratio = picture[where][:, 0] / (solved.albedo * lit)[where]
    assert np.ptp(ratio[picture[where][:, 0] < 1]) < 1e-6 * ratio.max()
    assert not picture[~solved.mask].any()
    with pytest.raises(ParameterError) as caught:
        solved.relight([0, 0, 0])
    assert caught.value.code == "not-a-direction"


def test_the_viewer_in_a_cell(scene, solved, tmp_path):
    cell = ps.view(solved, scene, height=300)._repr_html_()
    assert (
        "class=&quot;embed&quot;" in cell
        and "height:300px" in cell
        and "allow-same-origin" not in cell
    )
    ps.write_report(tmp_path / "report.html", solved)
    assert ps.view(tmp_path)._repr_html_().startswith("<iframe")


def test_progress_in_a_notebook(scene, monkeypatch):
    shown: list[str] = []

    def display(bar, raw, display_id=None):
        shown.append(bar["text/html"])
        return SimpleNamespace(update=display)

    ended = []
    events = SimpleNamespace(
        register=lambda when, what: ended.append(what),
        unregister=lambda when, what: ended.remove(what),
    )
    notebook = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1, events=events))
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    ps.solve(scene, "dlnv", max_iter=3, control=ps.Progress())
    assert any("iterations" in bar and "<progress" in bar for bar in shown)
    ended[0]()  # as IPython does when the cell is done
    assert shown[-1].endswith(" s") or "done" in shown[-1]
    assert not ended


def test_a_folder_is_not_a_capture():
    with pytest.raises(ParameterError) as caught:
        ps.solve("folder")
    assert caught.value.code == "needs-a-capture"


def test_a_plot_is_a_picture_without_pyplot(solved):
    """Jupyter shows a figure by its own formatter only once pyplot is imported."""
    picture = solved.plot()._repr_png_()
    assert picture.startswith(b"\x89PNG") and len(picture) > 10_000
