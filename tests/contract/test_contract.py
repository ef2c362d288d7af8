"""The contract that every registered method keeps. Registering a method enrols it here, plugins included.

What runs on a GPU keeps the same contract on torch's CPU device, and on a GPU where there is one.
"""

from __future__ import annotations

import pytest

from photostereo.priors.entry import prior_names
from photostereo.solver.methods import find_method, method_names
from photostereo_lab import testing

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
#: What is a matter of the model alone: a pair with a prior would repeat the check of its model.
OF_THE_MODEL = {
    testing.check_near_lights,
    testing.check_order_of_the_lights,
    testing.check_factor_on_the_photographs,
    testing.check_black_pixels,
}
CASES = [
    pytest.param(
        check,
        name,
        device,
        id=f"{check.__name__.removeprefix('check_')}-{name}-{device}",
        marks=[] if device == "cpu" else [pytest.mark.torch],
    )
    for check in testing.CHECKS
    for device in DEVICES
    for name in METHODS
    if device == "cpu" or find_method(name).model.on_gpu
    if check not in OF_THE_MODEL or not find_method(name).has_prior
]


@pytest.mark.parametrize(("check", "name", "device"), CASES)
def test_contract(check, name: str, device: str) -> None:
    check(name, device)


def test_every_model_is_checked_alone() -> None:
    alone = {find_method(name).model.name for name in METHODS if not find_method(name).has_prior}
    assert alone == {find_method(name).model.name for name in METHODS}
