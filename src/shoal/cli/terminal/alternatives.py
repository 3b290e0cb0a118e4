"""Other requirements and algorithms on a terminal, a line each."""

from __future__ import annotations

from shoal.alternatives.compare import Comparison, Entry
from shoal.alternatives.frontier import Frontier
from shoal.alternatives.recommend import Exploration
from shoal.cli.columns import Columns, console, show_grid, text
from shoal.report.rows import comparison_grid, comparison_remarks, frontier_grid, frontier_remarks, solved_entries
from shoal.text.figures import format_count, format_number


def show_frontier(frontier: Frontier, policy_point: int | None = None) -> None:
    """Show one line per release with its parameters and cost; ``policy_point`` is the number of the policy's own."""
    show_grid(frontier_grid(frontier, policy_point), narrow=True)
    for remark in frontier_remarks(frontier, policy_point):
        console.print(text(remark, style="yellow" if remark.startswith("Not released") else ""))


def show_exploration(exploration: Exploration) -> None:
    """Show the points, then the recommendations for the tolerable risk."""
    show_frontier(exploration.frontier, exploration.own)
    console.print()
    for recommendation in exploration.recommendations:
        console.print(text(recommendation.sentence))
    console.print(text("These are recommendations; the publisher decides.", style="dim"))


_PURPOSES = {
    "tables": "For tables, the same labels in the whole column (single_dimensional):",
    "analysis": "For analysis, each class separately (local):",
    None: "",
}


def show_comparison(comparison: Comparison, *, verbose: bool = False) -> None:
    """Show the two purposes first, then the cost of each algorithm; ``verbose`` adds its loss in every measure."""
    entries = solved_entries(comparison)
    for entry in comparison.purposes:
        if entry.outcome == "found":
            console.print(text(f"{_PURPOSES[entry.purpose]} {_cost(entry, comparison.objective)}", style="bold"))
    if any(entry.outcome == "found" for entry in comparison.purposes):
        console.print()
    if entries:
        show_grid(comparison_grid(comparison))
    size = format_count(comparison.records, "record")
    console.print(text(f"{size}; the smallest {comparison.objective} first."))
    if entries and verbose:
        console.print()
        losses = Columns("algorithm", *entries[0].loss)
        for entry in entries:
            losses.add(entry.algorithm, *(compact(value) for value in entry.loss.values()))
        losses.show(console)
        for entry in entries:
            if entry.claim:
                console.print(text(f"{entry.algorithm} proved: {entry.claim}."))
    for remark in comparison_remarks(comparison):
        console.print(text(remark, style="yellow"))


def _cost(entry: Entry, objective: str) -> str:
    suppressed = f", {format_count(entry.suppressed, 'record')} suppressed" if entry.suppressed else ""
    classes = format_count(entry.classes or 0, "class")
    return f"{objective} {format_number(entry.loss[objective])} in {classes}{suppressed}."


def compact(value: float) -> str:
    """Format with three digits and a letter for the power of a thousand."""
    for power, letter in ((12, "T"), (9, "G"), (6, "M"), (3, "k")):
        if 10**power <= abs(value) < 10 ** (power + 3):
            return f"{value / 10**power:.3g} {letter}"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.3g}"
