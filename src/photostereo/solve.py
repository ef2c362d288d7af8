"""Solve: a reflectance model, perhaps the dictionary prior, block coordinate descent.

    minimise  Σ_pixels data(n, u)  +  λ ( Σ_patches ‖P_j n − D b_j‖² + μ² ‖B‖₀ )

One outer iteration is a pass over the atoms (D and B at fixed n) and the model's exact update (n and u at fixed D, B).
Neither can raise the cost.
"""

from __future__ import annotations

import platform
import time
import warnings
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo._version import __version__
from photostereo.capture import Capture
from photostereo.dictionary.patches import PatchGrid
from photostereo.dictionary.prior import DictionaryPrior, DictionaryState
from photostereo.errors import CaptureError, ConvergenceWarning, ParameterError
from photostereo.methods import Method, find_method
from photostereo.metrics import angle_between, summarise_error
from photostereo.monitor import SILENT, Iteration, Monitor
from photostereo.parameters import resolve
from photostereo.reconstruction import Reconstruction
from photostereo.reflectance.model import Array, Model, Unknowns


@dataclass
class SolveState:
    """Everything that block coordinate descent carries from one iteration to the next."""

    normals: Array
    unknowns: Unknowns
    dictionary: DictionaryState
    history: tuple[Iteration, ...] = ()

    def save(self, path: str | Path) -> None:
        """Write the state to an ``.npz`` file, replaced at once so that an interruption leaves the old one."""
        path = Path(path)
        arrays = {f"unknown_{name}": value for name, value in self.unknowns.items()}
        # NaN stands for "no truth known" in the error column.
        history = [[np.nan if v is None else float(v) for v in r.as_dict().values()] for r in self.history]
        partial = path.with_name(path.name + ".partial")
        with partial.open("wb") as file:
            np.savez(
                file,
                normals=self.normals,
                atoms=self.dictionary.atoms,
                codes=self.dictionary.codes,
                residual=self.dictionary.residual,
                history=np.array(history).reshape(len(history), -1),
                **arrays,
            )
        partial.replace(path)

    @classmethod
    def load(cls, path: str | Path) -> SolveState:
        """Read what :meth:`save` wrote."""
        try:
            with np.load(path, allow_pickle=False) as file:
                unknowns = {
                    key.removeprefix("unknown_"): file[key] for key in file.files if key.startswith("unknown_")
                }
                history = tuple(
                    Iteration(int(row[0]), *row[1:-1].tolist(), None if np.isnan(row[-1]) else float(row[-1]))
                    for row in file["history"]
                )
                dictionary = DictionaryState(file["atoms"], file["codes"], file["residual"])
                return cls(file["normals"], unknowns, dictionary, history)
        except (OSError, ValueError, KeyError) as problem:
            raise CaptureError(
                f"{path} is not the saved state of a solve ({problem}). Give the file that `checkpoint` wrote, or start "
                "again without `resume`."
            ) from None


@dataclass(frozen=True)
class Prepared:
    """What a solve needs of a capture before λ and μ matter: its intensities and the model's statistics.

    One of these serves every λ and μ of a grid. ``seconds`` is what making it took, by stage.
    """

    method: str
    capture: Capture
    model_values: dict[str, Any]
    scale: float
    model: Model
    seconds: dict[str, float]

    def require(self, capture: Capture, method: str, values: dict[str, Any]) -> None:
        """Raise a :class:`ParameterError` where this was prepared for something else."""
        same_model = all(np.array_equal(values[name], value) for name, value in self.model_values.items())
        if capture is not self.capture or method != self.method or not same_model:
            raise ParameterError(
                f"The statistics were prepared for {self.method} on {self.capture.name} with "
                f"{self.model_values or 'no parameters'}, but something else is to be solved: {method} on "
                f"{capture.name}. Prepare again with the same capture, method and model parameters."
            )


