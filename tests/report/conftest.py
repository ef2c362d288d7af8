"""A sphere with everything that a report can show, and a real browser to look at it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from photostereo.capture.capture import Capture
from photostereo.solver.reconstruction import Reconstruction


@pytest.fixture(scope="session")
def report_page(
    tmp_path_factory: pytest.TempPathFactory, result: Reconstruction, capture: Capture, sphere: Any
) -> Path:
    from photostereo.report import write_report

    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(path, result, capture, depth=sphere.depth, files={"full mesh": "mesh.ply"})
    return path


@pytest.fixture(scope="session")
def comparison_page(
    tmp_path_factory: pytest.TempPathFactory,
    make_result: Callable[..., Reconstruction],
    capture: Capture,
    sphere: Any,
) -> Path:
    from photostereo.report import write_comparison

    path = tmp_path_factory.mktemp("compare") / "report.html"
    results = [
        make_result(method="ls", tilt=30.0),
        make_result(method="pls", tilt=8.0),
        make_result(method="pdlnv"),
    ]
    write_comparison(path, results, capture, depths=[sphere.depth, None, sphere.depth])
    return path


@dataclass
class Visit:
    """An open page and what happened on it."""

    page: Any
    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)
    turns: int = 0

    def picture(self, selector: str) -> np.ndarray:
        """What the user sees there, RGB in [0, 255]."""
        import cv2

        # Two frames: the one that the last event asked for has then been painted.
        self.page.evaluate(
            "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )
        self.page.wait_for_selector("#relight-view canvas:not([data-sharp=no])", state="attached")
        # A canvas is looked at without what stands over it.
        over = (
            "[...document.querySelectorAll('.stage > :not(canvas, img)')]"
            if "canvas" in selector
            else "[]"
        )
        hide = f"(v) => {over}.forEach((e) => {{ e.style.visibility = v; }})"
        self.page.evaluate(hide, "hidden")
        shot = self.page.locator(selector).first.screenshot()
        self.page.evaluate(hide, "")
        return cv2.imdecode(np.frombuffer(shot, np.uint8), cv2.IMREAD_COLOR)[..., ::-1].astype(
            float
        )

    def look(self, text: str) -> np.ndarray:
        """The relighting view as an address says."""
        self.turns += 1
        script = """(text) => new Promise((done) => {
            addEventListener("hashchange", () => done(), { once: true });
            location.hash = text;
        })"""
        self.page.evaluate(script, f"{text}&turn={self.turns}")
        return self.picture("#relight-view canvas")

    def until(self, met: Callable[[], Any], seconds: float = 60) -> Any:
        """What ``met`` gives once it is true, on a slow machine too."""
        end = time.monotonic() + seconds
        while not (found := met()) and time.monotonic() < end:
            self.page.wait_for_timeout(50)
        assert found
        return found

    def set_range(self, selector: str, value: float) -> None:
        self.page.locator(selector).evaluate(
            "(e, v) => { e.value = v; e.dispatchEvent(new Event('input', {bubbles: true})); }",
            str(value),
        )


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Visit]]:
    """Open a page; at the end of the test it must have been quiet and alone."""
    yield from open_pages(browser)


@pytest.fixture(scope="module")
def long_visit(browser: Any) -> Iterator[Callable[..., Visit]]:
    """The same for a page that many tests look at."""
    yield from open_pages(browser)


def open_pages(browser: Any) -> Iterator[Callable[..., Visit]]:
    contexts, visits = [], []

    def open_page(
        path: Path | str,
        *,
        width: int = 940,
        height: int = 700,
        scheme: str = "light",
        script: str | None = None,
        touch: bool = False,
        reduced: bool = True,
        at: str = "",
    ) -> Visit:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            has_touch=touch,
            accept_downloads=True,
            reduced_motion="reduce" if reduced else "no-preference",
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        seen = Visit(page)
        visits.append(seen)
        page.on(
            "console",
            lambda m: seen.messages.append(m.text) if m.type in ("error", "warning") else None,
        )
        page.on("pageerror", lambda problem: seen.messages.append(str(problem)))
        page.on("request", lambda request: seen.requests.append(request.url))

        def dismiss(dialog: Any) -> None:
            seen.dialogs.append(dialog.message)
            dialog.dismiss()

        page.on("dialog", dismiss)
        if script:
            page.add_init_script(script)
        address = (path.as_uri() if isinstance(path, Path) else path) + at
        page.goto(address)
        page.wait_for_selector("html[data-ready]")
        # The mouse reaches only what is in the window.
        page.evaluate("document.getElementById('relight-view').scrollIntoView()")
        return seen

    yield open_page
    for seen in visits:
        # Software rendering warns about read-back performance: the screenshots of these tests do that.
        noise = [text for text in seen.messages if "GPU stall" not in text]
        assert noise == []
        elsewhere = [
            url
            for url in seen.requests
            if not url.startswith(("file:", "data:", "blob:", "http://127.0.0.1:"))
        ]
        assert elsewhere == []
        assert seen.dialogs == []
    for context in contexts:
        context.close()
