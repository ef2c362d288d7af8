"""The command line: one file per command.

Heavy libraries are imported when a command runs, so that ``photostereo --help`` answers at once.
"""

from photostereo.cli.root import app, main

__all__ = ["app", "main"]
