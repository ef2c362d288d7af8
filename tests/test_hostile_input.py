"""Input that once met a traceback, took gigabytes or said nothing: each ends in one paragraph and exit code 2."""

from __future__ import annotations

import errno
import io
import json
import os
import resource
import shutil
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import cv2
import numpy as np
import pytest
from rich.console import Console
from scipy.io import savemat

import photostereo as ps
from photostereo import cli
from photostereo.capture import write_archive, write_diligent
from photostereo.cli import shell
from photostereo.core.conventions import linear_from_srgb
from photostereo.io import memory
from photostereo_lab.scenes import dome_lights, render_scene


@pytest.fixture
def call(monkeypatch, capsys):
    """Exit code, standard output and standard error of one call, in this process."""

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["photostereo", *map(str, words)])
        code = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return code, said.out, said.err

    return run


@pytest.fixture
def fault(call):
    """The code of the error that a command must end with, and the name of the file."""

    def run(*words: object) -> tuple[str, str]:
        code, said, _ = call(*words, "--json")
        assert code == 2
        error = json.loads(said)["error"]
        return error["code"], Path(error["file"] or "").name

    return run


@pytest.fixture(scope="session")
def small():
    return render_scene("sphere", size=20, lights=dome_lights(6), color=True)


@pytest.fixture
def diligent(tmp_path, small):
    return write_diligent(small, tmp_path / "capture")


@pytest.fixture
def archive(tmp_path, small):
    return write_archive(small.gray(), tmp_path / "capture.npz")


@pytest.fixture
def refused(fault, tmp_path):
    """A solve that must be refused: the code of its error, and the name of the file. Nothing may be left behind."""

    def run(capture, *words, method="ls") -> tuple[str, str]:
        before = sorted(tmp_path.rglob("*"))
        options = ("--method", method, "--no-report", "--no-surface")
        found = fault("solve", capture, "--out", tmp_path / "out", *options, *words)
        assert sorted(tmp_path.rglob("*")) == before
        return found

    return run


def rewrite(path: Path, **changes: object) -> None:
    """An archive with some arrays replaced; None drops one."""
    with np.load(path) as content:
        arrays = {name: content[name] for name in content.files}
    kept = {name: value for name, value in {**arrays, **changes}.items() if value is not None}
    np.savez(path, **kept)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"images": None}, "archive-arrays"),
        ({"images": np.ones((6, 20, 20), np.int64)}, "archive-images"),
        ({"images": np.ones((0, 20, 20))}, "archive-images"),
        ({"lights": np.ones((5, 3))}, "lights-count"),
        ({"lights": np.array(["text"])}, "archive-text"),
        ({"mask": np.ones((20, 21))}, "mask-size"),
        ({"mask": np.zeros((20, 20))}, "empty-mask"),
        ({"intensities": np.ones(5)}, "lights-count"),
        ({"intensities": np.full(6, 1e308)}, "light-strength"),
        ({"truth": np.ones((20, 20))}, "frame-mismatch"),
        ({"truth": np.ones((19, 20, 3))}, "truth-size"),
    ],
)
def test_archives_that_do_not_fit(refused, archive, changes, code):
    rewrite(archive, **changes)
    assert refused(archive)[0] == code


def test_a_mask_in_color_is_a_mask(call, archive, tmp_path):
    """(H, W, 3), and zeros and ones, mean what they mean in a picture."""
    mask = ps.load(archive).mask
    for values in (np.repeat(mask[..., None] * 255, 3, axis=2), mask.astype(np.uint8), mask * 1.0):
        rewrite(archive, mask=values)
        np.testing.assert_array_equal(ps.load(archive).mask, mask)


def test_an_array_renamed_to_an_archive(refused, archive):
    np.save(archive.with_suffix(".npy"), np.ones(3))
    archive.with_suffix(".npy").replace(archive)
    assert refused(archive) == ("unreadable-file", "capture.npz")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no archive", None])
