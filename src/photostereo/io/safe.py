"""Read untrusted files: check them before decoding, and explain every failure.

A file may be truncated, renamed, hostile, an endless pipe, or declare a thousand times what it holds. Each reader
here limits how much it reads, compares declared with actual sizes before it allocates, loads no Python objects,
and turns every failure into one error that names the file and the remedy.
"""

from __future__ import annotations

import codecs
import io
import json
import math
import os
import re
import stat
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.errors import CaptureError, ParameterError, PhotostereoError
from photostereo.io.memory import require_memory
from photostereo.io.spool import SpooledStack, open_spool

#: Maximum size of a text or JSON file in bytes: light tables, lists of names, descriptions, summaries.
TEXT_LIMIT = 64 << 20
#: Maximum expansion of a byte by Deflate; a file that declares more is damaged or hostile.
DEFLATE_RATIO = 1032
#: A stack that takes more bytes than this as 32-bit numbers is kept on disk. Half or twice as much changes no result.
SPOOLED = 256 << 20

#: NumPy's kinds of values that are read: Boolean, integers, floating point, text; no objects, dates or records.
_LETTERS = "biufU"
#: MATLAB's types that are read.
_MATLAB = re.compile("double|single|logical|u?int(8|16|32|64)")

#: Turns the description of a problem into an error.
Complaint = Callable[[str], PhotostereoError]


def read_bytes(path: Path, what: str, *, limit: int | None = None, remedy: str = "") -> bytes:
    """Return the content of a regular file.

    Parameters
    ----------
    path : Path
        The file.
    what : str
        What it should contain, such as ``"light file"``, for messages.
    limit : int, optional
        The largest size in bytes.
    remedy : str
        What to do if it cannot be read, a sentence.
    """
    with opened(path, what, remedy=remedy) as file:
        size = os.fstat(file.fileno()).st_size
        if limit is not None and size > limit:
            problem = f"it has {size} bytes, more than the limit of {limit}"
            raise unreadable_file(path, what, remedy, problem)
        require_memory(size, f"The {what} {path}", "Use a smaller one.")
        if limit is None:
            return file.read()
        return file.read(limit)


@contextmanager
def opened(path: Path, what: str, *, remedy: str = "") -> Iterator[IO[bytes]]:
    """A regular file, open for reading."""
    complaint = partial(unreadable_file, path, what, remedy)
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # checked first: opening a pipe would block
            raise complaint("it is not a file")
        file = open(path, "rb")  # noqa: SIM115  # closed below; only the opening is explained
    except CaptureError:
        raise
    except (FileNotFoundError, ValueError) as error:  # ValueError: a NUL in the name
        message = f"The {what} {path} does not exist. {remedy or 'Check its name.'}"
        raise CaptureError(message, code="missing-file", file=path) from error
    except OSError as error:
        raise complaint(error.strerror or str(error)) from error
    with file:
        yield file


@contextmanager
def explained(complain: Complaint) -> Iterator[None]:
    """Convert anything that a decoder raises with ``complain``; our own errors pass unchanged."""
    try:
        yield
    except PhotostereoError:
        raise
    except MemoryError as error:
        raise complain("it needs more memory than is available") from error
    except Exception as error:  # decoders may raise anything if bytes are damaged
        message = str(error)
        if error.args and isinstance(error.args[0], bytes):
            message = error.args[0].decode("utf-8", "replace")
        raise complain(message or type(error).__name__) from error


def unreadable_file(path: Path, what: str, remedy: str, problem: str) -> CaptureError:
    """Return the error that a file cannot be used.

    Parameters
    ----------
    path : Path
        The file.
    what : str
        What it should contain, such as ``"light file"``.
    remedy : str
        What to do about it, a sentence; if empty, the usual advice.
    problem : str
        What is wrong with it, a part of a sentence.
    """
    problem = problem.partition("\n")[0][:300]  # further lines are advice for programmers
    advice = remedy or "Check its name and permissions."
    return CaptureError(
        f"The {what} {path} cannot be read: {problem}. {advice}",
        code="unreadable-file",
        file=path,
        what=what,
        problem=problem,
    )


