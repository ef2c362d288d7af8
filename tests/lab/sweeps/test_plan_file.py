"""Plans that users write: a bad one is refused before anything runs, and the message names the line."""

from __future__ import annotations

import re

import pytest

from photostereo.lab.sweeps.plan import Plan
from photostereo.lab.sweeps.plan_file import PlanError, read_plan
from photostereo.lab.sweeps.sweep import sweep

GOOD = """\
name = "mine"
captures = [
    "sphere.npz",
    { path = "vase.npz", name = "pot", reference = "ls" },
]
images = [8, "all"]
corruptions = ["none", { poisson = [5, 15] }, { salt_pepper = 0.1 }]
seeds = [0, 7]

[[methods]]
name = "ls"

[[methods]]
name = "pdlnv"
label = "two pieces"
fixed = { p = 2 }
defaults = false
grid.lam = [
    1,
    10,
]

[methods.grid.mu]
"""
GOOD = GOOD.replace("\n[methods.grid.mu]\n", "grid.mu = [0.1, 0.2]\n")


@pytest.fixture
def write(tmp_path):
    def written(text):
        path = tmp_path / "plan.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return written


def test_a_good_plan(write, folder):
    plan = read_plan(write(GOOD), data=folder)
    assert not plan.maps and "maps" not in plan.as_dict()
    with_maps = read_plan(write("maps = true\n" + GOOD), data=folder)
    assert with_maps.maps and Plan.from_dict(with_maps.as_dict()) == with_maps
    assert plan.name == "mine"
    block = plan.blocks[0]
    assert [c.name for c in block.captures] == ["sphere", "pot"]
    assert [c.reference for c in block.captures] == ["truth", "ls"]
    assert block.images == (8, None)
    assert [str(c) for c in block.corruptions] == [
        "clean",
        "Poisson 5 dB",
        "Poisson 15 dB",
        "salt and pepper 10 %",
    ]
    assert block.seeds == (0, 7)
    assert [m.title for m in block.methods] == ["ls", "two pieces"]
    assert {tuple(sorted(p.items())) for p in block.methods[1].points()} == {
        (("lam", lam), ("mu", mu), ("p", 2)) for lam in (1, 10) for mu in (0.1, 0.2)
    }


BAD = {
    "unknown method": ('name = "pdlnv"', 'name = "pdnlv"', 14, 'no method "pdnlv".*Did you mean "pdlnv"'),
    "empty grid": ("grid.mu = [0.1, 0.2]", "grid.mu = []", 22, "mu is empty"),
    "missing object": ('"sphere.npz",', '"sphre.npz",', 3, "sphre.npz does not exist"),
    "bad type in a grid": ("    10,\n", '    "ten",\n', 20, "lam of method pdlnv must be a number"),
    "out of range": ("fixed = { p = 2 }", "fixed = { p = 0 }", 16, "p of method pdlnv must be at least 1"),
    "unknown parameter": ("fixed = { p = 2 }", "fixed = { pieces = 2 }", 16, 'no parameter "pieces"'),
    "bad type of seeds": ("seeds = [0, 7]", 'seeds = "three"', 8, "seeds must be a list"),
    "negative seed": ("seeds = [0, 7]", "seeds = [0, -7]", 8, "a seed is a whole number"),
    "maps of the wrong type": ("seeds = [0, 7]", 'maps = "all"', 8, "maps is true or false"),
    "no seeds": ("seeds = [0, 7]", "seeds = 0", 8, "leaves nothing to run"),
    "images of the wrong type": ("images = [8,", "images = [2.5,", 6, "whole numbers from 3 up"),
    "more images than there are": ("images = [8,", "images = [800,", 6, "800 photographs are asked for"),
    "unknown noise": ("{ poisson = [5, 15] }", "{ poison = 5 }", 7, 'Did you mean "poisson"'),
    "level out of range": ("salt_pepper = 0.1", "salt_pepper = 10", 7, "a fraction from 0 to 1"),
    "unknown key": ("seeds = [0, 7]", "sedes = [0, 7]", 8, 'no key "sedes".*Did you mean "seeds"'),
    "key of a method": ("defaults = false", "default = false", 17, 'Did you mean "defaults"'),
    "defaults of the wrong type": ("defaults = false", 'defaults = "no"', 17, "true or false"),
    "fixed and in the grid": (
        "fixed = { p = 2 }",
        "fixed = { p = 2, mu = 1 }",
        22,
        "both fixed and in the grid",
    ),
    "reference": ('reference = "ls"', 'reference = "me"', 4, 'reference must be "truth" or "ls"'),
    "capture of the wrong type": ('    "sphere.npz",', "    17,", 3, "a capture is a path"),
    "not TOML": ("images = [8,", "images = = [8,", 6, "not valid TOML"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_plan_is_refused_naming_the_line(name, write, folder, tmp_path):
    old, new, line, words = BAD[name]
    assert old in GOOD
    path = write(GOOD.replace(old, new, 1))
    with pytest.raises(PlanError) as caught:
        sweep(path, tmp_path / "out", data=folder)
    message = str(caught.value)
    assert str(path) in message
    assert re.search(rf"line {line}\b", message), message
    assert re.search(words, message), message
    assert not (tmp_path / "out").exists(), "nothing is written for a bad plan"


def test_a_plan_without_methods_or_captures(write, folder):
    with pytest.raises(PlanError, match="no methods"):
        read_plan(write('captures = ["sphere.npz"]\n'), data=folder)
    with pytest.raises(PlanError, match="no captures"):
        read_plan(write('[[methods]]\nname = "ls"\n'), data=folder)
    twice = 'captures = ["sphere.npz"]\n[[methods]]\nname = "ls"\n[[methods]]\nname = "ls"\n'
    with pytest.raises(PlanError, match=r"line 4.*here twice"):
        read_plan(write(twice), data=folder)
    with pytest.raises(PlanError, match="does not exist"):
        read_plan(folder / "absent.toml")


def test_captures_are_found_beside_the_plan(folder):
    path = folder / "beside.toml"
    path.write_text('captures = ["sphere.npz"]\n[[methods]]\nname = "ls"\n', encoding="utf-8")
    assert read_plan(path).blocks[0].captures[0].path == str((folder / "sphere.npz").resolve())
