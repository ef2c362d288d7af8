"""Compile CUDA C++ kernels from source at run time, using only what comes with torch.

torch includes NVRTC, NVIDIA's compiler as a library. A kernel is a ``.cu`` file next to the Python code that calls it. It
is compiled for the GPU on first use (about a second) and kept for the life of the process. Users need no compiler,
headers or build step.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from photostereo.core.errors import MissingDependencyError
from photostereo.runtime.arrays import is_tensor

#: Threads in a block; a multiple of the 32 that run in step.
_THREADS_PER_BLOCK = 256
#: Blocks of a kernel whose threads take several pixels each.
_MOST_BLOCKS = 1 << 20
#: Bytes of shared memory available to every kernel.
_SHARED_BY_DEFAULT = 48 * 1024
#: The driver's number of the attribute CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES.
_MAX_DYNAMIC_SHARED_MEMORY = 8


def are_doubles(first: Any, *others: Any) -> bool:
    """Return whether these are GPU tensors in double precision, the others with the axes of the first or its last ones."""
    if any(other.ndim == 0 for other in others):
        return False
    return all(map(_is_double_on_gpu, (first, *others)))


def _is_double_on_gpu(array: Any) -> bool:
    if not is_tensor(array) or not array.is_cuda:
        return False
    return array.dtype.itemsize == 8 and bool(array.is_floating_point())


def launch_per_pixel(
    name: str, vectors: Any, arrays: tuple[Any, ...], shape: Any, *counts: int
) -> Any:
    """Run a kernel of ``pixelwise.cu``: a small step that a descent repeats for each pixel.

    Parameters
    ----------
    name : str
        The kernel.
    vectors : (..., 3) tensor
        A vector per pixel; it selects the GPU and the type of the output.
    arrays : tuple of tensor
        The kernel's arguments, before the output.
    shape : tuple of int
        The shape of the output.
    *counts : int
        Numbers of rows of arrays that may be shared by pixels, before the number of pixels.

    Returns
    -------
    tensor
        The output.
    """
    total = vectors.numel() // 3
    out = vectors.new_empty(shape)
    arguments = tuple(array.contiguous() for array in (*arrays, out))
    blocks = min(-(-total // _THREADS_PER_BLOCK), _MOST_BLOCKS)
    launch(__package__, "pixelwise.cu", name, {}, (*arguments, *counts, total), blocks)
    return out


def launch(
    package: str,
    file: str,
    name: str,
    definitions: Mapping[str, object],
    arguments: tuple[Any, ...],
    blocks: int,
    threads: int = _THREADS_PER_BLOCK,
    *,
    shared: int = 0,
    cooperative: bool = False,
) -> None:
    """Compile a kernel of a package's ``.cu`` file once, and queue it on torch's current stream.

    Parameters
    ----------
    package, file : str
        Where the source is.
    name : str
        The kernel, declared as ``extern "C" __global__``.
    definitions : mapping
        Preprocessor macros by name.
    arguments : tuple
        Tensors (passed as pointers; the first one selects the GPU), int (as C int) and float (as C double).
    blocks, threads : int
        Number of blocks, and of threads in each.
    shared : int
        Bytes of dynamic shared memory per block.
    cooperative : bool
        The blocks wait for each other: all must run at once.
    """
    import torch

    with device_of(arguments[0]):
        driver = _driver()
        defined = tuple(sorted(definitions.items()))
        function = _compile(package, file, name, defined, torch.cuda.current_device())
        if shared > _SHARED_BY_DEFAULT:
            _check(driver.cuFuncSetAttribute(function, _MAX_DYNAMIC_SHARED_MEMORY, shared), driver)
        values = [_as_c(argument) for argument in arguments]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        shape = (blocks, 1, 1, threads, 1, 1)
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        if cooperative:
            _check(
                driver.cuLaunchCooperativeKernel(function, *shape, shared, stream, pointers), driver
            )
        else:
            _check(driver.cuLaunchKernel(function, *shape, shared, stream, pointers, None), driver)


def device_of(tensor: Any) -> AbstractContextManager[Any]:
    """Select a tensor's GPU within the block; free if it is already current, as it nearly always is."""
    import torch

    if torch.cuda.current_device() == tensor.get_device():
        return nullcontext()
    there: AbstractContextManager[Any] = torch.cuda.device(tensor.device)
    return there


def c_name(dtype: Any) -> str:
    """Return the CUDA C++ name of a torch floating-point type."""
    return {"torch.float32": "float", "torch.float64": "double"}[str(dtype)]


@lru_cache(maxsize=64)
def _compile(
    package: str, file: str, name: str, definitions: tuple[tuple[str, object], ...], gpu: int
) -> ctypes.c_void_p:
    import torch

    torch.cuda.current_stream().synchronize()  # makes torch's context the current one
    major, minor = torch.cuda.get_device_capability(gpu)
    options = [f"--gpu-architecture=sm_{major}{minor}", "--std=c++17"]
    options += [f"-D{key}={value}" for key, value in definitions]
    image = _cubin((files(package) / file).read_text(encoding="utf-8"), file, options)
    driver = _driver()
    module = ctypes.c_void_p()
    function = ctypes.c_void_p()
    _check(driver.cuModuleLoadData(ctypes.byref(module), image), driver)
    _check(driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode()), driver)
    return function


def _cubin(source: str, file: str, options: list[str]) -> bytes:
    nvrtc = _nvrtc()
    program = ctypes.c_void_p()
    size = ctypes.c_size_t()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), file.encode(), 0, None, None)
    try:
        flags = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        if nvrtc.nvrtcCompileProgram(program, len(options), flags) != 0:
            nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            nvrtc.nvrtcGetProgramLog(program, log)
            message = log.value.decode(errors="replace")
            raise RuntimeError(f"{file} did not compile with {options}:\n{message}")
        nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
        image = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetCUBIN(program, image)
        return image.raw
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


@lru_cache(maxsize=1)
def _nvrtc() -> ctypes.CDLL:
    import torch

    major = str(torch.version.cuda).split(".")[0]
    windows = sys.platform == "win32"
    name = f"nvrtc64_{major}0_0.dll" if windows else f"libnvrtc.so.{major}"
    # pip installs NVIDIA's libraries in torch/lib on Windows, and in nvidia/*/lib next to torch on Linux.
    folder = Path(torch.__file__).parent
    places = [folder / "lib" / name, *sorted(folder.parent.glob(f"nvidia/*/lib/{name}"))]
    for place in [name, *(str(place) for place in places if place.exists())]:
        try:
            return ctypes.CDLL(place)
        except OSError:
            continue
    raise MissingDependencyError(
        f"NVIDIA's run-time compiler ({name}) was not found; it comes with torch's CUDA builds. "
        "Install torch again with pip, or work without the GPU (device cpu).",
        code="missing-nvrtc",
        name=name,
    )


@lru_cache(maxsize=1)
def _driver() -> Any:
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


def _as_c(argument: Any) -> Any:
    if isinstance(argument, bool | int):
        return ctypes.c_int(int(argument))
    if isinstance(argument, float):
        return ctypes.c_double(argument)
    if not argument.is_cuda or not argument.is_contiguous():
        raise TypeError("A CUDA kernel needs contiguous tensors on the GPU.")
    return ctypes.c_void_p(argument.data_ptr())


def _check(result: int, driver: Any) -> None:
    if result == 0:
        return
    text = ctypes.c_char_p()
    driver.cuGetErrorString(result, ctypes.byref(text))
    message = f"error {result}"
    if text.value:
        message = text.value.decode()
    raise RuntimeError(f"The CUDA driver rejected a kernel: {message}.")
