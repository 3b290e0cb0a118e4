"""The command line: flags → policy → run → exit code. It has no ideas of its own.

Only what is needed to read the flags is imported here; each command imports the rest.
"""

from __future__ import annotations

import csv
import json as jsonlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from shoal import __version__
from shoal.cli import exits, signals
from shoal.cli.signals import heeding, loading

if TYPE_CHECKING:
    from shoal.engines.ibis import IbisEngine
    from shoal.engines.local import LocalEngine
    from shoal.policy import Policy
    from shoal.search.problem import Progress


# What the parser of the command line raises and tells of itself.
_OF_THE_PARSER: tuple[type[BaseException], ...] = (typer.Exit, typer.Abort, *typer.BadParameter.__bases__, SystemExit)


class _Commands(TyperGroup):
    """Turns errors into messages and exit codes."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """``--debug`` may stand behind the name of the command too, where one adds it."""
        n_options = args.index("--") if "--" in args else len(args)
        if "--debug" in args[:n_options]:
            exits.debug.append(None)
            args = [arg for i, arg in enumerate(args) if i >= n_options or arg != "--debug"]
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Each command with its whole first sentence, on as many lines as it takes."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, (found.help or "").partition("\n")[0]) for name, found in commands if found])

    def invoke(self, ctx: Any) -> Any:
        exits.written.clear()
        try:
            try:
                signals.held.clear()
                if signals.received:
                    raise signals.interrupted()
                return super().invoke(ctx)
            finally:
                signals.held.append(None)  # all is done: whoever says stop now comes too late
        except _OF_THE_PARSER:
            raise
        except BaseException as error:  # a library in Rust that panics raises no Exception
            raise typer.Exit(exits.failed(error)) from None


app = typer.Typer(
    cls=_Commands,
    help="Turn a table about people into a release that is safe to publish, and prove it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Rows = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="The table: CSV, Parquet, Excel, SPSS, Stata or SAS, a folder of Parquet files, or postgresql://…, "
        "duckdb://…, spark://…",
        show_default=False,
    ),
]
TableName = Annotated[str | None, typer.Option("--table", help="The table behind a URI: name or schema.name.")]
Parquet = Annotated[str | None, typer.Option("--parquet", help="The folder that Spark is to read.")]
EngineName = Annotated[str, typer.Option("--engine", help="Who reads files: local (in memory), duckdb, or auto.")]
Memory = Annotated[
    str | None, typer.Option("--memory", help="What DuckDB and this program may use together, such as 4GB.")
]
PolicyFile = Annotated[Path, typer.Option("-p", "--policy", help="The policy, TOML.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Nothing but errors, and JSON if asked.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Every figure, and every note in full.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the output if it exists.")]
PasswordFile = Annotated[
    Path | None, typer.Option(help="A file whose first line is the password of the private key.", show_default=False)
]
Separator = Annotated[str | None, typer.Option(help="Separator of a CSV file, one character; detected when left out.")]
Encoding = Annotated[str | None, typer.Option(help="Encoding of a CSV file, such as latin-1; detected when left out.")]


def _print_version(asked: bool) -> None:
    if asked:
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


@app.command()
def demo(
    folder: Annotated[
        Path, typer.Argument(help="Where the demo leaves its files; one with other files in it is refused.")
    ] = Path("shoal-demo"),
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make a hospital table safe, and show the attack that worked before and fails after."""
    with loading():
        from shoal.cli.terminal import show_demo
        from shoal.demo.run import demo as run

    with _progress(quiet) as progress:
        result = run(folder, progress=progress, written=lambda path: exits.written.append(str(path)))
    if json:
        _print_json(result.as_dict())
    elif not quiet:
        show_demo(result, folder)


