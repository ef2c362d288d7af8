"""The report is opened, or served to this machine alone."""

from __future__ import annotations

import http.client
import os
import threading
import webbrowser

import pytest

from photostereo.core.errors import CaptureError, OutputError
from photostereo.report import open_report, serve
from photostereo.report.serving import make_server


@pytest.fixture
def folder(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "report.html").write_text("<p>hello", encoding="utf-8")
    (out / "sub").mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    return out


def ask(server, path, host=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=10)
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


def test_server_refuses_a_foreign_name(server):
    for host in ("evil.example", "evil.example:80", "[::1", ""):
        assert ask(server, "/report.html", host=host or "x.y")[0] == 403
    assert ask(server, "/report.html", host="localhost:1234")[0] == 200


def test_a_taken_port_is_said_so(server, folder):
    with pytest.raises(OutputError, match="Port"):
        make_server(folder / "report.html", server.server_address[1])
    with pytest.raises(OutputError, match="Port"):
        make_server(folder / "report.html", 99999)


def test_open_report(folder, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    assert open_report(folder) == folder / "report.html"
    assert opened == [(folder / "report.html").as_uri()]
    with pytest.raises(CaptureError, match="holds no report"):
        open_report(folder / "sub")


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
