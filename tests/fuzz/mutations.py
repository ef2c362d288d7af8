"""Ways to spoil a file, by its kind; each takes the file and a random generator."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import zipfile
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import cv2
import numpy as np
from scipy.io import savemat

Mutation = Callable[[Path, np.random.Generator], None]

ESCAPES = "\x1b]0;owned\x07\x1b[2J[red]\u202e"
ODD_NUMBERS = (
    *(
        "nan",
        "inf",
        "-inf",
        "1e200",
        "1e308",
        "1e-300",
        "0",
        "-1",
        "1e999",
        "0x10",
        "1_0",
        "",
        "٣",
        "1,5",
    ),
    *("9" * 5000, "1" + "0" * 400, "-0.0", "[", "\0", "true"),
)


def cut(path: Path, rng: np.random.Generator) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: int(rng.integers(0, max(len(data), 1)))])


def empty(path: Path, rng: np.random.Generator) -> None:
    path.write_bytes(b"")


def flip_bytes(path: Path, rng: np.random.Generator) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(int(rng.integers(1, 9))):
        if data:
            data[int(rng.integers(len(data)))] = int(rng.integers(256))
    path.write_bytes(bytes(data))


def flip_header(path: Path, rng: np.random.Generator) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(int(rng.integers(1, 5))):
        if data:
            data[int(rng.integers(min(len(data), 64)))] = int(
                rng.choice([0, 1, 0x7F, 0x80, 0xFF, 0x2E])
            )
    path.write_bytes(bytes(data))


def noise(path: Path, rng: np.random.Generator) -> None:
    path.write_bytes(rng.bytes(int(rng.integers(0, 4000))))


def append(path: Path, rng: np.random.Generator) -> None:
    path.write_bytes(path.read_bytes() + rng.bytes(int(rng.integers(1, 4000))))


def delete(path: Path, rng: np.random.Generator) -> None:
    path.unlink()


def folder_instead(path: Path, rng: np.random.Generator) -> None:
    path.unlink()
    path.mkdir()


def link_to_itself(path: Path, rng: np.random.Generator) -> None:
    path.unlink()
    path.symlink_to(path.name)


def pipe_instead(path: Path, rng: np.random.Generator) -> None:
    path.unlink()
    os.mkfifo(path)


def swap_with_neighbor(path: Path, rng: np.random.Generator) -> None:
    others = [file for file in sorted(path.parent.iterdir()) if file.is_file() and file != path]
    if others:
        path.write_bytes(others[int(rng.integers(len(others)))].read_bytes())


def rename_oddly(path: Path, rng: np.random.Generator) -> None:
    names = (ESCAPES, "caf\udce9", "n" * 240, "a\nb", "[red]", " ", "9" * 200)
    path.rename(path.with_name(names[int(rng.integers(len(names)))] + path.suffix))


def odd_numbers(path: Path, rng: np.random.Generator) -> None:
    """Some words of a text replaced by numbers that are none."""
    lines = path.read_text("latin-1").splitlines()
    for _ in range(int(rng.integers(1, 4))):
        if lines:
            row = int(rng.integers(len(lines)))
            words = lines[row].replace(",", " , ").split()
            if words:
                words[int(rng.integers(len(words)))] = str(rng.choice(ODD_NUMBERS))
            lines[row] = " ".join(words).replace(" , ", ",")
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogateescape"))


def scale_numbers(path: Path, rng: np.random.Generator) -> None:
    """All numbers of a table of one size: huge, tiny, zero, in a plane."""
    factor = float(rng.choice([1e200, 1e-200, 1e20, 0.0, -1.0, 1e308]))
    words = path.read_text("latin-1").replace(",", " , ").split(" ")

    def scaled(word: str) -> str:
        try:
            return repr(float(word) * factor) if word.strip() and "\n" not in word else word
        except ValueError:
            return word

    path.write_text(" ".join(map(scaled, words)).replace(" , ", ","))


def odd_lines(path: Path, rng: np.random.Generator) -> None:
    lines = path.read_text("latin-1").splitlines()
    place = int(rng.integers(len(lines) + 1))
    kind = int(rng.integers(7))
    if kind == 0:
        lines.insert(place, lines[0] if lines else "")
    elif kind == 1 and lines:
        lines.pop(min(place, len(lines) - 1))
    elif kind == 2:
        lines.insert(place, "a\0b.png 1 2 3")
    elif kind == 3:
        lines.insert(place, "x" * 100_000)
    elif kind == 4:
        lines.insert(place, "../../../etc/passwd 0 0 1")
    elif kind == 5:
        lines.insert(place, ESCAPES + ".png,0,0,1,1")
    else:
        lines.insert(place, "# comment")
    data = "\n".join(lines).encode("utf-8", "surrogateescape")
    path.write_bytes("\n".join(lines).encode("utf-16") if rng.random() < 0.1 else data)


def odd_json(path: Path, rng: np.random.Generator) -> None:
    texts = (
        "[" * 100_000, '{"lights": ' + "9" * 5000 + "}", '{"notes": 5}', '{"notes": [5, null], "name": [1]}', "null",
        "5", '"text"', "[[1,2,3],[4,5]]", '{"lights": [{"direction": [0,0,1]}, 5]}', '{"lights": []}', "NaN",
        '{"lights": [[NaN,0,1],[0,1,1],[1,0,1]]}', '{"name": "\\ud800", "clip_gray": "x"}', '{"files": 5}', "{}",
        '{"lights": [[1e400,0,1],[0,1,1],[1,0,1]], "intensities": {"a": 1}}', '{"capture": 1, "method": null}',
    )  # fmt: skip
    if rng.random() < 0.5:
        path.write_text(texts[int(rng.integers(len(texts)))])
        return
    try:
        value = json.loads(path.read_text())
    except ValueError:
        return
    path.write_text(json.dumps(_spoilt(value, rng)))


def _spoilt(value: object, rng: np.random.Generator) -> object:
    """One entry, somewhere inside, of another type."""
    odd = [None, 5, -1, 1e300, float("nan"), "x", [], {}, [[[]]], True, 10**400]
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = list(value)[int(rng.integers(len(value)))]
        return {**value, key: _spoilt(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.8:
        place = int(rng.integers(len(value)))
        return [*value[:place], _spoilt(value[place], rng), *value[place + 1 :]]
    return odd[int(rng.integers(len(odd)))]


def png_declares_more(path: Path, rng: np.random.Generator) -> None:
    """A header with a valid checksum and a giant size."""
    data = bytearray(path.read_bytes())
    if data[:4] != b"\x89PNG" or len(data) < 33:
        flip_header(path, rng)
        return
    sides = (20_000, 50_000, 2**31 - 1, 0)
    struct.pack_into(">II", data, 16, *(int(rng.choice(sides)) for _ in range(2)))
    struct.pack_into(">I", data, 29, zlib.crc32(bytes(data[12:29])))
    path.write_bytes(bytes(data))


@cache
def _nothing(size: int) -> bytes:
    """That many zeros, compressed."""
    return zlib.compress(bytes(size), 9)


def png_bomb(path: Path, rng: np.random.Generator) -> None:
    """A picture that is as large as it says and of one color: small on disk, hundreds of megabytes decoded."""
    side = 9000
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)),
        (b"IDAT", _nothing(side * (side + 1))),
        (b"IEND", b""),
    ]
    body = b"".join(
        struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in chunks
    )
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + body)


def another_picture(path: Path, rng: np.random.Generator) -> None:
    size = (int(rng.choice([1, 15, 16, 17, 40])), int(rng.choice([1, 16, 33])))
    shape = size if rng.random() < 0.5 else (*size, int(rng.choice([3, 4])))
    kind = (np.uint8, np.uint16)[int(rng.integers(2))]
    value = 0 if rng.random() < 0.3 else 60000
    picture = np.full(shape, min(value, np.iinfo(kind).max), kind)
    suffix = path.suffix if path.suffix in (".png", ".jpg", ".bmp", ".tif") else ".png"
    done, data = cv2.imencode(suffix, picture if suffix != ".jpg" else picture.astype(np.uint8))
    if done:
        path.write_bytes(data.tobytes())


def black(path: Path, rng: np.random.Generator) -> None:
    """Every photograph beside it, too."""
    for file in path.parent.glob("*" + path.suffix):
        # Not by name: OpenCV crashes on names that are not UTF-8.
        data = np.frombuffer(file.read_bytes() if file.is_file() else b"", np.uint8)
        picture = cv2.imdecode(data, cv2.IMREAD_UNCHANGED) if data.size else None
        if picture is not None and file.stem.casefold() != "mask":
            file.write_bytes(cv2.imencode(path.suffix, np.zeros_like(picture))[1].tobytes())


def tiff_of_floats(path: Path, rng: np.random.Generator) -> None:
    import tifffile

    values = np.full(
        (16, 16), float(rng.choice([np.nan, np.inf, 1e38, -1.0, 0.5, 1e-40])), np.float32
    )
    kind = (np.float32, np.float64, np.int16, np.complex64, np.uint32)[int(rng.integers(5))]
    with np.errstate(all="ignore"):
        tifffile.imwrite(
            path, values.astype(kind), compression="zlib" if rng.random() < 0.5 else None
        )


def _header(kind: str, shape: tuple[int, ...]) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": kind, "fortran_order": False, "shape": shape}
    )
    return file.getvalue()


def odd_array(path: Path, rng: np.random.Generator) -> None:
    """An ``.npy`` of another type, shape or content, or one that declares far more than it holds."""
    path.write_bytes(_odd_array(rng))


def _odd_array(rng: np.random.Generator) -> bytes:
    kind = int(rng.integers(7))
    if kind == 0:
        return _header("<f8", (10**9, 10**3)) + b"\0" * 64
    if kind == 1:
        return _header("|O", (2,)) + pickle.dumps([print, print])
    if kind == 2:
        return _header("<f4", (-1, 3)) + b"\0" * 12
    file = io.BytesIO()
    choices = (
        np.array(["text"]), np.array(5.0), np.zeros((16, 16, 3)), np.full((16, 16), np.nan), np.ones(3, np.complex64),
        np.zeros((0, 3)), np.full((6, 3), 1e200), np.ones((6, 16, 16), np.uint8), np.zeros((16, 16), bool),
        np.asfortranarray(np.ones((48, 48))), np.eye(48)[:, ::-1] * 1e300,
    )  # fmt: skip
    np.save(file, choices[int(rng.integers(len(choices)))])
    return file.getvalue()


def odd_member(path: Path, rng: np.random.Generator) -> None:
    """One array of an archive replaced, dropped, encrypted or renamed; or the archive is no archive."""
    kind = int(rng.integers(6))
    if kind == 0:
        path.write_bytes(_odd_array(rng))  # an .npy that was renamed
        return
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = list(members)[int(rng.integers(len(members)))]
    if kind == 1:
        del members[name]
    elif kind in (2, 3):
        members[name] = _odd_array(rng)
    elif kind == 4:
        members[name] = rng.bytes(50)
    packing = (
        zipfile.ZIP_DEFLATED
        if rng.random() < 0.5
        else int(rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_LZMA]))
    )
    with zipfile.ZipFile(path, "w", packing) as archive:
        for key, value in members.items():
            archive.writestr(key, value)
    if kind == 5:
        data = bytearray(path.read_bytes())
        central = data.find(b"PK\x01\x02")
        field, value = ((8, 1), (24, 2**31 - 1), (10, 99))[int(rng.integers(3))]
        struct.pack_into("<H" if field != 24 else "<I", data, central + field, value)
        path.write_bytes(bytes(data))


def zip_bomb(path: Path, rng: np.random.Generator) -> None:
    """An archive whose images are 300 MB of nothing in 300 kB."""
    path.write_bytes(_empty_images())


@cache
def _empty_images() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("images.npy", _header("<f4", (3, 5000, 5000)) + bytes(300 * 10**6))
    return content.getvalue()


def odd_mat(path: Path, rng: np.random.Generator) -> None:
    contents = (
        {"Normal_gt": np.array([1.0, {"a": 1}], dtype=object)}, {"Normal_gt": "text"}, {"other": np.ones((16, 16, 3))},
        {"Normal_gt": np.full((16, 16, 3), np.nan)}, {"Normal_gt": np.ones((16, 16))}, {"Normal_gt": {"field": 1.0}},
        {"Normal_gt": np.full((16, 16, 3), 1e300)}, {"Normal_gt": np.ones((4, 4, 3))},
        {"Normal_gt": 1j * np.ones((16, 16, 3))},
    )  # fmt: skip
    savemat(path, contents[int(rng.integers(len(contents)))], do_compression=bool(rng.integers(2)))


def odd_exif(path: Path, rng: np.random.Generator) -> None:
    """Camera data in which tags, types, counts and places are anything, also beyond the end and in circles."""
    sign, mark = ("<", b"II") if rng.random() < 0.5 else (">", b"MM")
    count = int(rng.integers(0, 40))
    tags = [
        0x8769,
        0x829A,
        0x8827,
        0x9209,
        0x0112,
        0x920A,
        0xA405,
        0x010F,
        0x8825,
        int(rng.integers(65536)),
    ]
    entries = b"".join(
        struct.pack(
            sign + "HHII",
            int(rng.choice(tags)),
            int(rng.integers(0, 14)),
            int(rng.choice([0, 1, 2, 4, 1000, 2**31, 2**32 - 1])),
            int(rng.choice([0, 8, 26, 50, 65000, 2**31, 2**32 - 1])),
        )
        for _ in range(count)
    )
    declared = int(rng.choice([count, 65535, 0]))
    body = b"Exif\0\0" + mark + struct.pack(sign + "HIH", 42, 8, declared) + entries + rng.bytes(40)
    data = path.read_bytes()
    path.write_bytes(data[:2] + b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body + data[2:])


def odd_store(path: Path, rng: np.random.Generator) -> None:
    """A database whose cells hold other things than they should."""
    import sqlite3

    with sqlite3.connect(path) as store:
        tables = [
            row[0] for row in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        table = tables[int(rng.integers(len(tables)))]
        columns = [row[1] for row in store.execute(f"PRAGMA table_info({table})")]
        column = columns[int(rng.integers(len(columns)))]
        values = (
            "{",
            "abc",
            "",
            None,
            -1,
            1e308,
            float("inf"),
            b"\xff\xfe",
            "[" * 3000,
            "null",
            2**62,
        )
        if rng.random() < 0.2:
            store.execute(f'ALTER TABLE {table} RENAME COLUMN "{column}" TO odd')
        else:
            store.execute(
                f'UPDATE {table} SET "{column}" = ?', (values[int(rng.integers(len(values)))],)
            )
    store.close()


def none(path: Path, rng: np.random.Generator) -> None:
    """Sound input must work."""


ANY: tuple[Mutation, ...] = (
    *(
        cut,
        empty,
        flip_bytes,
        flip_header,
        noise,
        append,
        delete,
        folder_instead,
        link_to_itself,
        pipe_instead,
    ),
    *(swap_with_neighbor, rename_oddly),
)
BY_SUFFIX: dict[str, tuple[Mutation, ...]] = {
    ".png": (png_declares_more, png_bomb, another_picture, black, flip_bytes, cut),
    ".jpg": (another_picture, black, flip_bytes, flip_header, odd_exif, odd_exif),
    ".sqlite": (odd_store, odd_store, flip_bytes, cut),
    ".bmp": (another_picture, black, flip_header),
    ".pgm": (another_picture, odd_numbers, flip_header),
    ".tif": (tiff_of_floats, another_picture, flip_bytes, flip_header),
    ".txt": (odd_numbers, scale_numbers, odd_lines),
    ".csv": (odd_numbers, scale_numbers, odd_lines),
    ".lp": (odd_numbers, scale_numbers, odd_lines),
    ".json": (odd_json, odd_numbers, odd_lines),
    ".npy": (odd_array,),
    ".npz": (odd_member, odd_member, odd_member, zip_bomb),
    ".mat": (odd_mat, flip_bytes, cut),
}


def choose(path: Path, rng: np.random.Generator) -> Mutation:
    """A mutation that suits a file: half of the time one of its kind, half of the time any."""
    own = BY_SUFFIX.get(path.suffix.lower(), ())
    pool = own if own and rng.random() < 0.6 else ANY
    return pool[int(rng.integers(len(pool)))]
