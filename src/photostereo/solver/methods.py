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
    from photostereo.reflectance.lambertian.model import Lambertian

    return Lambertian(pixels, lights)


def _piecewise(pixels: Array, lights: Array, **options: Any) -> Model:
    from photostereo.reflectance.piecewise.model import Piecewise

    return Piecewise(pixels, lights, **options)


def _least_absolute(pixels: Array, lights: Array, **options: Any) -> Model:
    from photostereo.reflectance.sparse.model import LeastAbsolute

    return LeastAbsolute(pixels, lights, **options)


def _sparse_bayes(pixels: Array, lights: Array, **options: Any) -> Model:
    from photostereo.reflectance.sparse.model import SparseBayes

    return SparseBayes(pixels, lights, **options)


def _low_rank(pixels: Array, lights: Array, **options: Any) -> Model:
    from photostereo.reflectance.lowrank.model import LowRank

    return LowRank(pixels, lights, **options)


def _bivariate(pixels: Array, lights: Array, **options: Any) -> Model:
    from photostereo.reflectance.bivariate.model import Bivariate

    return Bivariate(pixels, lights, **options)


_PAPER = (
    "A. J. Wagenmaker, B. E. Moore, R. R. Nadakuditi, Robust Photometric Stereo via Dictionary Learning, "
    "IEEE Transactions on Computational Imaging, 2018, arXiv:1710.08873"
)
_WOODHAM = (
    "R. J. Woodham, Photometric method for determining surface orientation from multiple images, "
    "Optical Engineering 19(1), 1980, doi:10.1117/12.7972479"
)

_SPARSE_REGRESSION = (
    "S. Ikehata, D. Wipf, Y. Matsushita, K. Aizawa, Robust photometric stereo using sparse regression, "
    "CVPR 2012, doi:10.1109/CVPR.2012.6247691"
)

_PIECES = (
    integer(
        "p", 2, "number of linear pieces of the reflectance curve; 1 is Lambertian", minimum=1, maximum=32
    ),
    choice("knots", "max", ("max", "range"), "where the pieces end: k Imax/p, or Imin + k (Imax − Imin)/p"),
)


def _dictionary_parameters(max_iter: int) -> tuple[Parameter, ...]:
    from photostereo.priors.dictionary.choice import dictionary_parameter

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
            "l1",
            "Sparse regression, least absolute residuals",
            "Shadows and highlights in less than half of the photographs.",
            _least_absolute,
            _SPARSE_REGRESSION,
            (integer("max_iter", 10, "reweighting steps before the exact descent", minimum=1),),
            on_gpu=True,
        ),
        Method(
            "sbl",
            "Sparse regression, sparse Bayesian learning",
            "Shadows and highlights; the most accurate of the pixelwise methods on most objects.",
            _sparse_bayes,
            _SPARSE_REGRESSION,
            (
                number_or_auto(
                    "noise",
                    "λ, variance of an inlier's noise relative to the pixel's squared maximum; auto: measured",
                    default=1e-3,
                    above=0,
                ),
                integer("max_iter", 200, "iterations of the expectation maximisation", minimum=1),
                number("tol", 1e-5, "a pixel stops when its normal moves by less", above=0),
            ),
            tolerance=0.05,
            on_gpu=True,
        ),
        Method(
            "rpca",
            "Robust principal components: low rank plus sparse",
            "Many photographs with shadows and highlights.",
            _low_rank,
            "L. Wu et al., Robust photometric stereo via low-rank matrix completion and recovery, ACCV 2010, "
            "doi:10.1007/978-3-642-19318-7_55",
            (
                number(
                    "weight",
                    1.0,
                    "C in λ = C / sqrt(max(pixels, photographs)): weight of the errors",
                    above=0,
                ),
                number(
                    "shadow",
                    0.0,
                    "entries darker than this share of their pixel's maximum count as missing",
                    minimum=0,
                    maximum=1,
                ),
                number("tol", 1e-7, "relative residual at which it stops", above=0),
                integer("max_iter", 200, "iterations", minimum=1),
            ),
            exact=False,
            on_gpu=True,
        ),
        Method(
            "cbr",
            "Constrained bivariate regression",
            "Many photographs of a shiny, isotropic material. A reimplementation with assumed orders.",
            _bivariate,
            "S. Ikehata, K. Aizawa, Photometric stereo using constrained bivariate regression for general isotropic "
            "surfaces, CVPR 2014, doi:10.1109/CVPR.2014.280",
            (
                whole_numbers("orders", (2, 1), "of the Bernstein polynomial: intensity, light-view cosine"),
                choice(
                    "slope",
                    "rising",
                    ("rising", "falling", "free"),
                    "of the curve along the light-view cosine",
                ),
                choice("total", "sum", ("sum", "top"), "what the constraint fixes"),
                number(
                    "shadow",
                    0.0,
                    "entries darker than this share of their pixel's maximum are left out",
                    minimum=0,
                    maximum=1,
                ),
            ),
            tolerance=0.05,
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
        Method(
            "dlsr",
            "Dictionary learning on normals with sparse regression",
            "Few photographs with outliers: shadows, highlights, dead pixels, dust.",
            _sparse_bayes,
            _PAPER + "; on the model of " + _SPARSE_REGRESSION,
            (
                number_or_auto(
                    "noise",
                    "variance of an inlier's noise relative to the pixel's squared maximum; auto: measured",
                    above=0,
                ),
            ),
            _dictionary_parameters(30),
            tolerance=0.05,
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
