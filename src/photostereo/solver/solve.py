"""Solve: a reflectance model, perhaps the dictionary prior, block coordinate descent.

    minimise  Σ_pixels data(n, u)  +  λ ( Σ_patches ‖P_j n − D b_j‖² + μ² ‖B‖₀ )

One outer iteration is a pass over the atoms (D and B at fixed n) and the model's exact update (n and u at
fixed D, B). Neither can raise the cost.
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
from photostereo.backend import (
    CPU,
    Array,
    Device,
    cast,
    empty,
    find_device,
    like,
    memory_in_words,
    to_numpy,
)
from photostereo.capture import Capture
from photostereo.errors import ConvergenceWarning, ParameterError
from photostereo.monitor import SILENT, Monitor
from photostereo.parameters import resolve
from photostereo.priors.dictionary.automatic import choose_strength, noise_of_intensities
from photostereo.priors.dictionary.patches import PatchGrid
from photostereo.priors.dictionary.prior import DictionaryPrior, DictionaryState
from photostereo.quality.metrics import summarise_error
from photostereo.reconstruction import Reconstruction
from photostereo.reflectance.model import Model
from photostereo.solver.descent import SolveState, begin, descend
from photostereo.solver.methods import Method, find_method, method_names
from photostereo.threads import shorten_spinning

__all__ = [
    "Prepared",
    "SolveState",
    "as_reconstruction",
    "build_prior",
    "dictionary_facts",
    "prepare",
    "solve",
    "versions",
]


@dataclass(frozen=True)
class Prepared:
    """What a solve needs of a capture before λ and μ matter: its intensities and the model's statistics.

    One of these serves every λ and μ of a grid. ``noise`` is that of a scaled intensity, where the method
    has a prior; ``seconds`` is what making it took, by stage.
    """

    method: str
    capture: Capture
    model_values: dict[str, Any]
    scale: float
    noise: float | None
    model: Model
    seconds: dict[str, float]
    device: Device = CPU

    def require(self, capture: Capture, method: str, values: dict[str, Any], device: Device = CPU) -> None:
        """Raise a :class:`ParameterError` where this was prepared for something else."""
        same_model = all(np.array_equal(values[name], value) for name, value in self.model_values.items())
        if (capture, method, device) != (self.capture, self.method, self.device) or not same_model:
            raise ParameterError(
                f"The statistics were prepared for {self.method} on {self.capture.name} with "
                f"{self.model_values or 'no parameters'} on {self.device.name}, but something else is to be solved: "
                f"{method} on {capture.name} on {device.name}. Prepare again with the same capture, method, model "
                "parameters and device."
            )


def prepare(capture: Capture, method: str, *, device: str = "cpu", **parameters: Any) -> Prepared:
    """Reduce the photographs to the model's statistics once, for many calls of :func:`solve`.

    Only the parameters of the reflectance model matter here; those of the prior may be given and are ignored.
    """
    entry = find_method(method)
    return _prepare(capture, entry, resolve(entry.parameters, parameters, method), _device_for(entry, device))


def _device_for(entry: Method, name: str) -> Device:
    """The device, where the method runs on it."""
    device = find_device(name)
    if device.uses_torch and not entry.on_gpu:
        able = ", ".join(other for other in method_names() if find_method(other).on_gpu)
        raise ParameterError(
            f"Method {entry.name} does not run on {name}, only on the CPU. Leave the device out, or choose one of "
            f"{able}."
        )
    return device


def _prepare(capture: Capture, entry: Method, values: dict[str, Any], device: Device) -> Prepared:
    clock = _Clock()
    pixels, scale = capture.scaled_pixels(device)
    lights = np.ascontiguousarray(capture.lights.T)
    clock.lap("prepare")
    model_values = {p.name: values[p.name] for p in entry.model_parameters}
    model = entry.model(pixels, lights, **model_values)
    noise = None
    if entry.has_prior:
        noise = model.noise
        if noise is None:
            noise = noise_of_intensities(pixels, lights, capture.mask)
    clock.lap("statistics")
    return Prepared(entry.name, capture, model_values, scale, noise, model, clock.laps, device)


@memory_in_words
def solve(
    capture: Capture,
    method: str = "dlsr",
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
        Where to compute: ``"cpu"``, or ``"cuda"`` for an NVIDIA GPU, which needs PyTorch (the ``gpu`` extra).
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
    shorten_spinning()  # before the compiled kernels bring OpenMP
    entry = find_method(method)
    values = resolve(entry.parameters, parameters, method)
    where = _device_for(entry, device)
    if prepared is None:
        prepared = _prepare(capture, entry, values, where)
    prepared.require(capture, method, values, where)
    scale, noise, model = prepared.scale, prepared.noise, prepared.model
    clock = _Clock(prepared.seconds)
    del prepared  # the model's statistics may be as large as the photographs
    arrays: dict[str, NDArray[Any]] = {}
    if entry.has_prior:
        normals, unknowns = model.start(monitor)
        values = _settle_automatic(values, model.mean_hessian(unknowns), noise, capture.mask)
        prior = build_prior(capture.mask, values, where)
        state = begin(normals, unknowns, prior, resume=resume, device=where)
        first = state.dictionary if resume is None else prior.begin(normals)
        arrays["dictionary_initial"] = np.array(to_numpy(first.atoms))
        del first
        clock.lap("start")
        truth = None if capture.truth is None else capture.truth[capture.mask]
        status = descend(
            state,
            model,
            prior,
            values["lam"],
            limit=values["max_iter"],
            tolerance=values["tol"],
            monitor=monitor,
            truth=truth,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
        )
        normals, unknowns, history = state.normals, state.unknowns, state.history
        iterations = len(history)
        arrays |= dictionary_facts(state.dictionary)
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
    result = as_reconstruction(capture, to_numpy(normals), pixel_maps, scale)
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
        versions={**result.versions, **where.facts()},
    )


def build_prior(mask: NDArray[np.bool_], values: dict[str, Any], device: Device = CPU) -> DictionaryPrior:
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
        device=device,
    )


def _settle_automatic(
    values: dict[str, Any], hessian: NDArray[Any], noise: float | None, mask: NDArray[np.bool_]
) -> dict[str, Any]:
    """λ and μ where the user left them to us."""
    if noise is None or (values["lam"] is not None and values["mu"] is not None):
        return values
    grid = PatchGrid.from_mask(mask, size=values["patch"], stride=values["stride"])
    lam, mu = choose_strength(noise, hessian, cover=float(grid.count.mean()))
    return {
        **values,
        "lam": lam if values["lam"] is None else values["lam"],
        "mu": mu if values["mu"] is None else values["mu"],
    }


def dictionary_facts(state: DictionaryState) -> dict[str, NDArray[Any]]:
    codes = to_numpy(state.codes)
    return {
        "dictionary": np.array(to_numpy(state.atoms)),
        "atom_use": np.count_nonzero(codes, axis=1) / max(codes.shape[1], 1),
        "codes_per_patch": np.bincount(np.count_nonzero(codes, axis=0), minlength=1),
    }


def as_reconstruction(
    capture: Capture, scaled: NDArray[Any], pixel_maps: dict[str, Array], scale: float
) -> Reconstruction:
    """Back from mask pixels to pictures, from scaled normals to unit normals and albedo."""
    length = np.linalg.norm(scaled, axis=1)
    unit = scaled / np.where(length > 0, length, 1.0)[:, None]
    normals = np.zeros((*capture.frame, 3), dtype=np.float32)
    normals[capture.mask] = unit
    albedo = np.zeros(capture.images.shape[1:], dtype=np.float32)
    albedo[capture.mask] = _channel_albedo(capture, unit, length * scale)
    maps = {name: _picture(values, capture.mask) for name, values in pixel_maps.items()}
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


def _picture(values: Array, mask: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Values of the mask pixels as a picture, zero outside; pasted where they are, so that a GPU sends it once."""
    picture = empty((mask.size, *values.shape[1:]), values, "float32")
    picture[:] = 0.0
    picture[like(np.flatnonzero(mask), values)] = cast(values, "float32")
    return to_numpy(picture).reshape(*mask.shape, *values.shape[1:])


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
    tint = np.divide(along, luma[:, None], out=np.ones_like(along), where=luma[:, None] > 0)
    return np.asarray(gray[:, None] * tint)


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
