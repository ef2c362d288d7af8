"""Names that are safe to display, and names for folders.

A file name on Linux is any run of bytes: it may be undecodable, or hold sequences that move a terminal's cursor,
change its title or reverse the line.
"""

from __future__ import annotations

import os
import unicodedata

#: Maximum bytes of a name that we generate; 255 is the limit of most file systems, and suffixes are added to the name.
NAME_BYTES = 120

#: Device names, which Windows does not allow for files.
WINDOWS_DEVICES = {
    "con",
    "prn",
    "aux",
    "nul",
    *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10)),
}
#: Control characters of text, and format characters that names use: the joiners of Arabic, Indic scripts and emoji.
_HARMLESS = frozenset("\n\t\u200c\u200d")


def printable(text: str) -> str:
    r"""Text that is safe to print in a terminal: control and direction characters and lone surrogates are escaped."""
    harmful = {
        c
        for c in set(text) - _HARMLESS
        if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    }
    return text.translate({ord(c): c.encode("unicode_escape").decode("ascii") for c in harmful})


def folder_name(name: str) -> str:
    """A folder name from any capture name, on any system."""
    letters = [letter if letter.isalnum() or letter in "-_." else "-" for letter in name]
    folder = shortened("".join(letters).strip("-.")) or "capture"
    if folder.split(".")[0].lower() in WINDOWS_DEVICES:
        return f"_{folder}"
    return folder


def shortened(name: str) -> str:
    """The beginning of a name, at most :data:`NAME_BYTES`, without splitting a character."""
    data = os.fsencode(name)
    if len(data) > NAME_BYTES:
        return data[:NAME_BYTES].decode("utf-8", "ignore")
    return name
