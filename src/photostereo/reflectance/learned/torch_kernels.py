"""The set network on a GPU, from the package's weights."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.reflectance.learned.torch_network import SetNetwork, Stage
from photostereo.reflectance.learned.weights import Weights, stages_of, width_of
from photostereo.runtime.illumination import some_lights

#: Tokens at once: about 2 GB on the GPU.
CHUNK = 1_500_000

_networks: dict[tuple[str, str], SetNetwork] = {}


def network_of(weights: Weights, device: torch.device) -> SetNetwork:
    """The network with these numbers, kept for the next call."""
    key = (weights.digest, str(device))
    if key not in _networks:
        network = SetNetwork(width_of(weights.arrays), stages_of(weights.arrays))
        state = {f"stages.{name}": torch.from_numpy(values.copy()) for name, values in weights.arrays.items()}
        network.load_state_dict(state)
        _networks[key] = network.to(device).eval().requires_grad_(False)
    return _networks[key]


@torch.no_grad()  # type: ignore[untyped-decorator]
def predict(
    values: torch.Tensor,
    lights: NDArray[Any],
    weights: Weights,
    index: torch.Tensor | None = None,
    control: Control = SILENT,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Unit normals (N, 3) and expected errors (N,) in radians of (N, d) or (N, d, 3) intensities; of ``index`` if given."""
    network = network_of(weights, values.device)
    directions = torch.from_numpy(lights).to(values.device)
    run = Stage.__call__
    if values.is_cuda:
        from photostereo.reflectance.learned.torch_fused_stage import run_stage as run
    normals, errors = [], []
    count = len(values) if index is None else len(index)
    size = max(1, CHUNK // values.shape[1])
    control.stage("network", count)
    for first in range(0, count, size):
        which = slice(first, first + size) if index is None else index[first : first + size]
        part, own = values[which], some_lights(directions, which)
        part = part[..., None].expand(-1, -1, 3) if part.ndim == 2 else part
        normal, log_error = network(part.float(), own, run)[-1]
        normals.append(normal)
        errors.append(log_error.exp())
        control.advance(len(part))
    return torch.cat(normals), torch.cat(errors)
