"""Folders and files to captures, and back: one file per format, all behind :func:`load`."""

from photostereo.io.archive import write_archive
from photostereo.io.atomic import replacing_directory, replacing_file
from photostereo.io.diligent import write_diligent
from photostereo.io.load import load
from photostereo.io.masks import mask_from_brightness

__all__ = [
    "load",
    "mask_from_brightness",
    "replacing_directory",
    "replacing_file",
    "write_archive",
    "write_diligent",
]
