"""Whether a capture is solved in memory or in parts, within the memory that may be used."""

from __future__ import annotations

from dataclasses import dataclass

from photostereo.capture import Capture
from photostereo.core.errors import ParameterError
from photostereo.io.memory import available_memory, in_words, parse_memory
from photostereo.pipeline.settings import Settings, SurfaceChoice
from photostereo.solver.large import bands_of, bytes_for_bands, fits_on
from photostereo.solver.methods import Method
from photostereo.solver.prepared import device_for
from photostereo.solver.tiles import OF_THE_PROGRAM

#: Bytes of a pixel of the frame while its surface is integrated, with the arrays of the result; while meshes are made;
#: and while the page is. And of a triangle of the mesh. Measured as peaks at 6 and
#: 24 megapixels; 20 % more or less moves the size at which a solve is refused or divided by as much.
OF_A_SURFACE = {"poisson": 110, "simchony": 110, "robust": 140}
OF_A_RESULT, OF_A_MESH, OF_A_PAGE = 50, 110, 90
OF_A_TRIANGLE = 100


@dataclass(frozen=True)
class Plan:
    """How a capture is solved.

    Attributes
    ----------
    budget : bytes that may be used
    writing : bytes that surface, meshes and page take
    in_memory : the whole stack of photographs fits into memory
    in_parts : it is solved in bands
    on_gpu : on a GPU
    """

    budget: int
    writing: int
    in_memory: bool
    in_parts: bool
    on_gpu: bool

    @property
    def loads(self) -> bool:
        """Whether the photographs are loaded; a GPU's bands come faster from memory than from files."""
        return self.in_memory and (self.on_gpu or not self.in_parts)


def budget_of(memory: int | str | None) -> int:
    """A limit in bytes; half of the free memory if none is given."""
    if memory is None:
        return available_memory() // 2
    return parse_memory(memory) if isinstance(memory, str) else memory


def plan_solve(capture: Capture, method: Method, settings: Settings) -> Plan:
    """In memory if the photographs, the solve and the results fit into it, else in parts."""
    budget = budget_of(settings.solving.memory)
    channels = 3 if capture.is_color else 1
    writing = bytes_of_results(capture.frame, channels, settings.surface, report=settings.output.report)
    where = device_for(method, settings.solving.device)
    in_memory = OF_THE_PROGRAM + capture.stack_bytes + writing <= budget
    in_parts = not (in_memory and fits_on(where, capture, method, budget))
    return Plan(budget, writing, in_memory, in_parts, where.torch_name.startswith("cuda"))


def require_feasible(plan: Plan, capture: Capture, method: Method, settings: Settings) -> None:
    """Raise a :class:`ParameterError` for what cannot be solved or written within the memory, before it is tried."""
    if not plan.in_parts:
        return
    solving = settings.solving
    if solving.checkpoint is not None or solving.resume is not None:
        room, remedy = in_words(plan.budget), "state-needs-memory"
        if plan.on_gpu and plan.in_memory:
            room, remedy = "the memory of the GPU", "state-needs-cpu"
        raise ParameterError(
            f"{capture.name} does not fit into {room} and is solved in parts, which have no state to save or resume.",
            code="no-state-in-parts",
            remedy=remedy,
        )
    need = OF_THE_PROGRAM + plan.writing
    if need > plan.budget:
        height, width = capture.frame
        raise ParameterError(
            f"Writing the results of {width} × {height} pixels needs {in_words(need)} of memory, but only "
            f"{in_words(max(plan.budget, 0))} may be used.",
            code="no-memory-for-results",
            remedy="less-to-write",
            need=need,
            budget=plan.budget,
        )
    where = device_for(method, solving.device)
    memory = bytes_for_bands(where, None if plan.on_gpu else plan.budget)
    bands_of(capture, method, method.resolve(solving.parameters), memory)


def bytes_of_results(
    frame: tuple[int, int], channels: int, surface: SurfaceChoice | None, *, report: bool
) -> int:
    """What writing a result takes, once the photographs are solved.

    >>> bytes_of_results((4000, 6000), 1, SurfaceChoice(), report=True) // 10**6
    2840
    """
    area = frame[0] * frame[1]
    need = area * (OF_A_PAGE if report else OF_A_RESULT)
    if surface is not None:
        from photostereo.surface.mesh import MOST_TRIANGLES

        need = max(need, area * OF_A_SURFACE[surface.method])
        triangles = 2 * area if surface.full else min(2 * area, MOST_TRIANGLES)
        if surface.formats:
            need = max(need, area * OF_A_MESH + OF_A_TRIANGLE * triangles)
    return need + area * 4 * (channels - 1)
