"""Records by key: the class of every record, and how many records share its key in sample and population.

f is the number of records with a record's key, F the sum of their sampling weights, which estimates how many people
of the population have it. A null is a value of its own, or matches anything; then a match that rests on somebody
else's null counts ``alpha``, as in sdcMicro: M. Templ, A. Kowarik, B. Meindl, "Statistical disclosure control for
micro-data using the R package sdcMicro", Journal of Statistical Software 67(4), 2015.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.engines.data import Data
from shoal.engines.local import LocalEngine
from shoal.engines.opening import rows_of
from shoal.errors import DataError, MissingValueError, PolicyError, no_column
from shoal.notation.numbers import parse_number
from shoal.tables.domain import domain_of
from shoal.tables.frequency import ClassOf, Codes, Floats, FrequencyTable, count_records
from shoal.tables.wildcard import Nulls, matches


@dataclass(frozen=True, eq=False)
class Keys:
    """The rows of a table, and their classes by the values of some columns."""

    engine: LocalEngine
    table: FrequencyTable  # the null of a column has the code after all its values
    class_of: ClassOf  # (records)

    @property
    def n_records(self) -> int:
        """The number of rows."""
        return len(self.class_of)

    def weights(self, column: str | None) -> Floats:
        """Sampling weights of the records; all 1 if no column is named."""
        if column is None:
            return np.ones(self.n_records)
        weights = numbers(self.engine, column)
        if wrong := int((~(weights > 0) | np.isinf(weights)).sum()):
            raise DataError(
                f"column {column!r}: {wrong} of {len(weights)} sampling weights are missing or not above 0",
                "a weight says how many people of the population a record stands for",
            )
        return weights


def keys_of(
    data: Data,
    quasi: Sequence[str],
    *,
    sensitive: Sequence[str] = (),
    entity: str | None = None,
    population: Data | None = None,
) -> Keys:
    """Count a path or a frame by the values of ``quasi``."""
    if isinstance(quasi, str):
        raise PolicyError("quasi: expected a list of column names, not a single text")
    if not quasi:
        raise PolicyError("quasi: specify at least one column that an intruder could link on")
    engine = rows_of(data)
    _require(engine, [*quasi, *sensitive])
    columns = [engine.coded(name) for name in quasi]
    codes = np.column_stack([np.where(c.codes < 0, len(c.texts), c.codes) for c in columns]).astype(np.int32)
    domains = dict(domain_of(name, engine.coded(name), None) for name in sensitive)
    persons = None if entity is None else groups(engine, entity)
    table, class_of = count_records(tuple(quasi), codes, domains, persons)
    table = replace(table, nulls=tuple(len(c.texts) for c in columns))
    if population is not None:
        table = _with_population(table, engine, rows_of(population))
    return Keys(engine, table, class_of)


def numbers(engine: LocalEngine, column: str) -> Floats:
    """Return a column of a table as numbers, NaN for a null."""
    _require(engine, [column])
    values = engine.table[column]
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        return np.asarray(values.cast(pa.float64(), safe=False).fill_null(np.nan).to_numpy(), np.float64)
    coded = engine.coded(column)
    parsed = [parse_number(text) for text in coded.texts]
    if strange := sum(x is None for x in parsed):
        raise DataError(
            f"column {column!r}: {strange} of its {len(parsed)} distinct values are not numbers",
            "use a numeric column",
        )
    return np.array([*(float(str(x)) for x in parsed), np.nan])[coded.codes]


def groups(engine: LocalEngine, column: str) -> Codes:
    """Return the group, such as a household or a person, that each record belongs to."""
    _require(engine, [column])
    codes = engine.coded(column).codes
    if missing := int((codes < 0).sum()):
        raise MissingValueError(
            f"column {column!r}: {missing} of {len(codes)} records have no value",
            "fill the missing values, or give each of these records its own value",
        )
    return codes


def _require(engine: LocalEngine, columns: Sequence[str]) -> None:
    for name in columns:
        if name not in engine.table.column_names:
            raise no_column("the table", [name], engine.table.column_names)


def _with_population(table: FrequencyTable, engine: LocalEngine, outside: LocalEngine) -> FrequencyTable:
    """Add the number of people of a population with the key of each class; ``*`` matches every value."""
    from shoal.original.comparison import people_like  # which needs SciPy; most figures need neither

    people, absent = people_like(
        outside.values(table.columns), table.codes, [engine.coded(name) for name in table.columns]
    )
    return replace(table, population=people, absent=absent)


# ── How many share a key ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class Frequencies:
    """The number of records and, by their weights, of people who share the key of each record."""

    sample: Floats  # f (records); not whole where matches by null count in part
    population: Floats  # F (records)

    @property
    def uniques(self) -> int:
        """The number of records with a unique key."""
        return int((self.sample == 1).sum())

    def below(self, k: float) -> int:
        """Return the number of records that violate k-anonymity."""
        return int((self.sample < k).sum())

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "records": len(self.sample),
            "uniques": self.uniques,
            "least": float(self.sample.min()) if len(self.sample) else 0.0,
        }


def frequencies(
    data: Data, quasi: Sequence[str], *, weight: str | None = None, nulls: Nulls = "wildcard", alpha: float = 1.0
) -> Frequencies:
    """Return f and F of every record, in the order of the rows.

    With ``nulls="wildcard"`` a null matches anything; another record that matches only by a null of its own counts
    ``alpha``. With ``"category"`` it is a value like others.
    """
    keys = keys_of(data, quasi)
    return frequencies_of(keys, keys.weights(weight), nulls=nulls, alpha=alpha)


def frequencies_of(keys: Keys, weights: Floats, *, nulls: Nulls, alpha: float = 1.0) -> Frequencies:
    """Compute the same from records that were already counted."""
    n_classes = keys.table.n_classes
    sums = np.stack([keys.table.counts.astype(float), np.bincount(keys.class_of, weights, minlength=n_classes)])
    shared = matched(keys.table, sums, nulls=nulls, alpha=alpha)[:, keys.class_of]
    return Frequencies(shared[0], shared[1])


def matched(table: FrequencyTable, weights: Floats, *, nulls: Nulls, alpha: float = 1.0) -> Floats:
    """Sum ``weights`` (sums, classes) over the classes that each class could be confused with.

    A class without nulls that matches counts in full, and so does the class itself; another class with nulls counts
    ``alpha``. A key of nothing but nulls says nothing, and everybody counts.
    """
    if nulls not in ("category", "wildcard"):
        raise PolicyError(f"nulls: unknown option {nulls!r}", "choose 'category' or 'wildcard'")
    if not 0 <= alpha <= 1:
        raise PolicyError("alpha: must be between 0 and 1")
    if nulls == "category":
        return weights
    codes_of_nulls = table.nulls or (None,) * len(table.columns)
    missing = table.codes == np.array(codes_of_nulls)
    partial = missing.any(axis=1)
    sums = np.zeros(weights.shape)
    for mine, my_class, theirs, their_class in matches(table, codes_of_nulls):
        factor = np.where(partial[theirs], alpha, 1.0)
        n_classes = int(max(my_class.max(), their_class.max())) + 1
        for out, weight in zip(sums, weights, strict=True):
            out[mine] += np.bincount(their_class, weight[theirs] * factor, minlength=n_classes)[my_class]
    sums[:, partial] += (1 - alpha) * weights[:, partial]
    sums[:, missing.all(axis=1)] = weights.sum(axis=1, keepdims=True)
    return sums
