"""Results on a terminal: aligned tables, colour only where there is a terminal, numbers with units."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from shoal.attacks.linkage import Linkage
from shoal.attacks.risk import Attacks
from shoal.certified import Verification
from shoal.comparison import Comparison
from shoal.demo.run import CERTIFICATE, POLICY_FILE, RELEASE, REPORT, Demo
from shoal.engines.base import Query
from shoal.exploration import Exploration
from shoal.inspect import Inspection, Separation
from shoal.models.measured import MeasuredLimit
from shoal.release import Release
from shoal.replay import Replay
from shoal.report.formats import number, share
from shoal.sweep import Frontier
from shoal.verify import Verdicts

console = Console(highlight=False)


def _table(*columns: str, title: str | None = None) -> Table:
    """The first column is text, the others are figures."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right", header_style="dim")
    return table


def _row(table: Table, *cells: str) -> None:
    table.add_row(*(Text(cell) for cell in cells))  # Text: a bracket in a name is not markup


def show_verdicts(verdicts: Verdicts) -> None:
    """What was asked, what was found, who is at fault."""
    table = _table("requirement", "found", "classes at fault", "records", "")
    for verdict in verdicts.verdicts:
        found = f"{verdict.figure} = {number(verdict.worst)}"
        mark = "holds" if verdict.holds else "FAILS"
        _row(table, verdict.asked, found, number(verdict.classes), number(verdict.records), mark)
    console.print(table)
    for name in verdicts.identifiers:
        console.print(Text(f"column {name!r} is an identifier and is still there"))
    size = f"{number(verdicts.records)} records in {number(verdicts.classes)} classes"
    style = "bold green" if verdicts.hold else "bold red"
    console.print(Text(f"{'The policy holds' if verdicts.hold else 'The policy does not hold'}: {size}.", style=style))


def show_attacks(found: Attacks, limits: Sequence[MeasuredLimit] = ()) -> None:
    """What every attack reached, what it would have without the release, then the three questions."""
    table = _table("attack", "people", "worked", "95 %", "control", "beyond", "bound")
    table.columns[0].no_wrap = True
    for risk in found:
        low, high = risk.interval
        _row(
            table,
            risk.name if risk.column is None else f"{risk.name}, {risk.column}",
            number(risk.attempts),
            share(risk.share, 1),
            f"{math.floor(1000 * low) / 10:.1f}–{math.ceil(1000 * high) / 10:.1f}",  # rounded outwards
            "" if risk.control is None else share(risk.control.share, 1),
            share(risk.above, 1),
            "" if risk.bound is None else share(risk.bound, 1),
        )
    console.print(table)
    console.print()
    for risk in found:
        console.print(Text(f"{risk.name}: {risk.sentence}"))
    console.print()
    for answer in found.answers():
        style = "bold red" if answer.possible else "bold green" if answer.possible is False else "bold"
        console.print(Text(answer.sentence, style=style))
    _show_limits(found, limits)
    for note in (*found.notes, *(f"left out: {reason}" for reason in found.left_out)):
        console.print(Text(f"Note: {note}", style="yellow"))


def _show_limits(found: Attacks, limits: Sequence[MeasuredLimit]) -> None:
    for limit in limits:
        holds = limit.holds(found)
        text = f"{limit.asked}: found {number(limit.value(found))}, {'holds' if holds else 'FAILS'}."
        console.print(Text(text, style="bold green" if holds else "bold red"))


def show_verification(found: Verification) -> None:
    """Every claim of a certificate: whether it holds, and why it cannot be told."""
    table = _table("claim", "certificate", "found", "")
    table.columns[0].overflow = "fold"
    for line in found:
        if line.holds is not None:
            mark = "holds" if line.holds else "DOES NOT HOLD" + (f": {line.why}" if line.why else "")
            _row(table, line.name, _claim(line.claimed), _claim(line.found), mark)
    console.print(table)
    for why, names in _untold(found).items():
        console.print(Text(f"Not to be told from the release alone ({why}): {', '.join(names)}.", style="dim"))
    wrong = [line.name for line in found if line.holds is False]
    if wrong:
        console.print(Text(f"The certificate does not hold: {', '.join(wrong)}.", style="bold red"))
    else:
        console.print(Text("Nothing contradicts the certificate.", style="bold green"))


