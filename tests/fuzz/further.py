"""Runs of the newer commands: weights, saved results, comparisons, stores of sweeps and batches, plans, plugins, HTTP.

Each kind chooses a template, the files in it that may be spoilt, and the words. ``http`` is no command: the worker
serves the folder and asks it odd questions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from . import app, plugins
from .captures import SMALL

#: A word that the worker understands: serve this folder and ask.
HTTP = "http"
_NUMBERS = ("0", "1", "-1", "nan", "inf", "1e308", "1e-300", "9" * 400, "x", "", "0.5", "3")
_SIZES = ("0.1mm", "1e-8", "1e-300mm", "1e300", "nan", "x", "5um")
_PLAN = {
    "seeds": ("2", "0", "-1", "99999999999999999999", "300000000", "'x'", "1.5"),
    "images": ("[4]", "[0]", "[99]", "[-3]", "'x'", "[]"),
    "corruptions": (
        "['none']",
        "[{poisson = 20}]",
        "[{poisson = 'x'}]",
        "[{nothing = 1}]",
        "[{gaussian = nan}]",
    ),
    "captures": (
        "['capture.npz']",
        "['nowhere']",
        "[{path = 'capture.npz'}]",
        "[{path = 5}]",
        "[]",
    ),
    "name": ("'x'", "'../x'", "5", "''"),
}


@dataclass(frozen=True)
class Kind:
    """A template, which of its files are spoilt, and how the words are chosen."""

    template: str
    spoilt: str
    words: Callable[[Path, np.random.Generator], list[str]]


def _pick(rng: np.random.Generator, choices: tuple[str, ...]) -> str:
    return str(choices[int(rng.integers(len(choices)))])


def _solve(folder: Path) -> list[str]:
    return ["solve", str(folder / "capture.npz"), "--out", str(folder / "out"), "--no-report"]


def _weights(folder: Path, rng: np.random.Generator) -> list[str]:
    words = [*_solve(folder), "--no-surface"]
    return [
        *words,
        "--method",
        _pick(rng, ("net", "dlnet")),
        "--set",
        f"weights={folder / 'weights.npz'}",
    ]


def _state(folder: Path, rng: np.random.Generator) -> list[str]:
    words = [*_solve(folder), "--method", "dlnv"]
    return [*words, *SMALL, "--set", "max_iter=4", "--resume", str(folder / "state.npz")]


def _mesh(folder: Path, rng: np.random.Generator) -> list[str]:
    words = [
        "mesh",
        str(folder / "solved"),
        "--out",
        str(folder / "out"),
        "--pixel-size",
        _pick(rng, _SIZES),
    ]
    return [*words, "--format", _pick(rng, ("ply", "glb", "obj,stl"))]


def _export(folder: Path, rng: np.random.Generator) -> list[str]:
    to = _pick(rng, ("glb,ply", "obj", "stl,tiff,exr", "ptm", "relight", "material"))
    words = ["export", str(folder / "solved"), "--to", to, "--out", str(folder / "out")]
    return [*words, "--pixel-size", _pick(rng, _SIZES)] if rng.random() < 0.5 else words


def _compare(folder: Path, rng: np.random.Generator) -> list[str]:
    words = [
        "compare",
        str(folder / "compared" / "ls"),
        str(folder / "solved"),
        "--out",
        str(folder / "out"),
    ]
    truth = _pick(rng, ("capture.npz", "compared/truth/normals.npy", "normals.png", "nowhere"))
    return [*words, "--truth", str(folder / truth)] if rng.random() < 0.4 else words


def _figure(folder: Path, rng: np.random.Generator) -> list[str]:
    what = folder / _pick(rng, ("compared", "solved", "swept", "batched"))
    words = ["figure", str(what), "--out", str(folder / "out" / "figure.png")]
    option = _pick(rng, ("--zoom", "--relit", "--limit", "--width", "--methods"))
    return (
        words
        if rng.random() < 0.5
        else [*words, f"{option}={_pick(rng, (*_NUMBERS, '1,1,4,4', '0,0,1'))}"]
    )


def _store(folder: Path, rng: np.random.Generator) -> list[str]:
    return ["sweep", str(folder / "plan.toml"), "--out", str(folder / "swept"), "--only-figures"]


def _plan(folder: Path, rng: np.random.Generator) -> list[str]:
    """Plans are refused before anything runs, or a few trials are run."""
    key = _pick(rng, tuple(_PLAN))
    lines = [f"{name} = {values[0]}" for name, values in _PLAN.items() if name != key]
    lines.append(f"{key} = {_pick(rng, _PLAN[key][1:])}")
    text = "\n".join(
        [*lines, "[[methods]]", f"name = {_pick(rng, tuple(repr(m) for m in ('ls', 'x', '')))}"]
    )
    (folder / "plan.toml").write_text(text)
    return [
        "sweep",
        str(folder / "plan.toml"),
        "--data",
        str(folder),
        "--out",
        str(folder / "out"),
        "--workers",
        "1",
    ]


def _batch(folder: Path, rng: np.random.Generator) -> list[str]:
    """A store that is damaged, looked at again."""
    return [
        "batch",
        str(folder / "captures"),
        "--out",
        str(folder / "batched"),
        "--method",
        "ls",
        "--workers",
        "1",
    ]


def _lights(folder: Path, rng: np.random.Generator) -> list[str]:
    name = _pick(rng, ("lights.csv", "lights.json", "lights.lp", "lights.txt"))
    words = ["lights", str(folder / "capture"), "--out", str(folder / "out" / name)]
    words += [
        "--circle",
        _pick(rng, ("8,8,6", "8,8,1e9", "8,8,0", "nan,1,1", "-4,8,6", "8,8,0.1", "1,1")),
    ]
    if rng.random() < 0.4:
        words += ["--focal", _pick(rng, _NUMBERS)]
    return [*words, "--json"] if rng.random() < 0.4 else words


def _scene(folder: Path, rng: np.random.Generator) -> list[str]:
    words = ["scene", _pick(rng, ("sphere", "coin", "x", "")), "--out", str(folder / "out")]
    words += ["--size", _pick(rng, ("16", "16", "16", "0", "-1", "x", "1"))]
    return [*words, "--lights", _pick(rng, ("5", "5", "5", "0", "-1", "x"))]


def _methods(folder: Path, rng: np.random.Generator) -> list[str]:
    return [
        "methods",
        *([_pick(rng, ("ls", "dlnet", "x", "[/x]", ""))] if rng.random() < 0.8 else []),
        "--json",
    ]


def _train(folder: Path, rng: np.random.Generator) -> list[str]:
    words = [
        "train",
        "--out",
        str(folder / "out" / "w.npz"),
        "--minutes",
        _pick(rng, ("0", "-1", "nan", "x")),
    ]
    return [*words, _pick(rng, ("--resume", "--begin")), str(folder / "weights.npz")]


def _page(folder: Path, rng: np.random.Generator) -> list[str]:
    return [
        "view",
        str(folder / _pick(rng, ("nowhere", "capture.npz", "swept", "captures"))),
        "--no-serve",
    ]


def _http(folder: Path, rng: np.random.Generator) -> list[str]:
    served = folder / _pick(rng, ("compared", "shown"))
    return [HTTP, str(served), *(request(rng) for _ in range(12))]


def request(rng: np.random.Generator) -> str:
    """Method, path and Host of a request, with blanks between them."""
    channel, name = (
        _pick(rng, ("normals", "albedo", "depth", "x")),
        _pick(rng, ("-", "ls", "l1", "truth", "..", "%2e%2e")),
    )
    numbers = "/".join(_pick(rng, ("0", "1", "2", "7", "99", "99999", "-1", "x")) for _ in range(3))
    path = _pick(
        rng,
        (
            *[f"/tiles/{channel}/{name}/{numbers}.png"] * 6,
            *(
                "/report.html",
                "/",
                "/../secret",
                "/%00",
                "/ls/normals.npy",
                "/summary.json",
                "//x/report.html",
            ),
            *("/report.html?embed", f"/{'a' * 5000}", "/%ff", "/link", "/pipe"),
        ),
    )
    host = _pick(
        rng, ("127.0.0.1", "127.0.0.1", "localhost", "evil.example", "[", "127.0.0.1.evil.example")
    )
    return f"{_pick(rng, ('GET', 'GET', 'GET', 'HEAD', 'POST'))} {path} {host}"


def _mask(folder: Path, rng: np.random.Generator) -> list[str]:
    words = [
        "mask",
        str(folder / "capture"),
        "--out",
        str(folder / "out" / _pick(rng, ("m.png", "m.x", ""))),
    ]
    return [*words, "--json"] if rng.random() < 0.4 else words


def _refused(folder: Path, rng: np.random.Generator) -> list[str]:
    """Commands that take long or serve, with something that they must refuse."""
    (folder / "file").write_text("mine")
    out = ["--out", str(folder / "file")]
    choices = (
        ["demo", *out],
        ["demo", *out, "--force"],
        ["app", str(folder / _pick(rng, ("nowhere", "file", "capture.npz"))), "--no-browser"],
        ["reproduce", "--list"],
        ["reproduce", _pick(rng, ("nothing", "", "[/x]", "table-diligent")), "--quick", *out],
        [
            "reproduce",
            "table-diligent",
            "--quick",
            "--data",
            str(folder),
            "--out",
            str(folder / "out"),
        ],
        ["reproduce", "--only-figures", "table-diligent", "--out", str(folder / "swept")],
        ["--version"],
        [_pick(rng, ("solv", "", "[/x]", "--nothing"))],
    )
    return choices[int(rng.integers(len(choices)))]


def _plugin(folder: Path, rng: np.random.Generator) -> list[str]:
    words = (
        ["methods", "--json"],
        ["methods"],
        ["methods", "theirs"],
        [*_solve(folder), "--no-surface", "--method", "theirs"],
        ["info", str(folder / "capture.npz")],
        [
            "compare",
            str(folder / "capture.npz"),
            "--methods",
            "ls,theirs",
            "--out",
            str(folder / "out"),
            "--no-report",
        ],
    )
    return [plugins.PLUGIN, *plugins.words(rng), *words[int(rng.integers(len(words)))]]


def _app(folder: Path, rng: np.random.Generator) -> list[str]:
    return [app.APP, str(folder / "capture"), *app.questions(rng)]


#: Kinds of runs, and how often each is chosen.
KINDS: Mapping[str, tuple[float, Kind]] = {
    "weights": (2, Kind("further", "weights.npz", _weights)),
    "state": (2, Kind("further", "state.npz", _state)),
    "mesh": (2, Kind("further", "solved/*", _mesh)),
    "export": (2, Kind("further", "solved/*", _export)),
    "compare": (2, Kind("further", "solved/*", _compare)),
    "figure": (1, Kind("further", "*/**/*", _figure)),
    "store": (1, Kind("further", "swept/*", _store)),
    "plan": (0.3, Kind("further", "capture.npz", _plan)),
    "batch": (0.3, Kind("further", "batched/*", _batch)),
    "lights": (2, Kind("folder-exif", "capture/*", _lights)),
    "scene": (0.5, Kind("archive", "nothing", _scene)),
    "methods": (0.3, Kind("archive", "nothing", _methods)),
    "train": (0.3, Kind("further", "weights.npz", _train)),
    "page": (0.3, Kind("further", "nothing", _page)),
    "http": (3, Kind("further", "*/**/*", _http)),
    "mask": (0.7, Kind("folder-exif", "capture/*", _mask)),
    "refused": (0.4, Kind("further", "swept/*", _refused)),
    "plugin": (1, Kind("archive", "nothing", _plugin)),
    "app": (2, Kind("app", "capture/**/*", _app)),
}


def choose(rng: np.random.Generator) -> tuple[str, Kind]:
    """One of the kinds, with its name."""
    shares = np.array([share for share, _ in KINDS.values()])
    name = list(KINDS)[int(rng.choice(len(shares), p=shares / shares.sum()))]
    return name, KINDS[name][1]
