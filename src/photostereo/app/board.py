"""State of the pages, in named parts; connected pages receive the parts that changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from photostereo.io.json_text import json_text

#: Minimum and maximum seconds between two messages (the maximum detects closed connections).
_PACE, _HEARTBEAT = 0.08, 15.0


class Board:
    """Named parts with versions. Everything runs in the server's event loop, so no locks are needed."""

    def __init__(self, **parts: Any) -> None:
        self.parts: dict[str, Any] = parts
        self._versions = dict.fromkeys(parts, 1)
        self._changed = asyncio.Event()

    def __getitem__(self, name: str) -> Any:
        return self.parts[name]

    def put(self, **parts: Any) -> None:
        for name, value in parts.items():
            self.parts[name] = value
            self._versions[name] = self._versions.get(name, 0) + 1
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def messages(self) -> AsyncIterator[str]:
        """Yield server-sent events: all parts first, then the changed ones."""
        sent: dict[str, int] = {}
        while True:
            news = {
                name: self.parts[name]
                for name, version in self._versions.items()
                if sent.get(name) != version
            }
            waiting = self._changed
            if news:
                sent = dict(self._versions)
                yield f"data: {json_text(news, indent=None, ascii_only=True)}\n\n"
                await asyncio.sleep(_PACE)
                continue
            try:
                await asyncio.wait_for(waiting.wait(), _HEARTBEAT)
            except TimeoutError:
                yield ": still here\n\n"