def test_damaged_states_dictionaries_and_results(call, fault, refused, archive, tmp_path, content):
    small = ("--set", "patch=4x4x3", "--set", "max_iter=2")
    state = tmp_path / "state.npz"
    words = ("solve", archive, "--method", "dlnv", *small, "--no-report", "--checkpoint", state)
    assert call(*words, "--out", tmp_path / "solved")[0] == 0
    for file, option in (
        (state, ("--resume", state)),
        (
            tmp_path / "solved" / "dictionary.npy",
            ("--set", f"dictionary={tmp_path}/solved/dictionary.npy"),
        ),
    ):
        file.write_bytes(file.read_bytes()[:-100] if content is None else content)
        assert refused(archive, *option, *small, method="dlnv")[1] == file.name
    for name in ("normals.npy", "summary.json", "extras.npz", "mask.npy"):
        spoilt = shutil.copytree(tmp_path / "solved", tmp_path / "again") / name
        spoilt.write_bytes(spoilt.read_bytes()[:-100] if content is None else content)
        assert name in fault("mesh", tmp_path / "again")
        shutil.rmtree(tmp_path / "again")


def test_a_state_of_other_parameters(call, refused, archive, tmp_path):
    state = tmp_path / "state.npz"
    small = ("--set", "patch=4x4x3", "--set", "max_iter=2")
    words = (
        "solve",
        archive,
        "--method",
        "dlnv",
        *small,
        "--no-report",
        "--no-surface",
        "--checkpoint",
        state,
    )
    assert call(*words, "--out", tmp_path / "solved")[0] == 0
    again = (*small, "--resume", state)
    other = refused(archive, *again, "--set", "precision=double", method="dlnv")
    assert other == ("state-does-not-fit", state.name)
    rewrite(state, normals=np.full((5, 3), np.nan))
    assert refused(archive, *again, method="dlnv") == ("damaged-state", state.name)


@pytest.mark.parametrize(
    "name", [b"caf\xe9", b"\x1b]0;owned\x07\x1b[2J", "\u202efdp".encode(), b"[/red]x"]
)
def test_folder_names_of_any_bytes(call, diligent, tmp_path, name):
    try:
        odd = diligent.rename(
            Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name.replace(b"/", b"")))
        )
    except OSError:
        pytest.skip("this file system wants names in UTF-8")
    (odd / "photostereo.json").unlink()
    code, said, error = call("solve", odd, "--out", tmp_path / "out", "--method", "ls")
    assert code == 0, error
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    assert os.fsencode(summary["capture"]) == name.replace(b"/", b"")
    for words in (
        ("info", odd),
        ("info", odd, "--json"),
        ("info", odd / "absent"),
        ("compare", odd, "--methods", "x"),
    ):
        _, more, problem = call(*words)
        said, error = said + more, error + problem
    for text in (said, error):
        text.encode("utf-8")
        assert not any(letter in text for letter in "\x1b\x07\u202e")


def test_true_normals_without_components(fault, diligent):
    height, width = cv2.imread(str(diligent / "mask.png"), cv2.IMREAD_GRAYSCALE).shape
    savemat(diligent / "Normal_gt.mat", {"Normal_gt": np.ones((height, width))})
    for words in (("info", diligent), ("solve", diligent, "--method", "ls")):
        assert fault(*words) == ("frame-mismatch", "capture")


def test_names_in_tables_are_words_too() -> None:
    """A file name is neither an order to the terminal nor markup."""
    from types import SimpleNamespace

    from photostereo.cli.lights import lights_table
    from photostereo.cli.terminal import text_table
    from photostereo.lights.lights import Lights

    name = "\x1b]0;owned\x07[/red]\u202e.jpg"
    calibration = SimpleNamespace(
        files=(name,),
        lights=Lights(
            [[0.0, 0.0, 1.0]],
            expected_error=[1.0],
            source="shiny ball",
            strengths_source="matte ball",
        ),
        suspects=(0,),
    )
    console = Console(record=True, width=200, file=io.StringIO())
    console.print(lights_table(calibration))
    console.print(text_table(["result", name], [[name, "1.0°"]]))
    said = console.export_text()
    assert not any(letter in said for letter in "\x1b\x07\u202e")
    assert said.count("[/red]") == 3