def read_text(path: Path, what: str, *, remedy: str = "") -> str:
    """The text of a small file in UTF-8 (with or without a byte order mark), UTF-16 (with one) or Latin-1."""
    data = read_bytes(path, what, limit=TEXT_LIMIT, remedy=remedy)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):  # "Unicode text" of Excel
        return data.decode("utf-16", errors="replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def read_json(path: Path, what: str, *, remedy: str) -> Any:
    """The value in a JSON file; the parser's own limits (thousands of brackets or digits) are errors, too."""
    text = read_text(path, what, remedy=remedy)
    try:
        return json.loads(text)
    except (RecursionError, ValueError) as error:
        deep = isinstance(error, RecursionError)
        problem = "brackets are nested too deeply" if deep else str(error).split(";")[0]
        raise CaptureError(
            f"The {what} {path} is not valid JSON: {problem}. {remedy}",
            code="invalid-json",
            file=path,
            what=what,
            problem=problem,
        ) from error


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """The tables of a TOML file."""
    text = read_text(path, what, remedy="Give the path of a TOML file.")
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise ParameterError(
            f"{path} is not valid TOML: {error}. Correct that line.",
            code="invalid-toml",
            file=path,
            error=str(error),
        ) from None


def read_npy(path: Path, what: str, *, remedy: str, mapped: bool = False) -> NDArray[Any]:
    """Return the array in an ``.npy`` file, never a Python object.

    Parameters
    ----------
    path : Path
        The file.
    what : str
        What it should contain, for messages.
    remedy : str
        What to do if it cannot be read.
    mapped : bool
        Values stay in the file until they are used.
    """
    complaint = partial(unreadable_file, path, what, remedy)
    with opened(path, what, remedy=remedy) as file, explained(complaint):
        size = os.fstat(file.fileno()).st_size
        label = f"The {what} {path}"
        # An empty array cannot be mapped.
        if mapped and all(_header_of(file, size, label, complaint)[0]):
            return np.lib.format.open_memmap(path, mode="r")
        file.seek(0)
        return np.asarray(_array_in(file, size, label, complaint))


def read_npz(
    path: Path, what: str, *, remedy: str, limit: int | None = None, stack: str = ""
) -> dict[str, Any]:
    """Return all arrays of an ``.npz`` file by name, never Python objects.

    Parameters
    ----------
    path : Path
        The file.
    what : str
        What it should contain, for messages.
    remedy : str
        What to do if it cannot be read.
    limit : int, optional
        The most bytes of all arrays together.
    stack : str
        The name of an array that becomes a :class:`SpooledStack` if it is large.
    """
    complaint = partial(unreadable_file, path, what, remedy)
    arrays: dict[str, Any] = {}
    with (
        opened(path, what, remedy=remedy) as file,
        explained(complaint),
        zipfile.ZipFile(file) as archive,
    ):
        members = [member for member in archive.infolist() if member.filename.endswith(".npy")]
        for member in members:
            # Whatever the header says: no compressed byte becomes more bytes than this.
            most = DEFLATE_RATIO * member.compress_size + 64
            if member.file_size > most:
                raise complaint(
                    f"{member.filename} declares {member.file_size} bytes but can hold {most} at "
                    "most"
                )
        declared = sum(member.file_size for member in members)
        if limit is not None and declared > limit:
            raise complaint(f"it declares {declared} bytes, more than the limit of {limit}")
        declared -= sum(member.file_size for member in members if member.filename == f"{stack}.npy")
        require_memory(declared, f"The {what} {path}", "Use a smaller one.")
        for member in members:
            with archive.open(member) as stream:
                name = member.filename.removesuffix(".npy")
                label = f"{name} in {path}"
                spooled = name == stack
                arrays[name] = _array_in(
                    stream, member.file_size, label, complaint, spooled=spooled
                )
    return arrays


def names_in_npz(path: Path) -> frozenset[str]:
    """Names of the arrays in an archive, without decoding them; none if it is not an archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            return frozenset(name.removesuffix(".npy") for name in archive.namelist())
    except Exception:  # zipfile may raise anything if bytes are damaged
        return frozenset()


def _array_in(
    stream: IO[bytes], size: int, label: str, complaint: Complaint, *, spooled: bool = False
) -> Any:
    """One array in NumPy's format, ``size`` bytes with its header; the declared size is checked first.

    If ``spooled``, a large array goes to a temporary file in parts, if there is room for it.
    """
    shape, by_column, kind = _header_of(stream, size, label, complaint)
    is_large = 4 * math.prod(shape) > SPOOLED
    spool = open_spool(size) if spooled and is_large and not by_column else None
    if spool is not None:
        bytes_each = kind.itemsize * math.prod(shape[1:])
        require_memory(bytes_each, label, "Use a smaller one.")
        places = []
        for _ in range(shape[0]):
            part = np.frombuffer(stream.read(bytes_each), kind).reshape(shape[1:])
            places.append(spool.write(part))
        return SpooledStack(spool, tuple(places))
    require_memory(size, label, "Use a smaller one.")
    stream.seek(0)
    return np.lib.format.read_array(stream, allow_pickle=False)


def _header_of(
    stream: IO[bytes], size: int, label: str, complaint: Complaint
) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether columns come first, and type of an array whose values follow in the stream."""
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, by_column, kind = np.lib.format.read_array_header_1_0(stream)
    elif version == (2, 0):
        shape, by_column, kind = np.lib.format.read_array_header_2_0(stream)
    else:
        raise complaint(f"{label} is in version {version[0]} of NumPy's format")
    if kind.hasobject or kind.kind not in _LETTERS:
        raise complaint(
            f"{label} holds values of type {kind}; expected numbers, not Python objects"
        )
    declared = math.prod(shape) * kind.itemsize
    there = size - stream.tell()
    if declared != there or any(side < 0 for side in shape):
        raise complaint(f"{label} declares {declared} bytes of values, but there are {there}")
    return shape, by_column, kind


def read_mat(path: Path, what: str, *, remedy: str) -> dict[str, NDArray[Any]]:
    """The numeric arrays of a MATLAB file of version 4 to 7 by name; cells, structures and objects are left out."""
    from scipy.io import loadmat, whosmat

    data = read_bytes(path, what, remedy=remedy)
    with explained(partial(unreadable_file, path, what, remedy)):
        content = whosmat(io.BytesIO(data))
        shapes = {name: shape for name, shape, kind in content if _MATLAB.fullmatch(kind)}
        if not shapes:
            return {}
        size = sum(8 * math.prod(shape) for shape in shapes.values())
        require_memory(size, f"The {what} {path}", "Use a smaller one.")
        values = loadmat(io.BytesIO(data), variable_names=list(shapes))
        arrays = {name: np.asarray(values[name]) for name in shapes}
        return {name: array for name, array in arrays.items() if array.dtype.kind in "biuf"}