def prepare(capture: Capture, method: str, **parameters: Any) -> Prepared:
    """Reduce the photographs to the model's statistics once, for many calls of :func:`solve`.

    Only the parameters of the reflectance model matter here; those of the prior may be given and are ignored.
    """
    entry = find_method(method)
    return _prepare(capture, entry, resolve(entry.parameters, parameters, method))


def _prepare(capture: Capture, entry: Method, values: dict[str, Any]) -> Prepared:
    clock = _Clock()
    scale = capture.intensity_scale()
    pixels = capture.pixels(scale)
    lights = np.ascontiguousarray(capture.lights.T)
    clock.lap("prepare")
    model_values = {p.name: values[p.name] for p in entry.model_parameters}
    model = entry.model(pixels, lights, **model_values)
    clock.lap("statistics")
    return Prepared(entry.name, capture, model_values, scale, model, clock.laps)


def solve(
    capture: Capture,
    method: str = "pdlnv",
    *,
    device: str = "cpu",
    monitor: Monitor = SILENT,
    resume: SolveState | str | Path | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 10,
    prepared: Prepared | None = None,
    **parameters: Any,
) -> Reconstruction:
    """Normals and albedo of a capture.

    Parameters
    ----------
    capture : Capture
    method : str
        A registered method; see :func:`photostereo.method_names`.
    device : str
        Where to compute: ``"cpu"``.
    monitor : Monitor
        Receives progress.
    resume : SolveState or path, optional
        Go on from a saved state; equals the uninterrupted solve. Only for methods with a dictionary.
    checkpoint : path, optional
        Where to save the state every ``checkpoint_every`` iterations and at the end.
    prepared : Prepared, optional
        Statistics of :func:`prepare`, reused over a grid of λ and μ.
    **parameters
        Of the method; see ``photostereo methods`` or :func:`photostereo.find_method`.

    Returns
    -------
    Reconstruction

    Raises
    ------
    ParameterError
        For an unknown method, an unknown parameter or a value out of range.

    Examples
    --------
    >>> import photostereo as ps
    >>> capture = ps.render_scene("sphere", size=32)
    >>> ps.solve(capture, method="ls").status
    'closed form'
    """
    entry = find_method(method)
    values = resolve(entry.parameters, parameters, method)
    if device != "cpu":
        raise ParameterError(f'There is no device "{device}". Use "cpu".')
    if prepared is None:
        prepared = _prepare(capture, entry, values)
    prepared.require(capture, method, values)
    scale, model = prepared.scale, prepared.model
    clock = _Clock(prepared.seconds)
    del prepared  # the model's statistics may be as large as the photographs
    arrays: dict[str, NDArray[Any]] = {}
    if entry.has_prior:
        normals, unknowns = model.start(monitor)
        values = _settle_automatic(values, model, normals, capture.mask)
        prior = build_prior(capture.mask, values)
        state = _begin(normals, unknowns, prior, resume)
        arrays["dictionary_initial"] = state.dictionary.atoms.copy()
        clock.lap("start")
        truth = None if capture.truth is None else capture.truth[capture.mask]
        status = _descend(state, model, prior, values, monitor, truth, checkpoint, checkpoint_every)
        normals, unknowns, history = state.normals, state.unknowns, state.history
        iterations = len(history)
        arrays |= _dictionary_facts(state.dictionary)
    else:
        if resume is not None or checkpoint is not None:
            raise ParameterError(
                f"Method {method} has no iteration to save or resume. Leave out `resume` and `checkpoint`, or use a "
                "method with a dictionary, such as pdlnv."
            )
        fit = model.alone(monitor)
        normals, unknowns, history, iterations = fit.normals, fit.unknowns, (), fit.iterations
        status = "closed form" if fit.iterations == 0 else "converged" if fit.converged else "iterations"
        if not fit.converged:
            warnings.warn(
                f"{method} stopped at its limit of {fit.iterations} iterations before every pixel met its tolerance.",
                ConvergenceWarning,
                stacklevel=2,
            )
    clock.lap("solve")
    pixel_maps = model.maps(normals, unknowns)
    del model  # its statistics may be as large as the photographs
    result = _as_reconstruction(capture, normals, pixel_maps, scale)
    clock.lap("finish")
    return replace(
        result,
        method=method,
        parameters=values,
        status=status,
        iterations=iterations,
        history=history,
        arrays=arrays,
        seconds=clock.laps,
    )


