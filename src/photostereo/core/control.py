"""How long work reports its progress: the library calls a monitor, whoever displays it is none of its
business."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Iteration:
    """What is recorded of one outer iteration.

    Attributes
    ----------
    number : 1, 2, ...
    cost : the whole objective after the iteration
    data, fit, sparsity : its terms: the model's data cost, λ Σ‖P_j n − D b_j‖², λ μ² ‖B‖₀
    nonzeros : share of non-zero codes
    change : ‖n − n_previous‖ / ‖n_previous‖
    seconds : wall-clock time of the iteration
    error : mean angular error in degrees where the truth is known, else None
    """

    number: int
    cost: float
    data: float
    fit: float
    sparsity: float
    nonzeros: float
    change: float
    seconds: float
    error: float | None = None

    def as_dict(self) -> dict[str, float | int | None]:
        return asdict(self)

    def select(self, problem: int) -> Iteration:
        """One of several problems that descended together: their figures are arrays."""
        several: dict[str, Any] = {name: v for name, v in vars(self).items() if hasattr(v, "__len__")}
        own: dict[str, Any] = {name: float(values[problem]) for name, values in several.items()}
        return replace(self, **own)


class Monitor:
    """Receives progress; this base class ignores it. Subclass and override what you need."""

    def stage(self, name: str, total: int | None = None) -> None:
        """A new stage of the work begins, of ``total`` steps where that is known."""

    def advance(self, steps: int = 1) -> None:
        """So many steps of the present stage are done."""

    def iteration(self, record: Iteration) -> None:
        """An outer iteration has ended."""


SILENT = Monitor()
