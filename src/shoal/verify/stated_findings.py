"""The findings of a certificate, and the verdict that follows from them, compared with the released file.

What the released columns show by themselves is found again. A finding that needs the original, such as a column that
reveals a generalized one or the success of an attack, is stated by the publisher.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shoal.findings import Evidence, Finding, findings_of, publication

STATED = "stated by the publisher"

# Kinds that the release alone shows. A column in which all are alone, and one that singles many people out with
# others, are the same to a reader who cannot count persons.
RECOUNTED = {
    "identifying-values": "identifying-values",
    "unique-plain": "singled-out",
    "singled-out": "singled-out",
    "unprotected": "unprotected",
    "unique-sensitive": "unique-sensitive",
    "answers-single-out": "answers-single-out",
    "near-numbers": "near-numbers",
    "spelling": "spelling",
}

# The name of a statement, what the certificate says, what was found, whether it holds, and why not or why unknown.
Statement = tuple[str, Any, Any, bool | None, str]


def compared_findings(claims: Mapping[str, Any], evidence: Evidence) -> Iterator[Statement]:
    """Compare the findings that a certificate lists with those that the released rows show."""
    claimed = [Finding.from_dict(line) for line in claims["findings"]]
    verdict = publication("holds", claimed)  # nothing else is released
    reason = "" if claims["publication"] == verdict else "the findings of the certificate say otherwise"
    yield "publication", claims["publication"], verdict, not reason, reason
    recounted = [finding for finding in findings_of(evidence) if finding.kind in RECOUNTED]
    missing = [finding for finding in recounted if not _is_listed(finding, claimed)]
    names = [finding.kind for finding in claimed if finding.kind in RECOUNTED]
    if missing:
        facts = " ".join(finding.fact + "." for finding in missing)
        yield "findings", names, [finding.kind for finding in recounted], False, f"the release shows more: {facts}"
    elif names or recounted:
        yield "findings", names, [finding.kind for finding in recounted], True, ""
    if any(finding.kind not in RECOUNTED for finding in claimed) or not claimed:
        yield "other findings", None, None, None, STATED


def stated_findings(claims: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Return the findings of a certificate that the release alone does not show."""
    claimed = (Finding.from_dict(line) for line in claims["findings"])
    return tuple(finding for finding in claimed if finding.kind not in RECOUNTED)


def _is_listed(recounted: Finding, claimed: Sequence[Finding]) -> bool:
    """Return whether a certificate lists a finding, for all columns that it concerns."""
    alike = [finding for finding in claimed if RECOUNTED.get(finding.kind) == RECOUNTED[recounted.kind]]
    return bool(alike) and set(recounted.columns) <= {name for finding in alike for name in finding.columns}
