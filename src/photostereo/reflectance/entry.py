"""Registry entries of reflectance models, and the registry, including models of other packages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

from photostereo.core.errors import ParameterError
from photostereo.core.parameters import Parameter, parameters_of
from photostereo.core.plugins import registered

#: Folders of this package. To add a model, write a folder and list it here.
FOLDERS = ("lambertian", "piecewise", "sparse", "lowrank", "bivariate", "learned")


@dataclass(frozen=True)
class NoParameters:
    """A model without parameters."""


@dataclass(frozen=True)
class Look:
    """Appearance of a method in figures: its name in the literature, a color and a marker."""

    label: str
    color: str = ""
    marker: str = "o"


@dataclass(frozen=True)
class ModelEntry:
    """A reflectance model, as presented to users."""

    #: Name for commands, and title.
    name: str
    title: str
    assumes: str  #: When to use it, one line.
    #: ``"package.module:Class"`` of a :class:`.Model`; imported when it is first used.
    model: str
    citation: str  #: Reference.
    look: Look  #: Label, color and marker in figures.
    #: A dataclass of fields made by :mod:`photostereo.core.parameters`.
    parameters: type = NoParameters
    exact: bool = True  #: Recovers a noise-free, shadow-free Lambertian scene to rounding.
    #: Largest error on that scene that the contract suite accepts, in degrees.
    tolerance: float = 1e-3
    #: Additional inputs of the model besides gray pixels and lights, passed as keyword arguments:
    #: ``"colors"`` (N, d, 3) if the photographs have them, the ``"mask"``, the ``"noise"`` of each
    #: pixel (:class:`photostereo.diagnosis.noise.PixelNoise`), the ``"facts"`` about the whole
    #: object if these pixels are a part of it (:meth:`.Model.survey`), and the ``"fall_off"`` (N,
    #: d) by which the intensities of near lights were divided.
    sees: tuple[str, ...] = ()
    surveys: bool = (
        False  #: Whether :meth:`.Model.survey` needs the whole object in small photographs.
    )
    workspace: int = 0  #: Additional bytes per intensity of a pixel while the model is built.
    divisible: bool = (
        True  #: Whether it can be solved in parts; a model that compares all pixels cannot.
    )
    #: Defaults of parameters that differ with a prior.
    with_prior: Mapping[str, Any] = field(default_factory=dict)
    on_gpu: bool = False  #: Accepts torch tensors as well as NumPy arrays, and so runs on a GPU.

    def declared(self, *, with_prior: bool) -> tuple[Parameter, ...]:
        """Return the parameters that apply with a prior, or without one."""
        other = "alone" if with_prior else "prior"
        return tuple(p for p in parameters_of(self.parameters) if p.when != other)

    @property
    def kind(self) -> Any:
        """The class of the model, or its factory."""
        module, _, name = self.model.partition(":")
        try:
            found = getattr(import_module(module), name)
            if not callable(found):
                raise TypeError("it is not a class")
        except (ImportError, AttributeError, TypeError, ValueError) as problem:
            raise ParameterError(
                f"The model {self.name} cannot be loaded from {self.model} ({problem}). Update or "
                "uninstall the package it comes from.",
                code="broken-plugin",
                name=self.name,
                model=self.model,
                problem=str(problem),
            ) from problem
        return found


@cache
def registered_models() -> dict[str, ModelEntry]:
    """All models by name."""
    return registered(
        ModelEntry, "photostereo.models", (f"{__package__}.{folder}" for folder in FOLDERS)
    )
