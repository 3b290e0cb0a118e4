"""``shoal output``: check a table of results before it leaves; the exit code is the verdict."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli import exits
from shoal.cli.options import Force, Printing, Reading, Rows, names_in, numbers_in, with_options
from shoal.cli.signals import loading
from shoal.cli.targets import check_different
from shoal.errors import PolicyError

if TYPE_CHECKING:
    from rich.console import Console

    from shoal.results.output.checked import OutputCheck
    from shoal.results.output.regressing import RegressionCheck


@dataclass(frozen=True)
class Tabulation:
    """What is computed, by which groups, from which records."""

    by: Annotated[
        str | None, typer.Option(help="Columns to group by, as in region,sex; 'region > town' nests towns in regions.")
    ] = None
    value: Annotated[str | None, typer.Option(help="The column of numbers for sums, means and quantiles.")] = None
    statistics: Annotated[
        str, typer.Option(help="What is shown of each group: count, sum, mean, median, percentiles such as p90.")
    ] = "count"
    on: Annotated[
        str | None,
        typer.Option(
            help="Instead of statistics: columns on which the value is regressed in each group, as in age,sex."
        ),
    ] = None
    categories: Annotated[
        str | None, typer.Option(help="Of these, columns of numbers with a coefficient for each category.")
    ] = None
    where: Annotated[
        list[str] | None, typer.Option(help="Only records with, as in 'age >= 18' or 'town in A,B'; may be repeated.")
    ] = None
    bands: Annotated[
        list[str] | None, typer.Option(help="Group a column of numbers, as in age=18,65; may be repeated.")
    ] = None
    entity: Annotated[
        str | None, typer.Option(help="The column that identifies persons; by default each record is a person.")
    ] = None
    sensitive: Annotated[
        str | None,
        typer.Option(help="Columns to group by where everybody in one group is a disclosure; by default all."),
    ] = None

    def shared_arguments(self) -> dict[str, Any]:
        """Return what tables and regressions have in common."""
        return {
            "by": names_in(self.by),
            "value": self.value,
            "where": self.where or (),
            "bands": dict(map(_bands, self.bands or ())),
            "entity": self.entity,
        }

    def cell_arguments(self) -> dict[str, Any]:
        """Return what only tables have."""
        sensitive = None if self.sensitive is None else names_in(self.sensitive)
        return {"statistics": names_in(self.statistics), "sensitive": sensitive}

    def model_arguments(self) -> dict[str, Any]:
        """Return what only regressions have."""
        if self.value is None:
            raise PolicyError("a regression needs a value column", "pass it", option="--value")
        return {"on": names_in(self.on), "categories": names_in(self.categories)}


@dataclass(frozen=True)
class SafetyRules:
    """What is safe to publish."""

    min_count: Annotated[int, typer.Option(help="The least number of persons in a published cell.")] = 10
    dominance: Annotated[
        str, typer.Option(help="n,k: n contributors must not have more than k % of a total; or off.")
    ] = "2,90"
    p: Annotated[float, typer.Option("--p", help="No contributor may estimate another to within p %; 0 for off.")] = (
        10.0
    )
    zeros: Annotated[str, typer.Option(help="Whether cells without records are published: show or hide.")] = "show"
    protection: Annotated[
        float, typer.Option(help="Percent of a hidden sum by which it may be larger or smaller for all anybody knows.")
    ] = 10.0
    degrees: Annotated[int, typer.Option(help="The least residual degrees of freedom of a regression.")] = 10
    leverage: Annotated[
        float, typer.Option(help="The largest share of a person's own values in what a regression says about them.")
    ] = 0.5
    time_limit: Annotated[
        float, typer.Option(help="Seconds after which nothing more is tried to hide fewer cells.")
    ] = 60.0

    def shared_arguments(self) -> dict[str, Any]:
        """Return the rules that tables and regressions have in common."""
        return {
            "min_count": self.min_count,
            "dominance": _dominance(self.dominance),
            "p": self.p or None,
            "protection": self.protection,
        }

    def cell_arguments(self) -> dict[str, Any]:
        """Return the rules that only tables have."""
        return {"zeros": self.zeros, "time_limit": self.time_limit}

    def model_arguments(self) -> dict[str, Any]:
        """Return the rules that only regressions have."""
        return {"degrees": self.degrees, "leverage": self.leverage}


@with_options
def output(
    data: Rows,
    *,
    tabulation: Tabulation,
    rules: SafetyRules,
    ledger: Annotated[
        Path | None,
        typer.Option(
            help="The ledger of tables released before, with which this one is judged and where it is entered."
        ),
    ] = None,
    total: Annotated[str, typer.Option(help="The name of totals in the table.")] = "Total",
    out: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the safe table to this file: CSV or Parquet.")
    ] = None,
    reading: Reading,
    printing: Printing,
    force: Force = False,
) -> None:
    """Check counts, sums, means, quantiles or regressions by group before they are published; hide what is unsafe.

    Exit 0 if the table is safe, or with -o if a safe one was written; 1 if it is not; 2 if it cannot be determined.
    """
    with loading():
        from shoal.engines.formats.table_files import check_target
        from shoal.release import refuse_to_overwrite
        from shoal.results.output.checking import check_output
        from shoal.results.output.regressing import check_regression

    if out is not None:
        check_different({"the table": out, "the ledger": ledger, "the data": data})
        refuse_to_overwrite(data, out)
        check_target(out, force)
    rows = reading.opened(data)
    shared = {**tabulation.shared_arguments(), **rules.shared_arguments(), "ledger": ledger}
    checked: OutputCheck | RegressionCheck
    with printing.progress() as progress:
        if tabulation.on is not None:
            models = {**tabulation.model_arguments(), **rules.model_arguments()}
            checked = check_regression(rows, progress=progress, **shared, **models)
        else:
            cells = {**tabulation.cell_arguments(), **rules.cell_arguments(), "total": total}
            checked = check_output(rows, progress=progress, **shared, **cells)
    released = out is not None and checked.safe and not checked.missing
    if released and out is not None:
        checked.save(out, force=force)
        exits.written.append(str(out))
    printing.show(
        lambda: checked.as_dict() | {"written": str(out) if released else None}, lambda: _show(checked, out, released)
    )
    raise typer.Exit(0 if released else exits.OUTCOMES[checked.outcome])


def _bands(text: str) -> tuple[str, list[float]]:
    name, sign, cuts = text.partition("=")
    if not sign:
        raise PolicyError("bands are a column and the limits between groups", "as in --bands age=18,65")
    return name.strip(), numbers_in(cuts)


def _dominance(text: str) -> tuple[int, float] | None:
    if text == "off":
        return None
    numbers = numbers_in(text)
    if len(numbers) != 2 or numbers[0] != int(numbers[0]):
        raise PolicyError("dominance is n,k such as 2,90, or off")
    return int(numbers[0]), numbers[1]


def _show(checked: "OutputCheck | RegressionCheck", out: Path | None, released: bool) -> None:
    """Show the verdict, and what is hidden without its figures."""
    from rich.console import Console

    from shoal.cli.columns import text
    from shoal.results.output.checked import OutputCheck

    console = Console(highlight=False)
    if isinstance(checked, OutputCheck):
        _show_cells(checked, console)
    else:
        _show_models(checked, console)
    if checked.earlier:
        console.print(text(f"Judged together with {len(checked.earlier)} tables released before."))
    style = {"holds": "bold green", "fails": "bold red", "unknown": "bold yellow"}[checked.outcome]
    console.print(text(f"{checked.sentence}.", style=style))
    if released:
        console.print(text(f"Written: {out}" + ("" if checked.ledger is None else f"; entered into {checked.ledger}")))
    elif out is not None:
        console.print(text("Nothing was written.", style="bold red"))


def _show_models(checked: "RegressionCheck", console: "Console") -> None:
    """Show the hidden regressions and why."""
    from shoal.cli.columns import Columns

    hidden = [model for model in checked.models if model.hidden]
    if hidden:
        table = Columns(*(checked.request.names or ["regression"]), "hidden because of", texts=(0,))
        for model in hidden[:50]:
            labels = ["(missing)" if label is None else label for label in model.labels] or ["all"]
            table.add(*labels, ", ".join(model.failed_rules) or "the others")
        table.show(console)


def _show_cells(checked: "OutputCheck", console: "Console") -> None:
    """Show the hidden cells, and what an intruder can tell of each."""
    from shoal.cli.columns import Columns, text

    hidden = [cell for cell in checked.cells if cell.hidden] if checked.safe else []
    if hidden:
        table = Columns(*(checked.request.names or ["cell"]), "hidden because of", "an intruder can tell", texts=(0,))
        for cell in hidden[:50]:
            labels = ["(missing)" if label is None else label for label in cell.group(checked.total)] or [checked.total]
            table.add(*labels, ", ".join(cell.failed_rules) or "the others", checked.range_of(cell))
        table.show(console)
        if len(hidden) > 50:
            console.print(text(f"… and {len(hidden) - 50} more; --json lists all"))
        if not checked.proved:
            console.print(text("Hiding fewer cells may be enough: that this choice is the cheapest is not proved."))