def test_names_that_no_file_can_have(fault, diligent, tmp_path):
    long = "n" * 300
    for words in (
        ("solve", diligent, "--method", "ls", "--out", tmp_path / long),
        ("solve", tmp_path / long),
        ("info", tmp_path / long),
        ("mesh", tmp_path / long),
        ("view", tmp_path / long),
        ("solve", diligent, "--mask", tmp_path / long),
        ("solve", diligent, "--lights", long),
        (
            "solve",
            diligent,
            "--method",
            "dlnv",
            "--resume",
            tmp_path / long,
            "--out",
            tmp_path / "out",
        ),
        ("sweep", tmp_path / long, "--out", tmp_path / "out"),
    ):
        assert fault(*words)[0] != "internal"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["capture"]


def test_seeds_are_not_negative(fault, diligent, tmp_path):
    for words in (
        ("solve", diligent, "--images", 4),
        ("corrupt", diligent, "--gaussian", 0.1),
    ):
        assert fault(*words, "--seed", -1, "--out", tmp_path / "out")[0] == "usage"
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[" * 100_000, "invalid-json"),
        ("[[" + "9" * 5000 + ",0,1]]", "invalid-json"),
        ('{"lights": [[1e400, 0, 1], [0, 1, 1], [1, 0, 1]]}', "light-not-finite"),
        ('{"lights": 5}', "light-file-shape"),
        ("null", "light-file-empty"),
    ],
)
def test_light_files_in_json(refused, diligent, tmp_path, text, code):
    (tmp_path / "lights.json").write_text(text)
    assert refused(diligent, "--lights", tmp_path / "lights.json") == (code, "lights.json")


def test_a_nul_among_the_names(refused, diligent):
    names = (diligent / "filenames.txt").read_text().splitlines()
    (diligent / "filenames.txt").write_text("\n".join(["a\0b.png", *names[1:]]))
    assert refused(diligent)[0] == "missing-file"


@pytest.mark.parametrize("text", ['{"notes": 5}', "5", "[]", '{"notes": "'])
def test_descriptions_that_describe_nothing(refused, diligent, text):
    (diligent / "photostereo.json").write_text(text)
    assert refused(diligent)[1] == "photostereo.json"


def test_truth_that_is_no_array_of_numbers(refused, diligent):
    savemat(diligent / "Normal_gt.mat", {"Normal_gt": np.array([1.0, {"a": 2}], dtype=object)})
    assert refused(diligent) == ("unreadable-file", "Normal_gt.mat")


def test_lights_of_any_length_are_directions(call, diligent, tmp_path):
    assert (
        call(
            "solve",
            diligent,
            "--out",
            tmp_path / "a",
            "--method",
            "ls",
            "--no-report",
            "--no-surface",
        )[0]
        == 0
    )
    lights = np.loadtxt(diligent / "light_directions.txt")
    np.savetxt(diligent / "light_directions.txt", lights * 1e200)
    assert (
        call(
            "solve",
            diligent,
            "--out",
            tmp_path / "b",
            "--method",
            "ls",
            "--no-report",
            "--no-surface",
        )[0]
        == 0
    )
    first, second = (np.load(tmp_path / name / "normals.npy") for name in "ab")
    np.testing.assert_allclose(first, second, atol=1e-6)


@pytest.mark.parametrize("value", ["1e308", "1e-300", "0", "-1", "nan"])
def test_strengths_that_no_light_has(refused, diligent, value):
    (diligent / "light_intensities.txt").write_text("\n".join([f"{value} {value} {value}"] * 6))
    assert refused(diligent) == ("light-strength", "light_intensities.txt")


