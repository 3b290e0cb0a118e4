"""``shoal share``: one party's part in a computation over the rows of several parties, and its key."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from shoal.cli import exits
from shoal.cli.options import (
    Force,
    PasswordFile,
    Printing,
    Reading,
    Rows,
    Several,
    names_in,
    pairs_in,
    password_in,
    range_in,
    whole_in,
    with_options,
)
from shoal.cli.signals import loading
from shoal.errors import EmptyTableError


@dataclass(frozen=True)
class JointStatistics:
    """What is computed over the rows of all parties."""

    count: Annotated[bool, typer.Option("--count", help="The number of rows.")] = False
    sum: Annotated[Several, typer.Option(help="The sum of a column; may be repeated, like all that follow.")] = None
    mean: Annotated[Several, typer.Option(help="The mean of a column; its sum and count are opened.")] = None
    variance: Annotated[Several, typer.Option(help="The variance of a column; its mean stays hidden.")] = None
    histogram: Annotated[
        Several,
        typer.Option(
            help="Counts of the values that are listed, as in ward=A,B,C, or between cut points if the column has "
            "--bounds, as in age=0,18,65,120; all else is counted as other."
        ),
    ] = None
    minimum: Annotated[Several, typer.Option(help="The least value of a column with --bounds: one person's value.")] = (
        None
    )
    maximum: Annotated[Several, typer.Option(help="The largest value, likewise.")] = None
    quantile: Annotated[Several, typer.Option(help="A quantile of a column with --bounds, as in age=0.5.")] = None
    regression: Annotated[
        Several, typer.Option(help="Least squares of a column on others, all with --bounds, as in cost=age,stay.")
    ] = None
    intersection: Annotated[
        str | None, typer.Option(help="How many values of this column of identifiers all parties have.")
    ] = None


@dataclass(frozen=True)
class JointTerms:
    """On which terms it is computed; the same at every party."""

    bounds: Annotated[
        Several, typer.Option(help="The least and largest value of a column, agreed beforehand, as in age=0:120.")
    ] = None
    decimals: Annotated[Several, typer.Option(help="Decimals of a column, as in cost=2; whole numbers else.")] = None
    where: Annotated[Several, typer.Option(help="Only rows with this value, as in infected=yes.")] = None
    skip_missing: Annotated[bool, typer.Option("--skip-missing", help="Leave rows without a value out.")] = False
    at_least: Annotated[
        int | None,
        typer.Option(
            help="Open nothing about fewer rows, not counting those of parties that may pool what they see; 10 without "
            "noise.",
            show_default=False,
        ),
    ] = None
    at_most: Annotated[int, typer.Option(help="Identifiers that a party may have; tables are padded to it.")] = 1000
    noise: Annotated[
        str | None,
        typer.Option(
            help="Differential privacy for the result, as in epsilon=1: each party adds a part of the noise, which no "
            "party knows as a whole."
        ),
    ] = None
    colluders: Annotated[
        int | None,
        typer.Option(
            help="How many parties may reveal their noise to each other; fewer than half by default, 0 for the least "
            "noise, all but one for each party's full noise."
        ),
    ] = None
    rows_per_person: Annotated[int, typer.Option(help="The most rows of one person in all tables, for noise.")] = 1


@with_options
def share(
    data: Rows,
    *,
    party: Annotated[int, typer.Option(help="The number of this party in the file of parties.", show_default=False)],
    parties: Annotated[
        Path,
        typer.Option(help="All parties with addresses and pinned certificates, TOML: the same file everywhere."),
    ] = Path("parties.toml"),
    key: Annotated[
        Path | None, typer.Option(help="The private key of this party; NAME.key of its name by default.")
    ] = None,
    statistics: JointStatistics,
    terms: JointTerms,
    plan: Annotated[bool, typer.Option("--plan", help="Print the plan and its digest, and connect to nobody.")] = False,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for another party.", min=1)] = 60,
    listen: Annotated[
        str | None, typer.Option(help="The address to bind to, if it is not the one in the file of parties.")
    ] = None,
    password_file: PasswordFile = None,
    reading: Reading,
    printing: Printing,
) -> None:
    """Compute statistics over the tables of several parties, who show each other nothing but the result.

    Every party runs this at the same time with the same options. Safe if all follow the protocol (semi-honest) and
    fewer than half pool what they see (honest majority); the result itself is exact unless --noise is given.
    """
    with loading():
        from shoal.results.smc.parties import Parties
        from shoal.results.smc.plan import SharePlan
        from shoal.results.smc.share import share as run

    share_plan = SharePlan(
        count=statistics.count,
        sum=tuple(statistics.sum or ()),
        mean=tuple(statistics.mean or ()),
        variance=tuple(statistics.variance or ()),
        histogram={name: tuple(names_in(cells)) for name, cells in pairs_in(statistics.histogram)},
        minimum=tuple(statistics.minimum or ()),
        maximum=tuple(statistics.maximum or ()),
        quantile=tuple(pairs_in(statistics.quantile)),
        regression=tuple((target, *names_in(explaining)) for target, explaining in pairs_in(statistics.regression)),
        intersection=statistics.intersection,
        bounds={name: range_in(name, text) for name, text in pairs_in(terms.bounds)},
        decimals={name: whole_in(name, text) for name, text in pairs_in(terms.decimals)},
        where=dict(pairs_in(terms.where)),
        skip_missing=terms.skip_missing,
        at_least=terms.at_least,
        at_most=terms.at_most,
        epsilon=None if terms.noise is None else dict(pairs_in([terms.noise])).get("epsilon", ""),
        colluders=terms.colluders,
        rows_per_person=terms.rows_per_person,
    )
    if plan:
        output = {"plan": share_plan.as_dict(), "plan_digest": share_plan.digest, "opened": list(share_plan.opened)}
        printing.show(
            lambda: output, lambda: print("\n".join(["Opened to all parties:", *share_plan.opened, share_plan.digest]))
        )
        return
    everybody = Parties.load(parties)
    own_name = everybody.members[party - 1].name if 0 < party <= len(everybody.members) else ""
    if not printing.quiet and sys.stderr.isatty():
        print(f"plan {share_plan.digest[:16]}; opened to all parties: {', '.join(share_plan.opened)}", file=sys.stderr)
    try:
        rows = reading.opened(data)
    except EmptyTableError:  # who has none takes part too
        rows = None
    results = run(
        rows,
        share_plan,
        party=party,
        parties=everybody,
        key=parties.parent / f"{own_name}.key" if key is None else key,
        password=password_in(password_file),
        timeout=timeout,
        listen=listen,
    )

    def show() -> None:
        for name, value in results.figures.items():
            rows = value.items() if isinstance(value, dict) else ()
            print(f"{name}:" if rows else f"{name}: {'cannot be computed' if value is None else value}")
            for label, inner in rows:
                print(f"  {label}: {inner}")
        for name, deviation in results.noise.items():
            print(f"standard deviation of the noise, {name}: {deviation:.4g}")
        for note in results.notes:
            print(note)

    printing.show(results.as_dict, show)


@with_options
def party(
    name: Annotated[str, typer.Argument(help="The name of the party: its files are NAME.key, .pub and .party.toml.")],
    address: Annotated[str, typer.Argument(help="Where this party listens for the others, as host:port.")],
    *,
    password_file: PasswordFile = None,
    printing: Printing,
    force: Force = False,
) -> None:
    """Create the key of a party for shoal share, and the block with its certificate for the file of parties."""
    with loading():
        from shoal.results.smc.parties import make_party

    private, block, party_block = make_party(name, address, password=password_in(password_file), force=force)
    exits.written += [str(private), str(block)]
    output = {"private": str(private), "block": str(block), "fingerprint": party_block.fingerprint}

    def show() -> None:
        print(f"{private}: stays on this computer")
        print(f"{block}: give it to all parties; joined, the blocks are parties.toml")
        print(f"fingerprint {party_block.fingerprint}: compare it by telephone")

    printing.show(lambda: output, show)
