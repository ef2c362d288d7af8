"""The largest memory that this process has used."""

from __future__ import annotations

from pathlib import Path


def peak_memory() -> int:
    """Bytes. Not ``ru_maxrss``, which a process inherits from the one that started it."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * int(status.split("VmHWM:")[1].split()[0])


def reset_peak_memory() -> None:
    """Count from what is used now."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
