"""Nine megapixels: the page has no room for all of them, opens at once, and the server has every pixel."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

from photostereo.core.conventions import srgb_from_linear
from photostereo.report import write_report
from photostereo.report.serving import make_server

pytestmark = [pytest.mark.browser, pytest.mark.slow]

HEIGHT, WIDTH = 2500, 3600


def test_a_page_of_nine_megapixels(visit, tmp_path, make_result):
    rng = np.random.default_rng(0)
    rows, cols = np.mgrid[:HEIGHT, :WIDTH].astype(np.float32)
    depth = 60 * np.sin(cols / 300) * np.cos(rows / 250) + 2 * np.sin(cols / 9) * np.sin(rows / 11)
    down, right = np.gradient(depth)
    normals = np.stack([-right, down, np.ones_like(right)], axis=-1)
    normals += rng.normal(0, 0.03, normals.shape).astype(np.float32)
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    albedo = (0.5 + 0.3 * np.sin(cols / 40) + 0.05 * rng.normal(size=rows.shape)).astype(np.float32)
    mask = np.hypot(cols - WIDTH / 2, 1.4 * (rows - HEIGHT / 2)) < 1750
    normals[~mask], albedo[~mask], depth[~mask] = 0, 0, np.nan
    result = replace(
        make_result(), normals=normals, albedo=albedo, mask=mask, maps={}, history=(), arrays={}
    )
    path = tmp_path / "report.html"
    write_report(path, result, depth=depth)
    assert path.stat().st_size < 10_000_000
    seen = visit(path, width=1280, height=900)
    opened = int(seen.page.evaluate("document.documentElement.dataset.ready"))
    assert opened < 20_000  # milliseconds; it waits for no one, but the machine may be busy
    for name, array in (("normals", normals), ("mask", mask), ("albedo", albedo), ("depth", depth)):
        np.save(tmp_path / f"{name}.npy", array)
    left = np.flatnonzero(mask.any(axis=0))[0] - int(
        np.ceil(0.03 * np.ptp(np.flatnonzero(mask.any(axis=0))) + 0.03)
    )
    top = np.flatnonzero(mask.any(axis=1))[0] - int(
        np.ceil(0.03 * np.ptp(np.flatnonzero(mask.any(axis=0))) + 0.03)
    )
    left, top = max(left, 0), max(top, 0)
    with make_server(path) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            address = f"http://127.0.0.1:{server.server_address[1]}/report.html"
            at = f"#light=30,40&mode=normals&zoom=16&at={1800 - left + 0.5},{1250 - top + 0.5}"
            seen = visit(address, width=1280, height=900, at=at)
            picture = seen.picture("#relight-view canvas")
        finally:
            server.shutdown()
            thread.join()
    height, width = picture.shape[:2]
    for step in range(-8, 9):
        expected = 255 * srgb_from_linear((normals[1250, 1800 + step] * 0.5 + 0.5) ** 2.2)
        assert np.abs(picture[height // 2, int(width / 2 + 16 * step)] - expected).max() <= 2
