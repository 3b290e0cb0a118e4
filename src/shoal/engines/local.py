"""Frames and files in memory, with Arrow and Numba."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.compiled.grouping import group
from shoal.compiled.threads import done_in_parts
from shoal.engines import frames
from shoal.engines.base import Counted, Query, Rows, Verify, WrittenFile, require_columns
from shoal.engines.cells import Spellings, coarsened_table, read_table
from shoal.engines.codebook import Codebook
from shoal.engines.coded_rows import CodedColumn, decoded_table, is_worth_coding, order_of_codes
from shoal.engines.counted_rows import CountedRows, Origins
from shoal.engines.data import Data
from shoal.engines.fingerprints import digest_of_counts
from shoal.engines.formats import table_files
from shoal.engines.formats.dialects import comma_columns, dialect_for
from shoal.engines.formats.formulas import Formulas, unescaped
from shoal.engines.formats.layout import Dialect
from shoal.engines.formats.raw_cells import n_distinct, raw_columns
from shoal.engines.local_columns import LocalColumns, repeated_rows
from shoal.engines.row_order import hash_order, order_of_distinct
from shoal.engines.run_length_rows import RunLengthRows
from shoal.errors import DataError, MissingValueError, OutputError, PolicyError, no_column
from shoal.hierarchies import builders
from shoal.hierarchies.bounds import bound_names, distinct_rows, present_bounds, require_true, with_bounds
from shoal.hierarchies.hierarchy import TOP, Hierarchy
from shoal.hierarchies.spelling import Spelling
from shoal.notation import codec
from shoal.policy import Policy
from shoal.recoding import Parts, Recoding
from shoal.tables.domain import domain_of
from shoal.tables.frequency import ClassOf, Codes, Counts, Domain, FrequencyTable, count_records, packed
from shoal.tables.values import Values


class Texts(Protocol):
    """Values outside the table that its hierarchies must also cover."""

    @property
    def columns(self) -> Sequence[str]:
        """The names of the columns read."""

    def coded(self, name: str, /) -> codec.Coded:
        """Return the texts of a column, and whether it has nulls."""


MANY_ROWS = 2**16  # rows from which on a release is kept as its distinct rows and counts, and two threads code columns


def _as_it_is(table: pa.Table) -> pa.Table:
    return table


class LocalEngine(LocalColumns):
    """A table in memory; or a tally, the distinct tuples of a table elsewhere with their counts."""

    in_memory = True
    scattered = False

    def __init__(
        self,
        table: pa.Table,
        *,
        fingerprint: str = "",
        back: Callable[[pa.Table], Any] = _as_it_is,
        dialect: Dialect | None = None,
        notes: tuple[str, ...] = (),
        source: Path | None = None,
        weights: Counts | None = None,
        codebook: Codebook | None = None,
        coarse: frozenset[str] = frozenset(),
        unread: Mapping[str, pa.ChunkedArray] | None = None,
    ) -> None:
        super().__init__(table, weights)
        self.coarse = coarse  # sensitive columns that are already as coarse as they are released
        self._fingerprint = fingerprint
        self.back = back  # converts Arrow to the kind of frame that was given
        self.dialect = dialect
        self.notes = notes
        self.source = source  # the file that was read, which no release may overwrite
        self.codebook = codebook or Codebook()  # labels in the file
        self._unread = unread or {}  # columns before their cells were parsed as a policy spells them

    @classmethod
    def of(
        cls, data: Data, *, separator: str | None = None, encoding: str | None = None, header: bool | None = None
    ) -> LocalEngine:
        """Build the engine from a path or a frame."""
        if isinstance(data, str | Path):
            path = Path(data)
            read = table_files.read_table_file(path, separator=separator, encoding=encoding, header=header)
            table, notes = (read.table, ()) if read.dialect is None else unescaped(read.table)
            return cls(
                table,
                fingerprint=read.sha256,
                dialect=read.dialect,
                notes=read.notes + notes,
                source=path,
                codebook=read.codebook,
            )
        table, back = frames.to_arrow(data)
        return cls(table, fingerprint=frames.table_fingerprint(table), back=back)

    def reading(self, policy: Policy) -> LocalEngine:
        """Return the rows with cells parsed as the policy spells them.

        Columns that repeat ranges are checked and left out.
        """
        nested = [name for name in frames.nested_columns(self.table) if name not in policy.identifiers]
        if nested:
            raise DataError(
                f"column {nested[0]!r} holds nested values (lists, dicts or arrays)",
                'set role = "identifier" to remove it, or convert it to text, numbers or dates first',
            )
        bound_columns = present_bounds(self.columns, policy)
        for column, names in bound_columns.items():
            require_true(distinct_rows(self.table, [column, *names]), column, names, policy)
        bounds = [name for names in bound_columns.values() for name in names]
        return (self._with(self.table.drop_columns(bounds)) if bounds else self).spelled(policy.spellings)

    def as_written(self, names: Sequence[str], policy: Policy) -> LocalEngine | None:
        """Return the rows with some columns as the file spells them; None if reading made no two cells equal."""
        stored = raw_columns(self.source, names) if isinstance(self.source, Path) else {}
        spelled = {name: column for name, column in self._unread.items() if name in names}
        merged = {}
        for name, column in (spelled | stored).items():
            if len(column) != self.table.num_rows:
                raise DataError(
                    f"column {name!r}: its cells cannot be counted as the file stores them",
                    "did the file change during the check? Otherwise remove empty rows above or below the table",
                )
            if n_distinct(column) > n_distinct(self.table[name]):
                merged[name] = column
        if not merged:
            return None
        table = self.table
        for name, column in merged.items():
            table = table.set_column(table.column_names.index(name), name, column)
        return LocalEngine(table, weights=self.weights, notes=tuple(merged))

    def spelled(self, spellings: Spellings) -> LocalEngine:
        """Return the rows with cells parsed according to their spelling."""
        table = read_table(self.table, spellings)
        if table is self.table:
            return self
        parsed = [name for name, column in spellings.items() if name in table.column_names and not column.is_plain]
        return self._with(table, unread={name: self.table[name] for name in parsed} | dict(self._unread))

    def coarsened(self, policy: Policy) -> LocalEngine:
        """Return the rows with the sensitive values that the policy releases, where these are coarser."""
        columns = {
            name: column for name, column in policy.columns.items() if column.released and name not in self.coarse
        }
        columns = {name: column for name, column in columns.items() if name in self.columns}
        if not columns:
            return self
        table = coarsened_table(self.table, {name: self.coded(name) for name in columns}, columns, policy.folder)
        return self._with(table, coarse=self.coarse.union(columns))

    def _with(
        self,
        table: pa.Table,
        *,
        coarse: frozenset[str] | None = None,
        unread: Mapping[str, pa.ChunkedArray] | None = None,
    ) -> LocalEngine:
        return LocalEngine(
            table,
            fingerprint=self._fingerprint,
            back=self.back,
            dialect=self.dialect,
            notes=self.notes,
            source=self.source,
            weights=self.weights,
            codebook=self.codebook,
            coarse=self.coarse if coarse is None else coarse,
            unread=self._unread if unread is None else unread,
        )

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the file or frame; for tuples counted by an engine, of these and their counts."""
        if self._fingerprint:
            return self._fingerprint
        return frames.table_fingerprint(self.table) if self.weights is None else digest_of_counts(self.weighed())

    def count(self, policy: Policy, outside: Texts | None = None, *, apart: bool = False) -> Counted:
        """Count rows into a frequency table; the hierarchies of the quasi columns also cover the ``outside`` table.

        ``apart``: records that differ in a sensitive value or a person get separate rows, for searches that may
        separate records with equal quasi-identifiers.
        """
        require_columns(self.columns, policy)
        if self.table.num_rows >= MANY_ROWS:
            done_in_parts(self.coded, [*policy.quasi, *policy.sensitive])
        if policy.release.nulls == "forbid":
            self.forbid_nulls(policy)
        hierarchies = tuple(self.hierarchy_of_release(name, policy, outside) for name in policy.quasi)
        table, row_of = count_records(
            policy.quasi,
            self._leaves(hierarchies),
            dict(self._domain(name, policy) for name in policy.sensitive),
            self.persons(policy),
            hierarchies,
            separately=apart,
            weights=self.weights,
        )
        return Counted(table, row_of, self, apart)

    def apply(self, counted: Counted, recoding: Recoding, policy: Policy) -> Rows:
        """Recode the counted rows: identifiers are removed, quasi columns recoded, and rows put in hash order."""
        parts = recoding.parts(counted.table)
        part = self._part_of(parts, counted.row_of, policy)
        is_suppressed = parts.suppressed[part]
        stars = is_suppressed if policy.release.suppressed == "keep" and is_suppressed.any() else None
        rows = np.arange(len(part)) if stars is not None else np.flatnonzero(~is_suppressed)
        names = [name for name in self.columns if policy.columns[name].role != "identifier"]
        quasi = {values.hierarchy.column: j for j, values in enumerate(recoding.released)}
        coded = policy.release.shuffle and all(name in quasi or is_worth_coding(self.table[name]) for name in names)

        def column(name: str, records: NDArray[np.int64]) -> CodedColumn:
            if name not in quasi:
                return self.numbered_column(name).take(records)
            j, part_of_record = quasi[name], part[records]
            return self._released(
                recoding.released[j],
                parts.codes[part_of_record, j],
                records,
                None if stars is None else is_suppressed[records],
            )

        if coded and len(rows) >= MANY_ROWS and policy.release.entity is None:
            unrecoded = [self.numbered_column(name).codes[rows] for name in names if name not in quasi]
            class_of, firsts = group(
                packed(np.stack([parts.shown_tuples(stars=stars is not None)[part[rows]], *unrecoded]).T)
            )
            if 2 * len(firsts) <= len(rows):
                distinct = {name: column(name, rows[firsts]) for name in names}
                return _counted_rows(distinct, class_of, rows, policy.release.seed)
        columns = {name: column(name, rows) for name in (names if coded else quasi)}
        if coded:
            order = order_of_codes(columns, policy.release.seed)
            table = decoded_table({name: column.take(order) for name, column in columns.items()})
            return self._with_persons(table, rows[order], policy)
        plain_columns = self.table.select([name for name in names if name not in quasi]).take(pa.array(rows))
        table = pa.table({name: columns[name].decoded() if name in quasi else plain_columns[name] for name in names})
        return self._in_hash_order(table, rows, policy)

    def recoded(
        self, rows: LocalEngine, labels: Mapping[str, pa.Array], is_kept: NDArray[np.bool_], policy: Policy
    ) -> Rows:
        """Recode like ``apply``, given the new labels of each row and whether it is kept."""
        names = [name for name in self.columns if policy.columns[name].role != "identifier"]
        left = np.flatnonzero(is_kept)
        table = pa.table({name: labels.get(name, self.table[name]) for name in names})
        return self._in_hash_order(table.take(left), left, policy)

    def _in_hash_order(self, released: pa.Table, rows: NDArray[np.int64], policy: Policy) -> Rows:
        """Return the released rows in hash order with their persons; ``rows`` are the rows they were made from."""
        if policy.release.shuffle:
            order = hash_order(released, policy.release.seed)
            released, rows = released.take(pa.array(order)), rows[order]
        return self._with_persons(released, rows, policy)

    def _with_persons(self, released: pa.Table, rows: NDArray[np.int64], policy: Policy) -> Rows:
        persons = self.persons(policy)
        return Rows(released, None if persons is None else persons[rows], rows)

    def _part_of(self, parts: Parts, row_of: ClassOf, policy: Policy) -> NDArray[np.int64]:
        """Return the part of each record. Equal records are split among parts by the order of a keyed hash."""
        if (np.diff(parts.row) == 1).all():
            return row_of
        order = hash_order(self.table, policy.release.seed)
        order = order[np.argsort(row_of[order], kind="stable")]
        part = np.empty(len(row_of), np.int64)
        part[order] = np.repeat(np.arange(len(parts.row)), parts.counts)
        return part

    # ── written ──────────────────────────────────────────────────────────────────────────────────────────────

    def released(self, rows: Rows | Query, person: str | None = None) -> LocalEngine:
        """Return an engine of released rows, or of their distinct rows with the counts.

        With the column ``person`` of the input, if that is given: it serves to count and is not released.
        """
        rows = _in_memory(rows)
        if person is not None and person not in rows.columns and rows.sources is not None:
            return LocalEngine(rows.table.append_column(person, self.table[person].take(pa.array(rows.sources))))
        if (counted := rows.counted) is None:
            return LocalEngine(rows.table)
        weights = np.asarray(counted.table[counted.weight]).astype(np.int64)
        return LocalEngine(counted.table.drop_columns([counted.weight]), weights=weights)

    def shown(self, rows: Rows | Query, policy: Policy) -> Any:
        """Return released rows in the input's kind of frame, with the bound columns that the policy asks for."""
        return self.back(with_bounds(_in_memory(rows).table, policy))

    def digest(self, rows: Rows | Query, policy: Policy) -> str:
        """Return a hash of released rows."""
        return frames.table_fingerprint(with_bounds(_in_memory(rows).table, policy))

    def check_target(self, target: str, force: bool) -> None:
        """Raise the errors that ``write`` would raise about its target, before the long computation."""
        if target.startswith("table:"):
            raise OutputError(
                "a table in memory can only be saved to a file", "use a .csv, .parquet, .xlsx, .sav or .dta file"
            )
        table_files.check_target(Path(target), force)

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
        """Write a file, let ``verify`` judge it, then rename it into place; return its hash."""
        self.check_target(target, force)
        rows, path = _in_memory(rows), Path(target)
        if bound_names(policy):
            rows = Rows(with_bounds(rows.table, policy), rows.persons, rows.sources, rows.notes)
        pieces: pa.Table | Iterator[pa.Table]
        run_lengths = rows.repeated if isinstance(rows, CountedRows) else None
        counts = run_lengths.counts if run_lengths is not None and path.suffix.lower() in table_files.TEXT else None
        if run_lengths is not None and path.suffix.lower() in table_files.PARQUET:
            pieces = run_lengths.pieces(table_files.ROW_GROUP, as_codes=True)
        else:
            pieces = rows.table if run_lengths is None or counts is None else run_lengths.distinct
            pieces = pieces if formulas is None else formulas.escaped(pieces, counts)

        return table_files.write_table_file(
            pieces,
            path,
            dialect=dialect_for(policy, self.dialect),
            commas=comma_columns(policy, self.dialect, rows.columns),
            codebook=self.codebook,
            force=force,
            verify=lambda written: verify(WrittenFile(written, self.dialect, rows, formulas)),
            in_row_groups=not isinstance(pieces, pa.Table),
            counts=counts,
        )

    def every_row(self) -> LocalEngine:
        """Return the engine itself, or its distinct rows as often as they were counted."""
        return self if self.weights is None else LocalEngine(repeated_rows(self.table, self.weights))

    # ── looked at ────────────────────────────────────────────────────────────────────────────────────────────

    def tallied(self, policy: Policy) -> LocalEngine:
        """Return the engine itself: the rows are in memory."""
        return self

    def tally(self, names: Sequence[str], person: str | None = None) -> LocalEngine:
        """Return the engine itself: the rows are in memory."""
        return self

    def knowing(self, rows: LocalEngine, raised: Mapping[str, Any] | None = None) -> LocalEngine:
        """Return the engine itself: there is nothing to save."""
        return self

    def first(self, n: int) -> pa.Table:
        """Return the first ``n`` rows, in their order."""
        return self.table.slice(0, n)

    def listed(self, names: Sequence[str]) -> tuple[LocalEngine, bool]:
        """Return the engine itself, in its own order."""
        return self, True

    def in_order(self, names: Sequence[str]) -> pa.Table:
        """Return some columns of all rows, in their order."""
        return self.table.select(names)

    def sampled(self, policy: Policy, n: int) -> tuple[LocalEngine, int]:
        """Return evenly spaced records, and the total number."""
        total = self.table.num_rows
        if total <= n:
            return self, total
        return LocalEngine(self.table.take(pa.array(np.linspace(0, total - 1, n).astype(np.int64)))), total

    def domains(self, policy: Policy) -> dict[str, Domain]:
        """Return the values of the sensitive columns, and how often each occurs in the whole table."""
        return {name: self._domain(name, policy)[0] for name in policy.sensitive}

    def people(self, policy: Policy, hierarchies: tuple[Hierarchy, ...] | None = None) -> FrequencyTable:
        """Count the rows as a population: only the quasi columns, with hierarchies for both tables or its own ones."""
        if absent := [name for name in policy.quasi if name not in self.columns]:
            raise no_column(f"the population {policy.population!r}", absent, self.columns)
        hierarchies = hierarchies or tuple(self.hierarchy(name, policy) for name in policy.quasi)
        return count_records(policy.quasi, self._leaves(hierarchies), {}, None, hierarchies)[0]

    def values(self, columns: Sequence[str]) -> FrequencyTable:
        """Count the rows by the unchanged values of some columns."""
        if absent := [name for name in columns if name not in self.columns]:
            raise no_column("the population", absent, self.columns)
        hierarchies = []
        for name in columns:
            coded = self.coded(name)
            nulls = bool((coded.codes < 0).any())
            hierarchies.append(builders.build(name, None, coded.texts, nulls=nulls, uncovered="error", folder=Path()))
        return count_records(tuple(columns), self._leaves(tuple(hierarchies)), {}, None, tuple(hierarchies))[0]

    def hierarchy(self, name: str, policy: Policy, outside: Texts | None = None) -> Hierarchy:
        """Return the hierarchy that the policy describes for a column, over its values here and ``outside``."""
        tables: list[Texts] = [self] if outside is None else [self, outside]
        coded = [table.coded(name) for table in tables if name in table.columns]
        column = policy.columns[name]
        built = builders.build(
            name,
            column.hierarchy,
            coded[0].texts if len(coded) == 1 else sorted({text for part in coded for text in part.texts}),
            nulls=any(bool((part.codes < 0).any()) for part in coded),
            uncovered=column.uncovered,
            folder=policy.folder,
        )
        _require_labels_stay(built, policy.spellings[name])
        return built

    def hierarchy_of_release(self, name: str, policy: Policy, outside: Texts | None = None) -> Hierarchy:
        """Return that hierarchy with the levels only that may be released."""
        return self._allowed(self.hierarchy(name, policy, outside), policy)

    def _allowed(self, hierarchy: Hierarchy, policy: Policy) -> Hierarchy:
        """Keep only the levels that the policy allows."""
        column = policy.columns[hierarchy.column]
        top = hierarchy.height
        if column.only == "suppress":
            return hierarchy.selected(sorted({0, top}))
        for field in ("min_level", "max_level"):
            if (getattr(column, field) or 0) > top:
                raise PolicyError(
                    f"columns.{hierarchy.column}.{field}: the hierarchy has levels 0 to {top}, "
                    f"{getattr(column, field)} is none of them"
                )
        levels = range(column.min_level, (top if column.max_level is None else column.max_level) + 1)
        return hierarchy if len(levels) == hierarchy.n_levels else hierarchy.selected(levels)

    def _leaves(self, hierarchies: tuple[Hierarchy, ...]) -> Codes:
        """Return the leaf codes of every row."""
        leaves = np.empty((len(hierarchies), self.table.num_rows), np.int32).T  # written and packed by column
        for j, hierarchy in enumerate(hierarchies):
            coded = self.coded(hierarchy.column)
            leaf_of = hierarchy.encode([*coded.texts, None] if None in hierarchy.leaves else coded.texts)
            leaves[:, j] = leaf_of[coded.codes]  # a null, -1, takes the last
        return leaves

    def _domain(self, name: str, policy: Policy) -> tuple[Domain, Codes]:
        column = policy.columns[name]
        of_values = column.hierarchy is not None and not (column.released and column.released.level)
        hierarchy = self.hierarchy(name, policy) if of_values else None
        return domain_of(name, self.coded(name), hierarchy, self.weights)

    def forbid_nulls(self, policy: Policy) -> None:
        """Raise an error if a required value is missing."""
        for name in (*policy.quasi, *policy.sensitive):
            if missing := self._records(self.coded(name).codes < 0):
                raise MissingValueError(
                    f"column {name!r}: {missing} of {self.n_records} values are missing, and the policy forbids nulls",
                    'fill them, or choose nulls = "category" or "wildcard"',
                )

    def _released(
        self, values: Values, codes: Codes, rows: NDArray[np.int64], stars: NDArray[np.bool_] | None
    ) -> CodedColumn:
        """Return a quasi column of some rows, given their released values and which of them are suppressed."""
        hierarchy = values.hierarchy
        coded = self.coded(hierarchy.column)
        if unchanged(values) and stars is None:  # the values keep their type; one represents all that share a text
            texts_kept = coded.values.cast(self.table.schema.field(hierarchy.column).type)
            return CodedColumn.numbered(texts_kept, coded.codes[rows])
        labels = np.array([*values.labels, TOP], dtype=object)
        if stars is not None:
            codes = np.where(stars, len(labels) - 1, codes)
        return CodedColumn.numbered(pa.array(labels, pa.string()), codes)

    def numbered_column(self, name: str) -> CodedColumn:
        """Return a column that is released unchanged as codes; those of texts may be known already."""
        kind = self.table.schema.field(name).type
        if not pa.types.is_string(kind):
            return CodedColumn.of(self.table[name])
        coded = self.coded(name)
        return CodedColumn.numbered(coded.values, coded.codes)


