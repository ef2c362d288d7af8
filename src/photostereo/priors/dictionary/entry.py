"""The dictionary prior as users see it: its parameters, and how it is built from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from photostereo.core.parameters import choice, custom, flag, integer, number, number_or_auto, whole_numbers
from photostereo.priors.dictionary.given_atoms import EXPECTS, kind_or_array
from photostereo.priors.entry import PriorEntry, Setting

if TYPE_CHECKING:
    from photostereo.priors.dictionary.prior import DictionaryPrior

CITATION = (
    "A. J. Wagenmaker, B. E. Moore, R. R. Nadakuditi, Robust Photometric Stereo via Dictionary Learning, "
    "IEEE Transactions on Computational Imaging, 2018, arXiv:1710.08873"
)


@dataclass(frozen=True)
class DictionaryParameters:
    """Of :class:`.prior.DictionaryPrior`, and of the descent with it."""

    lam: float | None = number_or_auto(
        "λ, weight of the prior; auto: from the noise of the photographs", minimum=0
    )
    mu: float | None = number_or_auto(
        "μ, threshold of the codes; auto: from the noise of the photographs", minimum=0
    )
    q: float = number(1e3, "bound on the codes; at least μ", above=0)
    patch: tuple[int, int, int] = whole_numbers(
        (8, 8, 3), "patch size, columns x rows x components (3, or 1 to treat them apart)"
    )
    stride: int = integer(4, "pixels between patches", minimum=1)
    atoms: int = integer(0, "number of atoms; 0 takes as many as a patch has values", minimum=0)
    dictionary: str | NDArray[Any] = custom(
        "dct", "initial dictionary: a kind, a .npy file, or an array", EXPECTS, kind_or_array
    )
    learn: bool = flag(True, "update the atoms; false keeps the given dictionary fixed")
    max_iter: int = integer(30, "outer iterations", minimum=1)
    tol: float = number(
        0.0, "stop when the cost falls by less than this share in an iteration; 0 never", minimum=0
    )
    seed: int = integer(0, "of the random-patches dictionary", minimum=0)
    precision: Literal["single", "double"] = choice("single", ("single", "double"), "of the dictionary pass")


def _build(values: Mapping[str, Any], setting: Setting) -> tuple[DictionaryPrior, dict[str, Any]]:
    from photostereo.priors.dictionary.automatic import with_strengths
    from photostereo.priors.dictionary.patches import PatchGrid
    from photostereo.priors.dictionary.prior import DictionaryPrior

    size, stride, domain = values["patch"], values["stride"], setting.domain
    if domain.side:
        grid = PatchGrid.of_crops(domain.mask, domain.side, size=size, stride=stride)
        cover = size[0] * size[1] / stride**2  # in the picture, crops have neighbors
    else:
        grid = PatchGrid.from_mask(domain.mask, size=size, stride=stride)
        cover = grid.mean_count
    values = with_strengths(values, setting.noise, setting.hessian, cover=cover)
    prior = DictionaryPrior(
        grid,
        lam=values["lam"],
        mu=values["mu"],
        q=values["q"],
        atoms=values["atoms"] or None,
        dictionary=values["dictionary"],
        learn=values["learn"],
        lessons=setting.lessons,
        rng=values["seed"],
        dtype=np.float32 if values["precision"] == "single" else np.float64,
        device=setting.device,
    )
    return prior, values


DICTIONARY = PriorEntry(
    name="dictionary",
    title="Sparse patches in a dictionary learned from the object itself",
    parameters=DictionaryParameters,
    build=_build,
    citation=CITATION,
    strengths=("lam", "mu"),
    aligned_to="stride",
    bytes_per_pixel=260,  # patches, codes and workspace: 8 × 8 × 3 values, stride 4
)
