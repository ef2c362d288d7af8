"""``photostereo plausible``: how the default behaves on captures of many kinds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from photostereo.cli.command import option
from photostereo.cli.terminal import Terminal


def plausible(
    terminal: Terminal,
    out: Path,
    count: int = option("Number of captures.", min=1, default=60),
    seed: int = option("Seed of the first capture; the others follow.", min=0, default=0),
    megapixels: float = option("Size of the largest photographs.", min=0.02, default=0.15),
    write_only: bool = option("Write the captures instead of judging them.", default=False),
    force: bool = False,
) -> dict[str, Any]:
    """Draw plausible captures, solve each with the default method and compare with the ground truth.

    Writes one JSON row per capture into a new folder.
    """
    from photostereo.io.atomic import replacing_directory, require_free, write_json
    from photostereo_lab.plausible.captures import draw_capture, write_capture
    from photostereo_lab.plausible.judge import Row, judge_seeds, summary_of

    require_free(out, force=force)
    seeds = range(seed, seed + count)
    if write_only:
        with replacing_directory(out, force=force) as folder:
            for number in seeds:
                write_capture(draw_capture(number, most=megapixels), folder / str(number))
        terminal.say(f"Written: {out}")
        return {"out": str(out.absolute()), "captures": count}

    def show(row: Row) -> None:
        error = row.get("error", "")
        expected = row.get("expected", "")
        what = f"{row['seed']:>6}  {row.get('kind', ''):16} {row['outcome']:10}"
        terminal.say(f"{what} true {error:>6}  expected {expected:>6}  {row.get('grade', '')}")

    rows = judge_seeds(seeds, most=megapixels, report=show)
    counted = summary_of(rows)
    with replacing_directory(out, force=force) as folder:
        write_json(folder / "rows.json", rows)
        write_json(folder / "summary.json", counted)
    for title, which in counted.items():
        listed = ", ".join(str(number) for number in which[:12])
        terminal.say(f"{title:32} {len(which):4} of {count}   {listed}")
    return {"out": str(out.absolute()), "captures": count, "counted": counted}
