"""Write benchmarks/paper/README.md and its figures from a results folder of `photostereo reproduce --all`.

    python benchmarks/paper/make_page.py OUT

Tables, captions and the checked claims come from OUT; their interpretation is written by hand in readings.md, one
section per run.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from PIL import Image

from photostereo_lab.paper.experiments import NAMED_RUNS

HERE = Path(__file__).resolve().parent
WIDTH = 1100
BYTES = 290_000


def readings() -> dict[str, str]:
    """The hand-written sections, by heading."""
    text = (HERE / "readings.md").read_text(encoding="utf-8")
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    return {name.strip(): body.strip() for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def small_copy(source: Path, target: Path) -> None:
    """A small copy of a picture: 256 colors, as wide as WIDTH and BYTES allow."""
    original = Image.open(source).convert("RGB")
    target.parent.mkdir(exist_ok=True)
    width = min(WIDTH, original.width)
    while True:
        size = (width, round(original.height * width / original.width))
        picture = original.resize(size, Image.Resampling.LANCZOS)
        picture.quantize(256, dither=Image.Dither.NONE).save(target, optimize=True)
        if target.stat().st_size <= BYTES:
            return
        width = round(0.9 * width)


def main(out: Path) -> None:
    texts = readings()
    parts = ["# The paper's experiments, reproduced", "", texts["introduction"], ""]
    parts += ["## The paper's claims", "", texts["claims"], ""]
    parts.append((out / "claims.md").read_text(encoding="utf-8"))
    for name in NAMED_RUNS:
        page = out / name / "page.md"
        if not page.exists():
            continue
        body = page.read_text(encoding="utf-8")
        for picture in re.findall(rf"\]\({name}/(.+?)\.png\)", body):
            stem = "-".join(part for part in (name, picture) if part != "figure")
            small_copy(out / name / f"{picture}.png", HERE / "figures" / f"{stem}.png")
            body = body.replace(f"({name}/{picture}.png)", f"(figures/{stem}.png)")
        heading, rest = body.split("\n", 1)
        parts += [heading, "", texts.get(name, ""), rest]
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).rstrip() + "\n"
    (HERE / "README.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