@app.command()
def inspect(
    data: Rows,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the policy to this file.")] = None,
    known: Annotated[str | None, typer.Option(help="Columns that outsiders know, such as age,zip: quasi.")] = None,
    sensitive: Annotated[str | None, typer.Option(help="Columns that nobody should learn, such as disease.")] = None,
    keep: Annotated[
        str | None, typer.Option(help="Columns that a study needs as fine as possible, such as age,stage.")
    ] = None,
    purpose: Annotated[
        str,
        typer.Option(
            "--for",
            help="analysis: every group of records is coarsened for itself, which loses least. tables: one level per "
            "column, the same bins everywhere, to tabulate and to join.",
        ),
    ] = "analysis",
    table: TableName = None,
    parquet: Parquet = None,
    engine: EngineName = "auto",
    memory: Memory = None,
    json: Json = False,
    quiet: Quiet = False,
    force: Force = False,
    separator: Separator = None,
    encoding: Encoding = None,
) -> None:
    """Find identifiers, quasi-identifiers and hierarchies; propose a policy to edit."""
    with loading():
        from shoal.cli.terminal import show_inspection
        from shoal.engines.files.formats import write_text
        from shoal.propose.inspect import inspect as look

    _check_text_target(output, force, [Path(data)])
    rows = _opened(data, table, parquet, engine, memory, separator, encoding)
    found = look(rows, known=_names(known), sensitive=_names(sensitive), keep=_names(keep), purpose=purpose)
    if output is not None:
        write_text(output, found.toml(), force=force)
        exits.written.append(str(output))
    if json:
        _print_json(found.as_dict())
    elif not quiet:
        show_inspection(found, (*rows.notes, *found.notes), output)


@app.command()
def hierarchy(
    data: Rows,
    column: Annotated[str, typer.Argument(help="The column.", show_default=False)],
    policy: Annotated[Path | None, typer.Option("-p", "--policy", help="Show the one that this policy has.")] = None,
    file: Annotated[Path | None, typer.Option(help="Show the one in this hierarchy file.")] = None,
    steps: Annotated[str | None, typer.Option(help="Intervals of these widths, such as 5,10,20.")] = None,
    boundaries: Annotated[str | None, typer.Option(help="Intervals that begin here, such as 0,18,65.")] = None,
    kind: Annotated[
        str | None,
        typer.Option(help="mask, dates, times, flat; icd-10, isco-08, nace, country; or a scale such as frequency."),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(help="Write it as a hierarchy file that a policy can name, CSV. It lists values of the data."),
    ] = None,
    chart: Annotated[Path | None, typer.Option(help="Draw it: .html, .svg or .png.")] = None,
    labels: Annotated[int, typer.Option(help="So many labels of each level are shown.", min=1)] = 8,
    table: TableName = None,
    parquet: Parquet = None,
    engine: EngineName = "auto",
    memory: Memory = None,
    json: Json = False,
    quiet: Quiet = False,
    force: Force = False,
    separator: Separator = None,
    encoding: Encoding = None,
) -> None:
    """Show the levels of a column's hierarchy with records per label: values of the data, for its holder only."""
    with loading():
        from shoal.cli.terminal import show_hierarchy
        from shoal.propose.preview import hierarchy as look

    _check_text_target(save, force, [Path(data)])
    _check_plot_target(chart, force, [Path(data)])
    rows = _opened(data, table, parquet, engine, memory, separator, encoding)
    found = look(
        rows, column, policy=policy, given=file, steps=_numbers(steps), boundaries=_numbers(boundaries), kind=kind
    )
    if save is not None:
        found.save(save, force=force)
        exits.written.append(str(save))
    if chart is not None:
        from shoal.report.plots import save as draw

        draw(found.chart(), chart, force=force)
        exits.written.append(str(chart))
    if json:
        _print_json(found.as_dict())
    elif not quiet:
        show_hierarchy(found, labels, save)


def _numbers(text: str | None) -> list[float]:
    """Numbers with commas between."""
    from shoal.errors import PolicyError

    try:
        found = [float(part) for part in (text or "").split(",") if part.strip()]
    except ValueError:
        raise PolicyError("steps and boundaries are numbers with commas between, such as 5,10,20") from None
    return [int(n) if n == int(n) else n for n in found]


