"""Frames and files in memory: Arrow and Numba."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.engines import frames, scratch
from shoal.engines.base import Rows, require_columns
from shoal.engines.cells import Spellings, read_table
from shoal.engines.codebook import Codebook
from shoal.engines.data import Data
from shoal.engines.dependence import Dependence, Spread, TellingPair, dependence_of, numbered, spread_of, tallied
from shoal.engines.files import formats, formulas
from shoal.engines.files.layout import Dialect
from shoal.engines.sql import quoted, unused
from shoal.errors import DataError, MissingValueError, PolicyError
from shoal.policy import Policy
from shoal.recoding import Parts, Recoding
from shoal.table import builders, codec
from shoal.table.bounds import distinct_rows, require_true, there
from shoal.table.domain import domain_of
from shoal.table.frequency import ClassOf, Codes, Counts, Domain, FrequencyTable, counted
from shoal.table.hierarchy import TOP, Hierarchy
from shoal.table.spelling import Spelling
from shoal.table.values import Values

# What is left of a float when it is hashed: its whole part below 2^53, and 40 bits behind the point.
WHOLE, FRACTION = 2.0**53, 2.0**40


class Texts(Protocol):
    """Values outside the table that its hierarchies must cover too."""

    @property
    def columns(self) -> Sequence[str]:
        """The names of the columns read."""

    def coded(self, name: str, /) -> codec.Coded:
        """The texts of one, and whether it has nulls."""


def _as_it_is(table: pa.Table) -> pa.Table:
    return table


class LocalEngine:
    """A table in memory."""

    def __init__(
        self,
        table: pa.Table,
        *,
        fingerprint: str,
        back: Callable[[pa.Table], Any] = _as_it_is,
        dialect: Dialect | None = None,
        notes: tuple[str, ...] = (),
        source: Path | None = None,
        weights: Counts | None = None,
        codebook: Codebook | None = None,
    ) -> None:
        require_names_apart(table.column_names)
        self.table = table
        self.fingerprint = fingerprint
        self.back = back  # turns Arrow into the kind of frame that came in
        self.dialect = dialect
        self.notes = notes
        self.source = source  # the file that was read, which no release may overwrite
        self.codebook = codebook or Codebook()  # labels that the file has
        self.weights = weights  # how many records each row stands for, where an engine has counted already
        self._counted: tuple[FrequencyTable, ClassOf] | None = None  # the last count, and the row of each record
        self._remember()

    def _remember(self) -> None:
        self.coded = cache(self._coded)
        self.numbered = cache(lambda name: numbered(self.table[name]))  # cheaper than coded, where texts do not matter

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("coded", "numbered")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._remember()

    @classmethod
    def of(cls, data: Data, *, separator: str | None = None, encoding: str | None = None) -> LocalEngine:
        """From a path or a frame."""
        if isinstance(data, str | Path):
            path = Path(data)
            read = formats.read(path, separator=separator, encoding=encoding)
            table, more = (read.table, ()) if read.dialect is None else formulas.unescaped(read.table)
            return cls(
                table,
                fingerprint=read.sha256,
                dialect=read.dialect,
                notes=read.notes + more,
                source=path,
                codebook=read.codebook,
            )
        table, back = frames.to_arrow(data)
        return cls(table, fingerprint=frames.fingerprint(table), back=back)

    raised: frozenset[str] = frozenset()  # columns counted from a coarser level on: none, as all values are here

    def reading(self, policy: Policy) -> LocalEngine:
        """The same rows with cells read as the policy says they are spelled.

        Columns beside ranges, which repeat what these say, are checked and left out.
        """
        found = there(self.columns, policy)
        for column, names in found.items():
            require_true(distinct_rows(self.table, [column, *names]), column, names, policy)
        gone = [name for names in found.values() for name in names]
        return (self._with(self.table.drop_columns(gone)) if gone else self).spelled(policy.spellings)

    def spelled(self, spellings: Spellings) -> LocalEngine:
        """The same rows with cells read as they are spelled."""
        table = read_table(self.table, spellings)
        return self if table is self.table else self._with(table)

    def _with(self, table: pa.Table) -> LocalEngine:
        return LocalEngine(
            table,
            fingerprint=self.fingerprint,
            back=self.back,
            dialect=self.dialect,
            notes=self.notes,
            source=self.source,
            weights=self.weights,
            codebook=self.codebook,
        )

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.table.column_names)

    @property
    def counted(self) -> tuple[FrequencyTable, ClassOf]:
        """The last count, and the row of each record in it."""
        if self._counted is None:
            raise ValueError("count the rows first: a recoding is an answer to a count")
        return self._counted

    @property
    def n_records(self) -> int:
        """Records of the table."""
        return self.table.num_rows if self.weights is None else int(self.weights.sum())

    def _records(self, rows: NDArray[np.bool_]) -> int:
        return int(rows.sum() if self.weights is None else self.weights[rows].sum())

    def _coded(self, column: str) -> codec.Coded:
        return codec.texts(column, self.table[column])

    def count(self, policy: Policy, outside: Texts | None = None, *, apart: bool = False) -> FrequencyTable:
        """Rows to frequency table, with the hierarchies of the quasi columns, which cover the ``outside`` table too.

        ``apart``: records that differ in a sensitive value or a person get rows of their own, for searches that
        may part records with equal quasi-identifiers.
        """
        require_columns(self.table.column_names, policy)
        if policy.release.nulls == "forbid":
            self.forbid_nulls(policy)
        hierarchies = tuple(self._allowed(self.hierarchy(name, policy, outside), policy) for name in policy.quasi)
        self._counted = counted(
            policy.quasi,
            self._leaves(hierarchies),
            dict(self._domain(name, policy) for name in policy.sensitive),
            self.persons(policy),
            hierarchies,
            apart=apart,
            weights=self.weights,
        )
        return self._counted[0]

    def apply(self, recoding: Recoding, policy: Policy) -> Rows:
        """The rows counted last to released rows: identifiers gone, quasi columns recoded, in the order of a hash."""
        table, row_of = self.counted
        parts = recoding.parts(table)
        part = self._part_of(parts, row_of, policy)
        gone = parts.suppressed[part]
        stars = gone if policy.release.suppressed == "keep" and gone.any() else None
        values = {v.hierarchy.column: (v, parts.codes[part, j]) for j, v in enumerate(recoding.released)}
        columns = {}
        for name in self.table.column_names:
            if name in values:
                columns[name] = self._released(*values[name], stars)
            elif policy.columns[name].role != "identifier":
                columns[name] = self.table[name]
        released = pa.table(columns)
        rows = np.arange(len(released)) if stars is not None else np.flatnonzero(~gone)
        if len(rows) < len(released):
            released = released.take(pa.array(rows))
        if policy.release.shuffle:
            order = hash_order(released, policy.release.seed)
            released, rows = released.take(pa.array(order)), rows[order]
        persons = self.persons(policy)
        return Rows(released, None if persons is None else persons[rows], rows)

    def _part_of(self, parts: Parts, row_of: ClassOf, policy: Policy) -> NDArray[np.int64]:
        """The part of each record. Where equals part ways, the order of a keyed hash deals them out."""
        if (np.diff(parts.row) == 1).all():
            return row_of
        order = hash_order(self.table, policy.release.seed)
        order = order[np.argsort(row_of[order], kind="stable")]
        part = np.empty(len(row_of), np.int64)
        part[order] = np.repeat(np.arange(len(parts.row)), parts.counts)
        return part

    def domains(self, policy: Policy) -> dict[str, Domain]:
        """The sensitive columns' values, and how often each occurs in the whole table."""
        return {name: self._domain(name, policy)[0] for name in policy.sensitive}

    def spreads(self, names: Sequence[str]) -> dict[str, Spread]:
        """How well each of some columns tells the records apart."""
        return {name: spread_of(self.numbered(name), self.weights) for name in names}

    def dependences(self, pairs: Sequence[TellingPair]) -> dict[TellingPair, Dependence]:
        """How far the first column of each pair tells the second."""
        return {
            (first, second): dependence_of(self.numbered(first), self.numbered(second), self.weights)
            for first, second in pairs
        }

    def frequencies(self, name: str) -> Counts:
        """How often each value of a column occurs, the most frequent first; a null is a value."""
        counts = tallied(self.numbered(name) + 1, self.weights)
        return np.sort(counts[counts > 0])[::-1]

    def texts(self, name: str) -> tuple[str, ...]:
        """The distinct values of a column, as text."""
        return self.coded(name).texts

    def people(self, policy: Policy, hierarchies: tuple[Hierarchy, ...] | None = None) -> FrequencyTable:
        """The rows as a population: the quasi columns alone, along hierarchies made for both tables, or its own."""
        if absent := [name for name in policy.quasi if name not in self.table.column_names]:
            raise PolicyError(f"the population {policy.population!r} has no column {', '.join(map(repr, absent))}")
        hierarchies = hierarchies or tuple(self.hierarchy(name, policy) for name in policy.quasi)
        return counted(policy.quasi, self._leaves(hierarchies), {}, None, hierarchies)[0]

    def values(self, columns: Sequence[str]) -> FrequencyTable:
        """The rows counted by the values of some columns as they stand."""
        if absent := [name for name in columns if name not in self.table.column_names]:
            raise PolicyError(f"the population has no column {', '.join(map(repr, absent))}")
        hierarchies = []
        for name in columns:
            coded = self.coded(name)
            nulls = bool((coded.codes < 0).any())
            hierarchies.append(builders.build(name, None, coded.texts, nulls=nulls, uncovered="error", folder=Path()))
        return counted(tuple(columns), self._leaves(tuple(hierarchies)), {}, None, tuple(hierarchies))[0]

    def hierarchy(self, name: str, policy: Policy, outside: Texts | None = None) -> Hierarchy:
        """The hierarchy that the policy describes for a column, over the values of it here and ``outside``."""
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

    def _allowed(self, hierarchy: Hierarchy, policy: Policy) -> Hierarchy:
        """Only the levels that the policy lets the search choose from."""
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
        """Leaf codes of every row."""
        leaves = np.empty((self.table.num_rows, len(hierarchies)), np.int32)
        for j, hierarchy in enumerate(hierarchies):
            coded = self.coded(hierarchy.column)
            leaf_of = hierarchy.encode([*coded.texts, None] if None in hierarchy.leaves else coded.texts)
            leaves[:, j] = leaf_of[coded.codes]  # a null, -1, takes the last
        return leaves

    def _domain(self, name: str, policy: Policy) -> tuple[Domain, Codes]:
        hierarchy = self.hierarchy(name, policy) if policy.columns[name].hierarchy is not None else None
        return domain_of(name, self.coded(name), hierarchy, self.weights)

    def persons(self, policy: Policy) -> NDArray[np.int32] | None:
        """Whose each record is, where the policy names an entity column."""
        if policy.release.entity is None:
            return None
        codes = self.coded(policy.release.entity).codes
        if missing := self._records(codes < 0):
            raise MissingValueError(
                f"column {policy.release.entity!r}: {missing} of {self.n_records} records do not say whose they are",
                "fill the entity column, or remove these records",
            )
        return codes

    def forbid_nulls(self, policy: Policy) -> None:
        """Raise where a value that matters is missing."""
        for name in (*policy.quasi, *policy.sensitive):
            if missing := self._records(self.coded(name).codes < 0):
                raise MissingValueError(
                    f"column {name!r}: {missing} of {self.n_records} values are missing, and the policy forbids nulls",
                    'fill them, or choose nulls = "category" or "wildcard"',
                )

    def _released(self, values: Values, codes: Codes, stars: NDArray[np.bool_] | None) -> pa.Array:
        hierarchy = values.hierarchy
        coded = self.coded(hierarchy.column)
        if unchanged(values) and stars is None:  # the values keep their type; one stands for all that share a text
            kept = coded.values.take(pa.array(coded.codes, mask=coded.codes < 0))
            return kept.cast(self.table.schema.field(hierarchy.column).type)
        labels = np.array([*values.labels, TOP], dtype=object)
        if stars is not None:
            codes = np.where(stars, len(labels) - 1, codes)
        return pa.array(labels, pa.string()).take(pa.array(codes))


