"""The text of a proposed policy: every line with its reason, in sections that are written one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.errors import DataError
from shoal.inspection.roles import CROWD
from shoal.text import toml

if TYPE_CHECKING:
    from shoal.inspection.inspection import InspectedColumn, Inspection, Purpose

LARGE = 200_000  # records from which the proposal asks for mondrian: local would take minutes
GAIN, COMMON = 0.9, 0.5  # of limited-gain on columns of one kind, about which nothing is decided
CODES = 6  # of a codebook that the policy repeats beside a column


def is_large(records: int) -> bool:
    """Return whether a table has so many records that the proposal asks for a faster search."""
    return records > LARGE


def policy_text(inspection: Inspection) -> str:
    """Return the proposal as TOML, with the reason for each role."""
    if not inspection.having("quasi"):
        raise DataError(
            "no column can be published: all of them look like identifiers",
            "write a policy by hand, with roles for the columns that are not identifiers",
        )
    lines = [
        "# Proposed from names, shapes and counts of the columns: read it before you trust it.",
        "# Roles: identifier (removed), quasi (an outsider may know it: generalized),",
        "# sensitive (must not be learned: kept), plain (kept as it is).",
        *_strongest(inspection),
        *_decide(inspection),
        *(f"# {sentence}" for sentence in (inspection.keeping.sentences if inspection.keeping else ())),
        "",
        *([f"missing = {toml.value(inspection.missing)}  # read as missing values", ""] if inspection.missing else []),
        "[columns]",
        *(_line(column, inspection.purpose) for column in inspection.columns),
        "",
        "[[require]]",
        'model = "k-anonymity"',
        f"k = {max(1, min(CROWD, inspection.records))}",
        *_requirement_on_undecided(inspection),
        *_requirements_on_sensitive(inspection),
        "",
        "[release]",
        *_search(inspection),
        'objective = "loss"',
        'nulls = "category"         # a missing value is a value of its own',
        "seed = 0",
        *_entity(inspection),
    ]
    return "\n".join(lines) + "\n"


def _search(inspection: Inspection) -> list[str]:
    if inspection.purpose == "tables":
        return [
            'algorithm = "single_dimensional"   # the same bins everywhere, for tables and joins; where a class',
            "                           # would be too small, single cells are hidden",
        ]
    if is_large(inspection.records):
        return [
            f'algorithm = "mondrian"     # "local" has a smaller loss, but takes minutes beyond {LARGE:,} records',
            'dimension = "gain"',
        ]
    return ['algorithm = "local"        # each class is generalized separately, as little as possible']


def _entity(inspection: Inspection) -> list[str]:
    """The lines that name the entity: if people have several records, k must count people."""
    persons = "counts people: some have several records"
    homes = "also reports household risk"
    keys = {"entity": (inspection.entity, persons), "household": (inspection.household, homes)}
    return [f"{key} = {toml.string(name)}    # {comment}" for key, (name, comment) in keys.items() if name is not None]


def _strongest(inspection: Inspection) -> list[str]:
    lines = []
    for size in (1, 2, 3):
        for best in inspection.strongest(size, 1):
            names = ", ".join(map(toml.string, best.columns))
            lines.append(f"# Unique by {names}: {best.unique_ratio:.1%} of the records.")
    return lines


def _decide(inspection: Inspection) -> list[str]:
    if not inspection.decisions:
        return []
    return ["# Decide these first:", *(f"#   {toml.string(d.sentence)[1:-1]}" for d in inspection.decisions[:3])]


def _requirement_on_undecided(inspection: Inspection) -> list[str]:
    """The requirement on answers that are one decision: the loosest, because nobody has said what they are."""
    if not inspection.batteries:
        return []
    return [
        "",
        "# Until you decide on the columns of one kind: no class gives an answer away, unless at least",
        f"# {COMMON:.0%} of all records have it.",
        "[[require]]",
        'model = "limited-gain"     # of every sensitive column',
        f"gain = {GAIN}",
        f"common = {COMMON}",
    ]


def _requirements_on_sensitive(inspection: Inspection) -> list[str]:
    """The requirements on the sensitive columns, with what they cost; none where they were not tried."""
    protection = inspection.protection
    if protection is None:
        return []
    lines = ["", *(f"# {toml.string(sentence)[1:-1]}" for sentence in protection.sentences)]
    for i, fields in enumerate(protection.requirements):
        lines += [*([""] if i else []), "[[require]]"]
        lines += [f"{toml.key(name)} = {toml.value(value)}" for name, value in fields.items()]
    return lines


def _line(column: InspectedColumn, purpose: Purpose) -> str:
    fields = column.fields(purpose)
    values_kind = column.proposal.told if column.proposal else ""
    reading = f"; read as {values_kind}" if values_kind else ""
    comment = toml.string(f"{column.why}{_doubt(column)}{reading}{_codes(column)}")[1:-1]
    return f"{toml.key(column.name)} = {toml.value(fields)}  # {comment}"


def _codes(column: InspectedColumn) -> str:
    """List what the first codes mean according to the codebook."""
    meanings = [f"{code} = {label}" for code, label in column.categories[:CODES]]
    return f"; {', '.join([*meanings, *['…'][: len(column.categories) > CODES]])}" if meanings else ""


def _doubt(column: InspectedColumn) -> str:
    return " (unsure)" if column.sure == "unsure" else ""
