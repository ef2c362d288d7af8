"""The command line: one file per command, which parses and calls; what a command does is in :mod:`photostereo.commands`.

Heavy libraries are imported when a command runs, so that ``photostereo --help`` answers at once.
"""

from photostereo.cli.root import app, main

__all__ = ["app", "main"]