def _claim(value: object) -> str:
    if isinstance(value, list):
        return "; ".join(map(str, value))
    text = number(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
    return text if len(text) <= 40 else text[:12] + "…"  # a hash


def _untold(found: Verification) -> dict[str, list[str]]:
    reasons: dict[str, list[str]] = {}
    for line in found:
        if line.holds is None:
            reasons.setdefault(line.why, []).append(line.name)
    return reasons


def show_release(release: Release, output: str | Path) -> None:
    """What became of the table."""
    show_verdicts(release.verdicts)
    if release.attacks is not None:
        _show_limits(release.attacks, release.policy.limits)
    console.print()
    levels = _table("column", "level", "of", "a released value")
    for hierarchy in release.recoding.hierarchies:
        level = release.levels[hierarchy.column]
        shown = "mixed" if level is None else str(level)
        _row(levels, hierarchy.column, shown, str(hierarchy.number_of_top), _example(release, hierarchy.column))
    console.print(levels)
    console.print()
    _show_losses(release)
    recoding = release.recoding
    proof = "proved to be the least" if recoding.proved else "not proved to be the least"
    if recoding.bound is not None:
        proof = f"the best in the time given, none is below {number(recoding.bound)}"
    looked = (
        ""
        if recoding.n_nodes is None
        else f"; {number(recoding.n_evaluated)} of {number(recoding.n_nodes)} nodes looked at"
    )
    console.print(Text(f"{recoding.algorithm}: {release.policy.release.objective} {proof}{looked}."))
    if recoding.claim:
        console.print(Text(f"Proved: {recoding.claim}."))
    n = release.engine.n_records
    fate = "dropped" if release.policy.release.suppressed == "drop" else "kept as *"
    console.print(Text(f"{number(release.suppressed)} of {number(n)} records suppressed ({fate})."))
    for warning in release.warnings:
        console.print(Text(f"Note: {warning}", style="yellow"))
    console.print(Text(f"Written and counted again: {output}"))


def show_replay(done: Replay, output: Path | str) -> None:
    """What became of new rows."""
    show_verdicts(done.verdicts)
    console.print()
    reasons = {
        "have values that the recoding has no place for": done.unknown,
        "have tuples that were suppressed before": done.suppressed,
        "would break the policy": done.failing,
    }
    n = done.engine.n_records
    console.print(Text(f"{number(done.held_back)} of {number(n)} records held back."))
    for reason, records in reasons.items():
        if records:
            console.print(Text(f"Note: {number(records)} {reason}", style="yellow"))
    console.print(Text(f"Written and counted again: {output}"))


def _example(release: Release, column: str) -> str:
    """A released value that most records share; a label, not a record."""
    if isinstance(release.rows, Query):
        groups = release.rows.groups
        sums = groups.table.group_by([column]).aggregate([(groups.weight, "sum")])
        values, n = sums[column].to_pylist(), sums[f"{groups.weight}_sum"].to_pylist()
    else:
        counts = release.rows.table[column].value_counts()
        values, n = counts.field("values").to_pylist(), counts.field("counts").to_pylist()
    texts = ("(missing)" if value is None else str(value) for value in values)
    common = max(zip(n, texts, strict=True))
    return common[1] if len(common[1]) <= 40 else common[1][:39] + "…"


def _show_losses(release: Release) -> None:
    table = _table("loss", "value")
    for name, value in release.loss.items():
        _row(table, name, number(value))
    console.print(table)
    console.print()


def show_frontier(found: Frontier) -> None:
    """One line per release: what was asked, what it costs."""
    swept = list(found.points[0].asked)
    table = _table(*swept, found.objective, "suppressed", "classes", "worst risk", "levels", "")
    table.columns[0].justify = "right"
    for point in found:
        asked = [number(value) for value in point.asked.values()]
        if not point.feasible:
            _row(table, *asked, "", "", "", "", "", "infeasible" if point.feasible is False else "out of time")
            continue
        levels = " ".join("·" if level is None else str(level) for level in (point.levels or {}).values())
        figures = [number(point.loss or 0), number(point.suppressed or 0), number(point.classes or 0)]
        proof = "proved" if point.proved else "not proved"
        _row(table, *asked, *figures, f"1 in {round(1 / (point.risk or 1))}", levels, proof)
    console.print(table)
    columns = next((point.levels for point in found if point.levels), None)
    console.print(Text(f"Levels of {', '.join(columns)}." if columns else "No release keeps any of these promises."))


def show_exploration(found: Exploration) -> None:
    """The points, then what the tolerable risk recommends."""
    show_frontier(found.frontier)
    if found.own is not None:
        console.print(Text(f"The policy as it stands is number {found.own + 1} of these {len(found.frontier)}."))
    for each in found.recommendations:
        console.print(Text(each.sentence))
    console.print(Text("These are recommendations; whoever publishes decides.", style="dim"))


def show_comparison(found: Comparison) -> None:
    """What each algorithm took and proved, then what it lost in every measure."""
    answers = sorted((e for e in found if e.outcome == "found"), key=lambda e: e.loss[found.objective])
    asked = any(e.query_error is not None for e in answers)
    effort = _table(
        "algorithm", found.objective, "classes", "suppressed", *["query error"] * asked, "time", "memory", ""
    )
    for entry in answers:
        _row(
            effort,
            entry.algorithm,
            number(entry.loss[found.objective]),
            number(entry.classes or 0),
            number(entry.suppressed or 0),
            *[f"{(entry.query_error or {}).get('median', 0):.1%}"] * asked,
            f"{entry.seconds or 0:.2f} s",
            "–" if entry.memory is None else f"{entry.memory:,.0f} MB",
            "proved" if entry.proved else "",
        )
    console.print(effort)
    console.print(
        Text(f"{number(found.records)} records; least {found.objective} first, proved where it is the least.\n")
    )
    if answers:
        lost = _table("algorithm", *answers[0].loss)
        lost.columns[0].no_wrap = True
        for column in lost.columns[1:]:
            column.overflow = "fold"  # long names of measures, short figures
        for entry in answers:
            _row(lost, entry.algorithm, *(compact(value) for value in entry.loss.values()))
        console.print(lost)
    for entry in answers:
        if entry.claim:
            console.print(Text(f"{entry.algorithm} proved: {entry.claim}."))
    for entry in found:
        if entry.outcome != "found":
            console.print(Text(f"{entry.algorithm}: {entry.outcome}. {entry.reason}", style="yellow"))


def compact(value: float) -> str:
    """Three digits, and the power of a thousand by its letter."""
    for power, letter in ((12, "T"), (9, "G"), (6, "M"), (3, "k")):
        if 10**power <= abs(value) < 10 ** (power + 3):
            return f"{value / 10**power:.3g} {letter}"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.3g}"


