"""The result of a method: normals, albedo, the model's unknowns, the history of the solve; save and load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control, Iteration
from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.core.display import Displayed
from photostereo.core.errors import ParameterError
from photostereo.core.shading import relight
from photostereo.diagnosis.metrics import ErrorSummary
from photostereo.io.atomic import write_array, write_arrays, write_json
from photostereo.io.safe import explained
from photostereo.priors.entry import prior_files
from photostereo.solver.result_files import damaged_result, read_arrays, read_summary

if TYPE_CHECKING:
    from photostereo.surface.differential import Curvature

#: Fields stored unchanged in ``summary.json``.
_SAME = ("method", "parameters", "capture", "digest", "status", "iterations", "seconds", "versions")

#: Number of the form of ``summary.json``; it increases if an entry is removed or changes its meaning.
SCHEMA = 1


@dataclass(frozen=True, eq=False)
class Reconstruction(Displayed):
    """The result of :func:`photostereo.solve`; frozen, arrays read-only."""

    #: (H, W, 3) float32, unit inside the mask, zero outside; x right, y up, z toward the camera. Also zero if a pixel is
    #: black in every photograph.
    normals: FloatArray
    #: (H, W) or (H, W, 3) float32, in the units of the photographs, zero outside the mask; three channels if the capture
    #: has them
    albedo: FloatArray
    mask: BoolArray  #: (H, W) the object
    method: str  #: the method that was used
    parameters: Mapping[str, Any]  #: all its parameters with their values
    capture: str = "capture"  #: its name
    digest: str = ""  #: of the content of the capture
    status: str = "closed form"  #: or ``"converged"``, or ``"iterations"`` (the limit was reached)
    iterations: int = 0  #: iterations that were run
    seconds: Mapping[str, float] = field(default_factory=dict)  #: wall-clock time by stage
    history: tuple[Iteration, ...] = ()  #: a record of every iteration
    #: arrays (H, W, ...) of the method by name, such as ``spread``, the expected error in degrees
    maps: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(
        default_factory=dict
    )  #: others, such as ``dictionary``
    angular_error: ErrorSummary | None = None  #: against the truth, if the capture has one
    versions: Mapping[str, str] = field(default_factory=dict)  #: of the software
    chosen: str = ""  #: why this method was chosen, if ``auto``, ``best`` or ``fast`` was asked for
    #: (d,) divisor of each photograph, 1 for those that were not corrected; None if the light strengths were used
    #: as given
    strengths: NDArray[np.float32] | None = None
    near: str = (
        ""  #: how near lights and the depth were found in turn; empty if the lights are distant
    )

    def __post_init__(self) -> None:
        for array in (
            self.normals,
            self.albedo,
            self.mask,
            *self.maps.values(),
            *self.arrays.values(),
        ):
            array.flags.writeable = False

    def __repr__(self) -> str:
        error = f", mean error {self.angular_error.mean:.2f}°" if self.angular_error else ""
        return (
            f"Reconstruction({self.capture!r} by {self.method}: {self.normals.shape[0]} × {self.normals.shape[1]}, "
            f"{self.status}{error})"
        )

    @property
    def own_seconds(self) -> float:
        """Wall-clock time of the method itself, without reading, surface and page."""
        around = ("load", "surface", "report", "other")
        return sum(spent for stage, spent in self.seconds.items() if stage not in around)

    def summary(self) -> dict[str, Any]:
        """Return the content of ``summary.json``."""
        return {
            "schema": SCHEMA,
            "capture": self.capture,
            "digest": self.digest,
            "method": self.method,
            "chosen": self.chosen,
            "near_lights": self.near,
            "parameters": {name: _plain(value) for name, value in self.parameters.items()},
            "seconds": dict(self.seconds),
            "iterations": self.iterations,
            "status": self.status,
            "cost": [record.cost for record in self.history],
            "history": [record.as_dict() for record in self.history],
            "angular_error": self.angular_error.as_dict() if self.angular_error else None,
            "versions": dict(self.versions),
            "strengths": self.strengths_summary(),
        }

    def strengths_summary(self, names: Sequence[str] = ()) -> dict[str, Any]:
        """Return, for ``summary.json``, whether photographs were corrected, and each factor by name or number."""
        factors = () if self.strengths is None else self.strengths.tolist()
        if len(names) != len(factors):
            names = [str(number + 1) for number in range(len(factors))]
        return {
            "choice": "given" if self.strengths is None else "auto",
            "corrected": any(factor != 1.0 for factor in factors),
            "factors": {
                name: round(factor, 6) for name, factor in zip(names, factors, strict=True)
            },
        }

    def relight(self, direction: Sequence[float], *, linear: bool = False) -> NDArray[np.float64]:
        """Render the object (H, W, 3) under a light from another direction, in [0, 1].

        Parameters
        ----------
        direction : three numbers
            From the object to the light: x right, y up, z toward the camera. Its length does not matter.
        linear : bool
            Return linear intensities instead of sRGB values for display.

        Examples
        --------
        >>> import photostereo as ps
        >>> from photostereo.example import owl
        >>> ps.solve(owl(25.0, step=8), "ls").relight([1, 1, 1]).shape
        (50, 50, 3)
        """
        light = np.asarray(direction, dtype=np.float64)
        if light.shape != (3,) or not np.isfinite(light).all() or not light.any():
            raise ParameterError(
                "A light direction must be three numbers, not all zero: x right, y up, z toward "
                "the camera.",
                code="not-a-direction",
            )
        return relight(
            self.normals, self.albedo, self.mask, light / np.linalg.norm(light), linear=linear
        )

    def gradients(self) -> NDArray[np.float64]:
        """Return ∂z/∂x (to the right) and ∂z/∂y (up), (H, W, 2), NaN where unknown.

        See :func:`photostereo.surface.gradients`.
        """
        from photostereo.surface.differential import gradients

        return gradients(self.normals, self.mask)

    def slope(self) -> NDArray[np.float64]:
        """Return the angle (H, W) between normal and viewing direction in degrees, NaN if unknown."""
        from photostereo.surface.differential import slope

        return slope(self.normals, self.mask)

    def curvature(self, sigma: float = 1.0, pixel_size: float | None = None) -> Curvature:
        """Return mean and Gaussian curvature, positive where the surface bulges toward the camera.

        Parameters
        ----------
        sigma : float
            Standard deviation of the weights around a pixel, in pixels: more suppresses noise, and
            detail.
        pixel_size : float, optional
            Width of a pixel in millimeters; curvatures are then in 1/mm and 1/mm².

        Examples
        --------
        >>> import photostereo as ps
        >>> from photostereo.example import owl
        >>> bend = ps.solve(owl(25.0, step=8), "ls").curvature(pixel_size=0.2)
        >>> bend.mean.shape, bend.unit
        ((50, 50), '1/mm')
        """
        from photostereo.surface.differential import curvature

        return curvature(self.normals, self.mask, sigma=sigma, pixel_size=pixel_size)

    def contrast(self, sigma: float = 5.0) -> NDArray[np.float64]:
        """Return the local contrast (H, W) of the relief in degrees, whatever its color.

        Parameters
        ----------
        sigma : float
            Standard deviation of the weights around a pixel, in pixels: the size of what is local.
        """
        from photostereo.surface.differential import contrast

        return contrast(self.normals, self.mask, sigma=sigma)

    def save(self, folder: str | Path, control: Control = SILENT) -> None:
        """Write ``normals.npy``, ``albedo.npy``, ``mask.npy``, ``summary.json``, ``extras.npz`` into an existing folder.

        To write pictures, surface and report as well, use :func:`photostereo.save`.
        """
        folder = Path(folder)
        for name in ("normals", "albedo", "mask"):
            control.check()
            write_array(folder / f"{name}.npy", getattr(self, name))
        control.check()
        write_json(folder / "summary.json", self.summary())
        for name in prior_files():
            if name in self.arrays:
                write_array(folder / f"{name}.npy", self.arrays[name])
        extras: dict[str, Any] = {f"map_{name}": value for name, value in self.maps.items()}
        extras |= {f"array_{name}": value for name, value in self.arrays.items()}
        if extras:
            write_arrays(folder / "extras.npz", **extras)
            control.check()

    @classmethod
    def load(cls, folder: str | Path) -> Reconstruction:
        """Read what :meth:`save` wrote.

        Raises
        ------
        CaptureError
            If a file is missing or damaged, or the files do not match.
        """
        folder = Path(folder)
        facts = read_summary(folder)
        found = read_arrays(folder)
        with explained(damaged_result(folder)):
            error = facts.get("angular_error")
            return cls(
                normals=found["normals"].astype(np.float32, copy=False),
                albedo=found["albedo"].astype(np.float32, copy=False),
                mask=found["mask"].astype(bool, copy=False),
                **{name: facts[name] for name in _SAME},
                history=tuple(Iteration.from_dict(record) for record in facts["history"]),
                maps={name[4:]: array for name, array in found.items() if name.startswith("map_")},
                arrays={
                    name[6:]: array for name, array in found.items() if name.startswith("array_")
                },
                angular_error=ErrorSummary(**error) if error else None,
                chosen=facts.get("chosen") or "",
                near=facts.get("near_lights") or "",
                strengths=_strengths_of(facts.get("strengths")),
            )


def _strengths_of(facts: Mapping[str, Any] | None) -> NDArray[np.float32] | None:
    """Return the factors of a summary; None for summaries of earlier versions."""
    if not facts or facts["choice"] == "given":
        return None
    return np.array([float(factor) for factor in facts["factors"].values()], dtype=np.float32)


def _plain(value: Any) -> Any:
    """Return a parameter as a JSON value: an array as its shape (the dictionary itself is in ``extras.npz``)."""
    if isinstance(value, np.ndarray):
        return f"array {'x'.join(str(side) for side in value.shape)}"
    if isinstance(value, tuple):
        return list(value)
    return value
