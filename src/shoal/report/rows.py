"""The rows of results: one presentation model that terminal, notebook, report and page only draw.

A grid has a heading and rows of texts. What is red is said by the row, not by its texts: each door has its own colours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal.alternatives.dominance import beaten
from shoal.report.essentials import worth
from shoal.text.figures import format_count, format_interval, format_number, format_share

if TYPE_CHECKING:
    from shoal.alternatives.compare import Comparison, Entry
    from shoal.alternatives.frontier import Frontier
    from shoal.attacks.risk import Risk
    from shoal.models.verdict import Outcome, Verdict, Verdicts
    from shoal.report.fates import Fate
    from shoal.verify.verification import Verification


@dataclass(frozen=True)
class Row:
    """The texts of a row, whether its last one is bad news, and a remark on the row."""

    cells: tuple[str, ...]
    fails: bool = False
    remark: str = ""


@dataclass(frozen=True)
class Grid:
    """A table: its heading, its rows, and the columns that have texts, not figures."""

    head: tuple[str, ...]
    rows: tuple[Row, ...]
    texts: tuple[int, ...] = (0,)


OUTCOMES: dict[Outcome, str] = {"holds": "holds", "fails": "fails", "unknown": "cannot be determined"}


def requirement_grid(verdicts: Iterable[Verdict], identifiers: Iterable[str] = (), remarks: Sequence[str] = ()) -> Grid:
    """Return a row per requirement, then one per identifier that was not removed."""
    rows = []
    for i, verdict in enumerate(verdicts):
        fails, classes = verdict.outcome == "fails", ("", "")
        if verdict.outcome != "unknown" and (verdict.classes or not fails):  # a limit on attacks: no class is to blame
            classes = format_number(verdict.classes), format_number(verdict.records)
        cells = (verdict.asked, measured_words(verdict), *classes, OUTCOMES[verdict.outcome])
        rows.append(Row(cells, not verdict.holds, verdict.missing or (remarks[i] if i < len(remarks) else "")))
    rows += [Row((f"identifier {name}", "not removed", "", "", "fails"), True) for name in identifiers]
    return Grid(("requirement", "measured", "failing classes", "records", "verdict"), tuple(rows), (0, 4))


def measured_words(verdict: Verdict) -> str:
    """Return the figure of the worst class."""
    return "not measured" if math.isnan(verdict.worst) else f"{verdict.figure} = {format_number(verdict.worst)}"


def size_words(verdicts: Verdicts) -> str:
    """Return the size of the judged table."""
    return f"{format_count(verdicts.records, 'record')} in {format_count(verdicts.classes, 'class')}"


def level_words(level: int | None) -> str:
    """Return the level of a column, which may differ from class to class."""
    return "mixed" if level is None else str(level)


def attack_grid(attacks: Iterable[Risk]) -> Grid:
    """Return a row per attack, with the success without the release as its control."""
    head = ("attack", "targets", "worked", "95 %", "control", "beyond", "bound")
    return Grid(head, tuple(Row(_attack_cells(risk), remark=risk.sentence) for risk in attacks))


def _attack_cells(risk: Risk) -> tuple[str, ...]:
    return (
        risk.name if risk.column is None else f"{risk.name}, {risk.column}",
        format_number(risk.attempts),
        format_share(risk.share, 1),
        format_interval(risk.interval).removesuffix(" %"),
        "" if risk.control is None else format_share(risk.control.share, 1),
        format_share(risk.above, 1),
        "" if risk.bound is None else format_share(risk.bound, 1),
    )


def column_grid(columns: Iterable[Fate]) -> Grid:
    """Return a row per quasi-identifier: what happened to its cells, and its loss."""
    head = ("column", "treatment", "example", "loss")
    rows = (Row((c.name, _treatment(c), _example(c), format_share(c.loss, 1))) for c in columns)
    return Grid(head, tuple(rows), (0, 1, 2))


def _treatment(column: Fate) -> str:
    """Describe what happened to a column in the released records; by parts if its cells differ."""
    if column.kind == "kept":
        return "kept unchanged"
    if column.kind == "hidden":
        return "suppressed"
    unchanged = f"{format_share(column.kept_share, 1)} of the cells kept" if column.kept_share else ""
    hidden = f"{format_share(column.hidden_share, 1)} suppressed" if column.hidden_share else ""
    return "generalized" + (f"; {', '.join(filter(None, (unchanged, hidden)))}" if unchanged or hidden else "")


def _example(column: Fate) -> str:
    if column.released_label is None:
        return "–"
    if column.original_label is None:
        return f"released as {column.released_label}"
    if column.original_label == column.released_label:
        return f"{column.released_label} (unchanged)"
    return f"{column.original_label} → {column.released_label}"


def frontier_grid(frontier: Frontier, policy_point: int | None = None) -> Grid:
    """Return a row per solved release; ``policy_point`` is the number of the policy's own."""
    names, unsolved = list(frontier.points[0].asked), any(not point.proved for point in frontier)
    head = ("", *(_PARAMETERS.get(name, name) for name in names), frontier.objective, "suppressed", "classes")
    worse, rows = beaten(frontier), []
    for i, point in enumerate(frontier):
        rank = (f"({i + 1}.)" if worse[i] else f"{i + 1}.") + (" *" if i == policy_point else "")
        parameters = [_parameter(name, value) for name, value in point.asked.items()]
        if not point.feasible:
            rows.append(Row((rank, *parameters, *[""] * 5, point.state)))
            continue
        figures = (format_number(figure or 0) for figure in (point.loss, point.suppressed, point.classes))
        levels = " ".join("·" if level is None else str(level) for level in (point.levels or {}).values())
        state = "proved" if point.proved else "not proved"
        rows.append(Row((rank, *parameters, *figures, one_in(point.risk), levels, *[state] * unsolved)))
    head += ("worst risk", "levels", *[""] * unsolved)
    return Grid(head, tuple(rows), (0, len(head) - 1) if unsolved else (0,))


