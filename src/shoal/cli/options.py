"""Options that several commands share, each declared once.

A command takes options that belong together as one argument: a dataclass whose fields are the options. ``with_options``
shows these fields to the parser. Modules with commands do not use string annotations, which the parser would have to
evaluate at each start.
"""

import csv
import functools
import inspect
import json as jsonlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.signals import heeding, loading
from shoal.errors import DataError, PolicyError
from shoal.text.bounded import read_bounded

if TYPE_CHECKING:
    from shoal.engines.base import Engine
    from shoal.search.problem import Progress

MOST_PASSWORD_BYTES = 2**16

Rows = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="The table: CSV, Parquet, Feather, JSON lines, Excel, SPSS, Stata or SAS, a folder of Parquet files, or "
        "postgresql://…, duckdb://…, spark://…",
        show_default=False,
    ),
]
PolicyFile = Annotated[Path, typer.Option("-p", "--policy", help="The policy, TOML.", show_default=False)]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Print every figure and every note in full.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the output if it exists.")]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Refuse what must not be published although the policy holds, with exit code 3."),
]
PasswordFile = Annotated[
    Path | None, typer.Option(help="A file whose first line is the password of the private key.", show_default=False)
]
Separator = Annotated[str | None, typer.Option(help="Separator of a CSV file, one character; detected by default.")]
Several = list[str] | None
Encoding = Annotated[str | None, typer.Option(help="Encoding of a CSV file, such as latin-1; detected by default.")]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line of a CSV file has the column names; a line that looks like a record needs an "
        "answer. Without a header, the columns are called column1, column2, …",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class Reading:
    """Options for reading a table."""

    table: Annotated[str | None, typer.Option("--table", help="The table at the URI: name or schema.name.")] = None
    parquet: Annotated[str | None, typer.Option("--parquet", help="The folder that Spark reads.")] = None
    engine: Annotated[
        str, typer.Option("--engine", help="The engine that reads files: local (in memory), duckdb, or auto.")
    ] = "auto"
    memory: Annotated[
        str | None, typer.Option("--memory", help="Memory limit for DuckDB and this program together, such as 4GB.")
    ] = None
    separator: Separator = None
    encoding: Encoding = None
    header: Header = None

    def opened(self, data: str, *, read_only: bool = True) -> "Engine":
        """Open the engine that has the rows of DATA."""
        with loading():
            from shoal.engines.opening import in_memory, opened

            if not in_memory(data, self.engine, self.memory):
                import shoal.engines.connect  # noqa: F401  (here, as an import must not be interrupted)
        return opened(
            data,
            table=self.table,
            parquet=self.parquet,
            engine=self.engine,
            memory=self.memory,
            separator=self.separator,
            encoding=self.encoding,
            header=self.header,
            read_only=read_only,
        )

    def opened_for(self, data: str, output: str, *, force: bool) -> "Engine":
        """Open the engine if a release can be written to ``output``, so that errors come before the work."""
        with loading():
            from shoal.engines.formats.table_files import check_target
            from shoal.engines.opening import in_memory

        if in_memory(data, self.engine, self.memory):
            check_target(Path(output), force)
        rows = self.opened(data, read_only=not output.startswith("table:"))
        rows.check_target(output, force)
        return rows

    def opened_beside(self, data: str, rows: "Engine") -> "Engine":
        """Open a second table, which may be ``table:name`` in the database of the first one."""
        with loading():
            from shoal.engines.opening import open_second

        return open_second(data, rows, engine=self.engine, memory=self.memory, header=self.header)


@dataclass(frozen=True)
class Printing:
    """Options for printing results."""

    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print only errors, and JSON if requested.")] = False

    def show(self, as_dict: Callable[[], Any], show: Callable[[], None]) -> None:
        """Print a result as JSON, or ``show`` it for people to read."""
        if self.json:
            _print_json(as_dict())
        elif not self.quiet:
            show()

    @contextmanager
    def progress(self) -> "Iterator[Progress]":
        """Show the current step on a line of stderr; nothing if stderr is not a terminal."""
        if self.quiet or not sys.stderr.isatty():
            yield heeding(lambda step, share: None)
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        from shoal.compiled.jit import announcing

        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("reading", total=1.0)
            with announcing(lambda: bar.update(task, description="compiling, on the first run only")):
                yield heeding(lambda step, share: bar.update(task, description=step, completed=share))


def _print_json(value: Any) -> None:
    from shoal.text.jsonable import finite

    # Characters that a terminal or pipe cannot encode are escaped, so that the output is always valid JSON.
    ascii_only = not (sys.stdout.encoding or "").lower().startswith("utf")
    print(jsonlib.dumps(finite(value), indent=2, ensure_ascii=ascii_only))


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command so that the parser sees the fields of its dataclass arguments as options."""
    groups: dict[str, type[Any]] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        members = [parameter]
        if isinstance(parameter.annotation, type) and is_dataclass(parameter.annotation):
            groups[name] = parameter.annotation
            members = [*inspect.signature(parameter.annotation).parameters.values()]
        parameters += [member.replace(kind=inspect.Parameter.KEYWORD_ONLY) for member in members]

    @functools.wraps(command)
    def run(**arguments: Any) -> None:
        for name, group in groups.items():
            arguments[name] = group(**{field.name: arguments.pop(field.name) for field in fields(group)})
        command(**arguments)

    vars(run)["__signature__"] = inspect.Signature(parameters)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def names_in(text: str | None) -> list[str]:
    """Split a comma-separated list of columns; a name that contains a comma is in double quotes, as in a CSV file."""
    return [] if text is None else [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]


def numbers_in(text: str | None) -> list[float]:
    """Split a comma-separated list of numbers."""
    try:
        numbers = [float(part) for part in (text or "").split(",") if part.strip()]
    except ValueError:
        raise PolicyError("steps and boundaries must be numbers separated by commas, such as 5,10,20") from None
    return [int(n) if n == int(n) else n for n in numbers]


def pairs_in(texts: Several) -> list[tuple[str, str]]:
    """Split options such as age=0:120."""
    for text in texts or ():
        if not all(text.partition("=")):
            raise PolicyError(f"{text!r} is not name=value", "such as --bounds age=0:120 or --noise epsilon=1")
    return [(text.partition("=")[0].strip(), text.partition("=")[2].strip()) for text in texts or ()]


def range_in(name: str, text: str) -> tuple[str, str]:
    """Split the bounds of a column."""
    low, mark, high = text.partition(":")
    if not mark:
        raise PolicyError(f"bounds of {name!r}: {text!r} is not least:largest", "such as --bounds age=0:120")
    return low, high


def whole_in(name: str, text: str) -> int:
    """Read the decimals of a column."""
    if not text.isdecimal():
        raise PolicyError(f"decimals of {name!r}: {text!r} is not a whole number")
    return int(text)


def password_in(path: Path | None) -> str | None:
    """Read the first line of a password file: on a command line, other users could see the password."""
    if path is None:
        return None
    try:
        password = read_bounded(path, MOST_PASSWORD_BYTES).decode().partition("\n")[0].rstrip("\r")
    except (OSError, UnicodeDecodeError):
        raise DataError(f"{path}: contains no readable password") from None
    if not password:
        raise DataError(f"{path}: its first line is empty", "write the password to the first line")
    return password
