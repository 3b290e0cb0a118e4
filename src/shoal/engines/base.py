"""What an engine is: it counts rows into a frequency table, and carries the answer of a search back to the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.engines.dependence import Countable
from shoal.errors import DataError, PolicyError
from shoal.policy import Policy, Role
from shoal.recoding import Recoding
from shoal.table.frequency import ClassOf, FrequencyTable

if TYPE_CHECKING:
    from shoal.engines.cells import Spellings
    from shoal.engines.codebook import Codebook
    from shoal.engines.files.formulas import Formulas
    from shoal.engines.files.layout import Dialect
    from shoal.engines.local import LocalEngine


@dataclass(frozen=True)
class Rows:
    """Released rows, and who stands behind each (for counting persons; never published)."""

    table: pa.Table
    persons: NDArray[np.int32] | None = None
    sources: NDArray[np.int64] | None = None  # the row of the original that each was made of; never published either
    notes: tuple[str, ...] = ()

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
    notes: tuple[str, ...] = ()  # what there is to tell about making them

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


@dataclass(frozen=True, eq=False)
class Counted:
    """What one count found: the frequency table that a search answers, and what ``apply`` needs to carry it out."""

    table: FrequencyTable
    row_of: ClassOf  # (rows)  the row of the frequency table that each is in
    rows: LocalEngine  # the rows in memory, or the distinct tuples of those that stay in their engine
    apart: bool = False  # whether records that differ in a sensitive value or a person have rows of their own
    raised: Mapping[str, Any] = field(default_factory=dict, repr=False)  # columns that a budget raised, and how
    notes: tuple[str, ...] = ()

    @property
    def n_records(self) -> int:
        """Records that were counted."""
        return self.rows.n_records

    @property
    def fingerprint(self) -> str:
        """A hash of the file or the frame; of rows in a database, which have no order, a hash of their counts."""
        return self.rows.fingerprint


@dataclass(frozen=True, eq=False)
class WrittenFile:
    """A file that was written and has no name yet, beside the rows that should be in it."""

    path: Path
    dialect: Dialect | None
    rows: Rows
    formulas: Formulas | None


Verify = Callable[[WrittenFile | Groups], None]  # takes a file, or what an engine counted in the table it wrote


class Released:
    """What was made of the rows of an engine under a policy: its rows can be attacked, measured and shown."""

    rows: Rows | Query
    engine: Engine
    policy: Policy

    @cached_property
    def table(self) -> Any:
        """The released rows, as the kind of frame that came in (pyarrow for a path, a query for an engine)."""
        return self.engine.shown(self.rows, self.policy)


class Engine(Countable, Protocol):
    """Where the rows of a table live. It has no memory: ``count`` returns a value, and ``apply`` takes it."""

    @property
    def in_memory(self) -> bool:
        """Whether ``table`` has the rows."""

    @property
    def table(self) -> pa.Table:
        """The rows; raises DataError where they stay in a database, a cluster or in files."""

    @property
    def text_columns(self) -> list[str]:
        """The columns whose values are texts."""

    @property
    def codebook(self) -> Codebook:
        """Labels that the file has."""

    @property
    def source(self) -> Any:
        """The file or folder that is read, which no release may overwrite; None where there is none."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What there is to tell about reading the rows."""

    @property
    def scattered(self) -> bool:
        """Whether the rows lie in several files, so that they have no one order."""

    def reading(self, policy: Policy) -> Engine:
        """The same rows with cells read as the policy says they are spelled, without the columns beside ranges."""

    def spelled(self, spellings: Spellings) -> Engine:
        """The same rows with cells read as they are spelled."""

    # ── counted ──────────────────────────────────────────────────────────────────────────────────────────────

    def count(self, policy: Policy, outside: LocalEngine | None = None, *, apart: bool = False) -> Counted:
        """Rows to frequency table, with the hierarchies of the quasi columns, which cover the ``outside`` table too."""

    def tallied(self, policy: Policy) -> LocalEngine:
        """The rows, or the distinct tuples of the columns that matter to a policy, which stand for many each."""

    def tally(self, names: Sequence[str], person: str | None = None) -> LocalEngine:
        """The rows, or the distinct tuples of some columns, which stand for many each."""

    def groups(self, names: Sequence[str]) -> Groups:
        """The distinct tuples of some columns, and how many records have each."""

    def sampled(self, policy: Policy, n: int) -> tuple[LocalEngine, int] | None:
        """About ``n`` records, always the same, and how many there are; None where that takes too much."""

    def in_order(self, names: Sequence[str]) -> pa.Table | None:
        """Some columns of all rows, as these stand; None where they have no order."""

    def first(self, n: int) -> pa.Table:
        """At most ``n`` of the rows, to be shown to whoever holds them."""

    def listed(self, names: Sequence[str]) -> tuple[LocalEngine, bool]:
        """At least some columns of all records, in memory, and whether these stand in their own order."""

    # ── looked at ────────────────────────────────────────────────────────────────────────────────────────────

    def knowing(self, rows: LocalEngine, raised: Mapping[str, Any] | None = None) -> Countable:
        """The same columns; questions that ``rows``, a tally of them, can answer are not asked again."""

    def n_tuples(self, names: Sequence[str]) -> int:
        """Distinct tuples of some columns."""

    def n_distinct(self, names: Sequence[str]) -> dict[str, int]:
        """Distinct values of each of some columns; a null is none."""

    def some_values(self, name: str, n: int) -> tuple[pa.ChunkedArray, int, int]:
        """At most ``n`` values of a column, always the same; how many records have one, and how many there are."""

    def crowds(self, names: Sequence[str]) -> tuple[int, int, int, int]:
        """Of the tuples of some columns: records, tuples, records that are alone with theirs, pairs that share one."""

    # ── recoded ──────────────────────────────────────────────────────────────────────────────────────────────

    def apply(self, counted: Counted, recoding: Recoding, policy: Policy) -> Rows | Query:
        """The rows that were counted to released rows: identifiers gone, quasi columns recoded, in hash order."""

    def recoded(
        self, rows: LocalEngine, labels: Mapping[str, pa.Array], kept: NDArray[np.bool_], policy: Policy
    ) -> Rows | Query:
        """As ``apply``, where it is known what becomes of each of ``rows``, a tally, and whether it stays.

        Columns without ``labels`` stay as they are.
        """

    def released(self, rows: Rows | Query) -> Engine:
        """An engine of released rows."""

    def shown(self, rows: Rows | Query, policy: Policy) -> Any:
        """Released rows as the kind of frame that came in, with the columns beside ranges that the policy asks for."""

    def digest(self, rows: Rows | Query, policy: Policy) -> str:
        """A hash of released rows."""

    def check_target(self, target: str, force: bool) -> None:
        """Raise what ``write`` would raise about its target, before the long work; the input is never overwritten."""

    def write(
        self,
        rows: Rows | Query,
        target: str,
        policy: Policy,
        *,
        force: bool,
        verify: Verify,
        formulas: Formulas | None = None,
    ) -> str:
        """Write where ``target`` says, let ``verify`` judge what was written, then give it its name; a hash."""


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
        hint = "give each a role: identifier (removed), quasi, sensitive or plain (kept unchanged)"
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
