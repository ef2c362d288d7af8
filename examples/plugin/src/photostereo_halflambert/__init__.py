"""A plugin for photostereo: least squares for soft, wrapped shading."""

from dataclasses import dataclass

from photostereo.core.parameters import number
from photostereo.reflectance.entry import Look, ModelEntry


@dataclass(frozen=True)
class HalfLambertParameters:
    """Of :class:`.model.HalfLambert`."""

    haze: float = number(
        0.0, "constant light that reaches every pixel, as a share of its mean", minimum=0, maximum=1
    )


ENTRY = ModelEntry(
    name="halflambert",
    title="Least squares without the constant light",
    assumes="A matte object in a hazy room.",
    model="photostereo_halflambert.model:HalfLambert",
    citation="An example; no publication.",
    look=Look("half-Lambert", "#117733", "8"),
    parameters=HalfLambertParameters,
    on_gpu=True,
)
