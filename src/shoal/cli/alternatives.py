"""``shoal explore``, ``shoal compare`` and ``anonymize --frontier``: possible releases, none of which is written."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli import exits
from shoal.cli.options import Force, PolicyFile, Printing, Reading, Rows, Verbose, with_options
from shoal.cli.signals import loading
from shoal.cli.targets import check_plot_target

if TYPE_CHECKING:
    from shoal.engines.base import Engine
    from shoal.policy import Policy


@with_options
def explore(
    data: Rows,
    policy: PolicyFile,
    *,
    sweep: Annotated[
        list[str] | None,
        typer.Option(help="Values to solve for, such as k=2,3,5,10; may be repeated. By default, around the policy."),
    ] = None,
    sensitivity: Annotated[
        str | None, typer.Option(help="Sensitivity of the data: low, medium or high; by default all three.")
    ] = None,
    tolerable: Annotated[
        float | None, typer.Option(help="The tolerable risk, such as 0.1, instead of a sensitivity.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw loss against risk, as an .svg file.")] = None,
    reading: Reading,
    printing: Printing,
    force: Force = False,
) -> None:
    """Solve a policy for several k, ℓ, t and shares of suppression, and recommend one. Writes no release."""
    with loading():
        from shoal.alternatives.frontier import parameters
        from shoal.alternatives.recommend import explore as run
        from shoal.cli.terminal.alternatives import show_exploration
        from shoal.policy import Policy

    loaded_policy = Policy.load(policy)
    check_plot_target(plot, force, [Path(data), policy, *loaded_policy.files])
    rows = reading.opened(data)
    swept = parameters(sweep) if sweep else None
    with printing.progress() as progress:
        exploration = run(
            rows, loaded_policy, swept=swept, sensitivity=sensitivity, tolerable=tolerable, progress=progress
        )
    if plot is not None:
        exploration.chart().save(plot, force=force)
        exits.written.append(str(plot))
    printing.show(exploration.as_dict, lambda: show_exploration(exploration))
    _exit_unless_found(point.state for point in exploration.frontier)


@with_options
def compare(
    data: Rows,
    policy: PolicyFile,
    *,
    algorithms: Annotated[
        str | None,
        typer.Option(
            help="The algorithms, as in optimal,mondrian,datafly; by default all but exhaustive and mingen, which "
            "visit every node.",
            show_default=False,
        ),
    ] = None,
    utility: Annotated[
        bool, typer.Option("--utility", help="Apply every solution and run a thousand random counting queries on it.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the loss and the time of each algorithm, as an .svg file.")
    ] = None,
    reading: Reading,
    printing: Printing,
    verbose: Verbose = False,
    force: Force = False,
) -> None:
    """Run several algorithms on the same table and policy and compare them. Writes no release."""
    with loading():
        from shoal.alternatives.compare import compare as run
        from shoal.cli.terminal.alternatives import show_comparison
        from shoal.policy import Policy

    loaded_policy = Policy.load(policy)
    check_plot_target(plot, force, [Path(data), policy, *loaded_policy.files])
    names = [name.strip() for name in algorithms.split(",")] if algorithms else []
    rows = reading.opened(data)
    with printing.progress() as progress:
        comparison = run(rows, loaded_policy, algorithms=names, utility=utility, progress=progress)
    if plot is not None:
        comparison.chart().save(plot, force=force)
        exits.written.append(str(plot))
    printing.show(comparison.as_dict, lambda: show_comparison(comparison, verbose=verbose))
    _exit_unless_found(entry.outcome for entry in comparison)


def solve_frontier(rows: "Engine", policy: "Policy", swept: list[str], printing: Printing) -> None:
    """Solve for every combination of the values, and show the cost of each release."""
    with loading():
        from shoal.alternatives.frontier import frontier as run
        from shoal.alternatives.frontier import parameters
        from shoal.cli.terminal.alternatives import show_frontier

    with printing.progress() as progress:
        points = run(rows, policy, **parameters(swept), progress=progress)
    printing.show(points.as_dict, lambda: show_frontier(points))
    _exit_unless_found(point.state for point in points)


def _exit_unless_found(states: Iterable[str]) -> None:
    """Exit with 1 if no release was found, with 2 if it cannot be determined whether the one found holds."""
    distinct_states = set(states)
    if "found" not in distinct_states:
        raise typer.Exit(2 if "cannot be told" in distinct_states else 1)
