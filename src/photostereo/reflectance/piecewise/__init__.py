"""A piecewise-linear reflectance curve per pixel."""

from dataclasses import dataclass
from typing import Literal

from photostereo.core.parameters import choice, integer, number
from photostereo.reflectance.entry import Look, ModelEntry


@dataclass(frozen=True)
class PiecewiseParameters:
    """Parameters of :class:`.model.Piecewise`."""

    p: int = integer(
        2,
        "number of linear pieces of the reflectance curve; 1 is Lambertian",
        minimum=1,
        maximum=32,
    )
    knots: Literal["max", "range"] = choice(
        "max", ("max", "range"), "where the pieces end: k Imax/p, or Imin + k (Imax − Imin)/p"
    )
    gamma: float = number(
        1e4, "γ, weight of the constraint on the slopes' sum", above=0, when="prior"
    )
    begin: Literal["pls", "ls"] = choice(
        "pls", ("pls", "ls"), "where the iteration starts", when="prior"
    )


PLS = ModelEntry(
    name="pls",
    title="Piecewise-linear least squares",
    assumes="Many clean photographs of an object that is not quite matte.",
    model="photostereo.reflectance.piecewise.model:Piecewise",
    citation=(
        "S. Ikehata et al., Photometric stereo using sparse Bayesian regression for general diffuse surfaces, "
        "IEEE TPAMI 36(9), 2014, doi:10.1109/TPAMI.2014.2299798"
    ),
    look=Look("PLS", "#e69f00", "D"),
    parameters=PiecewiseParameters,
    sees=("fall_off",),
    on_gpu=True,
)
