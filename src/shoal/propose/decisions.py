"""The guesses worth reviewing first: those on which it depends how many records are unique."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shoal.columns.companions import Battery
from shoal.policy.column import Role

if TYPE_CHECKING:
    from shoal.propose.inspection import InspectedColumn

MAX_DECISIONS = 30  # columns that are tried with and without; in wide tables those with the most values

CountUnique = Callable[[Sequence[str]], int]


@dataclass(frozen=True)
class Decision:
    """A guess worth reviewing, with the number of unique records that depends on it."""

    columns: tuple[str, ...]
    role: Role
    known: int  # unique records where others know the columns
    unknown: int  # and where they do not

    @property
    def column(self) -> str:
        """The column, or the first of several that are one decision."""
        return self.columns[0]

    @property
    def sentence(self) -> str:
        """The decision as a sentence."""
        if len(self.columns) == 1:
            name, them, they_are = self.column, "it", "it is"
        else:
            name = f"{self.column} … {self.columns[-1]} ({len(self.columns)} columns of one kind)"
            them, they_are = "them", "they are"
        guess = (
            f"unclear whether outsiders know {them}, so {they_are} generalized"
            if self.role == "quasi"
            else f"assumed that outsiders do not know {them}, so {they_are} published"
        )
        return f"{name}: {guess}. If they know {them}, {self.known:,} records are unique; if not, {self.unknown:,}."

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "column": self.column,
            "columns": list(self.columns),
            "role": self.role,
            "known": self.known,
            "unknown": self.unknown,
        }


def decisions(
    columns: Sequence[InspectedColumn], groups: Sequence[Battery], n_unique: CountUnique
) -> tuple[Decision, ...]:
    """Return the uncertain guesses that change how many records are unique, the most important one first."""
    quasi = [column.name for column in columns if column.role == "quasi"]
    grouped = {name for group in groups for name in group.columns}
    unsure = [c for c in columns if c.sure == "unsure" and c.role != "identifier" and c.name not in grouped]
    unsure.sort(key=lambda column: -column.distinct)
    roles = {column.name: column.role for column in columns}
    candidates = [*(group.columns for group in groups), *((column.name,) for column in unsure[:MAX_DECISIONS])]
    found = []
    for names in candidates:
        others = [name for name in quasi if name not in names]
        known, unknown = n_unique([*others, *names]), n_unique(others)
        if known != unknown:
            found.append(Decision(names, roles[names[0]], known, unknown))
    return tuple(sorted(found, key=lambda decision: decision.unknown - decision.known))
