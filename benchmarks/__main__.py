"""``make bench``: run every benchmark, or those named: ``python -m benchmarks pdlnv loading``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

#: Not benchmarks themselves, or in need of a machine of their own.
NOT_RUN = {"__init__", "__main__", "captures", "literal", "peak", "gpu"}


def main() -> int:
    known = sorted(
        path.stem for path in Path(__file__).parent.glob("*.py") if path.stem not in NOT_RUN
    )
    failed = []
    for name in sys.argv[1:] or known:
        print(f"== {name}", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode:
            failed.append(name)
    if failed:
        print("failed: " + ", ".join(failed))
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
