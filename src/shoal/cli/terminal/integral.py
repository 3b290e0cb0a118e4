"""Results of ``shoal integral`` on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.cli.columns import Columns, console, text
from shoal.results.integral.recurrence import IntegralResult
from shoal.text.figures import format_count, format_number


def show_integral(results: Sequence[IntegralResult]) -> None:
    """Show the results that recur most, the one to publish, and what a change reveals."""
    for result in results:
        of_group = "" if result.group is None else f", group {result.group}"
        drawn = "all" if result.exhaustive else "drawn"
        console.print(
            text(
                f"{result.asked}{of_group}: {format_count(result.persons, 'person')}, "
                f"{format_count(result.subsets, 'subset')} ({drawn})",
                style="bold",
            )
        )
        table = Columns("result", "generators", "largest share", "smallest share", "Jaccard", "")
        for recurrence in result.recurrences[:5]:
            overlap = recurrence.overlap
            table.add(
                str(recurrence.value),
                format_number(recurrence.generators),
                format_number(overlap.largest_share),
                format_number(overlap.smallest_share),
                format_number(overlap.jaccard),
                "may be published" if recurrence.qualifies else recurrence.reason,
            )
        table.show(console)
        if result.published is None:
            console.print(text("No result may be published: use a larger step, or more subsets.", style="bold red"))
        else:
            lost = ", ".join(f"{name.replace('_', ' ')} {format_number(value)}" for name, value in result.loss.items())
            console.print(text(f"Publish: {result.published}", style="bold green"))
            console.print(text(f"For the owner only: {lost}."))
        if result.change is not None:
            change = result.change
            sentence = "hidden" if change.hidden else "NOT hidden"
            sentence += f" (for the owner: {change.added_records} records added, {change.removed_records} removed)"
            console.print(
                text(
                    f"Change from {change.before} to {change.after}: {sentence}; a person was added with probability "
                    f"up to {format_number(change.added)}, removed with up to {format_number(change.removed)} "
                    f"({format_number(change.by_chance)} by chance)."
                )
            )
