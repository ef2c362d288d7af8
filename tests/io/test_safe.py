"""Files from outside: bounded, never Python objects, every failure in words."""

from __future__ import annotations

import io
import json
import os
import pickle
import re
import struct
import zipfile

import numpy as np
import pytest
from scipy.io import savemat

from photostereo.core.errors import CaptureError, ParameterError
from photostereo.core.units import PixelSize
from photostereo.core.wording import amount
from photostereo.io import memory, safe
from photostereo.io.names import printable
from photostereo.io.png import encode_png


def header(kind, shape):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": kind, "fortran_order": False, "shape": shape}
    )
    return file.getvalue()


def array_bytes(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def write_zip(path, *, packing=zipfile.ZIP_STORED, **members):
    with zipfile.ZipFile(path, "w", packing) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)


def patch(path, offset, form, value):
    """Change a field of the first entry of the central directory."""
    data = bytearray(path.read_bytes())
    struct.pack_into(form, data, data.find(b"PK\x01\x02") + offset, value)
    path.write_bytes(bytes(data))


def test_arrays_come_back(tmp_path):
    arrays = {
        "plain": np.arange(12.0).reshape(3, 4),
        "fortran": np.asfortranarray(np.arange(12, dtype=np.uint16).reshape(3, 4)),
        "text": np.array("cat"),
        "none": np.zeros((0, 3)),
    }
    np.savez_compressed(tmp_path / "a.npz", **arrays)
    found = safe.read_npz(tmp_path / "a.npz", "archive", remedy="")
    for name, array in arrays.items():
        np.save(tmp_path / "a.npy", array)
        for again in (found[name], safe.read_npy(tmp_path / "a.npy", "array", remedy="")):
            np.testing.assert_array_equal(again, array)
            assert again.dtype == array.dtype
    assert safe.names_in_npz(tmp_path / "a.npz") == set(arrays)
    assert safe.names_in_npz(tmp_path / "a.npy") == set()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda p: p.write_bytes(b""), "not a zip file"),
        (lambda p: p.write_bytes(array_bytes(np.ones(3))), "not a zip file"),  # an .npy, renamed
        (lambda p: p.write_bytes(p.read_bytes()[:-30]), "not a zip file"),
        (lambda p: write_zip(p, a=b"no array"), "magic string"),
        (
            lambda p: write_zip(p, a=header("<f8", (10**6, 10**6)) + bytes(80)),
            "declares 8000000000000 bytes",
        ),
        (lambda p: write_zip(p, a=header("<f8", (-1, -80)) + bytes(640)), "declares"),
        (
            lambda p: write_zip(p, a=header("|O", (1,)) + pickle.dumps([print])),
            "not Python objects",
        ),
        (lambda p: write_zip(p, a=array_bytes(np.ones(2, np.complex64))), "type complex64"),
        (lambda p: patch(p, 8, "<H", 1), "encrypted"),
        (lambda p: patch(p, 24, "<I", 2**31 - 1), "can hold"),
        (lambda p: patch(p, 10, "<H", 8), r"zlib|decompress|invalid|CRC"),
    ],
)
def test_damaged_archives_are_told(tmp_path, spoil, words):
    path = tmp_path / "a.npz"
    write_zip(path, a=array_bytes(np.arange(64.0)))
    spoil(path)
    with pytest.raises(CaptureError) as caught:
        safe.read_npz(path, "saved state", remedy="Save it again.")
    assert (caught.value.code, caught.value.file) == ("unreadable-file", path)
    assert re.search(words, caught.value.values["problem"]) and "Save it again." in str(
        caught.value
    )


def test_an_archive_that_unpacks_to_more_than_there_is(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("a.npy", header("<f4", (3, 3000, 3000)) + bytes(4 * 3 * 3000 * 3000))
    assert (tmp_path / "a.npz").stat().st_size < 200_000
    monkeypatch.setattr(memory, "available_memory", lambda: 50_000_000)
    with pytest.raises(CaptureError) as caught:
        safe.read_npz(tmp_path / "a.npz", "archive", remedy="")
    assert caught.value.code == "not-enough-memory" and caught.value.values["needed"] > 100_000_000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"lights": ' + "9" * 5000 + "}", "4300"),
        ("{", "line 1"),
        ("", "line 1"),
    ],
)
def test_json_beyond_the_parser(tmp_path, text, words):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(CaptureError) as caught:
        safe.read_json(tmp_path / "a.json", "light file", remedy="Correct it.")
    assert caught.value.code == "invalid-json" and words in caught.value.values["problem"]