@pytest.mark.parametrize("value", ["inf", "nan", "-inf", "9" * 5000])
@pytest.mark.parametrize("name", ["lam", "mu", "q", "tol"])
def test_parameters_are_finite(refused, diligent, name, value):
    assert refused(diligent, "--set", f"{name}={value}", method="dlnv")[0] == "bad-parameter"


def test_values_beyond_all_numbers_leave_no_result(small):
    """Whatever becomes of them inside: a result is finite, or there is none."""
    with np.errstate(all="ignore"):
        for lam, mu in ((1e300, 0.1), (1.0, 1e200)):
            try:
                result = ps.solve(
                    small, "dlnv", lam=lam, mu=mu, q=1e300, patch=(4, 4, 3), max_iter=2
                )
            except ps.PhotostereoError:
                continue
            assert np.isfinite(result.normals).all() and np.isfinite(result.albedo).all()


def test_a_black_capture_is_told(refused, diligent):
    for file in diligent.glob("0*.png"):
        cv2.imwrite(str(file), np.zeros((20, 20, 3), np.uint16))
    assert refused(diligent)[0] == "black-photographs"


def declare(path: Path, width: int, height: int) -> None:
    """Give a PNG another size in its header, with a valid checksum."""
    data = bytearray(path.read_bytes())
    struct.pack_into(">II", data, 16, width, height)
    struct.pack_into(">I", data, 29, zlib.crc32(bytes(data[12:29])))
    path.write_bytes(bytes(data))


def test_pictures_that_declare_more_than_they_hold(refused, diligent):
    declare(diligent / "001.png", 30_000, 30_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert refused(diligent) == ("damaged-image", "001.png")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


def test_pictures_that_are_too_large_for_the_memory(refused, diligent, monkeypatch):
    """A true picture of 8100 × 8100 pixels in one color: 70 kB on disk."""
    rows = zlib.compress(bytes(8101 * 8100), 9)
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", 8100, 8100, 8, 0, 0, 0, 0)),
        (b"IDAT", rows),
        (b"IEND", b""),
    ]
    body = (
        struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in chunks
    )
    (diligent / "001.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(body))
    monkeypatch.setattr(memory, "available_memory", lambda: 100_000_000)
    assert refused(diligent)[0] == "not-enough-memory"


@pytest.mark.parametrize("suffix", [".jpg", ".bmp", ".pgm", ".tif"])
def test_other_formats_that_declare_more(refused, diligent, tmp_path, suffix):
    folder = tmp_path / "plain"
    folder.mkdir()
    for number in range(6):
        cv2.imwrite(str(folder / f"{number}{suffix}"), np.full((20, 20), 60 + number, np.uint8))
    shutil.copy(diligent / "light_directions.txt", folder / "lights.txt")
    data = bytearray((folder / f"3{suffix}").read_bytes())
    if suffix == ".jpg":
        place = data.find(b"\xff\xc0")
        struct.pack_into(">HH", data, place + 5, 60_000, 60_000)
    elif suffix == ".bmp":
        struct.pack_into("<ii", data, 18, 30_000, 30_000)
    elif suffix == ".pgm":
        data = bytearray(bytes(data).replace(b"20 20", b"90000 90000"))
    else:
        place = data.find(struct.pack("<HHII", 257, 3, 1, 20)[:6])
        assert place > 0
        struct.pack_into("<HII", data, place + 2, 4, 1, 2_000_000_000)
    (folder / f"3{suffix}").write_bytes(bytes(data))
    assert refused(folder)[1] == f"3{suffix}"


def test_messages_are_not_broken_into_lines(diligent, tmp_path):
    """A path with blanks can be copied from an error as it is, in a terminal of any width."""
    place = tmp_path / "a folder with many blanks in its name" / ("long " * 20).strip()
    done = subprocess.run(
        [sys.executable, "-m", "photostereo", "solve", str(place)],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "40"},
    )
    assert (
        done.returncode == 2 and str(place) in done.stderr.splitlines()[-1]
    )  # a busy machine also shows progress


