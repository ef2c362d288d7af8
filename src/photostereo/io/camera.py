"""What a camera wrote beside the pixels: exposure, sensitivity, and whether the values carry the sRGB curve.

Only a handful of EXIF entries and color tags is looked for; whatever is damaged there counts as absent, since the
pixels do not depend on it.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from photostereo.core.errors import CaptureError
from photostereo.io.declared import JPEG_SIGNATURE, PNG_SIGNATURE, declared_size
from photostereo.io.exr_and_raw import RAW_SUFFIXES
from photostereo.io.safe import opened

#: Exposures that differ by less than this are the same: cameras round what they write.
SAME = 0.02
#: Bytes of a file in which its header lies, but for the largest thumbnails.
HEADER = 1 << 16

Content = bytes | mmap.mmap
_TIFF_MARKS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_BEGINNINGS = (PNG_SIGNATURE[:4], *_TIFF_MARKS)
_EXIF_POINTER, _ICC = 0x8769, 0x8773
_TAGS = {
    0x829A: "seconds",
    0x829D: "aperture",
    0x8827: "iso",
    0x920A: "focal",
    0xA403: "white_balance",
    0xA405: "focal_35mm",
    0xA20E: "plane_resolution",
    0xA210: "plane_unit",
    0xA002: "width",
    0xA003: "height",
}
#: The diagonal of the film to which "35 mm equivalent" refers, in millimetres.
_FILM = 43.27
#: Sensitivities that do not fit into the usual entry (65535 there) or stand alone: recommended index, ISO speed.
_FURTHER_ISO, _ISO_FULL = (0x8832, 0x8833), 65535
#: Exposure time and f-number in APEX units, as logarithms to base 2.
_APEX = {0x9201: ("seconds", -1.0), 0x9202: ("aperture", 0.5)}
_SIZES = {
    1: 1,
    2: 1,
    3: 2,
    4: 4,
    5: 8,
    6: 1,
    7: 1,
    8: 2,
    9: 4,
    10: 8,
    11: 4,
    12: 8,
    13: 4,
    16: 8,
    17: 8,
    18: 8,
}
_FORMATS = {3: "H", 4: "I", 8: "h", 9: "i", 11: "f", 12: "d", 13: "I", 16: "Q", 18: "Q"}


@dataclass(frozen=True)
class Shot:
    """How one photograph was taken; None where the file does not say.

    Attributes
    ----------
    seconds : exposure time
    iso : sensitivity
    aperture : f-number
    focal : focal length in millimetres
    white_balance : 0 automatic, 1 set by hand
    focal_35mm : focal length in millimetres that sees as much on 35 mm film
    plane_resolution, plane_unit : pixels on the sensor per unit (2 inch, 3 centimetre, 4 millimetre)
    width, height : of the photograph when the camera wrote it, in pixels
    damaged : there are EXIF entries, but they cannot be read
    srgb : the file says that its values carry the sRGB curve, or is a JPEG, which always do
    frame : rows and columns that the header declares; None where only decoding can tell
    """

    seconds: float | None = None
    iso: float | None = None
    aperture: float | None = None
    focal: float | None = None
    white_balance: float | None = None
    focal_35mm: float | None = None
    plane_resolution: float | None = None
    plane_unit: float | None = None
    width: float | None = None
    height: float | None = None
    srgb: bool = False
    damaged: bool = False
    frame: tuple[int, int] | None = None


class Heads(dict[Path, Shot]):
    """:func:`read_shot` of files, each of which is looked at once, when it is first asked for.

    >>> Heads()[Path("no-such-file.png")] == Shot()
    True
    """

    def __missing__(self, path: Path) -> Shot:
        self[path] = read_shot(path)
        return self[path]


def read_shot(path: Path) -> Shot:
    """What a photograph's file says about how it was taken; nothing where it cannot be read."""
    try:
        with (
            opened(path, "image") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            declared = declared_size(content[:HEADER])
            frame = (declared.height, declared.width) if declared is not None and declared.size else None
            shot = replace(shot_of(content), frame=frame)
    except (CaptureError, OSError, ValueError):  # told when it is decoded
        return Shot()
    # Camera RAW holds a picture for viewing beside the sensor's values, which are linear.
    return replace(shot, srgb=False) if path.suffix.lower() in RAW_SUFFIXES else shot


def shot_of(head: Content) -> Shot:
    """As :func:`read_shot`, from a file's bytes.

    >>> shot_of(b"no image") == Shot(), shot_of(JPEG_SIGNATURE).srgb
    (True, True)
    """
    is_jpeg = head[:2] == JPEG_SIGNATURE
    try:
        if is_jpeg:
            return Shot(**_exif(_jpeg_exif(head)), srgb=True, damaged=False, frame=None)
        if head[: len(PNG_SIGNATURE)] == PNG_SIGNATURE:
            chunks = _png_chunks(head)
            return Shot(
                **_exif(chunks.get(b"eXIf", b"")), srgb=_png_is_srgb(chunks), damaged=False, frame=None
            )
        if head[:4] in _TIFF_MARKS:
            return Shot(**_exif(head), srgb=_tiff_is_srgb(head), damaged=False, frame=None)
    except (struct.error, IndexError, ValueError, KeyError):
        pass  # damaged entries tell nothing
    return Shot(srgb=is_jpeg, damaged=True) if is_jpeg or head[:4] in _BEGINNINGS else Shot()


def focal_in_pixels(shots: Sequence[Shot], frame: tuple[int, int]) -> float | None:
    """The focal length in pixels of photographs with this height and width, or None where EXIF does not tell.

    Photographs that were cropped since, or whose focal length changes, tell nothing.

    Examples
    --------
    >>> round(focal_in_pixels([Shot(focal_35mm=50.0)] * 3, (400, 600)))
    833
    >>> focal_in_pixels([Shot(focal_35mm=50.0, width=600, height=400)], (400, 400)) is None
    True
    """
    found = [_focal_of(shot, frame) for shot in shots]
    certain = [focal for focal in found if focal is not None]
    if not certain or len(certain) < len(found) or max(certain) > (1 + SAME) * min(certain):
        return None
    return certain[0]


def _focal_of(shot: Shot, frame: tuple[int, int]) -> float | None:
    long, short = max(frame), min(frame)
    scale = 1.0
    if shot.width and shot.height:
        written = (max(shot.width, shot.height), min(shot.width, shot.height))
        scale = long / written[0]
        if abs(scale * written[1] - short) > 0.01 * short + 1:
            return None
    if shot.focal_35mm:
        return float(shot.focal_35mm * (long**2 + short**2) ** 0.5 / _FILM)
    unit = {2: 25.4, 3: 10.0, 4: 1.0}.get(
        int(shot.plane_unit or 2)
    )  # an inch where none is named: the standard
    if shot.focal and shot.plane_resolution and unit and shot.width:
        return float(shot.focal * shot.plane_resolution / unit * scale)
    return None


def exposure_of(shot: Shot) -> float | None:
    """How much a photograph was exposed: time times sensitivity; None where the file does not say.

    >>> exposure_of(Shot(seconds=0.5, iso=200)), exposure_of(Shot(iso=200))
    (100.0, None)
    """
    return shot.seconds * (shot.iso or 100.0) if shot.seconds else None


def exposures(shots: Sequence[Shot]) -> tuple[list[float] | None, tuple[str, ...]]:
    """How strongly each photograph was exposed, 1 on (geometric) average, and what to tell the user.

    None where all are alike or where one does not say. Exposure time and sensitivity are compensated; what else
    changed (aperture, focal length, white balance) cannot be and is named.

    Examples
    --------
    >>> [round(e, 9) for e in exposures([Shot(seconds=0.1, iso=100), Shot(seconds=0.4, iso=100)])[0]]
    [0.5, 2.0]
    """
    notes = []
    damaged = sum(shot.damaged for shot in shots)
    if damaged:
        notes.append(
            f"the EXIF entries of {damaged} of {len(shots)} photographs cannot be read: their exposure is taken to be that "
            "of the others, and their focal length is not known. Export them again, or give --focal"
        )
    notes += changes(shots)
    strengths = [exposure_of(shot) for shot in shots]
    certain = [strength for strength in strengths if strength is not None]
    if not certain or max(certain) <= (1 + SAME) * min(certain):
        return None, tuple(notes)
    if len(certain) < len(shots):
        missing = len(shots) - len(certain)
        notes.append(
            f"the exposure changes between the photographs, but {missing} do not say theirs, so it is not compensated"
        )
        return None, tuple(notes)
    product = 1.0
    for strength in certain:
        product *= strength ** (1 / len(certain))
    ratio = max(certain) / min(certain)
    notes.append(f"the exposure changes by a factor of {ratio:.3g} between the photographs; compensated")
    return [strength / product for strength in certain], tuple(notes)


def changes(shots: Sequence[Shot]) -> tuple[str, ...]:
    """What changed between photographs and cannot be compensated, in words.

    >>> changes([Shot(aperture=8), Shot(aperture=11)])[0][:36]
    'the aperture changes (f/8 to f/11): '
    """
    notes = []
    for label, words in (
        ("aperture", "the aperture changes (f/{} to f/{}): brightness and sharpness change with it"),
        ("focal", "the focal length changes ({} to {} mm): the photographs do not lie on each other"),
    ):
        known = [value for shot in shots if (value := getattr(shot, label)) is not None]
        if known and max(known) > (1 + SAME) * min(known):
            notes.append(f"{words.format(f'{min(known):g}', f'{max(known):g}')}. Set it by hand")
    balances = {shot.white_balance for shot in shots if shot.white_balance is not None}
    if len(balances) > 1:
        notes.append("the white balance changes between the photographs. Set it by hand")
    return tuple(notes)


def _jpeg_exif(head: Content) -> bytes:
    place = 2
    while place + 4 <= len(head) and head[place] == 0xFF:
        marker = head[place + 1]
        if marker == 0xFF or marker == 0x01 or 0xD0 <= marker <= 0xD7:  # filling, and markers without a body
            place += 1 if marker == 0xFF else 2
            continue
        if marker == 0xDA:
            break
        size = struct.unpack_from(">H", head, place + 2)[0]
        body = head[place + 4 : place + 2 + size]
        if marker == 0xE1 and body.startswith(b"Exif\0"):
            return body[6:]
        place += 2 + max(size, 2)
    return b""


def _png_chunks(head: Content) -> dict[bytes, bytes]:
    """All chunks but the pixels; EXIF may stand before or after those."""
    place, found = len(PNG_SIGNATURE), {}
    while place + 8 <= len(head):
        size, name = struct.unpack_from(">I4s", head, place)
        if name != b"IDAT":
            found[name] = head[place + 8 : place + 8 + size]
        place += 12 + size
    return found


def _png_is_srgb(chunks: dict[bytes, bytes]) -> bool:
    """The newest kind of tag counts, as in the standard: cICP, then iCCP, then sRGB."""
    if b"cICP" in chunks:
        return chunks[b"cICP"][1:2] == b"\x0d"  # the transfer curve of IEC 61966-2-1
    if b"iCCP" in chunks:
        return b"srgb" in chunks[b"iCCP"].split(b"\0")[0].lower()
    return b"sRGB" in chunks


def _first_entries(data: Content) -> tuple[str, dict[int, bytes]]:
    """The byte order of a TIFF block, and the entries of its first directory."""
    order = "<" if data[:2] == b"II" else ">"
    (version,) = struct.unpack_from(order + "H", data, 2)
    big = version == 43
    (place,) = struct.unpack_from(order + ("Q" if big else "I"), data, 8 if big else 4)
    return order, _entries(data, order, place, big=big)


def _entries(data: Content, order: str, place: int, *, big: bool = False) -> dict[int, bytes]:
    """The entries of a TIFF (or BigTIFF) directory: tag → its raw value with the type in front."""
    found: dict[int, bytes] = {}
    head, counted, wide = (8, "Q", 8) if big else (2, "H", 4)
    width = 12 + 2 * (wide - 4)
    (count,) = struct.unpack_from(order + counted, data, place)
    for k in range(min(count, 4096)):  # no camera writes more
        start = place + head + width * k
        tag, kind, number = struct.unpack_from(order + ("HHQ" if big else "HHI"), data, start)
        size = _SIZES.get(kind, 0) * number
        start += 4 + wide
        if size > wide:
            (start,) = struct.unpack_from(order + ("Q" if big else "I"), data, start)
        found.setdefault(tag, bytes([kind]) + data[start : start + min(size, 1 << 20)])
    return found


def _number(raw: bytes, order: str) -> float | None:
    """The first number of an entry; None where it is cut off, undefined or absurd."""
    kind, body = raw[0], raw[1:]
    try:
        if kind in (5, 10):
            above, below = struct.unpack_from(order + ("II" if kind == 5 else "ii"), body)
            value = above / below if below else 0.0
        else:
            value = float(struct.unpack_from(order + _FORMATS[kind], body)[0])
    except (struct.error, KeyError):
        return None
    return value if 0 <= value < 1e9 or (kind in (10, 11, 12) and -1e3 < value < 0) else None


def _exif(data: Content) -> dict[str, float]:
    if not data:
        return {}
    if data[:2] not in (b"II", b"MM"):
        raise ValueError("no TIFF header")
    order, entries = _first_entries(data)
    if _EXIF_POINTER in entries:
        big = data[2:4] in (b"+\0", b"\0+")
        pointer = _number(entries[_EXIF_POINTER], order)
        try:
            if pointer is None:
                raise ValueError("a pointer to nowhere")
            entries = {**_entries(data, order, int(pointer), big=big), **entries}
        except (struct.error, ValueError):  # cut off: the first directory may tell all the same
            if not entries.keys() & _TAGS.keys():
                raise
    numbers = {tag: value for tag, raw in entries.items() if (value := _number(raw, order)) is not None}
    found = {
        label: numbers[tag]
        for tag, label in _TAGS.items()
        if tag in numbers and (numbers[tag] > 0 or (label == "white_balance" and numbers[tag] == 0))
    }
    further = [numbers[tag] for tag in _FURTHER_ISO if numbers.get(tag, 0) > 0]
    if further and found.get("iso", _ISO_FULL) == _ISO_FULL:
        found["iso"] = further[0]
    for tag, (label, factor) in _APEX.items():
        if label not in found and tag in numbers and abs(numbers[tag]) < 40:
            found[label] = 2.0 ** (factor * numbers[tag])
    return found


def _tiff_is_srgb(data: Content) -> bool:
    profile = _first_entries(data)[1].get(_ICC, b"")
    return b"sRGB" in profile or "sRGB".encode("utf-16-be") in profile
