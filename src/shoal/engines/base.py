"""The Engine protocol: count rows into a frequency table, and apply the solution of a search to the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.engines.data import ReleasedTable
from shoal.engines.dependence import Countable
from shoal.errors import DataError, PolicyError, no_column
from shoal.policy import Policy, Role
from shoal.recoding import Recoding
from shoal.tables.frequency import ClassOf, Counts, FrequencyTable

if TYPE_CHECKING:
    from shoal.engines.cells import Spellings
    from shoal.engines.codebook import Codebook
    from shoal.engines.formats.formulas import Formulas
    from shoal.engines.formats.layout import Dialect
    from shoal.engines.local import LocalEngine


@dataclass(frozen=True)
class Rows:
    """Released rows and the person behind each one (to count persons; never published)."""

    table: pa.Table
    persons: NDArray[np.int32] | None = None
    sources: NDArray[np.int64] | None = None  # the row of the original behind each released row; never published either
    notes: tuple[str, ...] = ()
    in_memory: ClassVar[bool] = True

    @property
    def counted(self) -> Groups | None:
        """The distinct rows and their counts, if they are known."""
        return None

    def with_counts(self) -> tuple[pa.Table, Counts]:
        """Return the rows, or distinct ones, and how often each occurs."""
        groups = self.counted
        return (self.table, np.ones(self.n_records, np.int64)) if groups is None else groups.with_counts()

    @property
    def columns(self) -> list[str]:
        """The names of the released columns."""
        return list(self.table.column_names)

    @property
    def schema(self) -> pa.Schema:
        """The types of the released columns."""
        return self.table.schema

    @property
    def n_records(self) -> int:
        """The number of released records."""
        return int(self.table.num_rows)


@dataclass(frozen=True)
class Groups:
    """Distinct rows of some columns, and the number of records of each."""

    table: pa.Table
    weight: str  # the column with the number of records
    person: str | None = None  # the column that identifies people

    def with_counts(self) -> tuple[pa.Table, Counts]:
        """Return the distinct rows without their counts, and the counts."""
        counts = np.asarray(self.table[self.weight]).astype(np.int64)
        return self.table.drop_columns([self.weight]), counts


@dataclass(frozen=True, eq=False)
class Query:
    """Released rows that stay in their engine: the query that produces them, and their expected counts.

    The query holds a mapping of all distinct tuples. It is made only if it is needed: a file can be written from the
    counts, if they cover all columns.
    """

    columns: list[str]
    groups: Groups
    recoded: Callable[[], Any]  # makes an Ibis table of the recoded rows, with all columns of the input
    ordered: Callable[[Any], Any]  # sorts such a table
    entity: str | None = None  # the column that identifies people
    notes: tuple[str, ...] = ()  # notes about how the rows are produced
    households: Groups | None = None  # the expected counts of quasi columns, households and persons, if requested
    # Counts all released columns, with those that were not counted; None if equal tuples become different rows.
    recounted: Callable[[], Groups] | None = None
    in_memory: ClassVar[bool] = False

    def __reduce__(self) -> Any:
        raise DataError(
            "rows that stay in their engine cannot be pickled", "save the release, or anonymize a table in memory"
        )

    @property
    def counted(self) -> Groups:
        """The counts that the rows will have."""
        return self.groups

    @cached_property
    def rows(self) -> Any:
        """The recoded rows, as an Ibis table with all columns of the input."""
        return self.recoded()

    @cached_property
    def unordered(self) -> Any:
        """The released rows before sorting, for counting."""
        return self.rows.select(*self.columns)

    @cached_property
    def expression(self) -> Any:
        """The released rows, sorted if that was asked for."""
        return self.ordered(self.unordered)

    @property
    def persons(self) -> Any:
        """The released rows with the column that identifies people, if there is one; counted, never written."""
        return None if self.entity is None else self.rows.select(*dict.fromkeys((*self.columns, self.entity)))

    @property
    def n_records(self) -> int:
        """The number of released records."""
        return int(np.asarray(self.groups.table[self.groups.weight]).sum())

    def with_counts(self) -> tuple[pa.Table, Counts]:
        """Return the distinct rows, and how often each occurs."""
        return self.groups.with_counts()


@dataclass(frozen=True, eq=False)
class Counted:
    """The result of one count: the frequency table for the search, and what ``apply`` needs to recode the rows."""

    table: FrequencyTable
    row_of: ClassOf  # (rows)  the row of the frequency table that each row belongs to
    rows: LocalEngine  # the rows in memory, or the distinct tuples of rows that stay in their engine
    apart: bool = False  # whether records that differ in a sensitive value or a person have separate rows
    raised: Mapping[str, Any] = field(default_factory=dict, repr=False)  # columns raised to meet a budget, and how
    notes: tuple[str, ...] = ()

    @property
    def n_records(self) -> int:
        """The number of counted records."""
        return self.rows.n_records

    @property
    def fingerprint(self) -> str:
        """A hash of the file or frame; for rows in a database, which have no order, a hash of their counts."""
        return self.rows.fingerprint


@dataclass(frozen=True, eq=False)
class WrittenFile:
    """A written file that was not yet renamed into place, with the rows that it should contain."""

    path: Path
    dialect: Dialect | None
    rows: Rows
    formulas: Formulas | None


Verify = Callable[[WrittenFile | Groups], None]  # takes a file, or the counts by an engine of the table it wrote


class Released:
    """A release made by an engine under a policy; its rows can be attacked, measured and displayed."""

    rows: Rows | Query
    engine: Engine
    policy: Policy

    @cached_property
    def table(self) -> ReleasedTable:
        """The released rows, in the same kind of frame as the input (pyarrow for a path, a query for an engine)."""
        return self.engine.shown(self.rows, self.policy)


class Engine(Countable, Protocol):
    """The place where the rows of a table live. It is stateless: ``count`` returns a value that ``apply`` takes."""

    @property
    def in_memory(self) -> bool:
        """Whether ``table`` holds the rows."""

    @property
    def table(self) -> pa.Table:
        """The rows; raises DataError if they stay in a database, a cluster or files."""

    def every_row(self) -> LocalEngine:
        """Return all rows in memory, each as often as it was counted; raise DataError if they stay elsewhere."""

    @property
    def text_columns(self) -> list[str]:
        """The columns that contain texts."""

    @property
    def codebook(self) -> Codebook:
        """The labels that the file contains."""

    @property
    def source(self) -> Any:
        """The file or folder that is read, which no release may overwrite; None if there is none."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about how the rows were read."""

    @property
    def fingerprint(self) -> str:
        """A hash of a file or frame; empty for a table in a database and for a folder."""

    @property
    def scattered(self) -> bool:
        """Whether the rows are in several files and therefore have no single order."""

    def reading(self, policy: Policy) -> Engine:
        """Return the rows with cells parsed as the policy spells them, without the columns that repeat ranges."""

    def spelled(self, spellings: Spellings) -> Engine:
        """Return the rows with cells parsed according to their spelling."""

    def coarsened(self, policy: Policy) -> Engine:
        """Return the rows with the sensitive values that the policy releases, where these are coarser."""

    def as_written(self, names: Sequence[str], policy: Policy) -> LocalEngine | None:
        """Return rows or a tally with some columns as they are stored; None if reading made no two cells equal.

        The columns that differ are named in its ``notes``.
        """

    # ── counted ──────────────────────────────────────────────────────────────────────────────────────────────

    def count(self, policy: Policy, outside: LocalEngine | None = None, *, apart: bool = False) -> Counted:
        """Count rows into a frequency table; the hierarchies of the quasi columns also cover the ``outside`` table."""

    def tallied(self, policy: Policy) -> LocalEngine:
        """Return the rows, or the distinct tuples of the columns that matter to a policy, with their counts."""

    def tally(self, names: Sequence[str], person: str | None = None) -> LocalEngine:
        """Return the rows, or the distinct tuples of some columns, with their counts."""

    def groups(self, names: Sequence[str]) -> Groups:
        """Return the distinct tuples of some columns, and the number of records of each."""

    def sampled(self, policy: Policy, n: int) -> tuple[LocalEngine, int] | None:
        """Return about ``n`` records, always the same ones, and the total number; None if that is too expensive."""

    def in_order(self, names: Sequence[str]) -> pa.Table | None:
        """Return some columns of all rows in their order; None if the rows have no order."""

    def first(self, n: int) -> pa.Table:
        """Return at most ``n`` of the rows, to be shown to the owner of the data."""

    def listed(self, names: Sequence[str]) -> tuple[LocalEngine, bool]:
        """Return at least some columns of all records, in memory, and whether they are in their original order."""

    # ── looked at ────────────────────────────────────────────────────────────────────────────────────────────

    def knowing(self, rows: LocalEngine, raised: Mapping[str, Any] | None = None) -> Countable:
        """Return the same columns; questions that ``rows``, a tally of them, can answer are not asked again."""

    def n_tuples(self, names: Sequence[str]) -> int:
        """Count the distinct tuples of some columns."""

    def n_distinct(self, names: Sequence[str]) -> dict[str, int]:
        """Count the distinct values of each of some columns, without nulls."""

    def some_values(self, name: str, n: int) -> tuple[pa.ChunkedArray, int, int]:
        """Return at most ``n`` values of a column, always the same; the number of non-null and of all records."""

    def crowds(self, names: Sequence[str]) -> tuple[int, int, int, int]:
        """Count records, tuples of some columns, records with a unique tuple, and pairs with equal tuples."""

    # ── recoded ──────────────────────────────────────────────────────────────────────────────────────────────

    def apply(self, counted: Counted, recoding: Recoding, policy: Policy) -> Rows | Query:
        """Recode the counted rows: identifiers are removed, quasi columns recoded, and rows put in hash order."""

    def recoded(
        self, rows: LocalEngine, labels: Mapping[str, pa.Array], kept: NDArray[np.bool_], policy: Policy
    ) -> Rows | Query:
        """Recode like ``apply``, given the new labels of each of ``rows``, a tally, and whether it is kept.

        Columns without ``labels`` stay unchanged.
        """

    def released(self, rows: Rows | Query, person: str | None = None) -> Engine:
        """Return an engine of released rows, with the column ``person`` of the input if that is given, for counting."""

    def shown(self, rows: Rows | Query, policy: Policy) -> ReleasedTable:
        """Return released rows in the input's kind of frame, with the bound columns that the policy asks for."""

    def digest(self, rows: Rows | Query, policy: Policy) -> str:
        """Return a hash of released rows."""

    def check_target(self, target: str, force: bool) -> None:
        """Raise errors about the target of ``write`` before the long computation; the input is never overwritten."""

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
        """Write to ``target``, let ``verify`` judge the result, then rename it into place; return a hash."""


def require_columns(present: Sequence[str], policy: Policy, *, removed_roles: Sequence[Role] = ()) -> None:
    """Require a role for every column and a column for every role, except for columns that may be ``gone``."""
    unnamed = [name for name in present if name not in policy.columns]
    absent = [
        name for name, column in policy.columns.items() if name not in present and column.role not in removed_roles
    ]
    if unnamed and len(unnamed) == len(present) > 1:  # without a header, its first record would be shown
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
            meant = no_column("the table", absent, unnamed, "check the spelling").hint
            hint = f"the policy has {_listed(absent)} instead: {meant} Or {hint}"
        raise PolicyError(f"{_listed(unnamed)} of the table {_is(unnamed)} not in the policy", hint, option=option)
    if absent:
        raise PolicyError(
            f"{_listed(absent)} of the policy {_is(absent)} not in the table",
            "check the spelling, and that the separator was recognized",
        )


def _listed(names: list[str]) -> str:
    rest = f" and {len(names) - 20} more" if len(names) > 20 else ""
    return ("columns " if len(names) > 1 else "column ") + ", ".join(map(repr, names[:20])) + rest


def _is(names: list[str]) -> str:
    return "are" if len(names) > 1 else "is"
