"""Arrays of either kind: NumPy on the CPU, torch on a GPU.

Models and priors are written once, in operators that both kinds share (``+ * @``, slices, ``sum``, ``stack``,
``where``). Only the kernels exist once per kind. This module detects the kind of an array and converts between them.
torch (the ``gpu`` extra) is imported only for a device other than ``cpu``.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import Float32
from photostereo.core.errors import ParameterError, did_you_mean, require_extra

if TYPE_CHECKING:
    import torch

#: A NumPy array or a torch tensor; quoted because torch may not be installed.
Array: TypeAlias = "NDArray[Any] | torch.Tensor"

#: First GPUs whose threads can wait for each other (Volta, 2017).
OLDEST_CAPABILITY = 7
#: Maximum bytes of a staging array for a GPU: such memory cannot be swapped out.
LARGEST_STAGING = 1 << 30
#: Maximum bytes of a copy to a GPU that goes through such memory.
SMALL_UPLOAD = 1 << 20
#: Values in one batch of tensors: at most a few hundred megabytes of temporaries for any capture.
BATCH_VALUES = 1 << 23
#: Devices that users can choose; ``torch-cpu`` runs the GPU code path without a GPU, for tests.
DEVICES = ("cpu", "cuda", "torch-cpu")


def is_tensor(array: Array) -> TypeGuard[torch.Tensor]:
    """Return whether this is a torch tensor; does not import torch."""
    return type(array).__module__.partition(".")[0] == "torch"


def namespace(array: Array) -> Any:
    """Return the module with the functions for this kind of array: numpy or torch."""
    if is_tensor(array):
        import torch

        return torch
    return np


def to_numpy(array: Array) -> NDArray[Any]:
    """Return the array in main memory; waits until a GPU has computed it."""
    if is_tensor(array):
        return np.asarray(array.detach().cpu().numpy())
    return np.asarray(array)


def like(values: Array, reference: Array) -> Array:
    """Return NumPy values as an array of the reference's kind, on its device, in their own precision."""
    if not is_tensor(reference) or is_tensor(values):
        return values
    import torch

    return _upload(torch.as_tensor(np.array(values)), reference.device)


def cast(array: Array, dtype: str) -> Array:
    """Return the array in the precision ``"float32"`` or ``"float64"``, without a copy if it already has it."""
    if is_tensor(array):
        return array.to(getattr(namespace(array), dtype))
    return np.asarray(array).astype(dtype, copy=False)


def contiguous(array: Array) -> Array:
    """Return the array contiguous in memory, without a copy if it already is."""
    if is_tensor(array):
        return array.contiguous()
    return np.ascontiguousarray(array)


def zeros(shape: tuple[int, ...], reference: Array, dtype: str = "float64") -> Array:
    """Return zeros.

    Parameters
    ----------
    shape : tuple of int
        Their shape.
    reference : array
        Decides kind and device. NumPy allocates memory on first use.
    dtype : {"float64", "float32", ...}
        Their type.
    """
    if is_tensor(reference):
        return reference.new_zeros(shape, dtype=getattr(namespace(reference), dtype))
    return np.zeros(shape, dtype)


def empty(shape: tuple[int, ...], reference: Array, dtype: str = "float64") -> Array:
    """Return an uninitialized array; parameters as of :func:`zeros`."""
    if is_tensor(reference):
        return reference.new_empty(shape, dtype=getattr(namespace(reference), dtype))
    return np.empty(shape, dtype=dtype)


