"""Many solves of one capture: the pairs (λ, μ) of a grid, on a GPU all at once."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from photostereo.backend import like, memory_in_words, namespace, to_numpy
from photostereo.capture import Capture
from photostereo.errors import ParameterError
from photostereo.monitor import SILENT, Monitor
from photostereo.parameters import resolve
from photostereo.priors.dictionary.prior import DictionaryState
from photostereo.reconstruction import Reconstruction
from photostereo.solver.descent import begin, iterate, like_or_none, record_of
from photostereo.solver.methods import find_method
from photostereo.solver.solve import (
    Prepared,
    as_reconstruction,
    build_prior,
    dictionary_facts,
    prepare,
    solve,
)

#: What may differ between the settings of a grid.
VARIED = ("lam", "mu")


@memory_in_words
def solve_grid(
    capture: Capture,
    method: str,
    settings: Sequence[Mapping[str, float]],
    *,
    device: str = "cpu",
    at_once: int = 64,
    monitor: Monitor = SILENT,
    prepared: Prepared | None = None,
    **parameters: Any,
) -> list[Reconstruction]:
    """One reconstruction for each setting of λ and μ; the photographs are reduced to their statistics once.

    On a GPU up to ``at_once`` settings descend together, each with its own dictionary: one problem alone leaves most
    of a GPU waiting. Every result equals that of :func:`photostereo.solver.solve` with the same parameters.

    Parameters
    ----------
    capture : Capture
    method : str
        A method with a dictionary.
    settings : sequence of mappings
        Each gives ``lam`` and ``mu``.
    device : str
        As in :func:`photostereo.solver.solve`. On the CPU the settings run one after another.
    at_once : int
        Settings in one batch; lower it where the GPU's memory is short.
    prepared : Prepared, optional
        Statistics of :func:`photostereo.solver.solve.prepare`.
    **parameters
        The method's other parameters, common to all settings.

    Raises
    ------
    ParameterError
        Where the method has no dictionary, or a setting is not a pair of λ and μ.

    Examples
    --------
    >>> import photostereo as ps
    >>> capture = ps.render_scene("sphere", size=40)
    >>> pairs = [{"lam": lam, "mu": 0.1} for lam in (0.5, 2.0)]
    >>> [result.parameters["lam"] for result in solve_grid(capture, "dlnv", pairs, max_iter=2)]
    [0.5, 2.0]
    """
    entry = find_method(method)
    if not entry.has_prior or any(set(setting) != set(VARIED) for setting in settings):
        raise ParameterError(
            f"A grid varies λ and μ of a method with a dictionary: give each setting as {{'lam': ..., 'mu': ...}}, and "
            f"a method such as dlnv or pdlnv. This was {method} with {[sorted(s) for s in settings][:1]}."
        )
    values = [resolve(entry.parameters, {**parameters, **setting}, method) for setting in settings]
    if not values:
        return []
    if prepared is None:
        prepared = prepare(capture, method, device=device, **parameters)
    if (
        not prepared.device.uses_torch or values[0]["tol"] > 0
    ):  # with a tolerance each problem ends on its own
        common = {**parameters, "device": device, "monitor": monitor, "prepared": prepared}
        return [solve(capture, method, **{**common, **setting}) for setting in settings]
    results: list[Reconstruction] = []
    monitor.stage("settings", len(values))
    for first in range(0, len(values), at_once):
        part = values[first : first + at_once]
        results += _solve_together(capture, prepared, part)
        monitor.advance(len(part))
    return results


def _solve_together(
    capture: Capture, prepared: Prepared, values: Sequence[dict[str, Any]]
) -> list[Reconstruction]:
    """All settings as one problem with a leading axis."""
    prepared.require(capture, prepared.method, values[0], prepared.device)
    began, model = time.perf_counter(), prepared.model
    normals, unknowns = model.start(SILENT)
    lam, mu = (like(np.array([v[name] for v in values], dtype=np.float64), normals) for name in VARIED)
    prior = build_prior(capture.mask, {**values[0], "mu": mu}, prepared.device)
    together = namespace(normals).stack([normals] * len(values))
    state = begin(together, unknowns, prior)
    initial = np.array(to_numpy(state.dictionary.atoms[0]))
    truth = like_or_none(None if capture.truth is None else capture.truth[capture.mask], normals)
    figures = [iterate(state, model, prior, lam, truth) for _ in range(values[0]["max_iter"])]
    table = to_numpy(namespace(figures[0]).stack(figures))  # (iterations, figures, settings)
    seconds = (time.perf_counter() - began) / len(values)
    results = []
    for g, chosen in enumerate(values):
        own = {name: value[g] for name, value in state.unknowns.items()}
        maps = model.maps(state.normals[g], own)
        result = as_reconstruction(capture, to_numpy(state.normals[g]), maps, prepared.scale)
        dictionary = state.dictionary
        last = DictionaryState(dictionary.atoms[g], dictionary.codes[g], dictionary.residual[g])
        rows = table[:, :, g].tolist()
        history = tuple(record_of(row, k + 1, seconds / len(rows)) for k, row in enumerate(rows))
        results.append(
            replace(
                result,
                method=prepared.method,
                parameters=chosen,
                status="iterations",
                iterations=len(history),
                history=history,
                arrays={"dictionary_initial": initial, **dictionary_facts(last)},
                seconds={**prepared.seconds, "solve": seconds},
                versions={**result.versions, **prepared.device.facts()},
            )
        )
    return results
