"""The statistics before noise: sensitivities by brute force over neighbours, and a second implementation.

Many small tables are counted at once: their number is the first key, and the people of each are its own. One person
removed from each leaves its neighbour. A thorough run tries 12,000 tables, each without every one of its people.
"""

import math
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from examples import THOROUGH, tables
from shoal.results.dp.counting import ExactStatistics, counted_exactly
from shoal.results.dp.quantiles import with_blocks
from shoal.results.dp.query import _opened, _QueryRequest
from shoal.results.dp.statistics import ContributionsStatistic, QueryStatistic

ASKED: dict[str, Any] = {
    "count": True,
    "persons": True,
    "sum": ["x"],
    "mean": ["x"],
    "quantile": {"x": [0.5]},
    "histogram": ["g"],
    "table": [["g", "x"]],
    "regression": {"y": ["x"]},
    "records_per_person": 2,
    "bounds": {"x": (-3, 7), "y": (0, 1)},
    "categories": {"g": ["a", "b"]},
    "bins": {"x": [-3, 0, 7]},
    "entity": "who",
}
PEOPLE = ("p", "q", "r", "s")
G = ("a", "b", "c", None)
X = ("-9", "-3", "0", " 2.5", "7", "1e90", "n/a", "", None)
Y = (0.0, 0.4, 1.0, 5.0, -math.inf, 5e-324, None, math.nan)

Record = tuple[str, str | None, str | None, str | None, float | None]  # number of the table, person, g, x, y


def drawn(numbers: range) -> list[Record]:
    """Up to nine records in each table, often several of one person; every fourth one has an extreme person only."""
    draw = np.random.default_rng(numbers.start)

    def any_of(values: tuple[Any, ...]) -> Any:
        return values[draw.integers(len(values))]

    found: list[Record] = []
    for t in numbers:
        people, xs = (("p",), ("7", "1e90")) if t % 4 == 0 else ((*PEOPLE, None), X)
        for _ in range(draw.integers(1, 10)):
            person = any_of(people)
            found.append((str(t), person and f"{t} {person}", any_of(G), any_of(xs), any_of(Y)))
    return found


def counted(records: list[Record], by: list[str], contributions: int) -> tuple[list[QueryStatistic], ExactStatistics]:
    kinds = {"t": pa.string(), "who": pa.string(), "g": pa.string(), "x": pa.string(), "y": pa.float64()}
    columns = zip(*records, strict=True)
    table = pa.table({name: pa.array(c, kind) for (name, kind), c in zip(kinds.items(), columns, strict=True)})
    asked = ASKED | {"by": by, "contributions": contributions}
    prepared = _opened(table, "epsilon=1,delta=1e-9", None, _QueryRequest(**asked))
    asks = [one.statistic for one in prepared.calibrations]
    return asks, counted_exactly(prepared.rows, asks, by, prepared.unit)


def by_table(exact: Any, j: int) -> dict[str, dict[Any, Any]]:
    """The entries of a piece, by table and group."""
    found: dict[str, dict[Any, Any]] = defaultdict(dict)
    for key, pieces in exact.items():
        found[key[0]][key[1:]] = np.array(pieces[j], dtype=object)
    return found


def changes(one: dict[Any, Any], other: dict[Any, Any]) -> Any:
    """By how much each entry differs between two tables, over all groups."""
    return np.abs(np.concatenate([one.get(key, 0) - other.get(key, 0) for key in {*one, *other}] or [np.zeros(1)]))


@pytest.mark.parametrize(("contributions", "grouped"), [(1, True), (2, False), (3, True)])
@pytest.mark.parametrize("numbers", tables(4000 if THOROUGH else 300, always=20))
def test_no_person_changes_a_statistic_by_more_than_its_sensitivity(
    numbers: range, contributions: int, grouped: bool
) -> None:
    records, by = drawn(numbers), ["t", "g"] if grouped else ["t"]
    asks, whole = counted(records, by, contributions)
    largest: dict[tuple[int, int], int] = Counter()
    for person in PEOPLE:
        rest = [record for record in records if record[1] is None or not record[1].endswith(person)]
        _, without = counted(rest, by, contributions)
        for i, ask in enumerate(asks):
            if isinstance(ask, ContributionsStatistic):
                continue
            for j, piece in enumerate(ask.pieces(contributions, grouped)):
                one, other = by_table(whole.exact[i], j), by_table(without.exact[i], j)
                for t in one:
                    change = changes(one[t], other[t])
                    assert change.sum() <= piece.sensitivity.l1, ask.name
                    assert (change**2).sum() <= piece.sensitivity.l2_squared, ask.name
                    largest[i, j] = max(largest[i, j], change.sum())
        behind = [by_table({key: [[n]] for key, n in found.people.items()}, 0) for found in (whole, without)]
        for t in behind[0]:
            change = changes(behind[0][t], behind[1][t])
            assert change.max() <= 1, "people behind a key"
            assert change.sum() <= contributions, "keys of a person"
    # The sensitivities are no larger than necessary: somebody changes counts, sums, tables and trees by as much.
    most = {(i, j): asks[i].pieces(contributions, grouped)[j].sensitivity.l1 for i, j in largest}
    reached = {asks[i].kind for (i, j), n in largest.items() if n == most[i, j]}
    assert {"count", "persons", "sum", "table", "quantile"} <= reached


def test_records_without_a_person_never_count() -> None:
    records = drawn(range(40))
    known = [record for record in records if record[1] is not None]
    assert counted(records, ["t", "g"], 2)[1] == counted(known, ["t", "g"], 2)[1]


# ── a second implementation ─────────────────────────────────────────────────────────────────────────────────