_PARAMETERS = {"max_suppression": "suppress at most"}


def _parameter(name: str, value: float) -> str:
    return format_share(value, 1) if name == "max_suppression" else f"{value:g}"


def one_in(risk: float | None) -> str:
    """Return a risk as one in so many."""
    return f"1 in {round(1 / (risk or 1))}"


def frontier_remarks(frontier: Frontier, policy_point: int | None = None) -> list[str]:
    """Return the legend of the rows of a frontier."""
    columns = next((point.levels for point in frontier if point.levels), None)
    proved = "" if any(not point.proved for point in frontier) else f" Every {frontier.objective} is proved optimal."
    remarks = [
        f"Levels of {', '.join(columns)}.{proved}" if columns else "No release satisfies any of these requirements."
    ]
    reasons = (point.reason for point in frontier if point.state in ("refused", "cannot be told"))
    remarks += [f"Not released: {reason}." for reason in dict.fromkeys(reasons)]
    if any(beaten(frontier)):
        remarks.append("(In brackets): another release has no more loss, no more risk and equally strict requirements.")
    return [*remarks, *["* The policy itself."] * (policy_point is not None)]


def comparison_grid(comparison: Comparison) -> Grid:
    """Return a row per algorithm that found a release, the smallest loss first."""
    entries, objective = solved_entries(comparison), comparison.objective
    with_queries = any(entry.query_error is not None for entry in entries)
    head = ("algorithm", objective, "classes", "suppressed", *["query error"] * with_queries, "time", "memory", "")
    rows = [
        (
            entry.algorithm,
            format_number(entry.loss[objective]),
            format_number(entry.classes or 0),
            format_number(entry.suppressed or 0),
            *[f"{(entry.query_error or {}).get('median', 0):.1%}"] * with_queries,
            f"{entry.seconds or 0:.2f} s",
            "–" if entry.memory is None else f"{entry.memory:,.0f} MB",
            worth(entry, objective),
        )
        for entry in entries
    ]
    return Grid(head, tuple(map(Row, rows)), (0, len(head) - 1))


def solved_entries(comparison: Comparison) -> list[Entry]:
    """Return the algorithms that found a release, the smallest loss first."""
    solved = (entry for entry in comparison if entry.outcome == "found")
    return sorted(solved, key=lambda entry: entry.loss[comparison.objective])


def comparison_remarks(comparison: Comparison) -> list[str]:
    """Return why algorithms found no release."""
    entries = (*comparison.purposes, *comparison)
    return [f"{entry.name}: {entry.outcome}. {entry.reason}" for entry in entries if entry.outcome != "found"]


def claim_grid(verification: Verification) -> Grid:
    """Return a row per statement of a certificate that was checked."""
    rows = (
        Row((line.name, _claim(line.claimed), _claim(line.found), _verdict(line.holds)), not line.holds, line.why)
        for line in verification
        if line.holds is not None
    )
    return Grid(("claim", "certificate", "found", "verdict"), tuple(rows), (0, 3))


def _verdict(holds: bool) -> str:
    return OUTCOMES["holds" if holds else "fails"]


def _claim(value: object) -> str:
    if isinstance(value, list):
        return "; ".join(map(str, value))
    words = format_number(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
    return words if len(words) <= 40 else words[:12] + "…"  # a hash


def unchecked_claims(verification: Verification) -> dict[str, list[str]]:
    """Return the statements that cannot be checked, by the reason."""
    reasons: dict[str, list[str]] = {}
    for line in verification:
        if line.holds is None:
            reasons.setdefault(line.why, []).append(line.name)
    return reasons
