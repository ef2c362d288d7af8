"""Photographs as a matrix of low rank plus sparse errors."""

from dataclasses import dataclass

from photostereo.core.parameters import integer, number
from photostereo.reflectance.entry import Look, ModelEntry


@dataclass(frozen=True)
class LowRankParameters:
    """Parameters of :class:`.model.LowRank`."""

    weight: float = number(
        1.0, "C in λ = C / sqrt(max(pixels, photographs)): weight of the errors", above=0
    )
    shadow: float = number(
        0.0,
        "entries darker than this share of their pixel's maximum count as missing",
        minimum=0,
        maximum=1,
    )
    tol: float = number(1e-7, "relative residual at which to stop", above=0, when="alone")
    max_iter: int = integer(200, "iterations", minimum=1, when="alone")


RPCA = ModelEntry(
    name="rpca",
    title="Robust principal components: low rank plus sparse",
    assumes="Many photographs with shadows and highlights.",
    model="photostereo.reflectance.lowrank.model:LowRank",
    citation=(
        "L. Wu et al., Robust photometric stereo via low-rank matrix completion and recovery, "
        "ACCV 2010, doi:10.1007/978-3-642-19318-7_55"
    ),
    look=Look("RPCA", "#cc79a7", "v"),
    parameters=LowRankParameters,
    exact=False,
    sees=("fall_off",),
    divisible=False,
    on_gpu=True,
)
