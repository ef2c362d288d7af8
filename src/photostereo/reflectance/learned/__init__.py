"""A network trained on synthetic pixels of many materials.

It is combined with the matte fit and the outline.
"""

from dataclasses import dataclass

from photostereo.core.parameters import custom, flag
from photostereo.reflectance.entry import Look, ModelEntry


def _path_or_none(value: object) -> str | None:
    return None if value in (None, "", "shipped") else str(value)


@dataclass(frozen=True)
class LearnedParameters:
    """Parameters of :class:`.model.Learned`."""

    weights: str | None = custom(
        None,
        "a weights file written by `photostereo train`; by default the built-in weights",
        "the path of a file",
        _path_or_none,
    )
    outline: bool = flag(
        True, "use the outline of the mask: the surface turns away there if that is plausible"
    )
    neighbors: bool = flag(True, "average neighbors that cannot be distinguished within the noise")
    context: bool = flag(
        True, "correct the normals with a second network that sees the whole object"
    )


NET = ModelEntry(
    name="net",
    title="A learned reflectance model",
    assumes="Any material, 4 to 200 photographs. Trained on synthetic glossy, metallic and shadowed pixels.",
    model="photostereo.reflectance.learned.model:Learned",
    citation="photostereo, docs/methods/learned.md",
    look=Look("net", "#cc3311", "d"),
    parameters=LearnedParameters,
    exact=False,
    sees=("colors", "mask", "noise", "facts"),
    surveys=True,
    workspace=18,
    on_gpu=True,
)
