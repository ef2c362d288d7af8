"""The registry: a method is a reflectance model, perhaps the dictionary prior, defaults and a citation.

Adding a method is one entry here (see ``docs/adding-a-method.md``); being here enrols it in the contract
suite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from photostereo.errors import ParameterError, did_you_mean
from photostereo.parameters import (
    Parameter,
    choice,
    flag,
    integer,
    number,
    number_or_auto,
    whole_numbers,
)
from photostereo.reflectance.model import Array, Model

ModelFactory = Callable[..., Model]


@dataclass(frozen=True)
class Method:
    """What the registry knows of a method.

    Attributes
    ----------
    name, title : as users type it, and in words
    assumes : when to use it, one line
    model : builds the reflectance model from ``(pixels, lights, **model parameters)``
    model_parameters : those of the model
    prior_parameters : those of the dictionary prior; empty for a method without it
    citation : where it comes from
    exact : recovers a noise-free, shadow-free Lambertian scene to rounding
    tolerance : how far, in degrees, from exact the contract suite lets it be on that scene
    on_gpu : takes torch tensors as well as NumPy arrays, and so runs on a GPU
    """

    name: str
    title: str
    assumes: str
    model: ModelFactory
    citation: str
    model_parameters: tuple[Parameter, ...] = ()
    prior_parameters: tuple[Parameter, ...] = ()
    exact: bool = True
    tolerance: float = 1e-3
    on_gpu: bool = False

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return self.model_parameters + self.prior_parameters

    @property
    def has_prior(self) -> bool:
        return bool(self.prior_parameters)


def _lambertian(pixels: Array, lights: Array) -> Model:
    from photostereo.reflectance.lambertian import Lambertian

    return Lambertian(pixels, lights)


def _piecewise(pixels: Array, lights: Array, **options: Any) -> Model:
    from photostereo.reflectance.piecewise import Piecewise

    return Piecewise(pixels, lights, **options)


_PAPER = (
    "A. J. Wagenmaker, B. E. Moore, R. R. Nadakuditi, Robust Photometric Stereo via Dictionary Learning, "
    "IEEE Transactions on Computational Imaging, 2018, arXiv:1710.08873"
)
_WOODHAM = (
    "R. J. Woodham, Photometric method for determining surface orientation from multiple images, "
    "Optical Engineering 19(1), 1980, doi:10.1117/12.7972479"
)

_PIECES = (
    integer(
        "p", 2, "number of linear pieces of the reflectance curve; 1 is Lambertian", minimum=1, maximum=32
    ),
    choice("knots", "max", ("max", "range"), "where the pieces end: k Imax/p, or Imin + k (Imax − Imin)/p"),
)


def _dictionary_parameters(max_iter: int) -> tuple[Parameter, ...]:
    from photostereo.dictionary.choice import dictionary_parameter

    return (
        number_or_auto("lam", "λ, weight of the prior; auto: from the noise of the photographs", minimum=0),
        number_or_auto("mu", "μ, threshold of the codes; auto: from the noise of the photographs", minimum=0),
        number("q", 1e3, "bound on the codes; at least μ", above=0),
        whole_numbers(
            "patch", (8, 8, 3), "patch size, columns x rows x components (3, or 1 to treat them apart)"
        ),
        integer("stride", 4, "pixels between patches", minimum=1),
        integer("atoms", 0, "number of atoms; 0 takes as many as a patch has values", minimum=0),
        dictionary_parameter("dictionary", "dct"),
        flag("learn", True, "update the atoms; false keeps the given dictionary fixed"),
        integer("max_iter", max_iter, "outer iterations", minimum=1),
        number(
            "tol", 0.0, "stop when the cost falls by less than this share in an iteration; 0 never", minimum=0
        ),
        integer("seed", 0, "of the random-patches dictionary", minimum=0),
        choice("precision", "single", ("single", "double"), "of the dictionary pass"),
    )


def _registered() -> dict[str, Method]:
    entries = (
        Method(
            "ls",
            "Least squares",
            "A matte object, clean photographs. The classic; instant.",
            _lambertian,
            _WOODHAM,
            on_gpu=True,
        ),
        Method(
            "pls",
            "Piecewise-linear least squares",
            "Many clean photographs of an object that is not quite matte.",
            _piecewise,
            "S. Ikehata et al., Photometric stereo using sparse Bayesian regression for general diffuse surfaces, "
            "IEEE TPAMI 36(9), 2014, doi:10.1109/TPAMI.2014.2299798",
            _PIECES,
            on_gpu=True,
        ),
        Method(
            "dlnv",
            "Dictionary learning on normal vectors",
            "A matte object, few or noisy photographs.",
            _lambertian,
            _PAPER,
            (),
            _dictionary_parameters(20),
            on_gpu=True,
        ),
        Method(
            "pdlnv",
            "Dictionary learning on normals with piecewise-linear reflectance",
            "Few or noisy photographs of an object that is not quite matte.",
            _piecewise,
            _PAPER,
            (
                *_PIECES,
                number("gamma", 1e4, "γ, weight of the constraint on the slopes' sum", above=0),
                choice("begin", "pls", ("pls", "ls"), "where the iteration starts"),
            ),
            _dictionary_parameters(50),
            on_gpu=True,
        ),
    )
    return {entry.name: entry for entry in entries}


_METHODS = _registered()


def method_names() -> tuple[str, ...]:
    """Names of all registered methods.

    >>> method_names()[:2]
    ('ls', 'pls')
    """
    return tuple(_METHODS)


def find_method(name: str) -> Method:
    """The method of that name, or an error that lists the known ones."""
    if name not in _METHODS:
        raise ParameterError(
            f'There is no method "{name}".{did_you_mean(name, _METHODS)} '
            f"Known methods: {', '.join(_METHODS)}."
        )
    return _METHODS[name]