def show_inspection(found: Inspection, notes: Sequence[str], output: Path | None) -> None:
    """Columns with the roles they seem to have, then who stands out."""
    table = _table(
        "column", "kind", "distinct", "nulls", "role", "levels", "why", title=f"{number(found.records)} records"
    )
    table.columns[1].justify = table.columns[4].justify = table.columns[6].justify = "left"
    for column in found.columns:
        levels = str(column.levels) if column.role == "quasi" else ""
        _row(
            table,
            column.name,
            column.kind,
            number(column.distinct),
            number(column.nulls),
            column.role,
            levels,
            column.reason,
        )
    console.print(table)
    console.print()
    sets = _table("singled out by", "unique records", "share", "distinct", "separation")
    for size in (1, 2, 3):
        for separation in found.strongest(size, 3):
            _separation_row(sets, separation)
    console.print(sets)
    for note in notes:
        console.print(Text(f"Note: {note}", style="yellow"))
    if output is not None:
        console.print(Text(f"\nPolicy written to {output}: read it, edit it, then run"))
        console.print(Text(f"  shoal anonymize DATA -p {output} -o release.csv"))
    else:
        console.print(Text("\nAdd -o policy.toml for a policy to edit and run."))


def _separation_row(table: Table, separation: Separation) -> None:
    _row(
        table,
        ", ".join(separation.columns),
        number(separation.unique),
        share(separation.unique, separation.records),
        share(separation.distinct, separation.records),
        share(separation.separation_ratio, 1),
    )


def show_demo(result: Demo, folder: Path) -> None:
    """Before, the policy, after, and what was left where."""
    console.print(
        Text(
            f"A hospital has {number(result.patients)} patients. Without their names, is the table safe?", style="bold"
        )
    )
    console.print(Text("An intruder links it to a voter list by birth date, ZIP and sex:\n"))
    table = _table("voters", "before", "after")
    for row, of in _LINKAGE_ROWS.items():
        _row(table, row, of(result.before), of(result.after))
    console.print(table)
    console.print(Text(f"\nIn between, {folder / POLICY_FILE} was applied:\n"))
    show_release(result.release, folder / RELEASE)
    console.print(Text(f"Certificate: {folder / CERTIFICATE}"))
    console.print(Text(f"Report, to be opened in a browser: {folder / REPORT}"))


_LINKAGE_ROWS: dict[str, Callable[[Linkage], str]] = {
    "on the list": lambda link: number(link.people),
    "with at least one matching record": lambda link: number(link.matched),
    "with exactly one": lambda link: number(link.singled_out),
    "  of them, rightly named": lambda link: number(link.named),
    "best chance of a guess": lambda link: "none" if link.chance == 0 else _chance(link),
}


def _chance(link: Linkage) -> str:
    return f"1 in {round(1 / link.chance)}"
