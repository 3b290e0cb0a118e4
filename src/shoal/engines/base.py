"""The two verbs of an engine: count rows into a frequency table, apply a recoding to rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.errors import DataError, PolicyError
from shoal.policy import Policy, Role
from shoal.recoding import Recoding
from shoal.table.bounds import with_bounds
from shoal.table.frequency import FrequencyTable


@dataclass(frozen=True)
class Rows:
    """Released rows, and who stands behind each (for counting persons; never published)."""

    table: pa.Table
    persons: NDArray[np.int32] | None = None
    sources: NDArray[np.int64] | None = None  # the row of the original that each was made of; never published either

    @property
    def columns(self) -> list[str]:
        """The names of the released columns."""
        return list(self.table.column_names)

    @property
    def n_records(self) -> int:
        """The number of released records."""
        return int(self.table.num_rows)


@dataclass(frozen=True)
class Groups:
    """Distinct rows of some columns, and how many records each stands for."""

    table: pa.Table
    weight: str  # the column with the number of records
    person: str | None = None  # the column that identifies people


@dataclass(frozen=True, eq=False)
class Query:
    """Released rows that stay in their engine: how they are made, and what they will count to."""

    expression: Any  # an Ibis table
    groups: Groups
    unordered: Any = None  # the same rows before they were put in order, for counting
    persons: Any = None  # the same with the column that identifies people; counted, never written
    households: Groups | None = None  # what its quasi columns, households and persons count to, where that is asked

    def __reduce__(self) -> Any:
        raise DataError(
            "rows that stay in their engine cannot be pickled", "save the release, or anonymize a table in memory"
        )

    @property
    def columns(self) -> list[str]:
        """The names of the released columns."""
        return list(self.expression.columns)

    @property
    def n_records(self) -> int:
        """The number of released records."""
        return int(np.asarray(self.groups.table[self.groups.weight]).sum())


class Released:
    """What was made of the rows of an engine under a policy: its rows can be attacked, measured and shown."""

    rows: Rows | Query
    engine: Any
    policy: Policy

    @cached_property
    def table(self) -> Any:
        """The released rows, as the kind of frame that came in (pyarrow for a path, a query for an engine)."""
        if isinstance(self.rows, Query):
            return self.engine.shown(self.rows, self.policy)
        return self.engine.back(with_bounds(self.rows.table, self.policy))


class Engine(Protocol):
    """Where the rows live."""

    def count(self, policy: Policy) -> FrequencyTable:
        """Rows to frequency table, with the hierarchies of the quasi columns."""

    def apply(self, recoding: Recoding, policy: Policy) -> Rows | Query:
        """Rows to released rows."""


def require_columns(present: Sequence[str], policy: Policy, *, gone: Sequence[Role] = ()) -> None:
    """Every column of the table has a role, and every column with a role is in the table, or may be ``gone``."""
    unnamed = [name for name in present if name not in policy.columns]
    absent = [name for name, column in policy.columns.items() if name not in present and column.role not in gone]
    if unnamed and len(unnamed) == len(present) > 1:  # without a header its first record would be shown
        raise PolicyError(
            f"none of the {len(present)} columns of the table is in the policy",
            f"the policy has {_listed(absent)}: does the table begin with a line of names?",
        )
    if unnamed:
        hint = "give each a role: identifier (removed), quasi, sensitive or plain (kept as it is)"
        option = None
        if absent and len(present) == 1:
            hint = "the table has this column only: if its separator was not recognized, name it"
            option = "--separator"
        elif absent:
            hint = f"the policy has {_listed(absent)} instead: check the spelling, or {hint}"
        raise PolicyError(f"{_listed(unnamed)} of the table {_is(unnamed)} not in the policy", hint, option=option)
    if absent:
        raise PolicyError(
            f"{_listed(absent)} of the policy {_is(absent)} not in the table",
            "check the spelling, and that the separator was recognized",
        )


def _listed(names: list[str]) -> str:
    return ("columns " if len(names) > 1 else "column ") + ", ".join(repr(name) for name in names)


def _is(names: list[str]) -> str:
    return "are" if len(names) > 1 else "is"
