"""Recount a finished release with plain SQL.

The path that made the release is not trusted: DuckDB groups the rows of the written file (or of the released frame)
without the codes, hierarchies and node tables of the search. The two share only the definition of equal values
(``codec``), the layout of counts (``FrequencyTable``), and the judge.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.compiled.grouping import group, sum_by_class
from shoal.engines import scratch
from shoal.engines.base import Groups, Query, Rows, WrittenFile
from shoal.engines.formats import office_files
from shoal.engines.formats.formulas import Formulas
from shoal.engines.formats.layout import Dialect
from shoal.engines.formats.read_back import typed
from shoal.engines.formats.sql_files import sql_source
from shoal.engines.formats.table_files import PARQUET, separator_of
from shoal.engines.sql import quoted, unused
from shoal.errors import ShoalError, UnreadableError, VerificationError
from shoal.hierarchies.bounds import bound_names, require_true
from shoal.notation import codec
from shoal.notation.forms import DecimalMark
from shoal.original.comparison import people_like
from shoal.policy import Policy
from shoal.tables.frequency import ClassOf, Codes, Counts, Domain, FrequencyTable, Histogram, packed

OTHER_COLUMNS = "the columns of the written file differ from those of the release; nothing was published"


@dataclass(frozen=True, eq=False)
class Reference:
    """What the classes of a release are compared with."""

    whole: Mapping[str, Domain]  # the sensitive columns of the table before suppression
    population: FrequencyTable | None = None  # the population that the records are a sample of
    marks: Mapping[str, DecimalMark] = field(default_factory=dict)  # decimal marks, if the policy names them


def recounted(rows: Rows | Query | Groups, policy: Policy, reference: Reference) -> FrequencyTable:
    """Count released rows in memory with SQL; for rows in an engine, return the counts that they will have."""
    return recounted_by(policy.quasi, rows, reference)


def recounted_by(quasi: Sequence[str], rows: Rows | Query | Groups, reference: Reference) -> FrequencyTable:
    """Count the same by some columns, without a policy."""
    groups = rows if isinstance(rows, Groups) else rows.counted
    if groups is not None:
        return recounted_groups(groups, quasi, reference)
    if not isinstance(rows, Rows):
        raise TypeError("these rows stay in an engine that did not count them")
    with scratch.connect() as connection:
        connection.register("released", rows.table)
        return _with_persons(connection, "released", rows, quasi, reference)


def recounted_written(written: WrittenFile | Groups, policy: Policy, reference: Reference) -> FrequencyTable:
    """Recount what was written: a file with SQL, a table of an engine with the engine."""
    if isinstance(written, Groups):
        return recounted_groups(written, policy.quasi, reference)
    return recounted_file(written.path, written.dialect, written.rows, policy, reference, written.formulas)


def recounted_groups(groups: Groups, quasi: Sequence[str], reference: Reference) -> FrequencyTable:
    """Count rows that an engine has grouped: the weight of a row is the number of its records."""
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
    """Count a written release from the file alone; ``formulas`` are those that were escaped in it."""
    if office_files.is_foreign(written):
        with scratch.connect() as connection:
            connection.register("written", _read_back(written, rows.table))
            return _with_persons(connection, "written", rows, policy.quasi, reference)
    names = rows.columns
    names_written = names if formulas is None else formulas.names(names)
    source = sql_source(written, dialect, names_written)
    with scratch.connect() as connection:
        if _header(connection, written, dialect, source) != names_written:
            raise VerificationError(OTHER_COLUMNS)
        plain = source if formulas is None else formulas.undone(source, names)
        _require_true_bounds(connection, plain, policy)
        return _with_persons(connection, plain, rows, policy.quasi, reference)


def _require_true_bounds(connection: duckdb.DuckDBPyConnection, source: str, policy: Policy) -> None:
    """Raise an error if a column of bounds contradicts the column whose bounds it repeats."""
    for column, bounds in bound_names(policy).items():
        selected = ", ".join(map(quoted, [column, *bounds]))
        distinct = connection.sql(f"SELECT DISTINCT {selected} FROM {source}").to_arrow_table()
        require_true(distinct, column, bounds, policy)


def regrouped(released: Rows | Query | Groups | WrittenFile, names: Sequence[str]) -> Groups:
    """Return the distinct rows of some columns of released rows or of a written file, and how often each occurs."""
    with scratch.connect() as connection:
        source, groups = "released", None
        if isinstance(released, WrittenFile):
            schema, source = released.rows.schema, _written_source(connection, released)
        elif (groups := released if isinstance(released, Groups) else released.counted) is not None:
            schema = groups.table.schema
            connection.register(source, groups.table)
        elif isinstance(released, Rows):
            schema = released.schema
            connection.register(source, released.table)
        table = _grouped(connection, source, names, schema, None if groups is None else groups.weight)
    count = unused("records", names)
    return Groups(table.rename_columns([*names, count]), count)


def _written_source(connection: duckdb.DuckDBPyConnection, written: WrittenFile) -> str:
    """Return the table expression of a written file whose header was checked."""
    if office_files.is_foreign(written.path):
        connection.register("written", _read_back(written.path, written.rows.table))
        return "written"
    names, formulas = written.rows.columns, written.formulas
    source = sql_source(written.path, written.dialect, names if formulas is None else formulas.names(names))
    return source if formulas is None else formulas.undone(source, names)


def _read_back(written: Path, released: pa.Table) -> pa.Table:
    """Read an Excel, SPSS or Stata file in the types of the release; every cell must equal the released one."""
    table, _, _ = office_files.read_office_file(written)
    if table.column_names != released.column_names or len(table) != len(released):
        raise VerificationError(
            "the columns or rows of the written file differ from those of the release; nothing was published"
        )
    columns = []
    for name in released.column_names:
        before = released[name]
        try:
            after = typed(table[name], before.type)
            read_codes, written_codes = codec.encode_texts(name, after), codec.encode_texts(name, before)
            is_same = read_codes.texts == written_codes.texts and np.array_equal(read_codes.codes, written_codes.codes)
        except (pa.ArrowException, ShoalError):  # whose messages may quote a cell
            is_same = False
        if not is_same:
            raise VerificationError(
                f"column {name!r}: a {written.suffix} file cannot store its values exactly; nothing was published",
                "write .parquet or .csv",
            )
        columns.append(after)
    return pa.table(dict(zip(released.column_names, columns, strict=True)))


def _with_persons(
    connection: duckdb.DuckDBPyConnection,
    source: str,
    rows: Rows,
    quasi: Sequence[str],
    reference: Reference,
) -> FrequencyTable:
    schema = rows.schema
    if rows.persons is None:
        return recount(connection, source, quasi, reference, schema)
    # Persons are never released: they are joined to the rows, one by one, only for counting.
    person = unused("person", schema.names)
    connection.register("persons", pa.table({person: rows.persons}))
    joined = f"(SELECT * FROM {source} POSITIONAL JOIN persons)"
    return recount(connection, joined, quasi, reference, schema, person=person)


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
    """Group the rows of ``source``, a table expression, into a frequency table of the values as they are.

    ``schema`` gives the types of the columns: a CSV file holds their texts, and SQL has types of its own. ``weight`` is
    the column with the number of records of a row, if an engine has grouped them already.
    """
    groups = _grouped(connection, source, [*quasi, *reference.whole], schema, weight)
    n = groups.column(groups.num_columns - 1).to_numpy().astype(np.int64)
    codes, nulls = _codes(groups, quasi)
    class_of, firsts = _classes(codes)
    people, absent = _people(groups, codes[firsts], reference)
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


def _people(groups: pa.Table, tuples: Codes, reference: Reference) -> tuple[Counts | None, int]:
    """Count the people of the population who match each class, and the kinds of people who match none."""
    population = reference.population
    if population is None:
        return None, 0
    released = [codec.encode_texts(name, groups.column(i)) for i, name in enumerate(population.columns)]
    return people_like(population, tuples, released, reference.marks)


def _header(connection: duckdb.DuckDBPyConnection, written: Path, dialect: Dialect | None, source: str) -> list[str]:
    """Read the columns of the file; for a CSV file, SQL uses the columns that it is given."""
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
    """Return the distinct rows of some columns and, last, how often each occurs; values in the types of ``schema``."""
    count = "count(*)" if weight is None else f"CAST(sum({quoted(weight)}) AS BIGINT)"
    query = f"SELECT {', '.join(map(quoted, names))}, {count} FROM {source} GROUP BY ALL"
    try:
        table = connection.sql(query).to_arrow_table()
        columns = [_typed(table.column(i), name, schema) for i, name in enumerate(names)]
    except (duckdb.OutOfMemoryException, pa.ArrowMemoryError):
        raise MemoryError from None
    except (duckdb.Error, pa.ArrowException):  # their messages may quote a line of the data
        raise UnreadableError("the written file could not be read back and verified; nothing was published") from None
    return pa.Table.from_arrays([*columns, table.column(len(names))], [str(i) for i in range(len(names) + 1)])


def _typed(column: pa.ChunkedArray, name: str, schema: pa.Schema) -> pa.ChunkedArray:
    return typed(column, schema.field(name).type) if name in schema.names else column


def _classes(codes: Codes) -> tuple[ClassOf, NDArray[np.int64]]:
    """Return the class of each row and the first row of each class, sorted because SQL returns groups in any order."""
    class_of, firsts = group(packed(codes))
    order = np.lexsort(codes[firsts].T[::-1])
    return order.argsort()[class_of], firsts[order]


def _codes(groups: pa.Table, quasi: Sequence[str]) -> tuple[Codes, tuple[int | None, ...]]:
    """Return codes of the values as they are; the null comes after all others."""
    columns, nulls = [], []
    for i, name in enumerate(quasi):
        coded = codec.encode_texts(name, groups.column(i))
        columns.append(np.where(coded.codes < 0, len(coded.texts), coded.codes))
        nulls.append(len(coded.texts) if (coded.codes < 0).any() else None)
    return np.column_stack(columns).astype(np.int32), tuple(nulls)


def _values(column: pa.ChunkedArray, whole: Domain) -> Codes:
    coded = codec.encode_texts(whole.column, column)
    code_of = {text: i for i, text in enumerate(whole.texts)}
    strange = sum(text not in code_of for text in coded.texts)
    if strange or ((coded.codes < 0).any() and None not in code_of):
        raise VerificationError(
            f"column {whole.column!r}: {max(1, strange)} of its values do not occur in the original table"
        )
    lookup = np.array([*(code_of[text] for text in coded.texts), code_of.get(None, -1)], np.int32)
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
    """Count the distinct people in each class, with a second grouping."""
    pairs = _grouped(connection, source, [*quasi, person], schema, weight)
    keys = list(range(len(quasi)))
    stacked = pa.concat_tables([groups.select(keys), pairs.select(keys)])
    codes, _ = _codes(stacked, quasi)
    tuple_of, firsts = group(packed(codes))
    ours = np.empty(len(firsts), np.int64)
    ours[tuple_of[: len(groups)]] = class_of
    person_codes = codec.encode_texts(person, pairs.column(len(quasi)))
    return Histogram.counted(
        ours[tuple_of[len(groups) :]], person_codes.codes, int(class_of.max()) + 1, len(person_codes.texts), None
    )
