"""A model, a prior, a reader and a command of another package: announced by entry points, used by everything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest

from photostereo.core.errors import PhotostereoWarning
from photostereo.core.plugins import announced

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "plugin"


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The example package, installed into a folder of its own."""
    place = tmp_path_factory.mktemp("site")
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
    ]
    done = subprocess.run([*install, "--target", place, EXAMPLE], capture_output=True, text=True)
    if done.returncode:
        pytest.fail(done.stderr)
    return place


def run(installed: Path, code: str) -> str:
    """Run a script that can import the example package."""
    prelude = f"import sys; sys.path.insert(0, {str(installed)!r})\n"
    done = subprocess.run(
        [sys.executable, "-c", prelude + code], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_example_is_a_method_and_a_reader(installed, tmp_path) -> None:
    """Its own tests (``examples/plugin/tests``) run the contract."""
    folder = tmp_path / "thing"
    folder.mkdir()
    rng = np.random.default_rng(0)
    np.save(folder / "stack.npy", rng.random((5, 16, 16)))
    np.savetxt(folder / "lights.txt", rng.normal(size=(5, 3)) * 0.4 + [0, 0, 1])
    said = run(
        installed,
        f"""
import photostereo as ps
from photostereo_lab.sweeps.outputs import look_of
assert "halflambert" in ps.method_names()
capture = ps.load({str(folder)!r})
assert len(capture) == 5
plain, clear = ps.solve(capture, "ls"), ps.solve(capture, "halflambert")
assert abs(plain.normals - clear.normals).max() < 1e-4      # without haze it is least squares
assert abs(plain.normals - ps.solve(capture, "halflambert", haze=0.5).normals).max() > 1e-3
print(look_of("halflambert").label)
from photostereo.cli import app
from typer.testing import CliRunner
shown = CliRunner().invoke(app, ["methods", "halflambert"])
assert shown.exit_code == 0 and "haze" in shown.output
out = {str(tmp_path / "out")!r}
done = CliRunner().invoke(app, ["compare", {str(folder)!r}, "--methods", "ls,halflambert", "--out", out, "--quiet"])
assert done.exit_code == 0, done.output
""",
    )
    assert said.strip() == "half-Lambert"
    assert (tmp_path / "out" / "halflambert" / "normals.npy").is_file()


def test_the_example_takes_part_in_sweeps(installed, tmp_path) -> None:
    run(
        installed,
        f"""
from pathlib import Path
import photostereo as ps
from photostereo.capture import write_archive
from photostereo_lab.sweeps.plan_file import read_plan
from photostereo_lab.sweeps.worker import run_trial
place = Path({str(tmp_path)!r})
from photostereo_lab.scenes import render_scene
write_archive(render_scene("sphere", size=24), place / "sphere.npz")
(place / "plan.toml").write_text('''
captures = ["sphere.npz"]
[[methods]]
name = "halflambert"
grid = {{ haze = [0.0, 0.5] }}
defaults = false
''')
trials = read_plan(place / "plan.toml", data=place).trials
outcomes = [run_trial(trial) for trial in trials]
assert len(outcomes) == 2 and all(outcome.status == "done" for outcome in outcomes), outcomes
assert outcomes[0].errors["mean"] != outcomes[1].errors["mean"]
""",
    )


def test_the_examples_prior_has_files_and_a_preset(installed, tmp_path) -> None:
    """As the built-in priors: a method with a name, and arrays that become files of the result."""
    run(
        installed,
        f"""
import json
from pathlib import Path
import numpy as np
import photostereo as ps
from photostereo_lab.scenes import render_scene
scene = render_scene("sphere", size=24)
method = ps.find_method("meanls")
assert method.prior.name == "mean" and method.model.name == "ls"
assert ps.find_method("ls", "mean") == method
result = ps.solve(scene, "meanls")
assert result.parameters["max_iter"] == 5
place = Path({str(tmp_path)!r}) / "result"
ps.save(result, place)
assert np.load(place / "mean.npy").shape == result.arrays["mean"].shape
assert "mean.npy" in (place / "summary.json").read_text()
""",
    )


#: A model and a prior, each in a folder of its own; the line that announces it follows.
THROW_AWAY = {
    "brightest": """
import numpy as np
from photostereo.reflectance.entry import Look, ModelEntry
from photostereo.reflectance.model import Fit, Model


class Brightest(Model):
    '''The normal points to the brightest light: min over n of |n - y_max l_max|^2.'''

    def __init__(self, pixels, lights):
        brightest = pixels.argmax(1)
        self._goal = pixels.max(1)[:, None] * lights[:, brightest].T

    def mean_hessian(self, unknowns):
        return np.eye(3)

    def alone(self, control):
        return Fit(self._goal)

    def update_normals(self, unknowns, weight, pull):
        return (self._goal + pull) / (1.0 + weight[..., None])

    def cost(self, normals, unknowns):
        return ((normals - self._goal) ** 2).sum()


ENTRY = ModelEntry(
    name="brightest",
    title="The brightest light",
    assumes="A mirror.",
    model="brightest:Brightest",
    citation="None.",
    look=Look("brightest"),
    exact=False,
)
""",
    "upright": """
from dataclasses import dataclass

import numpy as np
from photostereo.core.parameters import integer, number
from photostereo.priors.entry import PriorEntry
from photostereo.priors.protocol import Prior


@dataclass(frozen=True)
class Parameters:
    lam: float = number(0.1, "weight", minimum=0)
    max_iter: int = integer(3, "outer iterations", minimum=1)
    tol: float = number(0.0, "stop at this decrease of the cost", minimum=0)


class Upright(Prior):
    '''lam sum |n - z|^2.'''

    def __init__(self, lam):
        self.lam = lam

    def pull(self, state, normals):
        weight = np.full(len(normals), self.lam)
        return weight, weight[:, None] * np.array([0.0, 0.0, 1.0])

    def cost(self, state, normals):
        return {"tilt": self.lam * ((normals - [0, 0, 1]) ** 2).sum()}


ENTRY = PriorEntry(
    name="upright",
    title="Normals near the view",
    parameters=Parameters,
    build=lambda values, setting: (Upright(values["lam"]), dict(values)),
    citation="None.",
)
""",
}


def test_a_model_and_a_prior_are_one_folder_and_one_line(tmp_path) -> None:
    groups = {"brightest": "photostereo.models", "upright": "photostereo.priors"}
    for name, code in THROW_AWAY.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(code)
        facts = tmp_path / f"{name}-1.dist-info"
        facts.mkdir()
        (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        (facts / "entry_points.txt").write_text(f"[{groups[name]}]\n{name} = {name}:ENTRY\n")
    out = run(
        tmp_path,
        """
import numpy as np
import photostereo as ps
from photostereo.cli import app
from photostereo_lab.scenes import render_scene
from typer.testing import CliRunner
scene = render_scene("sphere", size=24)
plain = ps.solve(scene, "brightest")
for method in ("brightest+upright", "ls+upright", "sbl+upright"):
    strong = ps.solve(scene, method, lam=100.0)
    assert strong.normals[scene.mask][:, 2].min() > 0.99, method
assert ps.solve(scene, "brightest", prior="dictionary", max_iter=2).method == "brightest+dictionary"
assert abs(plain.normals - ps.solve(scene, "ls").normals).max() > 0.1
print(CliRunner().invoke(app, ["methods"]).output)
""",
    )
    assert "brightest" in out
    assert "upright" in out


def test_the_examples_prior_works_with_every_size_and_file(installed, tmp_path) -> None:
    """In bands as in one go, saved and resumed, in a grid, with its figures in the summary."""
    run(
        installed,
        f"""
import numpy as np
import photostereo as ps
from photostereo.solver.tiles import OF_THE_PROGRAM, bytes_of_row
from photostereo_lab.scenes import render_scene
scene = render_scene("sphere", size=160)
flat = ps.solve(scene, "ls", prior="mean", lam=5.0, max_iter=4)
costs = [record.cost for record in flat.history]
assert all(later <= earlier for earlier, later in zip(costs, costs[1:]))
assert flat.summary()["history"][-1]["spread"] == flat.history[-1].figures["spread"] > 0
alone = ps.solve(scene, "ls")
assert flat.normals[scene.mask].std(0).sum() < 0.9 * alone.normals[scene.mask].std(0).sum()
memory = OF_THE_PROGRAM + 160 * 160 * 40 + 125 * bytes_of_row(160, len(scene), 1, prior=260)
bands = ps.solve(scene, "ls", prior="mean", lam=5.0, max_iter=4, memory=memory)
assert np.abs(bands.normals - flat.normals).max() < 0.05
state = {str(tmp_path / "state.npz")!r}
ps.solve(scene, "ls", prior="mean", lam=5.0, max_iter=2, checkpoint=state)
again = ps.solve(scene, "ls", prior="mean", lam=5.0, max_iter=4, resume=state)
assert np.array_equal(again.normals, flat.normals)
flat.save({str(tmp_path / "out")!r})
assert ps.Reconstruction.load({str(tmp_path / "out")!r}).history == flat.history
""",
    )


def test_the_examples_command_has_its_options_and_its_place_in_the_help(
    installed, tmp_path
) -> None:
    shown = run(
        installed,
        f"""
import json
import photostereo as ps
from photostereo.capture import write_archive
from photostereo.cli import app
from typer.testing import CliRunner
from photostereo_lab.scenes import render_scene
scene = render_scene("sphere", size=24)
capture = {str(tmp_path / "sphere.npz")!r}
write_archive(scene, capture)
said = CliRunner().invoke(app, ["brightness", capture, "--digits", "2", "--json"])
assert said.exit_code == 0, said.output
means = json.loads(said.stdout)["brightness"]
assert len(means) == len(scene) and means == [round(float(photograph.mean()), 2) for photograph in scene.images]
assert CliRunner().invoke(app, ["brightness", capture, "--digits", "0"]).exit_code == 2
print(CliRunner().invoke(app, ["--help"]).stdout)
""",
    )
    assert (
        shown.index("─ Research ")
        < shown.index("─ From other packages ")
        < shown.index("│ brightness ")
    )


def test_a_command_that_cannot_be_one_is_left_out(monkeypatch) -> None:
    from types import SimpleNamespace

    from photostereo.cli.root import check_command

    def fine(name: str) -> None: ...

    def odd(name: int | str) -> None: ...

    def unknown(name: "Nothing") -> None: ...  # type: ignore[name-defined]  # noqa: F821, UP037

    commands = (fine, odd, unknown, 5)
    points = [
        SimpleNamespace(name=str(n), value="a:A", load=lambda c=c: c)
        for n, c in enumerate(commands)
    ]
    monkeypatch.setattr("photostereo.core.plugins.entry_points", lambda group: points)
    with pytest.warns(PhotostereoWarning) as said:
        assert announced("photostereo.commands", FunctionType, check_command) == (fine,)
    assert [warning.message.args[0].code for warning in said] == ["bad-plugin"] * 3


def test_a_command_of_another_package_never_takes_a_name_of_ours(monkeypatch) -> None:
    from photostereo.cli import root
    from photostereo.cli.solve import solve as ours

    def solve(name: str) -> None: ...

    def sweep(name: str) -> None: ...

    def other(name: str) -> None: ...

    monkeypatch.setattr(root, "announced", lambda *_: (other, solve, sweep))
    found = list(root.commands())
    assert [f for _, f in found if f.__name__ == "solve"] == [ours]
    assert found[-2:] == [("Research", sweep), ("From other packages", other)]


@pytest.mark.torch
def test_the_example_runs_where_a_gpu_would(installed) -> None:
    code = (
        "from photostereo_lab.testing import CHECKS\nfor check in CHECKS: check('{}', 'torch-cpu')"
    )
    for name in ("halflambert", "halflambert+mean"):
        run(installed, code.format(name))


def test_a_broken_plugin_is_named_and_left_out(monkeypatch) -> None:
    from importlib.metadata import EntryPoint

    points = [
        EntryPoint("x", "no_such_package:THING", "photostereo.models"),
        EntryPoint("y", "math:pi", "g"),
    ]
    monkeypatch.setattr("photostereo.core.plugins.entry_points", lambda group: points)
    with pytest.warns(PhotostereoWarning) as said:
        assert announced("photostereo.models", dict) == ()
    assert [warning.message.args[0].code for warning in said] == ["bad-plugin"] * 2


def test_a_plugin_that_exits_or_has_no_words_is_left_out(monkeypatch) -> None:
    from dataclasses import dataclass
    from types import SimpleNamespace

    @dataclass
    class Entry:
        name: str

    def leave() -> None:
        raise SystemExit(3)

    points = [
        SimpleNamespace(name="a", value="a:A", load=leave),
        SimpleNamespace(name="b", value="b:B", load=lambda: Entry(5)),  # type: ignore[arg-type]
        SimpleNamespace(name="c", value="c:C", load=lambda: Entry("[/x]")),
    ]
    monkeypatch.setattr("photostereo.core.plugins.entry_points", lambda group: points)
    with pytest.warns(PhotostereoWarning) as said:
        assert [entry.name for entry in announced("photostereo.models", Entry)] == ["[/x]"]
    assert len(said) == 2


def test_a_plugin_whose_description_has_wrong_types_is_left_out(monkeypatch) -> None:
    """Every field is checked where it comes in, also numbers, tuples and the dataclass of parameters."""
    from dataclasses import replace
    from types import SimpleNamespace

    from photostereo.core.errors import ParameterError
    from photostereo.reflectance.entry import ModelEntry
    from photostereo.reflectance.lambertian import LS

    odd: list[dict[str, object]] = [
        {"workspace": b"x"},
        {"parameters": 5},
        {"sees": None},
        {"look": "red"},
        {},
    ]
    points = [
        SimpleNamespace(name=str(n), value="a:A", load=lambda n=n: replace(LS, **odd[n]))  # type: ignore[arg-type]
        for n in range(len(odd))
    ]
    monkeypatch.setattr("photostereo.core.plugins.entry_points", lambda group: points)
    with pytest.warns(PhotostereoWarning) as said:
        assert announced("photostereo.models", ModelEntry) == (LS,)
    assert len(said) == len(odd) - 1
    for model in ("nowhere:X", "math:pi", "math:nothing"):
        with pytest.raises(ParameterError) as error:
            replace(LS, model=model).kind(np.ones((1, 3)), np.eye(3))
        assert error.value.code == "broken-plugin"
