"""The torch form of the learned model, and its training in small."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from photostereo.core.errors import OutputError, ParameterError, PhotostereoError
from photostereo.reflectance.learned import kernels
from photostereo.reflectance.learned.weights import context_network, set_network
from photostereo_lab import scenes

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def test_torch_equals_compiled() -> None:
    """What runs on tensors, and what is trained."""
    from photostereo.reflectance.learned.torch_network import predict
    from photostereo_lab.training.reflectance.network import SetNetwork

    capture = scenes.render_scene("sphere", size=40, reflectance="ggx", color=True)
    colors, lights = capture.colors(), capture.lights.directions.astype(np.float32)
    here = kernels.predict(colors, lights, set_network())
    network, arrays = SetNetwork(), set_network().arrays
    network.load_state_dict(
        {f"stages.{name}": torch.tensor(values) for name, values in arrays.items()}
    )
    with torch.no_grad():
        normals, log_errors = network(torch.from_numpy(colors), torch.from_numpy(lights))[-1]
    for there in (
        predict(torch.from_numpy(colors), lights, set_network()),
        (normals, log_errors.exp()),
    ):
        apart = np.linalg.norm(here[0] - there[0].numpy(), axis=1)
        assert np.degrees(apart.max()) < 0.01
        np.testing.assert_allclose(here[1], there[1].numpy(), rtol=1e-3)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no NVIDIA GPU here")
@pytest.mark.parametrize("width", [96, 40])
def test_a_fused_stage_equals_the_readable_one(width) -> None:
    from photostereo.reflectance.learned.constants import FEATURES
    from photostereo.reflectance.learned.torch_network import run_stage
    from photostereo_lab.training.reflectance.network import Stage

    torch.manual_seed(0)
    stage = Stage(width).cuda().requires_grad_(False)
    for vector in (stage.first.gain, stage.third.shift, stage.fourth.gain, stage.out.weight):
        vector.normal_()
    tokens = torch.randn(300, 17, FEATURES, device="cuda")
    torch.testing.assert_close(
        run_stage(stage.state_dict(), tokens), stage(tokens), rtol=1e-4, atol=1e-4
    )


def test_materials_reflect_as_the_renderers() -> None:
    """The lobes that both have: Lambert, Oren–Nayar, GGX."""
    from photostereo_lab.training import materials
    from photostereo_lab.training.layouts import draw_directions

    torch.manual_seed(0)
    lights = draw_directions(1, 200, "cpu").double()
    normal = torch.nn.functional.normalize(torch.tensor([[0.3, -0.4, 0.8]]).double(), dim=-1)
    plain = materials.draw_materials(1, "cpu")
    zero, one = torch.zeros(1, 1).double(), torch.ones(1, 1).double()
    plain.base, plain.sigma, plain.power = torch.tensor([[0.3, 0.5, 0.7]]).double(), 0.4 * one, one
    plain.wrap = plain.metallic = plain.coat = plain.sheen = zero
    plain.alpha = plain.alpha_across = 0.3 * one
    plain.ripple, plain.wave = torch.zeros(1, 2).double(), plain.wave.double()
    nl, lv = (lights[0] @ normal[0]).numpy(), lights[0, :, 2].numpy()
    lit = nl > 1e-3
    for kind, f0, brdf in (
        (materials.LAMBERT, 0.0, scenes.Lambertian()),
        (materials.OREN_NAYAR, 0.0, scenes.OrenNayar(0.4)),
        (materials.LAMBERT, 0.05, scenes.Ggx(0.3, 0.05)),
    ):
        plain.kind, plain.reflectance = torch.full((1, 1), kind), f0 * one
        found = materials.reflect(plain, normal, lights)[0].numpy()[lit]
        diffuse, white = brdf.terms(nl[lit], np.full(lit.sum(), float(normal[0, 2])), lv[lit])
        wanted = (np.array([0.3, 0.5, 0.7]) * diffuse[:, None] + white[:, None]) * nl[lit, None]
        np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_a_training_learns(tmp_path) -> None:
    """After 150 steps the error in training is lower than that of a network that saw the same pixels and never learned."""
    from photostereo_lab.training.loop import train
    from photostereo_lab.training.reflectance.task import ReflectanceSettings, ReflectanceTask

    loss = {}
    for rate in (0.003, 0.0):
        tiny = {
            "width": 16,
            "tokens": 2000,
            "scenes": 2,
            "pixels": 16,
            "reuse": 40,
            "validation": 0.01,
        }
        settings = ReflectanceSettings(minutes=60, average=0.9, rate=rate, **tiny)
        train(ReflectanceTask(settings, "cpu"), tmp_path / str(rate), steps=150)
        line = json.loads((tmp_path / str(rate) / "curve.jsonl").read_text().splitlines()[-1])
        assert line["step"] == 150
        loss[rate] = line["loss"]
    assert loss[0.003] < 0.92 * loss[0.0]
    assert torch.get_float32_matmul_precision() == "highest"  # what training sets, it sets back


def trained(out, **given) -> None:
    """What the command does with these options and the defaults of the others."""
    from photostereo.cli.terminal import Terminal
    from photostereo_lab.commands.train import Model, train

    usual = {
        "model": Model.REFLECTANCE,
        "minutes": 0.01,
        "seed": 0,
        "device": "cpu",
        "resume": False,
    }
    usual |= {"begin": None, "evaluate": None, "force": False}
    train(Terminal(quiet=True), out=out, **usual | given)


def test_a_training_that_cannot_go_on_says_so(tmp_path) -> None:
    """It must not begin anew in silence."""
    with pytest.raises(OutputError) as caught:
        trained(tmp_path / "weights.npz", resume=True)
    assert caught.value.code == "no-checkpoint"
    assert not list(tmp_path.iterdir())


def test_a_training_goes_on_from_weights_and_from_its_checkpoint(tmp_path) -> None:
    from photostereo_lab.training.loop import train
    from photostereo_lab.training.reflectance.task import ReflectanceSettings, ReflectanceTask

    task = ReflectanceTask(
        ReflectanceSettings(width=16, tokens=1000, scenes=2, pixels=8, validation=0.01), "cpu"
    )
    train(task, tmp_path / "first", steps=1)
    weights = tmp_path / "first" / "weights.npz"
    train(task, tmp_path / "second", begin=weights, steps=2)
    train(task, tmp_path / "second", resume=True, steps=3)
    lines = [
        json.loads(line) for line in (tmp_path / "second" / "curve.jsonl").read_text().splitlines()
    ]
    assert [line["step"] for line in lines] == [0, 2, 2, 3]
    last = json.loads((tmp_path / "first" / "curve.jsonl").read_text())
    assert lines[0]["score"] == pytest.approx(last["score"], abs=0.01)  # float16
    found = kernels.predict(
        np.ones((2, 5, 3), np.float32),
        scenes.dome_lights(5).astype(np.float32),
        set_network(weights),
    )
    assert np.isfinite(found[0]).all()

    # What cannot be continued is refused, and nothing is written over it.
    path = tmp_path / "second" / "checkpoint.pt"
    whole = path.read_bytes()
    state = torch.load(path, weights_only=True)
    nan = {name: values * float("nan") for name, values in state["average"].items()}
    odd = [
        b"garbage",
        b"",
        whole[:500],
        [1, 2],
        {**state, "step": "x"},
        {**state, "average": nan},
        {"step": 1},
    ]
    for content in odd:
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            torch.save(content, path)
        before = path.read_bytes()
        with pytest.raises(ParameterError) as caught:
            train(task, tmp_path / "second", resume=True, steps=4)
        assert caught.value.code == "bad-checkpoint" and caught.value.file == path
        assert path.read_bytes() == before
    other = ReflectanceTask(
        ReflectanceSettings(width=24, tokens=1000, scenes=2, pixels=8, validation=0.01), "cpu"
    )
    for begin in (weights, path):
        with pytest.raises(PhotostereoError) as refused:
            train(other, tmp_path / "third", begin=begin, steps=1)
        assert refused.value.code in ("bad-checkpoint", "unreadable-file")
    with pytest.raises(ParameterError) as caught:
        train(task, tmp_path / "fourth", steps=0)
    assert (
        caught.value.code == "no-training-step"
        and not (tmp_path / "fourth" / "weights.npz").exists()
    )


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"device": "x"}, "unknown-device"),
        ({"evaluate": Path("/etc/passwd")}, "not-a-folder"),
        ({}, "checkpoint-exists"),
    ],
)
def test_a_training_is_refused_before_it_begins(tmp_path, given, code) -> None:
    (tmp_path / "w.training").mkdir()
    if not given:
        (tmp_path / "w.training" / "checkpoint.pt").write_bytes(b"mine")
    with pytest.raises(PhotostereoError) as caught:
        trained(tmp_path / "w.npz", **given)
    assert caught.value.code == code


def test_the_context_network_is_the_same_in_torch() -> None:
    from photostereo.reflectance.learned.context import network
    from photostereo.reflectance.learned.context.features import CHANNELS
    from photostereo_lab.training.context.network import ContextNetwork

    weights = context_network()
    there = ContextNetwork()
    there.load_state_dict(
        {name: torch.from_numpy(values.copy()) for name, values in weights.arrays.items()}
    )
    maps = np.random.default_rng(0).normal(size=(1, 32, 32, CHANNELS)).astype(np.float32)
    with torch.no_grad():
        found = there(torch.from_numpy(maps).permute(0, 3, 1, 2)).permute(0, 2, 3, 1).numpy()
    np.testing.assert_allclose(network._forward(weights.arrays, maps), found, atol=1e-3, rtol=1e-3)