def _require_labels_stay(hierarchy: Hierarchy, spelling: Spelling) -> None:
    """A label must not be read as another, or as missing, when the release is checked: its classes would be others."""
    labels = {label for level in hierarchy.labels[1:] for label in level}
    if not spelling.is_plain and any(label is not None and spelling.read(label) != label for label in labels):
        raise PolicyError(
            f"columns.{hierarchy.column}: a label of the hierarchy is among the texts that stand for a missing value, "
            "or is a number with the column's marks",
            "give the label another name, or the column a list of missing texts of its own",
        )


def unchanged(values: Values) -> bool:
    """Whether nothing is generalized. Labels alone do not tell: a leaf that is written as the top is one with it."""
    hierarchy = values.hierarchy
    alone = values.labels == hierarchy.leaves and all(len(leaves) == 1 for leaves in values.covers)
    return alone and hierarchy.uncovered is None


def require_names_apart(names: list[str]) -> None:
    """SQL, which counts the release again, takes ``id`` and ``ID`` for the same column."""
    seen: dict[str, str] = {}
    for name in names:
        if (other := seen.setdefault(name.lower(), name)) != name:
            raise DataError(f"columns {other!r} and {name!r} differ only in case", "rename one of them")


def hash_order(table: pa.Table, seed: int) -> NDArray[np.int64]:
    """An order that depends on what the rows say and on the seed, not on where they stood.

    Equal rows stand in any order but the original one: knowing whose they are reveals nothing about their positions.
    """
    place = unused("place", table.column_names)
    rows = table.append_column(place, pa.array(np.arange(len(table))))
    names = [quoted(name) for name in table.column_names]
    texts = ", ".join(f"coalesce({_hashed(quoted(field.name), field.type)}, chr(30))" for field in table.schema)
    with scratch.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")  # instants are hashed as they are there, wherever this runs
        connection.register("rows", rows)
        ordered = connection.sql(
            f"SELECT {quoted(place)} FROM rows "
            f"ORDER BY md5(concat_ws(chr(31), '{seed}', {texts})), {', '.join(names)}, hash({quoted(place)}, '{seed}')"
        )
        return np.asarray(ordered.fetchnumpy()[place], np.int64)


def _hashed(name: str, kind: pa.DataType) -> str:
    """The text of a column that enters the hash, the same as in every engine."""
    if pa.types.is_floating(kind):  # engines write floats each in their own way, but calculate alike
        x = f"CASE WHEN abs({name}) < {WHOLE} THEN CAST({name} AS DOUBLE) ELSE 0 END"
        whole, fraction = f"floor({x})", f"floor((({x}) - floor({x})) * {FRACTION})"
        return f"CASE WHEN {name} IS NOT NULL THEN {_int(whole)} || '/' || {_int(fraction)} END"
    text = f"CAST({name} AS VARCHAR)"
    return f"replace({text}, '+00', '')" if pa.types.is_timestamp(kind) and kind.tz else text


def _int(number: str) -> str:
    return f"CAST(CAST({number} AS BIGINT) AS VARCHAR)"
