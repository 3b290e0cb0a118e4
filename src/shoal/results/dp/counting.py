"""The exact statistics, by the engine's own GROUP BY: one for all sums and counts, one for each table of cells.

A person's records are limited to ``contributions``: which are kept depends on that person's name and records alone (on
a hash of them), so it does not depend on who else is present, and no value is preferred. Records without a
person are left out. Nothing here fails because of a single value: an error would reveal that the value is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import ibis
import pyarrow as pa
from ibis.expr import types as ir

from shoal.engines.grouping import Groupable
from shoal.engines.ibis_order import order_keys
from shoal.engines.sql import unused
from shoal.errors import PolicyError
from shoal.notation import codec
from shoal.results.arguments import whole_argument
from shoal.results.dp.persons import key_of_person
from shoal.results.dp.public_schema import CellsOf, FixedPoint
from shoal.results.dp.quantiles import N_CELLS, QuantileStatistic, with_blocks
from shoal.results.dp.regression import STEPS, RegressionStatistic
from shoal.results.dp.statistics import (
    ContributionsStatistic,
    CountStatistic,
    MeanStatistic,
    PersonsStatistic,
    QueryStatistic,
    SumStatistic,
    TableStatistic,
)
from shoal.results.grouping import figures_of_groups

PERSON = "shoal_person"  # the column with the key of a record's person

GroupKey = tuple[str | None, ...]  # the values of the columns to group by, as texts
Exact = Mapping[GroupKey, list[list[int]]]  # the pieces of a query in each group; a group that is absent is all zeros


@dataclass(frozen=True)
class PrivacyUnit:
    """Whose privacy is protected: a person with several records, or a record."""

    entity: str | None
    contributions: int = 1

    @classmethod
    def checked(cls, entity: str | None, contributions: int) -> PrivacyUnit:
        """Return the unit; raise an error if the limit of records makes no sense."""
        contributions = whole_argument("contributions", contributions, 1, 10_000, "so many records of one person count")
        if entity is None and contributions != 1:
            raise PolicyError(
                "contributions needs an entity: which column identifies the people?",
                "without one, every record is taken to be a person of its own",
                option="--entity",
            )
        return cls(entity, contributions)

    @property
    def name(self) -> str:
        """The unit as a ledger writes it."""
        return "record" if self.entity is None else f"entity:{self.entity}"

    @property
    def protected(self) -> str:
        """Whose privacy is protected, in words."""
        if self.entity is None:
            return "a record"
        return f"a person ({self.entity}), with at most {self.contributions} of their records"


@dataclass(frozen=True)
class ExactStatistics:
    """The exact statistics of all queries, and the number of people behind each key. They are never shown."""

    exact: Sequence[Exact]
    people: Mapping[GroupKey, int]


def counted_exactly(
    rows: Groupable, statistics: Sequence[QueryStatistic], by: Sequence[str], unit: PrivacyUnit, *, people: bool = True
) -> ExactStatistics:
    """Run the queries without noise; count the ``people`` behind each key only if they decide what is shown."""
    names = list(dict.fromkeys([*by, *(name for statistic in statistics for name in statistic.columns)]))
    limited = limited_records(rows, names, unit)
    people = people or any(isinstance(statistic, PersonsStatistic) for statistic in statistics)
    scalars = [
        (i, statistic)
        for i, statistic in enumerate(statistics)
        if isinstance(statistic, CountStatistic | PersonsStatistic | SumStatistic | MeanStatistic | RegressionStatistic)
    ]
    exact: list[Exact] = [{} for _ in statistics]
    aggregates: dict[str, Any] = {}
    fields: dict[int, list[list[str]]] = {}
    for i, statistic in scalars:
        fields[i] = []
        for piece in _sums(rows, limited, statistic):
            named = {unused(f"s{len(aggregates) + j}", by): aggregate for j, aggregate in enumerate(piece)}
            aggregates |= named
            fields[i].append(list(named))
    people_field = unused("people", [*by, *aggregates])
    if people:
        aggregates[people_field] = limited.count() if unit.entity is None else limited[PERSON].nunique()
    group_rows = _grouped(rows, limited, by, aggregates) if aggregates else []
    behind: dict[GroupKey, int] = {}
    for key, row in group_rows if people else ():
        # Values that share a text are one key, and somebody may have records with each: added up, one person would
        # change that key by more than 1.
        behind[key] = max(behind.get(key, 0), row[people_field])
    for i, statistic in scalars:
        if isinstance(statistic, PersonsStatistic):
            exact[i] = {key: [[n]] for key, n in behind.items()}
            continue
        exact[i] = _added((key, [[row[name] for name in piece] for piece in fields[i]]) for key, row in group_rows)
    for i, other in enumerate(statistics):
        if isinstance(other, TableStatistic):
            exact[i] = _table(rows, limited, by, other)
        elif isinstance(other, QuantileStatistic):
            exact[i] = _trees(rows, limited, by, other)
        elif isinstance(other, ContributionsStatistic):
            exact[i] = _contributions(rows, other, unit)
    return ExactStatistics(exact, behind)


def limited_records(rows: Groupable, names: Sequence[str], unit: PrivacyUnit) -> ir.Table:
    """Keep at most ``contributions`` records of each person.

    The person is hashed with the records: by their values alone, all people would keep the same ward of two. Texts with
    the hash's own marks in them share a hash, so texts decide at last; records that are still equal count alike.
    """
    if unit.entity is None:
        return rows.table
    table = _with_persons(rows, unit.entity)
    value_columns = [name for name in names if name != unit.entity]
    number_column = unused("shoal_place", table.columns)
    # Only the records of people with too many are hashed and sorted, which takes far longer than counting them.
    people = table.group_by(PERSON).agg(**{number_column: table.count()})
    over_limit = people.filter(people[number_column] > unit.contributions).select(PERSON)
    within_limit, table = table.anti_join(over_limit, PERSON), table.semi_join(over_limit, PERSON)
    order = order_keys(table.select(PERSON, *value_columns), 0, columns_of=table)
    order += [table[name] for name in value_columns if table[name].type().is_string()]
    number = ibis.row_number().over(ibis.window(group_by=[table[PERSON]], order_by=order))
    numbered = table.mutate(**{number_column: number})
    return within_limit.union(numbered.filter(numbered[number_column] < unit.contributions).drop(number_column))


def _with_persons(rows: Groupable, entity: str) -> ir.Table:
    """Return the records of persons, with the key of each."""
    table = rows.table.mutate(**{PERSON: key_of_person(rows.table[entity])})
    return table.filter(table[PERSON].notnull())


# ── numbers in whole units ──────────────────────────────────────────────────────────────────────────────────


def _real(rows: Groupable, table: ir.Table, name: str) -> Any:
    """Return a column of numbers; ``rows.table`` has no NaN."""
    return rows.number(name, table).cast("float64")


def _rounded(
    rows: Groupable, table: ir.Table, values: FixedPoint, zero: float, times: float, by: float, ends: tuple[int, int]
) -> Any:
    """Return ``times`` / ``by`` of the distance from ``zero``, rounded and clamped to ``ends``; null without a number.

    What rounds to an end or beyond becomes that end before it is calculated with. So everything fits, and the others
    are so far within, by half a step at least, that no rounding of floats takes them beyond. Half a step is added
    before dividing: PostgreSQL raises an error where a quotient is too small for a double, and one cell must not end a
    query.
    """
    real = _real(rows, table, values.column)
    inner = (real - zero if zero else real) * times + by / 2
    first, last = ends
    whole = ibis.cases(
        (real >= zero + (last - 0.5) * by / times, float(last)),
        (real < zero + (first + 0.5) * by / times, float(first)),
        else_=inner if by == 1 else inner / by,
    )
    return whole.floor().cast("int64")


def _in_units(rows: Groupable, table: ir.Table, values: FixedPoint) -> Any:
    """Return a column in whole units."""
    unit = values.unit
    times, by = (1.0, float(unit)) if unit >= 1 else (float(round(1 / unit)), 1.0)
    return _rounded(rows, table, values, 0.0, times, by, (values.lower_units, values.upper_units))


def _in_steps(rows: Groupable, table: ir.Table, values: FixedPoint) -> Any:
    """Return a column scaled to the whole numbers from -STEPS to STEPS."""
    low, high = float(values.lower), float(values.upper)
    return _rounded(rows, table, values, (low + high) / 2, STEPS, (high - low) / 2, (-STEPS, STEPS))


def _in_cells(rows: Groupable, table: ir.Table, values: FixedPoint) -> Any:
    """Return the number of the cell of equal width that each value is in: that whose middle is nearest."""
    low, high = float(values.lower), float(values.upper)
    return _rounded(rows, table, values, low + (high - low) / N_CELLS / 2, N_CELLS, high - low, (0, N_CELLS - 1))


def _sums(rows: Groupable, table: ir.Table, statistic: QueryStatistic) -> list[list[Any]]:
    """Return the aggregates of each piece of a query; people are counted by the caller."""
    if isinstance(statistic, CountStatistic):
        return [[table.count()]]
    if isinstance(statistic, PersonsStatistic):
        return []
    if isinstance(statistic, SumStatistic):
        return [[_in_units(rows, table, statistic.values).sum()]]
    if isinstance(statistic, MeanStatistic):
        n = _real(rows, table, statistic.values.column).count()
        return [[_in_units(rows, table, statistic.values).sum() - n * statistic.values.centre], [n]]
    if isinstance(statistic, RegressionStatistic):
        steps = [_in_steps(rows, table, variable) for variable in statistic.variables]
        every = sum(steps[1:], steps[0])  # null if one of them is
        zero = every * 0
        unit = (zero + 1) * STEPS**2
        sums = [(zero + column) * STEPS for column in steps]
        products = [zero + steps[i] * steps[j] for i, j in statistic.products]
        return [[column.sum() for column in (unit, *sums, *products)]]
    raise TypeError(f"{statistic.name} is not a sum")


# ── cells ───────────────────────────────────────────────────────────────────────────────────────────────────


def _bin(rows: Groupable, table: ir.Table, cells: CellsOf) -> Any:
    """Return the number of the bin; values beyond the edges are in the first or last one, nulls in none."""
    real = _real(rows, table, cells.column)
    inner = [ibis.ifelse(real >= float(edge), 1, 0) for edge in cells.edges[1:-1]]
    first = ibis.literal(0, "int64")
    return ibis.ifelse(real.isnull(), ibis.null("int64"), sum(inner, first).cast("int64"))


def _table(rows: Groupable, limited: ir.Table, by: Sequence[str], statistic: TableStatistic) -> Exact:
    """Count the records in each cell of a table."""
    names = [unused(f"cell{j}", [*limited.columns]) for j in range(len(statistic.cells))]
    with_cells = limited.mutate(
        **{
            name: _bin(rows, limited, cells) if cells.edges else limited[cells.column]
            for name, cells in zip(names, statistic.cells, strict=True)
        }
    )
    n = unused("n", [*by, *names])
    fetched = figures_of_groups(rows, with_cells, [*by, *names], {n: with_cells.count()})
    places = [
        {label: i for i, label in enumerate(range(cells.n_cells) if cells.edges else cells.categories)}
        for cells in statistic.cells
    ]
    labels = [
        fetched[name].to_pylist() if cells.edges else texts_of(fetched, name)
        for name, cells in zip(names, statistic.cells, strict=True)
    ]
    size = statistic.pieces(1, False)[0].size
    counts_of_group: dict[GroupKey, list[list[int]]] = {}
    for key, count, *cell in zip(_keys(fetched, by), fetched[n].to_pylist(), *labels, strict=True):
        at = [index_of.get(value) for index_of, value in zip(places, cell, strict=True)]
        if None in at:
            continue
        index = 0
        for position, width in zip(at, statistic.shape, strict=True):
            index = index * width + int(position or 0)
        counts_of_group.setdefault(key, [[0] * size])[0][index] += int(count)
    return counts_of_group


def _trees(rows: Groupable, limited: ir.Table, by: Sequence[str], statistic: QuantileStatistic) -> Exact:
    """Count the values in each of 1024 cells of equal width, and in blocks of them."""
    cell = unused("cell", limited.columns)
    n = unused("n", [*by, cell])
    with_cells = limited.mutate(**{cell: _in_cells(rows, limited, statistic.values)})
    with_cells = with_cells.filter(with_cells[cell].notnull())
    fetched = figures_of_groups(rows, with_cells, [*by, cell], {n: with_cells.count()})
    cells: dict[GroupKey, list[int]] = {}
    for key, at, count in zip(_keys(fetched, by), fetched[cell].to_pylist(), fetched[n].to_pylist(), strict=True):
        cells.setdefault(key, [0] * N_CELLS)[int(at)] += int(count)
    return {key: [with_blocks(counts)] for key, counts in cells.items()}


def _contributions(rows: Groupable, statistic: ContributionsStatistic, unit: PrivacyUnit) -> Exact:
    """Count the people with each number of records, before the limit."""
    table = _with_persons(rows, str(unit.entity))
    people = table.group_by(PERSON).agg(records=table.count())
    upto = people.select(records=ibis.least(people.records, statistic.upto + 1))
    fetched = figures_of_groups(rows, upto, ["records"], {"people": upto.count()})
    counts = [0] * (statistic.upto + 1)
    for n, people_with in zip(fetched["records"].to_pylist(), fetched["people"].to_pylist(), strict=True):
        counts[int(n) - 1] += int(people_with)
    return {(): [counts]}


# ── groups ──────────────────────────────────────────────────────────────────────────────────────────────────


def _grouped(
    rows: Groupable, table: ir.Table, by: Sequence[str], aggregates: Mapping[str, Any]
) -> list[tuple[GroupKey, dict[str, int]]]:
    """Run one GROUP BY; a sum over no values is 0."""
    fetched = figures_of_groups(rows, table, by, aggregates)
    columns = {name: [int(value or 0) for value in fetched[name].to_pylist()] for name in aggregates}
    return [
        (key, dict(zip(columns, figures, strict=True)))
        for key, *figures in zip(_keys(fetched, by), *columns.values(), strict=True)
    ]


def _keys(fetched: pa.Table, by: Sequence[str]) -> list[GroupKey]:
    if not by:
        return [()] * fetched.num_rows
    return list(zip(*(texts_of(fetched, name) for name in by), strict=True))


def texts_of(fetched: pa.Table, name: str) -> list[str | None]:
    """Return a fetched column as texts, the same for every engine; values that share a text are one key."""
    coded = codec.encode_texts(name, fetched[name])
    words = [*coded.texts, None]  # the code of null is -1
    return [words[code] for code in coded.codes]


def _added(pairs: Any) -> Exact:
    totals: dict[GroupKey, list[list[int]]] = {}
    for key, pieces in pairs:
        if key in totals:
            pieces = [[a + b for a, b in zip(*pair, strict=True)] for pair in zip(totals[key], pieces, strict=True)]
        totals[key] = pieces
    return totals


def all_keys(cells: Sequence[CellsOf]) -> list[GroupKey]:
    """Return all combinations of the categories to group by."""
    return list(product(*(column_cells.categories for column_cells in cells)))
