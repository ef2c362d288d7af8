"""The largest memory that this process has used."""

from __future__ import annotations

from pathlib import Path


def peak_memory() -> int:
    """Bytes. Not ``ru_maxrss``, which a process inherits from the one that started it."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * int(status.split("VmHWM:")[1].split()[0])
