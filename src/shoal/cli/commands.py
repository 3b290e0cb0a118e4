"""The command line: flags → policy → run → exit code. It contains no logic of its own.

Only what is needed to parse the flags is imported here; each command imports the rest.
"""

from __future__ import annotations

import gc
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from shoal import __version__
from shoal.cli import exits, signals
from shoal.cli.alternatives import compare, explore
from shoal.cli.check import attack, check, verify
from shoal.cli.demo import demo
from shoal.cli.encrypt import compute, decrypt, encrypt, keypair
from shoal.cli.integral import integral
from shoal.cli.output import output
from shoal.cli.propose import hierarchy, inspect
from shoal.cli.publish import anonymize, apply, keys
from shoal.cli.query import query, synthesize
from shoal.cli.share import party, share
from shoal.cli.web import web

# Exceptions that the parser of the command line raises and reports itself.
_OF_THE_PARSER: tuple[type[BaseException], ...] = (typer.Exit, typer.Abort, *typer.BadParameter.__bases__, SystemExit)


class _Commands(TyperGroup):
    """Convert errors to messages and exit codes."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Accept ``--debug`` after the name of the command too, where users add it."""
        n_options = args.index("--") if "--" in args else len(args)
        if "--debug" in args[:n_options]:
            exits.debug.append(None)
            args = [arg for i, arg in enumerate(args) if i >= n_options or arg != "--debug"]
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Show each command with its whole first sentence, on as many lines as necessary."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, (command.help or "").partition("\n")[0]) for name, command in commands if command]
            )

    def invoke(self, ctx: Any) -> Any:
        exits.written.clear()
        try:
            try:
                signals.postponing.clear()
                if signals.received:
                    raise signals.interrupted()
                return super().invoke(ctx)
            finally:
                signals.postponing.append(None)  # everything is done: a signal that comes now is too late
        except _OF_THE_PARSER:
            raise
        except BaseException as error:  # a panic in a Rust library is not an Exception
            raise typer.Exit(exits.failed(error)) from None


app = typer.Typer(
    cls=_Commands,
    help="Turn a table about people into a release that is safe to publish, and prove it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(requested: bool) -> None:
    if requested:
        print(__version__)
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Print the traceback of an error, which may quote the data.")
    ] = False,
) -> None: ...


# In the order of the help.
for _command in (
    demo,
    inspect,
    hierarchy,
    anonymize,
    apply,
    check,
    attack,
    explore,
    verify,
    compare,
    integral,
    output,
    query,
    synthesize,
    keys,
    party,
    share,
    keypair,
    encrypt,
    compute,
    decrypt,
    web,
):
    app.command()(_command)


_registered = app.registered_commands


def build_only(name: str) -> None:
    """Build no other command than the one that is named: building them all takes longer than any needs to start."""
    matching = [command for command in _registered if command.callback and command.callback.__name__ == name]
    if matching:
        _registered[:] = matching


def run_command() -> None:
    """Run the command that the arguments name; ``app()`` would set an exception hook of its own."""
    get_command(app)()


def main() -> None:
    """Run the command line as a program."""
    build_only(next(iter(sys.argv[1:]), ""))
    # Python looks for cycles among all objects again and again while they are made: a fifth of a command's time.
    gc.disable()  # until the command has loaded what it needs
    gc.set_threshold(100_000, 20, 50)
    output = exits.guard()
    exits.guard_exit()
    sys.excepthook = exits.last_resort
    numbers = signals.listen()
    code: Any = None
    try:
        run_command()
    except SystemExit as end:
        code = end.code
    except BaseException as error:
        code = exits.failed(error)
    finally:
        signals.ignore(numbers)  # cleaning up takes a while, and a signal would interrupt it
    signals.exit_at_once(exits.final_exit_code(code, output))


if __name__ == "__main__":
    main()
