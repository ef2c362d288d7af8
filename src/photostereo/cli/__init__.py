"""The command line: one file per command.

Heavy libraries are imported when a command runs, so that ``photostereo --help`` responds immediately; the public names
of photostereo are imported on first use for the same reason.
"""

from photostereo.cli.root import app, main

__all__ = ["app", "main"]
