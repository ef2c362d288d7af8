"""A bivariate inverse reflectance per pixel."""

from dataclasses import dataclass
from typing import Literal

from photostereo.core.parameters import choice, number, whole_numbers
from photostereo.reflectance.entry import Look, ModelEntry


@dataclass(frozen=True)
class BivariateParameters:
    """Parameters of :class:`.model.Bivariate`."""

    orders: tuple[int, int] = whole_numbers(
        (2, 1), "orders of the Bernstein polynomial: intensity, light-view cosine"
    )
    slope: Literal["rising", "falling", "free"] = choice(
        "rising", ("rising", "falling", "free"), "slope of the curve along the light-view cosine"
    )
    total: Literal["sum", "top"] = choice(
        "sum",
        ("sum", "top"),
        "what the constraint fixes: the sum of all coefficients, or of the brightest",
    )
    shadow: float = number(
        0.0,
        "entries darker than this share of their pixel's maximum are left out",
        minimum=0,
        maximum=1,
    )
    gamma: float = number(1e4, "γ, weight of the constraint", above=0, when="prior")


CBR = ModelEntry(
    name="cbr",
    title="Constrained bivariate regression",
    assumes="Many photographs of a shiny, isotropic material. A reimplementation with assumed orders.",
    model="photostereo.reflectance.bivariate.model:Bivariate",
    citation=(
        "S. Ikehata, K. Aizawa, Photometric stereo using constrained bivariate regression for general isotropic "
        "surfaces, CVPR 2014, doi:10.1109/CVPR.2014.280"
    ),
    look=Look("CBR", "#56b4e9", "*"),
    parameters=BivariateParameters,
    tolerance=0.05,
)