def _names(text: str | None) -> list[str]:
    """Columns with commas between; a name with a comma in it stands in double quotes, as in a CSV file."""
    return [] if text is None else [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]


@app.command()
def anonymize(
    data: Rows,
    policy: PolicyFile,
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            help="The release: .csv, .tsv and .txt are written as text, .parquet and .pq as Parquet, .xlsx, .sav and "
            ".dta for Excel, SPSS and Stata; engines also write a folder, or table:schema.name. Needed, unless "
            "--frontier compares.",
        ),
    ] = None,
    table: TableName = None,
    parquet: Parquet = None,
    engine: EngineName = "auto",
    memory: Memory = None,
    certificate: Annotated[Path | None, typer.Option(help="Write the certificate, JSON, to this file.")] = None,
    recoding: Annotated[
        Path | None,
        typer.Option(
            help="Write what became of each value to this file, for shoal apply. It lists values of the data: keep it "
            "with the data, do not publish it."
        ),
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write a report, HTML, to this file.")] = None,
    receipt: Annotated[
        Path | None,
        typer.Option(
            help="Write what the certificate must not tell, with the key of its digests, to this file. Keep it with "
            "the data, do not publish it: shoal verify --receipt needs it."
        ),
    ] = None,
    receipt_key: Annotated[
        Path | None,
        typer.Option(help="An earlier receipt whose key is used again, so that the certificate is the same again."),
    ] = None,
    sign: Annotated[
        Path | None, typer.Option(help="Sign the certificate with this private key, which shoal keys made.")
    ] = None,
    password_file: PasswordFile = None,
    attacks: Annotated[
        bool | None,
        typer.Option(
            "--attacks/--no-attacks",
            help="Attack the release for the certificate too, whatever it takes. Left out, a report has the attacks of "
            "a fixed amount of work; with --no-attacks, none.",
            show_default=False,
        ),
    ] = None,
    show_originals: Annotated[
        bool,
        typer.Option(
            "--show-originals",
            help="Show a few original records in the report, before and after. Then it is not for publication; left "
            "out, they are invented.",
        ),
    ] = False,
    ranges: Annotated[
        str | None,
        typer.Option(
            help="Columns beside released ranges, whatever the policy says: bounds (age_from, age_to), midpoint "
            "(age_mid), or text for none. To check such a file, its policy needs the same under release.ranges."
        ),
    ] = None,
    frontier: Annotated[
        list[str] | None,
        typer.Option(
            help="Instead of writing a release, solve for each of these values and compare, such as k=2,3,5,10; of k, "
            "l, t and max_suppression. Repeated, every combination is solved."
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    force: Force = False,
    separator: Separator = None,
    encoding: Encoding = None,
) -> None:
    """Find the release with the least loss that keeps the policy, verify it, and write it."""
    with loading():
        from shoal.cli.terminal import show_release
        from shoal.engines.files.formats import check_target, write_text
        from shoal.engines.local import LocalEngine
        from shoal.engines.opening import in_memory, opened
        from shoal.errors import OutputError
        from shoal.pipeline import anonymize as run
        from shoal.policy import Policy
        from shoal.release import refuse_to_overwrite
        from shoal.release.receipt import key_of, read_receipt, receipt_of, write_receipt
        from shoal.release.signatures import read_private
        from shoal.release.signatures import sign as signed

    asked = Policy.load(policy)
    if ranges is not None:
        asked = asked.with_release(ranges=ranges)
    if frontier:
        of_one = {"--report": report, "--certificate": certificate, "--recoding": recoding, "--attacks": attacks}
        of_one |= {"--receipt": receipt, "--sign": sign}
        for option, given in of_one.items():
            if given:
                raise OutputError(f"--frontier compares releases, and {option} is of one", "leave one of them out")
        if output is not None:
            raise OutputError("--frontier compares releases and writes none", "leave -o out")
        _frontier(_opened(data, table, parquet, engine, memory, separator, encoding), asked, frontier, json, quiet)
        return
    if output is None:
        raise OutputError("-o: name the file to write the release to", "or sweep parameters with --frontier k=2,5,10")
    kept = None if receipt_key is None else key_of(read_receipt(receipt_key))
    signer = None if sign is None else read_private(sign, password=_password(password_file))
    sources = [Path(data), policy, *asked.files, *(path for path in (receipt_key, sign, password_file) if path)]
    for source in sources:
        refuse_to_overwrite(source, output)
    _check_different(
        {
            "the release": output,
            "its certificate": certificate,
            "its report": report,
            "its recoding": recoding,
            "its receipt": receipt,
        }
    )
    for target in (certificate, report, recoding, receipt):
        _check_text_target(target, force, sources)
    if in_memory(data, engine, memory):
        check_target(Path(output), force)
    else:
        with loading():
            import shoal.engines.connect
    with _progress(quiet) as progress:
        rows = opened(
            data,
            table=table,
            parquet=parquet,
            engine=engine,
            memory=memory,
            separator=separator,
            encoding=encoding,
        )
        if not isinstance(rows, LocalEngine):
            rows.check_target(output, force)
        release = run(rows, asked, progress=progress)
        if attacks and release.attacks is None:  # limits in the policy have brought their own, on everybody
            progress("attacking", 0)
            release = release.attacked()
        if kept is not None:
            release = release.with_key(kept)
        progress("writing", 0)
        proof = release.save(output, force=force)
    exits.written.append(output)
    if receipt is not None:  # before the certificate: whose digest nobody could ever check without it
        write_receipt(receipt_of(release, proof), receipt, force=force)
        exits.written.append(str(receipt))
    if signer is not None:
        proof = signed(proof, signer)
    if certificate is not None:
        write_text(certificate, jsonlib.dumps(proof, indent=2, ensure_ascii=False) + "\n", force=force)
        exits.written.append(str(certificate))
    if recoding is not None:
        with loading():
            from shoal.release.replay import save

        save(release, recoding, force=force)
        exits.written.append(str(recoding))
    if report is not None:
        with loading():
            import shoal.report.html  # noqa: F401  (here, as an import must not be interrupted)
        untried = () if attacks is False else None
        release.report(report, certificate=proof, attacks=untried, show_originals=show_originals, force=force)
        exits.written.append(str(report))
    if json:
        _print_json(proof)
    elif not quiet:
        beside = {"certificate": certificate, "report": report, "recoding": recoding, "receipt": receipt}
        show_release(release, output, proof["warnings"], beside, verbose=verbose)


def _frontier(rows: LocalEngine | IbisEngine, policy: Policy, swept: list[str], json: bool, quiet: bool) -> None:
    with loading():
        from shoal.alternatives.frontier import frontier, parameters
        from shoal.cli.terminal import show_frontier

    with _progress(quiet) as progress:
        found = frontier(rows, policy, **parameters(swept), progress=progress)
    if json:
        _print_json(found.as_dict())
    elif not quiet:
        show_frontier(found)
    _exit_unless_found(point.state for point in found)


@app.command()
def apply(
    recoding: Annotated[Path, typer.Argument(help="What anonymize --recoding wrote.", show_default=False)],
    data: Rows,
    output: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            help="The release: .csv, .parquet, .xlsx, .sav, .dta, a folder, or table:schema.name.",
            show_default=False,
        ),
    ],
    table: TableName = None,
    parquet: Parquet = None,
    engine: EngineName = "auto",
    memory: Memory = None,
    json: Json = False,
    quiet: Quiet = False,
    force: Force = False,
    separator: Separator = None,
    encoding: Encoding = None,
) -> None:
    """Recode new rows as earlier ones were; rows that would break the policy are held back."""
    with loading():
        from shoal.cli.terminal import show_replay
        from shoal.engines.files.formats import check_target
        from shoal.engines.local import LocalEngine
        from shoal.engines.opening import in_memory, opened
        from shoal.release import refuse_to_overwrite
        from shoal.release.replay import replay

    for source in (recoding, Path(data)):
        refuse_to_overwrite(source, output)
    if in_memory(data, engine, memory):
        check_target(Path(output), force)
    else:
        with loading():
            import shoal.engines.connect  # noqa: F401  (here, as an import must not be interrupted)
    with _progress(quiet):
        rows = opened(
            data, table=table, parquet=parquet, engine=engine, memory=memory, separator=separator, encoding=encoding
        )
        if not isinstance(rows, LocalEngine):
            rows.check_target(output, force)
        done = replay(recoding, rows)
        done.save(output, force=force)
    exits.written.append(output)
    if json:
        _print_json(done.as_dict())
    elif not quiet:
        show_replay(done, output)


