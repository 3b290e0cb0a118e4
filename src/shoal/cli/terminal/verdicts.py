"""Verdicts on a terminal: requirements, attacks, and the statements of a certificate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from shoal.attacks.risk import Attacks
from shoal.cli.columns import Columns, console, text
from shoal.models.finding import Finding, Publication, Severity
from shoal.models.verdict import Outcome, Verdict, Verdicts
from shoal.text.figures import format_count, format_interval, format_number, format_share

if TYPE_CHECKING:
    from shoal.verify.verification import Verification

MARKS: dict[Outcome, str] = {"holds": "holds", "fails": "FAILS", "unknown": "CANNOT BE DETERMINED"}


# The headline is the publication verdict: only what is ready is green, and what is said beside a warning never is.
PUBLICATION_STYLES: dict[Publication, str] = {
    "ready": "bold green",
    "decide first": "bold yellow",
    "do not publish": "bold red",
}
SEVERITY_STYLES: dict[Severity, str] = {"stop": "bold red", "decide": "yellow", "note": ""}
STYLES: dict[Outcome, str] = {"holds": "bold green", "fails": "bold red", "unknown": "bold yellow"}


def show_verdicts(verdicts: Verdicts) -> None:
    """Show the requirements, the results, and the classes that fail."""
    table = Columns("requirement", "found", "failing classes", "records", "")
    for verdict in verdicts.verdicts:
        measured = f"{verdict.figure} = {format_number(verdict.worst)}"
        if verdict.outcome == "unknown":
            measured = "" if math.isnan(verdict.worst) else measured
            table.add(verdict.asked, measured, "", "", MARKS["unknown"])
        elif verdict.outcome == "fails" and not verdict.classes:  # a limit on attacks: no class is responsible
            table.add(verdict.asked, measured, "", "", MARKS["fails"])
        else:
            table.add(
                verdict.asked,
                measured,
                format_number(verdict.classes),
                format_number(verdict.records),
                MARKS[verdict.outcome],
            )
    table.show(console)
    for verdict in verdicts.verdicts:
        if verdict.missing:
            console.print(text(f"{verdict.asked} cannot be determined: {verdict.missing}."))
    for name in verdicts.identifiers:
        console.print(text(f"column {name!r} is an identifier and was not removed"))
    size = f"{format_count(verdicts.records, 'record')} in {format_count(verdicts.classes, 'class')}"
    console.print(text(f"{verdicts.sentence}: {size}.", style=policy_style(verdicts)))


def policy_style(verdicts: Verdicts | Verification) -> str:
    """Return the style of the policy verdict, which is not green unless the table may be published."""
    return "bold" if verdicts.holds and verdicts.publication != "ready" else STYLES[verdicts.outcome]


def show_headline(verdicts: Verdicts | Verification) -> None:
    """Show the publication verdict."""
    console.print(text(verdicts.headline, style=PUBLICATION_STYLES[verdicts.publication]))


def show_findings(findings: Iterable[Finding]) -> None:
    """Show every finding with its severity, a line each."""
    for finding in findings:
        console.print(text(f"{finding.label}: {finding}", style=SEVERITY_STYLES[finding.severity]))


def show_check(verdicts: Verdicts) -> None:
    """Show the publication verdict, the policy verdicts, and the findings even if the policy holds."""
    show_headline(verdicts)
    show_verdicts(verdicts)
    show_findings(verdicts.findings)


def show_attacks(attacks: Attacks, limits: Sequence[Verdict] = ()) -> None:
    """Show the result of every attack with its baseline without the release, then the three criteria."""
    table = Columns("attack", "targets", "worked", "95 %", "control", "beyond", "bound")
    for risk in attacks:
        table.add(
            risk.name if risk.column is None else f"{risk.name}, {risk.column}",
            format_number(risk.attempts),
            format_share(risk.share, 1),
            format_interval(risk.interval).removesuffix(" %"),
            "" if risk.control is None else format_share(risk.control.share, 1),
            format_share(risk.above, 1),
            "" if risk.bound is None else format_share(risk.bound, 1),
        )
    table.show(console)
    console.print()
    for risk in attacks:
        console.print(text(f"{risk.name}: {risk.sentence}"))
    console.print()
    green = not any(answer.possible for answer in attacks.answers()) and all(limit.holds for limit in limits)
    show_answers(attacks, green=green)
    show_limits(limits, green=green)
    for note in (*attacks.notes, *(f"Skipped: {reason}" for reason in attacks.left_out)):
        console.print(text(f"Note: {note}", style="yellow"))


def show_answers(attacks: Attacks, *, green: bool) -> None:
    """Show whether singling out, linking and inferring are possible, a sentence each; without green beside red."""
    for answer in attacks.answers():
        style = "bold red" if answer.possible else "bold green" if answer.possible is False and green else "bold"
        console.print(text(answer.sentence, style=style))


def show_limits(limits: Sequence[Verdict], *, green: bool) -> None:
    """Show the limits on measured attacks, and what was found; without green beside red."""
    for verdict in limits:
        sentence = f"{verdict.asked}: found {format_number(verdict.worst)}, {MARKS[verdict.outcome]}."
        console.print(text(sentence, style="bold" if verdict.holds and not green else STYLES[verdict.outcome]))


def show_verification(verification: Verification) -> None:
    """Show every statement of a certificate: whether it holds, or why that cannot be determined."""
    show_headline(verification)
    table = Columns("claim", "certificate", "found", "", texts=(0, 3))
    for line in verification:
        if line.holds is not None:
            mark = "holds" if line.holds else "DOES NOT HOLD" + (f": {line.why}" if line.why else "")
            table.add(line.name, _claim(line.claimed), _claim(line.found), mark)
    table.show(console)
    for reason, names in _unchecked(verification).items():
        if names == ["signature"]:
            console.print(text(f"The certificate is {reason}."))
            continue
        console.print(text(f"Cannot be checked with the release alone ({reason}): {', '.join(names)}.", style="dim"))
    console.print(text(verification.sentence, style=policy_style(verification)))
    show_findings(verification.findings)


def _claim(value: object) -> str:
    if isinstance(value, list):
        return "; ".join(map(str, value))
    text_of_claim = (
        format_number(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
    )
    return text_of_claim if len(text_of_claim) <= 40 else text_of_claim[:12] + "…"  # a hash


def _unchecked(verification: Verification) -> dict[str, list[str]]:
    reasons: dict[str, list[str]] = {}
    for line in verification:
        if line.holds is None:
            reasons.setdefault(line.why, []).append(line.name)
    return reasons
