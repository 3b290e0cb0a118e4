"""Counting a finished release again, by plain SQL, and judging what was counted.

Nothing here shares code with the path that made the release: rows are grouped by DuckDB from the written file
(or the released frame), and only the models, which judge counts, are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from shoal.engines.base import Rows
from shoal.engines.files import Dialect, sql_source
from shoal.errors import VerificationError
from shoal.models import PrivacyModel
from shoal.policy import Policy
from shoal.sql import quoted
from shoal.table import codec
from shoal.table.frequency import ClassOf, Codes, Domain, FrequencyTable, Histogram, packed
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

    @property
    def hold(self) -> bool:
        """Whether every requirement holds and no identifier is left."""
        return not self.identifiers and all(verdict.holds for verdict in self.verdicts)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"hold": self.hold, **asdict(self)}


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
    seen = neighbourhoods(table, table.nulls) if policy.release.nulls == "wildcard" else table
    return Verdicts(
        tuple(_verdict(model, seen, table) for model in policy.require),
        tuple(identifiers),
        table.n_records,
        table.n_classes,
    )


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


def recounted(rows: Rows, policy: Policy, whole: Mapping[str, Domain]) -> FrequencyTable:
    """Released rows in memory, counted by SQL."""
    with duckdb.connect() as connection:
        connection.register("released", rows.table)
        return _with_persons(connection, "released", rows, policy, whole, None)


def recounted_file(
    written: Path, dialect: Dialect | None, rows: Rows, policy: Policy, whole: Mapping[str, Domain]
) -> FrequencyTable:
    """A written release, counted by SQL from the file alone."""
    source = sql_source(written, dialect, rows.table.column_names)
    with duckdb.connect() as connection:
        return _with_persons(connection, source, rows, policy, whole, rows.table.schema)


def _with_persons(
    connection: duckdb.DuckDBPyConnection,
    source: str,
    rows: Rows,
    policy: Policy,
    whole: Mapping[str, Domain],
    schema: pa.Schema | None,
) -> FrequencyTable:
    if rows.persons is None:
        return recount(connection, source, policy.quasi, whole, schema=schema)
    # Persons are never released: they are laid beside the rows, one by one, for the counting alone.
    person = "person"
    while person in rows.table.column_names:
        person += "_"
    connection.register("persons", pa.table({person: rows.persons}))
    beside = f"(SELECT * FROM {source} POSITIONAL JOIN persons)"
    return recount(connection, beside, policy.quasi, whole, person=person, schema=schema)


def warnings_of(rows: Rows, table: FrequencyTable, policy: Policy) -> list[str]:
    """What a user should know although every requirement holds."""
    n = rows.table.num_rows
    found = [
        f"column {name!r} is plain but different in every record: if others know it, it identifies"
        for name in policy.having("plain")
        if n > 1 and len(codec.texts(name, rows.table[name]).texts) == n
    ]
    alone = judged(_compared_with_itself(table), policy)
    found += [
        f"{verdict.asked} holds against the table before suppression; against the released records alone "
        f'{verdict.figure} is {verdict.worst:.4g} (suppressed = "keep" makes both the same)'
        for verdict in alone.verdicts
        if not verdict.holds
    ]
    return found


def _compared_with_itself(table: FrequencyTable) -> FrequencyTable:
    sensitive = {}
    for name, histogram in table.sensitive.items():
        whole = np.zeros(histogram.n_values, np.int64)
        np.add.at(whole, histogram.values, histogram.counts)
        present = whole > 0
        domain = histogram.domain
        if domain is not None:
            sensitive[name] = replace(
                histogram,
                values=(np.cumsum(present) - 1)[histogram.values].astype(np.int32),
                n_values=int(present.sum()),
                domain=domain.restricted(present, whole),
            )
    return replace(table, sensitive=sensitive)


def recount(
    connection: duckdb.DuckDBPyConnection,
    source: str,
    quasi: Sequence[str],
    sensitive: Mapping[str, Domain],
    *,
    person: str | None = None,
    schema: pa.Schema | None = None,
) -> FrequencyTable:
    """Group the rows of ``source``, a table expression, into a frequency table of the values as they stand.

    ``sensitive`` gives the whole that each column is compared with.
    ``schema`` names the types that the texts of a CSV file were written from.
    """
    names = ", ".join(quoted(name) for name in [*quasi, *sensitive])
    groups = _grouped(connection, f"SELECT {names}, count(*) FROM {source} GROUP BY ALL", schema)
    n = groups.column(groups.num_columns - 1).to_numpy().astype(np.int64)
    codes, nulls = _codes(groups, quasi)
    class_of, firsts = group(packed(codes))
    histograms = {}
    for i, (name, whole) in enumerate(sensitive.items()):
        values = _values(groups.column(len(quasi) + i), whole)
        rows = Histogram(np.arange(len(n) + 1), values, n, len(whole.texts), whole)
        histograms[name] = rows.merged(class_of, len(firsts))
    return FrequencyTable(
        tuple(quasi),
        codes[firsts],
        sum_by_class(n, class_of, len(firsts)),
        histograms,
        None if person is None else _persons(connection, source, quasi, person, groups, class_of, schema),
        nulls=nulls,
    )


def _grouped(connection: duckdb.DuckDBPyConnection, query: str, schema: pa.Schema | None) -> pa.Table:
    try:
        table = connection.sql(query).to_arrow_table()
    except duckdb.Error:  # its message may quote a line of the data
        raise VerificationError("the release could not be read back and counted; nothing was written") from None
    for i, name in enumerate(table.column_names):
        if schema is not None and name in schema.names and schema.field(name).type != table.column(i).type:
            table = table.set_column(i, name, table.column(i).cast(schema.field(name).type))
    return table


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
    schema: pa.Schema | None,
) -> Histogram:
    """Who stands behind each class: the distinct persons, by a second grouping."""
    names = ", ".join(quoted(name) for name in [*quasi, person])
    pairs = _grouped(connection, f"SELECT {names} FROM {source} GROUP BY ALL", schema)
    keys = list(range(len(quasi)))
    both = pa.concat_tables([_unnamed(groups.select(keys)), _unnamed(pairs.select(keys))])
    codes, _ = _codes(both, quasi)
    found, firsts = group(packed(codes))
    ours = np.empty(len(firsts), np.int64)
    ours[found[: len(groups)]] = class_of
    who = codec.texts(person, pairs.column(len(quasi)))
    return Histogram.of(ours[found[len(groups) :]], who.codes, int(class_of.max()) + 1, len(who.texts), None)


def _unnamed(table: pa.Table) -> pa.Table:
    return table.rename_columns([str(i) for i in range(table.num_columns)])
