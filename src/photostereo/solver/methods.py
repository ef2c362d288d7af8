"""Methods: named combinations of a reflectance model, an optional prior, and defaults.

Every registered model is also a method of the same name. The presets below name a model with the dictionary prior;
any other pair is written ``model+prior`` (``cbr+dictionary``), or with separate options
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
from photostereo.priors.dictionary.entry import DICTIONARY
from photostereo.priors.entry import PriorEntry, find_prior, prior_names
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


def _preset(name: str, model: str, look: Look, title: str, assumes: str, **defaults: Any) -> Method:
    entry = registered_models()[model]
    citation = DICTIONARY.citation + (
        f"; on the model of {entry.citation}" if model == "sbl" else ""
    )
    return Method(
        name, title, assumes, entry, look, citation, DICTIONARY, {**entry.with_prior, **defaults}
    )


@cache
def _registered() -> dict[str, Method]:
    alone = [
        Method(entry.name, entry.title, entry.assumes, entry, entry.look, entry.citation)
        for entry in registered_models().values()
    ]
    presets = [
        _preset(
            "dlnv",
            "ls",
            Look("DLNV", "#0072b2", "s"),
            "Dictionary learning on normal vectors",
            "A matte object, few or noisy photographs.",
            max_iter=20,
        ),
        _preset(
            "pdlnv",
            "pls",
            Look("PDLNV", "#d55e00", "o"),
            "Dictionary learning on normals with piecewise-linear reflectance",
            "Few or noisy photographs of an object that is not quite matte.",
            max_iter=50,
        ),
        _preset(
            "dlsr",
            "sbl",
            Look("DLSR", "#882255", "P"),
            "Dictionary learning on normals with sparse regression",
            "Few photographs with outliers: shadows, highlights, dead pixels, dust.",
            max_iter=30,
        ),
        _preset(
            "dlnet",
            "net",
            Look("DLnet", "#ee3377", "X"),
            "Dictionary learning on the normals of the learned model",
            "Any material, few or many photographs, noise.",
            max_iter=20,
        ),
    ]
    return {method.name: method for method in (*alone, *presets)}


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
