"""Pages of results, with the tiles that were too many for them, on an origin of their own."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from starlette.responses import FileResponse, HTMLResponse, Response

from photostereo.report.serving import ResultTiles, is_own, page_text, with_tiles

_TILE = re.compile(r"tiles/(normals|albedo|depth)/([^/]+)/(\d{1,2})/(\d{1,5})/(\d{1,5})\.png")


def result_file(folder: Path | None, name: str) -> Response:
    """A file of a result by its name, the page with its tiles; 404 for anything that is not in the folder."""
    if folder is None:
        return Response(status_code=404)
    tile = _TILE.fullmatch(name)
    if tile:
        channel, result, *numbers = tile.groups()
        made = _tiles(folder, _stamp(folder)).tile(channel, result, *map(int, numbers))
        return Response(made, media_type="image/png") if made else Response(status_code=404)
    file = folder / name
    if not is_own(folder.resolve(), file) or not file.is_file():
        return Response(status_code=404)
    if name == "report.html":
        return HTMLResponse(with_tiles(page_text(file)))
    return FileResponse(file, filename=file.name)


def _stamp(folder: Path) -> int:
    page = folder / "report.html"
    return page.stat().st_mtime_ns if page.is_file() else 0


@lru_cache(maxsize=4)
def _tiles(folder: Path, stamp: int) -> ResultTiles:
    page = folder / "report.html"
    text = page_text(page) if stamp else ""
    return ResultTiles(folder.resolve(), text)
