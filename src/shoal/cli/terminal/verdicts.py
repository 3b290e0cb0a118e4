"""Verdicts on a terminal: requirements, attacks, and the statements of a certificate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from shoal.attacks.risk import Attacks
from shoal.cli.columns import console, show_grid, text
from shoal.models.finding import Finding, Publication, Severity
from shoal.models.verdict import Outcome, Verdict, Verdicts
from shoal.report.rows import OUTCOMES, attack_grid, claim_grid, requirement_grid, size_words, unchecked_claims
from shoal.text.figures import format_number

if TYPE_CHECKING:
    from shoal.verify.verification import Verification

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
    grid = requirement_grid(verdicts.verdicts, verdicts.identifiers)
    show_grid(grid)
    for row in grid.rows:
        if row.remark:
            console.print(text(f"{row.cells[0]} {row.cells[-1]}: {row.remark}."))
    console.print(text(f"{verdicts.sentence}: {size_words(verdicts)}.", style=policy_style(verdicts)))


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
    show_grid(attack_grid(attacks))
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
        outcome = OUTCOMES[verdict.outcome] if verdict.holds else OUTCOMES[verdict.outcome].upper()
        sentence = f"{verdict.asked}: {format_number(verdict.worst)}, {outcome}."
        console.print(text(sentence, style="bold" if verdict.holds and not green else STYLES[verdict.outcome]))


def show_verification(verification: Verification) -> None:
    """Show every statement of a certificate: whether it holds, or why that cannot be determined."""
    show_headline(verification)
    grid = claim_grid(verification)
    show_grid(grid)
    for row in grid.rows:
        if row.remark:
            console.print(text(f"{row.cells[0]}: {row.remark}."))
    for reason, names in unchecked_claims(verification).items():
        if names == ["signature"]:
            console.print(text(f"The certificate is {reason}."))
            continue
        console.print(text(f"Cannot be checked with the release alone ({reason}): {', '.join(names)}.", style="dim"))
    console.print(text(verification.sentence, style=policy_style(verification)))
    show_findings(verification.findings)
