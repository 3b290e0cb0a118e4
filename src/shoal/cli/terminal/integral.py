"""Results of ``shoal integral`` on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.cli.columns import Columns, console, text
from shoal.results.integral.recurrence import IntegralResult
from shoal.text.figures import format_count, format_number


def show_integral(found: Sequence[IntegralResult]) -> None:
    """Show the results that recur most, the one to publish, and what a change tells."""
    for each in found:
        of_group = "" if each.group is None else f", group {each.group}"
        drawn = "all" if each.exhaustive else "drawn"
        console.print(
            text(
                f"{each.asked}{of_group}: {format_count(each.persons, 'person')}, "
                f"{format_count(each.subsets, 'subset')} ({drawn})",
                style="bold",
            )
        )
        table = Columns("result", "generators", "largest share", "smallest share", "Jaccard", "")
        for one in each.recurrences[:5]:
            overlap = one.overlap
            table.add(
                str(one.value),
                format_number(one.generators),
                format_number(overlap.largest_share),
                format_number(overlap.smallest_share),
                format_number(overlap.jaccard),
                "may be published" if one.qualifies else one.reason,
            )
        table.show(console)
        if each.published is None:
            console.print(text("No result may be published: use a larger step, or more subsets.", style="bold red"))
        else:
            lost = ", ".join(f"{name.replace('_', ' ')} {format_number(value)}" for name, value in each.loss.items())
            console.print(text(f"Publish: {each.published}", style="bold green"))
            console.print(text(f"For the owner only: {lost}."))
        if each.change is not None:
            change = each.change
            told = "hidden" if change.hidden else "NOT hidden"
            told += f" (for the owner: {change.added_records} records added, {change.removed_records} removed)"
            console.print(
                text(
                    f"Change from {change.before} to {change.after}: {told}; a person was added with probability up "
                    f"to {format_number(change.added)}, removed with up to {format_number(change.removed)} "
                    f"({format_number(change.by_chance)} by chance)."
                )
            )
