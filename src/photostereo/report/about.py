"""Facts about an object: title, inventory number, credit, license.

They come from ``photostereo.json`` in the capture folder or from the caller.
"""

from collections.abc import Mapping
from os.path import exists
from pathlib import Path

from photostereo.core.errors import CaptureError, require_known
from photostereo.io.safe import read_json
from photostereo.io.schema import check_facts

FACTS = ("title", "inventory", "credit", "license")
#: The file beside the photographs; its other entries are ignored here.
FILE = "photostereo.json"


def read_about(capture: Path | None) -> dict[str, str]:
    """Read the facts from a capture folder; empty if there is no such file."""
    if capture is None:
        return {}
    path = (capture if capture.is_dir() else capture.parent) / FILE
    if not exists(path):
        return {}
    remedy = (
        f'Expected text for any of {", ".join(FACTS)}: {{"title": "Coin", "license": "CC BY 4.0"}}.'
    )
    content = read_json(path, "capture description", remedy=remedy)

    def fail(problem: str) -> CaptureError:
        return CaptureError(
            f"{path}: {problem}. {remedy}", code="bad-sidecar", file=path, problem=problem
        )

    check_facts(content, {f"{name}?": str for name in FACTS}, fail)
    return {name: content[name] for name in FACTS if content.get(name)}


def check_about(given: Mapping[str, str]) -> dict[str, str]:
    """Check facts given by a caller; raise an error that names an unknown one."""
    for name in given:
        require_known(name, FACTS, "fact about an object", "unknown-fact")
    return {name: str(value) for name, value in given.items()}
