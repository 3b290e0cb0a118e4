"""Counting a finished release again, by plain SQL, and judging what was counted.

The path that made the release is not trusted: DuckDB groups the rows of the written file (or of the released frame),
whatever codes, hierarchies and node tables the search had. What both share is how values are told apart (``codec``),
how counts are laid out (``FrequencyTable``), and the models, which judge counts.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.consistency import people_like
from shoal.engines import scratch
from shoal.engines.base import Groups, Query, Rows
from shoal.engines.files import PARQUET, Dialect, separator_of, sql_source, typed
from shoal.engines.formulas import Formulas
from shoal.errors import VerificationError
from shoal.models import PrivacyModel
from shoal.policy import Policy
from shoal.sql import quoted, unused
from shoal.table import codec
from shoal.table.frequency import ClassOf, Codes, Counts, Domain, FrequencyTable, Histogram, packed
from shoal.table.kernels import group, sum_by_class
from shoal.table.wildcard import neighbourhoods


@dataclass(frozen=True)
class Verdict:
    """One requirement: what was asked, what was found in the worst class, and who is at fault."""

    asked: str
    holds: bool
    figure: str
    worst: float
    classes: int  # classes that fail
    records: int  # records in them


@dataclass(frozen=True)
class Verdicts:
    """The answer to a policy."""

    verdicts: tuple[Verdict, ...]
    identifiers: tuple[str, ...]  # columns that should be gone and are not
    records: int
    classes: int
    warnings: tuple[str, ...] = field(default=(), compare=False)  # what a user should know although it holds

    @property
    def hold(self) -> bool:
        """Whether every requirement holds and no identifier is left."""
        return not self.identifiers and all(verdict.holds for verdict in self.verdicts)

    def same(self, other: Verdicts) -> bool:
        """Whether another count says the same; figures are sums of floats, and may differ in their last digits."""
        worst, theirs = ([verdict.worst for verdict in found.verdicts] for found in (self, other))
        return self._counts == other._counts and np.allclose(worst, theirs, rtol=1e-9, atol=1e-12, equal_nan=True)

    @property
    def _counts(self) -> Verdicts:
        return replace(self, verdicts=tuple(replace(verdict, worst=0.0) for verdict in self.verdicts))

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"hold": self.hold, **asdict(self)}

    def _repr_html_(self) -> str:
        from shoal.report.notebook import verdicts_html

        return verdicts_html(self)


def require(verdicts: Verdicts) -> None:
    """Raise unless everything holds."""
    if verdicts.identifiers:
        raise VerificationError(f"identifier columns are still there: {', '.join(map(repr, verdicts.identifiers))}")
    for verdict in verdicts.verdicts:
        if not verdict.holds:
            raise VerificationError(
                f"{verdict.asked} does not hold: {verdict.classes} of {verdicts.classes} classes "
                f"with {verdict.records} records fail; nothing was written"
            )


def judged(table: FrequencyTable, policy: Policy, *, identifiers: Sequence[str] = ()) -> Verdicts:
    """Every requirement of the policy on the classes of a table of released values."""
    seen = as_seen(table, policy)
    verdicts = tuple(_verdict(model, seen, table) for model in policy.models)
    return Verdicts(
        verdicts,
        tuple(identifiers),
        table.n_records,
        table.n_classes,
    )


def as_seen(table: FrequencyTable, policy: Policy) -> FrequencyTable:
    """What an intruder cannot tell apart: the classes, or all that a record is compatible with."""
    return neighbourhoods(table, table.nulls) if policy.release.nulls == "wildcard" else table


def _verdict(model: PrivacyModel, seen: FrequencyTable, table: FrequencyTable) -> Verdict:
    passes = model.passes(seen)
    scores = model.scores(seen)
    worst = float(scores.min() if model.least else scores.max()) if len(scores) else np.nan
    failing = ~passes
    return Verdict(
        model.asked,
        bool(passes.all()),
        model.figure,
        worst,
        int(failing.sum()),
        int(table.counts[failing].sum()),
    )


@dataclass(frozen=True, eq=False)
class Reference:
    """What the classes of a release are compared with."""

    whole: Mapping[str, Domain]  # the sensitive columns of the table before suppression
    population: FrequencyTable | None = None  # the people that the records are some of


def recounted(rows: Rows | Query, policy: Policy, reference: Reference) -> FrequencyTable:
    """Released rows in memory, counted by SQL; of those in an engine, what they will count to."""
    if isinstance(rows, Query):
        return recounted_groups(rows.groups, policy.quasi, reference)
    with scratch.connect() as connection:
        connection.register("released", rows.table)
        return _with_persons(connection, "released", rows, policy, reference)


def recounted_groups(groups: Groups, quasi: Sequence[str], reference: Reference) -> FrequencyTable:
    """What an engine has grouped: each row stands for as many records as its weight says."""
    with scratch.connect() as connection:
        connection.register("groups", groups.table)
        return recount(
            connection, "groups", quasi, reference, groups.table.schema, person=groups.person, weight=groups.weight
        )


def recounted_file(
    written: Path,
    dialect: Dialect | None,
    rows: Rows,
    policy: Policy,
    reference: Reference,
    formulas: Formulas | None = None,
) -> FrequencyTable:
    """A written release, counted by SQL from the file alone; ``formulas`` are those that were made inert in it."""
    names = rows.table.column_names
    there = names if formulas is None else formulas.names(names)
    source = sql_source(written, dialect, there)
    with scratch.connect() as connection:
        if _header(connection, written, dialect, source) != there:
            raise VerificationError("the written file has other columns than the release; nothing was written")
        plain = source if formulas is None else formulas.undone(source, names)
        return _with_persons(connection, plain, rows, policy, reference)


def _with_persons(
    connection: duckdb.DuckDBPyConnection,
    source: str,
    rows: Rows,
    policy: Policy,
    reference: Reference,
) -> FrequencyTable:
    schema = rows.table.schema
    if rows.persons is None:
        return recount(connection, source, policy.quasi, reference, schema)
    # Persons are never released: they are laid beside the rows, one by one, for the counting alone.
    person = unused("person", schema.names)
    connection.register("persons", pa.table({person: rows.persons}))
    beside = f"(SELECT * FROM {source} POSITIONAL JOIN persons)"
    return recount(connection, beside, policy.quasi, reference, schema, person=person)


def recount(
    connection: duckdb.DuckDBPyConnection,
    source: str,
    quasi: Sequence[str],
    reference: Reference,
    schema: pa.Schema,
    *,
    person: str | None = None,
    weight: str | None = None,
) -> FrequencyTable:
    """Group the rows of ``source``, a table expression, into a frequency table of the values as they stand.

    ``schema`` names the types of the columns: a CSV file holds their texts, and SQL has types of its own. ``weight``
    is the column that tells how many records a row stands for, where an engine has grouped them already.
    """
    groups = _grouped(connection, source, [*quasi, *reference.whole], schema, weight)
    n = groups.column(groups.num_columns - 1).to_numpy().astype(np.int64)
    codes, nulls = _codes(groups, quasi)
    class_of, firsts = _classes(codes)
    people, absent = _people(groups, codes[firsts], reference.population)
    histograms = {}
    for i, (name, whole) in enumerate(reference.whole.items()):
        values = _values(groups.column(len(quasi) + i), whole)
        rows = Histogram(np.arange(len(n) + 1), values, n, len(whole.texts), whole)
        histograms[name] = rows.merged(class_of, len(firsts))
    return FrequencyTable(
        tuple(quasi),
        codes[firsts],
        sum_by_class(n, class_of, len(firsts)),
        histograms,
        None if person is None else _persons(connection, source, quasi, person, groups, class_of, schema, weight),
        population=people,
        absent=absent,
        nulls=nulls,
    )


def _people(groups: pa.Table, tuples: Codes, population: FrequencyTable | None) -> tuple[Counts | None, int]:
    """How many of the population could be behind each class, and how many kinds of people behind none."""
    if population is None:
        return None, 0
    released = [codec.texts(name, groups.column(i)) for i, name in enumerate(population.columns)]
    return people_like(population, tuples, released)


def _header(connection: duckdb.DuckDBPyConnection, written: Path, dialect: Dialect | None, source: str) -> list[str]:
    """The columns that the file has; SQL takes those of a CSV file as they are told."""
    try:
        if written.suffix.lower() in PARQUET:
            return list(connection.sql(f"SELECT * FROM {source} LIMIT 0").columns)
        with written.open(encoding="utf-8", newline="") as file:
            return next(csv.reader(file, delimiter=separator_of(written, dialect)), [])
    except (duckdb.Error, csv.Error, UnicodeDecodeError):
        return []


def _grouped(
    connection: duckdb.DuckDBPyConnection, source: str, names: Sequence[str], schema: pa.Schema, weight: str | None
) -> pa.Table:
    """The distinct rows of some columns and, last, how often each occurs; values in the types of ``schema``."""
    count = "count(*)" if weight is None else f"CAST(sum({quoted(weight)}) AS BIGINT)"
    query = f"SELECT {', '.join(map(quoted, names))}, {count} FROM {source} GROUP BY ALL"
    try:
        table = connection.sql(query).to_arrow_table()
        columns = [_typed(table.column(i), name, schema) for i, name in enumerate(names)]
    except (duckdb.Error, pa.ArrowException):  # their messages may quote a line of the data
        raise VerificationError("the release could not be read back and counted; nothing was written") from None
    return pa.Table.from_arrays([*columns, table.column(len(names))], [str(i) for i in range(len(names) + 1)])


def _typed(column: pa.ChunkedArray, name: str, schema: pa.Schema) -> pa.ChunkedArray:
    return typed(column, schema.field(name).type) if name in schema.names else column


def _classes(codes: Codes) -> tuple[ClassOf, NDArray[np.int64]]:
    """The class of each row and the first row of each class; sorted, as SQL returns groups in any order."""
    found, firsts = group(packed(codes))
    order = np.lexsort(codes[firsts].T[::-1])
    return order.argsort()[found], firsts[order]


def _codes(groups: pa.Table, quasi: Sequence[str]) -> tuple[Codes, tuple[int | None, ...]]:
    """Codes of the values as they stand; the null takes the place after all others."""
    columns, nulls = [], []
    for i, name in enumerate(quasi):
        coded = codec.texts(name, groups.column(i))
        columns.append(np.where(coded.codes < 0, len(coded.texts), coded.codes))
        nulls.append(len(coded.texts) if (coded.codes < 0).any() else None)
    return np.column_stack(columns).astype(np.int32), tuple(nulls)


def _values(column: pa.ChunkedArray, whole: Domain) -> Codes:
    coded = codec.texts(whole.column, column)
    place = {text: i for i, text in enumerate(whole.texts)}
    strange = sum(text not in place for text in coded.texts)
    if strange or ((coded.codes < 0).any() and None not in place):
        raise VerificationError(
            f"column {whole.column!r}: {max(1, strange)} of its values do not occur in the original table"
        )
    lookup = np.array([*(place[text] for text in coded.texts), place.get(None, -1)], np.int32)
    return lookup[coded.codes]


def _persons(
    connection: duckdb.DuckDBPyConnection,
    source: str,
    quasi: Sequence[str],
    person: str,
    groups: pa.Table,
    class_of: ClassOf,
    schema: pa.Schema,
    weight: str | None,
) -> Histogram:
    """Who stands behind each class: the distinct persons, by a second grouping."""
    pairs = _grouped(connection, source, [*quasi, person], schema, weight)
    keys = list(range(len(quasi)))
    both = pa.concat_tables([groups.select(keys), pairs.select(keys)])
    codes, _ = _codes(both, quasi)
    found, firsts = group(packed(codes))
    ours = np.empty(len(firsts), np.int64)
    ours[found[: len(groups)]] = class_of
    who = codec.texts(person, pairs.column(len(quasi)))
    return Histogram.of(ours[found[len(groups) :]], who.codes, int(class_of.max()) + 1, len(who.texts), None)
