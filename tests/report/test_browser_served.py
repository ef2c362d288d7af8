"""A result finer than its page: the local server gives the rest, to this machine alone."""

from __future__ import annotations

import http.client
import threading
from dataclasses import replace

import numpy as np
import pytest

from photostereo.core.conventions import srgb_from_linear
from photostereo.report import pyramid, write_comparison, write_report
from photostereo.report.serving import holds_finer, make_server, with_tiles

from .unpacking import unpack_normals

HEIGHT, WIDTH = 530, 610


@pytest.fixture(scope="module")
def wide(make_result):
    """Random normals: no pixel can be guessed from a coarser one."""
    rng = np.random.default_rng(5)
    normals = rng.normal((0, 0, 2), 0.5, (HEIGHT, WIDTH, 3)).astype(np.float32)
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    mask = np.ones((HEIGHT, WIDTH), bool)
    albedo = rng.random((HEIGHT, WIDTH)).astype(np.float32)
    return replace(
        make_result(),
        normals=normals,
        albedo=albedo,
        mask=mask,
        maps={},
        history=(),
        arrays={},
        method="ls",
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory, wide):
    """An OUT folder whose page had room for the coarse level only."""
    out = tmp_path_factory.mktemp("served")
    wide.save(out)
    np.save(
        out / "depth.npy",
        np.linspace(0, 40, HEIGHT * WIDTH, dtype=np.float32).reshape(HEIGHT, WIDTH),
    )
    patch = pytest.MonkeyPatch()
    patch.setattr(pyramid, "LEAST_ROOM", 0)
    patch.setattr("photostereo.report.page.PAGE_BYTES", 0)
    write_report(out / "report.html", wide, depth=np.load(out / "depth.npy"))
    patch.undo()
    return out


@pytest.fixture(scope="module")
def server(folder):
    with make_server(folder / "report.html") as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def ask(server, path):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=60)
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_tiles_are_the_arrays(server, wide):
    import cv2

    status, body = ask(server, "/tiles/normals/-/0/0/1.png")
    assert status == 200
    packed = cv2.imdecode(np.frombuffer(body, np.uint8), cv2.IMREAD_COLOR)[..., ::-1]
    assert np.abs(unpack_normals(packed) - wide.normals[:512, 512:]).max() < 2e-3
    status, body = ask(server, "/tiles/depth/-/0/1/0.png")
    codes = cv2.imdecode(np.frombuffer(body, np.uint8), cv2.IMREAD_COLOR)[..., ::-1].astype(int)
    heights = (codes[..., 0] * 256 + codes[..., 1] - 1) / 65534 * 40
    assert (
        np.abs(
            heights - np.linspace(0, 40, HEIGHT * WIDTH).reshape(HEIGHT, WIDTH)[512:, :512]
        ).max()
        < 1e-3
    )


@pytest.mark.parametrize(
    "path",
    [
        "/tiles/normals/-/0/9/0.png",
        "/tiles/normals/-/9/0/0.png",
        "/tiles/normals/..%2f..%2fetc/0/0/0.png",
        "/tiles/normals/elsewhere/0/0/0.png",
        "/tiles/secret/-/0/0/0.png",
        "/tiles/normals/-/0/0/-1.png",
    ],
)
def test_no_other_tile_is_served(server, path):
    assert ask(server, path)[0] == 404


def test_arrays_behind_a_link_are_not_read(tmp_path, folder):
    import shutil

    out = tmp_path / "out"
    shutil.copytree(folder, out)
    (tmp_path / "elsewhere.npy").write_bytes((out / "normals.npy").read_bytes())
    (out / "normals.npy").unlink()
    (out / "normals.npy").symlink_to(tmp_path / "elsewhere.npy")
    assert not holds_finer(out / "report.html")
    assert holds_finer(folder / "report.html")


def test_only_the_served_page_may_ask_for_pictures(folder):
    page = (folder / "report.html").read_text()
    assert "'self'" not in page and "data-tiles" not in page
    served = with_tiles(page)
    assert served.count("img-src 'self' data: blob:") == 1 and "connect-src" not in served
    assert served.startswith('<!doctype html>\n<html lang="en" data-tiles="tiles">')


@pytest.mark.browser
def test_the_served_page_shows_single_pixels(visit, server, folder, wide):
    zoom, col, row, reach = 24, 512, 300, 3
    address = f"#light=30,40&mode=normals&zoom={zoom}&at={col + 0.5},{row + 0.5}"

    def pixels(seen):
        picture = seen.picture("#relight-view canvas")
        height, width = picture.shape[:2]
        steps = zoom * np.arange(-reach, reach + 1)
        return picture[np.ix_((height / 2 + steps).astype(int), (width / 2 + steps).astype(int))]

    near = wide.normals[row - reach : row + reach + 1, col - reach : col + reach + 1]
    expected = 255 * srgb_from_linear((near * 0.5 + 0.5) ** 2.2)
    seen = visit(
        f"http://127.0.0.1:{server.server_address[1]}/report.html",
        width=700,
        height=500,
        at=address,
    )
    assert np.abs(pixels(seen) - expected).max() <= 1.5
    assert any("/tiles/normals/" in url for url in seen.requests)
    # The file alone shows what it holds.
    alone = visit(folder / "report.html", width=700, height=500, at=address)
    assert np.abs(pixels(alone) - expected).mean() > 5


@pytest.mark.browser
def test_a_served_comparison_shows_single_pixels_of_both(visit, tmp_path, wide, monkeypatch):
    from photostereo.capture import Capture

    other = replace(wide, normals=np.ascontiguousarray(wide.normals[::-1]), method="pls")
    for result in (wide, other):
        (tmp_path / result.method).mkdir()
        result.save(tmp_path / result.method)
    images = np.ones((3, HEIGHT, WIDTH), np.float32)
    capture = Capture(images=images, lights=np.eye(3) + np.array([0, 0, 1]), name="wide")
    monkeypatch.setattr(pyramid, "LEAST_ROOM", 0)
    monkeypatch.setattr("photostereo.report.comparison.PAGE_BYTES", 0)
    write_comparison(tmp_path / "report.html", [wide, other], capture, folders=["ls", "pls"])
    with make_server(tmp_path / "report.html") as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        try:
            seen = visit(
                f"http://127.0.0.1:{running.server_address[1]}/report.html",
                width=700,
                height=500,
                at="#light=30,40&mode=normals&zoom=24&at=300.5,200.5&sides=r0,r1&split=0.5",
            )
            picture = seen.picture("#relight-view canvas")
        finally:
            running.shutdown()
            thread.join()
    height, width = picture.shape[:2]
    for step, result in ((-3, wide), (3, other)):
        expected = 255 * srgb_from_linear((result.normals[200, 300 + step] * 0.5 + 0.5) ** 2.2)
        assert np.abs(picture[height // 2, int(width / 2 + 24 * step)] - expected).max() <= 2
