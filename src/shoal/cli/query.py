"""``shoal query`` and ``shoal synthesize``: answers and rows with differential privacy, planned before spending."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.cli import exits
from shoal.cli.options import Force, Printing, Reading, Rows, names_in, with_options
from shoal.cli.signals import loading
from shoal.cli.targets import check_different
from shoal.errors import EmptyTableError, PolicyError

Named = list[str] | None


@dataclass(frozen=True)
class Questions:
    """Options that say what is asked."""

    count: Annotated[bool, typer.Option("--count", help="The number of records.")] = False
    persons: Annotated[bool, typer.Option("--persons", help="The number of people; needs --entity.")] = False
    sum: Annotated[Named, typer.Option("--sum", help="The sum of a column; needs its bounds.")] = None
    mean: Annotated[Named, typer.Option("--mean", help="The mean of a column; needs its bounds.")] = None
    quantile: Annotated[Named, typer.Option("--quantile", help="Quantiles, such as age=0.25,0.5; needs bounds.")] = None
    histogram: Annotated[
        Named, typer.Option("--histogram", help="The records per category or bin of a column; needs one of them.")
    ] = None
    contingency: Annotated[
        Named, typer.Option("--contingency", help="The contingency table of columns, such as sex,smoker.")
    ] = None
    regression: Annotated[
        Named, typer.Option("--regression", help="A linear model, such as cost=age,bmi; needs the bounds of all.")
    ] = None
    records_per_person: Annotated[
        int | None,
        typer.Option("--records-per-person", help="How many people have 1, 2, … up to so many records, or more."),
    ] = None
    by: Annotated[str | None, typer.Option("--by", help="Columns to group by, such as ward,sex.")] = None

    def as_arguments(self) -> dict[str, Any]:
        """Return the arguments of ``shoal.query``."""
        return {
            "count": self.count,
            "persons": self.persons,
            "sum": self.sum or [],
            "mean": self.mean or [],
            "quantile": _mapped(self.quantile, "quantile", "age=0.25,0.5", lambda text: [*map(_share, names_in(text))]),
            "histogram": self.histogram or [],
            "table": [names_in(names) for names in self.contingency or []],
            "regression": _mapped(self.regression, "regression", "cost=age,bmi", names_in),
            "records_per_person": self.records_per_person,
            "by": names_in(self.by),
        }


@dataclass(frozen=True)
class KnownValues:
    """Options that say what is publicly known about columns and people; nothing of it is read from the data."""

    bounds: Annotated[Named, typer.Option("--bounds", help="Lowest and highest value, such as age=0:120.")] = None
    categories: Annotated[Named, typer.Option("--categories", help="The values, such as ward=A,B,C.")] = None
    bins: Annotated[
        Named, typer.Option("--bins", help="Edges of bins, such as age=0,18,65,120, or their number: age=12.")
    ] = None
    entity: Annotated[str | None, typer.Option("--entity", help="The column that identifies people.")] = None
    contributions: Annotated[
        int, typer.Option("--contributions", help="How many records of one person count at most.")
    ] = 1

    def as_arguments(self) -> dict[str, Any]:
        """Return the arguments of ``shoal.query`` and ``shoal.synthesize``."""
        return {
            "bounds": _mapped(self.bounds, "bounds", "age=0:120", lambda text: text.split(":")),
            "categories": _mapped(self.categories, "categories", "ward=A,B", names_in),
            "bins": _mapped(self.bins, "bins", "age=0,18,65,120", _bins),
            "entity": self.entity,
            "contributions": self.contributions,
        }


@dataclass(frozen=True)
class Spending:
    """Options that say what may be spent, and which file adds it up."""

    budget: Annotated[
        str, typer.Option(help="What may be spent: epsilon=1, epsilon=1,delta=1e-8 or rho=0.5.", show_default=False)
    ]
    ledger: Annotated[
        Path | None, typer.Option(help="The file that adds up what all queries have spent.", show_default=False)
    ] = None
    total: Annotated[
        str | None, typer.Option(help="The total budget of the table, when its ledger is created.", show_default=False)
    ] = None
    plan: Annotated[bool, typer.Option("--plan", help="Show how exact it will be; nothing is spent.")] = False
    confidence: Annotated[float, typer.Option(help="The probability that an interval contains its noise.")] = 0.95
    policy: Annotated[
        Path | None,
        typer.Option("-p", "--policy", help="A policy, for missing values, marks and categories.", show_default=False),
    ] = None

    def as_arguments(self) -> dict[str, Any]:
        """Return the arguments of ``shoal.query`` and ``shoal.synthesize``; require a ledger unless only planning."""
        with loading():
            from shoal.policy import Policy
            from shoal.results.dp.ledger import Ledger

        if self.ledger is None and not self.plan:
            raise PolicyError(
                "a ledger is needed: without one, nobody adds up what repeated queries reveal",
                "name a file (--ledger), and the total budget of the table when it is new (--total)",
            )
        return {
            "budget": self.budget,
            "ledger": None if self.ledger is None else Ledger(self.ledger, self.total),
            "confidence": self.confidence,
            "policy": None if self.policy is None else Policy.load(self.policy),
        }


@with_options
def query(
    data: Rows,
    *,
    spending: Spending,
    csv: Annotated[bool, typer.Option("--csv", help="Print the answers as CSV.")] = False,
    questions: Questions,
    granularity: Annotated[
        Named, typer.Option("--granularity", help="The unit in which values are added up, such as cost=0.01.")
    ] = None,
    people: Annotated[int | None, typer.Option("--people", help="The public number of people, to check delta.")] = None,
    known: KnownValues,
    reading: Reading,
    printing: Printing,
) -> None:
    """Answer counts, sums, means, quantiles and models with differential privacy, within a budget."""
    with loading():
        from shoal.cli.terminal.queries import show_noisy_answers, show_plan
        from shoal.results.dp.query import plan_query
        from shoal.results.dp.query import query as run

    arguments = spending.as_arguments() | questions.as_arguments() | known.as_arguments() | {"people": people}
    arguments["granularity"] = _mapped(granularity, "granularity", "cost=0.01", str)
    rows = _opened(reading, data)
    if spending.plan:
        plan = plan_query(rows, **arguments)
        printing.show(plan.as_dict, lambda: show_plan(plan))
        return
    answers = run(rows, **arguments)
    if csv and not printing.json:
        print(answers.as_csv(), end="")
    else:
        printing.show(answers.as_dict, lambda: show_noisy_answers(answers))


@with_options
def synthesize(
    data: Rows,
    *,
    spending: Spending,
    columns: Annotated[
        str, typer.Option(help="The columns of the synthetic table, such as age,ward,sex.", show_default=False)
    ],
    pair: Annotated[
        Named,
        typer.Option("--pair", help="A pair of columns to count, such as age,ward; by default a tree is chosen."),
    ] = None,
    n_rows: Annotated[
        int | None, typer.Option("--rows", help="How many rows to draw; by default about as many as there are records.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Repeats how rows are drawn from the noisy counts; never the noise.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the synthetic table to this file: CSV or Parquet.")
    ] = None,
    known: KnownValues,
    reading: Reading,
    printing: Printing,
    force: Force = False,
) -> None:
    """Make a synthetic table with differential privacy, from noisy counts of columns and of pairs of columns."""
    with loading():
        from shoal.cli.terminal.queries import show_plan, show_synthetic
        from shoal.engines.formats.table_files import check_target
        from shoal.release import refuse_to_overwrite
        from shoal.results.dp.synthesis import plan_synthesis
        from shoal.results.dp.synthesis import synthesize as run

    arguments = spending.as_arguments() | known.as_arguments() | {"columns": names_in(columns)}
    arguments["pairs"] = None if pair is None else [names_in(names) for names in pair]
    if spending.plan:
        plan = plan_synthesis(_opened(reading, data), **arguments)
        printing.show(plan.as_dict, lambda: show_plan(plan))
        return
    if out is None:
        raise PolicyError("where should the synthetic table be written?", "name a file", option="-o")
    check_different({"the synthetic table": out, "the ledger": spending.ledger, "the data": data})
    refuse_to_overwrite(data, out)
    check_target(out, force)  # before anything is spent
    synthetic = run(_opened(reading, data), rows=n_rows, seed=seed, **arguments)
    synthetic.save(out, force=force)
    exits.written.append(str(out))
    printing.show(lambda: synthetic.as_dict() | {"written": str(out)}, lambda: show_synthetic(synthetic, str(out)))


def _opened(reading: Reading, data: str) -> Any:
    """Open the rows; a file without any is answered too, since a refusal would reveal that nobody is in it."""
    try:
        return reading.opened(data)
    except EmptyTableError as error:
        return error.columns


def _mapped(texts: Named, option: str, example: str, read: Callable[[str], Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for pair in texts or []:
        name, mark, text = pair.partition("=")
        if not mark or not name or not text:
            raise PolicyError(f"--{option} needs a column and a value, such as {example}")
        if name in values:
            raise PolicyError(f"--{option} names {name!r} twice")
        values[name] = read(text)
    return values


def _share(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise PolicyError("quantiles must be numbers between 0 and 1, such as age=0.25,0.5") from None


def _bins(text: str) -> int | list[str]:
    return int(text) if text.isdecimal() else text.split(",")
