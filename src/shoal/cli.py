"""The command line: flags → policy → run → exit code. It has no ideas of its own.

Only what is needed to read the flags is imported here; each command imports the rest.
"""

from __future__ import annotations

import json as jsonlib
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from shoal.search.base import Progress


class _Commands(TyperGroup):
    """Turns errors into messages and exit codes: 1 cannot be kept, 2 bad input, 130 interrupted."""

    def invoke(self, ctx: Any) -> Any:
        from shoal.errors import ShoalError

        try:
            return super().invoke(ctx)
        except ShoalError as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            raise typer.Exit(error.exit_code) from None
        except KeyboardInterrupt:
            print("interrupted; nothing was left behind", file=sys.stderr)
            raise typer.Exit(130) from None


app = typer.Typer(
    cls=_Commands,
    help="Turn a table about people into a release that is safe to publish, and prove it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Data = Annotated[Path, typer.Argument(help="The table: CSV or Parquet.", show_default=False)]
PolicyFile = Annotated[Path, typer.Option("-p", "--policy", help="The policy, TOML.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the output if it exists.")]
Separator = Annotated[str | None, typer.Option(help="Separator of a CSV file; detected when left out.")]
Encoding = Annotated[str | None, typer.Option(help="Encoding of a CSV file; detected when left out.")]


@app.command()
def demo(
    folder: Annotated[Path, typer.Argument(help="Where the demo leaves its files.")] = Path("shoal-demo"),
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make a hospital table safe, and show the attack that worked before and fails after."""
    from shoal.demo.run import demo as run
    from shoal.report.terminal import show_demo

    with _progress(quiet) as progress:
        result = run(folder, progress=progress)
    _print_json(result.as_dict()) if json else show_demo(result, folder)


@app.command()
def inspect(
    data: Data,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the policy to this file.")] = None,
    json: Json = False,
    force: Force = False,
    separator: Separator = None,
    encoding: Encoding = None,
) -> None:
    """Find identifiers, quasi-identifiers and hierarchies; propose a policy to edit."""
    from shoal.engines.local import LocalEngine
    from shoal.inspect import inspect as look
    from shoal.report.terminal import show_inspection

    engine = LocalEngine.of(data, separator=separator, encoding=encoding)
    found = look(engine.table)
    if output is not None:
        _write_text(output, found.policy(), force)
    _print_json(found.as_dict()) if json else show_inspection(found, engine.notes, output)


@app.command()
def anonymize(
    data: Data,
    policy: PolicyFile,
    output: Annotated[Path, typer.Option("-o", "--output", help="The release: .csv or .parquet.", show_default=False)],
    certificate: Annotated[Path | None, typer.Option(help="Write the certificate, JSON, to this file.")] = None,
    json: Json = False,
    quiet: Quiet = False,
    force: Force = False,
    separator: Separator = None,
    encoding: Encoding = None,
) -> None:
    """Find the release with the least loss that keeps the policy, verify it, and write it."""
    from shoal.engines.files import check_target
    from shoal.engines.local import LocalEngine
    from shoal.pipeline import anonymize as run
    from shoal.policy import Policy
    from shoal.release import refuse_to_overwrite
    from shoal.report.terminal import show_release

    asked = Policy.load(policy)
    for target in (output, certificate):
        if target is not None:
            for source in (data, policy):
                refuse_to_overwrite(source, target)
    check_target(output, force)
    _check_free(certificate, force)
    with _progress(quiet) as progress:
        engine = LocalEngine.of(data, separator=separator, encoding=encoding)
        release = run(engine, asked, progress=progress)
        progress("writing", 0)
        proof = release.save(output, force=force)
    if certificate is not None:
        _write_text(certificate, jsonlib.dumps(proof, indent=2, ensure_ascii=False) + "\n", force)
    _print_json(proof) if json else show_release(release, output)


@app.command()
def check(
    data: Data,
    policy: PolicyFile,
    original: Annotated[
        Path | None, typer.Option(help="Compare distributions with this table instead of DATA itself.")
    ] = None,
    json: Json = False,
    separator: Separator = None,
    encoding: Encoding = None,
) -> None:
    """Tell whether a table keeps a policy: exit 0 if it holds, 1 if not."""
    from shoal.engines.local import LocalEngine
    from shoal.pipeline import check as run
    from shoal.policy import Policy
    from shoal.report.terminal import show_verdicts

    asked = Policy.load(policy)
    engine = LocalEngine.of(data, separator=separator, encoding=encoding)
    verdicts = run(engine, asked, original=original)
    _print_json(verdicts.as_dict()) if json else show_verdicts(verdicts)
    if not verdicts.hold:
        raise typer.Exit(1)


def _print_json(value: Any) -> None:
    # An infinite figure (no c, no β suffices) has no number in JSON.
    print(jsonlib.dumps(_finite(value), indent=2, ensure_ascii=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    return value


def _check_free(path: Path | None, force: bool) -> None:
    from shoal.errors import OutputError

    if path is not None and path.exists() and not force:
        raise OutputError(f"{path}: exists already", "choose another name, or overwrite it with --force")
    if path is not None and not path.parent.is_dir():
        raise OutputError(f"{path}: the folder does not exist", "create it first")


def _write_text(path: Path, text: str, force: bool) -> None:
    from shoal.errors import OutputError

    _check_free(path, force)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror})") from None


@contextmanager
def _progress(quiet: bool) -> Iterator[Progress]:
    """A line on stderr that says what is being done; nothing where stderr is not a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda what, share: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=1.0)
        yield lambda what, share: bar.update(task, description=what, completed=share)


def _stop(signum: int, _frame: FrameType | None) -> None:
    # Being told to stop must clean up like Ctrl-C does: the half-written file goes.
    raise KeyboardInterrupt


def main() -> None:
    """Run as a program."""
    signal.signal(signal.SIGTERM, _stop)
    app()
