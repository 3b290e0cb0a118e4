"""The result of an inspection: what each column holds and its guessed role, and the decisions that matter most."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from shoal.inspection.decisions import Decision
from shoal.inspection.hierarchy_proposal import Proposal
from shoal.inspection.policy_text import LARGE, is_large, policy_text
from shoal.inspection.roles import Kind, Sure
from shoal.inspection.sensitive import Protection, SensitiveColumn
from shoal.inspection.uniqueness import Separation
from shoal.policy import Policy
from shoal.policy.column import Role
from shoal.text.showing import Shown

if TYPE_CHECKING:
    from shoal.inspection.keeping import Keeping

Purpose = Literal["analysis", "tables"]

NEEDED = 5  # quasi columns above which the proposal for tables wants to know which ones matter
LISTED = 12  # names of columns in one sentence
CONSEQUENCES: dict[Role, str] = {
    "identifier": "removed",
    "quasi": "generalized",
    "sensitive": "not generalized with the others",
    "plain": "published as it is",
}


@dataclass(frozen=True)
class InspectedColumn:
    """The contents of a column and its guessed role."""

    name: str
    kind: Kind
    distinct: int
    nulls: int
    role: Role
    reason: str
    sure: Sure
    proposal: Proposal | None = None  # for quasi columns
    weight: float = 1.0
    missing: tuple[str, ...] | None = None  # where not all of the table's texts for missing values are some here
    decimal: str = "."
    thousands: str | None = None
    label: str = ""  # in the codebook of the file
    categories: tuple[tuple[str, str], ...] = ()  # labels of its values there
    guard: SensitiveColumn | None = None  # what protects a sensitive column

    @property
    def why(self) -> str:
        """The reason, after what the codebook says about the column."""
        return f"{self.label}: {self.reason}" if self.label else self.reason

    def fields(self, purpose: Purpose) -> dict[str, Any]:
        """The column as a policy writes it."""
        fields: dict[str, Any] = {"role": self.role}
        if self.proposal is not None:
            fields |= (self.proposal if purpose == "analysis" else self.proposal.for_one_cut()).fields()
        if self.weight != 1:
            fields["weight"] = self.weight
        if self.guard is not None and self.guard.released is not None:
            fields["released"] = self.guard.released.model_dump(mode="json", exclude_none=True)
        if self.missing is not None:
            fields["missing"] = self.missing
        if self.decimal != ".":
            fields["decimal"] = self.decimal
        if self.thousands is not None:
            fields["thousands"] = self.thousands
        return fields


@dataclass(frozen=True)
class Inspection(Shown):
    """The result of an inspection; ``policy`` can be run, ``toml`` is the same as text to edit."""

    records: int
    columns: tuple[InspectedColumn, ...]
    separations: tuple[Separation, ...]  # single quasi columns, pairs, triples; of each the strongest first
    entity: str | None = None  # the column that identifies people, if some have several records
    household: str | None = None  # the column that tells households apart
    decisions: tuple[Decision, ...] = ()  # the guesses that matter most, first
    purpose: Purpose = "analysis"
    missing: tuple[str, ...] = ()  # texts that seem to stand for missing values; the figures count them so
    batteries: tuple[tuple[str, ...], ...] = ()  # columns of one kind, such as answers: each group is one decision
    remarks: tuple[str, ...] = ()  # what else the publisher should know before using the proposal
    keeping: Keeping | None = None  # what it costs the others that some columns are kept fine
    protection: Protection | None = None  # of the sensitive columns

    def having(self, role: Role) -> tuple[str, ...]:
        """Return the columns with this role."""
        return tuple(column.name for column in self.columns if column.role == role)

    @property
    def notes(self) -> tuple[str, ...]:
        """How cells were read, what columns were read as, and which search suits the size; the policy says so too."""
        notes = list(self.remarks)
        if self.purpose == "analysis" and is_large(self.records):
            notes.append(
                f"more than {LARGE:,} records: the policy uses mondrian by gain, which is fast; local has a "
                "smaller loss but would take minutes"
            )
        quasi = self.having("quasi")
        if self.purpose == "tables" and len(quasi) > NEEDED and all(column.weight == 1 for column in self.columns):
            notes.append(
                f"the same bins for {len(quasi)} columns are coarse: say which columns the tables need (keep), and "
                "give columns that they do not need the role identifier, which removes them"
            )
        if self.keeping is None and any(column.weight != 1 for column in self.columns):
            notes.append(
                "what it costs the other columns that some are kept fine was not measured: too many tuples in the "
                "engine, or no quick answer"
            )
        if self.missing:
            texts = ", ".join(repr(text) if text else "blanks" for text in self.missing)
            notes.append(f"read as missing values, as the policy proposes: {texts}")
        for column in self.columns:
            if column.proposal is not None and column.proposal.told:
                notes.append(f"column {column.name!r}: read as {column.proposal.told}")
            marks = [f"decimal {column.decimal!r}"] if column.decimal != "." else []
            marks += [f"thousands {column.thousands!r}"] if column.thousands else []
            if marks:
                notes.append(f"column {column.name!r}: numbers are written with {' and '.join(marks)}")
        return tuple(notes)

    def proposed_roles(self, named: Collection[str]) -> tuple[tuple[str, str], ...]:
        """Say which roles were proposed for the columns that are not ``named``, and what to do; empty if for none."""
        parts = []
        for role, consequence in CONSEQUENCES.items():
            names = [name for name in self.having(role) if name not in named]
            if names:
                listed = ", ".join(map(repr, names[:LISTED]))
                remaining = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
                parts.append(f"{role} ({consequence}): {listed}{remaining}")
        fact = f"Columns without a given role were judged by their names and values: {'; '.join(parts)}"
        return ((fact, "To decide otherwise, name them in quasi, sensitive or plain"),) if parts else ()

    def strongest(self, size: int, limit: int = 5) -> tuple[Separation, ...]:
        """Return the sets of ``size`` columns that identify the most people."""
        return tuple(s for s in self.separations if len(s.columns) == size)[:limit]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        columns = [
            {
                **{name: value for name, value in asdict(replace(column, proposal=None)).items() if name != "guard"},
                "proposal": column.proposal and column.proposal.fields(),
            }
            for column in self.columns
        ]
        return {
            "records": self.records,
            "missing": list(self.missing),
            "columns": columns,
            "separations": [separation.as_dict() for separation in self.separations],
            "batteries": [list(names) for names in self.batteries],
            "remarks": list(self.remarks),
            "entity": self.entity,
            "household": self.household,
            "decisions": [decision.as_dict() for decision in self.decisions],
            "keeping": self.keeping and self.keeping.as_dict(),
            "protection": self.protection and self.protection.as_dict(),
        }

    @property
    def policy(self) -> Policy:
        """The proposal, to be run or edited in code."""
        return Policy.parse(self.toml())

    def toml(self) -> str:
        """The proposal as TOML, with the reason for each role."""
        return policy_text(self)