@app.command()
def check(
    data: Rows,
    policy: PolicyFile,
    original: Annotated[
        str | None,
        typer.Option(
            help="The table before anonymization: distributions (t-closeness) are compared with it instead of DATA "
            "itself, and its people are attacked where the policy limits what attacks may find. A file, table:name "
            "beside DATA, or a URI with #name behind it."
        ),
    ] = None,
    previous: Annotated[
        list[str] | None,
        typer.Option(
            help="A release of the same people that is published already, named as the original is; may be repeated. "
            "The policy must also hold for the people whom none of the releases tells apart. Needs --original."
        ),
    ] = None,
    table: TableName = None,
    parquet: Parquet = None,
    engine: EngineName = "auto",
    memory: Memory = None,
    report: Annotated[
        Path | None, typer.Option(help="Write what fails, where and what to do, HTML, to this file; shows no value.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    force: Force = False,
    separator: Separator = None,
    encoding: Encoding = None,
) -> None:
    """Tell whether a table keeps a policy: exit 0 if it holds, 1 if it fails, 2 if it cannot be told."""
    with loading():
        from shoal.cli.terminal import show_check
        from shoal.engines.opening import beside
        from shoal.pipeline import check as run
        from shoal.policy import Policy

    asked = Policy.load(policy)
    _check_text_target(report, force, [Path(data), policy, *asked.files])
    rows = _opened(data, table, parquet, engine, memory, separator, encoding)
    others = [
        None if other is None else beside(other, rows, engine=engine, memory=memory)
        for other in (original, *(previous or ()))
    ]
    if report is not None:
        with loading():
            import shoal.report.failing  # noqa: F401  (here, as an import must not be interrupted)
    verdicts = run(rows, asked, original=others[0], previous=others[1:], report=report, force=force)
    exits.written += [] if report is None else [str(report)]
    if json:
        _print_json(verdicts.as_dict())
    elif not quiet:
        show_check(verdicts)
    raise typer.Exit(_EXIT_CODES[verdicts.outcome])


@app.command()
def attack(
    release: Annotated[Path, typer.Argument(help="The table to attack: CSV or Parquet.", show_default=False)],
    policy: PolicyFile,
    original: Annotated[
        Path | None, typer.Option(help="The table it was made from: its people are attacked, its values are the truth.")
    ] = None,
    register: Annotated[Path | None, typer.Option(help="People with names, linked instead of the original's.")] = None,
    known: Annotated[
        str | None,
        typer.Option(help="Quasi columns that the intruder knows, as in age,zip; all of them when left out."),
    ] = None,
    control: Annotated[Path | None, typer.Option(help="People like those in the release, who are not in it.")] = None,
    previous: Annotated[Path | None, typer.Option(help="Another release of the same people.")] = None,
    id: Annotated[
        str | None,
        typer.Option(
            help="A column of release and original that tells whose record is whose; the intruder never reads it."
        ),
    ] = None,
    excludes: Annotated[int, typer.Option(help="Values that background knowledge rules out for a person.")] = 1,
    sample: Annotated[int, typer.Option(help="People attacked at most, drawn at random; 0 for all.")] = 10_000,
    json: Json = False,
    quiet: Quiet = False,
    separator: Separator = None,
    encoding: Encoding = None,
) -> None:
    """Play the intruder: link, infer and intersect; exit 1 if a measured limit is exceeded, 2 if it cannot be told."""
    with loading():
        from shoal.attacks.run import attack as run
        from shoal.cli.terminal import show_attacks
        from shoal.engines.local import LocalEngine
        from shoal.policy import Policy

    asked = Policy.load(policy)
    with _progress(quiet) as progress:
        engine = LocalEngine.of(release, separator=separator, encoding=encoding)
        progress("attacking", 0)
        found = run(
            engine,
            original=original,
            policy=asked,
            register=register,
            known=[name.strip() for name in known.split(",")] if known else (),
            control=control,
            previous=previous,
            id=id,
            excludes=excludes,
            sample=sample or None,
        )
    limits = [limit.judge(found, "" if original else "needs the original") for limit in asked.limits]
    exceeded = [verdict.asked for verdict in limits if verdict.outcome == "fails"]
    if json:
        told = [verdict.as_dict() for verdict in limits]
        _print_json(found.as_dict() | {"exceeded": exceeded, "limits": told})
    elif not quiet:
        show_attacks(found, limits)
    if any(not verdict.holds for verdict in limits):
        raise typer.Exit(1 if exceeded else 2)


@app.command()
def explore(
    data: Rows,
    policy: PolicyFile,
    sweep: Annotated[
        list[str] | None,
        typer.Option(help="Values to solve for, such as k=2,3,5,10; may be repeated. Around the policy when left out."),
    ] = None,
    sensitivity: Annotated[
        str | None, typer.Option(help="Of the data: low, medium or high; all three when left out.")
    ] = None,
    tolerable: Annotated[float | None, typer.Option(help="The risk that can be borne, such as 0.1, instead.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw loss against risk: .html, .svg or .png.")] = None,
    table: TableName = None,
    parquet: Parquet = None,
    engine: EngineName = "auto",
    memory: Memory = None,
    json: Json = False,
    quiet: Quiet = False,
    force: Force = False,
    separator: Separator = None,
    encoding: Encoding = None,
) -> None:
    """Solve a policy for several k, ℓ, t and shares of suppression, and recommend one. Writes no release."""
    with loading():
        from shoal.alternatives.frontier import parameters
        from shoal.alternatives.recommend import explore as run
        from shoal.cli.terminal import show_exploration
        from shoal.policy import Policy

    asked = Policy.load(policy)
    _check_plot_target(plot, force, [Path(data), policy, *asked.files])
    rows = _opened(data, table, parquet, engine, memory, separator, encoding)
    with _progress(quiet) as progress:
        found = run(
            rows,
            asked,
            swept=parameters(sweep) if sweep else None,
            sensitivity=sensitivity,
            tolerable=tolerable,
            progress=progress,
        )
    if plot is not None:
        from shoal.report.plots import exploration_chart, save

        save(exploration_chart(found), plot, force=force)
        exits.written.append(str(plot))
    if json:
        _print_json(found.as_dict())
    elif not quiet:
        show_exploration(found)
    _exit_unless_found(point.state for point in found.frontier)


@app.command()
def verify(
    certificate: Annotated[Path, typer.Argument(help="The certificate, JSON.", show_default=False)],
    release: Annotated[
        str,
        typer.Argument(
            help="The released table: CSV or Parquet, a folder of Parquet files, or postgresql://…, duckdb://…, "
            "spark://…",
            show_default=False,
        ),
    ],
    original: Annotated[
        str | None,
        typer.Option(
            help="The table that the release was made from, named as for check: with it requirements are judged that "
            "the release alone cannot tell, and with --receipt it is told whether it is that table."
        ),
    ] = None,
    receipt: Annotated[
        Path | None, typer.Option(help="What anonymize --receipt wrote: with it the digests of the input are checked.")
    ] = None,
    key: Annotated[Path | None, typer.Option(help="The public key of whoever should have signed it.")] = None,
    table: TableName = None,
    parquet: Parquet = None,
    engine: EngineName = "auto",
    memory: Memory = None,
    json: Json = False,
    quiet: Quiet = False,
    separator: Separator = None,
    encoding: Encoding = None,
) -> None:
    """Count a release again and compare with its certificate.

    Exit 0 if every requirement holds and nothing contradicts it, 1 if something does, 2 if one cannot be told.
    """
    with loading():
        from shoal.cli.terminal import show_verification
        from shoal.engines.opening import beside
        from shoal.verify.certified import require_certificate, verify_certificate

    require_certificate(certificate)  # whoever has swapped the two is told so, and not what the rows are like
    rows = _opened(release, table, parquet, engine, memory, separator, encoding)
    truth = None if original is None else beside(original, rows, engine=engine, memory=memory)
    found = verify_certificate(certificate, rows, original=truth, receipt=receipt, key=key)
    if json:
        _print_json(found.as_dict())
    elif not quiet:
        show_verification(found)
    raise typer.Exit(_EXIT_CODES[found.outcome])


@app.command()
def compare(
    data: Rows,
    policy: PolicyFile,
    algorithms: Annotated[
        str | None,
        typer.Option(
            help="Which, as in optimal,mondrian,datafly; all but exhaustive and mingen, which look at every node, when "
            "left out.",
            show_default=False,
        ),
    ] = None,
    utility: Annotated[
        bool, typer.Option("--utility", help="Apply every answer and ask a thousand random counts of it.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw loss against time: .html, .svg or .png.")] = None,
    table: TableName = None,
    parquet: Parquet = None,
    engine: EngineName = "auto",
    memory: Memory = None,
    json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    force: Force = False,
    separator: Separator = None,
    encoding: Encoding = None,
) -> None:
    """Run several algorithms on the same table and policy, side by side. Writes no release."""
    with loading():
        from shoal.alternatives.compare import compare as run
        from shoal.cli.terminal import show_comparison
        from shoal.policy import Policy

    asked = Policy.load(policy)
    _check_plot_target(plot, force, [Path(data), policy, *asked.files])
    names = [name.strip() for name in algorithms.split(",")] if algorithms else []
    rows = _opened(data, table, parquet, engine, memory, separator, encoding)
    with _progress(quiet) as progress:
        found = run(rows, asked, algorithms=names, utility=utility, progress=progress)
    if plot is not None:
        from shoal.report.plots import comparison_chart, save

        save(comparison_chart(found), plot, force=force)
        exits.written.append(str(plot))
    if json:
        _print_json(found.as_dict())
    elif not quiet:
        show_comparison(found, verbose=verbose)
    _exit_unless_found(entry.outcome for entry in found)


@app.command()
def keys(
    name: Annotated[str, typer.Argument(help="The keys will be NAME.key and NAME.pub.", show_default=False)],
    password_file: PasswordFile = None,
    json: Json = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Make a pair of keys: NAME.key signs certificates and stays private, NAME.pub verifies them and is published."""
    with loading():
        from shoal.cli.terminal import show_keys
        from shoal.release.signatures import fingerprint, make_keys, read_public

    private, public = make_keys(name, password=_password(password_file), force=force)
    own = fingerprint(read_public(public))
    if json:
        _print_json({"private": str(private), "public": str(public), "key": own})
    elif not quiet:
        show_keys(private, public, own, locked=password_file is not None)


def _password(path: Path | None) -> str | None:
    """The first line of a file: on a command line others could read it."""
    from shoal.errors import DataError

    if path is None:
        return None
    try:
        password = path.read_text(encoding="utf-8").partition("\n")[0].rstrip("\r")
    except (OSError, UnicodeDecodeError):
        raise DataError(f"{path}: no password can be read from it") from None
    if not password:
        raise DataError(f"{path}: its first line is empty", "write the password there")
    return password


_EXIT_CODES = {"holds": 0, "fails": 1, "unknown": 2}


def _exit_unless_found(states: Iterable[str]) -> None:
    """1 where no release was found; 2 where one was found of which it cannot be told whether it holds."""
    seen = set(states)
    if "found" not in seen:
        raise typer.Exit(2 if "cannot be told" in seen else 1)


def _opened(
    data: str,
    table: str | None,
    parquet: str | None,
    engine: str,
    memory: str | None,
    separator: str | None,
    encoding: str | None,
) -> LocalEngine | IbisEngine:
    """What DATA and the options beside it name."""
    with loading():
        from shoal.engines.opening import in_memory, opened

        if not in_memory(data, engine, memory):
            import shoal.engines.connect  # noqa: F401  (here, as an import must not be interrupted)
    return opened(
        data, table=table, parquet=parquet, engine=engine, memory=memory, separator=separator, encoding=encoding
    )


def _print_json(value: Any) -> None:
    from shoal.text.jsonable import finite

    # What a terminal or a pipe cannot encode is escaped, so that it is JSON everywhere.
    ascii_only = not (sys.stdout.encoding or "").lower().startswith("utf")
    print(jsonlib.dumps(finite(value), indent=2, ensure_ascii=ascii_only))


def _check_different(targets: Mapping[str, str | Path | None]) -> None:
    """Each file has one use: a recoding, which lists values of the data, must not replace what is published."""
    from shoal.errors import OutputError

    used: dict[Path, str] = {}
    for what, path in targets.items():
        if path is not None and (before := used.setdefault(_resolved(path), what)) != what:
            raise OutputError(f"{path}: is both {before} and {what}", "name two files")


def _resolved(path: str | Path) -> Path:
    """The path without links, as far as they can be followed: not in a circle, nor from a folder that was deleted."""
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError, ValueError):
        return Path(path)


def _check_text_target(path: Path | None, force: bool, sources: Iterable[Path]) -> None:
    """Raise what ``write_text`` would, before the long work."""
    from shoal.engines.files.formats import check_place, output_errors
    from shoal.errors import OutputError
    from shoal.release import refuse_to_overwrite

    if path is None:
        return
    for source in sources:
        refuse_to_overwrite(source, path)
    with output_errors(path):
        if path.is_dir():
            raise OutputError(f"{path}: is a directory", "name a file")
        if path.exists() and not force:
            raise OutputError(f"{path}: exists already", "choose another name, or overwrite it with --force")
        if not path.parent.is_dir():
            raise OutputError(f"{path}: the folder does not exist", "create it first")
    check_place(path, force)


def _check_plot_target(path: Path | None, force: bool, sources: Iterable[Path]) -> None:
    """The same for a plot, whose name tells its kind."""
    if path is not None:
        with loading():
            from shoal.report.plots import check_plot

        check_plot(path)
        _check_text_target(path, force, sources)


@contextmanager
def _progress(quiet: bool) -> Iterator[Progress]:
    """A line on stderr that says what is being done; nothing where stderr is not a terminal."""
    if quiet or not sys.stderr.isatty():
        yield heeding(lambda what, share: None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=1.0)
        yield heeding(lambda what, share: bar.update(task, description=what, completed=share))


def main() -> None:
    """Run as a program."""
    output = exits.guard()
    exits.guard_exit()
    numbers = signals.listen()
    code: Any = None
    try:
        app()
    except SystemExit as end:
        code = end.code
    except BaseException as error:
        code = exits.failed(error)
    finally:
        signals.ignore(numbers)  # clearing up takes a while, and a signal would end it
    signals.leave(exits.settled(code, output))


if __name__ == "__main__":
    main()
