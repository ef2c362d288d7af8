"""The CUDA source of sparse regression against the compiled loops, without a GPU: built by a C++ compiler."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from photostereo.reflectance.sparse import kernels
from photostereo.reflectance.sparse.model import PRIOR_VARIANCE, SETTLED

COMPILER = shutil.which("g++") or shutil.which("clang++")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
SOURCE = Path(kernels.__file__).with_name("sparse.cu")
#: What CUDA brings along; the one thread that runs has its number in ``blockIdx``.
SHIM = """
#include <cmath>
#include <cstddef>
#define __device__
#define __global__
#define SHARING 1
#define INTENSITY double
#define DIRECTION double
struct Three { int x, y, z; };
static Three blockIdx, threadIdx, blockDim = {1, 1, 1}, gridDim = {1, 1, 1};
extern "C" void become(int thread) { blockIdx.x = thread; }
template <class T> T __shfl_xor_sync(unsigned, T value, int, int) { return value; }
using std::fabs; using std::fmax; using std::log; using std::sqrt;
"""
COUNT, PHOTOGRAPHS = 200, 12


@pytest.fixture(scope="module")
def cuda(tmp_path_factory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("cuda")
    (folder / "sparse.cpp").write_text(SHIM + SOURCE.read_text(encoding="utf-8"), encoding="utf-8")
    words = [COMPILER, "-O2", "-std=c++17", "-shared", "-fPIC", "-o", "sparse.so", "sparse.cpp"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(folder / "sparse.so"))


@pytest.fixture(params=["distant", "near"])
def scene(request) -> tuple[np.ndarray, np.ndarray]:
    """Pixels with outliers, one of them black, and lights: the same for all, or of each pixel."""
    rng = np.random.default_rng(3)
    lights = rng.normal(size=(1 if request.param == "distant" else COUNT, 3, PHOTOGRAPHS))
    lights[:, 2] = np.abs(lights[:, 2]) + 1
    lights /= np.linalg.norm(lights, axis=1, keepdims=True)
    normals = rng.normal(size=(COUNT, 3)) * [0.3, 0.3, 0.1] + [0, 0, 0.8]
    pixels = np.einsum("nc,ncd->nd", normals, np.broadcast_to(lights, (COUNT, 3, PHOTOGRAPHS)))
    pixels += 0.01 * rng.normal(size=pixels.shape) + 0.5 * (rng.random(pixels.shape) < 0.15)
    pixels[7] = 0
    return pixels, np.ascontiguousarray(lights)


def run(function, *arguments) -> None:
    plain = {float: ctypes.c_double, int: ctypes.c_int}
    function.restype = None
    function(
        *(
            plain[type(a)](a) if type(a) in plain else a.ctypes.data_as(ctypes.c_void_p)
            for a in arguments
        )
    )


def apart(lights: np.ndarray) -> int:
    return 0 if len(lights) == 1 else lights[0].size


def outputs(*shapes: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    return tuple(np.zeros(shape) for shape in shapes)


def test_sparse_bayesian_learning(cuda, scene) -> None:
    pixels, lights = scene
    scale = np.abs(pixels).max(axis=1)
    numbers = (1e-4, float(PRIOR_VARIANCE), 1e-8, float(SETTLED), 400)
    found, expected, scratch = outputs((COUNT, 3), (COUNT, 3), (2, COUNT, PHOTOGRAPHS))
    steps = np.zeros((2, COUNT), np.int64)
    weights = np.zeros((2, COUNT, PHOTOGRAPHS), np.float32)
    kernels.sbl_em(pixels, lights, scale, *numbers, expected, steps[0], weights[0])
    for pixel in range(COUNT):
        cuda.become(pixel)
        sizes = (COUNT, PHOTOGRAPHS, 1, apart(lights))
        run(
            cuda.sbl_em,
            pixels,
            lights,
            scale,
            *numbers,
            found,
            steps[1],
            weights[1],
            scratch,
            *sizes,
        )
    assert np.abs(found - expected).max() < 1e-6 and not found[7].any()
    assert (
        np.abs(weights[1] - weights[0])[scale > 0].max() < 2e-3
    )  # those of the last step, which may be one apart
    assert (weights[1] < 0.1).mean() > 0.1  # outliers are found at all


@pytest.mark.parametrize("redescending", [0, 1])
def test_reweighting(cuda, scene, redescending: int) -> None:
    pixels, lights = scene
    normals = np.random.default_rng(0).normal([0, 0, 1], size=(COUNT, 3))
    threshold = np.full(COUNT, 0.02)
    shapes = ((COUNT, 6), (COUNT, 3), (COUNT,))
    found, expected = outputs(*shapes), outputs(*shapes)
    kernels.reweigh(pixels, lights, normals, threshold, bool(redescending), *expected)
    cuda.become(0)
    sizes = (1, COUNT, PHOTOGRAPHS, redescending, apart(lights))
    run(cuda.reweigh, pixels, lights, normals, threshold, *found, *sizes)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)


def test_least_absolute_residuals(cuda, scene) -> None:
    pixels, lights = scene
    start = np.tile([0.0, 0.0, 1.0], (COUNT, 1))
    found, expected, scratch = outputs((COUNT, 3), (COUNT, 3), (3, PHOTOGRAPHS, COUNT))
    steps = np.zeros((2, COUNT), np.int64)
    kernels.l1_regression(pixels, lights, start, 1e-6, 1e-8, 200, expected, steps[0])
    cuda.become(0)
    sizes = (COUNT, PHOTOGRAPHS, apart(lights))
    run(
        cuda.l1_regression, pixels, lights, start, 1e-6, 1e-8, 200, found, steps[1], scratch, *sizes
    )
    assert np.abs(found - expected).max() < 1e-6 and not found[7].any()
