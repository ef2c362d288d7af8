"""The server answers this machine, this browser and this page, and shows files of opened folders only."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import cv2
import httpx
import numpy as np
import pytest

from photostereo.app.security import harmless_name
from photostereo.app.server import make_server
from photostereo.capture.edits import Edits, read_edits, write_edits
from photostereo.io.atomic import write_bytes
from photostereo.report.serving import is_own

from .conftest import Served


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
    assert client.get(f"/?token={server.address.token}").status_code == 303
    client.headers["Origin"] = server.address.origin
    return client


def test_the_token_of_the_address_becomes_a_cookie(client, server):
    assert client.get("/").status_code == 401
    assert client.get("/api/start").status_code == 401
    assert client.get("/?token=guessed").status_code == 403
    answer = client.get(f"/?token={server.address.token}")
    assert answer.status_code == 303 and answer.headers["location"] == "/"
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
    server.state.desks["x"] = SimpleNamespace(keys={"key": result})
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
    del server.state.desks["x"]


def test_downloads_are_finished_files_of_the_capture(known, server, tmp_path):
    results = tmp_path / "owl" / "results"
    (results / "ls").mkdir(parents=True)
    (results / ".ls-staged").mkdir()
    (tmp_path / "owl" / "IMG_1.JPG").write_text("photograph")
    for place in (results / "ls", results / ".ls-staged"):
        (place / "mesh.glb").write_text("glTF")
    (results / "ls" / "link.glb").symlink_to(tmp_path / "owl" / "IMG_1.JPG")
    server.state.desks["x"] = SimpleNamespace(id="x", folder=tmp_path / "owl")
    for name, status in (
        ("ls/mesh.glb", 200),
        (".ls-staged/mesh.glb", 404),
        ("ls/link.glb", 404),
        ("ls/..%2f..%2fIMG_1.JPG", 404),
    ):
        assert known.get(f"/api/c/x/file/{name}").status_code == status, name
    del server.state.desks["x"]


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
    monkeypatch.setattr("photostereo.app.server._FILE_LIMIT", 1000)
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
