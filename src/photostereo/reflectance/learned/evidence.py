"""Evidence of single pixels: the matte fit and the set network, on photographs averaged within the noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray
from photostereo.diagnosis.noise import PixelNoise
from photostereo.reflectance.learned import kernels
from photostereo.reflectance.learned.matte import Witness, fit_both, matte_witness, misfits_around
from photostereo.reflectance.learned.neighbors import average_neighbors
from photostereo.reflectance.learned.student import Student
from photostereo.reflectance.learned.weights import Weights
from photostereo.runtime.arrays import Array, contiguous, is_tensor, like, namespace, to_numpy
from photostereo.runtime.illumination import some_lights

#: Below this variance (radians²; 0.3°), reached only if the matte fit explains the photographs, it is used alone. On 54
#: rendered scenes (matte and glossy; 12 and 24 photographs; noise of 0.1 to 1 %), the average with the network is at most
#: 0.018° away on average, and its error differs by less than 0.003°; at 8e-5: 0.04° and 0.008°, at 4e-4: 0.3° and 0.3°.
MATTE_ALONE = 3e-5


class Photographs(NamedTuple):
    """What is seen of N pixels: intensities (N, d), colors (N, d, 3) or None, and lights (3, d) or (N, 3, d)."""

    pixels: Array
    colors: Array | None
    lights: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence about N pixels, one by one."""

    seen: Photographs  #: averaged within the noise
    fine: Array  #: (N,) variance of their noise
    noise: Array  #: (N,) the same, including noise that neighbors share
    around: tuple[Array, Array]  #: misfits that neighbors share, of both matte fits
    #: matte, network: the witnesses; the network's variance is infinite for pixels that the matte fit settles
    matte: Witness
    network: Witness

    def some(self, which: slice) -> Evidence:
        """Return a copy for some of the pixels."""

        def of(part: Array) -> Array:
            return contiguous(part[which] + 0)

        pixels, colors, lights = self.seen
        seen = Photographs(
            of(pixels), None if colors is None else of(colors), some_lights(lights, which)
        )
        around = (of(self.around[0]), of(self.around[1]))
        witnesses = (self.matte, self.network)
        return Evidence(
            seen, of(self.fine), of(self.noise), around, *(one.some(which) for one in witnesses)
        )


def gather_evidence(
    seen: Photographs,
    mask: BoolArray | None,
    noise: PixelNoise,
    weights: Weights,
    *,
    neighbors: bool = True,
    student: Student | None = None,
    control: Control = SILENT,
) -> Evidence:
    """Compute the witnesses of every pixel in ``mask``; with ``neighbors``, similar pixels are averaged."""
    fine = noise.fine
    if neighbors and mask is not None and bool(fine.any()):
        seen, fine = _averaged(seen, mask, fine, control)
    unexplained = fine if noise.coarse is None else namespace(fine).maximum(fine, noise.coarse)
    control.check()
    fits = fit_both(seen.pixels, seen.lights, unexplained)
    control.check()
    around = 0.0 * fine, 0.0 * fine
    if mask is not None:
        around = misfits_around(fits, unexplained, mask, noise.coarse is not None)
    matte = matte_witness(fits, unexplained, around)
    network = ask_network(matte, seen, weights, student, control)
    return Evidence(seen, fine, unexplained, around, matte, network)


def ask_network(
    matte: Witness,
    seen: Photographs,
    weights: Weights,
    student: Student | None = None,
    control: Control = SILENT,
) -> Witness:
    """Return the network's witness, or that of a ``student`` if it can answer, for pixels that the matte fit does not
    settle."""
    open_ = matte.variance > MATTE_ALONE
    if student is None and bool(open_.all()):
        normals, error = _predict(seen, weights, None, control)
        return Witness(normals, error * error)
    which = like(np.flatnonzero(to_numpy(open_)), seen.pixels)
    found = Witness(matte.normals + 0, namespace(matte.variance).full_like(matte.variance, np.inf))
    if student is not None and len(which):
        normals, error, trusted = student.answer(seen.pixels, seen.colors, matte, which, control)
        found.normals[which] = normals
        found.variance[which] = error * error
        which = which[~trusted]
    if len(which):
        normals, error = _predict(seen, weights, which, control)
        found.normals[which] = normals
        found.variance[which] = error * error
    return found


def _averaged(
    seen: Photographs, mask: BoolArray, noise: Array, control: Control
) -> tuple[Photographs, Array]:
    """Average pixels with neighbors that are equal within the noise; also return the remaining variance."""
    pixels, colors, lights = seen
    values = pixels
    if colors is not None:
        values = namespace(pixels).concatenate([pixels[..., None], colors], -1)
    control.check()
    averaged, share = average_neighbors(values, pixels, mask, noise, control)
    if colors is not None:
        averaged, colors = contiguous(averaged[..., 0]), contiguous(averaged[..., 1:])
    return Photographs(averaged, colors, lights), noise * share


def _predict(
    seen: Photographs, weights: Weights, index: Array | None, control: Control
) -> tuple[Array, Array]:
    """Return the network's normals and expected errors of the pixels in ``index``, or of all."""
    pixels, colors, lights = seen
    directions = np.ascontiguousarray(lights.swapaxes(-1, -2), dtype=np.float32)
    if is_tensor(pixels):
        from photostereo.reflectance.learned import torch_network

        values = pixels if colors is None else colors
        return torch_network.predict(values, directions, weights, index, control)  # type: ignore[no-any-return]
    if colors is None:
        colors = np.broadcast_to(pixels[..., None], (*pixels.shape, 3))
    return kernels.predict(colors, directions, weights, index, control)
