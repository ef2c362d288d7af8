"""One run: a template, what is spoilt in it, and the words of the command line; made from (seed, number) alone."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import photostereo as ps

from . import further, mutations
from .captures import LAYOUTS, SMALL, capture_in

METHODS = ("ls", "pls", "l1", "sbl", "rpca", "cbr", "net", "dlnv", "pdlnv", "dlsr", "dlnet")
_DICTIONARY = ("dlnv", "pdlnv", "dlsr", "dlnet")
#: Options of reading a capture, with values that are sound, odd and absurd.
_READING: tuple[tuple[str, ...], ...] = (
    *(("--memory", text) for text in ("1GB", "40KB", "0", "-1", "nan", "1e400GB", "x")),
    *(("--scale", text) for text in ("0.5", "1", "0", "nan", "1e-9", "7", "x")),
    *(("--crop", text) for text in ("2,2,9,9", "0,0,0,0", "-5,0,9,9", "90,90,5,5", "1,2", "nan,0,4,4", "9" * 400)),
    *(("--lights-axes", text) for text in ("x,-y,z", "y,x,z", "x,x,z", "", "z")),
    *(("--ambient", text) for text in ("nowhere.png", ".")),
    *(("--focal", text) for text in ("50mm", "0", "-1", "nan", "x")),
    *(("--ball", text) for text in ("nowhere", ".")),
    *(("--circle", text) for text in ("8,8,6", "8,8,1e9", "x")),
    ("--reverse-lights",), ("--flip-y",), ("--srgb",), ("--linear",), ("--srgb", "--linear"),
)  # fmt: skip
_ODD_VALUES = (
    *(
        "inf",
        "nan",
        "-1",
        "0",
        "1e300",
        "1e-300",
        "1e9",
        "x",
        "",
        "auto",
        "3",
        "0.5",
        "9" * 5000,
        "8x8x3",
        "0x0x0",
    ),
    *("1x1x1", "99x99x3", "true", "dct", "identity", "random-patches", "-5x4x3", mutations.ESCAPES),
)
_PARAMETERS = (
    *(
        "lam",
        "mu",
        "q",
        "patch",
        "stride",
        "atoms",
        "dictionary",
        "learn",
        "max_iter",
        "tol",
        "seed",
        "precision",
    ),
    *(
        "p",
        "knots",
        "gamma",
        "begin",
        "noise",
        "weight",
        "shadow",
        "orders",
        "slope",
        "total",
        "nothing",
    ),
)
_ODD_NAMES = ("caf\udce9", mutations.ESCAPES, "n" * 200, "a b", "[bold]", "-", "ünïcode")


@dataclass
class Case:
    """What is run, in a folder of its own."""

    folder: Path
    words: list[str] = field(default_factory=list)
    spoilt: list[str] = field(default_factory=list)
    kind: str = ""

    @property
    def out(self) -> Path:
        return self.folder / "out"


def make_case(seed: int, number: int, templates: Path, work: Path) -> Case:
    """Copy a template, spoil it, choose a command."""
    rng = np.random.default_rng([seed, number])
    case = Case(work / f"case-{number}")
    if number % 2:
        return _further(case, templates, rng)
    mesh = rng.random() < 0.15
    template = "results" if mesh or rng.random() < 0.15 else str(rng.choice(LAYOUTS))
    shutil.copytree(templates / template, case.folder, symlinks=True)
    capture = capture_in(case.folder)
    if capture.is_dir() and rng.random() < 0.1:
        capture = capture.rename(case.folder / str(rng.choice(np.array(_ODD_NAMES, dtype=object))))
    files = [
        file for file in sorted(case.folder.rglob("*")) if file.is_file() and not file.is_symlink()
    ]
    for _ in range(int(rng.choice([0, 1, 2, 3], p=[0.2, 0.6, 0.13, 0.07]))):
        _spoil(case, files[int(rng.integers(len(files)))], rng)
    if mesh:
        _mesh(case, rng)
    else:
        _command(case, capture, template == "results", rng)
    case.kind = case.words[0]
    return case


def _further(case: Case, templates: Path, rng: np.random.Generator) -> Case:
    """A run of the newer commands."""
    case.kind, kind = further.choose(rng)
    shutil.copytree(templates / kind.template, case.folder, symlinks=True)
    files = [file for file in sorted(case.folder.glob(kind.spoilt)) if file.is_file()]
    for _ in range(int(rng.choice([0, 1, 2], p=[0.15, 0.7, 0.15])) if files else 0):
        _spoil(case, files[int(rng.integers(len(files)))], rng)
    case.words = kind.words(case.folder, rng)
    return case


def _spoil(case: Case, file: Path, rng: np.random.Generator) -> None:
    if not file.is_file() or file.is_symlink():
        return
    mutation = mutations.choose(file, rng)
    case.spoilt.append(f"{mutation.__name__}({os.fsencode(file.name)!r})")
    try:
        mutation(file, rng)
    except Exception:  # spoilt before, beyond what this one understands
        mutations.noise(file, rng)


def _command(case: Case, capture: Path, with_results: bool, rng: np.random.Generator) -> None:
    kind = rng.choice(
        ["solve", "info", "compare", "corrupt", "lights"], p=[0.76, 0.11, 0.04, 0.06, 0.03]
    )
    case.words = [str(kind), str(capture)]
    if kind == "lights":
        case.words += ["--out", str(case.out / "lights.csv")]
        case.words += ["--circle", str(rng.choice(["8,8,6", "nan,1,1", "0,0,-1", "8,8,1e9", "x"]))]
        return
    if rng.random() < 0.15:
        case.words.append("--color")
    if kind == "solve" and rng.random() < 0.15:
        case.words += _READING[int(rng.integers(len(_READING)))]
    if kind == "info":
        case.words += ["--json"] if rng.random() < 0.4 else []
        return
    case.words += ["--out", str(case.out)]
    if kind == "corrupt":
        case.words += [str(rng.choice(["--poisson", "--gaussian", "--salt-pepper"])), _value(rng)]
        return
    if rng.random() < 0.1:
        case.words += ["--images", str(rng.choice(["3", "5", "99", "-1", "0"]))]
    if rng.random() < 0.1:
        case.words += ["--seed", str(rng.choice(["0", "-1", "9" * 30]))]
    if rng.random() < 0.1:
        case.words += [
            "--mask",
            str(rng.choice(["full", "auto", "nowhere.png", str(case.folder / "mask.png")])),
        ]
    if kind == "compare":
        case.words += ["--methods", "ls,l1", *([] if rng.random() < 0.3 else ["--no-report"])]
        return
    method = str(rng.choice(METHODS))
    case.words += ["--method", method]
    composed = method not in _DICTIONARY and rng.random() < 0.05
    if composed:
        case.words += ["--prior", str(rng.choice(["dictionary", "dictionary", "none", "x"]))]
    if method in _DICTIONARY or composed:
        case.words += SMALL
    while rng.random() < 0.25:
        own = [parameter.name for parameter in ps.find_method(method).parameters]
        name = str(rng.choice(own if own and rng.random() < 0.9 else _PARAMETERS))
        case.words += ["--set", f"{name}={_value(rng)}"]
    case.words += [] if rng.random() < 0.3 else ["--no-surface"]
    case.words += [] if rng.random() < 0.06 else ["--no-report"]
    case.words += ["--json"] if rng.random() < 0.1 else []
    if with_results:
        _use_results(case, rng)
    if rng.random() < 0.05:
        _occupy(case, rng)


def _use_results(case: Case, rng: np.random.Generator) -> None:
    folder = case.folder
    choices = (
        ["--resume", str(folder / "state.npz"), "--method", "dlnv", *SMALL, "--set", "max_iter=4"],
        [
            "--checkpoint",
            str(
                folder
                / str(rng.choice(["new.npz", "state.npz", "mask.png", "solved", "out/s.npz"]))
            ),
        ],
        ["--method", "dlnv", *SMALL, "--set", f"dictionary={folder / 'dictionary.npy'}"],
        ["--mask", str(folder / "mask.png")],
        *(
            ["--lights", str(folder / name)]
            for name in ("lights.txt", "lights.mat", "meshroom.json", "solved")
        ),
    )
    case.words += choices[int(rng.integers(len(choices)))]


def _mesh(case: Case, rng: np.random.Generator) -> None:
    if rng.random() < 0.05:
        case.words = ["figure", str(case.folder / "solved"), "--out", str(case.out / "fig.png")]
        case.words += [str(rng.choice(["--zoom", "--relit", "--limit", "--truth"])), _value(rng)]
        return
    if rng.random() < 0.15:
        formats = ["ply,obj", "tiff,exr", "ptm", "relight", "material", "x"]
        case.words = [
            "export",
            str(case.folder / "solved"),
            "--to",
            str(rng.choice(formats)),
            "--out",
            str(case.out),
        ]
        return
    source = case.folder / str(rng.choice(["solved", "solved", "normals.png"]))
    case.words = ["mesh", str(source), "--format", str(rng.choice(["ply", "glb,obj", "stl", "x"]))]
    case.words += [
        "--method",
        str(rng.choice(["poisson", "robust", "simchony", "x"], p=[0.7, 0.1, 0.1, 0.1])),
    ]
    if source.suffix or rng.random() < 0.6:
        case.words += ["--out", str(case.out)]
    if source.suffix and rng.random() < 0.6:
        case.words += ["--mask", str(case.folder / "mask.png")]
    if rng.random() < 0.2:
        case.words += [
            "--pixel-size",
            str(rng.choice(["0.1mm", "nan", "inf", "-1", "1e300mm", "x"])),
        ]
    if rng.random() < 0.2:
        case.words += [str(rng.choice(["--highpass", "--decimate"])), _value(rng)]


def _occupy(case: Case, rng: np.random.Generator) -> None:
    """Something is there already; with or without --force nothing of it may go."""
    if rng.random() < 0.3:
        case.out.write_text("a file")
    else:
        case.out.mkdir()
        (
            case.out / str(rng.choice(["thesis.tex", "summary.json", ".photostereo.json"]))
        ).write_text("{}")
    case.words += ["--force"] if rng.random() < 0.7 else []


def _value(rng: np.random.Generator) -> str:
    return str(_ODD_VALUES[int(rng.integers(len(_ODD_VALUES)))])