def build_prior(mask: NDArray[np.bool_], values: dict[str, Any]) -> DictionaryPrior:
    """The prior that a method's parameters describe."""
    return DictionaryPrior(
        mask,
        mu=values["mu"],
        q=values["q"],
        patch=values["patch"],
        stride=values["stride"],
        atoms=values["atoms"] or None,
        dictionary=values["dictionary"],
        learn=values["learn"],
        rng=values["seed"],
        dtype=np.float32 if values["precision"] == "single" else np.float64,
    )


def _settle_automatic(values: dict[str, Any], model: Model, normals: Array, mask: NDArray[np.bool_]) -> dict[str, Any]:
    """λ and μ where the user left them to us."""
    if values["lam"] is not None and values["mu"] is not None:
        return values
    from photostereo.dictionary.automatic import choose_strength

    grid = PatchGrid.from_mask(mask, size=values["patch"], stride=values["stride"])
    lam, mu = choose_strength(normals, mask, curvature=model.curvature, cover=float(grid.count.mean()))
    return {
        **values,
        "lam": lam if values["lam"] is None else values["lam"],
        "mu": mu if values["mu"] is None else values["mu"],
    }


def _begin(
    normals: Array, unknowns: Unknowns, prior: DictionaryPrior, resume: SolveState | str | Path | None
) -> SolveState:
    if resume is None:
        return SolveState(normals, unknowns, prior.begin(normals))
    state = resume if isinstance(resume, SolveState) else SolveState.load(resume)
    expected = (prior.grid.n_pixels, prior.grid.n_patches, prior.grid.patch_length)
    found = (len(state.normals), *state.dictionary.residual.shape)
    if expected != found:
        raise ParameterError(
            f"The saved state has {found[0]} pixels and {found[1]} patches of {found[2]} values, but this capture and "
            f"these parameters give {expected[0]}, {expected[1]} and {expected[2]}. Resume with the same capture and "
            "parameters, or start again without `resume`."
        )
    # A resumed solve must not change the caller's state.
    dictionary = DictionaryState(
        state.dictionary.atoms.copy(), state.dictionary.codes.copy(), state.dictionary.residual.copy()
    )
    return replace(state, dictionary=dictionary)


def _descend(
    state: SolveState,
    model: Model,
    prior: DictionaryPrior,
    values: dict[str, Any],
    monitor: Monitor,
    truth: NDArray[Any] | None,
    checkpoint: str | Path | None,
    checkpoint_every: int,
) -> str:
    """Block coordinate descent in place; the status."""
    lam, limit, tolerance = values["lam"], values["max_iter"], values["tol"]
    monitor.stage("iterations", limit)
    monitor.advance(len(state.history))
    status = "iterations"
    for number in range(len(state.history) + 1, limit + 1):
        began = time.perf_counter()
        prior.update(state.dictionary)
        pull = prior.pull(state.dictionary, state.normals)
        normals = model.update_normals(state.unknowns, lam, prior.count, pull)
        state.unknowns = model.update_unknowns(normals, state.unknowns)
        change = normals - state.normals
        prior.follow(state.dictionary, change)
        moved = float(np.linalg.norm(change)) / max(float(np.linalg.norm(state.normals)), 1e-300)
        state.normals = normals
        record = _record(number, state, model, prior, lam, moved, truth, began)
        before = state.history[-1].cost if state.history else np.inf
        state.history = (*state.history, record)
        monitor.iteration(record)
        monitor.advance()
        done = before - record.cost <= tolerance * abs(before) and tolerance > 0 and np.isfinite(before)
        if checkpoint is not None and (number % checkpoint_every == 0 or number == limit or done):
            state.save(checkpoint)
        if done:
            status = "converged"
            break
    return status


