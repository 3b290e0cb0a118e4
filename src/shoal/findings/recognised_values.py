"""Values that lead to a person by themselves, whatever the column is called: e-mail addresses, card numbers, places."""

from collections.abc import Iterator, Sequence

from shoal.findings.evidence import Evidence
from shoal.findings.kinds import finding
from shoal.hierarchies.formats import date_formats, sample
from shoal.inspection.recognised_values import coordinate_pairs, recognised
from shoal.models.finding import Finding


def identifying_values(evidence: Evidence) -> Iterator[Finding]:
    """Find plain and sensitive columns that hold identifiers, or points on a map."""
    texts = dict(_published_texts(evidence))
    for name, values in texts.items():
        identifiers = recognised(values)
        if identifiers is None:
            continue
        subject = "Some texts of column" if identifiers.inside else "Column"
        yield finding(
            "identifying-values",
            f"{subject} {name!r} {'contain' if identifiers.inside else 'contains'} {identifiers.kind}, which lead to "
            "persons",
            f'Remove them from {name!r}, or set role = "identifier" to remove the column',
            [name],
            identifiers.texts,
        )
    for first, second in coordinate_pairs(texts):
        yield finding(
            "identifying-values",
            f"Columns {first!r} and {second!r} are the coordinates of a point on the map, released as they are",
            'Set role = "quasi" for both, or remove them',
            [first, second],
        )


def _published_texts(evidence: Evidence) -> Iterator[tuple[str, Sequence[str]]]:
    """Return the texts of the columns that are released as they are; dates are no identifiers."""
    columns = [name for name in evidence.policy.having("plain") if name in evidence.published.columns]
    texts: list[tuple[str, Sequence[str | None]]] = [(name, evidence.published.texts(name)) for name in columns]
    for name, histogram in evidence.table.sensitive.items():
        if histogram.domain is not None:
            texts.append((name, histogram.domain.texts))
    for name, values in texts:
        filled = [text for text in values if text]
        if not date_formats(sample(filled)):
            yield name, filled
