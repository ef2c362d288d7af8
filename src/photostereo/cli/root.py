"""The application: all commands, and what becomes of an error."""

from __future__ import annotations

import os
import sys
from typing import Annotated, NoReturn

import typer

from photostereo._version import __version__
from photostereo.cli.batch import batch
from photostereo.cli.compare import compare
from photostereo.cli.corrupt import corrupt
from photostereo.cli.demo import demo
from photostereo.cli.export import export
from photostereo.cli.figure import figure
from photostereo.cli.info import info
from photostereo.cli.lights import lights
from photostereo.cli.mesh import mesh
from photostereo.cli.methods import methods
from photostereo.cli.reproduce import reproduce
from photostereo.cli.scene import scene
from photostereo.cli.solve import solve
from photostereo.cli.sweep import sweep
from photostereo.cli.train import train
from photostereo.cli.view import view
from photostereo.core.errors import PhotostereoError
from photostereo.io.names import printable
from photostereo.runtime.signals import ended_by, orderly_signals, tell_end
from photostereo.runtime.threads import shorten_spinning

app = typer.Typer(
    name="photostereo",
    help="Robust photometric stereo: photographs under known lights to normals, albedo, depth, mesh and a page.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

#: In the order in which ``--help`` lists them.
COMMANDS = (
    demo, info, lights, solve, compare, methods, scene, corrupt, mesh, export, figure, train, view, batch,
    reproduce, sweep,
)  # fmt: skip
for command in COMMANDS:
    app.command()(command)


def main() -> None:
    """The entry point: errors that the user can mend become one paragraph and exit code 2."""
    with orderly_signals():
        shorten_spinning()  # before NumPy comes
        words = sys.argv[1:]
        if words[:1] in (["solve"], ["info"]) and "--json" in words:
            from photostereo.commands.as_json import run_as_json

            sys.exit(run_as_json(app, words))
        try:
            app()
        except PhotostereoError as problem:
            _fail(problem.rendered("terminal"))
        except MemoryError:
            _fail("There is not enough memory for this. Use fewer or smaller photographs, or crop them.")
        except OSError as problem:  # whatever the system refuses is the user's to mend
            if ended_by() is None:
                _fail(
                    f"{problem.strerror or problem}{_place(problem)}. Check the name, the rights and the room."
                )
            sys.exit(tell_end())
        except BaseException:
            if ended_by() is not None:  # what Ctrl-C has become by now
                sys.exit(tell_end())
            raise


def _fail(message: str) -> NoReturn:
    """One paragraph in one piece, so that a path can be copied from it, and exit code 2."""
    from rich.console import Console
    from rich.text import Text

    text = Text.assemble(("Error: ", "bold red"), printable(message))
    Console(stderr=True, highlight=False, soft_wrap=True).print(text)
    sys.exit(2)


def _place(problem: OSError) -> str:
    return "" if problem.filename is None else f": {os.fsdecode(problem.filename)}"


def _version(show: bool) -> None:
    if show:
        typer.echo(f"photostereo {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Robust photometric stereo."""
