"""Proposals on a terminal: the roles of columns, and the levels of a hierarchy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from shoal.cli.columns import Columns, console, text
from shoal.inspection.inspection import InspectedColumn, Inspection
from shoal.inspection.preview import Preview
from shoal.inspection.uniqueness import Separation
from shoal.policy.column import Role
from shoal.text.figures import format_count, format_number, format_share

HEADINGS: dict[Role, str] = {
    "quasi": "quasi: an outsider may know them; generalized",
    "sensitive": "sensitive: nobody should learn them",
    "identifier": "identifier: removed",
    "plain": "plain: published as they are",
}
NARROW = 60  # characters of a line, however narrow the terminal is
WIDE = 24  # columns of one role from which only those with something to say have a line of their own


def show_inspection(inspection: Inspection, notes: Sequence[str], output: Path | None) -> None:
    """Show the decisions to make first, the columns by their suggested roles, then how unique records are."""
    persons = f"; {inspection.entity!r} identifies people, and some have several records" if inspection.entity else ""
    counts = ", ".join(f"{len(names)} {role}" for role in HEADINGS if (names := inspection.having(role)))
    console.print(text(f"{format_count(inspection.records, 'record')}, {counts}{persons}", style="bold"))
    if inspection.decisions:
        console.print(text("Decide first (with --known a,b or --sensitive x,y or --plain z, or in the policy):"))
        for decision in inspection.decisions[:3]:
            console.print(text(f"  {decision.sentence}"))
    for role, heading in HEADINGS.items():
        if inspection.having(role):
            _show_role(inspection, role, heading)
    console.print()
    sets = Columns("unique by", "unique records", "share", "distinct", "separation")
    for size in (1, 2, 3):
        for separation in inspection.strongest(size, 1):
            _separation_row(sets, separation)
    sets.show(console)
    for sentence in inspection.keeping.sentences if inspection.keeping else ():
        console.print(text(sentence))
    for note in notes:
        console.print(text(f"Note: {note}", style="yellow"))
    if output is not None:
        console.print(text(f"\nPolicy written to {output}: review it, edit it, then run"))
        console.print(text(f"  shoal anonymize DATA -p {output} -o release.csv"))
    else:
        console.print(text("\nAdd -o policy.toml to write a policy that you can edit and run."))


def _show_role(inspection: Inspection, role: Role, heading: str) -> None:
    """Show a line for each column of a role; a group of one kind is one line, and so is the rest of a wide table."""
    console.print(text(f"\n{heading}", style="bold"))
    groups = [names for names in inspection.batteries if set(names) <= set(inspection.having(role))]
    grouped = {name for names in groups for name in names}
    columns = [column for column in inspection.columns if column.role == role and column.name not in grouped]
    reasons: dict[str, list[InspectedColumn]] = {}
    for column in columns[:WIDE]:
        reasons.setdefault(column.why + (" (unsure)" if column.sure == "unsure" else ""), []).append(column)
    for reason, alike in reasons.items():
        if len(alike) == 1:
            _show_line(f"{_contents(alike[0])}: {reason}")
            continue
        _show_line(f"{reason}:")
        for column in alike:
            _show_line(f"  {_contents(column)}")
    if len(columns) > WIDE:
        rest = columns[WIDE:]
        console.print(text(f"  and {format_count(len(rest), 'column')} more: {rest[0].name} … {rest[-1].name}"))
    for names in groups:
        console.print(text(f"  {names[0]} … {names[-1]}: {len(names)} columns of one kind, one decision (unsure)"))


def _contents(column: InspectedColumn) -> str:
    nulls = f", {format_count(column.nulls, 'null')}" if column.nulls else ""
    return f"{column.name:<16} {format_count(column.distinct, 'value')}{nulls}"


def _show_line(line: str) -> None:
    """Show one line, shortened to the width of the terminal."""
    width = max(NARROW, console.width - 1) - 2
    console.print(text(f"  {line if len(line) <= width else line[: width - 1] + '…'}"))


def _separation_row(table: Columns, separation: Separation) -> None:
    table.add(
        ", ".join(separation.columns),
        format_number(separation.unique),
        format_share(separation.unique, separation.records),
        format_share(separation.distinct, separation.records),
        format_share(separation.separation_ratio, 1),
    )


def show_hierarchy(preview: Preview, max_labels: int, saved: Path | None) -> None:
    """Show the levels of a hierarchy with their labels, and the policy line that names it."""
    values = f"{format_count(len(preview.hierarchy.leaves), 'value')} in {format_count(preview.records, 'record')}"
    nulls = f", {format_number(preview.missing)} without a value" if preview.missing else ""
    console.print(text(f"{preview.column}: {values}{nulls}", style="bold"))
    if preview.told:
        console.print(text(f"Read as {preview.told}."))
    table = Columns("level", "labels", "fewest records", "labels with their records", texts=(3,))
    for level in preview.levels:
        pairs = [(label, n) for label, n in zip(level.labels, level.records, strict=True) if n]
        labels = ", ".join(f"{label} ({format_number(n)})" for label, n in pairs[:max_labels])
        rest = f", and {format_number(len(pairs) - max_labels)} more" if len(pairs) > max_labels else ""
        table.add(str(level.number), format_number(len(level.labels)), format_number(level.smallest), labels + rest)
    table.show(console)
    console.print(text("\nIn a policy:"))
    console.print(text(f"  {preview.policy_line(None if saved is None else saved.name)}"))
