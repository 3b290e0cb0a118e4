"""Results in notebooks: small HTML tables, every text escaped, in the colours of the notebook."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from markupsafe import Markup

from shoal.report.essentials import proof
from shoal.report.rows import (
    Grid,
    Row,
    attack_grid,
    claim_grid,
    comparison_grid,
    comparison_remarks,
    frontier_grid,
    frontier_remarks,
    level_words,
    requirement_grid,
    size_words,
    unchecked_claims,
)
from shoal.text.figures import format_count, format_number, visible
from shoal.text.showing import shows

if TYPE_CHECKING:
    from shoal.alternatives.compare import Comparison
    from shoal.alternatives.frontier import Frontier
    from shoal.alternatives.recommend import Exploration
    from shoal.attacks.risk import Attacks
    from shoal.inspection.inspection import Inspection
    from shoal.judge.figures import Figures
    from shoal.models.finding import Finding, Publication
    from shoal.models.verdict import Verdicts
    from shoal.policy import Policy
    from shoal.release import Release
    from shoal.verify.verification import Verification


@shows("Figures", "html")
def figures_html(figures: Figures) -> str:
    """Show a row per figure, with a column for each sensitive column."""
    names = list(figures.columns)
    rows = [
        (
            name,
            format_number(value),
            *(format_number(own[name]) if name in own else "" for own in figures.columns.values()),
        )
        for name, value in figures.items()
    ]
    return _table(Grid(("figure", "worst" if names else "value", *names), tuple(map(Row, rows))))


@shows("Inspection", "html")
def inspection_html(inspection: Inspection) -> str:
    """Show the decisions to make first, and a row per column."""
    rows = (
        Row((c.name, c.kind, format_number(c.distinct), format_number(c.nulls), c.role, c.sure, c.why))
        for c in inspection.columns
    )
    decide = ["Decide first:"] if inspection.decisions else []
    decide += [decision.sentence for decision in inspection.decisions[:3]]
    persons = f" {inspection.entity!r} identifies people, and some have several records." if inspection.entity else ""
    head = ("column", "kind", "distinct", "nulls", "role", "sure", "why")
    table = _table(Grid(head, tuple(rows), (0, 1, 4, 5, 6)), f"{format_count(inspection.records, 'record')}.{persons}")
    edit = f'with_columns({_doubtful(inspection)}="quasi")'
    last = f"<p>The proposal is <code>.policy</code>; change it with <code>.policy.{Markup.escape(edit)}</code>.</p>"
    return _paragraphs(decide) + table + (last if inspection.having("quasi") else "")


def _doubtful(inspection: Inspection) -> str:
    """Return an example column for changing a role: the first to decide on, if its name is a Python name."""
    names = [decision.column for decision in inspection.decisions] + [column.name for column in inspection.columns]
    return next((name for name in names if name.isidentifier()), "age")


@shows("Verdicts", "html")
def verdicts_html(verdicts: Verdicts) -> str:
    """Show a row per requirement, the verdict as a sentence, and the findings."""
    grid = requirement_grid(verdicts.verdicts, verdicts.identifiers)
    table = _table(grid, f"{verdicts.sentence}: {size_words(verdicts)}.")
    return _headline(verdicts) + table + _findings(verdicts.findings)


# Readable on a light and on a dark page.
_COLOURS: dict[Publication, str] = {"ready": "#2e8b57", "decide first": "#b8860b", "do not publish": "#d1242f"}


def _headline(verdicts: Verdicts | Verification) -> str:
    style = f"font-weight: bold; color: {_COLOURS[verdicts.publication]}"
    return str(Markup('<p style="{}">{}</p>').format(style, visible(verdicts.headline)))


def _findings(findings: Iterable[Finding]) -> str:
    return _paragraphs(f"{finding.label}: {finding}" for finding in findings)


@shows("Release", "html")
def release_html(release: Release) -> str:
    """Show the verdicts, then what happened to the columns."""
    rows = (  # no value of a record: a notebook is shared
        Row((h.column, level_words(release.levels[h.column]), str(h.number_of_top)))
        for h in release.recoding.hierarchies
    )
    objective = release.policy.release.objective
    caption = (
        f"{objective} {format_number(release.loss[objective])}, {proof(release.recoding)}; "
        f"{format_number(release.suppressed)} of {format_number(release.counted.n_records)} records suppressed."
    )
    levels = _table(Grid(("column", "level", "of"), tuple(rows)), caption)
    return verdicts_html(release.verdicts) + levels


@shows("Frontier", "html")
def frontier_html(frontier: Frontier, policy_point: int | None = None) -> str:
    """Show a row per solved release; ``policy_point`` is the number of the policy's own."""
    return _table(frontier_grid(frontier, policy_point)) + _paragraphs(frontier_remarks(frontier, policy_point))


