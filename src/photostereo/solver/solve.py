"""The entry points ``solve`` and ``solve_grid``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.capture import Capture
from photostereo.core.control import SILENT, Control
from photostereo.core.errors import ParameterError
from photostereo.core.findings import Finding
from photostereo.io.memory import give_back_memory
from photostereo.runtime.arrays import Device, in_full_precision, memory_in_words
from photostereo.solver.auto_method import DEFAULT_METHOD
from photostereo.solver.bands import STEPS_OF_A_BAND, solve_band
from photostereo.solver.finish import Pictures
from photostereo.solver.methods import Method, find_method, method_for
from photostereo.solver.near import with_depth
from photostereo.solver.prepared import Clock, FromSample, Prepared, device_for, prepare_planned
from photostereo.solver.reconstruction import Reconstruction
from photostereo.solver.state import SolveState
from photostereo.solver.tiles import CROPS, Band, choose_bands, choose_sample

#: Solves bands with the lessons from the sample, in any order: see :mod:`photostereo.batch.worker`.
Deal = Callable[[Capture, Sequence[Band], FromSample], Iterable[tuple[Band, Pictures]]]


@memory_in_words()
@in_full_precision
def solve(
    capture: Capture,
    method: str | Method = DEFAULT_METHOD,
    *,
    prior: str | None = None,
    device: str = "cpu",
    control: Control = SILENT,
    resume: SolveState | str | Path | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 10,
    prepared: Prepared | None = None,
    strengths: str = "auto",
    memory: int | None = None,
    crops: int | None = None,
    deal: Deal | None = None,
    **parameters: Any,
) -> Reconstruction:
    """Estimate normals and albedo of a capture.

    A small object is one tile, on which the prior learns. For a larger one, all photographs are read once, the prior
    learns on a sample, and the tiles (bands of rows that fit into memory) are solved with what it learned.

    Parameters
    ----------
    capture : Capture
        Photographs, lights and mask.
    method : str
        A registered method (see :func:`photostereo.method_names`), ``"best"`` (``dlnet``), ``"fast"`` (``dlsr``), or
        ``"auto"``, the best that finishes within minutes; the result's ``chosen`` explains the choice.
    prior : str, optional
        Add this prior to a method that has none, such as ``"dictionary"`` or ``"smoothness"``.
    device : str
        Where to compute: ``"cpu"``, or ``"cuda"`` for an NVIDIA GPU, which needs PyTorch (the ``gpu`` extra).
    control : Control
        Receives progress and can cancel the work.
    resume : SolveState or path, optional
        Continue from a saved state, as if the solve had not been interrupted. Only for methods with a prior.
    checkpoint : path, optional
        Where to save the state.
    checkpoint_every : int
        Number of iterations between saves; the state is also saved at the end.
    prepared : Prepared, optional
        Statistics from :func:`photostereo.solver.prepared.prepare`, reused for a grid of strengths.
    strengths : str
        ``"auto"`` corrects photographs that are brighter or darker than their light strengths imply, as with automatic
        exposure; the factors are in the result's ``strengths``. ``"given"`` uses the photographs as they are.
    memory : int, optional
        Memory limit in bytes (GPU memory on a GPU); by default half of the free memory. It affects the bands, not the
        result.
    crops : int, optional
        Crops of 32 × 32 pixels that the prior learns on; by default 200, or all of an object that is not larger than that.
    deal : callable, optional
        Function that solves the bands, in any order and anywhere; by default they run here, one after the other.
    **parameters
        Parameters of the method; see ``photostereo methods NAME`` or :func:`photostereo.find_method`.

    Returns
    -------
    Reconstruction
        With several tiles, it has no maps with a value per photograph.

    Raises
    ------
    ParameterError
        For an unknown method, an unknown parameter or a value out of range, or if the memory is too small.

    Examples
    --------
    >>> import photostereo as ps
    >>> from photostereo.example import owl
    >>> capture = owl(25.0, step=8)
    >>> ps.solve(capture, method="ls").status
    'closed form'
    >>> ps.solve(capture, "cbr", prior="dictionary", max_iter=2).method
    'cbr+dictionary'
    """
    if not isinstance(capture, Capture):
        raise ParameterError(
            f"solve needs a Capture, not {type(capture).__name__}. Read a folder with "
            "photostereo.load, or use photostereo.Pipeline, which reads, solves and writes.",
            code="needs-a-capture",
            found=type(capture).__name__,
        )
    entry, why = method_for(capture, method, prior)
    where = device_for(entry, device)
    values = entry.resolve(parameters)
    bands = None
    if prepared is None and resume is None and checkpoint is None:
        bands = choose_bands(capture, entry, values, where, memory, crops=crops)
    return solve_planned(
        capture,
        SolvePlan(entry, values, where, bands, strengths, why, crops or CROPS),
        control=control,
        resume=resume,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        prepared=prepared,
        deal=deal,
    )


@dataclass(frozen=True, eq=False)
class SolvePlan:
    """What is decided before a solve, once."""

    method: Method
    values: Mapping[str, Any]  #: all parameters of the method, checked
    device: Device
    bands: Sequence[Band] | None  #: parts that are solved one after the other; None for all at once
    strengths: str = "auto"  #: see :func:`solve`
    why: Finding | None = None  #: why the method was chosen, if it was
    crops: int = CROPS  #: crops that the prior learns on if there are bands


@memory_in_words()
@in_full_precision
def solve_planned(
    capture: Capture,
    plan: SolvePlan,
    *,
    control: Control = SILENT,
    resume: SolveState | str | Path | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 10,
    prepared: Prepared | None = None,
    deal: Deal | None = None,
) -> Reconstruction:
    """Solve a capture as planned.

    Parameters
    ----------
    capture : Capture
        Photographs, lights and mask.
    plan : SolvePlan
        Method, parameters, device and bands.
    control, resume, checkpoint, checkpoint_every, prepared, deal
        As in :func:`solve`.
    """
    near = ""
    if prepared is None:
        capture, near = _settled(capture, plan, control)
        sample = None
        if plan.bands is not None:
            sample = choose_sample(capture.mask, crops=plan.crops)
        prepared = prepare_planned(
            capture,
            plan.method,
            plan.method.of_model(plan.values),
            plan.device,
            strengths=plan.strengths,
            sample=sample,
            control=control,
        )
    prepared.require(capture, plan.method, plan.values, plan.device)
    if plan.bands is None:
        result = prepared.solve(
            plan.values,
            control,
            resume=resume,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
        )
    else:
        result = _solve_tiles(prepared, plan.values, plan.bands, control, deal)
    return replace(result, chosen="" if plan.why is None else str(plan.why), near=near)


def _settled(capture: Capture, plan: SolvePlan, control: Control) -> tuple[Capture, str]:
    """Return the capture with near lights that use its depth, and how that was found; unchanged for distant lights."""
    if not capture.lights.is_near or capture.lights.depth is not None:
        return capture, ""
    alone = find_method(plan.method.model.name)
    of_model = plan.method.of_model(plan.values)
    # Some parameters of the model exist only beside a prior.
    parameters = {
        parameter.name: of_model[parameter.name]
        for parameter in alone.parameters
        if parameter.name in of_model
    }
    values = alone.resolve(parameters)
    quiet = control.unreported()

    def normals(small: Capture) -> Reconstruction:
        bands = choose_bands(small, alone, values, plan.device, None)
        return solve_planned(
            small, SolvePlan(alone, values, plan.device, bands, plan.strengths), control=quiet
        )

    capture, note = with_depth(capture, normals, control)
    return capture, str(note)


def _solve_tiles(
    prepared: Prepared,
    values: Mapping[str, Any],
    bands: Sequence[Band],
    control: Control,
    deal: Deal | None,
) -> Reconstruction:
    """Learn on the sample, solve every band with the result, and join the bands.

    In iteration t of a band, each atom of the dictionary is replaced by the sample's atom of iteration t, at the point
    where it would have been learned. Using the final dictionary from the start is much worse (13.4° against 11.4°
    on cat at 5 dB): codes and atoms must evolve together.
    """
    capture = prepared.capture
    clock = Clock(prepared.seconds)
    learned, facts = prepared.learn(values, control)
    clock.lap("learn")
    normals = np.zeros((*capture.frame, 3), dtype=np.float32)
    albedo = np.zeros(capture.photographs.shape[1:], dtype=np.float32)
    maps: dict[str, NDArray[np.float32]] = {}
    bands = [band for band in bands if capture.mask[band.own_first : band.own_last].any()]
    control.stage("bands", len(bands) * STEPS_OF_A_BAND)
    iterations = 0
    ends = {"closed form"}
    here = ((band, solve_band(capture, learned, band, prepared.device, control)) for band in bands)
    give_back_memory()
    for band, found in here if deal is None else deal(capture, bands, learned):
        own = slice(band.own_first, band.own_last)
        normals[own] = found.normals
        albedo[own] = found.albedo
        for name in found.maps:
            if name not in maps:
                shape = found.maps[name].shape[2:]
                maps[name] = np.zeros((*capture.frame, *shape), dtype=np.float32)
            maps[name][own] = found.maps[name]
        iterations = max(iterations, found.iterations)
        ends.add(found.status)
        if deal is not None:
            control.advance(STEPS_OF_A_BAND)
        del found  # before the next band
        give_back_memory()
    clock.lap("solve")
    status = max(ends, key=("closed form", "converged", "iterations").index)
    pictures = Pictures(normals, albedo, maps, status, iterations)
    return prepared.result(pictures, learned.values, clock, **facts)


@memory_in_words()
@in_full_precision
def solve_grid(
    capture: Capture,
    method: str | Method,
    settings: Sequence[Mapping[str, float]],
    *,
    prior: str | None = None,
    device: str = "cpu",
    at_once: int = 64,
    control: Control = SILENT,
    prepared: Prepared | None = None,
    strengths: str = "auto",
    **parameters: Any,
) -> list[Reconstruction]:
    """Return one reconstruction per setting of the prior's strengths; photographs are reduced to statistics only once.

    On a GPU up to ``at_once`` settings descend together, each with a separate prior: a single problem leaves most
    of a GPU idle. Every result equals that of :func:`photostereo.solve` with the same parameters.

    Parameters
    ----------
    capture : Capture
    method, prior : str
        A method with a prior.
    settings : sequence of mappings
        Each gives all strengths of the prior: ``lam`` and ``mu`` for a dictionary.
    device : str
        As in :func:`photostereo.solve`. On the CPU the settings run one after another.
    at_once : int
        Settings in one batch; lower it if the GPU's memory is short.
    control : Control
        Progress and cancellation.
    prepared : Prepared, optional
        Statistics of :func:`photostereo.solver.prepared.prepare`.
    strengths : str
        As in :func:`photostereo.solve`.
    **parameters
        The method's other parameters, common to all settings.

    Raises
    ------
    ParameterError
        If the method has no prior, or a setting does not give exactly its strengths.

    Examples
    --------
    >>> import photostereo as ps
    >>> from photostereo.example import owl
    >>> capture = owl(25.0, step=8)
    >>> pairs = [{"lam": lam, "mu": 0.1} for lam in (0.5, 2.0)]
    >>> [result.parameters["lam"] for result in ps.solve_grid(capture, "dlnv", pairs, max_iter=2)]
    [0.5, 2.0]
    """
    entry = find_method(method, prior)
    varied = entry.prior.strengths if entry.prior else ()
    if not varied or any(set(setting) != set(varied) for setting in settings):
        names = ", ".join(varied) or "none"
        raise ParameterError(
            f"A grid varies the strengths of a prior: with method {entry.name}, each setting must "
            f"give these and nothing else: {names}.",
            code="grid-of-other-parameters",
            method=entry.name,
            strengths=names,
        )
    values = [entry.resolve({**parameters, **setting}) for setting in settings]
    if not values:
        return []
    where = device_for(entry, device)
    if prepared is None:
        plan = SolvePlan(entry, values[0], where, None, strengths)
        capture = _settled(capture, plan, control)[0]
        of_model = entry.of_model(values[0])
        prepared = prepare_planned(capture, entry, of_model, where, strengths=strengths)
    prepared.require(capture, entry, values[0], where)
    control.stage("settings", len(values))
    # With a tolerance, each problem stops at a different iteration.
    together = at_once if prepared.device.uses_torch and values[0]["tol"] == 0 else 1
    results: list[Reconstruction] = []
    for first in range(0, len(values), together):
        part = values[first : first + together]
        results += prepared.solve_together(part) if together > 1 else [prepared.solve(part[0])]
        control.advance(len(part))
    return results
