"""The guesses worth reviewing first: those on which it depends how many records are unique."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shoal.inspection.companions import Battery
from shoal.policy.column import Role

if TYPE_CHECKING:
    from shoal.inspection.inspection import InspectedColumn

MAX_DECISIONS = 30  # columns that are tried with and without; in wide tables those with the most values

WORTH_MENTIONING = 0.01  # share of the records that must depend on a decision

CountUnique = Callable[[Sequence[str]], int]


@dataclass(frozen=True)
class Decision:
    """A guess worth reviewing, with the number of unique records that depends on it."""

    columns: tuple[str, ...]
    role: Role
    known: int  # unique records where others know the columns
    unknown: int  # and where they do not
    alone: int = 0  # records that columns of one kind single out by themselves

    @property
    def column(self) -> str:
        """The column, or the first of several that are one decision."""
        return self.columns[0]

    @property
    def change(self) -> int:
        """The number of records that are unique only if others know the columns."""
        return self.known - self.unknown

    @property
    def sentence(self) -> str:
        """The decision as a sentence."""
        if len(self.columns) == 1:
            name, noun, subject = self.column, "it", "it is"
        else:
            name = f"{self.column} … {self.columns[-1]} ({len(self.columns)} columns)"
            noun, subject = "them", "they are"
        if self.role == "quasi":
            return (
                f"{name}: unclear whether outsiders know {noun}, so {subject} generalized. If they know {noun}, "
                f"{self.known:,} records are unique; if not, {self.unknown:,}."
            )
        return (
            f"{name}: columns of one kind, such as answers of a survey; assumed that outsiders do not know {noun}, so "
            f"{subject} not generalized. If they know {noun}, {self.alone:,} records are unique by {noun} alone."
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "column": self.column,
            "columns": list(self.columns),
            "role": self.role,
            "known": self.known,
            "unknown": self.unknown,
            "alone": self.alone,
        }


def decisions(
    columns: Sequence[InspectedColumn], groups: Sequence[Battery], n_records: int, n_unique: CountUnique
) -> tuple[Decision, ...]:
    """Return the uncertain guesses that change how many records are unique, the most important one first.

    Columns of one kind that are published come first. Where no single column changes much, all unclear ones are one
    decision.
    """
    quasi = [column.name for column in columns if column.role == "quasi"]
    grouped = {name for group in groups for name in group.columns}
    unsure = [c for c in columns if c.sure == "unsure" and c.role == "quasi" and c.name not in grouped]
    unsure.sort(key=lambda column: -column.distinct)
    published = [_published(group.columns, quasi, n_unique) for group in groups]
    generalized = [_generalized((column.name,), quasi, n_unique) for column in unsure[:MAX_DECISIONS]]
    important = [decision for decision in generalized if decision.change > WORTH_MENTIONING * n_records]
    if not important and len(unsure) > 1:
        together = _generalized(tuple(column.name for column in unsure), quasi, n_unique)
        important = [together] if together.change > WORTH_MENTIONING * n_records else []
    important.sort(key=lambda decision: -decision.change)
    return (*(decision for decision in published if decision.alone), *important)


def _published(names: tuple[str, ...], quasi: Sequence[str], n_unique: CountUnique) -> Decision:
    return Decision(names, "sensitive", n_unique([*quasi, *names]), n_unique(quasi), n_unique(names))


def _generalized(names: tuple[str, ...], quasi: Sequence[str], n_unique: CountUnique) -> Decision:
    other_quasi = [name for name in quasi if name not in names]
    return Decision(names, "quasi", n_unique(quasi), n_unique(other_quasi))
