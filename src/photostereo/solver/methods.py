"""Methods: named combinations of a reflectance model, an optional prior, and defaults.

Every registered model is also a method of the same name. Presets of a prior's entry name a model with this prior; any
other pair is written ``model+prior`` (``cbr+dictionary``), or with separate options
(``--method cbr --prior dictionary``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from photostereo.core.errors import ParameterError, did_you_mean
from photostereo.core.findings import Finding
from photostereo.core.parameters import Parameter, resolve
from photostereo.priors.entry import (
    Preset,
    PriorEntry,
    find_prior,
    prior_names,
    registered_priors,
)
from photostereo.reflectance.entry import Look, ModelEntry, registered_models
from photostereo.solver.auto_method import WORDS, choose

if TYPE_CHECKING:
    from photostereo.capture import Capture


@dataclass(frozen=True)
class Method:
    """A reflectance model, an optional prior, and defaults."""

    name: str  #: as users type it
    title: str  #: in words
    assumes: str  #: when to use it, one line
    model: ModelEntry
    look: Look  #: label, color and marker in figures
    citation: str  #: where it comes from
    prior: PriorEntry | None = None  #: none for a pixelwise method
    defaults: Mapping[str, Any] = field(
        default_factory=dict
    )  #: those that differ from model and prior

    @property
    def model_parameters(self) -> tuple[Parameter, ...]:
        return self._own(self.model.declared(with_prior=self.has_prior))

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return self.model_parameters + (self._own(self.prior.declared()) if self.prior else ())

    def as_dict(self) -> dict[str, Any]:
        """Return a description for JSON: when to use it, its parameters with defaults and ranges, its citation."""
        parameters = [
            {"name": p.name, "default": p.show_default(), "expects": p.allowed, "meaning": p.doc}
            for p in self.parameters
        ]
        own = {name: getattr(self, name) for name in ("name", "title", "assumes", "citation")}
        return {**own, "parameters": parameters}

    @property
    def has_prior(self) -> bool:
        return self.prior is not None

    def device_or_cpu(self, device: str) -> str:
        """Return the device, or the CPU if the method has no GPU path; used when several methods run."""
        return device if self.model.on_gpu else "cpu"

    @property
    def sees_colors(self) -> bool:
        """Whether the method needs the photographs in color."""
        return "colors" in self.model.sees

    def resolve(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return every parameter with its value: given values, checked, and defaults for the rest."""
        return resolve(self.parameters, given, self.name)

    def of_model(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values that belong to the model."""
        return {parameter.name: values[parameter.name] for parameter in self.model_parameters}

    def _own(self, parameters: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
        return tuple(
            replace(p, default=self.defaults[p.name]) if p.name in self.defaults else p
            for p in parameters
        )


def _preset(preset: Preset, prior: PriorEntry, model: ModelEntry) -> Method:
    citation = prior.citation
    if preset.cites_model:
        citation += f"; on the model of {model.citation}"
    return Method(
        name=preset.name,
        title=preset.title,
        assumes=preset.assumes,
        model=model,
        look=preset.look,
        citation=citation,
        prior=prior,
        defaults={**model.with_prior, **preset.defaults},
    )


@cache
def _registered() -> dict[str, Method]:
    models = registered_models()
    methods = {
        entry.name: Method(
            entry.name, entry.title, entry.assumes, entry, entry.look, entry.citation
        )
        for entry in models.values()
    }
    for prior in registered_priors().values():
        for preset in prior.presets:
            # A plugin's preset may be for a model that is not installed, or have a name in use.
            if preset.model in models and preset.name not in methods:
                methods[preset.name] = _preset(preset, prior, models[preset.model])
    return methods


def method_names() -> tuple[str, ...]:
    """Names of all registered methods.

    >>> method_names()[:2]
    ('ls', 'pls')
    """
    return tuple(_registered())


def find_method(name: str | Method, prior: str | None = None) -> Method:
    """Look up a method by name, optionally adding a prior.

    Parameters
    ----------
    name : str
        A registered method, or ``"auto"``, ``"fast"`` or ``"best"``, which give the method used for most captures.
    prior : str, optional
        The prior to add to a method that has none.

    Returns
    -------
    Method

    Raises
    ------
    ParameterError
        If there is no such method or prior; the message lists the known ones.

    Examples
    --------
    >>> find_method("ls", "dictionary").name, find_method("cbr", "dictionary").name
    ('dlnv', 'cbr+dictionary')
    """
    if isinstance(name, Method):
        if prior is None:
            return name
        return _with_prior(name, prior)
    if not isinstance(name, str):
        known = ", ".join(method_names())
        raise ParameterError(
            f'A method is given by a name such as "auto", not by {type(name).__name__}. Known '
            f"methods: {known}.",
            code="method-not-a-name",
            found=type(name).__name__,
            known=known,
        )
    model, plus, inside = choose(name).name.partition("+")
    if model not in _registered():
        known = ", ".join(method_names())
        words = ", ".join(WORDS)
        hint = did_you_mean(name, (*method_names(), *WORDS))
        pair = f"{method_names()[0]}+{prior_names()[0]}"
        raise ParameterError(
            f'There is no method "{name}".{hint} Choose from {known}, or {words}. Add a prior to '
            f"a method that has none with a plus sign, such as {pair}.",
            code="unknown-method",
            method=name,
            known=known,
            words=words,
            pair=pair,
        )
    method = _registered()[model]
    if plus:
        method = _with_prior(method, inside)
    if prior is None:
        return method
    return _with_prior(method, prior)


def method_for(
    capture: Capture, name: str | Method, prior: str | None = None
) -> tuple[Method, Finding | None]:
    """Return the method for a capture by name or word, and the reason for the choice if a word was given."""
    if not isinstance(name, str):
        return find_method(name, prior), None
    choice = choose(name, capture.pixel_count, len(capture))
    return find_method(choice.name, prior), choice.why


def _with_prior(method: Method, prior: str) -> Method:
    entry = find_prior(prior)
    if method.prior is not None:
        if method.prior == entry:
            return method
        raise ParameterError(
            f"Method {method.name} has a prior already, {method.prior.name}.",
            code="second-prior",
            method=method.name,
            prior=method.prior.name,
        )
    for known in _registered().values():
        if known.model == method.model and known.prior == entry:
            return known
    return replace(
        method,
        name=f"{method.name}+{entry.name}",
        title=f"{method.title}, with the {entry.name} prior",
        look=replace(method.look, label=f"{method.look.label} + {entry.name}", marker="h"),
        citation=f"{entry.citation}; on the model of {method.citation}",
        prior=entry,
        defaults={**method.model.with_prior, **method.defaults},
    )
