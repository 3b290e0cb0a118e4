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
    why = "" if claims["publication"] == verdict else "the findings of the certificate say otherwise"
    yield "publication", claims["publication"], verdict, not why, why
    recounted = [each for each in findings_of(evidence) if each.kind in RECOUNTED]
    missing = [each for each in recounted if not _is_listed(each, claimed)]
    names = [each.kind for each in claimed if each.kind in RECOUNTED]
    if missing:
        shown = " ".join(each.fact + "." for each in missing)
        yield "findings", names, [each.kind for each in recounted], False, f"the release shows more: {shown}"
    elif names or recounted:
        yield "findings", names, [each.kind for each in recounted], True, ""
    if any(each.kind not in RECOUNTED for each in claimed) or not claimed:
        yield "other findings", None, None, None, STATED


def stated_findings(claims: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Return the findings of a certificate that the release alone does not show."""
    claimed = (Finding.from_dict(line) for line in claims["findings"])
    return tuple(each for each in claimed if each.kind not in RECOUNTED)


def _is_listed(recounted: Finding, claimed: Sequence[Finding]) -> bool:
    """Return whether a certificate lists a finding, for all columns that it concerns."""
    alike = [each for each in claimed if RECOUNTED.get(each.kind) == RECOUNTED[recounted.kind]]
    return bool(alike) and set(recounted.columns) <= {name for each in alike for name in each.columns}
