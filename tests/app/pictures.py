"""Pictures of the app for the guides: ``python -m tests.app.pictures docs/images``."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import cv2
import numpy as np
from playwright.sync_api import sync_playwright

from photostereo.app.server import make_server
from photostereo.core.conventions import srgb_from_linear

from ..ball_scenes.balls import shoot_table
from ..ball_scenes.studio import Ball
from ..conftest import CHROMIUM_FLAGS, find_chromium
from .conftest import Served

STEPS = ("photographs", "lights", "mask", "solve", "result")


def photograph(folder: Path) -> None:
    """Twenty JPEG photographs of the owl with a mirror ball."""
    folder.mkdir(parents=True)
    shoot = shoot_table([Ball("mirror", 620, 336, 62)], size=(480, 720))
    for number, image in enumerate(shoot.images, start=1):
        warm = image[..., None] * np.array([0.78, 0.9, 1.0], np.float32)
        picture = np.rint(255 * srgb_from_linear(warm)).astype(np.uint8)
        (folder / f"IMG_{number:04d}.JPG").write_bytes(cv2.imencode(".jpg", picture)[1].tobytes())


def main(out: Path) -> None:
    """Walk through the app and take a picture of each step."""
    with tempfile.TemporaryDirectory() as home, sync_playwright() as driver:
        os.environ |= {
            "PHOTOSTEREO_STATE": f"{home}/state",
            "PHOTOSTEREO_CAPTURES": f"{home}/captures",
        }
        folder = Path(home) / "owl"
        photograph(folder)
        served = Served(*make_server(None))
        browser = driver.chromium.launch(executable_path=find_chromium(), args=CHROMIUM_FLAGS)
        page = browser.new_page(viewport={"width": 1200, "height": 720}, reduced_motion="reduce")
        page.set_default_timeout(600_000)
        page.goto(served.address.url)
        desk = served.open(folder)
        served.settled(desk)
        for name in STEPS:
            page.goto(f"{served.address.origin}/#/c/{desk}/{name}")
            page.wait_for_selector(f"html[data-step={name}]")
            if name == "solve":
                page.click("[data-choice=best]")
                page.wait_for_function("() => document.querySelectorAll('.stages li').length > 4")
            elif name == "result":
                served.wait(desk, lambda board: board["job"]["state"] == "done", 1200)
                page.frame_locator("iframe").locator("#relight-view.live").wait_for()
            page.wait_for_timeout(3000)
            page.screenshot(path=out / f"app-{name}.jpg", type="jpeg", quality=72)
        browser.close()
        served.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
