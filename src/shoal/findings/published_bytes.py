"""What a published file tells beside the values that are judged: other content, and other spellings of a value."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.findings.evidence import Evidence
from shoal.findings.kinds import finding
from shoal.models.finding import Finding
from shoal.text.figures import format_list


def beside_the_table(evidence: Evidence) -> Iterator[Finding]:
    """Find content of the file that is published and not counted, such as further sheets."""
    for extra in evidence.beside:
        yield finding(
            "beside-the-table",
            extra.fact,
            extra.remedy,
            extra.columns,
            severity="stop" if extra.about_people else "decide",
        )


def stored_cells(evidence: Evidence) -> Iterator[Finding]:
    """Find quasi-identifiers in which one value is stored in several ways, which tell people apart."""
    if names := evidence.spelled:
        single = len(names) == 1
        yield finding(
            "stored-cells",
            f"{'Column' if single else 'Columns'} {format_list([repr(name) for name in names])} "
            f"{'has' if single else 'have'} several spellings of one value, which tell people apart: classes were "
            "counted by the cells as they are stored",
            "Write each value in one way, as shoal does in a release",
            names,
        )
