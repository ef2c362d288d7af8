"""Small photographs of a whole object, for models that are solved in parts but need information on all of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.capture import Capture
from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import gray_from_rgb
from photostereo.lights.unknown.crops import Crop
from photostereo.reflectance.model import Whole
from photostereo.runtime.illumination import PixelLights
from photostereo.solver.conditions import Conditions
from photostereo.solver.methods import Method

#: Pixels along a side of the small photographs: two for each cell of the context network, as in its training.
SIDE = 160


class SmallPhotographs:
    """Collect small photographs during reading, if the method's model uses its surroundings."""

    def __init__(self, capture: Capture, method: Method) -> None:
        self._capture, self._method = capture, method
        self._crop = Crop(capture.mask, SIDE) if "surroundings" in method.model.sees else None
        self._images: list[NDArray[np.float32]] = []

    def add(self, photograph: NDArray[np.float32]) -> None:
        if self._crop is not None:
            self._images.append(self._crop.shrink(photograph)[self._crop.mask])

    def look(
        self, scale: float, conditions: Conditions, values: Mapping[str, Any], control: Control = SILENT
    ) -> Whole | None:
        """Return what the model computes from the small photographs."""
        if self._crop is None:
            return None
        colors = np.stack(self._images, 1) / np.float32(scale)
        lights = self._lights()
        conditions.correct(lights.even(colors))
        gray, tinted = gray_from_rgb(colors), colors if self._capture.is_color else None
        kind: Any = self._method.model.kind
        whole: Whole | None = kind.see_whole(
            gray,
            lights.matrix,
            self._crop.mask,
            self._capture.mask,
            colors=tinted,
            control=control.unreported(),
            **values,
        )
        return whole

    def _lights(self) -> PixelLights:
        """Return the lights at the centers of the small pixels."""
        assert self._crop is not None
        frame, lights = self._capture.frame, self._capture.lights
        if not lights.is_near:
            return PixelLights(lights.matrix)
        rows, columns = np.indices(frame, dtype=np.float32)
        down, right = (self._crop.shrink(part)[self._crop.mask, 0] for part in (rows, columns))
        return lights.over(down, right, frame)