@pytest.mark.parametrize("circle", ["nan,1,1", "8,8,1e9", "8,8,inf", "0,0,-1", "x", "1,2"])
def test_circles_that_are_in_no_photograph(call, diligent, tmp_path, circle):
    code, _, error = call("lights", diligent, "--circle", circle, "--out", tmp_path / "lights.csv")
    assert code == 2 and error.startswith("Error: ") and not (tmp_path / "lights.csv").exists()


@pytest.mark.parametrize("ratio", ["1e9", "-1e9", "nan", "inf"])
def test_noise_beyond_all_ratios(fault, diligent, tmp_path, ratio):
    assert (
        fault("corrupt", diligent, "--poisson", ratio, "--out", tmp_path / "out")[0] == "bad-noise"
    )
    assert not (tmp_path / "out").exists()


def test_focal_lengths_of_no_lens(call, diligent, tmp_path):
    for length in ("inf", "1e308", "9" * 20):
        code, _, _ = call(
            "lights",
            diligent,
            "--circle",
            "10,10,8",
            "--out",
            tmp_path / "l.csv",
            "--focal",
            length,
        )
        assert code == 2 and not (tmp_path / "l.csv").exists()


def floats(folder: Path, pictures: list[np.ndarray]) -> Path:
    folder.mkdir()
    for number, picture in enumerate(pictures):
        cv2.imwrite(str(folder / f"{number}.tiff"), picture.astype(np.float32))
    np.savetxt(folder / "lights.txt", dome_lights(6)[: len(pictures)])
    return folder


def test_photographs_that_are_negative_thin_or_beyond_measure(call, tmp_path):
    rng = np.random.default_rng(0)
    negative = floats(tmp_path / "negative", [-rng.random((16, 16)) for _ in range(5)])
    assert call("info", negative)[0] == 0
    assert call("solve", negative, "--method", "ls", "--out", tmp_path / "out")[0] == 2
    thin = floats(tmp_path / "thin", [rng.random((40, 1)) for _ in range(5)])
    assert call("info", thin, "--mask", "auto")[0] in (0, 2)
    huge = floats(
        tmp_path / "huge", [np.full((4, 4), -3e38), *(np.full((4, 4), 0.5) for _ in range(4))]
    )
    code, _, error = call("solve", huge, "--method", "rpca", "--out", tmp_path / "out")
    assert code in (0, 2) and ("0.tiff" in error or code == 0)


def test_a_terminal_without_our_characters(diligent):
    words = [sys.executable, "-m", "photostereo", "info", str(diligent)]
    done = subprocess.run(
        words, env={**os.environ, "PYTHONIOENCODING": "ascii"}, capture_output=True, check=False
    )
    assert done.returncode == 0 and done.stdout.isascii()


def test_lights_as_json_are_read_back(call, diligent, tmp_path):
    target = tmp_path / "l.json"
    code, _, _ = call("lights", diligent, "--circle", "10,10,8", "--out", target)
    if code == 0:
        assert len(json.loads(target.read_text())) == 6
        assert call("info", diligent, "--lights", target)[0] == 0
        (tmp_path / "l.json").unlink()
        code, _, _ = call("lights", diligent, "--circle", "10,10,8", "--out", target)
        assert code == 2 and not target.exists()  # the picture is in the way: nothing is written


