"""What the server and its worker processes say to each other.

A task is one of the classes below: its fields are the arguments, with their types. The server sends tasks as lines of
JSON, and the worker answers with events, which are lines of JSON, too. The last event of a task is ``done``, ``failed``
or ``canceled``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

#: Kinds of events after which there are no more of a task.
LAST = ("done", "failed", "canceled")


@dataclass(frozen=True)
class Task:
    """Something that a worker does."""


@dataclass(frozen=True)
class OpenFolder(Task):
    """Find the photographs of a capture and make small copies of them."""

    folder: str
    work: str  #: temporary folder for the copies


@dataclass(frozen=True)
class Look(Task):
    """Find lights, mask and faults, and show the normals of the small copies."""

    folder: str
    work: str
    whole: bool = True  #: also examine the photographs themselves, which takes memory


@dataclass(frozen=True)
class TryCircle(Task):
    """Return the lights for a circle while it is being dragged."""

    folder: str
    work: str
    circle: tuple[
        float, float, float
    ]  #: center and radius of the ball, in pixels of the photographs


@dataclass(frozen=True)
class PaintMask(Task):
    """Store a mask that was painted on the small copies."""

    folder: str
    work: str
    picture: str  #: file with the painting


@dataclass(frozen=True)
class SaveLights(Task):
    """Write the estimated lights as a light file."""

    folder: str
    work: str
    target: str


@dataclass(frozen=True)
class Preview(Task):
    """Solve the small copies."""

    folder: str
    work: str
    out: str
    method: str


@dataclass(frozen=True)
class Solve(Task):
    """Solve the photographs themselves."""

    folder: str
    out: str
    settings: Mapping[str, Any]  #: see :class:`photostereo.pipeline.settings.Settings`
    command: list[str]  #: the command line that does the same, for ``summary.json``


@dataclass(frozen=True)
class Export(Task):
    """Export a result in other formats."""

    result: str
    out: str
    formats: list[str]


@dataclass(frozen=True)
class WriteExample(Task):
    """Write the example capture, unless it exists."""

    folder: str


@dataclass(frozen=True)
class ImportCapture(Task):
    """Make a folder of photographs of a capture that is not one, such as an archive."""

    source: str
    folder: str  #: where to write it


@dataclass(frozen=True)
class CompileKernels(Task):
    """Compile the numerical loops, so that the first solve does not wait for it."""

    stamp: str  #: file that marks that it was done


#: Every kind of task by its name in a message.
TASKS: dict[str, type[Task]] = {
    kind.__name__: kind
    for kind in (
        OpenFolder,
        Look,
        TryCircle,
        PaintMask,
        SaveLights,
        Preview,
        Solve,
        Export,
        WriteExample,
        ImportCapture,
        CompileKernels,
    )
}


@dataclass(frozen=True)
class Event:
    """What a worker reports about a task."""

    task: Task
    kind: str  #: ``"progress"``, one of :data:`LAST`, or the name of a part of the page's state
    values: Mapping[str, Any] = field(default_factory=dict)


def task_message(number: int, task: Task) -> dict[str, Any]:
    """Return the message that asks a worker for a task."""
    return {"task": number, "do": type(task).__name__, "arguments": asdict(task)}


def read_task(message: Mapping[str, Any]) -> Task:
    """Return the task that a message asks for.

    >>> read_task(task_message(1, WriteExample("/tmp/owl")))
    WriteExample(folder='/tmp/owl')
    """
    return TASKS[message["do"]](**message["arguments"])
