"""The network of unknown lights in torch, its synthetic scenes, and its training in small."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from photostereo.io.network_weights import Weights, read_weights
from photostereo.lights.unknown.crops import SIDE, SYMMETRIES, Thumbnails
from photostereo.lights.unknown.network import LightNetwork, shipped_weights

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def shot():
    from photostereo_lab.training.lights.shots import show
    from photostereo_lab.training.scenes import draw_pool

    torch.manual_seed(1)
    return show(draw_pool(3, "cpu", SIDE, 0.7), 5)


def torch_network(weights: Weights):
    from photostereo_lab.training.lights.network import LightNetwork as TorchNetwork

    network = TorchNetwork()
    network.load_state_dict(
        {name: torch.from_numpy(values.copy()) for name, values in weights.arrays.items()}
    )
    return network.eval()


def test_both_forms_have_the_same_arrays() -> None:
    from photostereo_lab.training.lights.network import LightNetwork as TorchNetwork

    ours = {n: v.shape for n, v in shipped_weights().arrays.items()}
    assert {n: tuple(v.shape) for n, v in TorchNetwork().state_dict().items()} == ours


@pytest.mark.parametrize("some_known", [False, True])
def test_numpy_equals_torch(shot, some_known: bool) -> None:
    known = torch.zeros(3, 5, 4)
    if some_known:
        known[:, 1] = torch.cat([shot.lights[:, 1], torch.ones(3, 1)], -1)
    with torch.no_grad():
        there = torch_network(shipped_weights())(shot.images, shot.mask, known)
    for scene in range(3):
        images = np.ascontiguousarray(shot.images[scene].permute(0, 2, 3, 1).numpy())
        directions = np.where(known[scene, :, 3:] > 0, known[scene, :, :3], np.nan)
        network = LightNetwork(
            shipped_weights(), Thumbnails(images, shot.mask[scene].numpy()), directions
        )
        first = network.first_look(SYMMETRIES[0])
        # Both second looks begin with the same lights: a pixel on the edge of a shadow may be in it for one of two
        # lights that differ in the last digit, and out of it for the other.
        lights, logs = there.first_lights[scene].numpy(), there.first_strengths[scene].numpy()
        np.testing.assert_allclose(first.lights, lights, atol=1e-5)
        np.testing.assert_allclose(first.logs, logs, atol=1e-5)
        second = network.second_look(first, lights, logs, SYMMETRIES[0])
        np.testing.assert_allclose(second.lights, there.lights[scene].numpy(), atol=1e-3)
        np.testing.assert_allclose(second.logs, there.strengths[scene].numpy(), atol=1e-3)
        np.testing.assert_allclose(second.log_errors, there.log_error[scene].numpy(), atol=1e-3)


def test_a_mirrored_scene_is_a_scene(shot) -> None:
    """Turning photographs and truth alike leaves the shading as it is: n·l is the same at every pixel."""

    def cosines(s) -> np.ndarray:
        return np.sort(
            torch.einsum("skhw,sdk->sdhw", s.normals, s.lights).flatten(2).numpy(), axis=2
        )

    for turns, flip in ((1, False), (3, True)):
        other = shot.turned(turns, flip)
        np.testing.assert_allclose(cosines(other), cosines(shot), atol=1e-5)
        back = SYMMETRIES[[(s.turns, s.mirrored) for s in SYMMETRIES].index((turns, flip))]
        np.testing.assert_allclose(
            other.lights.numpy(), back.of_vectors(shot.lights.numpy()), atol=1e-6
        )
        np.testing.assert_allclose(
            other.images[0, 0].numpy(), back.of_pictures(shot.images[0, 0].numpy())
        )


def test_an_ellipsoid_has_the_normals_of_an_ellipsoid() -> None:
    from photostereo_lab.training.solids import ELLIPSOID, draw_solids, see_solids

    torch.manual_seed(0)
    solids = draw_solids(40, "cpu")
    first = sum(solids.counts[:ELLIPSOID])
    some = solids[slice(first, first + solids.counts[ELLIPSOID])]
    some.counts = (0, 0, 0, solids.counts[ELLIPSOID], 0)
    some.amplitude, some.twist = torch.zeros_like(some.amplitude), torch.zeros_like(some.twist)
    some.radius = torch.full_like(some.radius, 0.6)  # a ball
    heights, normals, mask = see_solids(some, 48)
    for height, normal, inside in zip(heights, normals, mask, strict=True):
        rows, columns = torch.nonzero(inside, as_tuple=True)
        axis = torch.linspace(-1, 1, 48)
        points = torch.stack([axis[columns], -axis[rows], height[inside]], -1)
        center = torch.linalg.lstsq(
            torch.cat([2 * points, torch.ones(len(points), 1)], 1),
            points.square().sum(1, keepdim=True),
        ).solution[:3, 0]
        closed = torch.nn.functional.normalize(points - center, dim=-1)
        inner = closed[:, 2] > 0.15
        assert float((closed - normal[inside])[inner].norm(dim=-1).max()) < 0.01


def test_a_wall_hides_low_lights() -> None:
    """A wall of height h at distance a hides lights below atan(h / a), and no others."""
    from photostereo_lab.training.transport import find_horizons, visibility

    heights = torch.zeros(1, 64, 64)
    heights[:, :, 48:] = 0.5
    horizons = find_horizons(heights)
    away = (48 - 16) * 2 / 63
    lowest = math.atan(0.5 / away)
    for elevation, expected in ((lowest - 0.1, 0.0), (lowest + 0.1, 1.0)):
        light = torch.tensor([[[math.cos(elevation), 0.0, math.sin(elevation)]]])
        seen = visibility(
            horizons, light, torch.full((1, 1, 1, 1), elevation), torch.full((1, 1, 1, 1), 0.005)
        )
        assert float(seen[0, 0, 32, 16]) == pytest.approx(expected, abs=0.05)
    from_the_other_side = torch.tensor([[[-0.99, 0.0, 0.14]]])
    seen = visibility(
        horizons,
        from_the_other_side,
        torch.full((1, 1, 1, 1), 0.14),
        torch.full((1, 1, 1, 1), 0.005),
    )
    assert float(seen[0, 0, 32, 16]) > 0.95


def test_bounces_fill_a_bowl_as_an_integrating_sphere() -> None:
    """In half a hollow ball with albedo ρ under E everywhere, ρE / (1 − ρ/2) is given off everywhere; on a plane ρE."""
    from photostereo_lab.training.scenes import places_of
    from photostereo_lab.training.transport import exchange, radiosity

    axis = torch.linspace(-1, 1, SIDE)
    y, x = torch.meshgrid(axis, -axis, indexing="ij")
    depth = torch.sqrt((1 - x * x - y * y).clamp_min(0))
    bowl = torch.stack([x, y, depth], -1)
    mask = torch.stack([torch.ones(SIDE, SIDE, dtype=torch.bool), depth > 0.05])
    heights = torch.stack([torch.zeros_like(x), -depth])
    normals = torch.stack(
        [torch.tensor([0.0, 0.0, 1.0]).expand(SIDE, SIDE, 3), bowl * mask[1][..., None]]
    )
    patches = exchange(heights, normals, mask, places_of(heights, mask))
    albedo = 0.5 * mask[:, None].expand(-1, 3, -1, -1).float()
    found = radiosity(patches, mask[:, None].float(), albedo)[:, 0, 0]
    assert float(found[0].max()) == pytest.approx(0.5, abs=1e-3)
    middle = found[1].reshape(16, 16)[6:10, 6:10]
    assert float(middle.mean()) == pytest.approx(0.5 / 0.75, rel=0.1)


def test_a_table_lights_a_ball_from_below() -> None:
    from photostereo_lab.training import transport

    torch.manual_seed(0)
    lights = torch.tensor([[[0.0, 0.8, 0.6]]]).expand(64, -1, -1)
    directions = transport.sphere("cpu")
    seen = transport.radiance(lights, directions).mean((0, 1, 2))
    below, above = directions[:, 1] < -0.5, directions[:, 1] > 0.5
    assert float(seen[below].mean()) > 2 * float(seen[above].mean())
    # They cover the sphere evenly: nothing is left of their mean, and a third of the mean square of each component.
    assert float(directions.mean(0).norm()) < 0.02
    torch.testing.assert_close(
        directions.T @ directions / len(directions), torch.eye(3) / 3, atol=0.02, rtol=0
    )


def test_spoiled_captures_have_lights_and_photographs_that_moved() -> None:
    from photostereo_lab.training import sensor
    from photostereo_lab.training.layouts import draw_directions, miscalibrated

    torch.manual_seed(0)
    lights = draw_directions(200, 12, "cpu")
    off = [
        torch.rad2deg(
            torch.acos((lights * miscalibrated(lights, 1.5, 0.05, share)[0]).sum(-1).clamp(-1, 1))
        )
        for share in (0.0, 1.0)
    ]
    assert float(off[0].max()) < 8 < float(off[1].amax(1).median())
    # A slope is as steep in every photograph that moved, and as high as its movement says.
    ramp = torch.linspace(0, 1, 64).expand(40, 6, 3, 64, 64)
    moved = sensor._shaken(
        ramp, lambda low=0.0, high=1.0: low + (high - low) * torch.rand(40, 1, 1, 1, 1)
    )
    still = (moved == ramp).flatten(1).all(1)
    assert 0 < int((~still).sum()) < 20
    inner = moved[~still][..., 12:-12, 12:-12]
    torch.testing.assert_close(
        inner.diff(dim=-1), torch.full_like(inner[..., 1:], 1 / 63), atol=1e-5, rtol=0
    )


def test_a_tiny_training_writes_weights(tmp_path) -> None:
    from photostereo_lab.training.lights.task import LightSettings, LightTask
    from photostereo_lab.training.loop import train

    task = LightTask(LightSettings(photographs=8, scenes=2, reuse=1, validation=0.001), "cpu")
    train(task, tmp_path, steps=1)
    lines = [json.loads(line) for line in (tmp_path / "curve.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1]
    shapes = {name: values.shape for name, values in shipped_weights().arrays.items()}
    trained = read_weights(tmp_path / "weights.npz", lambda arrays: shapes)
    assert trained.digest != shipped_weights().digest