def test_an_archive_takes_no_memory_that_it_may_not_use(tmp_path, monkeypatch) -> None:
    """A small one that is too large is refused, a large one waits on disk."""
    import tracemalloc

    from photostereo.io import safe

    lights = np.array([[0, 0, 1], [0.5, 0, 1], [0, 0.5, 1], [-0.5, 0, 1]])
    file = tmp_path / "zeros.npz"
    np.savez_compressed(file, images=np.zeros((4, 1500, 1500), np.uint8), lights=lights)
    with pytest.raises(ps.CaptureError) as error:
        ps.Pipeline(file, method="ls", memory="30MB").capture  # noqa: B018
    assert (
        error.value.code == "not-enough-memory"
        and error.value.values["needed"] == 4 * 4 * 1500 * 1500
    )
    monkeypatch.setattr(safe, "SPOOLED", 1 << 20)
    folder = tmp_path / "zeros"
    folder.mkdir()
    for number in range(4):
        cv2.imwrite(str(folder / f"{number}.png"), np.zeros((1500, 1500), np.uint8))
    rows = [",".join(map(str, light)) for light in lights]
    (folder / "lights.csv").write_text("\n".join(["x,y,z", *rows]))
    peaks = []
    for place in (folder, file):
        tracemalloc.start()
        capture = ps.Pipeline(place, method="ls", memory="30MB").capture
        assert capture.frame == (1500, 1500) and not capture.in_memory
        assert not any(frame.any() for frame in capture.photographs.frames())
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # Both are examined in the same way; a photograph in floating point is 9 MB.
    assert peaks[1] < peaks[0] + 4 * 9_000_000


def test_too_many_pixels_are_diagnosed_from_a_part_of_them(monkeypatch) -> None:
    from photostereo.pipeline import pipeline as module

    seen = []
    monkeypatch.setattr(module, "diagnose", lambda capture, control: seen.append(capture.frame))
    flat = ps.Capture(images=np.full((4, 1100, 1100), 0.5), lights=dome_lights(4), name="flat")
    for amount in ("1GB", "60MB"):
        ps.Pipeline(flat, method="ls", memory=amount).diagnosis  # noqa: B018
    assert seen == [(1100, 1100), (550, 550)]


def test_a_full_disk_keeps_the_old_lights(call, diligent, tmp_path, monkeypatch):
    """Table and picture are complete before either takes its place."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("photostereo.io.png.write_bytes", full)
    out = tmp_path / "l.csv"
    out.write_text("old")
    code, said, _ = call(
        "lights", diligent, "--circle", "10,10,9", "--out", out, "--force", "--json"
    )
    assert code == 2 and json.loads(said)["error"]["code"] == "cannot-write"
    assert out.read_text() == "old" and sorted(p.name for p in tmp_path.iterdir()) == [
        "capture",
        "l.csv",
    ]


def test_what_is_left_out_already_is_no_remedy(call, diligent, tmp_path):
    words = ("solve", diligent, "-m", "ls", "--memory", "1MB", "--out", tmp_path / "out")
    assert "--no-surface" in call(*words)[2]
    assert "--no-surface" not in call(*words, "--no-surface", "--no-report")[2]


def test_a_sample_too_small_for_a_material_is_refused_before_the_solve(
    call, diligent, tmp_path, monkeypatch
):
    monkeypatch.setattr(
        "photostereo.pipeline.pipeline.Pipeline.solution", property(lambda _: pytest.fail("solved"))
    )
    code, said, _ = call(
        "solve", diligent, "-m", "ls", "--material", "--out", tmp_path / "out", "--json"
    )
    assert code == 2 and json.loads(said)["error"]["code"] == "sample-too-small"


@pytest.mark.filterwarnings("error")
def test_the_srgb_curve_is_silent_beyond_its_range():
    values = linear_from_srgb(np.array([-1.0, 0.5, 1e38], np.float32))
    assert values[0] < 0 and values[1] == pytest.approx(0.214, abs=1e-3)


def test_a_library_that_does_not_fit_into_memory(capsys):
    problem = ImportError("libopenblas.so: failed to map segment from shared object")
    assert shell.end_with(problem, as_json=True) == 2
    assert json.loads(capsys.readouterr().out)["error"]["kind"] == "memory"
