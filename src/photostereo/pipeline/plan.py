"""What is decided before a solve, each once: method, color, memory, device, output.

A :class:`Request` is settled before a photograph is read. A :class:`Plan` needs the size of the capture as well. Both are
stages of a pipeline and are passed down; nothing below looks a decision up again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from photostereo.capture import Capture
from photostereo.core.errors import ParameterError
from photostereo.core.findings import Finding
from photostereo.io.names import folder_name
from photostereo.pipeline import budget
from photostereo.pipeline.settings import Settings
from photostereo.runtime.arrays import Device
from photostereo.solver.auto_method import choose
from photostereo.solver.methods import Method, find_method
from photostereo.solver.prepared import device_for
from photostereo.solver.tiles import OF_THE_PROGRAM


@dataclass(frozen=True, eq=False)
class Request:
    """What the settings alone decide."""

    method: Method  #: as named; for ``auto``, the method that most captures get
    is_open: bool  #: whether the capture may change the method, as for ``auto``
    values: Mapping[str, Any]  #: all parameters of the method
    why: Finding | None  #: why this method, for a word such as ``best``
    color: bool  #: whether photographs are read in color
    may_be_gray: (
        bool  #: whether they are read again in gray if the method turns out not to use color
    )
    memory: int  #: bytes that may be used

    @classmethod
    def of(cls, settings: Settings) -> Request:
        """Settle a request.

        Raises
        ------
        ParameterError
            For an unknown method or parameter, an amount of memory that is none, or a seed without a meaning.
        """
        choice = choose(settings.method)
        method = find_method(choice.name, settings.prior)
        is_open = settings.method == "auto"
        values = method.resolve(settings.parameters)
        if settings.seed and settings.images is None and "seed" in values:
            raise ParameterError(
                "The setting seed chooses photographs at random, which needs the setting images. "
                f"The method {method.name} has a parameter seed of its own, to be given with its "
                "parameters.",
                code="seed-without-images",
                seed=settings.seed,
            )
        return cls(
            method=method,
            is_open=is_open,
            values=values,
            why=choice.why,
            color=settings.reading.color or method.sees_colors,
            may_be_gray=is_open and not settings.reading.color,
            memory=budget.budget_of(settings.memory),
        )

    def method_for(
        self, pixels: int, photographs: int, prior: str | None
    ) -> tuple[Method, Finding | None]:
        """Return the method for a capture of this size, and why.

        Parameters
        ----------
        pixels : int
            Number of pixels in the mask.
        photographs : int
            Number of photographs.
        prior : str or None
            The prior of the settings.
        """
        if not self.is_open:
            return self.method, self.why
        choice = choose("auto", pixels, photographs)
        if choice.name == choose("auto").name:
            return self.method, choice.why
        return find_method(choice.name, prior), choice.why


@dataclass(frozen=True, eq=False)
class Plan:
    """How a capture is solved and written."""

    method: Method
    values: Mapping[str, Any]  #: all parameters of the method
    why: Finding | None  #: why the method was chosen, if it was
    device: Device
    output: str  #: name of the folder of results if none is given
    budget: int  #: bytes that may be used
    writing: int  #: bytes for surface, meshes and page
    loads: bool  #: whether the photographs are held in memory
    overlaps: bool  #: whether to make pictures and page while integrating the surface
    memory: int | None  #: bytes left for the solver; None on a GPU, which has its own memory

    @classmethod
    def of(cls, capture: Capture, request: Request, settings: Settings) -> Plan:
        """Plan to solve in memory if the photographs and the results fit, else from disk."""
        method, why = request.method_for(capture.pixel_count, len(capture), settings.prior)
        values = request.values
        if method is not request.method:
            values = method.resolve(settings.parameters)
        device = device_for(method, settings.device)
        on_gpu = device.torch_name.startswith("cuda")
        channels = 3 if capture.is_color else 1
        writing = budget.bytes_of_results(
            capture.frame, channels, settings.surface, report=settings.report
        )
        stack = capture.stack_bytes
        # The limit leaves as much for solving as the photographs take.
        loads = OF_THE_PROGRAM + stack + max(writing, stack) <= request.memory
        if method.model.divisible and not on_gpu and stack > budget.LOADED:
            loads = False
        left = request.memory - (stack if loads else 0)
        return cls(
            method=method,
            values=values,
            why=why,
            device=device,
            output=f"{folder_name(capture.name)}-{method.name}",
            budget=request.memory,
            writing=writing,
            loads=loads,
            overlaps=OF_THE_PROGRAM + writing + budget.OF_A_PAGE * capture.mask.size <= left,
            memory=None if on_gpu else left,
        )
