"""The contract that every registered method keeps. Registering a method enrols it here, plugins included.

What runs on a GPU keeps the same contract on torch's CPU device, and on a GPU where there is one.
"""

from __future__ import annotations

import pytest

from photostereo.priors.entry import prior_names
from photostereo.solver.methods import find_method, method_names
from photostereo_lab.testing import CHECKS

try:
    import torch
except ImportError:
    torch = None
else:
    torch.set_num_threads(
        1
    )  # these problems are small: more threads would only wait for each other

DEVICES = ["cpu"]
if torch is not None:
    DEVICES += ["torch-cpu", *(["cuda"] if torch.cuda.is_available() else [])]
#: Every method, every prior, and pairs without a name.
METHODS = (
    *method_names(),
    "cbr+dictionary",
    "rpca+dictionary",
    *(f"ls+{name}" for name in prior_names() if name != "dictionary"),
    "sbl+smoothness",
)
CASES = [
    pytest.param(
        name, device, id=f"{name}-{device}", marks=[] if device == "cpu" else [pytest.mark.torch]
    )
    for device in DEVICES
    for name in METHODS
    if device == "cpu" or find_method(name).model.on_gpu
]


@pytest.mark.parametrize(("name", "device"), CASES)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_contract(check, name: str, device: str) -> None:
    check(name, device)
