"""The application: all commands."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from importlib import import_module
from types import FunctionType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from photostereo._version import __version__
from photostereo.cli.command import command
from photostereo.cli.shell import end_with
from photostereo.cli.streams import lasting_output, report_lost_output
from photostereo.core.errors import MissingDependencyError
from photostereo.core.plugins import announced
from photostereo.io.names import printable
from photostereo.runtime.signals import ended_by, orderly_signals
from photostereo.runtime.threads import shorten_spinning

#: Commands under their headings, in the order of ``--help``. Each is a function in the module of the same name, or comes
#: from another package.
COMMANDS = {
    "From photographs to results": "app demo info lights mask solve compare methods batch rig",
    "Working with results": "view mesh export measure figure",
    "Test data": "scene corrupt",
    "Research": "sweep reproduce train",
}
#: Commands provided by the package photostereo-lab.
OF_THE_LAB = {"corrupt", "figure", "scene", "sweep", "reproduce", "train"}
#: The heading of commands that are not listed above.
OTHERS = "From other packages"


class Shell(TyperGroup):
    """The group of all commands; knows whether output, including errors, must be JSON."""

    as_json = False

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        words = args[: args.index("--")] if "--" in args else args
        type(self).as_json = "--json" in words
        return super().parse_args(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        found = super().get_command(ctx, cmd_name)
        if found is None and cmd_name in OF_THE_LAB:
            raise MissingDependencyError(
                f"The command {cmd_name} is in the package photostereo-lab. Install it with: pip "
                "install photostereo-lab (in a checkout of photostereo: pip install ./lab)",
                code="missing-lab",
                command=cmd_name,
            )
        return found


app = typer.Typer(
    name="photostereo",
    help="Robust photometric stereo: from photographs under a moving light to normals, albedo, depth and a mesh.",
    cls=Shell,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_warning(message: Warning | str, category: type[Warning], *place: object) -> None:
    """Print warnings that no command has caught, such as those about plugins, without the line of code."""
    typer.echo(f"Warning: {printable(str(message))}", err=True)


def check_command(function: FunctionType) -> None:
    """Raise if Typer cannot turn the function into a command."""
    alone = typer.Typer()
    alone.command()(command(function))
    typer.main.get_command(alone)


def commands() -> Iterator[tuple[str, FunctionType]]:
    """Yield all commands with their headings; those of other packages never replace a built-in command."""
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning  # type: ignore[assignment]
        functions = announced("photostereo.commands", FunctionType, check_command)
    others = {function.__name__: function for function in functions}
    for heading, names in COMMANDS.items():
        for name in names.split():
            other = others.pop(name, None)
            if name not in OF_THE_LAB:
                yield heading, getattr(import_module(f"photostereo.cli.{name}"), name)
            elif other is not None:
                yield heading, other
    for other in others.values():
        yield OTHERS, other


for heading, function in commands():
    app.command(rich_help_panel=heading)(command(function))


def main() -> None:
    """Run the command line: errors that the user can fix become one paragraph (or a JSON object) and exit code 2."""
    with orderly_signals(), lasting_output() as output:
        shorten_spinning()  # before NumPy is loaded
        Shell.as_json = False
        warnings.showwarning = _show_warning  # type: ignore[assignment]
        try:
            code = app(standalone_mode=False)
            if ended_by() is not None:  # Typer may have turned it into an ordinary exit
                code = end_with(None, as_json=Shell.as_json)
        except BaseException as problem:
            if isinstance(problem, SystemExit) and ended_by() is None:
                raise
            code = end_with(problem, as_json=Shell.as_json)
        output.flush()
        sys.exit(report_lost_output(output, int(code or 0)))


def _version(show: bool) -> None:
    if show:
        typer.echo(f"photostereo {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Robust photometric stereo."""
