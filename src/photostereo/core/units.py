"""Physical width of a pixel: parsed from text such as ``0.1mm``, kept in millimeters, converted for each file format."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from photostereo.core.errors import ParameterError

#: Millimeters per unit.
UNITS = {
    "nm": 1e-6, "um": 1e-3, "µm": 1e-3, "μm": 1e-3, "micron": 1e-3, "microns": 1e-3,
    "mm": 1.0, "cm": 10.0, "m": 1000.0, "in": 25.4, "inch": 25.4, '"': 25.4,
}  # fmt: skip

#: The smallest width of a pixel in millimeters, one nanometer. Beyond these two, resolutions and coordinates exceed the
#: number formats of picture and mesh files.
SMALLEST = 1e-6
#: The largest, one kilometer.
LARGEST = 1e6

_TEXT = re.compile(r"\s*\+?((?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*([^\s\d]*)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class PixelSize:
    """Width of a pixel.

    Examples
    --------
    >>> PixelSize.of("0.1mm")
    PixelSize(millimeters=0.1, known=True)
    >>> PixelSize.of("50 um").per_inch
    508.0
    >>> PixelSize.of(None).unit
    'pixel'
    """

    millimeters: float = 1.0  #: millimeters per pixel; 1 if the size is not known
    #: Whether it was given. If not, lengths stay in pixels, files carry no resolution, and glTF, which requires meters,
    #: treats a pixel as a millimeter.
    known: bool = False

    def __post_init__(self) -> None:
        if not SMALLEST <= self.millimeters <= LARGEST:
            size = self.millimeters
            raise ParameterError(
                f"The pixel size is {size:g} mm; it must be between {SMALLEST:g} and {LARGEST:g} "
                "mm.",
                code="pixel-size-out-of-range",
                size=size,
                least=SMALLEST,
                most=LARGEST,
            )

    @classmethod
    def of(cls, size: PixelSize | float | str | None) -> PixelSize:
        """From a number (millimeters), a number with its unit, or None (not known).

        Raises
        ------
        ParameterError
            If the text is not a positive number with one of the known units.
        """
        if isinstance(size, PixelSize):
            return size
        if size is None:
            return cls()
        if not isinstance(size, str):
            return cls(float(size), known=True)
        match = _TEXT.fullmatch(size)
        millimeters = 0.0
        if match is not None:
            millimeters = float(match[1]) * UNITS.get(match[2].lower() or "mm", 0.0)
        if not 0 < millimeters < math.inf:
            raise ParameterError(
                f'"{size}" is not a pixel size. Write a positive number with its unit, for '
                "instance 0.1mm, 50um or 0.002in; a number alone means millimeters.",
                code="bad-pixel-size",
                text=size,
            )
        # Rounded: 0.002 in is 0.0508 mm, not 0.050800000000000005.
        return cls(float(f"{millimeters:.12g}"), known=True)

    @property
    def unit(self) -> str:
        """Unit of lengths in files: ``"mm"`` or ``"pixel"``."""
        return "mm" if self.known else "pixel"

    @property
    def meters(self) -> float:
        """Meters per pixel, for glTF; a pixel of unknown size counts as a millimeter."""
        return self.millimeters / 1000.0

    @property
    def per_inch(self) -> float:
        """Pixels per inch, for EXR."""
        return float(f"{25.4 / self.millimeters:.12g}")

    @property
    def per_centimeter(self) -> float:
        """Pixels per centimeter, for TIFF."""
        return float(f"{10.0 / self.millimeters:.12g}")

    @property
    def per_meter(self) -> int:
        """Whole pixels per meter, for PNG."""
        return max(1, round(1000.0 / self.millimeters))