@shows("Exploration", "html")
def exploration_html(exploration: Exploration) -> str:
    """Show the frontier, the recommendations, and the plot."""
    from shoal.report.plots import exploration_chart  # reports take a while to load

    html = frontier_html(exploration.frontier, exploration.own)
    html += _paragraphs(recommendation.sentence for recommendation in exploration.recommendations)
    if not any(point.feasible for point in exploration.frontier):
        return html
    return html + str(exploration_chart(exploration).figure("chart()"))


@shows("Comparison", "html")
def comparison_html(comparison: Comparison) -> str:
    """Show a row per algorithm, sorted by loss; then those without a solution, and why."""
    objective = comparison.objective
    best = (
        f"For {entry.purpose} ({entry.algorithm}): {objective} {format_number(entry.loss[objective])}."
        for entry in comparison.purposes
        if entry.outcome == "found"
    )
    return _paragraphs(best) + _table(comparison_grid(comparison)) + _paragraphs(comparison_remarks(comparison))


@shows("Attacks", "html")
def attacks_html(attacks: Attacks) -> str:
    """Show a row per attack, the three criteria below, and collapsed details."""
    details = [f"{risk.name}: {risk.sentence}" for risk in attacks]
    details += [f"Note: {note}" for note in attacks.notes] + [f"Skipped: {reason}" for reason in attacks.left_out]
    more = Markup("<details><summary>Details of each attack</summary>{}</details>")
    answers = _paragraphs(answer.sentence for answer in attacks.answers())
    return _table(attack_grid(attacks)) + answers + str(more.format(Markup(_paragraphs(details))))


@shows("Policy", "html")
def policy_html(policy: Policy) -> str:
    """Show the policy as TOML."""
    return str(Markup("<pre>{}</pre>").format(visible(policy.to_toml())))


def _paragraphs(texts: Iterable[str]) -> str:
    return str(Markup("").join(Markup("<p>{}</p>").format(visible(paragraph)) for paragraph in texts))


@shows("Verification", "html")
def verification_html(verification: Verification) -> str:
    """Show a row per checked statement."""
    unchecked = sum(map(len, unchecked_claims(verification).values()))
    rest = f"{format_count(unchecked, 'statement')} cannot be checked with the release alone."
    table = _table(claim_grid(verification), f"{verification.sentence} {rest}")
    return _headline(verification) + table + _findings(verification.findings)


def _table(grid: Grid, caption: str = "") -> str:
    """Draw a grid with figures to the right; the remark on a row follows its verdict."""
    left, right = (Markup(f' style="text-align: {side}; padding: .1em .6em"') for side in ("left", "right"))
    sides = [left if i in grid.texts else right for i in range(len(grid.head))]
    parts = [Markup("<table>")]
    if caption:
        # A narrow table would otherwise break its caption after every word.
        style = Markup(' style="text-align: left; padding: .1em .6em; white-space: nowrap"')
        parts.append(Markup("<caption{}>{}</caption>").format(style, visible(caption)))
    heads = zip(sides, grid.head, strict=True)
    cells = [Markup('<th scope="col"{}>{}</th>').format(side, visible(name)) for side, name in heads]
    parts += [Markup("<thead><tr>"), *cells, Markup("</tr></thead><tbody>")]
    for row in grid.rows:
        first, *others = row.cells
        if row.remark and row.fails:
            others[-1] += f": {row.remark}"
        parts.append(Markup('<tr><th scope="row"{}>{}</th>').format(left, visible(first)))
        pairs = zip(sides[1:], others, strict=True)
        parts += [Markup("<td{}>{}</td>").format(side, visible(text)) for side, text in pairs]
        parts.append(Markup("</tr>"))
    return str(Markup("").join([*parts, Markup("</tbody></table>")]))
