"""Results in notebooks: small HTML tables, every text escaped, in the colours of the notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from shoal.alternatives.recommend import beaten
from shoal.report.essentials import proof, worth
from shoal.text.figures import format_count, format_interval, format_number, format_share, visible
from shoal.text.showing import shows

if TYPE_CHECKING:
    from shoal.alternatives.compare import Comparison
    from shoal.alternatives.frontier import Frontier
    from shoal.alternatives.recommend import Exploration
    from shoal.attacks.risk import Attacks
    from shoal.inspection.inspection import Inspection
    from shoal.judge.figures import Figures
    from shoal.models.finding import Finding, Publication
    from shoal.models.verdict import Verdict, Verdicts
    from shoal.policy import Policy
    from shoal.release import Release
    from shoal.verify.verification import Verification


@shows("Figures", "html")
def figures_html(figures: Figures) -> str:
    """Show a row per figure, with a column for each sensitive column."""
    names = list(figures.columns)
    rows = [
        [
            name,
            format_number(value),
            *(format_number(of[name]) if name in of else "" for of in figures.columns.values()),
        ]
        for name, value in figures.items()
    ]
    return _table(["figure", "worst" if names else "value", *names], rows)


@shows("Inspection", "html")
def inspection_html(found: Inspection) -> str:
    """Show the decisions to make first, and a row per column."""
    rows = [
        [c.name, c.kind, format_number(c.distinct), format_number(c.nulls), c.role, c.sure, c.why]
        for c in found.columns
    ]
    head = ["column", "kind", "distinct", "nulls", "role", "sure", "why"]
    decide = ["Decide first:"] if found.decisions else []
    decide += [decision.sentence for decision in found.decisions[:3]]
    persons = f" {found.entity!r} identifies people, and some have several records." if found.entity else ""
    table = _table(
        head, rows, f"{format_count(found.records, 'record')}.{persons}", texts=("kind", "role", "sure", "why")
    )
    edit = f'with_columns({_doubtful(found)}="quasi")'
    last = f"<p>The proposal is <code>.policy</code>; change it with <code>.policy.{Markup.escape(edit)}</code>.</p>"
    return _paragraphs(decide) + table + (last if found.having("quasi") else "")


def _doubtful(found: Inspection) -> str:
    """Return an example column for changing a role: the first to decide on, if its name is a Python name."""
    names = [decision.column for decision in found.decisions] + [column.name for column in found.columns]
    return next((name for name in names if name.isidentifier()), "age")


@shows("Verdicts", "html")
def verdicts_html(verdicts: Verdicts) -> str:
    """Show a row per requirement, the verdict as a sentence, and the findings."""
    rows = [
        [
            v.asked,
            f"{v.figure} = {format_number(v.worst)}",
            format_number(v.classes),
            format_number(v.records),
            _outcome(v),
        ]
        for v in verdicts.verdicts
    ]
    rows += [[f"identifier {name}", "not removed", "", "", _mark(False)] for name in verdicts.identifiers]
    size = f"{format_count(verdicts.records, 'record')} in {format_count(verdicts.classes, 'class')}"
    head = ["requirement", "found", "failing classes", "records", ""]
    table = _table(head, rows, f"{verdicts.sentence}: {size}.")
    return _headline(verdicts) + table + _findings(verdicts.findings)


# Readable on a light and on a dark page.
_COLOURS: dict[Publication, str] = {"ready": "#2e8b57", "decide first": "#b8860b", "do not publish": "#d1242f"}


def _headline(verdicts: Verdicts | Verification) -> str:
    style = f"font-weight: bold; color: {_COLOURS[verdicts.publication]}"
    return str(Markup('<p style="{}">{}</p>').format(style, visible(verdicts.headline)))


def _findings(findings: Iterable[Finding]) -> str:
    return _paragraphs(f"{finding.label}: {finding}" for finding in findings)


def _outcome(verdict: Verdict) -> str:
    return f"cannot be determined: {verdict.missing}" if verdict.outcome == "unknown" else verdict.outcome


@shows("Release", "html")
def release_html(release: Release) -> str:
    """Show the verdicts, then what happened to the columns."""
    rows = [
        [h.column, _level(release.levels[h.column]), str(h.number_of_top)]  # no value of a record: a notebook is shared
        for h in release.recoding.hierarchies
    ]
    objective = release.policy.release.objective
    caption = (
        f"{objective} {format_number(release.loss[objective])}, {proof(release.recoding)}; "
        f"{format_number(release.suppressed)} of {format_number(release.counted.n_records)} records suppressed."
    )
    levels = _table(["column", "level", "of"], rows, caption)
    return verdicts_html(release.verdicts) + levels


@shows("Frontier", "html")
def frontier_html(found: Frontier, own: int | None = None) -> str:
    """Show a row per solved release; ``own`` is the index of the policy itself."""
    swept = list(found.points[0].asked)
    head = ["", *swept, found.objective, "risk", "suppressed", "classes"]
    rows = []
    worse = beaten(found)
    for i, point in enumerate(found):
        name = (f"({i + 1})" if worse[i] else str(i + 1)) + (", the policy" if i == own else "")
        if point.feasible:
            figures = [
                format_number(point.loss or 0),
                format_share(point.risk or 0, 1),
                format_number(point.suppressed or 0),
            ]
            rows.append([name, *(f"{v:g}" for v in point.asked.values()), *figures, format_number(point.classes or 0)])
        else:
            rows.append([name, *(f"{v:g}" for v in point.asked.values()), point.state, "", "", ""])
    brackets = [
        "In brackets: dominated by another release with no more loss, no more risk and equally strong requirements."
    ] * any(worse)
    return _table(head, rows) + _paragraphs(brackets)


@shows("Exploration", "html")
def exploration_html(found: Exploration) -> str:
    """Show the frontier, the recommendations, and the plot."""
    from shoal.report.plots import exploration_chart  # reports take a while to load

    told = frontier_html(found.frontier, found.own) + _paragraphs(each.sentence for each in found.recommendations)
    if not any(point.feasible for point in found.frontier):
        return told
    return told + str(exploration_chart(found).figure("chart()"))


@shows("Comparison", "html")
def comparison_html(found: Comparison) -> str:
    """Show a row per algorithm, sorted by loss; then those without a solution, and why."""
    answers = sorted((e for e in found if e.outcome == "found"), key=lambda e: e.loss[found.objective])
    head = ["algorithm", found.objective, "classes", "suppressed", "seconds", ""]
    rows = [
        [
            e.algorithm,
            format_number(e.loss[found.objective]),
            format_number(e.classes or 0),
            format_number(e.suppressed or 0),
            f"{e.seconds or 0:.2f}",
            worth(e, found.objective),
        ]
        for e in answers
    ]
    best = [
        f"For {e.purpose} ({e.algorithm}): {found.objective} {format_number(e.loss[found.objective])}."
        for e in found.purposes
        if e.outcome == "found"
    ]
    missing = (e for e in (*found.purposes, *found) if e.outcome != "found")
    return _paragraphs(best) + _table(head, rows) + _paragraphs(f"{e.name}: {e.outcome}. {e.reason}" for e in missing)


@shows("Attacks", "html")
def attacks_html(found: Attacks) -> str:
    """Show a row per attack, the three criteria below, and collapsed details."""
    rows = [
        [
            risk.name if risk.column is None else f"{risk.name}, {risk.column}",
            format_share(risk.share, 1),
            format_interval(risk.interval),
            "" if risk.control is None else format_share(risk.control.share, 1),
            "" if risk.bound is None else format_share(risk.bound, 1),
        ]
        for risk in found
    ]
    told = [f"{risk.name}: {risk.sentence}" for risk in found]
    told += [*(f"Note: {note}" for note in found.notes), *(f"Skipped: {reason}" for reason in found.left_out)]
    more = Markup("<details><summary>Details of each attack</summary>{}</details>").format(Markup(_paragraphs(told)))
    head = ["attack", "worked", "95 %", "control", "bound"]
    return _table(head, rows) + _paragraphs(answer.sentence for answer in found.answers()) + str(more)


@shows("Policy", "html")
def policy_html(policy: Policy) -> str:
    """Show the policy as TOML."""
    return str(Markup("<pre>{}</pre>").format(visible(policy.to_toml())))


def _paragraphs(texts: Iterable[str]) -> str:
    return str(Markup("").join(Markup("<p>{}</p>").format(visible(each)) for each in texts))


@shows("Verification", "html")
def verification_html(found: Verification) -> str:
    """Show a row per checked statement."""
    told = [line for line in found if line.holds is not None]
    rows = [[line.name, _claim(line.claimed), _claim(line.found), _mark(line.holds is True), line.why] for line in told]
    untold = len(tuple(found)) - len(told)
    caption = f"{found.sentence} {format_count(untold, 'statement')} cannot be checked with the release alone."
    table = _table(["claim", "certificate", "found", "", ""], rows, caption)
    return _headline(found) + table + _findings(found.findings)


def _claim(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return format_number(value)
    told = "; ".join(map(str, value)) if isinstance(value, list) else str(value)
    return told if isinstance(value, list) or len(told) <= 40 else told[:12] + "…"  # a hash


def _level(level: int | None) -> str:
    return "mixed" if level is None else str(level)


def _mark(holds: bool) -> str:
    return "holds" if holds else "fails"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "", *, texts: Sequence[str] = ()) -> str:
    """Format a table with numbers to the right; the first column and those of ``texts`` to the left."""
    left, right = (Markup(f' style="text-align: {side}; padding: .1em .6em"') for side in ("left", "right"))
    parts = [Markup("<table>")]
    if caption:
        # A narrow table would otherwise break its caption after every word.
        style = Markup(' style="text-align: left; padding: .1em .6em; white-space: nowrap"')
        parts.append(Markup("<caption{}>{}</caption>").format(style, visible(caption)))
    sides = [left if i == 0 or name in texts else right for i, name in enumerate(head)]
    cells = [
        Markup('<th scope="col"{}>{}</th>').format(side, visible(name)) for side, name in zip(sides, head, strict=True)
    ]
    parts += [Markup("<thead><tr>"), *cells, Markup("</tr></thead><tbody>")]
    for first, *others in rows:
        parts.append(Markup('<tr><th scope="row"{}>{}</th>').format(left, visible(first)))
        beside = zip(sides[1:], others, strict=True)
        parts += [Markup("<td{}>{}</td>").format(side, visible(text)) for side, text in beside]
        parts.append(Markup("</tr>"))
    parts.append(Markup("</tbody></table>"))
    return str(Markup("").join(parts))
