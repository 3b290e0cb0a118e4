"""Attacks of ours that succeed beyond what is tolerated."""

from collections.abc import Iterator, Sequence

from shoal.attacks.risk import Attacks, percent_words
from shoal.attacks.tolerances import tolerances
from shoal.findings.evidence import Evidence
from shoal.findings.kinds import finding, ordered
from shoal.models.finding import Finding
from shoal.models.shares import LimitedGain
from shoal.policy import Policy

REMEDIES = {
    "singling out": 'Require a larger k, or set role = "quasi" for the columns that outsiders may know',
    "linkability": "Require a larger k, or limit linkage-risk",
    "inference": "Require t-closeness or distinct-l-diversity on the sensitive column, or limit inference-risk",
}


def attack_succeeds(evidence: Evidence) -> Iterator[Finding]:
    """Find the criteria of the Article 29 Working Party that the attacks on a release show to be violated."""
    if evidence.attacks is not None:
        yield from attack_findings(evidence.attacks, evidence.policy)


def attack_findings(attacks: Attacks, policy: Policy) -> Iterator[Finding]:
    """Return a finding for each criterion that an attack shows to be violated.

    A policy that limits an attack, or the gain of bets on a column, to more than the tolerance has decided on that
    figure: its publisher should know what it means.
    """
    limited = {limit.question for limit in policy.limits}
    gains = [model for model in policy.models if isinstance(model, LimitedGain)]
    for answer in attacks.answers(tolerances(policy)):
        if answer.possible and answer.risk is not None:
            column = answer.risk.column
            whose = "" if column is None else f" of {column!r}"
            allowed = answer.question in limited or (
                answer.question == "inference"
                and any(model.column in (None, column) and answer.risk.above <= model.gain for model in gains)
            )
            two_digits = float(f"{answer.risk.above:.2g}")  # of people of the original: more would tell about them
            yield finding(
                "attack-succeeds",
                f"An attack succeeds beyond the tolerance ({answer.question}): {answer.risk.name}{whose} reaches "
                f"{percent_words(two_digits)} above the control, where {percent_words(answer.tolerance)} is tolerated",
                REMEDIES[answer.question],
                [] if column is None else [column],
                round(answer.risk.successes),
                "decide" if allowed else "stop",
            )


def with_attacks(findings: Sequence[Finding], attacks: Attacks, policy: Policy) -> tuple[Finding, ...]:
    """Return findings with those of attacks that were run later.

    They replace earlier ones, and the guesses that were counted without attacks where an attack succeeds on the same
    column. Attacks on a sample that decide nothing take back no count of all people.
    """
    new = tuple(attack_findings(attacks, policy))
    attacked = {column for finding in new for column in finding.columns}
    earlier = [earlier_finding for earlier_finding in findings if earlier_finding.kind != "attack-succeeds"]
    return ordered([*(e for e in earlier if e.kind != "guessed-values" or not attacked & {*e.columns}), *new])
