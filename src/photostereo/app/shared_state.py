"""The state that the pages of a capture show, kept in the server and sent to every open tab."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, fields
from typing import Any

from photostereo.io.json_text import json_text

#: Minimum seconds between two messages: more would keep the page busy with drawing.
PACE = 0.08
#: Maximum seconds between two messages; sending one detects a closed connection.
HEARTBEAT = 15.0


@dataclass
class PageState:
    """What the pages show. Each field is sent as a whole when it changes; ``static/api.js`` documents their content."""

    capture: dict[str, Any]  #: folder, name, and files by their roles
    edits: dict[str, Any]  #: the corrections
    opening: dict[str, Any]  #: whether the photographs were found and copied
    looking: dict[str, Any]  #: whether lights, mask and findings are being determined
    photographs: list[dict[str, Any]] = field(default_factory=list)
    results: list[dict[str, Any]] = field(default_factory=list)
    lights: dict[str, Any] | None = None
    mask: dict[str, Any] | None = None
    glance: dict[str, Any] | None = None  #: version of the picture of normals
    findings: dict[str, Any] | None = None
    job: dict[str, Any] | None = None  #: the running or last solve
    preview: dict[str, Any] | None = None  #: the result of the last preview


#: Names of the parts of the state.
PARTS = tuple(entry.name for entry in fields(PageState))


class SharedState:
    """A :class:`PageState` with versions of its fields. All of it runs in the server's event loop, without locks."""

    def __init__(self, state: PageState) -> None:
        self.state = state
        self._versions = dict.fromkeys(PARTS, 1)
        self._change = asyncio.Event()
        self._end: dict[str, Any] | None = None

    def put(self, **parts: Any) -> None:
        """Replace fields of the state by name, and send them to all tabs."""
        for name, value in parts.items():
            self._versions[name] += 1
            setattr(self.state, name, value)
        self._wake()

    def end(self, reason: str) -> None:
        """Tell all tabs, as the last message, why there will be no more."""
        self._end = {"reason": reason}
        self._wake()

    def _wake(self) -> None:
        change = self._change
        self._change = asyncio.Event()
        change.set()

    async def messages(self) -> AsyncIterator[str]:
        """Yield server-sent events: all fields first, then those that change."""
        sent: dict[str, int] = {}
        while self._end is None:
            change = self._change
            news = {
                name: getattr(self.state, name)
                for name, version in self._versions.items()
                if sent.get(name) != version
            }
            if news:
                sent = dict(self._versions)
                yield f"data: {json_text(news, indent=None, ascii_only=True)}\n\n"
                await asyncio.sleep(PACE)
                continue
            try:
                await asyncio.wait_for(change.wait(), HEARTBEAT)
            except TimeoutError:
                yield ": still here\n\n"
        yield f"event: end\ndata: {json_text(self._end, indent=None, ascii_only=True)}\n\n"
