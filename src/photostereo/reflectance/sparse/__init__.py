"""Lambertian shading with errors in a few photographs."""

from dataclasses import dataclass

from photostereo.core.parameters import integer, number, number_or_auto
from photostereo.reflectance.entry import Look, ModelEntry

CITATION = (
    "S. Ikehata, D. Wipf, Y. Matsushita, K. Aizawa, Robust photometric stereo using sparse "
    "regression, CVPR 2012, doi:10.1109/CVPR.2012.6247691"
)


@dataclass(frozen=True)
class LeastAbsoluteParameters:
    """Parameters of :class:`.model.LeastAbsolute`."""

    max_iter: int = integer(
        10, "reweighting steps before the exact descent", minimum=1, when="alone"
    )


@dataclass(frozen=True)
class SparseBayesParameters:
    """Parameters of :class:`.model.SparseBayes`."""

    noise: float | None = number_or_auto(
        "variance of an inlier's noise relative to the pixel's squared maximum; auto: measured",
        default=1e-3,
        above=0,
    )
    max_iter: int = integer(
        200, "iterations of the expectation maximization", minimum=1, when="alone"
    )
    tol: float = number(
        1e-5, "a pixel stops when its normal changes by less", above=0, when="alone"
    )


L1 = ModelEntry(
    name="l1",
    title="Sparse regression, least absolute residuals",
    assumes="Shadows and highlights in less than half of the photographs.",
    model="photostereo.reflectance.sparse.model:LeastAbsolute",
    citation=CITATION,
    look=Look("SR (L1)", "#88ccaa", "<"),
    parameters=LeastAbsoluteParameters,
    sees=("facts",),
    on_gpu=True,
)

SBL = ModelEntry(
    name="sbl",
    title="Sparse regression, sparse Bayesian learning",
    assumes="Shadows and highlights; the most accurate of the pixelwise methods on most objects.",
    model="photostereo.reflectance.sparse.model:SparseBayes",
    citation=CITATION,
    look=Look("SR (SBL)", "#009e73", "^"),
    parameters=SparseBayesParameters,
    sees=("facts",),
    tolerance=0.05,
    # The strength of a prior follows from the measured noise.
    with_prior={"noise": None},
    on_gpu=True,
)
