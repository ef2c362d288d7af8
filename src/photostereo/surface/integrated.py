"""The result of an integration: heights, the parts they belong to, and where the surface is torn."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from photostereo.core.display import Displayed
from photostereo.surface.camera import Camera

Float64 = NDArray[np.float64]
Bool = NDArray[np.bool_]


@dataclass(frozen=True)
class Surface(Displayed):
    """An integrated surface. Its arrays are read-only."""

    #: (H, W) height in pixels, growing towards the camera; NaN outside the mask. With a camera it is −Z, the negative
    #: distance along the optical axis, on a scale where the mean distance is the focal length (in pixels).
    depth: Float64
    mask: Bool  #: (H, W)
    #: (H, W) the connected part of each pixel, 1, 2, …; zero outside. Heights of different parts are not related, unless
    #: anchors say so: each has the mean zero.
    labels: NDArray[np.int32]
    torn_right: Bool  #: (H, W) whether the link to the right neighbor is cut
    torn_down: Bool  #: (H, W) whether the link to the neighbor below is cut
    method: str
    status: str  #: ``"converged"``, ``"max_iter"``, or ``"direct"`` for ``simchony``
    iterations: int  #: of the outer loop (robust) or of the conjugate gradients; the most over all parts
    #: the largest ``‖b − A z‖ / ‖b‖`` of the linear systems; for ``robust``, how much of the gradient the last solve left
    residual: float
    energy: tuple[float, ...] = ()  #: for ``robust``, the energy before every iteration of the largest part
    camera: Camera | None = None
    unknown: int = 0  #: normals that were zero or not finite
    away: int = 0  #: normals that faced away from the camera
    depth_range: tuple[float, float] = field(init=False)

    def __post_init__(self) -> None:
        inside = self.depth[self.mask]
        object.__setattr__(self, "depth_range", (float(inside.min()), float(inside.max())))
        for array in (self.depth, self.mask, self.labels, self.torn_right, self.torn_down):
            array.flags.writeable = False

    @property
    def parts(self) -> int:
        """The number of connected parts."""
        return int(self.labels.max())

    @property
    def tears(self) -> int:
        """The number of links that are cut."""
        return int(np.count_nonzero(self.torn_right) + np.count_nonzero(self.torn_down))
