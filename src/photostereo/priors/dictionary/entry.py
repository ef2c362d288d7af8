"""Registry entry of the dictionary prior: its parameters, and λ and μ from the noise.

**The noise** σ of one intensity is measured by :mod:`photostereo.diagnosis.noise`. A model whose
data cost has the mean Hessian H turns σ into noise τ of one component of n, τ² = σ² trace(H⁻¹) / 3.
Atoms have unit norm, so τ is also the noise of a code.

**μ = κ τ**: a code below μ is probably noise. κ is below the universal threshold √(2 ln m) ≈ 3.2 of
Donoho and Johnstone, because many overlapping patches and the photographs themselves determine each
normal, and lost detail costs more than remaining noise.

**λ c = ρ trace(H) / 3**: the prior weighs ρ times as much as the photographs. The noise that the
prior removes and the detail that it loses are both proportional to τ, so their best balance does
not depend on τ.

The same τ limits the effect of a prior with automatic strength at each pixel, see
:mod:`photostereo.solver.confidence_ball`. On a clean capture τ, and with it μ, is small, nearly
every detail survives, and the prior hardly changes the normals. κ and ρ are the same for every
model and every capture; ``benchmarks/README.md`` describes how they were chosen.

References
----------
D. L. Donoho, I. M. Johnstone, Ideal spatial adaptation by wavelet shrinkage, Biometrika 81(3),
1994, doi:10.1093/biomet/81.3.425.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from photostereo.core.errors import CaptureError, ParameterError
from photostereo.core.parameters import (
    choice,
    custom,
    flag,
    integer,
    number,
    number_or_auto,
    whole_numbers,
)
from photostereo.io.safe import read_npy
from photostereo.priors.dictionary.atoms import KINDS
from photostereo.priors.entry import Preset, PriorEntry, Setting, filled
from photostereo.reflectance.entry import Look

if TYPE_CHECKING:
    from photostereo.priors.dictionary.prior import DictionaryPrior

CITATION = (
    "A. J. Wagenmaker, B. E. Moore, R. R. Nadakuditi, Robust Photometric Stereo via Dictionary "
    "Learning, IEEE Transactions on Computational Imaging, 2018, arXiv:1710.08873"
)

#: κ = μ / τ, the best of a sweep; ``benchmarks/README.md`` has its figures.
THRESHOLD_IN_NOISE = 1.5
#: ρ = λ c / mean curvature of the data cost, from the same sweep.
PRIOR_TO_DATA = 4.0
#: Minimum μ, as a share of the brightness scale: finer codes only cost time.
SMALLEST_MU = 0.005


def kind_or_array(value: Any) -> Any:
    """Return a kind unchanged, or an array with one atom per row, given or read from a file."""
    if isinstance(value, str) and value in KINDS:
        return value
    if isinstance(value, (str, Path)):
        array = _read_dictionary(Path(value))
    else:
        array = np.asarray(value, np.float64)
    if array.ndim == 0:  # the row length depends on the patches and is checked later
        raise ValueError(value)
    return array


def _read_dictionary(path: Path) -> NDArray[np.float64]:
    if path.suffix != ".npy":
        raise ValueError(path)
    remedy = f"Give the dictionary.npy that a former solve wrote, or one of {', '.join(KINDS)}."
    try:
        array = read_npy(path, "dictionary", remedy=remedy)
    except CaptureError as problem:
        raise ParameterError(str(problem), code=problem.code, file=path) from problem
    if array.dtype.kind not in "fiu":
        raise ParameterError(
            f"The dictionary {path} holds values of type {array.dtype}. {remedy}",
            code="wrong-type",
            file=path,
            dtype=array.dtype,
        )
    return array.astype(np.float64)


@dataclass(frozen=True)
class DictionaryParameters:
    """Parameters of :class:`.prior.DictionaryPrior` and of the descent with it."""

    lam: float | None = number_or_auto(
        "λ, weight of the prior; auto: from the noise of the photographs", minimum=0
    )
    mu: float | None = number_or_auto(
        "μ, threshold of the codes; auto: from the noise of the photographs", minimum=0
    )
    q: float = number(1e3, "bound on the codes; at least μ", above=0)
    patch: tuple[int, int, int] = whole_numbers(
        (8, 8, 3), "patch size, columns x rows x components (3, or 1 to treat them separately)"
    )
    stride: int = integer(4, "pixels between patches", minimum=1)
    atoms: int = integer(0, "number of atoms; 0 uses the number of values in a patch", minimum=0)
    dictionary: str | NDArray[Any] = custom(
        "dct",
        "initial dictionary: a kind, a .npy file, or an array",
        f"one of {', '.join(KINDS)}, the path of a .npy file, or an array with one atom per row",
        kind_or_array,
    )
    learn: bool = flag(True, "update the atoms; false keeps the given dictionary fixed")
    max_iter: int = integer(30, "outer iterations", minimum=1)
    tol: float = number(
        0.0,
        "stop when the cost falls by less than this fraction per iteration; 0: never",
        minimum=0,
    )
    seed: int = integer(0, "random seed for random-patches", minimum=0)
    precision: Literal["single", "double"] = choice(
        "single", ("single", "double"), "precision of the dictionary pass"
    )


def choose_strength(noise: float, hessian: NDArray[Any], *, cover: float) -> tuple[float, float]:
    """Choose (λ, μ).

    Parameters
    ----------
    noise : float
        Standard deviation of an intensity.
    hessian : array (3, 3)
        Mean Hessian of a model's data cost.
    cover : float
        Mean number of patches that cover a pixel.

    Examples
    --------
    >>> lam, mu = choose_strength(0.1, np.diag([5.0, 5.0, 20.0]), cover=4.0)
    >>> round(lam, 6), round(mu, 4)
    (10.0, 0.0581)
    """
    noise_of_code = noise * float(np.sqrt(np.trace(np.linalg.inv(hessian)) / 3.0))
    threshold = THRESHOLD_IN_NOISE * noise_of_code
    mu = max(threshold, SMALLEST_MU)
    # The loss of detail is proportional to μ. If μ is held above the threshold of the noise, the
    # balance of variances requires a smaller weight.
    lam = PRIOR_TO_DATA * float(np.trace(hessian)) / 3.0 / cover * (threshold / mu) ** 2
    return lam, mu


def _build(values: Mapping[str, Any], setting: Setting) -> tuple[DictionaryPrior, dict[str, Any]]:
    from photostereo.priors.dictionary.patches import PatchGrid
    from photostereo.priors.dictionary.prior import DictionaryPrior

    size = values["patch"]
    stride = values["stride"]
    side = setting.side
    grid = PatchGrid.from_mask(setting.mask, size=size, stride=stride, side=side)
    cover = float(grid.count.mean())
    if side:  # a crop has neighbors in the full picture
        cover = size[0] * size[1] / stride**2
    lam, mu = choose_strength(setting.noise, setting.hessian, cover=cover)
    values = filled(values, {"lam": lam, "mu": mu})
    # Imported late: the entry is read by every command.
    prior = DictionaryPrior(
        grid,
        lam=values["lam"],
        mu=values["mu"],
        q=values["q"],
        dictionary=values["dictionary"],
        learn=values["learn"],
        atoms=values["atoms"] or None,
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
    files={
        "dictionary": (
            "The learned atoms, one per row: the patches of x, y and z in turn, each in "
            "row-major order."
        )
    },
    presets=(
        Preset(
            name="dlnv",
            model="ls",
            title="Dictionary learning on normal vectors",
            assumes="A matte object, few or noisy photographs.",
            look=Look("DLNV", "#0072b2", "s"),
            defaults={"max_iter": 20},
        ),
        Preset(
            name="pdlnv",
            model="pls",
            title="Dictionary learning on normals with piecewise-linear reflectance",
            assumes="Few or noisy photographs of an object that is not quite matte.",
            look=Look("PDLNV", "#d55e00", "o"),
            defaults={"max_iter": 50},
        ),
        Preset(
            name="dlsr",
            model="sbl",
            title="Dictionary learning on normals with sparse regression",
            assumes="Few photographs with outliers: shadows, highlights, dead pixels, dust.",
            look=Look("DLSR", "#882255", "P"),
            defaults={"max_iter": 30},
            cites_model=True,
        ),
        Preset(
            name="dlnet",
            model="net",
            title="Dictionary learning on the normals of the learned model",
            assumes="Any material, few or many photographs, noise.",
            look=Look("DLnet", "#ee3377", "X"),
            defaults={"max_iter": 20},
        ),
    ),
)
