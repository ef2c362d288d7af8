"""Access control of the server: only this machine, this browser and this page."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from photostereo.report.serving import LOOPBACK

#: Headers of every response.
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
#: Seconds for which a browser remembers the key: a week.
COOKIE_SECONDS = 7 * 24 * 3600
#: Leads from the address with the key to the one without. A redirect would not do: if another page led here (the one
#: that the app opens first), the browser would not send a strict cookie along with it.
ENTRANCE = (
    '<!doctype html><html lang="en"><title>photostereo</title><link rel="icon" href="data:,">'
    '<meta http-equiv="refresh" content="0; url=/"></html>\n'
)


@dataclass(frozen=True)
class Address:
    """The app is on one port, results on another, hence of another origin: a foreign report cannot use the app."""

    port: int
    results_port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    @property
    def origin(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def results_origin(self) -> str:
        return f"http://{LOOPBACK}:{self.results_port}"

    @property
    def url(self) -> str:
        """The URL that the browser opens."""
        return f"{self.origin}/?token={self.token}"

    @property
    def cookie(self) -> str:
        """Cookie name with the port, because browsers share cookies between the ports of a host."""
        return f"photostereo-{self.port}"

    def is_token(self, text: str) -> bool:
        """Compare a text with the token, in constant time."""
        return secrets.compare_digest(text.encode("utf-8", "replace"), self.token.encode())

    def headers(self, *, of_a_result: bool) -> dict[str, str]:
        """Headers of every response: no foreign content, no foreign frames. A page of a result has its own policy."""
        if of_a_result:
            return {**HEADERS, "Content-Security-Policy": f"frame-ancestors {self.origin}"}
        policy = (
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
            f"img-src 'self' blob: data: {self.results_origin}; frame-src {self.results_origin}; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        return {
            **HEADERS,
            "Content-Security-Policy": policy,
            "X-Frame-Options": "DENY",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
        }


class Guard:
    """ASGI middleware: checks ``Host``, ``Origin``, ``Sec-Fetch-Site`` and the token before any response."""

    def __init__(self, app: ASGIApp, address: Address) -> None:
        self.app = app
        self.address = address
        self._hosts = {f"{name}:{address.port}" for name in (LOOPBACK, "localhost")}
        self._results_host = f"{LOOPBACK}:{address.results_port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        host = Headers(scope=scope).get("host")
        of_a_result = host == self._results_host
        added = self.address.headers(of_a_result=of_a_result)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in added.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal: Response | None = None
        if of_a_result != scope["path"].startswith("/r/") or (
            not of_a_result and host not in self._hosts
        ):
            refusal = _forbidden("This page is served to this machine only.")
        elif not of_a_result:
            refusal = self._refusal(Request(scope))
        await (refusal or self.app)(scope, receive, send_with_headers)

    def _refusal(self, request: Request) -> Response | None:
        """Return the response to a request that the app must not see; None if it may."""
        path = request.url.path
        only_reads = request.method in ("GET", "HEAD")
        origin = request.headers.get("origin")
        if origin is not None and origin not in {f"http://{host}" for host in self._hosts}:
            return _forbidden("Other pages may not use the app.")
        site = request.headers.get("sec-fetch-site", "none")
        if site not in ("same-origin", "none") and not (only_reads and path == "/"):
            return _forbidden("Other pages may not use the app.")
        if not only_reads and origin is None:
            return _forbidden("Changes must come from the app's own page.")
        token = parse_qs(request.url.query).get("token", [""])[0]
        if path == "/" and token:
            return self._entrance(token)
        if not self.address.is_token(request.cookies.get(self.address.cookie, "")):
            return PlainTextResponse(
                "Open the address shown in the terminal: it contains a key.", 401
            )
        return None

    def _entrance(self, token: str) -> Response:
        """Exchange the token of an address for a cookie."""
        if not self.address.is_token(token):
            return _forbidden("This address belongs to another run. See the terminal.")
        response = HTMLResponse(ENTRANCE)
        response.set_cookie(
            self.address.cookie,
            self.address.token,
            max_age=COOKIE_SECONDS,
            httponly=True,
            samesite="strict",
            path="/",
        )
        return response


def _forbidden(message: str) -> Response:
    return PlainTextResponse(message, 403)
