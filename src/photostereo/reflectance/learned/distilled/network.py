"""The answer of the distilled network, and whether it can be trusted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import get_num_threads

from photostereo.core.control import Control
from photostereo.core.conventions import BoolArray, Float32, Indices
from photostereo.reflectance.learned.distilled import kernels
from photostereo.reflectance.learned.matte import Witness
from photostereo.runtime.threads import in_turn

#: A matrix and an offset.
Layer = tuple[Float32, Float32]
Layers = tuple[Layer, Layer, Layer]

#: The two networks differ by about twice the squared deviation on a pixel like those of the sample.
#: The limit leaves a factor of two for chance.
APART = 4.0
#: Values of h in v / (v + h), with v the intensities divided by their root mean square: one for the
#: bulk of the intensities, one for dark photographs.
HALVES = (0.5, 0.1)
#: Pixels that a thread processes at once: a few hundredths of a second.
AT_ONCE = 32_768


@dataclass(frozen=True, eq=False)
class Distilled:
    """Two small networks, trained independently from different initial weights."""

    center: Float32  #: (F,) of the inputs, subtracted
    scale: Float32  #: (F,) of the inputs, divided by
    #: three layers each; the last gives the normal and the logarithm of its expected error
    networks: list[Layers]
    #: for each, weights of the last hidden layer and a constant that predict the logarithm of the
    #: squared deviation over the squared expected error
    misses: list[Float32]
    limit: float  #: of that logarithm, above which the set network is used

    def answer(
        self,
        pixels: Float32,
        colors: Float32 | None,
        matte: Witness,
        which: Indices,
        control: Control,
    ) -> tuple[Float32, Float32, BoolArray]:
        """Answer in place of the set network.

        Parameters
        ----------
        pixels : array (N, d)
            Intensities.
        colors : array (N, d, 3), or None
            The same in color.
        matte : Witness
            The matte fit of all pixels.
        which : array of int (M,)
            The pixels to answer.
        control : Control
            Cancellation.

        Returns
        -------
        normals : array (M, 3)
            Unit normals.
        errors : array (M,)
            Expected errors, radians.
        trusted : array of bool (M,)
            False for pixels that the set network should answer.
        """
        normals = np.empty((len(which), 3), np.float32)
        errors = np.empty(len(which), np.float32)
        trusted = np.empty(len(which), np.bool_)

        def answer_part(number: int) -> None:
            part = slice(number * AT_ONCE, (number + 1) * AT_ONCE)
            some = which[part]
            in_color = None if colors is None else colors[some]
            samples = inputs(pixels[some], in_color, matte.some(some))
            one, other = self.outputs((samples - self.center) / self.scale)
            # Two networks: their mean is better, and their difference shows what neither has seen.
            mean = 0.5 * (one + other)
            length = np.linalg.norm(mean[:, :3], axis=1)
            normals[part] = mean[:, :3] / np.maximum(length, 1e-6)[:, None]
            errors[part] = np.exp(mean[:, 3])
            difference = ((one - other)[:, :3] ** 2).sum(1) / errors[part] ** 2
            # The limit is on the expected deviation; the difference may be larger by chance.
            agree = difference < APART * np.exp(self.limit)
            trusted[part] = (mean[:, 4] < self.limit) & agree

        for _ in in_turn(answer_part, -(-len(which) // AT_ONCE), get_num_threads(), control):
            control.check()
        return normals, errors, trusted

    def outputs(self, samples: Float32) -> list[Float32]:
        """Return the outputs (N, 5) of both networks for standardized inputs."""
        both = []
        for layers, miss in zip(self.networks, self.misses, strict=True):
            values = np.empty((len(samples), 5), np.float32)
            kernels.answers(samples, layers, miss, values)
            both.append(values)
        return both


def inputs(pixels: Float32, colors: Float32 | None, matte: Witness) -> Float32:
    """Return the inputs (N, F) of both networks.

    They are compressed intensities, also of two channels for colors, and the matte fit.

    Parameters
    ----------
    pixels : array (N, d)
        Intensities.
    colors : array (N, d, 3), or None
        The same in color.
    matte : Witness
        The matte fit of these pixels.
    """
    scale = 1.0 / np.sqrt((pixels * pixels).mean(1, keepdims=True) + np.float32(1e-12))
    v = np.maximum(pixels * scale, 0.0)
    parts = [v / (v + np.float32(half)) for half in HALVES]
    if colors is not None:
        for channel in (0, 2):
            v = np.maximum(colors[..., channel] * scale, 0.0)
            parts.append(v / (v + np.float32(HALVES[0])))
    parts += [matte.normals, np.log(matte.variance).clip(-12.0, 2.0)[:, None]]
    return np.concatenate(parts, 1, dtype=np.float32)
