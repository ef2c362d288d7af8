"""Curves over the number of photographs and over noise, and the maps at single points of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from photostereo.lab.paper import published as paper
from photostereo.lab.paper.catalog import Catalog
from photostereo.lab.paper.grids import OURS_NOTE, compared_methods, method_plans
from photostereo.lab.paper.pictures import box_of_difference, draw_maps, draw_surfaces
from photostereo.lab.paper.runs.named import NamedRun, best_rows, maps_caption
from photostereo.lab.sweeps.curves import draw_curves
from photostereo.lab.sweeps.outputs import RunOutputs
from photostereo.lab.sweeps.plan import Block, Cell
from photostereo.lab.sweeps.shared_tables import curve_tables, tidy_table
from photostereo.lab.sweeps.summary import CellResult, Row, captures_of, labels_of
from photostereo.lab.sweeps.trial import CaptureSpec, Corruption

_PLS = ("pdlnv", "pls")


def _present(*captures: CaptureSpec | None) -> tuple[CaptureSpec, ...]:
    return tuple(capture for capture in captures if capture is not None)


def _poisson(*levels: float) -> tuple[Corruption, ...]:
    return tuple(Corruption("poisson", level) for level in levels)


def _decibels(cell: Cell) -> float | None:
    return cell.corruption.level if cell.corruption.kind == "poisson" else None


def _photographs(cell: Cell) -> float | None:
    return cell.images


def _percent(cell: Cell) -> float | None:
    return 100 * cell.corruption.level if cell.corruption.kind == "salt_pepper" else 0.0


def _few_images(data: Catalog, quick: bool) -> list[Block]:
    captures = _present(data.diligent("cat"), data.diligent_or("harvest", "cow"))
    images = (5, 10, 30) if quick else (5, 10, 15, 20, 30, 50, 80)
    seeds = tuple(range(2 if quick else 10))
    methods = compared_methods("quick few" if quick else "few")
    return [Block(captures, methods, images, seeds=seeds)] if captures else []


def _ten_images(data: Catalog, quick: bool) -> list[Block]:
    captures = _present(data.diligent_or("pot1", "pot2"))
    methods = method_plans("quick few" if quick else "few", _PLS)
    return [Block(captures, methods, (10,), seeds=tuple(range(2 if quick else 10)))] if captures else []


def _salt_pepper(data: Catalog, quick: bool) -> list[Block]:
    captures = _present(data.diligent("bear"))
    shares = (0.0, 0.1, 0.3, 0.5) if quick else (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
    levels = tuple(Corruption("salt_pepper", share) for share in shares)
    methods = method_plans("quick noisy" if quick else "curve", _PLS)
    return [Block(captures, methods, (20,), levels, tuple(range(2 if quick else 5)))] if captures else []


def _poisson_pls(data: Catalog, quick: bool) -> list[Block]:
    captures = _present(data.diligent("cow"))
    levels = _poisson(5, 15, 30) if quick else _poisson(0, 5, 10, 15, 20, 30, 40)
    methods = method_plans("quick noisy" if quick else "curve", _PLS)
    return [Block(captures, methods, (20,), levels, tuple(range(2 if quick else 5)))] if captures else []


def _poisson_pot2(data: Catalog, quick: bool) -> list[Block]:
    captures = _present(data.diligent("pot2"))
    levels = _poisson(5, 10, 20, 40) if quick else _poisson(0, 5, 10, 15, 20, 30, 40)
    methods = compared_methods("quick noisy" if quick else "curve")
    return [Block(captures, methods, (20,), levels, tuple(range(2 if quick else 5)))] if captures else []


def _poisson_all(data: Catalog, quick: bool) -> list[Block]:
    captures = data.all_diligent()
    levels = _poisson(5, 10, 20) if quick else _poisson(0, 5, 10, 15, 20, 30, 40)
    methods = compared_methods("quick noisy" if quick else "curve")
    return [Block(captures, methods, (20,), levels, tuple(range(1 if quick else 3)))] if captures else []


def _harvard_hippo(data: Catalog, quick: bool) -> list[Block]:
    captures = _present(data.harvard("hippo"))
    levels = _poisson(5, 40) if quick else _poisson(0, 5, 10, 15, 20, 30, 40)
    methods = compared_methods("quick noisy" if quick else "curve")
    return [Block(captures, methods, (None,), levels, (0,))] if captures else []


def _harvard_cat(data: Catalog, quick: bool) -> list[Block]:
    captures = _present(data.harvard("cat"))
    methods = compared_methods("quick noisy" if quick else "curve")
    return (
        [Block(captures, methods, (None,), _poisson(5), tuple(range(1 if quick else 3)))] if captures else []
    )


def _curve_report(
    axis: Callable[[Cell], float | None],
    axis_name: str,
    printed: Mapping[tuple[str, float, str], float] | None = None,
    *,
    log: bool = False,
    averaged: bool = False,
) -> Callable[[RunOutputs], None]:
    """A report with a table per protocol, the full table, and a figure of curves."""

    def report(out: RunOutputs) -> None:
        beside: dict[Any, float] = {(c, f"{x:g}", m): v for (c, x, m), v in (printed or {}).items()}

        def place(cell: Cell) -> str:
            return f"{axis(cell):g}"

        if labels_of(out.plan) != labels_of(out.plan, "oracle"):
            out.say(OURS_NOTE)
        curve_tables(out, place, axis_name, beside, averaged=averaged)
        tidy_table(out, place, axis_name, beside)
        captures = captures_of(out.plan)
        crosses = {m: (x, v) for (c, x, m), v in (printed or {}).items() if c in captures}
        figure = draw_curves(
            out.results,
            axis,
            axis_name,
            title=out.title if averaged else f"{out.title} ({', '.join(captures)})",
            paper=crosses,
            log=log,
            panels=None if averaged else captures,
        )
        caption = "Mean angular error; bars are the standard deviation over trials."
        if averaged:
            caption = (
                "Mean angular error averaged over the objects; bars are the standard deviation over trials."
            )
        out.figure(figure, " ".join([caption, *out.notes]))

    return report


def _at(results: Sequence[CellResult], level: float) -> list[CellResult]:
    return [r for r in results if r.cell.corruption.level == level and r.cell.seed in (None, 0)]


def _maps_of(out: RunOutputs, results: Sequence[CellResult]) -> tuple[dict[str, Any], dict[str, str]]:
    maps, captions = {}, {}
    for result in results:
        found = out.maps(result.shown)
        if found is not None and result.cell.label not in maps:
            maps[result.cell.label] = found
            captions[result.cell.label] = maps_caption(result)
    return maps, captions


def _beside(
    captions: Mapping[str, str], printed: Mapping[str, float], words: str = "paper"
) -> dict[str, str]:
    return {m: f"{text}\n{words} {printed[m]:.2f}°" if m in printed else text for m, text in captions.items()}


def _report_poisson(out: RunOutputs) -> None:
    printed = {("pot2", 5.0, method): value for method, value in paper.POT2_5DB.items()}
    _curve_report(_decibels, "SNR (dB)", printed)(out)
    maps, captions = _maps_of(out, _at(out.results, 5))
    if maps:
        title = "pot2, 20 photographs, Poisson noise of 5 dB, one trial, best of grid"
        figure = draw_maps(maps, title=title, captions=_beside(captions, paper.POT2_5DB), limit=60)
        caption = " ".join(["pot2 at 5 dB: normals and angular errors of the first trial.", *out.notes])
        out.figure(figure, caption, name="maps-5dB")


def _report_ten(out: RunOutputs) -> None:
    name = captures_of(out.plan)[0]
    printed = {("pot1", "10", m): v for m, v in paper.TEN_IMAGES.items()}
    curve_tables(out, lambda cell: f"{cell.images}", "photographs", printed)
    tidy_table(out, lambda cell: f"{cell.images}", "photographs", printed)
    if name != "pot1":
        out.say("The paper has pot1: PDLNV 7.96, PLS 8.28 degrees; not to be compared with another object.")
    maps, captions = _maps_of(out, [r for r in out.results if r.cell.seed == 0])
    if len(maps) == 2:
        captions = _beside(captions, paper.TEN_IMAGES, "paper" if name == "pot1" else "paper, pot1:")
        figure = draw_maps(
            maps,
            title=f"{name}, 10 photographs, best of grid",
            captions=captions,
            box=box_of_difference(list(maps.values())),
        )
        caption = (
            f"{name} from 10 photographs: normals, a close-up where the two differ most, angular errors."
        )
        out.figure(figure, " ".join([caption, *out.notes]))


def _report_harvard_cat(out: RunOutputs) -> None:
    printed: dict[Any, float] = {("harvard cat", "5", m): v for m, v in paper.HARVARD_CAT_5DB.items()}
    out.say(OURS_NOTE)
    curve_tables(out, lambda cell: f"{cell.corruption.level:g}", "SNR (dB)", printed)
    tidy_table(out, lambda cell: f"{cell.corruption.level:g}", "SNR (dB)", printed)
    maps, captions = _maps_of(out, _at(out.results, 5))
    if maps:
        title = "Harvard cat, 20 photographs, Poisson noise of 5 dB, one trial, best of grid"
        figure = draw_maps(maps, title=title, captions=_beside(captions, paper.HARVARD_CAT_5DB), limit=40)
        text = "Harvard cat at 5 dB: normals and errors against least squares on the clean photographs."
        out.figure(figure, " ".join([text, *out.notes]))
        text = "Surfaces from these normals (Simchony et al. 1990)."
        out.figure(draw_surfaces(maps, title=text), " ".join([text, *out.notes]), name="surfaces")


def _maps_at_5db(results: Sequence[CellResult]) -> list[Row]:
    return best_rows(_at(results, 5))


def _maps_first_seed(results: Sequence[CellResult]) -> list[Row]:
    return best_rows([r for r in results if r.cell.seed == 0])


RUNS = (
    NamedRun(
        "few-images", "Error against the number of photographs",
        "PDLNV is lowest for most sizes on cat and harvest, 10 random draws",
        _few_images, _curve_report(_photographs, "photographs", log=True),
    ),
    NamedRun(
        "ten-images", "Ten photographs: normals, close-up, errors", "pot1: PDLNV 7.96, PLS 8.28",
        _ten_images, _report_ten, _maps_first_seed,
    ),
    NamedRun(
        "salt-pepper", "PDLNV and PLS under salt and pepper noise",
        "bear, 20 photographs: equal up to 10 %, then PDLNV about 5 degrees lower",
        _salt_pepper, _curve_report(_percent, "corrupted entries (%)"),
    ),
    NamedRun(
        "poisson-pls", "PDLNV and PLS under Poisson noise", "cow, 20 photographs: PDLNV lower, most at low "
        "SNR",
        _poisson_pls, _curve_report(_decibels, "SNR (dB)"),
    ),
    NamedRun(
        "poisson", "All methods under Poisson noise",
        "pot2, 20 photographs; at 5 dB PDLNV 15.72, DLNV 16.10, CBR 19.70, SR 21.20, RPCA 19.95, LS 21.20",
        _poisson_pot2, _report_poisson, _maps_at_5db,
    ),
    NamedRun(
        "poisson-all", "All methods under Poisson noise, average over objects",
        "20 photographs: PDLNV and DLNV lowest at low SNR",
        _poisson_all, _curve_report(_decibels, "SNR (dB)", averaged=True),
    ),
    NamedRun(
        "harvard-hippo", "Harvard hippo under Poisson noise, against least squares without noise",
        "error goes to 0 at high SNR; DLNV, PDLNV lowest",
        _harvard_hippo, _curve_report(_decibels, "SNR (dB)"),
    ),
    NamedRun(
        "harvard-cat", "Harvard cat at 5 dB: normals, errors, surfaces",
        "PDLNV 7.65, DLNV 6.64, SR 24.46, RPCA 17.35, CBR 18.19, LS 17.87",
        _harvard_cat, _report_harvard_cat, _maps_at_5db,
    ),
)  # fmt: skip
