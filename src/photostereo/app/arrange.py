"""Arrange dropped photographs as a capture: the object in the folder itself, a ball in a folder of its own."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from photostereo.capture.layouts.folder import is_ball_series
from photostereo.io.camera import read_shot
from photostereo.io.images import is_image

#: Words for a ball in names of folders and files, in the languages of many users.
BALL_WORDS = re.compile(
    "ball|sphere|probe|chrom|mirror|kugel|boule|bille|bola|esfera|sfera|palla|kula|koule|bol|шар|球",
    re.IGNORECASE,
)
#: The name of the folder of a ball.
BALL = "ball"
#: Fewest photographs that can be those of an object or of a ball.
FEWEST = 3


def arrange(folder: Path) -> None:
    """Arrange the photographs in a folder, in place.

    - A single folder within another one is unpacked.
    - Of several folders, those that are named like a ball stay; the only other one is that of the object.
    - Of photographs of two sizes, as many of each, those named like a ball are those of the ball; without such names,
      the smaller ones.
    """
    _unpack_single_folders(folder)
    if not _photographs(folder):
        _unpack_object(folder)
    _separate_sizes(folder)


def _photographs(folder: Path) -> list[Path]:
    return sorted(entry for entry in folder.iterdir() if entry.is_file() and is_image(entry))


def _folders(folder: Path) -> list[Path]:
    return sorted(entry for entry in folder.iterdir() if entry.is_dir())


def _unpack_single_folders(folder: Path) -> None:
    while len(entries := list(folder.iterdir())) == 1 and entries[0].is_dir():
        _unpack(entries[0])


def _unpack(folder: Path) -> None:
    """Move the content of a folder one level up; what has the same name there stays where it is."""
    aside = folder.with_name(f".{folder.name}.unpacked")
    folder.rename(aside)
    for entry in aside.iterdir():
        target = folder.parent / entry.name
        if not target.exists():
            entry.rename(target)
    shutil.rmtree(aside, ignore_errors=True)


def _unpack_object(folder: Path) -> None:
    """Move the photographs of the object, if only one folder can hold them, beside the folders of balls."""
    full = [entry for entry in _folders(folder) if len(_photographs(entry)) >= FEWEST]
    objects = [entry for entry in full if not BALL_WORDS.search(entry.name)]
    if len(objects) != 1:
        return
    balls = [entry for entry in full if entry != objects[0]]
    for number, ball in enumerate(balls, start=1):
        if not is_ball_series(ball):  # named in another language
            ball.rename(folder / (BALL if len(balls) == 1 else f"{BALL}-{number}"))
    _unpack(objects[0])


def _separate_sizes(folder: Path) -> None:
    """Move the photographs of a ball into a folder of their own, if they have another size than those of the object."""
    if any(is_ball_series(entry) for entry in _folders(folder)):
        return
    sizes: dict[tuple[int, int], list[Path]] = {}
    for file in _photographs(folder):
        frame = read_shot(file).frame
        if frame is None:
            return
        sizes.setdefault(frame, []).append(file)
    groups = sorted(sizes.items(), key=lambda group: group[0][0] * group[0][1])
    if len(groups) != 2:
        return
    (_, smaller), (_, larger) = groups
    if len(smaller) != len(larger) or len(smaller) < FEWEST:
        return
    ball = larger if _named_like_a_ball(larger) and not _named_like_a_ball(smaller) else smaller
    _move(ball, folder / BALL)


def _named_like_a_ball(files: Iterable[Path]) -> bool:
    return all(BALL_WORDS.search(file.stem) for file in files)


def _move(files: Sequence[Path], folder: Path) -> None:
    folder.mkdir()
    for file in files:
        file.rename(folder / file.name)
