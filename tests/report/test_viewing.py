"""The report is opened, or served to this machine alone."""

from __future__ import annotations

import http.client
import os
import socket
import threading
import webbrowser
from contextlib import suppress

import numpy as np
import pytest

from photostereo.core.errors import CaptureError, OutputError, PhotostereoError
from photostereo.pipeline.write_results import save
from photostereo.report import open_report, serve, write_report
from photostereo.report.serving import find_report, holds_finer, make_server
from photostereo.solver.solve import solve
from photostereo_lab.scenes import render_scene


@pytest.fixture
def folder(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "report.html").write_text("<p>hello", encoding="utf-8")
    (out / "sub").mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    return out


def ask(server, path, host=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=60)
    connection.request("GET", path, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    return answer.status, answer.read()


@pytest.fixture
def server(folder):
    with make_server(folder / "report.html") as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def test_server_binds_to_loopback_and_shows_the_page(server):
    assert server.server_address[0] == "127.0.0.1"
    assert ask(server, "/report.html") == (200, b"<p>hello")


def test_server_shows_nothing_else(server):
    assert ask(server, "/")[0] == 403
    assert ask(server, "/sub/")[0] == 403
    for path in ("/../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt"):
        status, body = ask(server, path)
        assert status in (403, 404) and b"secret" not in body


def test_server_does_not_follow_links_out_of_its_folder(server, folder):
    (folder / "out.txt").symlink_to(folder.parent / "secret.txt")
    (folder / "up").symlink_to(folder.parent, target_is_directory=True)
    (folder / "in.html").symlink_to(folder / "report.html")
    os.mkfifo(folder / "pipe")
    for path in ("/out.txt", "/up/secret.txt", "/pipe", "/%00"):
        status, body = ask(server, path)
        assert status == 404 and b"secret" not in body
    assert ask(server, "/in.html") == (200, b"<p>hello")


def test_a_pipe_in_place_of_the_page_is_not_waited_for(server, folder):
    (folder / "report.html").unlink()
    os.mkfifo(folder / "report.html")
    assert ask(server, "/report.html")[0] == 404
    assert not holds_finer(folder / "report.html")
    with pytest.raises(PhotostereoError) as caught:
        make_server(folder / "report.html")
    assert caught.value.code == "unreadable-file"


def test_server_refuses_a_foreign_name(server):
    for host in ("evil.example", "evil.example:80", "[::1", ""):
        assert ask(server, "/report.html", host=host or "x.y")[0] == 403
    assert ask(server, "/report.html", host="localhost:1234")[0] == 200


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"GET / HTTP/9.x", 400),
        (b"GET / a b c", 400),
        (b"\x00\xff", 400),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1", 414),
        (b"GET http://[/report.html HTTP/1.1", 404),
        (b"HEAD http://[/ HTTP/1.1", 404),
    ],
)
def test_what_is_no_request_is_answered(server, capsys, request_line, status):
    with socket.create_connection(server.server_address, timeout=60) as connection:
        connection.sendall(request_line + b"\r\nHost: localhost\r\n\r\n")
        with suppress(ConnectionResetError):
            answer = connection.recv(4096)
    assert f" {status} ".encode() in answer or f"code: {status}".encode() in answer
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(("problem", "silent"), [(ConnectionResetError, True), (ValueError, False)])
def test_a_client_that_goes_away_is_no_fault(server, capsys, problem, silent):
    try:
        raise problem
    except (ConnectionResetError, ValueError):
        server.handle_error(None, ("127.0.0.1", 1))
    assert ("Traceback" not in capsys.readouterr().err) == silent


def test_a_taken_port_is_said_so(server, folder):
    with pytest.raises(OutputError) as caught:
        make_server(folder / "report.html", server.server_address[1])
    assert caught.value.code == "port-unavailable"
    with pytest.raises(OutputError) as caught:
        make_server(folder / "report.html", 99999)
    assert caught.value.code == "port-unavailable"


def test_open_report(folder, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    assert open_report(folder) == folder / "report.html"
    assert opened == [(folder / "report.html").as_uri()]
    with pytest.raises(CaptureError) as caught:
        open_report(folder / "sub")
    assert caught.value.code == "no-report"


def test_serve_tells_its_address_and_stops_on_interrupt(folder, monkeypatch):
    from photostereo.report import serving

    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(serving.ThreadingHTTPServer, "serve_forever", interrupted)
    told = []
    serve(folder, tell=told.append)
    assert "http://127.0.0.1:" in told[0] and told[-1] == "Stopped."


def test_a_page_that_is_a_link_is_not_served(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "elsewhere.html").write_text("secret")
    (out / "report.html").symlink_to(tmp_path / "elsewhere.html")
    with make_server(out / "report.html") as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        status, body = ask(running, "/report.html")
        running.shutdown()
        thread.join()
    assert status == 404 and b"secret" not in body


DAMAGES = {
    "empty": b"",
    "no array": b"\x93NUMPY\x01\x00",
    "text": b"hello" * 100,
    "flat": np.zeros(32, np.float32),
    "objects": np.zeros((32, 32, 3), "U4"),
    "not finite": np.full((32, 32, 3), np.nan, np.float32),
    "of another size": np.zeros((16, 32, 3), np.float32),
}


@pytest.mark.parametrize("name", ["normals", "mask", "albedo", "depth"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_tiles_of_a_damaged_result_are_not_found(served_result, name, damage):
    """No traceback, no connection without an answer: the tile is not there."""
    folder, server = served_result
    content = DAMAGES[damage]
    if isinstance(content, bytes):
        (folder / f"{name}.npy").write_bytes(content)
    else:
        np.save(folder / f"{name}.npy", content)
    channel = "normals" if name == "mask" else name
    assert ask(server, f"/tiles/{channel}/-/0/0/0.png")[0] == 404


def test_tiles_of_a_sound_result_are_served(served_result):
    _, server = served_result
    for channel in ("normals", "albedo", "depth"):
        status, body = ask(server, f"/tiles/{channel}/-/0/0/0.png")
        assert (status, body[:4]) == (200, b"\x89PNG")


@pytest.fixture
def served_result(tmp_path):
    scene = render_scene("sphere", size=32)
    depth = np.where(scene.mask, 1.0, np.nan).astype(np.float32)
    folder = save(solve(scene, "ls"), tmp_path / "out", scene, report=False, surface=None)
    np.save(folder / "depth.npy", depth)
    write_report(folder / "report.html", solve(scene, "ls"), scene, depth=depth)
    with make_server(folder / "report.html") as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield folder, running
        running.shutdown()
        thread.join()


@pytest.mark.parametrize(
    "data",
    [
        "{",
        "[]",
        "5",
        '{"relight":{"sets":5}}',
        '{"relight":{"sets":{"a":5},"held":1}}',
        "[" * 100_000,
    ],
)
def test_a_page_with_damaged_data_is_still_shown(folder, data):
    page = f'<p>hello<script type="application/json" id="data">{data}</script>'
    (folder / "report.html").write_text(page, encoding="utf-8")
    assert not holds_finer(find_report(folder))
    with make_server(folder / "report.html") as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        assert ask(running, "/report.html")[0] == 200
        assert ask(running, "/tiles/normals/-/0/0/0.png")[0] == 404
        running.shutdown()
        thread.join()
