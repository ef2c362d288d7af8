"""Camera metadata of a photograph: exposure, sensitivity, and whether the values carry the sRGB curve.

Only a few EXIF entries and color tags are used. Damaged ones count as absent: the pixels do not depend on them.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from photostereo.core.errors import CaptureError
from photostereo.core.findings import Finding
from photostereo.io import headers
from photostereo.io.exr_and_raw import HEIC_SUFFIXES, RAW_SUFFIXES
from photostereo.io.safe import opened

#: Exposures that differ by less than this count as equal: cameras round the values that they write, and their next step,
#: a third of a stop, is 26 %.
SAME = 0.02

#: TIFF's tag for the position of the EXIF directory.
_EXIF_POINTER = 0x8769
#: TIFF's tag for the color profile.
_ICC = 0x8773
#: Tags that are read; if several give the same field, the first one counts. The second and third sensitivity (recommended
#: index, ISO speed) are for values that do not fit into the first, which is then 65535, or occur alone.
_TAGS = {
    0x0112: "orientation", 0x829A: "seconds", 0x829D: "aperture",
    0x8827: "iso", 0x8832: "iso", 0x8833: "iso", 0x920A: "focal", 0xA405: "focal_35mm", 0xA403: "white_balance",
    0xA20E: "plane_resolution", 0xA210: "plane_unit", 0xA002: "width", 0xA003: "height",
}  # fmt: skip
#: How viewers show a photograph of each EXIF orientation; 1 is as stored.
TURNS = {
    2: "mirrored",
    3: "turned by 180°",
    4: "mirrored and turned by 180°",
    5: "mirrored and turned by 90° counterclockwise",
    6: "turned by 90° clockwise",
    7: "mirrored and turned by 90° clockwise",
    8: "turned by 90° counterclockwise",
}
#: PNG's chunks for EXIF and color.
_PNG_TAGS = (b"eXIf", b"cICP", b"iCCP", b"sRGB")
#: The largest sensitivity that the first tag can hold.
_ISO_FULL = 65535
#: The diagonal of the film to which "35 mm equivalent" refers, in millimeters.
_FILM = 43.27


@dataclass(frozen=True)
class Shot:
    """Settings with which a photograph was taken; None if the file does not record them."""

    seconds: float | None = None  #: exposure time
    iso: float | None = None  #: sensitivity
    aperture: float | None = None  #: f-number
    focal: float | None = None  #: focal length in millimeters
    white_balance: float | None = None  #: 0 automatic, 1 set by hand
    focal_35mm: float | None = None  #: equivalent focal length for 35 mm film, in millimeters
    #: pixels on the sensor per unit (2 inch, 3 centimeter, 4 millimeter)
    plane_resolution: float | None = None
    plane_unit: float | None = None
    #: size of the photograph when the camera wrote it, in pixels
    width: float | None = None
    height: float | None = None
    #: how viewers turn the photograph (1 to 8, see :func:`orientation_notes`); 1 not at all
    orientation: float | None = None
    srgb: bool = (
        False  #: the file is tagged as sRGB, or is a JPEG, whose values always carry the sRGB curve
    )
    damaged: bool = False  #: there are EXIF entries, but they cannot be read
    #: rows and columns that the header declares; None if they are known only after decoding
    frame: tuple[int, int] | None = None


def read_shot(path: Path) -> Shot:
    """Read the settings of a photograph from its header; an empty :class:`Shot` if it cannot be read."""
    try:
        with (
            opened(path, "image") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            declared = headers.declared_size(content)
            if declared is not None and declared.size:
                frame = (declared.height, declared.width)
            else:
                frame = None
            shot = replace(shot_of(content), frame=frame)
    except (CaptureError, OSError, ValueError):  # reported when it is decoded
        return Shot()
    if path.suffix.lower() in HEIC_SUFFIXES:  # only its library knows its frame and curve
        return Shot(srgb=True)
    # Camera RAW holds a small picture for viewing beside the sensor's values, which are linear.
    if path.suffix.lower() in RAW_SUFFIXES:
        return replace(shot, srgb=False, frame=None)
    return shot


def shot_of(head: headers.Content) -> Shot:
    """Like :func:`read_shot`, from the bytes of a file."""
    is_jpeg = head[:2] == headers.JPEG_SIGNATURE
    exif: headers.Content = b""
    try:
        if is_jpeg:
            srgb = True
            for part in headers.jpeg_segments(head):
                if part.kind == b"\xda":  # the pixels
                    break
                if part.kind == b"\xe1" and (body := part.body(head)).startswith(b"Exif\0"):
                    exif = body[6:]
                    break
        elif head[:8] == headers.PNG_SIGNATURE:  # EXIF may come before or after the pixels
            tags = [part for part in headers.png_chunks(head) if part.kind in _PNG_TAGS]
            chunks = {part.kind: part.body(head) for part in tags}
            exif = chunks.get(b"eXIf", b"")
            srgb = _png_is_srgb(chunks)
        elif head[:4] in headers.TIFF_SIGNATURES:
            entry = headers.tiff_entries(head).get(_ICC)
            profile = b"" if entry is None else entry.body(head)
            exif = head
            srgb = b"sRGB" in profile or "sRGB".encode("utf-16-be") in profile
        else:
            return Shot()
        return replace(Shot(srgb=srgb), **_exif(exif))
    except headers.HeaderError:  # the pixels do not depend on it
        return Shot(srgb=is_jpeg, damaged=True)


def focal_in_pixels(shots: Sequence[Shot], frame: tuple[int, int]) -> float | None:
    """The focal length in pixels of photographs with this height and width.

    None if EXIF does not record it, if the photographs were cropped later, or if the focal length changes.
    """
    certain = [focal for shot in shots if (focal := _focal_of(shot, frame)) is not None]
    if not certain or len(certain) < len(shots) or max(certain) > (1 + SAME) * min(certain):
        return None
    return certain[0]


def _focal_of(shot: Shot, frame: tuple[int, int]) -> float | None:
    long = max(frame)
    short = min(frame)
    written = (shot.width, shot.height) if shot.width and shot.height else frame
    scale = long / max(written)
    if abs(scale * min(written) - short) > 0.01 * short + 1:
        return None
    if shot.focal_35mm:
        return float(shot.focal_35mm * (long**2 + short**2) ** 0.5 / _FILM)
    unit = {2: 25.4, 3: 10.0, 4: 1.0}.get(int(shot.plane_unit or 2))  # by default an inch
    if shot.focal and shot.plane_resolution and unit and shot.width:
        return float(shot.focal * shot.plane_resolution / unit * scale)
    return None


def exposure_of(shot: Shot) -> float | None:
    """Exposure of a photograph: time times sensitivity; None if the file does not record it."""
    if shot.seconds:
        return shot.seconds * (shot.iso or 100.0)
    return None


def exposures(shots: Sequence[Shot]) -> tuple[list[float] | None, tuple[Finding, ...]]:
    """Relative exposure of each photograph, with a geometric mean of 1, and notes for the user.

    None if all are equal or one is not recorded. Exposure time and sensitivity are compensated; other changes
    (aperture, focal length, white balance) cannot be, and are noted.
    """
    notes = []
    damaged = sum(shot.damaged for shot in shots)
    if damaged:
        notes.append(Finding("exif-damaged", damaged=damaged, photographs=len(shots)))
    notes += [*orientation_notes(shots), *changes(shots)]
    strengths = [exposure_of(shot) for shot in shots]
    certain = [strength for strength in strengths if strength is not None]
    if not certain or max(certain) <= (1 + SAME) * min(certain):
        return None, tuple(notes)
    if len(certain) < len(shots):
        notes.append(Finding("exposure-not-recorded", missing=len(shots) - len(certain)))
        return None, tuple(notes)
    product = math.prod(strength ** (1 / len(certain)) for strength in certain)
    notes.append(Finding("exposure-compensated", factor=max(certain) / min(certain)))
    return [strength / product for strength in certain], tuple(notes)


def changes(shots: Sequence[Shot]) -> tuple[Finding, ...]:
    """Notes on changes between photographs that cannot be compensated."""
    notes = []
    for label in ("aperture", "focal"):
        known = [value for shot in shots if (value := getattr(shot, label)) is not None]
        if known and max(known) > (1 + SAME) * min(known):
            notes.append(Finding(f"{label}-changes", least=min(known), most=max(known)))
    balances = {shot.white_balance for shot in shots if shot.white_balance is not None}
    if len(balances) > 1:
        notes.append(Finding("white-balance-changes"))
    return tuple(notes)


def common_orientation(shots: Sequence[Shot]) -> int:
    """The EXIF orientation of all photographs (1 to 8); 1 if they differ.

    A phone that points straight down may record any orientation although nothing was turned.
    """
    first, *others = {int(shot.orientation or 1) for shot in shots} or {1}
    if not others and first in TURNS:
        return first
    return 1


def orientation_notes(shots: Sequence[Shot]) -> tuple[Finding, ...]:
    """Notes on photographs that viewers turn."""
    if len({int(shot.orientation or 1) for shot in shots}) > 1:
        return (Finding("orientation-differs"),)
    turn = common_orientation(shots)
    turned = TURNS.get(turn)
    if turned:
        return (Finding("orientation-undone", turned=turned, orientation=turn),)
    return ()


def _png_is_srgb(chunks: dict[bytes, bytes]) -> bool:
    """Whether the file is tagged as sRGB; cICP takes precedence over iCCP, and iCCP over sRGB, as in the standard."""
    if b"cICP" in chunks:
        return chunks[b"cICP"][1:2] == b"\x0d"  # the transfer curve of IEC 61966-2-1
    if b"iCCP" in chunks:
        return b"srgb" in chunks[b"iCCP"].split(b"\0")[0].lower()
    return b"sRGB" in chunks


def _exif(data: headers.Content) -> dict[str, Any]:
    """The entries of an EXIF block that are used, by the names of :class:`Shot`."""
    if not data:
        return {}
    if data[:2] not in (b"II", b"MM"):
        raise headers.HeaderError("no TIFF header")
    entries = _exif_entries(data)
    values: dict[str, Any] = {}
    for tag, label in _TAGS.items():
        value = entries[tag].number(data) if tag in entries else None
        if value is None or (label in values and values[label] != _ISO_FULL):
            continue
        if value > 0 or (label == "white_balance" and value == 0):
            values[label] = value
    return values


def _exif_entries(data: headers.Content) -> dict[int, headers.Part]:
    """The entries of the first directory of a block, and of the directory that it points to."""
    entries = headers.tiff_entries(data)
    if _EXIF_POINTER not in entries:
        return entries
    pointer = entries[_EXIF_POINTER].number(data)
    try:
        return headers.tiff_entries(data, int(pointer or 0)) | entries
    except headers.HeaderError:  # cut off: the first directory may have everything
        if not entries.keys() & _TAGS.keys():
            raise
        return entries
