"""``solve`` and ``solve_grid``: the two ways in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from photostereo.capture import Capture
from photostereo.core.control import SILENT, Control
from photostereo.core.errors import ParameterError
from photostereo.runtime.arrays import in_full_precision, memory_in_words
from photostereo.solver.choice import DEFAULT_METHOD
from photostereo.solver.large import needs_tiles, solve_large
from photostereo.solver.methods import Method, find_method, method_for
from photostereo.solver.prepared import Prepared, device_for, prepare
from photostereo.solver.reconstruction import Reconstruction
from photostereo.solver.state import SolveState


@memory_in_words
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
    **parameters: Any,
) -> Reconstruction:
    """Estimate normals and albedo of a capture.

    An object of more than about 200,000 pixels is solved in tiles, with a prior that learns on a sample of it; so is a
    capture of any size that needs more than ``memory``. See ``docs/large.md``.

    Parameters
    ----------
    capture : Capture
        Photographs, lights and mask.
    method : str
        A registered method (see :func:`photostereo.method_names`), ``"best"`` (``dlnet``), ``"fast"`` (``dlsr``), or
        ``"auto"``, the best that finishes within minutes; the result's ``chosen`` explains the choice.
    prior : str, optional
        Add this prior to a method that has none: ``"dictionary"`` or ``"smoothness"``.
    device : str
        Where to compute: ``"cpu"``, or ``"cuda"`` for an NVIDIA GPU, which needs PyTorch (the ``gpu`` extra).
    control : Control
        Receives progress and can cancel the work.
    resume : SolveState or path, optional
        Continue from a saved state, as if the solve had not been interrupted. Only for methods with a prior.
    checkpoint : path, optional
        Where to save the state every ``checkpoint_every`` iterations and at the end.
    prepared : Prepared, optional
        Statistics of :func:`photostereo.solver.prepared.prepare`, reused over a grid of strengths.
    strengths : str
        ``"auto"`` corrects photographs that are brighter or darker than their light strengths say, as with an automatic
        exposure; the factors are in the result's ``strengths``. ``"given"`` uses the photographs as they are.
    memory : int, optional
        Bytes that may be used; half of the free memory by default.
    **parameters
        Parameters of the method; see ``photostereo methods NAME`` or :func:`photostereo.find_method`.

    Returns
    -------
    Reconstruction
        If there are several tiles, without the maps that hold a value for every photograph.

    Raises
    ------
    ParameterError
        For an unknown method, an unknown parameter or a value out of range, or if the memory is too small.

    Examples
    --------
    >>> import photostereo as ps
    >>> capture = ps.render_scene("sphere", size=32)
    >>> ps.solve(capture, method="ls").status
    'closed form'
    >>> ps.solve(capture, "cbr", prior="dictionary", max_iter=2).method
    'cbr+dictionary'
    """
    if not isinstance(capture, Capture):
        raise ParameterError(
            f"solve needs a Capture, not {type(capture).__name__}. Read a folder with photostereo.load, or use "
            "photostereo.Pipeline, which reads, solves and writes.",
            code="not-a-capture",
        )
    entry, why = method_for(capture, method, prior)
    values = entry.resolve(parameters)
    where = device_for(entry, device)
    whole = prepared is not None or resume is not None or checkpoint is not None
    if not whole and needs_tiles(capture, entry, where, memory):
        if capture.in_memory:
            capture.require_light()
        result = solve_large(
            capture, entry, memory=memory, device=device, control=control, strengths=strengths, **parameters
        )
        return replace(result, chosen=why) if why else result
    if prepared is None:
        prepared = prepare(capture, entry, device=device, strengths=strengths, **parameters)
    prepared.require(capture, entry, values, where)
    result = prepared.solve(
        values, control=control, resume=resume, checkpoint=checkpoint, checkpoint_every=checkpoint_every
    )
    return replace(result, chosen=why) if why else result


@memory_in_words
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
    """One reconstruction for each setting of the prior's strengths; the photographs are reduced to their statistics once.

    On a GPU up to ``at_once`` settings descend together, each with a prior of its own: one problem alone leaves most
    of a GPU waiting. Every result equals that of :func:`photostereo.solve` with the same parameters.

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
    >>> capture = ps.render_scene("sphere", size=40)
    >>> pairs = [{"lam": lam, "mu": 0.1} for lam in (0.5, 2.0)]
    >>> [result.parameters["lam"] for result in ps.solve_grid(capture, "dlnv", pairs, max_iter=2)]
    [0.5, 2.0]
    """
    entry = find_method(method, prior)
    varied = entry.prior.strengths if entry.prior else ()
    if not varied or any(set(setting) != set(varied) for setting in settings):
        raise ParameterError(
            f"A grid varies the strengths of a prior. Method {entry.name} has the strengths "
            f"{', '.join(varied) or 'none'}; each setting must give all of them and nothing else, but one gives "
            f"{', '.join(next((s for s in settings if set(s) != set(varied)), ())) or 'none'}.",
            code="grid-of-other-parameters",
            method=entry.name,
            strengths=list(varied),
        )
    values = [entry.resolve({**parameters, **setting}) for setting in settings]
    if not values:
        return []
    if prepared is None:
        prepared = prepare(capture, entry, device=device, strengths=strengths, **parameters)
    prepared.require(capture, entry, values[0], device_for(entry, device))
    control.stage("settings", len(values))
    # With a tolerance each problem ends on its own.
    together = at_once if prepared.device.uses_torch and values[0]["tol"] == 0 else 1
    results: list[Reconstruction] = []
    for first in range(0, len(values), together):
        part = values[first : first + together]
        results += prepared.solve_together(part) if together > 1 else [prepared.solve(part[0])]
        control.advance(len(part))
    return results