def tensor_batches(pixels: Array, *, copies: int = 1) -> Iterator[slice]:
    """Yield slices over the pixels, so that ``copies`` arrays of their intensities stay small."""
    step = max(BATCH_VALUES // (pixels.shape[1] * copies), 1)
    for first in range(0, len(pixels), step):
        yield slice(first, min(first + step, len(pixels)))


@dataclass(frozen=True)
class Device:
    """Device that stores arrays and computes with them; see :func:`find_device`."""

    name: str  #: as the user gave it
    torch_name: str = ""  #: torch's name of it; empty for NumPy on the CPU

    @property
    def uses_torch(self) -> bool:
        return bool(self.torch_name)

    def facts(self) -> dict[str, str]:
        """Return the torch version and the GPU, to add to the versions that every result contains."""
        if not self.uses_torch:
            return {}
        import torch

        if self.torch_name == "cpu":
            gpu = {}
        else:
            gpu = {"gpu": torch.cuda.get_device_name(self.torch_name)}
        return {"torch": torch.__version__, **gpu}

    def put(self, array: NDArray[Any]) -> Array:
        """Return a NumPy array on this device: unchanged on the CPU, a tensor elsewhere."""
        if not self.uses_torch:
            return array
        import torch

        source = array
        if self.torch_name == "cpu" and not array.flags.writeable:
            source = (
                array.copy()
            )  # torch cannot represent it; what is uploaded may share its memory
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            tensor = torch.from_numpy(np.ascontiguousarray(source))
        return _upload(tensor, torch.device(self.torch_name))

    def staging(self, shape: tuple[int, ...]) -> tuple[Float32, Callable[[], Array]]:
        """Return an uninitialized array in main memory, and a function that moves it to this device once it is filled.

        For a GPU it is in pinned memory, which the GPU reads several times faster; torch reuses it for the next one.
        """
        if not self.uses_torch:
            array = np.empty(shape, np.float32)
            return array, lambda: array
        import torch

        on_gpu = self.torch_name != "cpu" and 4 * math.prod(shape) <= LARGEST_STAGING
        tensor = torch.empty(shape, dtype=torch.float32, pin_memory=on_gpu)
        return tensor.numpy(), lambda: tensor.to(self.torch_name, non_blocking=on_gpu)


#: NumPy arrays in main memory.
CPU = Device("cpu")


def find_device(name: str) -> Device:
    """Return the device of that name, or raise an error that names what is missing.

    ``"cpu"``; ``"cuda"`` or ``"cuda:1"`` for an NVIDIA GPU; ``"torch-cpu"`` to run the torch code on the CPU.
    """
    if name == "cpu":
        return CPU
    kind, _, number = name.partition(":")
    if kind not in DEVICES or (number and not (kind == "cuda" and number.isdecimal())):
        hint = did_you_mean(name, DEVICES)
        raise ParameterError(
            f'There is no device "{name}".{hint} Use cpu, or cuda for an NVIDIA GPU.',
            code="unknown-device",
            name=name,
        )
    require_extra("torch", "gpu", "Solving and training on a GPU")

    if kind == "torch-cpu":
        return Device(name, "cpu")
    _require_gpu(name, int(number or 0))
    return Device(name, name)


def _require_gpu(name: str, number: int) -> None:
    """Raise an error if there is no GPU with this number, or it is too old."""
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    reason = ""
    if torch.version.cuda is None:
        reason = "this PyTorch is built without CUDA"
    elif number >= count:
        reason = f"the driver finds {count}"
    if reason:
        raise ParameterError(
            f"There is no NVIDIA GPU for the device {name}: {reason}. Check `nvidia-smi` and "
            "https://pytorch.org/get-started, or leave the device out to compute on the CPU.",
            code="no-gpu",
            name=name,
            reason=reason,
        )
    major, minor = torch.cuda.get_device_capability(number)
    if major < OLDEST_CAPABILITY:
        raise ParameterError(
            f"The GPU of the device {name} is too old: it has compute capability {major}.{minor}, "
            f"and {OLDEST_CAPABILITY}.0 is needed. Leave the device out to compute on the CPU.",
            code="old-gpu",
            name=name,
            major=major,
            minor=minor,
            oldest=OLDEST_CAPABILITY,
        )


@contextmanager
def matmul_precision(name: str) -> Iterator[None]:
    """Set torch's precision of float32 matrix products, ``"highest"`` or ``"high"`` (TF32), and restore it afterwards.

    Does nothing if torch is not loaded.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    libraries = _precision_of_libraries(torch)
    by_library = [library.fp32_precision for library in libraries]
    try:
        before = torch.get_float32_matmul_precision()
    except RuntimeError:  # torch cannot report it if the libraries' own were set
        before = name
    torch.set_float32_matmul_precision(name)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
        for library, own in zip(libraries, by_library, strict=True):
            library.fp32_precision = own


def _precision_of_libraries(torch: Any) -> list[Any]:
    """Return the per-library precision settings of newer torch versions, which are set along with the global one."""
    backends = [getattr(torch.backends, name, None) for name in ("cuda", "mkldnn")]
    products = [getattr(backend, "matmul", None) for backend in backends]
    return [product for product in products if hasattr(product, "fp32_precision")]


#: Decorates a function whose products need full float32 precision, regardless of the program's own setting.
in_full_precision = matmul_precision("highest")


@contextmanager
def memory_in_words() -> Iterator[None]:
    """Raise an error with a remedy if the block, or a decorated function, runs out of GPU memory."""
    try:
        yield
    except RuntimeError as problem:
        if type(problem).__name__ != "OutOfMemoryError":  # torch's; it may not be installed
            raise
        raise ParameterError(
            "The GPU's memory is too small for this capture. Crop it to its mask, use fewer "
            "photographs or a larger stride, solve fewer settings at once, or leave the device "
            "out to compute on the CPU.",
            code="gpu-memory",
        ) from None


def _upload(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Copy a tensor to a device without waiting for the work queued there.

    This needs pinned memory, which torch keeps until it is read: ordinary memory could have changed by then.
    """
    if device.type != "cuda" or not 0 < tensor.nbytes <= SMALL_UPLOAD:
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)
