"""The network's numbers: float16 in a NumPy archive with a digest, never a pickle.

Every name, shape and type is known beforehand, so that a wrong file is refused before its content is read.
"""

from __future__ import annotations

import math
import zipfile
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from photostereo.core.errors import CaptureError, ParameterError
from photostereo.io.safe import read_npz
from photostereo.io.weight_digest import digest_of
from photostereo.lights.unknown.architecture import expected_shapes

#: The archive that the package brings, and its digest.
SHIPPED = "weights.npz"
SHIPPED_DIGEST = "05fda080e4ec27b9cd6d0a369e2f4f0e1de8c9f45596ed473e4ea86158a9c5ea"
#: Bytes of a NumPy header and of an entry's name, at most: no array of an archive holds more beside its numbers.
HEADER_BYTES = 1024
#: Characters of a SHA-256 digest.
DIGEST_LENGTH = 64


@dataclass(frozen=True, eq=False)
class Weights:
    """A whole network: float32 arrays by name, and the digest of the float16 numbers in the archive."""

    arrays: dict[str, NDArray[np.float32]]
    digest: str


def read_weights(path: str | Path) -> Weights:
    """Weights of an archive that ``photostereo train --model lights`` wrote.

    Raises
    ------
    ParameterError
        If the file is missing, is not such an archive, or does not match its own digest.
    """
    try:
        _check_sizes(path)
        content = read_npz(Path(path), "network weights", remedy=_REMEDY)
    except FileNotFoundError as error:
        raise ParameterError(f"There are no weights at {path}.", code="no-weights", file=path) from error
    except CaptureError as error:
        raise ParameterError(error.message, code="not-weights", file=path) from error
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise ParameterError(
            f"{path} is not a file of network weights ({error}). {_REMEDY}", code="not-weights", file=path
        ) from error
    claimed = str(content.pop("digest"))
    for name, shape in expected_shapes().items():
        values = content[name]
        if values.dtype != np.float16 or values.shape != shape or not np.isfinite(values).all():
            raise ParameterError(
                f"{path} is not a file of network weights ({name} is not what it should be). {_REMEDY}",
                code="not-weights",
                file=path,
            )
    if claimed != digest_of(content):
        raise ParameterError(
            f"The weights in {path} do not match their digest: the file was damaged or edited. Restore it, or train "
            "the network again.",
            code="damaged-weights",
            file=path,
        )
    arrays = {name: np.ascontiguousarray(values.astype(np.float32)) for name, values in content.items()}
    for values in arrays.values():
        values.flags.writeable = False
    return Weights(arrays, claimed)


_REMEDY = "Give a file that `photostereo train` wrote."


def _check_sizes(path: str | Path) -> None:
    """Names and sizes by the archive's table of contents, before anything is unpacked."""
    if not Path(path).is_file() and Path(path).exists():
        raise ValueError("it is not a regular file")
    allowed = {
        f"{name}.npy": 2 * math.prod(shape) + HEADER_BYTES for name, shape in expected_shapes().items()
    }
    allowed["digest.npy"] = 4 * DIGEST_LENGTH + HEADER_BYTES
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
    if sorted(entry.filename for entry in entries) != sorted(allowed):
        raise ValueError("its arrays have other names")
    if any(entry.file_size > allowed[entry.filename] for entry in entries):
        raise ValueError("its arrays are too large")


@cache
def shipped_weights() -> Weights:
    """The weights that the package brings; their digest is that of the source."""
    with as_file(files(__package__) / SHIPPED) as path:
        weights = read_weights(path)
    if weights.digest != SHIPPED_DIGEST:
        raise ParameterError(
            "The installed network weights are not those of this version. Install photostereo again."
        )
    return weights
