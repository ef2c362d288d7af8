"""The parameter grids that the oracle chooses from.

λ and μ are in this package's units: photographs are divided by their 99th percentile inside the mask, and the
slopes of the piecewise-linear models sum to p, so that λ and μ mean the same for every capture and every p.
The paper's own grids are λ from 1e-2 to 1e3 and μ from 1e-3 to 10, on photographs in [0, 1] and slopes that
sum to 1. λ has no unit. The percentile of the six shared DiLiGenT objects is 0.07 to 0.42, so the paper's
smallest μ is about our 0.01; beyond our largest every code is zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from photostereo.lab.sweeps.plan import MethodPlan

Size = Literal["full", "curve", "few", "quick", "quick noisy", "quick few"]

#: The methods of the paper's comparisons, in the order of its tables.
ALL_METHODS = ("pdlnv", "dlnv", "pls", "cbr", "sbl", "rpca", "ls")
#: This package's own, which the paper does not have, beside them where all are compared. They choose their strength
#: from the photographs and are tried once per scene: no best of a grid.
OUR_METHODS = ("net", "dlnet")
OURS_NOTE = (
    "net and DLnet are this package's own methods, not the paper's: a reflectance model learned from synthetic "
    "pixels, without and with the dictionary. They have no grid, so they stand among the defaults only."
)

#: The full grids of the tables, smaller ones for curves of many trials with noise or without, and those of
#: ``--quick`` for each of these.
GRIDS: dict[Size, dict[str, dict[str, Sequence[Any]]]] = {
    "full": {
        "pdlnv": {
            "p": (2, 3, 4, 5),
            "lam": (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0),
            "mu": (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0),
        },
        "dlnv": {
            "lam": (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0),
            "mu": (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0),
        },
        "pls": {"p": (2, 3, 4, 5)},
        "sbl": {"noise": (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)},
        "rpca": {"weight": (0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0)},
        "cbr": {"orders": ((2, 1), (3, 2))},
    },
    "curve": {
        "pdlnv": {"p": (2, 3), "lam": (0.1, 1.0, 10.0, 100.0), "mu": (0.03, 0.1, 0.2, 0.5)},
        "dlnv": {"lam": (0.1, 1.0, 10.0, 100.0), "mu": (0.03, 0.1, 0.2, 0.5)},
        "pls": {"p": (2, 3)},
        "sbl": {"noise": (1e-4, 1e-3, 1e-2, 1e-1)},
        "rpca": {"weight": (0.7, 1.0, 2.0, 3.0)},
        "cbr": {"orders": ((2, 1), (3, 2))},
    },
    "few": {
        "pdlnv": {"p": (2, 3), "lam": (0.1, 1.0, 10.0), "mu": (0.03, 0.1, 0.5)},
        "dlnv": {"lam": (0.1, 1.0, 10.0), "mu": (0.03, 0.1, 0.5)},
        "pls": {"p": (2, 3)},
        "sbl": {"noise": (1e-4, 1e-3, 1e-2, 1e-1)},
        "rpca": {"weight": (0.7, 1.0, 2.0, 3.0)},
        "cbr": {"orders": ((2, 1), (3, 2))},
    },
    "quick few": {
        "pdlnv": {"p": (2, 3), "lam": (0.1, 1.0), "mu": (0.1,)},
        "dlnv": {"lam": (0.1, 1.0), "mu": (0.1, 1.0)},
        "pls": {"p": (2, 3)},
        "sbl": {"noise": (1e-3, 1e-2)},
        "rpca": {"weight": (1.0, 3.0)},
        "cbr": {"orders": ((2, 1),)},
    },
    "quick": {
        "pdlnv": {"p": (2, 3, 5), "lam": (0.1, 1.0), "mu": (0.03, 3.0)},
        "dlnv": {"lam": (0.1, 10.0), "mu": (0.03, 3.0)},
        "pls": {"p": (2, 3, 5)},
        "sbl": {"noise": (1e-3, 1e-2)},
        "rpca": {"weight": (1.0, 3.0)},
        "cbr": {"orders": ((2, 1),)},
    },
    "quick noisy": {
        "pdlnv": {"p": (2,), "lam": (0.1, 1.0, 10.0), "mu": (0.1, 0.2, 0.4)},
        "dlnv": {"lam": (0.1, 1.0, 10.0), "mu": (0.1, 0.2, 0.4)},
        "pls": {"p": (2,)},
        "sbl": {"noise": (1e-3, 1e-1)},
        "rpca": {"weight": (1.0, 3.0)},
        "cbr": {"orders": ((2, 1),)},
    },
}


def method_plans(size: Size, methods: Sequence[str] = ALL_METHODS, **fixed: Any) -> tuple[MethodPlan, ...]:
    """The methods with their grids; those that this version does not have are left out."""
    from photostereo.solver.methods import method_names

    known = method_names()
    return tuple(
        MethodPlan(method=name, grid=_without(GRIDS[size].get(name, {}), fixed), fixed=fixed)
        for name in methods
        if name in known
    )


def compared_methods(size: Size) -> tuple[MethodPlan, ...]:
    """The paper's methods with their grids, and ours with their defaults."""
    return (*method_plans(size), *our_methods())


def our_methods() -> tuple[MethodPlan, ...]:
    """This package's own methods, marked as such."""
    return tuple(MethodPlan(name, label=f"{name} (ours)", oracle=False) for name in OUR_METHODS)


def _without(grid: dict[str, Sequence[Any]], fixed: dict[str, Any]) -> dict[str, Sequence[Any]]:
    return {name: values for name, values in grid.items() if name not in fixed}
