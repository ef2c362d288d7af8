"""A network that was trained on synthetic pixels of many materials, beside the matte fit and the outline."""

from dataclasses import dataclass

from photostereo.core.parameters import custom, flag
from photostereo.reflectance.entry import Look, ModelEntry


def _path_or_none(value: object) -> str | None:
    return None if value in (None, "", "shipped") else str(value)


@dataclass(frozen=True)
class LearnedParameters:
    """Of :class:`.model.Learned`."""

    weights: str | None = custom(
        None,
        "a file that `photostereo train` wrote; the package's own where missing",
        "the path of a file",
        _path_or_none,
    )
    outline: bool = flag(
        True, "the mask's outline is where the surface turns away, wherever that is plausible"
    )
    neighbors: bool = flag(True, "look at neighbors together where the noise cannot tell them apart")


NET = ModelEntry(
    name="net",
    title="A learned reflectance model",
    assumes="Any material, 4 to 200 photographs. Knows glossy, metallic and shadowed pixels from synthetic ones.",
    model="photostereo.reflectance.learned.model:Learned",
    citation="photostereo, docs/methods/learned.md",
    look=Look("net", "#cc3311", "d"),
    parameters=LearnedParameters,
    exact=False,
    sees=("colors", "mask", "noise"),
    workspace=18,
    on_gpu=True,
)
