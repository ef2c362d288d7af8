"""Solve part after part under lights that stay where they are.

What is the same for every part (the pseudo-inverse, the gains, the ambient light) is computed once. Solving a part then is
a few operations per pixel and photograph, without allocating memory if the result of the last part is passed in.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from photostereo.capture.capture import Capture
from photostereo.core.conventions import BoolArray, Float32, FloatArray, gray_from_rgb
from photostereo.core.errors import ParameterError, require_known
from photostereo.lights.lights import Lights

#: ``"ls"``: least squares; ``"l1"``: nearly least absolute residuals, which ignores a shadow or a highlight.
METHODS = ("ls", "l1")
#: Rounds of reweighting: on glossy parts under 8 lights, 8 rounds are within 0.1° of 100 on average.
ROUNDS = 8
#: Residuals below this share of a pixel's brightest value count as noise, not as outliers.
FLOOR = 0.002
#: The smallest ratio of the singular values of the lights for which three directions are determined.
LEAST_SPREAD = 0.02


@dataclass(frozen=True, eq=False)
class Part:
    """Normals and albedo of one part, or of a batch of parts, in memory that can be used again."""

    normals: Float32  #: (H, W, 3) or (B, H, W, 3), unit; zero outside the mask
    albedo: Float32  #: (H, W) or (B, H, W), as a share of full scale

    @property
    def gradients(self) -> tuple[FloatArray, FloatArray]:
        """Slopes dz/dx (to the right) and dz/dy (up)."""
        depth = np.maximum(self.normals[..., 2], 0.05)
        return -self.normals[..., 0] / depth, -self.normals[..., 1] / depth


class Rig:
    """A camera and lights that do not move, prepared to solve many parts.

    Parameters
    ----------
    lights : Lights or (d, 3) array
        Directions from the part to the lights, and their strengths if they are known. Distant lights only.
    mask : (H, W) bool array, optional
        Pixels to solve; the others get the zero normal.
    method : {"ls", "l1"}
        ``"ls"`` for matte parts, ``"l1"`` if single photographs show a shadow or a highlight at a pixel (at least four
        photographs; better six or more).
    ambient : (H, W) array, optional
        A photograph with all lights off, in stored numbers, to subtract.

    Examples
    --------
    >>> import numpy as np
    >>> lights = np.array([[0.5, 0, 0.8], [-0.5, 0, 0.8], [0, 0.5, 0.8], [0, -0.5, 0.8]])
    >>> rig = Rig(lights)
    >>> directions = lights / np.linalg.norm(lights, axis=1, keepdims=True)
    >>> normal = np.array([0.0, 0.6, 0.8])
    >>> images = (255 * 0.5 * (directions @ normal))[:, None, None] * np.ones((4, 480, 640))
    >>> part = rig.solve(images.round().astype(np.uint8))
    >>> np.round(part.normals[0, 0].astype(float), 2) + 0.0, round(float(part.albedo[0, 0]), 2)
    (array([0. , 0.6, 0.8]), 0.5)

    The same memory again, for the next part:

    >>> part is rig.solve(images.round().astype(np.uint8), out=part)
    True
    """

    def __init__(
        self,
        lights: Lights | ArrayLike,
        mask: BoolArray | None = None,
        *,
        method: str = "ls",
        ambient: ArrayLike | None = None,
    ) -> None:
        require_known(method, METHODS, "method of a rig", "unknown-rig-method")
        self.lights = lights if isinstance(lights, Lights) else Lights(lights)
        self.method = method
        self.mask = None if mask is None else np.ascontiguousarray(mask, dtype=bool)
        self.ambient: Float32 | None = None
        if ambient is not None:
            self.ambient = np.ascontiguousarray(ambient, dtype=np.float32)
        _require_lights(self.lights)

    @classmethod
    def of(cls, capture: Capture, *, method: str = "ls") -> Self:
        """Prepare a rig with the lights and the mask of a capture, such as one of a calibration.

        Parameters
        ----------
        capture : Capture
            A capture with known lights.
        method : {"ls", "l1"}
            As for the class.
        """
        mask = None if capture.mask.all() else capture.mask
        return cls(capture.lights, mask, method=method)

    def __len__(self) -> int:
        """Return the number of photographs of a part."""
        return len(self.lights)

    def __repr__(self) -> str:
        return f"Rig({len(self)} lights, method={self.method!r})"

    def solve(self, images: NDArray[Any], out: Part | None = None) -> Part:
        """Normals and albedo of one part, or of a batch of parts.

        Parameters
        ----------
        images : (d, H, W) or (B, d, H, W) array
            Photographs as the camera delivers them, linear and gray: uint8, uint16 (divided by their largest value) or
            float32.
        out : Part, optional
            The result of an earlier call with images of the same shape; its arrays are overwritten.

        Returns
        -------
        Part
            ``out`` if it was given.
        """
        frame = self._frame_of(images)
        if out is None:
            shape = (*images.shape[:-3], *frame)
            out = Part(np.empty((*shape, 3), np.float32), np.empty(shape, np.float32))
        self._require_room(images, out)
        if images.ndim == 3:
            self._solve_one(images, out.normals, out.albedo)
            return out
        for number in range(len(images)):
            self._solve_one(images[number], out.normals[number], out.albedo[number])
        return out

    @cached_property
    def _outside(self) -> BoolArray | None:
        """The pixels that are not solved."""
        if self.mask is None:
            return None
        return ~self.mask

    @cached_property
    def _directions(self) -> Float32:
        return np.ascontiguousarray(self.lights.directions, dtype=np.float32)

    @cached_property
    def _pseudo_inverse(self) -> Float32:
        """(3, d), for intensities."""
        return np.ascontiguousarray(np.linalg.pinv(self.lights.directions), dtype=np.float32)

    def _gains(self, kind: np.dtype[Any]) -> Float32:
        """(d,) factors from stored numbers to intensities of lights of strength 1."""
        full_scale = 1.0
        if np.issubdtype(kind, np.integer):
            full_scale = float(np.iinfo(kind).max)
        strengths = self.lights.strengths
        if strengths.ndim == 2:  # per color channel; the photographs of a rig are gray
            strengths = gray_from_rgb(strengths)
        return np.asarray(1.0 / (full_scale * strengths), dtype=np.float32)

    def _solve_one(self, images: NDArray[Any], normals: Float32, albedo: Float32) -> None:
        from photostereo.rig.kernels import solve_linear, solve_robust

        stored = np.ascontiguousarray(images).reshape(len(self), -1)
        gains = self._gains(images.dtype)
        weights = self._pseudo_inverse * gains
        ambient = np.empty(0, np.float32) if self.ambient is None else self.ambient.ravel()
        offsets = weights.sum(axis=1)
        flat_normals = normals.reshape(-1, 3)
        flat_albedo = albedo.reshape(-1)
        if self.method == "ls":
            solve_linear(stored, weights, ambient, offsets, flat_normals, flat_albedo)
        else:
            solve_robust(
                stored,
                gains,
                self._directions,
                self._pseudo_inverse,
                ambient,
                np.int64(ROUNDS),
                np.float32(FLOOR),
                flat_normals,
                flat_albedo,
            )
        if self._outside is not None:
            normals[self._outside] = 0.0
            albedo[self._outside] = 0.0

    def _frame_of(self, images: NDArray[Any]) -> tuple[int, int]:
        if images.ndim not in (3, 4) or images.shape[-3] != len(self):
            raise ParameterError(
                f"The images have the shape {images.shape}; expected ({len(self)}, height, width), "
                f"one photograph per light, or a batch of such.",
                code="rig-images",
                shape=images.shape,
                lights=len(self),
            )
        height, width = images.shape[-2:]
        for name, array in (("mask", self.mask), ("ambient", self.ambient)):
            if array is not None and array.shape != (height, width):
                raise ParameterError(
                    f"The {name} of the rig has the shape {array.shape}, the images {(height, width)}.",
                    code="rig-frame",
                    shape=(height, width),
                )
        return height, width

    @staticmethod
    def _require_room(images: NDArray[Any], out: Part) -> None:
        shape = (*images.shape[:-3], *images.shape[-2:])
        if out.albedo.shape != shape or out.normals.shape != (*shape, 3):
            raise ParameterError(
                f"The result to overwrite has the shape {out.albedo.shape}; the images need {shape}.",
                code="rig-out",
                shape=shape,
            )


def _require_lights(lights: Lights) -> None:
    if not lights.known or lights.is_near:
        raise ParameterError(
            "A rig needs the directions of its lights, and they must be distant. "
            "Calibrate them, for instance with: photostereo lights",
            code="rig-lights",
        )
    spread = np.linalg.svd(lights.directions, compute_uv=False)
    if len(lights) < 3 or spread[2] < LEAST_SPREAD * spread[0]:
        raise ParameterError(
            "The lights of the rig lie in a plane, so normals are not determined. "
            "Move one of them well out of that plane.",
            code="rig-coplanar",
        )
