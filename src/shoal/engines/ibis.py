"""DuckDB, PostgreSQL and Spark through Ibis: one GROUP BY and one JOIN, run where the data are.

Only the frequency table leaves the engine: the distinct tuples of the quasi and sensitive columns (and of the one that
identifies people), each with its number of records. They are coded here like rows in memory, so hierarchies, codes and
searches are the same on every engine. A table of distinct tuples and their recoded values is sent back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from ibis.expr import types as ir
from ibis.expr.operations import DatabaseTable
from numpy.typing import NDArray

from shoal.compiled.grouping import group
from shoal.compiled.jit import loading_meanwhile
from shoal.engines.backends.base import TABLE, Backend
from shoal.engines.base import Counted, Groups, Query, Rows, Verify, require_columns
from shoal.engines.cells import Spellings, read_expression
from shoal.engines.codebook import NO_LABELS
from shoal.engines.fingerprints import digest_of_counts
from shoal.engines.formats.formulas import Formulas
from shoal.engines.formats.table_files import require_records
from shoal.engines.frames import with_plain_types
from shoal.engines.ibis_columns import IbisColumns, Inside, Partly
from shoal.engines.ibis_order import order_keys
from shoal.engines.joining import foreseen, join_dealt, join_recoded, labels_of, regrouped_and_recoded
from shoal.engines.local import LocalEngine, Texts, unchanged
from shoal.engines.run_length_rows import RunLengthRows, rows_from_counts
from shoal.engines.sql import unused
from shoal.engines.tuple_budget import Coarse, Domains, next_up
from shoal.errors import DataError, OutputError, PolicyError, VerificationError
from shoal.hierarchies.bounds import bound_columns, bound_names, present_bounds, require_true
from shoal.policy import Policy
from shoal.recoding import Recoding
from shoal.tables.frequency import packed

LARGE = 2**20  # bytes of a file, from some hundred thousand rows on
NO_ORDER = "rows have no order in an engine: with shuffle = false, their order is that of the engine"


class IbisEngine(IbisColumns):
    """A table in a database or a cluster, or in files that are read in pieces."""

    in_memory = False
    codebook = NO_LABELS  # tables of databases have none

    def __init__(
        self,
        table: ir.Table,
        backend: Backend,
        *,
        notes: tuple[str, ...] = (),
        source: Any = None,
        fingerprint: str = "",
        records: int | None = None,
        stand_ins: Mapping[str, ir.Table] | None = None,
        unread: tuple[IbisEngine, Spellings] | None = None,
    ) -> None:
        super().__init__(table, backend, stand_ins)
        self._unread = unread  # the rows before their cells were parsed, and how they were
        self.notes = notes
        self.source = source  # a file that no release may overwrite
        self.fingerprint = fingerprint  # of a file; a table in a database has none
        self._records = records  # records of a CSV file, as counted by the scan that accepted it

    def reading(self, policy: Policy) -> IbisEngine:
        """Return the rows with cells parsed as the policy spells them.

        Columns that repeat ranges are checked and left out.
        """
        bound_columns = present_bounds(self.columns, policy)
        for column, names in bound_columns.items():
            require_true(self.groups([column, *names]).table, column, names, policy)
        bounds = [name for names in bound_columns.values() for name in names]
        return (self._with(self.expression.drop(*bounds)) if bounds else self).spelled(policy.spellings)

    def spelled(self, spellings: Spellings) -> IbisEngine:
        """Return the rows with cells parsed according to their spelling."""
        if all(name not in spellings or spellings[name].is_plain for name in self.columns):
            return self
        return self._with(read_expression(self.expression, spellings), unread=(self, spellings))

    def coarsened(self, policy: Policy) -> IbisEngine:
        """Refuse to coarsen sensitive columns: their values are recoded in memory only."""
        if policy.coarsened:
            raise PolicyError(
                f"columns.{next(iter(policy.coarsened))}.released: sensitive values are coarsened in memory, and these "
                "rows stay in their engine",
                "coarsen the column in the database and leave released out, or use the local engine",
            )
        return self

    def as_written(self, names: Sequence[str], policy: Policy) -> LocalEngine | None:
        """Return a tally with some columns as they are stored; None if reading made no two cells equal."""
        before, spellings = self._unread or (self, {})
        stored = before.expression
        merging = [
            name
            for name in names
            if name in self.columns
            and ((name in spellings and not spellings[name].is_plain) or stored[name].type().is_floating())
        ]
        if not merging:
            return None
        copies = {name: unused(f"{name}_stored", self.columns) for name in merging}
        with_copies = stored.mutate(**{copy: before.backend.as_stored(stored[name]) for name, copy in copies.items()})
        parsed = self._with(read_expression(with_copies, spellings))
        merged = [name for name in merging if parsed.n_tuples([copies[name]]) > parsed.n_tuples([name])]
        if not merged:
            return None
        entity = policy.release.entity
        keys = [*names, *policy.sensitive, *([] if entity is None else [entity])]
        groups = parsed.groups([copies[name] if name in merged else name for name in keys])
        weights = np.asarray(groups.table[groups.weight]).astype(np.int64)
        table = groups.table.drop_columns([groups.weight]).rename_columns(keys)
        return LocalEngine(table, weights=weights, notes=tuple(merged))

    def _with(
        self,
        table: ir.Table,
        stand_ins: Mapping[str, ir.Table] | None = None,
        unread: tuple[IbisEngine, Spellings] | None = None,
    ) -> IbisEngine:
        return IbisEngine(
            table,
            self.backend,
            notes=self.notes,
            source=self.source,
            fingerprint=self.fingerprint,
            records=self._records,
            stand_ins=stand_ins,
            unread=self._unread if unread is None else unread,
        )

    @property
    def table(self) -> pa.Table:
        """Raise an error: the rows stay where they are."""
        raise DataError(
            "this needs the rows in memory, and they stay in their engine",
            "write the release to a file first, and use that file",
        )

    def every_row(self) -> LocalEngine:
        """Raise an error: the rows stay where they are."""
        return LocalEngine(self.table)

    @property
    def in_one_file(self) -> bool:
        """Whether the rows have an order: that of a file, if the backend can keep it."""
        return self.backend.keeps_order and self.source is not None and not Path(self.source).is_dir()

    @property
    def _is_large(self) -> bool:
        """Whether the rows are in files with so many of them that loops will be compiled."""
        if self.source is None or not self.backend.writes_files:  # otherwise it may be a path of a cluster
            return False
        path = Path(self.source)
        return path.is_dir() or (path.is_file() and path.stat().st_size > LARGE)

    @property
    def scattered(self) -> bool:
        """Whether the rows are in several files and therefore have no single order."""
        return self.source is not None and not self.in_one_file

    # ── one GROUP BY ─────────────────────────────────────────────────────────────────────────────────────────

    def count(self, policy: Policy, outside: LocalEngine | None = None, *, apart: bool = False) -> Counted:
        """Count rows into a frequency table like ``LocalEngine.count``, from the distinct tuples and their counts."""
        require_columns(self.columns, policy)
        notes = [] if policy.release.shuffle else [NO_ORDER]
        engine, counted_policy = self, policy
        covered: Texts | None = outside
        if policy.release.max_tuples is not None:
            engine, counted_policy, covered, level_notes = self._within_limit(
                policy.release.max_tuples, policy, outside
            )
            notes += level_notes
        with loading_meanwhile(worthwhile=self._is_large):
            local = engine.tallied(policy)
        named = set(local.columns)  # the others are never fetched; that they have a role was checked above
        counted = local.count(
            counted_policy.model_copy(
                update={"columns": {n: c for n, c in counted_policy.columns.items() if n in named}}
            ),
            covered,
            apart=apart,
        )
        return replace(counted, raised=engine.stand_ins, notes=tuple(notes))

    def _within_limit(
        self, limit: int, policy: Policy, outside: LocalEngine | None
    ) -> tuple[IbisEngine, Policy, Texts | None, list[str]]:
        """Raise columns until at most ``limit`` tuples are left; return the rows, policy, covered values and notes."""
        entity = policy.release.entity
        names = [*policy.quasi, *policy.sensitive, *([] if entity is None else [entity])]
        n = self.n_tuples(names)
        if n <= limit:
            return self, policy, outside, []
        n_all = n
        engine = self
        columns = {name: Coarse.of(name, self.groups([name]).table[name], policy, outside) for name in policy.quasi}
        lowest = {name: column.level for name, column in columns.items()}
        while n > limit:
            name = next_up(columns)
            if name is None:
                raise DataError(
                    f"{n} distinct tuples remain at the highest levels, but max_tuples is {limit}",
                    "raise max_tuples, or leave out a sensitive column or the entity",
                )
            columns[name] = replace(columns[name], level=columns[name].level + 1)
            engine = self._raising({**engine.stand_ins, name: self._stand_in(name, columns[name])})
            n = engine.n_tuples(names)
        raised = {name: column.level for name, column in columns.items() if column.level > lowest[name]}
        raised_columns = ", ".join(f"{name!r} from level {level}" for name, level in raised.items())
        note = (
            f"{n_all} distinct tuples exceed max_tuples = {limit}: counting started with {raised_columns}; releases "
            "with finer cells were not searched, and losses are relative to these levels"
        )
        columns_with_levels = {
            name: column.model_copy(update={"min_level": raised[name]}) if name in raised else column
            for name, column in policy.columns.items()
        }
        return engine, policy.model_copy(update={"columns": columns_with_levels}), Domains(columns, outside), [note]

    def _raising(self, stand_ins: Mapping[str, ir.Table]) -> IbisEngine:
        return self._with(self.expression, stand_ins) if stand_ins else self

    def _stand_in(self, name: str, column: Coarse) -> ir.Table:
        inside = Inside(self.columns)
        kind = self.backend.plain(self.expression[name], key=True).type()
        table = pa.table({inside.key(0): column.values, inside.label(name): column.stand_ins})
        return self.backend.upload(table, {inside.key(0): kind, inside.label(name): kind})

    def tallied(self, policy: Policy) -> LocalEngine:
        """Return the distinct tuples of the columns that matter to a policy, with their counts."""
        return self.tally([*policy.quasi, *policy.sensitive], policy.release.entity)

    def tally(self, names: Sequence[str], person: str | None = None) -> LocalEngine:
        """Return the distinct tuples of some columns, with their counts."""
        groups = self.groups([*names, *([] if person is None else [person])])
        weights = np.asarray(groups.table[groups.weight]).astype(np.int64)
        if self._records is not None:
            require_records(Path(self.source).name, int(weights.sum()), self._records)
        return LocalEngine(groups.table.drop_columns([groups.weight]), fingerprint=self.fingerprint, weights=weights)

    def sampled(self, policy: Policy, n: int) -> tuple[LocalEngine, int] | None:
        """Return all distinct tuples if there are at most ``n``, and the number of records."""
        entity = policy.release.entity
        if self.n_tuples([*policy.quasi, *policy.sensitive, *([] if entity is None else [entity])]) > n:
            return None
        rows = self.tallied(policy)
        return rows, rows.n_records

    def in_order(self, names: Sequence[str]) -> pa.Table | None:
        """Return some columns of all rows in the order of the file; None if the rows have no order."""
        if not self.in_one_file:
            return None
        rows = self.expression.select(**{name: self.backend.plain(self.expression[name], key=True) for name in names})
        return with_plain_types(self.backend.in_order(rows))

    def first(self, n: int) -> pa.Table:
        """Return any ``n`` rows, or fewer."""
        return self.backend.fetch(self.expression.limit(n))

    def listed(self, names: Sequence[str]) -> tuple[LocalEngine, bool]:
        """Return some columns of all records in memory: rows of a file, otherwise tuples as often as they occur."""
        present = [name for name in names if name in self.columns]
        if (rows := self.in_order(present)) is not None:
            return LocalEngine(rows), True
        groups = self.groups(present)
        n = np.asarray(groups.table[groups.weight]).astype(np.int64)
        table = groups.table.drop_columns([groups.weight]).take(pa.array(np.repeat(np.arange(len(n)), n)))
        return LocalEngine(table), False

    def knowing(self, rows: LocalEngine, raised: Mapping[str, Any] | None = None) -> Partly:
        """Return the same columns; questions that ``rows``, a tally of them, can answer are not asked again."""
        return Partly(self._raising(raised or {}), rows)

    # ── one JOIN ─────────────────────────────────────────────────────────────────────────────────────────────

    def apply(self, counted: Counted, recoding: Recoding, policy: Policy) -> Query:
        """Recode the counted rows: return a query that produces them, and their expected counts."""
        entity, row_of = policy.release.entity, counted.row_of
        groups = counted.rows.weighed(entity)
        parts = recoding.parts(counted.table)
        stars = bool(policy.release.suppressed == "keep" and parts.suppressed.any())
        changed = {
            values.hierarchy.column: labels_of(values, parts, j, stars)
            for j, values in enumerate(recoding.released)
            if stars or not unchanged(values)
        }
        is_kept = np.ones(len(parts.row), np.bool_) if stars else ~parts.suppressed
        splits_records = counted.apart
        keys = [
            *policy.quasi,
            *(policy.sensitive if splits_records else ()),
            *([entity] if splits_records and entity else []),
        ]
        source = self._raising(counted.raised)
        expected = foreseen(counted.rows, row_of, parts, changed, is_kept, policy)

        def normalized() -> ir.Table:
            return source.normalized(counted.rows.columns)

        def deal() -> ir.Table:
            return join_dealt(self.backend, normalized(), keys, groups, row_of, parts, changed, is_kept, policy)

        def join() -> ir.Table:
            return join_recoded(self.backend, normalized(), keys, groups, row_of, changed, is_kept)

        def regroup(names: Sequence[str]) -> Groups:
            return regrouped_and_recoded(self.backend, normalized(), keys, groups, row_of, changed, is_kept, names)

        if not (np.diff(parts.row) == 1).all():
            return self._released(deal, expected, policy)
        return self._released(join, expected, policy, regroup)

    def recoded(
        self, rows: LocalEngine, labels: Mapping[str, pa.Array], is_kept: NDArray[np.bool_], policy: Policy
    ) -> Query:
        """Recode like ``apply``, given the new labels of each of ``rows``, a tally, and whether it is kept.

        Tuples that differ only in sensitive values or persons are recoded alike. Columns without ``labels`` stay.
        """
        groups = rows.weighed(policy.release.entity)
        codes = np.column_stack([rows.coded(name).codes + 1 for name in policy.quasi]).astype(np.int32)
        class_of, firsts = group(packed(codes))
        changed = {name: of_tuple.take(pa.array(firsts)) for name, of_tuple in labels.items()}
        normalized, kept_classes = self.normalized(rows.columns), is_kept[firsts]
        join = partial(join_recoded, self.backend, normalized, policy.quasi, groups, class_of, changed, kept_classes)
        columns = {name: labels.get(name, groups.table[name]) for name in groups.table.column_names}
        expected = Groups(pa.table(columns).filter(pa.array(is_kept)), groups.weight, groups.person)
        return self._released(join, expected, policy)

    def _released(
        self,
        join: Callable[[], ir.Table],
        expected: Groups,
        policy: Policy,
        regroup: Callable[[Sequence[str]], Groups] | None = None,
    ) -> Query:
        shortage = self.backend.shortage
        names = [name for name in self.columns if policy.columns[name].role != "identifier"]
        entity, household = policy.release.entity, policy.release.household

        def ordered(table: ir.Table) -> ir.Table:
            return table.order_by(order_keys(table, policy.release.seed)) if policy.release.shuffle else table

        again = None if regroup is None else partial(regroup, names)
        released = Query(names, expected, join, ordered, entity, (shortage,) if shortage else (), recounted=again)
        if not self.backend.writes_files:
            released.rows  # noqa: B018  the rows are needed in any case: errors of the server come now
        if household is None:
            return released
        keys = [name for name in dict.fromkeys((household, entity)) if name is not None]
        return replace(released, households=self.groups([*policy.quasi, *keys], released.rows))

    # ── written once ─────────────────────────────────────────────────────────────────────────────────────────

    def released(self, rows: Rows | Query, person: str | None = None) -> IbisEngine:
        """Return an engine of released rows, with the column ``person`` of the input if that is given, for counting."""
        query = _query(rows)
        if person is None:
            return IbisEngine(query.unordered, self.backend)
        return IbisEngine(query.rows.select(*dict.fromkeys((*query.columns, person))), self.backend)

    def digest(self, rows: Rows | Query, policy: Policy) -> str:
        """Return a hash of the counts of the released rows."""
        return digest_of_counts(_query(rows).groups)

    def check_target(self, target: str, force: bool) -> None:
        """Raise errors about the target of ``write`` before the long computation; the input is never overwritten."""
        if target.startswith(TABLE):
            for table in self.expression.op().find(DatabaseTable):
                if self.backend.is_table(target, table.name, table.namespace.database):
                    raise OutputError(f"{target} is the input itself", "write to another table")
        if self.source is not None and not target.startswith(TABLE):
            source, goal = self.backend.resolved(str(self.source)), self.backend.resolved(target)
            if goal in (source, *source.parents):
                raise OutputError(f"{target} is the input itself, or the folder that it is in", "write to another one")
            if source in goal.parents:
                raise OutputError(
                    f"{target} is in the folder that is read", "write elsewhere, or it becomes a part of the table"
                )
        self.backend.check_target(target, force)

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
        """Write to ``target``, let ``verify`` judge its counts, then rename it into place; return a hash."""
        self.check_target(target, force)
        rows = _query(rows)
        names = [*policy.quasi, *policy.sensitive]
        written: list[Groups] = []
        in_order = self._repeated(rows, target, policy)
        columns_written = rows if in_order is not None else self.shown(rows, policy)

        def judge(table: ir.Table, typed: Callable[[pa.Table], pa.Table] = lambda groups: groups) -> None:
            if list(table.columns) != list(columns_written.columns):
                raise VerificationError(
                    "the columns of the written table differ from those of the release; nothing was released"
                )
            for column, bounds in bound_names(policy).items():
                require_true(self.groups([column, *bounds], table).table, column, bounds, policy)
            groups = self.groups(names, table)
            groups = Groups(typed(groups.table), groups.weight)
            written.append(groups)
            verify(groups if rows.persons is None else self._with_persons(rows, groups, policy))

        self.backend.write_as(policy, columns_written.columns)
        if in_order is None:
            file = self.backend.write(columns_written, target, force=force, judge=judge, formulas=formulas)
        else:
            file = self.backend.write_rows(in_order, target, force=force, judge=judge, formulas=formulas)
        return file or digest_of_counts(written[-1])

    def _repeated(self, rows: Query, target: str, policy: Policy) -> RunLengthRows | None:
        """Return the rows made from their counts, if these cover all columns and the query would return them alike."""
        if not self._is_sorted_file(target, policy):
            return None
        groups = rows.groups
        if not set(rows.columns) <= set(groups.table.column_names):
            compared = self.normalized(rows.columns).select(*rows.columns)
            if rows.recounted is None or not self.backend.repeats(compared, rows.n_records):
                return None
            groups = rows.recounted()
        types = self.backend.arrow_types(self.normalized(groups.table.column_names).select(*rows.columns))
        for name in rows.columns:  # recoded columns are texts
            if groups.table[name].type not in (types.field(name).type, pa.string()):
                return None
        return rows_from_counts(groups, rows.columns, policy.release.seed)

    def _is_sorted_file(self, target: str, policy: Policy) -> bool:
        """Return whether rows are written by this process, in hash order, with no columns but those of the input."""
        files = self.backend.writes_files and not target.startswith(TABLE)
        return files and policy.release.shuffle and not bound_names(policy)

    def shown(self, rows: Rows | Query, policy: Policy) -> ir.Table:
        """Return the released rows in the same order, with the bound columns that the policy asks for."""
        rows = _query(rows)
        bounds = bound_names(policy)
        if not bounds:
            return rows.expression
        table = rows.unordered
        names = list(table.columns)
        for column, new in bounds.items():
            table = self._with_bounds(table, column, new, rows.groups, policy)
        order = [name_written for name in names for name_written in (name, *bounds.get(name, ()))]
        table = table.select(*order)
        if policy.release.shuffle:
            table = table.order_by(order_keys(table.select(*names), policy.release.seed, columns_of=table))
        return table

    def _with_bounds(
        self, table: ir.Table, column: str, new: Sequence[str], groups: Groups, policy: Policy
    ) -> ir.Table:
        if not table[column].type().is_string():  # nothing was generalized: every value is its own range
            return table.mutate(**dict.fromkeys(new, table[column]))
        texts = list(LocalEngine(groups.table.select([column])).texts(column))
        key = unused("shoal_text", table.columns)
        uploaded = self.backend.upload(
            pa.table({key: pa.array(texts, pa.string()), **bound_columns(texts, column, policy)}), {}
        )
        joined = table.left_join(uploaded, table[column] == uploaded[key])
        with_bounds: ir.Table = joined.select(*table.columns, *new)
        return with_bounds

    def _with_persons(self, rows: Query, written: Groups, policy: Policy) -> Groups:
        """Add persons to the written rows. They are not written: they are counted on the rows of the source."""
        entity = policy.release.entity
        names = [*policy.quasi, *policy.sensitive]
        groups = self.groups([*names, str(entity)], rows.persons)
        without_persons = groups.table.group_by(names).aggregate([(groups.weight, "sum")])
        without_persons = without_persons.rename_columns([*names, written.weight])
        if digest_of_counts(Groups(without_persons, written.weight)) != digest_of_counts(written):
            raise VerificationError("the written rows are not those whose people were counted; nothing was released")
        return Groups(groups.table, groups.weight, entity)


def _query(rows: Rows | Query) -> Query:
    if not isinstance(rows, Query):
        raise TypeError("these rows are in memory")
    return rows
