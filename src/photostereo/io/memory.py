"""Check the free memory before large allocations, and convert amounts of memory from and to text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from photostereo.core.errors import CaptureError, ParameterError
from photostereo.core.wording import amount

#: Fewer bytes do not matter.
TOO_SMALL = 1 << 24
#: No machine has an exabyte; more is a mistake.
LARGEST = 1e18
#: Bytes per unit.
UNITS = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
}
_limit: ContextVar[float] = ContextVar("memory_limit", default=float("inf"))


def available_memory() -> int:
    """Bytes that this process can still allocate, given the machine, its container and its own limit."""
    import psutil  # type: ignore[import-untyped]

    amounts = [int(psutil.virtual_memory().available)]
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            amounts.append(limit - int(psutil.Process().memory_info().vms))
    except (ImportError, OSError):  # no such limits on this system
        pass
    amounts += _free_in_groups(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup"))
    return max(min(amounts), 0)


def _free_in_groups(process: Path, root: Path) -> list[int]:
    """Return the bytes left in each control group around this process that has a limit.

    Parameters
    ----------
    process : Path
        The file that lists the groups of this process, ``ID:CONTROLLERS:PATH`` on each line.
    root : Path
        Where the groups are mounted.
    """
    if not process.is_file():
        return []
    amounts = []
    for line in process.read_text().splitlines():
        if line.count(":") < 2:
            continue
        _, controllers, place = line.split(":", 2)
        if not controllers:  # version 2 has one tree for everything
            amounts += _free_up_to(root, place, "memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            top = root / "memory"
            amounts += _free_up_to(top, place, "memory.limit_in_bytes", "memory.usage_in_bytes")
    return amounts


def _free_up_to(top: Path, place: str, limit_name: str, usage_name: str) -> list[int]:
    """Return the bytes left in a group and those around it, up to the top."""
    group = top / place.strip("/")
    amounts = []
    # In a container the path is that of the host; its own group is at the top.
    for folder in [top, *(f for f in (group, *group.parents) if top in f.parents)]:
        with suppress(OSError, ValueError):  # not there, or without a limit
            limit = int((folder / limit_name).read_text())
            usage = int((folder / usage_name).read_text())
            amounts.append(limit - usage + _cached_files(folder / "memory.stat"))
    return amounts


def _cached_files(path: Path) -> int:
    """Return the bytes of a group that only cache files and are released when memory is needed."""
    if not path.is_file():
        return 0
    figures = dict(line.split() for line in path.read_text().splitlines())
    return int(figures.get("total_inactive_file", figures.get("inactive_file", 0)))


def give_back_memory() -> None:
    """Return freed memory that the C library still holds to the system (GNU's holds hundreds of MB)."""
    _ask_allocator("malloc_trim", 0)


def share_one_heap() -> None:
    """Let all threads share a heap; GNU's C library gives each its own, and a solve then holds 0.1 GB more."""
    _ask_allocator("mallopt", -8, 1)  # M_ARENA_MAX


def _ask_allocator(function: str, *values: int) -> None:
    import ctypes

    with suppress(AttributeError, OSError, TypeError):  # another C library
        getattr(ctypes.CDLL(None), function)(*values)


@contextmanager
def memory_limit(amount: int) -> Iterator[None]:
    """Let :func:`require_memory` raise, within the block, if more than this many bytes are needed."""
    before = _limit.set(amount)
    try:
        yield
    finally:
        _limit.reset(before)


def require_memory(size: int, what: str, remedy: str) -> None:
    """Raise a :class:`CaptureError` if more memory is needed than is free, or than :func:`memory_limit` allows.

    Parameters
    ----------
    size : int
        Bytes that are needed.
    what : str
        What needs them, the beginning of a sentence.
    remedy : str
        What to do about it, a sentence.
    """
    if size < TOO_SMALL:
        return
    free = available_memory()
    limit = _limit.get()
    most = min(free, limit)
    if size > most:
        raise CaptureError(
            f"{what} needs {amount(size)} of memory, but only {amount(most)} are free or allowed. "
            f"{remedy}",
            code="not-enough-memory",
            what=what,
            needed=size,
            free=most,
        )


def parse_memory(text: str) -> int:
    """Bytes of an amount such as ``4GB``, ``500 MB`` or ``2.5GiB``."""
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([A-Za-z]*)\s*", text)
    size = 0.0
    if match is not None:
        size = float(match[1]) * UNITS.get(match[2].upper(), 0)
    if not 0 < size < LARGEST:
        text = text[:40]
        raise ParameterError(
            f'"{text}" is not an amount of memory. Write a number and a unit, such as 4GB.',
            code="invalid-memory",
            text=text,
        )
    return int(size)
