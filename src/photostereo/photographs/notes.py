"""What the user should know about the photographs that have been decoded."""

from __future__ import annotations

from photostereo.photographs.files import PhotographFiles


def bit_depth(source: PhotographFiles) -> int:
    """Bits per channel of the photographs that have been decoded; the largest if they differ."""
    return max(kind.itemsize * 8 for kind in source.kinds.values())


def notes_on(source: PhotographFiles) -> tuple[str, ...]:
    """Notes on bit depth, color and tone curve, and on what the camera recorded."""
    files, kinds = source.files, [source.kinds[file] for file in source.files if file in source.kinds]
    notes = []
    if len(set(kinds)) > 1:
        other = next(number for number, kind in enumerate(kinds) if kind != kinds[0])
        notes.append(
            f"photographs of different bit depth: {files[0].name} is {kinds[0]}, {files[other].name} "
            f"{kinds[other]}; each is divided by its own full scale"
        )
    if source.curved_by_file and any(source.curved):
        some = "" if all(source.curved) else f"{sum(source.curved)} of "
        notes.append(f"{some}the photographs are JPEG or tagged as sRGB: the sRGB curve is undone")
    return (*notes, *source.camera_notes)
