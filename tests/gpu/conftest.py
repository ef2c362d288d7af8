"""The torch path is tested on torch's CPU device everywhere, and on a GPU where there is one."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (the gpu extra)")

# The problems here are small: more threads would only wait for each other.
torch.set_num_threads(1)


def _devices():
    yield "torch-cpu"
    yield pytest.param(
        "cuda",
        marks=pytest.mark.skipif(
            not torch.cuda.is_available(), reason="there is no NVIDIA GPU here"
        ),
    )


@pytest.fixture(params=_devices(), scope="session")
def device(request) -> str:
    return request.param


@pytest.fixture(scope="session")
def torch_device(device: str) -> str:
    return {"torch-cpu": "cpu"}.get(device, device)