def _record(
    number: int,
    state: SolveState,
    model: Model,
    prior: DictionaryPrior,
    lam: float,
    moved: float,
    truth: NDArray[Any] | None,
    began: float,
) -> Iteration:
    data = model.cost(state.normals, state.unknowns)
    fit, sparsity = (lam * term for term in prior.cost(state.dictionary))
    error = None if truth is None else float(angle_between(state.normals, truth).mean())
    return Iteration(
        number=number,
        cost=data + fit + sparsity,
        data=data,
        fit=fit,
        sparsity=sparsity,
        nonzeros=state.dictionary.nonzeros / state.dictionary.codes.size,
        change=moved,
        seconds=time.perf_counter() - began,
        error=error,
    )


def _dictionary_facts(state: DictionaryState) -> dict[str, NDArray[Any]]:
    used = np.count_nonzero(state.codes, axis=1)
    return {
        "dictionary": state.atoms.copy(),
        "atom_use": used / max(state.codes.shape[1], 1),
        "codes_per_patch": np.bincount(np.count_nonzero(state.codes, axis=0), minlength=1),
    }


def _as_reconstruction(
    capture: Capture, scaled: NDArray[Any], pixel_maps: dict[str, NDArray[Any]], scale: float
) -> Reconstruction:
    """Back from mask pixels to pictures, from scaled normals to unit normals and albedo."""
    length = np.linalg.norm(scaled, axis=1)
    unit = scaled / np.where(length > 0, length, 1.0)[:, None]
    normals = np.zeros((*capture.frame, 3), dtype=np.float32)
    normals[capture.mask] = unit
    albedo = np.zeros(capture.images.shape[1:], dtype=np.float32)
    albedo[capture.mask] = _channel_albedo(capture, unit, length * scale)
    maps = {}
    for name, values in pixel_maps.items():
        picture = np.zeros((*capture.frame, *values.shape[1:]), dtype=np.float32)
        picture[capture.mask] = values
        maps[name] = picture
    error = None if capture.truth is None else summarise_error(normals, capture.truth, capture.mask)
    return Reconstruction(
        normals=normals,
        albedo=albedo,
        mask=capture.mask,
        method="",
        parameters={},
        capture=capture.name,
        digest=capture.digest,
        maps=maps,
        angular_error=error,
        versions=versions(),
    )


def _channel_albedo(capture: Capture, unit: NDArray[Any], gray: NDArray[Any]) -> NDArray[Any]:
    """The method's gray albedo, tinted by each channel's least-squares share along the normal found."""
    if not capture.is_color:
        return gray
    from photostereo.conventions import GRAY_WEIGHTS

    inverse = np.linalg.pinv(capture.lights)  # 3 × d
    along = np.empty((len(gray), 3))
    for channel in range(3):
        values = capture.images[:, capture.mask, channel]
        along[:, channel] = np.einsum("nk,kn->n", unit, inverse @ values)
    along = np.maximum(along, 0.0)
    luma = along @ np.asarray(GRAY_WEIGHTS)
    return gray[:, None] * np.divide(along, luma[:, None], out=np.ones_like(along), where=luma[:, None] > 0)


class _Clock:
    """Wall-clock time by stage."""

    def __init__(self, laps: dict[str, float] | None = None) -> None:
        self.laps: dict[str, float] = dict(laps or {})
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.laps[stage] = now - self._last
        self._last = now


def versions() -> dict[str, str]:
    """Versions of what computed a result."""
    return {"photostereo": __version__, "python": platform.python_version(), **_library_versions()}


@cache
def _library_versions() -> dict[str, str]:
    # Parsing the packages' metadata takes 20 ms, as long as least squares itself.
    from importlib.metadata import version

    return {name: version(name) for name in ("numpy", "scipy", "numba")}
