"""Proposals on a terminal: the roles of columns, and the levels of a hierarchy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from shoal.cli.columns import Columns, console, text
from shoal.columns.uniqueness import Separation
from shoal.propose.inspection import Inspection
from shoal.propose.preview import Preview
from shoal.text.figures import format_count, format_number, format_share


def show_inspection(found: Inspection, notes: Sequence[str], output: Path | None) -> None:
    """Show the decisions to make first, the columns with their suggested roles, then how unique records are."""
    persons = f"; {found.entity!r} identifies people, and some have several records" if found.entity else ""
    console.print(text(f"{format_number(found.records)} records{persons}", style="bold"))
    if found.decisions:
        console.print(text("Decide first:"))
        for decision in found.decisions[:3]:
            console.print(text(f"  {decision.sentence}"))
        console.print(text("  Use --known a,b or --sensitive x,y, or edit the policy.\n"))
    table = Columns("column", "kind", "distinct", "nulls", "role", "sure", "why", texts=(0, 1, 4, 5, 6))
    for column in found.columns:
        table.add(
            column.name,
            column.kind,
            format_number(column.distinct),
            format_number(column.nulls),
            column.role,
            column.sure,
            column.why,
        )
    table.show(console)
    console.print()
    sets = Columns("unique by", "unique records", "share", "distinct", "separation")
    for size in (1, 2, 3):
        for separation in found.strongest(size, 3):
            _separation_row(sets, separation)
    sets.show(console)
    for sentence in found.keeping.sentences if found.keeping else ():
        console.print(text(sentence))
    for note in notes:
        console.print(text(f"Note: {note}", style="yellow"))
    if output is not None:
        console.print(text(f"\nPolicy written to {output}: review it, edit it, then run"))
        console.print(text(f"  shoal anonymize DATA -p {output} -o release.csv"))
    else:
        console.print(text("\nAdd -o policy.toml to write a policy that you can edit and run."))


def _separation_row(table: Columns, separation: Separation) -> None:
    table.add(
        ", ".join(separation.columns),
        format_number(separation.unique),
        format_share(separation.unique, separation.records),
        format_share(separation.distinct, separation.records),
        format_share(separation.separation_ratio, 1),
    )


def show_hierarchy(found: Preview, most: int, saved: Path | None) -> None:
    """Show the levels of a hierarchy with their labels, and the policy line that names it."""
    values = f"{format_count(len(found.hierarchy.leaves), 'value')} in {format_count(found.records, 'record')}"
    nulls = f", {format_number(found.missing)} without a value" if found.missing else ""
    console.print(text(f"{found.column}: {values}{nulls}", style="bold"))
    if found.told:
        console.print(text(f"Read as {found.told}."))
    table = Columns("level", "labels", "fewest records", "labels with their records", texts=(3,))
    for level in found.levels:
        pairs = [(label, n) for label, n in zip(level.labels, level.records, strict=True) if n]
        shown = ", ".join(f"{label} ({format_number(n)})" for label, n in pairs[:most])
        more = f", and {format_number(len(pairs) - most)} more" if len(pairs) > most else ""
        table.add(str(level.number), format_number(len(level.labels)), format_number(level.smallest), shown + more)
    table.show(console)
    console.print(text("\nIn a policy:"))
    console.print(text(f"  {found.policy_line(None if saved is None else saved.name)}"))
