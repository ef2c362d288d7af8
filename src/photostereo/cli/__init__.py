"""The command line: one file per command.

Heavy libraries are imported when a command runs, so that ``photostereo --help`` answers at once; the public names of
photostereo are as well, when they are first used.
"""

from photostereo.cli.root import app, main

__all__ = ["app", "main"]