def number(text: str | None) -> float | None:
    try:
        return float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def expected(records: list[Record]) -> list[list[list[int]]]:
    """The statistics of the people's records in one group, by their definitions."""
    xs = [None if (x := number(r[3])) is None else min(7.0, max(-3.0, x)) for r in records]
    ys = [None if r[4] is None or math.isnan(r[4]) else min(1.0, max(0.0, r[4])) for r in records]
    units = [math.floor(x * 1e5 + 0.5) for x in xs if x is not None]
    cells = [0] * 1024
    for x in xs:
        if x is not None:
            cells[min(1023, int((x + 3) * 1024 / 10))] += 1
    g = [r[2] for r in records]
    low = [None if x is None else 0 if x < 0 else 1 for x in xs]
    pairs = [
        (math.floor((x - 2) * 1024 / 5 + 0.5), math.floor((y - 0.5) * 1024 / 0.5 + 0.5))
        for x, y in zip(xs, ys, strict=True)
        if x is not None and y is not None
    ]
    return [
        [[len(records)]],
        [[len({r[1] for r in records})]],
        [[sum(units)]],
        [[sum(unit - 200_000 for unit in units)], [len(units)]],
        [[g.count("a"), g.count("b")]],
        [[list(zip(g, low, strict=True)).count((a, b)) for a in "ab" for b in (0, 1)]],
        [with_blocks(cells)],
        [
            [
                len(pairs) * 1024**2,
                sum(x for x, _ in pairs) * 1024,
                sum(y for _, y in pairs) * 1024,
                sum(x * x for x, _ in pairs),
                sum(x * y for x, y in pairs),
            ]
        ],
    ]


@pytest.mark.parametrize("numbers", tables(4000 if THOROUGH else 600, always=20))
def test_the_engine_counts_what_the_definitions_say(numbers: range) -> None:
    records = [record for record in drawn(numbers) if record[1] is not None]
    asks, found = counted(records, ["t", "g"], 9)
    groups: dict[Any, list[Record]] = defaultdict(list)
    for record in records:
        groups[record[0], record[2]].append(record)
    for key, some in groups.items():
        for i, pieces in enumerate(expected(some)):
            zeros = [[0] * piece.size for piece in asks[i].pieces(9, True)]
            assert found.exact[i].get(key, zeros) == pieces, asks[i].name
    each = Counter(Counter(record[1] for record in records).values())
    assert found.exact[8] == {(): [[each[1], each[2], sum(n for size, n in each.items() if size > 2)]]}


# ── the limit of records per person ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("contributions", [1, 2, 4])
def test_of_each_person_as_many_records_as_the_limit_are_kept(contributions: int) -> None:
    records = [record for record in drawn(range(60)) if record[1] is not None]
    _, found = counted(records, ["t"], contributions)
    kept: Counter[str] = Counter()
    for (t, _), n in Counter((record[0], record[1]) for record in records).items():
        kept[t] += min(n, contributions)
    assert found.exact[0] == {(t,): [[n]] for t, n in kept.items()}


def limited(rows: pa.Table, by: str, **asked: Any) -> Any:
    prepared = _opened(rows, "epsilon=1,delta=1e-9", None, _QueryRequest(count=True, by=[by], entity="who", **asked))
    return counted_exactly(prepared.rows, [one.statistic for one in prepared.calibrations], [by], prepared.unit)


def test_the_limit_prefers_no_value_over_all_people() -> None:
    # Each of 2000 people was in both wards, and one record of each counts. A hash of the ward alone puts all in one.
    who = [f"person {i}" for i in range(2000)] * 2
    found = limited(pa.table({"who": who, "ward": ["A"] * 2000 + ["B"] * 2000}), "ward")
    assert found.people[("A",)] + found.people[("B",)] == 2000
    assert abs(found.people[("A",)] - 1000) < 6 * math.sqrt(500)


@pytest.mark.parametrize(
    ("one", "other"), [(("a\x1fb", "c"), ("a", "b\x1fc")), ((None, "c"), ("\x1e", "c"))], ids=["separator", "null"]
)
def test_what_is_kept_does_not_depend_on_the_order_of_rows(one: Any, other: Any) -> None:
    # Two records whose texts, put together, are the same: which is kept must not depend on where other people's are.
    pair = [("p", *one), ("p", *other)]
    crowd = [(f"q{i}", "a", "z") for i in range(50)]
    orders = [[*pair, *crowd], [*pair[::-1], *crowd], [pair[1], *crowd, pair[0]]]
    tables_ = [
        pa.table(dict(zip(["who", "g", "h"], map(list, zip(*rows, strict=True)), strict=True))) for rows in orders
    ]
    asked = {"histogram": ["h"], "categories": {"h": ["c", "z", "b\x1fc"]}}
    first, *others = (limited(table, "g", **asked) for table in tables_)
    assert all(found == first for found in others)


@pytest.mark.parametrize("name", ["records", "people", "shoal_n", "shoal_place", "n", "cell", "s0"])
def test_a_column_may_have_any_name(name: str) -> None:
    rows = pa.table({name: ["p", "p", "q"], "x": ["1", "2", "3"]})
    asked = {"count": True, "quantile": {"x": [0.5]}, "bounds": {"x": (0, 4)}, "records_per_person": 2, "entity": name}
    prepared = _opened(rows, "epsilon=1", None, _QueryRequest(**asked))
    found = counted_exactly(prepared.rows, [one.statistic for one in prepared.calibrations], (), prepared.unit)
    assert found.exact[0] == {(): [[2]]}
    assert found.exact[2] == {(): [[1, 1, 0]]}
