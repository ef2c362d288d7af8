"""Access control of the server: only this machine, this browser and this page; only files of open folders."""

from __future__ import annotations

import os
import re
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from photostereo.io.images import is_image
from photostereo.io.names import WINDOWS_DEVICES, shortened
from photostereo.report.serving import LOOPBACK

#: Other files accepted with dropped photographs: lights and their strengths.
_LIGHT_SUFFIXES = (".csv", ".txt", ".json", ".lp")
#: Headers of every response.
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


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

    def headers(self, *, of_a_result: bool) -> dict[str, str]:
        """Headers of every response: no foreign content, no foreign frames. A page of a result has its own policy."""
        if of_a_result:
            return {**_HEADERS, "Content-Security-Policy": f"frame-ancestors {self.origin}"}
        policy = (
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
            f"img-src 'self' blob: data: {self.results_origin}; frame-src {self.results_origin}; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        own = {"Content-Security-Policy": policy, "X-Frame-Options": "DENY"}
        same = dict.fromkeys(
            ("Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy"), "same-origin"
        )
        return {**_HEADERS, **own, **same}


class Guard:
    """ASGI middleware: checks ``Host``, ``Origin``, ``Sec-Fetch-Site`` and the token before any response."""

    def __init__(self, app: ASGIApp, address: Address) -> None:
        self.app, self.address = app, address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        headers, address = Headers(scope=scope), self.address
        own = {f"{name}:{address.port}" for name in (LOOPBACK, "localhost")}
        results = headers.get("host") == f"{LOOPBACK}:{address.results_port}"
        added = address.headers(of_a_result=results)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent = MutableHeaders(scope=message)
                for name, value in added.items():
                    sent.setdefault(name, value)
            await send(message)

        refusal: Response | None = None
        is_result = scope["path"].startswith("/r/")
        if (not results and headers.get("host") not in own) or results != is_result:
            refusal = PlainTextResponse("This page is served to this machine only.", 403)
        elif not results:
            refusal = self._refusal(scope, headers, {f"http://{host}" for host in own})
        await (refusal or self.app)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope, headers: Headers, origins: set[str]) -> Response | None:
        address, origin = self.address, headers.get("origin")
        if origin is not None and origin not in origins:
            return PlainTextResponse("Other pages may not use the app.", 403)
        site = headers.get("sec-fetch-site", "none")
        reads = scope["method"] in ("GET", "HEAD")
        if site not in ("same-origin", "none") and not (reads and scope["path"] == "/"):
            return PlainTextResponse("Other pages may not use the app.", 403)
        if not reads and origin is None:
            return PlainTextResponse("Changes must come from the app's own page.", 403)
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["path"] == "/" and given:
            if not secrets.compare_digest(given.encode(), address.token.encode()):
                return PlainTextResponse(
                    "This address belongs to another run. See the terminal.", 403
                )
            answer = RedirectResponse("/", 303)
            week = 7 * 24 * 3600
            answer.set_cookie(
                address.cookie,
                address.token,
                max_age=week,
                httponly=True,
                samesite="strict",
                path="/",
            )
            return answer
        kept = cookie_parser(headers.get("cookie", "")).get(address.cookie, "")
        if not secrets.compare_digest(kept.encode(), address.token.encode()):
            return PlainTextResponse(
                "Open the address shown in the terminal: it contains a key.", 401
            )
        return None


def harmless_name(name: str) -> str | None:
    """Return a safe, single-line name for a dropped file, without folders; None if the file type is not accepted."""
    base = re.split(r"[/\\\\]", name)[-1]
    kept = "".join(c if c.isprintable() and c not in '<>:"|?*' else "_" for c in base)
    kept = re.sub("_+", "_", kept).strip(" .")
    stem, suffix = os.path.splitext(kept)
    if stem.casefold() in WINDOWS_DEVICES:
        stem = "_" + stem
    kept = shortened(stem) + suffix
    wanted = is_image(Path(kept)) or (suffix.lower() in _LIGHT_SUFFIXES)
    return kept if wanted and stem else None
