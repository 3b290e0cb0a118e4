"""Attacks of ours that succeed beyond what is tolerated."""

from collections.abc import Iterator, Sequence

from shoal.attacks.risk import TOLERANCES, Attacks, percent_words
from shoal.findings.evidence import Evidence, required_size
from shoal.findings.kinds import finding, ordered
from shoal.models.finding import Finding
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

    Who requires k persons in every class tolerates that one of k is linked to the right one. Whoever limits an attack
    to more than the tolerance has decided on that figure, and should know what it means.
    """
    limited = {limit.question for limit in policy.limits}
    linked = max(TOLERANCES["linkability"], 1 / required_size(policy))
    for answer in attacks.answers({"linkability": linked}):
        if answer.possible and answer.risk is not None:
            column = answer.risk.column
            of = "" if column is None else f" of {column!r}"
            two_digits = float(f"{answer.risk.above:.2g}")  # of people of the original: more would tell about them
            yield finding(
                "attack-succeeds",
                f"An attack succeeds beyond the tolerance ({answer.question}): {answer.risk.name}{of} reaches "
                f"{percent_words(two_digits)} above the control, where {percent_words(answer.tolerance)} is tolerated",
                REMEDIES[answer.question],
                [] if column is None else [column],
                round(answer.risk.successes),
                "decide" if answer.question in limited else "stop",
            )


def with_attacks(findings: Sequence[Finding], attacks: Attacks, policy: Policy) -> tuple[Finding, ...]:
    """Return findings with those of attacks that were run later, in place of earlier ones."""
    others = (each for each in findings if each.kind != "attack-succeeds")
    return ordered([*others, *attack_findings(attacks, policy)])
