"""Fixtures shared by all tests."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from photostereo.capture.capture import Capture, Origin
from photostereo.core.control import Iteration
from photostereo.diagnosis.metrics import summarize_error
from photostereo.solver.reconstruction import Reconstruction

SIZE = 96
PROJECT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the app's state and dropped photographs of all tests, and of all fixtures, away from the user's."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("STATE", "CAPTURES"):
            patch.setenv(f"PHOTOSTEREO_{name}", str(tmp_path_factory.mktemp(name.lower())))
        yield


@pytest.fixture(scope="session", autouse=True)
def errors_have_messages() -> Iterator[None]:
    """An error that is raised without a message fails the test."""

    def complain(code: str, values: object) -> str:
        raise AssertionError(f"an error with the code {code} has no message: {values}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("photostereo.core.errors.without_message", complain)
        yield


def find_data() -> Path | None:
    """The folder of shared research captures, or None."""
    for candidate in (os.environ.get("PHOTOSTEREO_DATA"), PROJECT.parent / "shared" / "data"):
        if candidate and Path(candidate).is_dir():
            return Path(candidate)
    return None


@pytest.fixture(scope="session")
def data_dir() -> Path:
    found = find_data()
    if found is None:
        pytest.skip("the shared research captures are absent: set PHOTOSTEREO_DATA to their folder")
    return found


def dome(count: int) -> np.ndarray:
    """Lights on a spiral over the hemisphere."""
    k = np.arange(count) + 0.5
    elevation = np.arcsin(0.35 + 0.6 * k / count)
    azimuth = k * np.pi * (3 - np.sqrt(5))
    return np.stack(
        [
            np.cos(azimuth) * np.cos(elevation),
            np.sin(azimuth) * np.cos(elevation),
            np.sin(elevation),
        ],
        axis=1,
    )


@dataclass
class Sphere:
    """Normals, depth and mask of a sphere in closed form."""

    normals: np.ndarray
    depth: np.ndarray
    mask: np.ndarray


@pytest.fixture(scope="session")
def sphere() -> Sphere:
    radius, middle = 0.42 * SIZE, (SIZE - 1) / 2
    rows, cols = np.mgrid[:SIZE, :SIZE].astype(float)
    x, y = (cols - middle) / radius, (middle - rows) / radius
    mask = x**2 + y**2 < 0.96
    z = np.sqrt(np.where(mask, 1 - x**2 - y**2, 0))
    normals = np.where(mask[..., None], np.stack([x, y, z], axis=-1), 0).astype(np.float32)
    return Sphere(normals, np.where(mask, radius * z, np.nan), mask)


def photograph(
    sphere: Sphere, lights: np.ndarray, *, name: str = "sphere", truth: bool = True
) -> Capture:
    rows, _ = np.mgrid[:SIZE, :SIZE]
    albedo = np.where((rows // 12) % 2, 0.8, 0.5)
    images = np.maximum(np.einsum("hwc,jc->jhw", sphere.normals, lights), 0) * albedo
    return Capture(
        images=images,
        lights=lights,
        mask=sphere.mask,
        name=name,
        truth=sphere.normals if truth else None,
        origin=Origin(
            Path("sphere"), "test", 16, tuple(f"photo {i}.png" for i in range(len(lights)))
        ),
    )


@pytest.fixture(scope="session")
def make_capture(sphere: Sphere) -> Callable[..., Capture]:
    def make(count: int = 12, **options: Any) -> Capture:
        return photograph(sphere, dome(count), **options)

    return make


@pytest.fixture(scope="session")
def capture(make_capture: Callable[..., Capture]) -> Capture:
    return make_capture()


@pytest.fixture(scope="session")
def make_result(sphere: Sphere) -> Callable[..., Reconstruction]:
    """A made-up result: the true normals tilted, and all that a robust dictionary method records."""

    def make(
        *, name: str = "sphere", method: str = "pdlnv", tilt: float = 4.0, count: int = 12
    ) -> Reconstruction:
        rng = np.random.default_rng(1)
        angle = np.radians(tilt)
        turn = np.array(
            [[1, 0, 0], [0, np.cos(angle), -np.sin(angle)], [0, np.sin(angle), np.cos(angle)]]
        )
        normals = (sphere.normals @ turn.T).astype(np.float32)
        rows, _ = np.mgrid[:SIZE, :SIZE]
        albedo = np.where(sphere.mask, np.where((rows // 12) % 2, 0.8, 0.5), 0).astype(np.float32)
        atoms = rng.normal(size=(16, 48)).astype(np.float32)
        history = tuple(
            Iteration(
                n,
                cost=100 / n + 10,
                data=60 / n,
                change=0.1 / n,
                seconds=0.01,
                error=tilt + 1 / n,
                figures={"fit": 30 / n + 5, "sparsity": 10 / n + 5, "nonzeros": 0.1 / n},
            )
            for n in range(1, 9)
        )
        weights = rng.random((SIZE, SIZE, count)).astype(np.float32) * sphere.mask[..., None]
        return Reconstruction(
            normals=normals,
            albedo=albedo,
            mask=sphere.mask,
            method=method,
            parameters={"lam": 1.0, "mu": 0.05, "patch": (4, 4, 3)},
            capture=name,
            digest="0123456789abcdef",
            status="iterations",
            iterations=8,
            seconds={"solve": 1.25},
            history=history,
            maps={"inliers": weights},
            arrays={
                "dictionary": atoms,
                "dictionary_initial": atoms[::-1].copy(),
                "atom_use": np.linspace(0, 0.5, 16),
            },
            angular_error=summarize_error(normals, sphere.normals, sphere.mask),
            versions={"photostereo": "test"},
        )

    return make


@pytest.fixture(scope="session")
def result(make_result: Callable[..., Reconstruction]) -> Reconstruction:
    return make_result()


#: Software rendering gives WebGL2 on any machine; the rest keeps Chromium from calling home.
CHROMIUM_FLAGS = (Path(__file__).parent / "chromium-flags.txt").read_text(encoding="utf-8").split()


def find_chromium() -> str | None:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name)
        if found:
            return found
    return None


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    chromium = find_chromium()
    if chromium is None:
        pytest.skip(
            "no Chromium was found: install Debian's package `chromium` to run the tests in a real browser"
        )
    playwright = pytest.importorskip(
        "playwright.sync_api",
        reason="Playwright is absent: pip install 'photostereo[dev]' to test in a browser",
    )
    with playwright.sync_playwright() as driver:
        instance = driver.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
        yield instance
        instance.close()
