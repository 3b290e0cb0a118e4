"""DuckDB, PostgreSQL and Spark through Ibis: one GROUP BY, one JOIN, written once, where the data is.

Nothing leaves the engine but the frequency table: the distinct tuples of the quasi and sensitive columns (and of the
one that identifies people), each with its number of records. They are coded here as if they were rows in memory, so
hierarchies, codes and searches are the same whatever engine counted. Back goes one table of distinct tuples and what
each becomes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
from ibis.expr import types as ir
from ibis.expr.operations import DatabaseTable
from numpy.typing import NDArray

from shoal.engines.backends.base import TABLE, Place
from shoal.engines.backends.duckdb import DuckDB
from shoal.engines.base import Groups, Query, require_columns
from shoal.engines.cells import Spellings, read_expression
from shoal.engines.dependence import Dependence, Spread, TellingPair, dependence_queries, spread_queries
from shoal.engines.files.formats import require_records
from shoal.engines.files.formulas import Formulas
from shoal.engines.fingerprints import digest_of_counts
from shoal.engines.frames import plain
from shoal.engines.local import LocalEngine, Texts, require_names_apart, unchanged
from shoal.engines.row_order import hash_order, md5
from shoal.engines.sql import unused
from shoal.engines.tuple_budget import Coarse, Domains, next_up
from shoal.errors import DataError, OutputError, VerificationError
from shoal.policy import Policy
from shoal.recoding import Parts, Recoding
from shoal.table.bounds import added, beside, require_true, there
from shoal.table.frequency import ClassOf, Counts, Domain, FrequencyTable, packed
from shoal.table.hierarchy import TOP
from shoal.table.kernels import group
from shoal.table.values import Values

TOGETHER = 16  # queries of one row that are asked for in one statement

NO_ORDER = "rows have no order in an engine: shuffle = false leaves them as it gives them"

Verify = Callable[[Groups], None]


class IbisEngine:
    """A table in a database or a cluster, or in files that are read in pieces."""

    def __init__(
        self,
        table: ir.Table,
        place: Place,
        *,
        notes: tuple[str, ...] = (),
        source: Any = None,
        fingerprint: str | None = None,
        records: int | None = None,
    ) -> None:
        require_names_apart(list(table.columns))
        self.expression = table
        self.place = place
        self.notes = notes
        self.source = source  # a file that no release may overwrite
        self._fingerprint = fingerprint
        self._records = records  # of a CSV file, as they were counted by the scan that accepted it
        self._stand_ins: dict[str, ir.Table] = {}  # where a budget raises columns, one value for all with a label
        self._counted: tuple[Groups, LocalEngine, bool] | None = None  # the last count, and whether it was apart

    def reading(self, policy: Policy) -> IbisEngine:
        """The same rows with cells read as the policy says they are spelled.

        Columns beside ranges, which repeat what these say, are checked and left out.
        """
        found = there(self.columns, policy)
        for column, names in found.items():
            require_true(self.groups([column, *names]).table, column, names, policy)
        gone = [name for names in found.values() for name in names]
        return (self._with(self.expression.drop(*gone)) if gone else self).spelled(policy.spellings)

    def spelled(self, spellings: Spellings) -> IbisEngine:
        """The same rows with cells read as they are spelled."""
        table = read_expression(self.expression, spellings)
        return self if table is self.expression else self._with(table)

    def _with(self, table: ir.Table) -> IbisEngine:
        return IbisEngine(
            table,
            self.place,
            notes=self.notes,
            source=self.source,
            fingerprint=self._fingerprint,
            records=self._records,
        )

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.expression.columns)

    @property
    def raised(self) -> frozenset[str]:
        """Columns that a budget made the last count take from a coarser level on."""
        return frozenset(self._stand_ins)

    @property
    def in_one_file(self) -> bool:
        """Whether the rows stand in an order: that of a file, which DuckDB can keep."""
        return isinstance(self.place, DuckDB) and self.source is not None and not Path(self.source).is_dir()

    @property
    def n_records(self) -> int:
        """Records of the table, as they were counted last."""
        return self._last[1].n_records

    @property
    def fingerprint(self) -> str:
        """Of the file, or of the frequency table: rows in a database have no order that a hash could follow."""
        return self._fingerprint or digest_of_counts(self._last[0])

    @property
    def _last(self) -> tuple[Groups, LocalEngine, bool]:
        if self._counted is None:
            raise ValueError("count the rows first: a recoding is an answer to a count")
        return self._counted

    # ── one GROUP BY ─────────────────────────────────────────────────────────────────────────────────────────

    def count(self, policy: Policy, outside: LocalEngine | None = None, *, apart: bool = False) -> FrequencyTable:
        """Rows to frequency table, as ``LocalEngine.count``: the distinct tuples come here, with their numbers."""
        require_columns(self.columns, policy)
        if not policy.release.shuffle:
            self._note(NO_ORDER)
        self._stand_ins = {}
        covered: Texts | None = outside
        if policy.release.max_tuples is not None:
            policy, covered = self._within(policy.release.max_tuples, policy, outside)
        local = self.tallied(policy)
        self._counted = self.last_groups, local, apart
        # The others never come here; that they have a role was asked above.
        named = set(local.columns)
        return local.count(
            policy.model_copy(update={"columns": {n: c for n, c in policy.columns.items() if n in named}}),
            covered,
            apart=apart,
        )

    def _within(self, limit: int, policy: Policy, outside: LocalEngine | None) -> tuple[Policy, Texts | None]:
        """Raise columns until no more than ``limit`` tuples are left; the policy of the levels that remain."""
        entity = policy.release.entity
        names = [*policy.quasi, *policy.sensitive, *([] if entity is None else [entity])]
        n = self.n_tuples(names)
        if n <= limit:
            return policy, outside
        n_all = n
        columns = {name: Coarse.of(name, self.groups([name]).table[name], policy, outside) for name in policy.quasi}
        lowest = {name: column.level for name, column in columns.items()}
        while n > limit:
            name = next_up(columns)
            if name is None:
                raise DataError(
                    f"{n} distinct tuples are left on the highest levels, and max_tuples is {limit}",
                    "raise max_tuples, or leave out a sensitive column or the entity",
                )
            columns[name] = replace(columns[name], level=columns[name].level + 1)
            self._stand_ins[name] = self._stand_in(name, columns[name])
            n = self.n_tuples(names)
        raised = {name: column.level for name, column in columns.items() if column.level > lowest[name]}
        told = ", ".join(f"{name!r} from level {level}" for name, level in raised.items())
        self._note(
            f"{n_all} distinct tuples exceed max_tuples = {limit}: counting started with {told}; releases with finer "
            "cells were not looked for, and losses count from there"
        )
        kept = {
            name: column.model_copy(update={"min_level": raised[name]}) if name in raised else column
            for name, column in policy.columns.items()
        }
        return policy.model_copy(update={"columns": kept}), Domains(columns, outside)

    def n_tuples(self, names: Sequence[str]) -> int:
        """Distinct tuples of some columns."""
        rows = self._told(names).select(*names).distinct()
        return int(self.place.fetch(rows.aggregate(n=rows.count()))["n"][0].as_py())

    def _stand_in(self, name: str, column: Coarse) -> ir.Table:
        inside = _Inside(self.columns)
        kind = self.place.plain(self.expression[name], key=True).type()
        table = pa.table({inside.key(0): column.values, inside.label(name): column.stand_ins})
        return self.place.upload(table, {inside.key(0): kind, inside.label(name): kind})

    def _note(self, text: str) -> None:
        self.notes = tuple(dict.fromkeys([*self.notes, text]))

    def tallied(self, policy: Policy) -> LocalEngine:
        """The distinct tuples of the columns that matter to a policy, as rows that each stand for many."""
        entity = policy.release.entity
        return self.tally([*policy.quasi, *policy.sensitive], entity)

    def tally(self, names: Sequence[str], person: str | None = None) -> LocalEngine:
        """The distinct tuples of some columns, as rows that each stand for many."""
        groups = self.groups([*names, *([] if person is None else [person])])
        weights = np.asarray(groups.table[groups.weight]).astype(np.int64)
        if self._records is not None:
            require_records(Path(self.source).name, int(weights.sum()), self._records)
        local = LocalEngine(groups.table.drop_columns([groups.weight]), fingerprint="", weights=weights)
        self._counted = Groups(groups.table, groups.weight, person), local, False
        return local

    @property
    def counted(self) -> tuple[FrequencyTable, ClassOf]:
        """The last count, and the row of each distinct tuple in it."""
        return self._last[1].counted

    @property
    def last_groups(self) -> Groups:
        """What was counted last."""
        return self._last[0]

    def groups(self, names: Sequence[str], table: ir.Table | None = None) -> Groups:
        """The distinct tuples of some columns, and how many records have each."""
        rows = self._told(names) if table is None else table
        weight = unused("n", names)
        return Groups(plain(self.place.fetch(rows.group_by(list(names)).agg(**{weight: rows.count()}))), weight)

    def in_order(self, names: Sequence[str]) -> pa.Table | None:
        """Some columns of all rows as they stand in the file; None where the rows are in none."""
        if not isinstance(self.place, DuckDB) or not self.in_one_file:
            return None
        rows = self.expression.select(**{name: self.place.plain(self.expression[name], key=True) for name in names})
        return plain(self.place.in_order(rows))

    def _told(self, keys: Sequence[str]) -> ir.Table:
        """The rows with values told apart as in memory: no NaN, no -0.0, and ``keys`` of types that come back equal."""
        rows = self.expression.select(
            **{name: self.place.plain(self.expression[name], key=name in keys) for name in self.columns}
        )
        inside = _Inside(self.columns)
        for raised, values in self._stand_ins.items():
            joined = rows.join(values, self.place.same(rows[raised], values[inside.key(0)]))
            label = values.columns[1]
            rows = joined.select(**{name: joined[label if name == raised else name] for name in self.columns})
        return rows

    # ── looked at ────────────────────────────────────────────────────────────────────────────────────────────

    def n_distinct(self, names: Sequence[str]) -> dict[str, int]:
        """Distinct values of each of some columns."""
        rows = self._told(names)
        found = self.place.fetch(rows.aggregate(**{name: rows[name].nunique() for name in names}))
        return {name: int(found[name][0].as_py()) for name in names}

    def some_values(self, name: str, n: int) -> tuple[pa.ChunkedArray, int, int]:
        """At most ``n`` values of a column, always the same; how many records have one, and how many there are."""
        rows = self._told([name])
        value = rows.filter(rows[name].notnull()).select(name).distinct()
        some = value.order_by(md5(value[name].cast(str))).limit(n)
        filled, records = unused("filled", [name]), unused("records", [name])
        counts = self.place.fetch(rows.aggregate(**{filled: rows[name].count(), records: rows.count()}))
        return plain(self.place.fetch(some))[name], int(counts[filled][0].as_py()), int(counts[records][0].as_py())

    def crowds(self, names: Sequence[str]) -> tuple[int, int, int, int]:
        """Of the tuples of some columns: records, tuples, records that are alone with theirs, pairs that share one."""
        rows = self._told(names)
        n = unused("n", names)
        tuples = rows.group_by(list(names)).agg(**{n: rows.count()})
        size = tuples[n]
        alone, pairs = ibis.ifelse(size == 1, 1, 0), (size * (size - 1)).cast("int64") // 2
        found = self.place.fetch(
            tuples.aggregate(
                records=size.sum().cast("int64"),
                tuples=tuples.count(),
                alone=alone.sum().cast("int64"),
                pairs=pairs.cast("int64").sum().cast("int64"),
            )
        )
        records, n_tuples, n_alone, n_pairs = (int(column[0].as_py()) for column in found.columns)
        return records, n_tuples, n_alone, n_pairs

    def spreads(self, names: Sequence[str]) -> dict[str, Spread]:
        """How well each of some columns tells the records apart; what was counted already is not asked for again."""
        far = [name for name in names if not self._has([name])]
        told = self._last[1].spreads([name for name in names if name not in far]) if len(far) < len(names) else {}
        for name, row in zip(far, self._asked(spread_queries(self._told(far), far)), strict=True):
            told[name] = Spread(row["records"], row["groups"], row["alone"])
        return {name: told[name] for name in names}

    def dependences(self, pairs: Sequence[TellingPair]) -> dict[TellingPair, Dependence]:
        """How far the first column of each pair tells the second; what was counted already is not asked for again."""
        far = [pair for pair in pairs if not self._has(pair)]
        told = self._last[1].dependences([pair for pair in pairs if pair not in far]) if len(far) < len(pairs) else {}
        rows = self._told(list(dict.fromkeys(name for pair in far for name in pair)))
        for pair, row in zip(far, self._asked(dependence_queries(rows, far)), strict=True):
            told[pair] = Dependence(row["records"], row["groups"], row["first"], row["second"], row["beyond"])
        return {pair: told[pair] for pair in pairs}

    def frequencies(self, name: str) -> Counts:
        """How often each value of a column occurs, the most frequent first; a null is a value."""
        if self._has([name]):
            return self._last[1].frequencies(name)
        groups = self.groups([name])
        return np.sort(np.asarray(groups.table[groups.weight]).astype(np.int64))[::-1]

    def texts(self, name: str) -> tuple[str, ...]:
        """The distinct values of a column, as text."""
        local = self._last[1] if self._has([name]) else LocalEngine(self.groups([name]).table, fingerprint="")
        return local.texts(name)

    def _has(self, names: Sequence[str]) -> bool:
        """Whether some columns are among those that were counted last."""
        return self._counted is not None and set(names) <= set(self._counted[1].columns)

    def _asked(self, queries: Sequence[ir.Table]) -> list[dict[str, int]]:
        """The rows of queries of one row each, in their order."""
        found: list[dict[str, int]] = []
        for i in range(0, len(queries), TOGETHER):
            some = queries[i : i + TOGETHER]
            rows = self.place.fetch(some[0] if len(some) == 1 else ibis.union(*some)).to_pylist()
            found += sorted(rows, key=lambda row: int(row["place"]))
        return found

    def domains(self, policy: Policy) -> dict[str, Domain]:
        """The sensitive columns' values, and how often each occurs in the whole table."""
        return self._last[1].domains(policy)

    # ── one JOIN ─────────────────────────────────────────────────────────────────────────────────────────────

    def apply(self, recoding: Recoding, policy: Policy) -> Query:
        """The rows counted last to released rows: a query that makes them, and what they will count to."""
        groups, local, apart = self._last
        table, row_of = local.counted
        parts = recoding.parts(table)
        stars = bool(policy.release.suppressed == "keep" and parts.suppressed.any())
        changed = {
            values.hierarchy.column: _labels(values, parts, j, stars)
            for j, values in enumerate(recoding.released)
            if stars or not unchanged(values)
        }
        kept = np.ones(len(parts.row), np.bool_) if stars else ~parts.suppressed
        entity = policy.release.entity
        keys = [*policy.quasi, *(policy.sensitive if apart else ()), *([entity] if apart and entity else [])]
        rows = self._told(local.columns)
        if (np.diff(parts.row) == 1).all():
            joined = self._joined(rows, keys, groups, row_of, changed, kept)
        else:
            joined = self._dealt(rows, keys, groups, row_of, parts, changed, kept, policy)
        foreseen = _foreseen(groups, local, row_of, parts, changed, kept, policy)
        return self._released(joined, foreseen, policy)

    def recoded(self, labels: Mapping[str, pa.Array], kept: NDArray[np.bool_], policy: Policy) -> Query:
        """As ``apply``, where it is known what becomes of each distinct tuple counted last, and whether it stays.

        Tuples that differ in sensitive values or persons only share their fate. Columns without ``labels`` stay.
        """
        groups, local, _ = self._last
        codes = np.column_stack([local.coded(name).codes + 1 for name in policy.quasi]).astype(np.int32)
        class_of, firsts = group(packed(codes))
        changed = {name: of_tuple.take(pa.array(firsts)) for name, of_tuple in labels.items()}
        joined = self._joined(self._told(local.columns), policy.quasi, groups, class_of, changed, kept[firsts])
        columns = {name: labels.get(name, groups.table[name]) for name in groups.table.column_names}
        foreseen = Groups(pa.table(columns).filter(pa.array(kept)), groups.weight, groups.person)
        return self._released(joined, foreseen, policy)

    def _released(self, joined: ir.Table, foreseen: Groups, policy: Policy) -> Query:
        if isinstance(self.place, DuckDB) and (shortage := self.place.shortage):
            self._note(shortage)
        names = [name for name in self.columns if policy.columns[name].role != "identifier"]
        released = unordered = joined.select(*names)
        if policy.release.shuffle:
            released = released.order_by(hash_order(released, policy.release.seed))
        entity, household = policy.release.entity, policy.release.household
        keys = [name for name in dict.fromkeys((household, entity)) if name is not None]
        homes = None if household is None else self.groups([*policy.quasi, *keys], joined)
        persons = None if entity is None else joined.select(*names, entity)
        return Query(released, foreseen, unordered, persons, homes)

    def _joined(
        self,
        rows: ir.Table,
        keys: Sequence[str],
        groups: Groups,
        part_of: NDArray[np.int64],
        changed: dict[str, pa.Array],
        kept: NDArray[np.bool_],
    ) -> ir.Table:
        """Every tuple has one part: what it becomes stands beside it."""
        inside = _Inside(rows.columns)
        own = {inside.key(j): groups.table[name] for j, name in enumerate(keys)}
        distinct = pa.table(own | {inside.row: part_of}).group_by([*own, inside.row]).aggregate([])
        part = distinct[inside.row].to_numpy()
        distinct = distinct.filter(pa.array(kept[part]))
        part = part[kept[part]]
        for name, labels in changed.items():
            distinct = distinct.append_column(inside.label(name), labels.take(pa.array(part)))
        types = {inside.key(j): rows[name].type() for j, name in enumerate(keys)}
        mapping = self.place.upload(distinct.drop_columns([inside.row]), types)
        joined = rows.join(mapping, [self.place.same(rows[k], mapping[inside.key(j)]) for j, k in enumerate(keys)])
        return _relabelled(joined, rows.columns, changed, inside)

    def _dealt(
        self,
        rows: ir.Table,
        keys: Sequence[str],
        groups: Groups,
        row_of: NDArray[np.int64],
        parts: Parts,
        changed: dict[str, pa.Array],
        kept: NDArray[np.bool_],
        policy: Policy,
    ) -> ir.Table:
        """Where equals part ways, the order of a keyed hash deals them out: a second join, by place in that order."""
        inside = _Inside(rows.columns)
        own = {inside.key(j): groups.table[name] for j, name in enumerate(keys)}
        distinct = pa.table(own | {inside.row: row_of}).group_by([*own, inside.row]).aggregate([])
        types = {inside.key(j): rows[name].type() for j, name in enumerate(keys)}
        numbered = self.place.upload(distinct, types)
        found = rows.join(numbered, [self.place.same(rows[k], numbered[inside.key(j)]) for j, k in enumerate(keys)])
        found = found.select(*rows.columns, inside.row)
        order = hash_order(found.select(*rows.columns), policy.release.seed, of=found)
        place = ibis.row_number().over(group_by=found[inside.row], order_by=order)
        found = found.mutate(**{inside.place: place})

        last = np.cumsum(parts.counts)
        first_of_row = np.concatenate([[True], np.diff(parts.row) != 0])
        before = (last - parts.counts)[first_of_row][np.cumsum(first_of_row) - 1]
        bounds = pa.table(
            {
                inside.part: parts.row,
                inside.first: last - parts.counts - before,
                inside.last: last - before,
                **{inside.label(name): labels for name, labels in changed.items()},
            }
        )
        fates = self.place.upload(bounds.filter(pa.array(kept)), {})
        joined = found.join(
            fates,
            [
                found[inside.row] == fates[inside.part],
                found[inside.place] >= fates[inside.first],
                found[inside.place] < fates[inside.last],
            ],
        )
        return _relabelled(joined, rows.columns, changed, inside)

    def check_target(self, target: str, force: bool) -> None:
        """Raise what ``write`` would raise about its target, before the long work; the input is never overwritten."""
        for table in self.expression.op().find(DatabaseTable):
            if self.place.is_table(target, table.name, table.namespace.database):
                raise OutputError(f"{target} is the input itself", "write to another table")
        if self.source is not None and not target.startswith(TABLE):
            here, there = self.place.resolved(str(self.source)), self.place.resolved(target)
            if there in (here, *here.parents):
                raise OutputError(f"{target} is the input itself, or the folder that it is in", "write to another one")
            if here in there.parents:
                raise OutputError(
                    f"{target} is in the folder that is read", "write elsewhere, or it becomes a part of the table"
                )
        self.place.check_target(target, force)

    # ── written once ─────────────────────────────────────────────────────────────────────────────────────────

    def write(
        self,
        rows: Query,
        target: str,
        policy: Policy,
        *,
        force: bool,
        verify: Verify,
        formulas: Formulas | None = None,
    ) -> str:
        """Write where ``target`` says, let ``verify`` judge what is counted there, then give it its name; a hash."""
        self.check_target(target, force)
        names = [*policy.quasi, *policy.sensitive]
        written: list[Groups] = []

        shown = self.shown(rows, policy)

        def judge(table: ir.Table, typed: Callable[[pa.Table], pa.Table] = lambda groups: groups) -> None:
            if list(table.columns) != list(shown.columns):
                raise VerificationError("what was written has other columns than the release; nothing was released")
            for column, more in added(policy).items():
                require_true(self.groups([column, *more], table).table, column, more, policy)
            found = self.groups(names, table)
            found = Groups(typed(found.table), found.weight)
            written.append(found)
            verify(found if rows.persons is None else self._with_persons(rows, found, policy))

        if formulas is not None and isinstance(self.place, DuckDB):  # no other writes text
            return self.place.write(shown, target, force=force, judge=judge, formulas=formulas)
        return self.place.write(shown, target, force=force, judge=judge) or digest_of_counts(written[-1])

    def shown(self, rows: Query, policy: Policy) -> ir.Table:
        """The released rows with the columns beside ranges that the policy asks for, in the same order."""
        more = added(policy)
        if not more:
            return rows.expression
        table = rows.unordered
        names = list(table.columns)
        for column, new in more.items():
            table = self._beside(table, column, new, rows.groups, policy)
        order = [of for name in names for of in (name, *more.get(name, ()))]
        table = table.select(*order)
        if policy.release.shuffle:
            table = table.order_by(hash_order(table.select(*names), policy.release.seed, of=table))
        return table

    def _beside(self, table: ir.Table, column: str, new: Sequence[str], groups: Groups, policy: Policy) -> ir.Table:
        if not table[column].type().is_string():  # nothing was generalized: every value is its own range
            return table.mutate(**dict.fromkeys(new, table[column]))
        texts = list(LocalEngine(groups.table.select([column]), fingerprint="").texts(column))
        key = unused("shoal_text", table.columns)
        said = self.place.upload(pa.table({key: pa.array(texts, pa.string()), **beside(texts, column, policy)}), {})
        joined = table.left_join(said, table[column] == said[key])
        found: ir.Table = joined.select(*table.columns, *new)
        return found

    def _with_persons(self, rows: Query, written: Groups, policy: Policy) -> Groups:
        """Who stands behind the written rows. Persons are not written: they are counted on what the rows come from."""
        entity = policy.release.entity
        names = [*policy.quasi, *policy.sensitive]
        groups = self.groups([*names, str(entity)], rows.persons)
        without = groups.table.group_by(names).aggregate([(groups.weight, "sum")])
        without = without.rename_columns([*names, written.weight])
        if digest_of_counts(Groups(without, written.weight)) != digest_of_counts(written):
            raise VerificationError("the written rows are not those whose persons were counted; nothing was released")
        return Groups(groups.table, groups.weight, entity)

    @cached_property
    def table(self) -> pa.Table:
        """No: rows stay where they are."""
        raise DataError(
            "this needs the rows in memory, and they stay in their engine",
            "write the release to a file first, and use that file",
        )


