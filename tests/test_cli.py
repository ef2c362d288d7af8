"""The command line as a user meets it: what it writes, what it says, and that bad input ends in one clear
paragraph."""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import cv2
import numpy as np
import pytest

from photostereo import cli, load
from photostereo.capture.layouts.diligent import write_diligent
from photostereo.example import owl
from photostereo.io.png import write_png
from photostereo.report.wording import duration
from photostereo.results.choice import FORMAT_NAMES
from photostereo_lab.scenes import dome_lights, render_scene

#: The values of an error about a file that somebody else wrote.
MINE = {"reason": "was not written by photostereo"}


def run(*words: object, monkeypatch: pytest.MonkeyPatch, capsys) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of one call, in this process."""
    monkeypatch.setattr(sys, "argv", ["photostereo", *map(str, words)])
    monkeypatch.setenv("COLUMNS", "200")
    code = 0
    try:
        cli.main()
    except SystemExit as stop:
        code = int(stop.code or 0)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def call(monkeypatch, capsys):
    return lambda *words: run(*words, monkeypatch=monkeypatch, capsys=capsys)


@pytest.fixture
def fault(call):
    """The code, the name of the file and the values of the error that a command must end with."""

    def run(*words: object) -> tuple[str, str, dict[str, object]]:
        code, said, _ = call(*words, "--json")
        assert code == 2
        error = json.loads(said)["error"]
        return error["code"], Path(error["file"] or "").name, error["values"]

    return run


@pytest.fixture(scope="module")
def scene_folder(tmp_path_factory) -> Path:
    """A small synthetic capture on disk."""
    capture = render_scene("vase", size=48, lights=dome_lights(8))
    return write_diligent(capture, tmp_path_factory.mktemp("scenes") / "vase")


@pytest.fixture
def plain_folder(tmp_path) -> Path:
    """Photographs with a lights.csv, as a person with a camera would have them."""
    folder = tmp_path / "my photos"
    folder.mkdir()
    rng = np.random.default_rng(0)
    rows = ["file,x,y,z"]
    for index, (x, y) in enumerate([(0, 0), (0.5, 0), (0, 0.5), (-0.5, 0.1), (0.1, -0.5)]):
        picture = (rng.uniform(0.2, 0.9, size=(40, 44)) * 65535).astype(np.uint16)
        write_png(folder / f"img_{index}.png", picture)
        rows.append(f"img_{index}.png,{x},{y},1")
    (folder / "lights.csv").write_text("\n".join(rows) + "\n")
    return folder


def test_help_loads_nothing_heavy_and_lists_the_commands() -> None:
    """So that it is there at once."""
    result = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "photostereo", "--help"],
        check=True,
        capture_output=True,
        text=True,
    )
    loaded = {
        line.rpartition("|")[2].strip().partition(".")[0] for line in result.stderr.splitlines()
    }
    assert "typer" in loaded
    assert not loaded & {
        "numpy",
        "scipy",
        "numba",
        "cv2",
        "tifffile",
        "trimesh",
        "matplotlib",
        "distributed",
    }
    for command in (
        "demo",
        "info",
        "solve",
        "compare",
        "methods",
        "corrupt",
        "mesh",
        "view",
        "reproduce",
    ):
        assert command in result.stdout


def test_help_of_solve_is_short_and_in_groups(call) -> None:
    """Fewer than twenty options before the panel of advanced ones; flags have no type."""
    code, said, _ = call("solve", "--help")
    assert code == 0
    places = [
        said.index(f"─ {panel} ")
        for panel in ("Input", "Lights", "Method", "Output", "Resources", "Advanced")
    ]
    assert places == sorted(places)
    shown = [
        line for line in said[: places[-1]].splitlines() if line.lstrip("│* ").startswith("--")
    ]
    assert 10 < len(shown) < 20
    assert not any("<bool>" in line and "--help" not in line for line in said.splitlines())


def test_every_option_of_the_catalog_belongs_to_a_command() -> None:
    from photostereo.cli.command import PANELS, _catalog, command
    from photostereo.cli.root import commands
    from photostereo.results.choice import LEAST_TEXELS, MOST_TEXELS

    used = {
        function.__name__: set(inspect.signature(command(function)).parameters)
        for _, function in commands()
    }
    every = set().union(*used.values())
    for table, entries in _catalog().items():
        assert set(entries) <= used.get(table, every), table
    texels = _catalog()["Advanced"]["texels"]
    assert (texels["min"], texels["max"]) == (LEAST_TEXELS, MOST_TEXELS) and set(PANELS) <= set(
        _catalog()
    )


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("cli", "numpy numba scipy cv2 matplotlib trimesh torch dask"),
        (
            "pipeline.pipeline",
            "numba scipy matplotlib trimesh torch dask",
        ),  # Numba is imported meanwhile
    ],
)
def test_start_imports_nothing_heavy(module: str, heavy: str) -> None:
    code = f"import sys, photostereo.{module}; print([name for name in {heavy.split()} if name in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert result.stdout.strip() == "[]"


def test_solve_writes_what_the_design_lists(call, scene_folder, tmp_path) -> None:
    out = tmp_path / "out"
    code, said, _ = call("solve", scene_folder, "--method", "pls", "--out", out, "--set", "p=3")
    assert code == 0
    names = {path.name for path in out.iterdir()}
    assert names >= {
        "normals.npy", "normals.png", "albedo.npy", "albedo.png", "depth.npy", "mesh.ply", "mesh.glb", "summary.json",
        "report.html",
    }  # fmt: skip
    summary = json.loads((out / "summary.json").read_text())
    assert f"Expected error: {summary['expected_error']['words']}" in said
    assert {
        "capture",
        "method",
        "parameters",
        "seconds",
        "iterations",
        "status",
        "cost",
        "versions",
        "angular_error",
    } <= set(summary)
    assert summary["parameters"]["p"] == 3 and summary["method"] == "pls"
    assert f"{summary['angular_error']['mean']:.2f}" in said
    normals = np.load(out / "normals.npy")
    capture = load(scene_folder)
    assert normals.dtype == np.float32 and normals.shape == (*capture.frame, 3)
    picture = cv2.imread(str(out / "normals.png"), cv2.IMREAD_UNCHANGED)
    assert picture.dtype == np.uint16 and picture.shape == normals.shape
    assert str(out) in said


@pytest.mark.parametrize("options", [(), ("--pixel-size", "0.1mm"), ("--no-surface",)])
def test_an_unknown_scale_is_said(call, scene_folder, tmp_path, options) -> None:
    _, said, _ = call(
        "solve", scene_folder, "-m", "ls", "-o", tmp_path / "out", "--no-report", *options
    )
    assert ("--pixel-size" in said) is (not options)


def test_times_agree_and_add_up(call, scene_folder, tmp_path) -> None:
    _, said, _ = call("solve", scene_folder, "-m", "ls", "-o", tmp_path / "out")
    total = float(re.search(r"([\d.]+) s in total", said)[1])
    parts = [float(spent) for spent in re.findall(r"([\d.]+) s", re.search(r"Time: (.*)", said)[1])]
    seconds = json.loads((tmp_path / "out" / "summary.json").read_text())["seconds"]
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert sum(parts) == pytest.approx(total, abs=0.06 * len(parts) + 0.06)
    assert total == pytest.approx(sum(seconds.values()), abs=0.051)
    assert f"<dt>Time</dt><dd>{duration(sum(seconds.values()))}</dd>" in page
    assert all(
        f"<dt>seconds: {stage}</dt><dd>{spent:.2f}</dd>" in page for stage, spent in seconds.items()
    )
    _, said, _ = call(
        "compare", scene_folder, "--methods", "ls,pls", "-o", tmp_path / "both", "--json"
    )
    page = (tmp_path / "both" / "report.html").read_text(encoding="utf-8")
    assert all(f'data-value="{row["seconds"]}"' in page for row in json.loads(said)["methods"])


def test_flip_y_gives_directx(call, scene_folder, tmp_path) -> None:
    for name, extra in (("gl", []), ("dx", ["--flip-y"])):
        code, _, _ = call(
            "solve",
            scene_folder,
            "-m",
            "ls",
            "-o",
            tmp_path / name,
            "--no-surface",
            "--no-report",
            *extra,
        )
        assert code == 0
    gl, dx = (
        cv2.imread(str(tmp_path / n / "normals.png"), cv2.IMREAD_UNCHANGED).astype(int)
        for n in ("gl", "dx")
    )
    inside = gl.any(axis=2)
    assert np.abs(gl[inside, 1] + dx[inside, 1] - 65535).max() <= 1  # green
    assert np.array_equal(gl[inside][:, [0, 2]], dx[inside][:, [0, 2]])


def test_existing_out_is_kept_without_force(call, fault, scene_folder, tmp_path) -> None:
    out = tmp_path / "out"
    words = ("solve", scene_folder, "-m", "ls", "-o", out, "--no-surface", "--no-report")
    assert call(*words, "--flip-y")[0] == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    assert fault(*words)[:2] == ("output-exists", "out")
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert call(*words, "--force")[0] == 0
    assert (out / "normals.png").read_bytes() != before["normals.png"]


def test_force_deletes_nothing_that_is_not_ours(call, fault, scene_folder, tmp_path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "summary.json").write_text("{}")
    (mine / "thesis.tex").write_text("years")
    words = ("solve", scene_folder, "-m", "ls", "--no-surface", "--no-report", "--force", "-o")
    assert fault(*words, mine)[::2] == ("not-our-folder", MINE | {"name": "summary.json"})
    assert (mine / "thesis.tex").read_text() == "years"
    assert call(*words, tmp_path / "out")[0] == 0
    (tmp_path / "out" / "thesis.tex").write_text("years")
    assert fault(*words, tmp_path / "out")[::2] == ("foreign-file", MINE | {"name": "thesis.tex"})


def test_files_in_use_are_never_inside_what_is_replaced(
    call, fault, scene_folder, tmp_path
) -> None:
    """Neither a mask, lights, a dictionary nor a state that a run reads or writes."""
    out = tmp_path / "out"
    words = (
        "solve",
        scene_folder,
        "--method",
        "dlnv",
        "--set",
        "max_iter=1",
        "--set",
        "patch=4x4x3",
    )
    words = (*words, "--no-surface", "--no-report", "-o", out, "--force")
    assert call(*words)[0] == 0
    for choice in (
        ("--mask", out / "normals.png"),
        ("--lights", out / "summary.json"),
        ("--resume", out / "extras.npz"),
        ("--checkpoint", out / "state.npz"),
        ("--set", f"dictionary={out / 'dictionary.npy'}"),
    ):
        assert fault(*words, *choice)[0] == "output-contains-input"
        assert (out / "dictionary.npy").is_file()


def test_a_checkpoint_overwrites_nothing_but_a_checkpoint(
    call, fault, scene_folder, tmp_path
) -> None:
    photograph = tmp_path / "photograph.png"
    photograph.write_bytes(b"mine")
    words = (
        "solve",
        scene_folder,
        "--method",
        "dlnv",
        "--set",
        "max_iter=1",
        "--set",
        "patch=4x4x3",
    )
    words = (
        *words,
        "--no-surface",
        "--no-report",
        "--force",
        "-o",
        tmp_path / "out",
        "--checkpoint",
    )
    assert fault(*words, photograph)[:2] == ("checkpoint-exists", "photograph.png")
    assert photograph.read_bytes() == b"mine"
    assert call(*words, tmp_path / "state.chk")[0] == 0
    assert call(*words, tmp_path / "state.chk")[0] == 0
    assert not list(tmp_path.glob("*partial*")) and not list(tmp_path.glob(".*"))


def test_quiet_says_nothing(call, scene_folder, tmp_path) -> None:
    code, said, error = call(
        "solve", scene_folder, "-m", "ls", "-o", tmp_path / "o", "-q", "--no-surface", "--no-report"
    )
    assert (code, said, error) == (0, "", "")


def test_images_and_seed_choose_photographs(call, scene_folder, tmp_path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        code, said, _ = call(
            "solve", scene_folder, "-m", "ls", "-o", tmp_path / name, "--images", 4, "--seed", seed,
            "--no-surface", "--no-report", "--json",
        )  # fmt: skip
        assert code == 0 and json.loads(said)["photographs"]["count"] == 4
    a, b, c = (np.load(tmp_path / n / "normals.npy") for n in "abc")
    assert np.array_equal(a, b) and not np.array_equal(a, c)


def test_info_describes(call, scene_folder) -> None:
    code, said, _ = call("info", scene_folder, "--json")
    facts = json.loads(said)
    assert facts["photographs"] == 8 and facts["truth"] == "normals"
    assert (
        facts["layout"] == "DiLiGenT"
        and facts["size"].startswith("48 × 48 ")
        and facts["bit_depth"] == 16
    )
    code, said, _ = call("info", scene_folder)
    assert code == 0 and facts["name"] in said
    low, high = (90 - tilt for tilt in reversed(facts["lights_tilt_degrees"]))
    assert f"Lights: {low:.0f}° to {high:.0f}° above the image plane" in said


def test_compare_writes_a_table_and_pictures(call, scene_folder, tmp_path) -> None:
    out = tmp_path / "cmp"
    code, said, _ = call("compare", scene_folder, "--methods", "ls, pls", "-o", out)
    assert code == 0 and "pls" in said
    rows = json.loads((out / "comparison.json").read_text())
    assert [row["method"] for row in rows] == ["ls", "pls"]
    assert (out / "comparison.csv").exists() and (out / "report.html").exists()
    picture = cv2.imread(str(out / "comparison.png"))
    assert picture.shape[1] == 3 * 48


def test_compare_takes_parameters_of_each_method_and_writes_meshes(
    call, fault, scene_folder, tmp_path
) -> None:
    out = tmp_path / "cmp"
    code, said, _ = call(
        "compare", scene_folder, "--methods", "ls,pls", "--set", "pls.p=3", "--meshes", "-o", out
    )
    assert code == 0
    assert str(out / "report.html") in said.replace("\n", "")
    assert json.loads((out / "pls" / "summary.json").read_text())["parameters"]["p"] == 3
    assert json.loads((out / "ls" / "summary.json").read_text())["parameters"] == {}
    for method in ("ls", "pls"):
        assert (out / method / "mesh.glb").stat().st_size > 1000
        assert f'href="{method}/mesh.glb"' in (out / "report.html").read_text()
    for wrong in ("p=3", "sbl.lam=1", ".x=1", "pls.=1"):
        code, _, error = call(
            "compare", scene_folder, "--methods", "ls,pls", "--set", wrong, "-o", tmp_path / "x"
        )
        assert code == 2 and "--set METHOD.NAME=VALUE" in " ".join(error.split())
    words = (
        "compare",
        scene_folder,
        "--methods",
        "ls",
        "--set",
        "ls.nothing=1",
        "-o",
        tmp_path / "x",
    )
    assert fault(*words)[0] == "unknown-parameter" and not (tmp_path / "x").exists()


def test_what_is_in_the_way_is_reported_before_the_work(
    call, scene_folder, tmp_path, monkeypatch
) -> None:
    from photostereo.pipeline import capture_stages

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        capture_stages, "examine", lambda *_, **__: pytest.fail("photographs were opened")
    )
    name = f"{Path(scene_folder).name.removesuffix('PNG')}-compare"
    (tmp_path / name).mkdir()
    (tmp_path / name / "notes.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "a.pdf").write_text("mine", encoding="utf-8")
    for words in (
        ("compare", scene_folder, "--methods", "ls"),
        ("figure", "no-results", "-o", "a.pdf"),
    ):
        code, said, _ = call(*words, "--json")
        assert (code, json.loads(said)["error"]["code"]) == (2, "output-exists")


def test_compare_without_truth_prints_the_figure_of_the_page(call, scene_folder, tmp_path) -> None:
    import shutil

    bare, out = tmp_path / "bare", tmp_path / "cmp"
    shutil.copytree(scene_folder, bare)
    (bare / "Normal_gt.mat").unlink()
    code, said, _ = call("compare", bare, "--methods", "ls,pls", "-o", out)
    assert code == 0 and "unexplained" in said and "mean error" not in said
    for row in json.loads((out / "comparison.json").read_text()):
        figure = f"{100 * row['unexplained']:.1f} %"
        assert figure in said and figure in (out / "report.html").read_text()
    assert not list(out.glob("*/mesh.*"))


def test_corrupt_reaches_the_signal_to_noise_ratio_asked_for(
    call, fault, scene_folder, tmp_path
) -> None:
    out = tmp_path / "noisy"
    code, said, _ = call(
        "corrupt", scene_folder, "--poisson", 5, "--images", 6, "--seed", 3, "--out", out
    )
    assert code == 0
    measured = float(said.split("ratio:")[1].split("dB")[0])
    assert measured == pytest.approx(5.0, abs=0.3)
    assert len(load(out)) == 6
    assert fault("corrupt", scene_folder, "--out", tmp_path / "x")[0] == "nothing-to-do"


def test_info_and_compare_know_the_size_of_a_pixel_for_lights_in_millimeters(
    call, scene_folder, tmp_path
) -> None:
    lights, out = tmp_path / "near.csv", tmp_path / "out"
    positions = 300 * load(scene_folder).lights.directions
    rows = [f"{number:03d}.png,{x},{y},{z}" for number, (x, y, z) in enumerate(positions, 1)]
    lights.write_text("\n".join(["file,mm_x,mm_y,mm_z", *rows]), encoding="utf-8")
    code, said, _ = call("info", scene_folder, "--lights", lights)
    assert (
        code == 0
        and "--pixel-size 0.1mm" in said
        and "no light file" not in said
        and "no mask" not in said
    )
    code, said, _ = call("info", scene_folder, "--lights", lights, "--pixel-size", "1mm", "--json")
    assert code == 0 and "near-lights" in json.loads(said)["note_codes"]
    words = (
        "--lights",
        lights,
        "--pixel-size",
        "1mm",
        "--methods",
        "ls",
        "--meshes",
        "--no-report",
    )
    assert call("compare", scene_folder, *words, "-o", out)[0] == 0
    assert json.loads((out / "ls" / "summary.json").read_text())["surface"]["unit"] == "mm"


def test_a_mask_does_not_need_the_size_of_a_pixel(call, scene_folder, tmp_path) -> None:
    capture = load(scene_folder)
    rows = ["file,mm_x,mm_y,mm_z"]
    for number, position in enumerate(300 * capture.lights.directions, 1):
        (tmp_path / f"{number:03d}.png").write_bytes(
            (scene_folder / f"{number:03d}.png").read_bytes()
        )
        rows.append(",".join([f"{number:03d}.png", *map(str, position)]))
    (tmp_path / "lights.csv").write_text("\n".join(rows), encoding="utf-8")
    assert call("mask", tmp_path)[0] == 0
    found = cv2.imread(str(tmp_path / "mask.png"), cv2.IMREAD_GRAYSCALE) > 0
    assert (found & capture.mask).sum() > 0.9 * (found | capture.mask).sum()


def test_methods_lists_all_and_details_one(call) -> None:
    from photostereo.solver.methods import method_names

    code, said, _ = call("methods")
    assert code == 0 and all(name in said for name in method_names())
    code, said, _ = call("methods", "pdlnv")
    assert code == 0 and "gamma" in said and "Citation" in said
    assert "true" in said and "True" not in said  # as --set expects it


def test_export_says_what_its_files_are_for(call, scene_folder, tmp_path) -> None:
    call("solve", scene_folder, "-m", "ls", "-o", tmp_path / "out", "--no-surface", "--no-report")
    for names in (("ptm",), tuple(set(FORMAT_NAMES) - {"material"})):  # the object is not flat
        _, said, _ = call(
            "export", tmp_path / "out", "--to", ",".join(names), "-o", tmp_path / f"{len(names)}"
        )
        assert len(said.splitlines()) == len(names) + 1 and all(
            name in said.lower() for name in names
        )


def test_mesh_again_with_other_options(call, scene_folder, tmp_path) -> None:
    out = tmp_path / "out"
    assert call("solve", scene_folder, "-m", "ls", "-o", out)[0] == 0
    assert 'href="mesh.glb"' in (out / "report.html").read_text(encoding="utf-8")
    code, _said, _ = call(
        "mesh", out, "--format", "stl,obj", "--pixel-size", 0.05, "--decimate", 500
    )
    assert code == 0
    assert (
        (out / "mesh.stl").exists()
        and (out / "mesh.obj").exists()
        and (out / "normals.npy").exists()
    )
    assert not (out / "mesh.glb").exists()
    page = (out / "report.html").read_text(encoding="utf-8")
    assert 'href="mesh.stl"' in page and "mesh.glb" not in page and 'id="photographs"' in page
    # Integrating takes milliseconds; a surface that is handed over takes none.
    assert json.loads((out / "summary.json").read_text())["surface"]["seconds"]["integrate"] > 1e-4
    code, _, _ = call(
        "mesh", out / "normals.png", "--out", tmp_path / "from-picture", "--format", "ply"
    )
    assert code == 0 and (tmp_path / "from-picture" / "mesh.ply").exists()


def test_mesh_into_its_own_folder_keeps_the_solve(call, fault, scene_folder, tmp_path) -> None:
    out = tmp_path / "out"
    assert call("solve", scene_folder, "-m", "ls", "-o", out, "--flip-y")[0] == 0
    kept = {
        name: (out / name).read_bytes() for name in ("normals.npy", "albedo.npy", "normals.png")
    }
    # Named again, with --force, it is the same folder: nothing of the solve may go, nor turn to OpenGL.
    assert call("mesh", out, "--out", out, "--force", "--format", "stl")[0] == 0
    assert {name: (out / name).read_bytes() for name in kept} == kept
    assert (out / "mesh.stl").exists() and not (out / "mesh.ply").exists()
    (out / "mesh.stl").write_text("retouched by hand")
    code, _, values = fault("mesh", out)
    assert (
        code == "foreign-file"
        and values["name"] == "mesh.stl"
        and values["reason"] != MINE["reason"]
    )
    assert (out / "mesh.stl").read_text() == "retouched by hand"


def test_force_never_takes_the_photographs(fault, scene_folder, tmp_path) -> None:
    capture = tmp_path / "mine"
    shutil.copytree(scene_folder, capture)
    before = sorted(path.name for path in capture.iterdir())
    for words in (
        ("solve", capture),
        ("compare", capture),
        ("corrupt", capture, "--gaussian", 0.1),
    ):
        assert fault(*words, "--out", capture, "--force")[:2] == ("output-contains-input", "mine")
        assert sorted(path.name for path in capture.iterdir()) == before


def test_a_misspelt_surface_method_is_told_at_once(fault, scene_folder, tmp_path) -> None:
    words = ("solve", scene_folder, "-o", tmp_path / "out", "--surface-method", "poison")
    assert fault(*words)[0] == "unknown-integration" and not (tmp_path / "out").exists()


def test_view_of_a_folder_with_results_in_it(tmp_path, monkeypatch) -> None:
    import webbrowser

    from photostereo.report import open_report

    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    for age, name in enumerate(("pdlnv", "ls")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "report.html").write_text("<p>")
        os.utime(tmp_path / name / "report.html", (1e9 - age, 1e9 - age))
    assert open_report(tmp_path) == tmp_path / "pdlnv" / "report.html"
    assert opened == [(tmp_path / "pdlnv" / "report.html").as_uri()]
    page = tmp_path / "photographs" / "results" / "best" / "report.html"  # as the app writes them
    page.parent.mkdir(parents=True)
    page.write_text("<p>")
    assert open_report(tmp_path / "photographs") == page


def test_a_terminated_solve_leaves_nothing_behind(scene_folder, tmp_path) -> None:
    """A job scheduler ends a job with SIGTERM."""
    words = [
        "solve",
        str(scene_folder),
        "-m",
        "dlnv",
        "--set",
        "max_iter=100000",
        "--set",
        "tol=0",
        "--out",
        "out",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "photostereo", *words],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob(".out.partial-*")):
        assert process.poll() is None, process.stderr.read().decode()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.terminate()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 143 and b"Terminated" in said
    assert list(tmp_path.iterdir()) == []


def test_demo_shows_where_things_are(call, tmp_path, monkeypatch) -> None:
    out = tmp_path / "demo"
    monkeypatch.setattr("photostereo.example.owl", partial(owl, step=3))
    code, said, _ = call("demo", "--out", out)
    assert code == 0
    for name in ("report.html", "normals.png", "mesh.glb"):
        assert (out / "dlnet" / name).exists()
    assert str(out / "dlnet" / "report.html") in said.replace("\n", "")
    errors = {
        name: json.loads((out / name / "summary.json").read_text())["angular_error"]["mean"]
        for name in ("ls", "pdlnv", "dlnet")
    }
    assert errors["dlnet"] < errors["pdlnv"] < errors["ls"]


# Bad input: one error, exit code 2, nothing written.


def spoil_nothing(folder: Path) -> list[str]:
    return []


def remove_lights(folder: Path) -> list[str]:
    (folder / "lights.csv").unlink()
    return []


def more_lights(folder: Path) -> list[str]:
    with (folder / "lights.csv").open("a") as file:
        file.write("img_9.png,0,0.2,1\n")
    return []


def another_size(folder: Path) -> list[str]:
    write_png(folder / "img_2.png", np.full((41, 44), 900, np.uint16))
    return []


def truncated(folder: Path) -> list[str]:
    data = (folder / "img_3.png").read_bytes()
    (folder / "img_3.png").write_bytes(data[: len(data) // 2])
    return []


def not_an_image(folder: Path) -> list[str]:
    (folder / "img_3.png").write_text("hello")
    return []


def not_finite(folder: Path) -> list[str]:
    import tifffile

    (folder / "img_1.png").unlink()
    values = np.ones((40, 44), np.float32)
    values[3, 4] = np.nan
    tifffile.imwrite(folder / "img_1.tif", values)
    text = (folder / "lights.csv").read_text().replace("img_1.png", "img_1.tif")
    (folder / "lights.csv").write_text(text)
    return []


def zero_light(folder: Path) -> list[str]:
    text = (folder / "lights.csv").read_text().replace("img_1.png,0.5,0,1", "img_1.png,0,0,0")
    (folder / "lights.csv").write_text(text)
    return []


def coplanar(folder: Path) -> list[str]:
    rows = ["file,x,y,z"] + [f"img_{i}.png,{0.2 * i},0,1" for i in range(5)]
    (folder / "lights.csv").write_text("\n".join(rows))
    return []


def two_photographs(folder: Path) -> list[str]:
    for i in (2, 3, 4):
        (folder / f"img_{i}.png").unlink()
    lines = (folder / "lights.csv").read_text().splitlines()
    (folder / "lights.csv").write_text("\n".join(lines[:3]))
    return []


def empty_mask(folder: Path) -> list[str]:
    write_png(folder / "mask.png", np.zeros((40, 44), np.uint8))
    return []


def mask_of_another_size(folder: Path) -> list[str]:
    write_png(folder / "mask.png", np.full((10, 44), 255, np.uint8))
    return []


def unknown_method(folder: Path) -> list[str]:
    return ["--method", "pdnlv"]


def unknown_parameter(folder: Path) -> list[str]:
    return ["--method", "pls", "--set", "peices=3"]


def ill_typed_parameter(folder: Path) -> list[str]:
    return ["--method", "pls", "--set", "p=two"]


def no_setting(folder: Path) -> list[str]:
    return ["--set", "p"]


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (remove_lights, "lights-not-estimated my photos"),
        (more_lights, "light-without-photograph lights.csv"),
        (another_size, "size-mismatch img_2.png"),
        (truncated, "damaged-image img_3.png"),
        (not_an_image, "damaged-image img_3.png"),
        (not_finite, "photograph-not-finite img_1.tif"),
        (zero_light, "light-zero lights.csv"),
        (coplanar, "lights-coplanar my photos"),
        (two_photographs, "too-few-photographs my photos"),
        (empty_mask, "empty-mask mask.png"),
        (mask_of_another_size, "mask-size mask.png"),
        (unknown_method, "unknown-method"),
        (unknown_parameter, "unknown-parameter"),
        (ill_typed_parameter, "bad-parameter"),
        (no_setting, "not-a-setting"),
    ],
    ids=lambda value: value.__name__ if callable(value) else None,
)
def test_bad_input(fault, plain_folder, tmp_path, spoil, expected: str) -> None:
    extra = spoil(plain_folder)
    out = tmp_path / "results"
    method = [] if "--method" in extra else ["--method", "ls"]
    assert (
        " ".join(fault("solve", plain_folder, "--out", out, *method, *extra)[:2]).strip()
        == expected
    )
    assert not out.exists()
    assert {path.name for path in tmp_path.iterdir()} == {plain_folder.name}


def test_good_input_of_the_same_kind_passes(call, plain_folder, tmp_path) -> None:
    code, _, error = call(
        "solve",
        plain_folder,
        "--method",
        "ls",
        "--out",
        tmp_path / "ok",
        "--no-surface",
        "--no-report",
    )
    assert code == 0, error


def test_missing_folder(fault, tmp_path) -> None:
    found = fault("solve", tmp_path / "nowhere", "--out", tmp_path / "o")
    assert found[:2] == ("no-such-capture", "nowhere") and not (tmp_path / "o").exists()


def test_truth_of_another_size(fault, scene_folder, tmp_path) -> None:
    from scipy.io import savemat

    folder = tmp_path / "scene"
    shutil.copytree(scene_folder, folder)
    savemat(folder / "Normal_gt.mat", {"Normal_gt": np.ones((5, 5, 3))})
    found = fault("solve", folder, "-m", "ls", "--out", tmp_path / "o")
    assert found[:2] == ("truth-size", "Normal_gt.mat") and not (tmp_path / "o").exists()


def test_out_below_a_file_cannot_be_written(fault, scene_folder, tmp_path) -> None:
    (tmp_path / "file").write_text("x")
    assert (
        fault("solve", scene_folder, "-m", "ls", "--out", tmp_path / "file" / "out")[0]
        == "cannot-write"
    )


def test_failure_in_the_middle_leaves_nothing(fault, scene_folder, tmp_path) -> None:
    words = (
        "solve",
        scene_folder,
        "-m",
        "ls",
        "--out",
        tmp_path / "o",
        "--surface-method",
        "magic",
    )
    assert fault(*words)[0] == "unknown-integration"
    assert list(tmp_path.iterdir()) == []


def test_a_seed_draws_the_same_photographs_in_a_solve_and_in_a_sweep(
    call, scene_folder, tmp_path
) -> None:
    from photostereo_lab.sweeps.plan import CLEAN, CaptureSpec
    from photostereo_lab.sweeps.worker import load_scene

    words = (
        "solve",
        scene_folder,
        "--images",
        5,
        "--seed",
        3,
        "-m",
        "ls",
        "--no-surface",
        "--no-report",
    )
    assert call(*words, "-o", tmp_path / "out")[0] == 0
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    trial = load_scene(CaptureSpec.at(scene_folder), 5, CLEAN, 3)
    assert summary["digest"] == trial.capture.digest


def test_both_figures_where_pixels_have_no_truth(call, scene_folder, tmp_path) -> None:
    """With --mask full most pixels have none: they count 90 in one figure and not at all in the other."""
    words = (
        "solve",
        scene_folder,
        "--mask",
        "full",
        "-m",
        "ls",
        "--no-surface",
        "-o",
        tmp_path / "out",
    )
    code, said, _ = call(*words)
    assert code == 0
    error = json.loads((tmp_path / "out" / "summary.json").read_text())["angular_error"]
    known = error["pixels"] - error["unknown_truth"]
    assert 0 < known < error["pixels"]
    assert error["mean"] * error["pixels"] == pytest.approx(
        error["known_mean"] * known + 90 * error["unknown_truth"], rel=1e-6
    )
    assert f"mean {error['known_mean']:.2f}°" in said and f"mean {error['mean']:.2f}°" in said
    assert "pixels with known truth" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("solve x --method ", {"ls", "dlsr", "pdlnv"}),
        ("solve x --method dl", {"dlnet", "dlnv", "dlsr"}),
        ("compare x --methods ls,dl", {"ls,dlnet", "ls,dlnv", "ls,dlsr"}),
    ],
)
def test_methods_are_completed(words, offered) -> None:
    as_installed = (
        "import sys; sys.argv = ['photostereo']; from photostereo.__main__ import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", as_installed],
        env={
            **os.environ,
            "_PHOTOSTEREO_COMPLETE": "complete_bash",
            "COMP_WORDS": f"photostereo {words}",
            "COMP_CWORD": str(len(words.split(" "))),
        },
        capture_output=True,
        text=True,
    )
    assert offered <= set(done.stdout.split())
    assert not words.endswith("dl") or set(done.stdout.split()) == offered


def test_python_dash_m(call) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "photostereo", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("photostereo ")


def test_what_is_imported_is_declared() -> None:
    """Every library that the package imports is a dependency, or belongs to an extra."""
    import ast
    import tomllib

    root = Path(__file__).resolve().parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    wanted = [*project["dependencies"], *(entry for extra in extras for entry in extra)]
    declared = {re.split(r"[<>=\[; ]", entry)[0].lower().replace("-", "_") for entry in wanted}
    named = {
        "cv2": "opencv_python_headless",
        "OpenEXR": "openexr",
        "triton": "torch",
        "yaml": "pyyaml",
    } | {"PIL": "pillow"}
    for path in sorted((root / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in {str(name).split(".")[0] for name in names}:
                if name not in sys.stdlib_module_names and name not in (
                    "photostereo",
                    "__future__",
                ):
                    assert named.get(name, name).lower() in declared, f"{path.name} imports {name}"
