"""The server answers this machine, this browser and this page, and shows files of opened folders only."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import cv2
import httpx
import numpy as np
import pytest

from photostereo.app import server as server_module
from photostereo.app.drops import harmless_name
from photostereo.app.endpoints import refuse
from photostereo.app.errors import NotFoundError, RequestError, TooLargeError
from photostereo.app.server import make_server
from photostereo.app.work_folder import WorkFolder, remove_abandoned
from photostereo.capture.edits import Edits, read_edits, write_edits
from photostereo.core.errors import CaptureError
from photostereo.io.atomic import write_bytes
from photostereo.report.serving import is_own

from .conftest import Served, run_coroutine


@pytest.fixture(scope="module")
def server():
    running = Served(*make_server(None))
    yield running
    running.stop()


@pytest.fixture
def client(server):
    """A browser that has never been here."""
    with httpx.Client(base_url=server.address.origin) as client:
        yield client


@pytest.fixture
def known(client, server):
    """A browser that has opened the address of the terminal."""
    assert client.get(f"/?token={server.address.token}").status_code == 200
    client.headers["Origin"] = server.address.origin
    return client


def test_the_token_of_the_address_becomes_a_cookie(client, server):
    assert client.get("/").status_code == 401
    assert client.get("/api/start").status_code == 401
    assert client.get("/?token=guessed").status_code == 403
    answer = client.get(f"/?token={server.address.token}")
    assert answer.status_code == 200 and 'content="0; url=/"' in answer.text
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie
    assert client.get("/").status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:80", "evil.example:{port}", ""]
)
def test_other_hosts_are_refused(known, server, host):
    host = host.format(port=server.address.port)
    assert known.get("/", headers={"Host": host}).status_code == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "{results}"])
def test_other_origins_are_refused(known, server, origin):
    origin = origin.format(results=server.address.results_origin)
    assert known.get("/api/start", headers={"Origin": origin}).status_code == 403
    assert known.post("/api/open", json={}, headers={"Origin": origin}).status_code == 403


def test_a_change_needs_an_origin_and_other_sites_are_refused(known):
    del known.headers["Origin"]
    assert known.post("/api/open", json={}).status_code == 403
    assert known.get("/api/start", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert known.get("/api/start", headers={"Sec-Fetch-Site": "same-site"}).status_code == 403
    assert known.get("/api/start", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200


def test_the_policy_is_strict(known):
    policy = known.get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy and "script-src 'self'" in policy
    assert known.get("/static/main.js").headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "name", ["../server.py", "..%2fserver.py", "%2e%2e/server.py", ".hidden", "a/b.js"]
)
def test_only_the_pages_own_files_are_static(known, name):
    assert known.get(f"/static/{name}").status_code == 404


def test_results_are_on_an_origin_of_their_own(known, server):
    results = server.address.results_origin
    assert known.get(f"{results}/api/start").status_code == 403
    assert known.get(f"{results}/r/unknown/report.html").status_code == 404
    assert known.get("/r/unknown/report.html").status_code == 403


def test_a_result_shows_its_own_folder_only(known, server, tmp_path):
    result = tmp_path / "result"
    result.mkdir()
    (result / "report.html").write_text('<html lang="en">page')
    (tmp_path / "secret.txt").write_text("secret")
    (result / "link.txt").symlink_to(tmp_path / "secret.txt")
    server.state.open_sessions["x"] = SimpleNamespace(keys={"key": result})
    address = f"{server.address.results_origin}/r/key"
    assert known.get(f"{address}/report.html").status_code == 200
    for name in (
        "../secret.txt",
        "..%2fsecret.txt",
        "link.txt",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "",
    ):
        assert known.get(f"{address}/{name}").status_code in (403, 404), name
    del server.state.open_sessions["x"]


def test_downloads_are_finished_files_of_the_capture(known, server, tmp_path):
    results = tmp_path / "owl" / "results"
    (results / "ls").mkdir(parents=True)
    (results / ".ls-staged").mkdir()
    (tmp_path / "owl" / "IMG_1.JPG").write_text("photograph")
    for place in (results / "ls", results / ".ls-staged"):
        (place / "mesh.glb").write_text("glTF")
    (results / "ls" / "link.glb").symlink_to(tmp_path / "owl" / "IMG_1.JPG")
    server.state.open_sessions["x"] = SimpleNamespace(id="x", folder=tmp_path / "owl")
    for name, status in (
        ("ls/mesh.glb", 200),
        (".ls-staged/mesh.glb", 404),
        ("ls/link.glb", 404),
        ("ls/..%2f..%2fIMG_1.JPG", 404),
    ):
        assert known.get(f"/api/c/x/file/{name}").status_code == status, name
    del server.state.open_sessions["x"]


def test_links_in_a_foreign_folder_lead_nowhere(tmp_path):
    outside, folder = tmp_path / "outside.txt", tmp_path / "owl"
    outside.write_text("mine")
    folder.mkdir()
    (folder / "photostereo-mask.png").symlink_to(outside)
    (folder / "photostereo-edits.json").symlink_to(outside)
    write_bytes(folder / "photostereo-mask.png", b"painted")
    write_edits(folder, Edits(mask="photostereo-mask.png"))
    assert outside.read_text() == "mine" and read_edits(folder).mask == "photostereo-mask.png"


def test_questions_are_limited(known):
    assert known.post("/api/open", content=b"x" * (2 << 20)).status_code == 413
    assert known.post("/api/open", content=b"[1]").status_code == 400
    assert known.post("/api/open", json={"path": "/no/such\0folder"}).status_code in (400, 404)


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("run.sh", 400),
        ("page.html", 400),
        ("no suffix", 400),
        ("fake.png", 400),
        ("lights.csv", 200),
    ],
)
def test_only_photographs_and_lights_can_be_dropped(known, name, status):
    drop = known.post("/api/drop", json={"name": "../../etc"}).json()
    folder = Path(drop["folder"])
    assert folder.parent.name == "captures"
    assert (
        known.put(f"/api/drop/{drop['drop']}/{name}", content=b"not a picture").status_code
        == status
    )
    assert [file.name for file in folder.glob("*")] == ([name] if status == 200 else [])


@pytest.mark.parametrize("suffix", [".png", ".tif", ".bmp", ".ppm"])
def test_photographs_of_every_plain_format_can_be_dropped(known, suffix):
    drop = known.post("/api/drop", json={}).json()
    content = cv2.imencode(suffix, np.zeros((30, 40, 3), np.uint8))[1].tobytes()
    assert known.put(f"/api/drop/{drop['drop']}/a{suffix}", content=content).status_code == 200


def test_dropped_files_are_limited_in_size(known, monkeypatch):
    monkeypatch.setattr("photostereo.app.drops.FILE_LIMIT", 1000)
    drop = known.post("/api/drop", json={}).json()
    assert known.put(f"/api/drop/{drop['drop']}/lights.csv", content=b"x" * 2000).status_code == 413
    assert not Path(drop["folder"]).exists()


def test_hostile_names_stay_in_the_folder(known, jpegs):
    drop = known.post("/api/drop", json={}).json()
    content = (jpegs / "IMG_1.JPG").read_bytes()
    for name in ("..%2f..%2fescape.jpg", "a%00b.jpg", "<img src=x>.jpg", "..%5c..%5cwin.jpg"):
        assert known.put(f"/api/drop/{drop['drop']}/{name}", content=content).status_code == 200, (
            name
        )
    names = sorted(file.name for file in Path(drop["folder"]).glob("*"))
    assert names == ["_img src=x_.jpg", "a_b.jpg", "escape.jpg", "win.jpg"]
    assert not (Path(drop["folder"]).parent / "escape.jpg").exists()


def test_harmless_names_are_short_and_visible():
    assert (
        harmless_name("x" * 400 + ".jpg") is not None
        and len(harmless_name("x" * 400 + ".jpg")) < 130
    )
    assert harmless_name("") is None and harmless_name(".jpg") is None
    assert harmless_name("NUL.png") == "_NUL.png" and harmless_name("con.jpg") == "_con.jpg"
    assert (
        harmless_name("../../IMG 1.JPG") == "IMG 1.JPG"
        and harmless_name("a\x00<b>.png") == "a_b_.png"
    )
    assert harmless_name("run.sh") is None and harmless_name(".hidden.png") == "hidden.png"


def test_links_out_of_a_folder_are_followed(tmp_path):
    for name in ("open", "openly"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.png").write_bytes(b"")
    (tmp_path / "open" / "way").symlink_to("/etc")
    assert is_own(tmp_path / "open", tmp_path / "open" / "a.png")
    assert not is_own(tmp_path / "open", tmp_path / "open" / "way" / "passwd")
    assert not is_own(tmp_path / "open", tmp_path / "openly" / "a.png")


def test_the_browser_is_sent_to_a_page_of_this_user_and_not_to_the_key(tmp_path, monkeypatch):
    opened = []

    class Stopped(server_module.AppServer):
        def run(self, sockets):
            page = Path(opened[0].removeprefix("file://"))
            opened.append((page.stat().st_mode & 0o777, page.read_text(), page))
            for one in sockets:
                one.close()

    monkeypatch.setattr(server_module, "AppServer", Stopped)
    monkeypatch.setattr(server_module.webbrowser, "open", opened.append)
    monkeypatch.setenv("HOME", str(tmp_path))
    lines = []
    server_module.run_app(None, 0, lines.append, browse=True)
    address, (mode, text, page) = opened
    token = lines[0].partition("token=")[2]
    assert token and token not in address and token in text
    assert mode == 0o600 and not page.exists()


def test_the_entrance_leads_to_the_page_without_the_key(known):
    answer = known.get("/")
    assert answer.status_code == 200 and "token" not in str(answer.url)


@pytest.mark.parametrize(
    "body",
    [
        b'{"path": ' + 100_000 * b"[" + 100_000 * b"]" + b"}",
        b'{"path": "\\ud800"}',
        b'{"path": NaN}',
        b'{"path": 5}',
        b"{}",
        b'{"path": "~nosuchuser/x"}',
        b'{"path": "/no/such\\u0000folder"}',
    ],
)
def test_nonsense_is_refused_with_a_code(known, body):
    answer = known.post("/api/open", content=body)
    assert answer.status_code in (400, 404)
    assert answer.json()["code"] in ("bad-request", "no-such-folder")


def test_a_folder_of_an_unknown_user_is_not_found(known):
    answer = known.get("/api/browse", params={"path": "~nosuchuser"})
    assert (answer.status_code, answer.json()["code"]) == (404, "no-such-folder")
    assert known.get("/api/browse", params={"path": "/no/such"}).json()["code"]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (NotFoundError("x", code="anything"), 404),
        (TooLargeError("x", code="anything"), 413),
        (RequestError("x", code="no-spelling-decides"), 400),
        (CaptureError("x", code="no-lights"), 400),
        (ValueError("x"), 400),
    ],
)
def test_the_class_of_an_error_decides_the_status(error, status):
    assert run_coroutine(refuse(None, error)).status_code == status


def test_connections_that_send_nothing_are_closed(server, monkeypatch):
    monkeypatch.setattr(server_module, "HEADER_SECONDS", 0.3)
    silent = [socket.create_connection(("127.0.0.1", server.address.port)) for _ in range(300)]
    for connection in silent:
        connection.settimeout(20)
    assert httpx.get(server.address.origin).status_code == 401
    assert [connection.recv(1) for connection in silent] == [b""] * len(silent)
    for connection in silent:
        connection.close()


def test_more_open_files_are_asked_for():
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
        assert server_module.allow_open_files() > 256
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 256
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_copies_of_a_killed_app_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    in_use = WorkFolder()
    code = (
        "import os, signal; from photostereo.app.work_folder import WorkFolder; folder = WorkFolder();"
        "(folder.path / 'copy.ppm').write_bytes(b'x'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=False)
    (tmp_path / "photostereo-app-0ld").mkdir()
    (tmp_path / "photostereo-other").mkdir()
    assert len(list(tmp_path.glob("photostereo-app-*"))) == 5
    remove_abandoned()
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {in_use.path.name, in_use.path.name + ".lock", "photostereo-other"}
    in_use.remove()
    assert [path.name for path in tmp_path.iterdir()] == ["photostereo-other"]
