"""Plans that users write: a bad one is refused before anything runs, and the error names the key."""

from __future__ import annotations

import pytest

from photostereo.core.errors import ParameterError
from photostereo_lab.sweeps.plan import Plan
from photostereo_lab.sweeps.plan_file import read_plan
from photostereo_lab.sweeps.sweep import sweep

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
    assert not plan.maps
    with_maps = read_plan(write("maps = true\n" + GOOD), data=folder)
    assert with_maps.maps and Plan.from_dict(with_maps.as_dict()) == with_maps
    assert plan.name == "mine"
    assert [c.name for c in plan.captures] == ["sphere", "pot"]
    assert [c.reference for c in plan.captures] == ["truth", "ls"]
    assert plan.images == (8, None)
    assert [str(c) for c in plan.corruptions] == [
        "clean",
        "Poisson 5 dB",
        "Poisson 15 dB",
        "salt and pepper 10 %",
    ]
    assert plan.seeds == (0, 7)
    assert [m.title for m in plan.methods] == ["ls", "two pieces"]
    assert {tuple(sorted(p.items())) for p in plan.methods[1].points()} == {
        (("lam", lam), ("mu", mu), ("p", 2)) for lam in (1, 10) for mu in (0.1, 0.2)
    }


BAD = {
    "unknown method": ('name = "pdlnv"', 'name = "pdnlv"', "methods[1].name"),
    "empty grid": ("grid.mu = [0.1, 0.2]", "grid.mu = []", "methods[1].grid.mu"),
    "missing object": ('"sphere.npz",', '"sphre.npz",', "captures[0]"),
    "bad type in a grid": ("    10,\n", '    "ten",\n', "methods[1].grid.lam"),
    "out of range": ("fixed = { p = 2 }", "fixed = { p = 0 }", "methods[1].fixed.p"),
    "unknown parameter": ("fixed = { p = 2 }", "fixed = { pieces = 2 }", "methods[1].fixed.pieces"),
    "bad type of seeds": ("seeds = [0, 7]", 'seeds = "three"', "seeds"),
    "negative seed": ("seeds = [0, 7]", "seeds = [0, -7]", "seeds"),
    "maps of the wrong type": ("seeds = [0, 7]", 'maps = "all"', "maps"),
    "no seeds": ("seeds = [0, 7]", "seeds = 0", "seeds"),
    "seeds beyond any memory": ("seeds = [0, 7]", "seeds = 99999999999999999999", "seeds"),
    "a seed beyond the database": ("seeds = [0, 7]", "seeds = [99999999999999999999]", "seeds"),
    "images of the wrong type": ("images = [8,", "images = [2.5,", "images[0]"),
    "more images than there are": ("images = [8,", "images = [800,", "images"),
    "unknown noise": ("{ poisson = [5, 15] }", "{ poison = 5 }", "corruptions[1].poison"),
    "level out of range": ("salt_pepper = 0.1", "salt_pepper = 10", "corruptions"),
    "unknown key": ("seeds = [0, 7]", "sedes = [0, 7]", "sedes"),
    "key of a method": ("defaults = false", "default = false", "methods[1].default"),
    "defaults of the wrong type": ("defaults = false", 'defaults = "no"', "methods[1].defaults"),
    "fixed and in the grid": (
        "fixed = { p = 2 }",
        "fixed = { p = 2, mu = 1 }",
        "methods[1].grid.mu",
    ),
    "reference": ('reference = "ls"', 'reference = "me"', "captures[1]"),
    "capture of the wrong type": ('    "sphere.npz",', "    17,", "captures[0]"),
    "a method twice": ('label = "two pieces"', 'label = "ls"', "methods"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_plan_is_refused_naming_the_key(name, write, folder, tmp_path):
    old, new, key = BAD[name]
    assert old in GOOD
    path = write(GOOD.replace(old, new, 1))
    with pytest.raises(ParameterError) as caught:
        sweep(path, tmp_path / "out", data=folder)
    assert (caught.value.code, caught.value.file, caught.value.values["key"]) == (
        "invalid-plan",
        path,
        key,
    )
    assert not (tmp_path / "out").exists(), "nothing is written for a bad plan"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('captures = ["sphere.npz"]\n', "invalid-plan"),
        ('[[methods]]\nname = "ls"\n', "invalid-plan"),
        ("images = = [8]", "invalid-toml"),
    ],
)
def test_a_plan_that_is_none(write, folder, text, code):
    with pytest.raises(ParameterError) as caught:
        read_plan(write(text), data=folder)
    assert caught.value.code == code


def test_captures_are_found_beside_the_plan(folder):
    path = folder / "beside.toml"
    path.write_text('captures = ["sphere.npz"]\n[[methods]]\nname = "ls"\n', encoding="utf-8")
    assert read_plan(path).captures[0].path == str((folder / "sphere.npz").resolve())