class _Inside:
    """Names of columns that go along with the rows inside a query, and never come out."""

    def __init__(self, taken: Sequence[str]) -> None:
        self._taken = list(taken)
        self._labels: dict[str, str] = {}
        names = ("shoal_row", "shoal_place", "shoal_part", "shoal_first", "shoal_last")
        self.row, self.place, self.part, self.first, self.last = (unused(name, taken) for name in names)

    def key(self, j: int) -> str:
        return unused(f"shoal_key_{j}", self._taken)

    def label(self, column: str) -> str:
        return self._labels.setdefault(column, unused(f"shoal_label_{len(self._labels)}", self._taken))


def _relabelled(joined: Any, columns: Sequence[str], changed: dict[str, pa.Array], inside: _Inside) -> ir.Table:
    """The rows as they were, with the released value in the place of what it replaces."""
    shown: ir.Table = joined.select(
        **{name: joined[inside.label(name)] if name in changed else joined[name] for name in columns}
    )
    return shown


def _labels(values: Values, parts: Parts, j: int, stars: bool) -> pa.Array:
    """What is released for each part in one column."""
    labels = pa.array([*values.labels, TOP], pa.string())
    codes = np.where(parts.suppressed, len(values.labels), parts.codes[:, j]) if stars else parts.codes[:, j]
    return labels.take(pa.array(codes))


def _foreseen(
    groups: Groups,
    local: LocalEngine,
    row_of: NDArray[np.int64],
    parts: Parts,
    changed: dict[str, pa.Array],
    kept: NDArray[np.bool_],
    policy: Policy,
) -> Groups:
    """What the released rows will count to, from the frequency table alone."""
    if (np.diff(parts.row) == 1).all():
        part, tuples, weights = row_of, np.arange(len(row_of)), np.asarray(local.weights)
    else:  # all tuples of a row have the same leaves, sensitive values and person: any stands for them
        part = np.arange(len(parts.row))
        tuples = np.empty(int(parts.row[-1]) + 1, np.int64)
        tuples[row_of] = np.arange(len(row_of))
        tuples, weights = tuples[parts.row], parts.counts
    chosen = kept[part]
    part, tuples, weights = part[chosen], tuples[chosen], weights[chosen]
    names = [*policy.quasi, *policy.sensitive, *([] if groups.person is None else [groups.person])]
    columns = {
        name: changed[name].take(pa.array(part)) if name in changed else local.table[name].take(pa.array(tuples))
        for name in names
    }
    weight: Counts = weights.astype(np.int64)
    return Groups(pa.table({**columns, groups.weight: weight}), groups.weight, groups.person)
