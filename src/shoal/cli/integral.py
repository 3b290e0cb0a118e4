"""``shoal integral``: a result that many different databases generate; the exit code is the verdict."""

from typing import Annotated

import typer

from shoal.cli import exits
from shoal.cli.options import Printing, Reading, Rows, names_in, numbers_in, with_options
from shoal.cli.signals import loading


@with_options
def integral(
    data: Rows,
    statistic: Annotated[
        str,
        typer.Argument(
            help="mean, median, sum, variance, count, regression or tree (a decision tree).", show_default=False
        ),
    ],
    column: Annotated[
        str | None, typer.Argument(help="The column that it is computed from; count needs none.", show_default=False)
    ] = None,
    *,
    step: Annotated[
        str,
        typer.Option(
            help="Round results to multiples of this; of a regression, one step or one per coefficient, "
            "intercept first; of a tree, cut numbers at them.",
            show_default=False,
        ),
    ],
    on: Annotated[
        str | None, typer.Option(help="The columns that explain it, as in age,sex, for regression and tree.")
    ] = None,
    by: Annotated[str | None, typer.Option(help="Compute it for each value of this column.")] = None,
    entity: Annotated[str | None, typer.Option(help="The column that identifies persons.")] = None,
    k: Annotated[int, typer.Option("-k", help="The fewest databases that must generate a result.")] = 50,
    subsets: Annotated[int, typer.Option(help="How many subsets to draw; all of them if there are fewer.")] = 1000,
    share: Annotated[float, typer.Option(help="The probability that a person is in a subset.")] = 0.5,
    max_share: Annotated[
        float, typer.Option(help="The largest share of the generators that one person may be in, or left out of.")
    ] = 0.8,
    depth: Annotated[int, typer.Option(help="The depth of a tree.")] = 3,
    seed: Annotated[int, typer.Option(help="The seed of the draws.")] = 0,
    after: Annotated[
        str | None, typer.Option(help="The table after rows were added or removed: what do both results tell?")
    ] = None,
    reading: Reading,
    printing: Printing,
) -> None:
    """Find a result that many different databases generate: exit 0 if one may be published, 1 if none may."""
    with loading():
        from shoal.cli.terminal.integral import show_integral
        from shoal.results.integral.recurrence import integral_privacy

    rows = reading.opened(data)
    results = integral_privacy(
        rows,
        statistic,
        column,
        step=numbers_in(step),
        on=names_in(on),
        by=by,
        entity=entity,
        k=k,
        subsets=subsets,
        share=share,
        max_share=max_share,
        depth=depth,
        seed=seed,
        after=None if after is None else reading.opened_beside(after, rows),
    )
    printing.show(lambda: [result.as_dict() for result in results], lambda: show_integral(results))
    raise typer.Exit(exits.OUTCOMES["holds" if all(result.holds for result in results) else "fails"])