def test_text_is_bounded_and_regular(tmp_path, monkeypatch):
    monkeypatch.setattr(safe, "TEXT_LIMIT", 100)
    (tmp_path / "long").write_text("x" * 101)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "ring").symlink_to("ring")
    for name, code in (
        ("long", "unreadable-file"),
        ("pipe", "unreadable-file"),
        ("ring", "unreadable-file"),
        ("", "unreadable-file"),
        ("a\0b", "missing-file"),
        ("n" * 300, "unreadable-file"),
        ("absent", "missing-file"),
    ):
        with pytest.raises(CaptureError) as caught:
            safe.read_text(tmp_path / name, "list", remedy="")
        assert caught.value.code == code


@pytest.mark.parametrize(
    "text", ["", "4", "0.5GiB", "9" * 400 + "GB", "infGB", "-1GB", "4 elephants", "0GB", "1e3GB"]
)
def test_amounts_of_memory(text):
    if text in ("4", "0.5GiB"):
        assert memory.parse_memory(text) == {"4": 4, "0.5GiB": 2**29}[text]
        return
    with pytest.raises(ParameterError) as caught:
        memory.parse_memory(text)
    assert caught.value.code == "invalid-memory"


def test_memory_in_words():
    assert memory.parse_memory("2.5GB") == 2500000000
    assert (amount(2.5e9), amount(3e6)) == ("2.5 GB", "3 MB")
    words = "The photograph a.png needs 1000000000.0 GB of memory, but only"
    with pytest.raises(CaptureError, match=words):
        memory.require_memory(10**18, "The photograph a.png", "Crop it.")


def test_pictures_carry_their_size_and_a_comment():
    data = encode_png(np.zeros((2, 2), np.uint8), size=PixelSize.of("0.1mm"), comment="heights")
    assert b"pHYs" in data and b"heights" in data


def test_matlab_files_with_anything_but_numbers(tmp_path):
    other = {
        "cell": np.array([1.0, {"a": 1}], dtype=object),
        "struct": {"field": 1.0},
        "text": "text",
    }
    savemat(tmp_path / "a.mat", {**other, "T": np.ones(3)})
    assert list(safe.read_mat(tmp_path / "a.mat", "truth", remedy="")) == ["T"]
    (tmp_path / "a.mat").write_bytes(b"not a matlab file")
    with pytest.raises(CaptureError) as caught:
        safe.read_mat(tmp_path / "a.mat", "truth", remedy="")
    assert caught.value.code == "unreadable-file"


def test_matlab_numbers(tmp_path):
    for values in (
        np.arange(12.0).reshape(3, 4),
        np.ones((2, 2), bool),
        np.arange(3, dtype=np.uint8)[None],
    ):
        savemat(tmp_path / "a.mat", {"T": values}, do_compression=True)
        np.testing.assert_array_equal(
            safe.read_mat(tmp_path / "a.mat", "truth", remedy="")["T"], values
        )


def test_names_cannot_command_the_terminal():
    shown = printable("a\x1b[2J\x07\u202eb\x9b\udcff")
    assert shown == "a\\x1b[2J\\x07\\u202eb\\x9b\\udcff"
    shown.encode("utf-8")
    assert printable("Größe 物 ١") == "Größe 物 ١"
    assert printable("Öl, two\nlines") == "Öl, two\nlines"
    assert json.loads(json.dumps(shown)) == shown


@pytest.mark.parametrize("version", [1, 2])
def test_the_tightest_of_nested_control_groups_counts(tmp_path, version):
    top, names = (
        (tmp_path / "memory", ("limit_in_bytes", "usage_in_bytes"))
        if version == 1
        else (tmp_path, ("max", "current"))
    )
    for place, numbers in (("", (900, 0)), ("a", (500, 100)), ("a/b", ("max", 100))):
        (top / place).mkdir(exist_ok=True)
        for name, number in zip(names, numbers, strict=True):
            (top / place / f"memory.{name}").write_text(f"{number}\n")
    (top / "a" / "memory.stat").write_text("anon 50\ninactive_file 30\n")
    own = tmp_path / "own"
    own.write_text("3:cpu:/x\n4:memory:/a/b\n" if version == 1 else "0::/a/b\n")
    assert sorted(memory._free_in_groups(own, tmp_path)) == [430, 900]
    assert memory._free_in_groups(tmp_path / "none", tmp_path) == []
