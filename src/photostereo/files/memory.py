"""How much memory there is, asked before a file is decoded that declares a size."""

from __future__ import annotations

from pathlib import Path

from photostereo.errors import CaptureError


def available_memory() -> int:
    """Bytes that this process may still take: of the machine, of its container, and of its own limit."""
    import psutil  # type: ignore[import-untyped]

    found = [int(psutil.virtual_memory().available)]
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            found.append(limit - int(psutil.Process().memory_info().vms))
    except (ImportError, OSError):  # no such limits on this system
        pass
    try:
        group = Path("/sys/fs/cgroup")
        found.append(int((group / "memory.max").read_text()) - int((group / "memory.current").read_text()))
    except (OSError, ValueError):  # no container, or one without a limit
        pass
    return max(min(found), 0)


def require_memory(size: int, what: str, remedy: str) -> None:
    """Raise a :class:`CaptureError` where ``what`` needs more bytes than there are.

    >>> require_memory(10**18, "The photograph a.png", "Crop it.")
    Traceback (most recent call last):
    ...
    photostereo.errors.CaptureError: The photograph a.png needs 1000000000.0 GB of memory, but only ...
    """
    if size < 1 << 24:  # not worth asking
        return
    free = available_memory()
    if size > free:
        raise CaptureError(
            f"{what} needs {size / 1e9:.1f} GB of memory, but only {free / 1e9:.1f} GB are free. {remedy}"
        )