def _counted_rows(
    distinct: dict[str, CodedColumn], class_of: ClassOf, rows: NDArray[np.int64], seed: int
) -> CountedRows:
    """Return rows that repeat ``distinct`` ones; ``class_of`` says which of them each of the original ``rows`` is."""
    table = decoded_table(distinct)
    order = order_of_distinct(table, seed)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    columns = [CodedColumn.of(column) for column in table.columns]  # one code per value; a label may have been null
    repeated = RunLengthRows(
        tuple(distinct),
        np.stack([column.codes[order] for column in columns]).T,
        tuple(column.values for column in columns),
        np.bincount(class_of, minlength=len(order))[order],
    )
    return CountedRows(repeated, Origins(rows, rank[class_of], seed))


def _require_labels_stay(hierarchy: Hierarchy, spelling: Spelling) -> None:
    """Reject labels that a check of the release would read as another label or as missing: classes would change."""
    labels = {label for level in hierarchy.labels[1:] for label in level}
    if not spelling.is_plain and any(label is not None and spelling.read(label) != label for label in labels):
        raise PolicyError(
            f"columns.{hierarchy.column}: a label of the hierarchy is among the texts for missing values, "
            "or is a number with the column's marks",
            "rename the label, or set missing for the column",
        )


def unchanged(values: Values) -> bool:
    """Return whether nothing is generalized; labels do not show it, as a leaf spelled like the top joins it."""
    hierarchy = values.hierarchy
    alone = values.labels == hierarchy.leaves and all(len(leaves) == 1 for leaves in values.covers)
    return alone and hierarchy.uncovered is None


def _in_memory(rows: Rows | Query) -> Rows:
    if not isinstance(rows, Rows):
        raise TypeError("these rows stay in another engine")
    return rows
