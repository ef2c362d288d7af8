"""A small folder of JPEG photographs with a ball, and the app on it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from photostereo.app.security import Address
from photostereo.app.server import make_server
from photostereo.core.conventions import srgb_from_linear

from ..ball_scenes.balls import shoot_table
from ..ball_scenes.studio import Ball

BALL = (250.0, 120.0, 32.0)


@pytest.fixture(scope="session")
def jpegs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight photographs of 200 × 300 pixels of a figure with a mirror ball, as a camera writes them."""
    folder = tmp_path_factory.mktemp("photographs")
    from photostereo_lab.scenes import dome_lights

    lights = dome_lights(8, max_angle=50)
    shoot = shoot_table([Ball("mirror", *BALL)], size=(200, 300), lights=lights)
    np.savetxt(folder.parent / "truth.txt", shoot.lights)
    for number, image in enumerate(shoot.images, start=1):
        picture = np.rint(255 * srgb_from_linear(np.repeat(image[..., None], 3, axis=2))).astype(
            np.uint8
        )
        (folder / f"IMG_{number}.JPG").write_bytes(
            cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, 95])[1].tobytes()
        )
    return folder


@pytest.fixture
def folder(jpegs: Path, tmp_path: Path) -> Path:
    """A copy of them that a test may correct."""
    place = tmp_path / "owl"
    place.mkdir()
    for file in jpegs.iterdir():
        (place / file.name).write_bytes(file.read_bytes())
    return place


@pytest.fixture(autouse=True)
def own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHOTOSTEREO_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("PHOTOSTEREO_CAPTURES", str(tmp_path / "captures"))


def run_coroutine(coroutine: Any) -> Any:
    """Run a coroutine in a thread of its own: a browser may have left an event loop in this one."""
    with ThreadPoolExecutor(1) as own:
        return own.submit(asyncio.run, coroutine).result()


class Served:
    """A running server, and one browser's way to it."""

    def __init__(self, server: Any, sockets: list[Any], address: Address) -> None:
        import httpx

        self.server, self.address = server, address
        self.thread = threading.Thread(target=server.run, args=(sockets,), daemon=True)
        self.thread.start()
        while not server.started:
            time.sleep(0.01)
        self.client = httpx.Client(
            base_url=address.origin, timeout=200, headers={"Origin": address.origin}
        )
        self.client.get(f"/?token={address.token}")

    @property
    def state(self) -> Any:
        return self.server.config.app.state.sessions

    def open(self, folder: Path) -> str:
        answer = self.client.post("/api/open", json={"path": str(folder)})
        assert answer.status_code == 200, answer.text
        return str(answer.json()["id"])

    def board(self, desk: str) -> dict[str, Any]:
        return vars(self.state.open_sessions[desk].page.state)

    def wait(
        self, desk: str, met: Callable[[dict[str, Any]], Any], seconds: float = 240
    ) -> dict[str, Any]:
        """The state of a capture, once it is as wanted."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            board = self.board(desk)
            if met(board):
                return board
            time.sleep(0.05)
        raise AssertionError({name: str(value)[:300] for name, value in self.board(desk).items()})

    def settled(self, desk: str) -> dict[str, Any]:
        """Once everything is known of the capture."""
        return self.wait(
            desk, lambda b: b["findings"] is not None and b["looking"]["state"] != "running"
        )

    def stop(self) -> None:
        self.client.close()
        self.server.should_exit = True
        self.thread.join(60)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """One server for all tests of a module."""
    running = Served(*make_server(None))
    yield running
    running.stop()


@pytest.fixture
def tab(browser: Any, served: Served) -> Iterator[Any]:
    """Opens tabs of the app; at the end they must have been quiet, and alone with the server."""
    contexts: list[Any] = []
    faults: list[str] = []

    def open_tab(width: int = 1280, height: int = 800, **options: Any) -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            accept_downloads=True,
            reduced_motion="reduce",
            **options,
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(200_000)  # the first solve may have to compile
        page.on(
            "console", lambda m: faults.append(m.text) if m.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda problem: faults.append(str(problem)))
        page.on(
            "response", lambda r: faults.append(f"{r.status} {r.url}") if r.status >= 400 else None
        )
        page.on(
            "request",
            lambda r: (
                faults.append(r.url)
                if "//127.0.0.1:" not in r.url and r.url[:5] not in ("data:", "blob:")
                else None
            ),
        )
        page.goto(served.address.url)
        page.wait_for_selector("html[data-ready]")
        return page

    yield open_tab
    for context in contexts:
        context.close()
    assert [fault for fault in faults if "GPU stall" not in fault] == []


def step(page: Any, name: str) -> None:
    page.click(f"#steps [data-step={name}]")
    page.wait_for_selector(f"html[data-step={name}]")


def go(page: Any, served: Served, desk: str, name: str) -> None:
    page.goto(f"{served.address.origin}/#/c/{desk}/{name}")
    page.wait_for_selector(f"html[data-step={name}]")
