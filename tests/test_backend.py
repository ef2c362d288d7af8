"""Without torch the package works, and a device that needs it says what to install."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from photostereo.core.errors import MissingDependencyError, ParameterError
from photostereo.runtime.arrays import (
    CPU,
    cast,
    empty,
    find_device,
    is_tensor,
    like,
    memory_in_words,
    namespace,
    to_numpy,
)


def test_numpy_arrays_pass_through() -> None:
    values = np.arange(3.0)
    assert CPU.put(values) is values
    assert like(values, values) is values
    assert to_numpy(values) is values
    assert namespace(values) is np
    assert not is_tensor(values)
    assert cast(values, "float32").dtype == np.float32
    assert like(values, values.astype(np.float32)).dtype == np.float64
    assert empty((2, 3), values, "float32").shape == (2, 3)
    assert not find_device("cpu").uses_torch


@pytest.mark.parametrize("name", ["cuda", "torch-cpu"])
def test_without_torch_the_message_says_what_to_install(name: str, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError) as caught:
        find_device(name)
    assert (caught.value.code, caught.value.values["extra"]) == ("missing-extra", "gpu")


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "torch-cpu:1", "cpu:0", ""])
def test_unknown_devices(name: str) -> None:
    with pytest.raises(ParameterError) as caught:
        find_device(name)
    assert caught.value.code == "unknown-device"


def test_a_gpu_without_enough_memory_says_what_to_do() -> None:
    class OutOfMemoryError(RuntimeError):
        """As torch names it."""

    def fails(error: Exception) -> None:
        raise error

    with pytest.raises(ParameterError) as caught:
        memory_in_words()(fails)(OutOfMemoryError("CUDA out of memory"))
    assert caught.value.code == "gpu-memory"
    with pytest.raises(RuntimeError, match="something else"):
        memory_in_words()(fails)(RuntimeError("something else"))


def test_a_solve_on_the_cpu_does_not_import_torch() -> None:
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "import photostereo as ps\n"
        "from photostereo_lab.scenes import render_scene\n"
        "capture = render_scene('sphere', size=40)\n"
        "assert ps.solve(capture, method='dlnv', max_iter=1).normals.any()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
