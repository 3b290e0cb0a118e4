"""A release beside its original, against definitions over single records in plain Python; and how the figures nest."""

from collections import Counter
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from examples import examples
from shoal.errors import InfeasibleError
from shoal.original.comparison import compare_with_original

UNHURRIED = examples(200)

Cell = str | None
Row = tuple[Cell, ...]
Pairs = list[list[bool]]


def _age(text: str) -> tuple[str, ...]:
    ten, forty = int(text) // 10 * 10, int(text) // 40 * 40
    return text, f"{ten}-{ten + 9}", f"{forty}-{forty + 39}", "*"


# What the hierarchy of each column says of each value, level by level, written down by hand.
PATHS: dict[str, dict[Cell, tuple[Cell, ...]]] = {
    "age": {text: _age(text) for text in ("4", "8", "14", "45")},
    # The label of a group is also a value in it, and a value that sits higher stays as it is.
    "job": {
        "nurse": ("nurse", "nurse", "any"),
        "midwife": ("midwife", "nurse", "any"),
        "clerk": ("clerk", "clerk", "any"),
    },
    "zip": {"11": ("11", "1*", "*"), "12": ("12", "1*", "*"), "2": ("2", "*", "*")},
}
SPECS: dict[str, Any] = {
    "age": {"intervals": [10, 40]},
    "job": {"tree": {"any": {"nurse": ["nurse", "midwife"], "clerk": ["clerk"]}}},
    "zip": {"mask": "right"},
}
NAMES = tuple(PATHS)


def paths_of(name: str, values: Sequence[Cell]) -> dict[Cell, tuple[Cell, ...]]:
    """The paths of a column with these values; masks have a level per character of the longest."""
    paths = dict(PATHS[name])
    if name == "zip":
        length = max((len(text) for text in values if text is not None), default=1)
        paths = {text: path if length == 2 else (text, "*") for text, path in paths.items()}
    height = len(next(iter(paths.values()))) - 1
    return {**paths, None: (None,) * height + (next(iter(paths.values()))[-1],)}


def policy(n_columns: int, nulls: str = "category", **release: Any) -> shoal.Policy:
    return shoal.Policy.of(
        {
            "columns": {name: {"role": "quasi", "hierarchy": SPECS[name]} for name in NAMES[:n_columns]},
            "require": [{"model": "k-anonymity", "k": release.pop("k", 2)}],
            "release": {"nulls": nulls, **release},
        }
    )


def table_of(rows: Sequence[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    return pa.table({NAMES[j]: pa.array(column, pa.string()) for j, column in enumerate(columns)})


@st.composite
def originals(draw: st.DrawFn, max_rows: int) -> list[Row]:
    """Few values, so that records often coincide; sometimes with nulls."""
    n_columns = draw(st.integers(1, 3))
    nulls = [None] if draw(st.integers(0, 2)) == 0 else []
    values = [st.sampled_from([*PATHS[name], *nulls]) for name in NAMES[:n_columns]]
    return draw(st.lists(st.tuples(*values), min_size=1, max_size=max_rows))


@st.composite
def generalized(draw: st.DrawFn, rows: Sequence[Row]) -> list[Row]:
    """Each cell at a level of its own, or a star; in another order."""
    paths = [paths_of(NAMES[j], column) for j, column in enumerate(zip(*rows, strict=True))]
    released = [tuple(draw(st.sampled_from([*paths[j][cell], "*"])) for j, cell in enumerate(row)) for row in rows]
    return draw(st.permutations(released))


@st.composite
def spoiled(draw: st.DrawFn, rows: Sequence[Row]) -> list[Row]:
    """Some cells replaced by anything, some records dropped."""
    n = draw(st.integers(1, len(rows)))
    strange: list[Row] = list(rows[:n])
    for _ in range(draw(st.integers(0, 3))):
        i, j = draw(st.integers(0, n - 1)), draw(st.integers(0, len(rows[0]) - 1))
        cells = sorted({label for path in PATHS[NAMES[j]].values() for label in path if label is not None})
        cell = draw(st.sampled_from([*cells, "*", "?", "", None]))
        strange[i] = (*strange[i][:j], cell, *strange[i][j + 1 :])
    return strange


# --- the definitions ---------------------------------------------------------------------------------------------


class Definition:
    """Every figure over records."""

    def __init__(self, rows: Sequence[Row], released: Sequence[Row], *, wildcard: bool) -> None:
        self.rows, self.released = rows, released
        self.paths = [paths_of(NAMES[j], column) for j, column in enumerate(zip(*rows, strict=True))]
        self.wildcard = wildcard

    def cell(self, j: int, original: Cell, released: Cell) -> bool:
        if (released is None and self.wildcard) or (released and not released.strip("*")):
            return True
        if NAMES[j] == "zip" and released and original and released.endswith("*"):
            return len(released) >= len(original) and original.startswith(released.rstrip("*"))
        return released in self.paths[j][original]

    def unknown(self) -> dict[str, int]:
        found: Counter[str] = Counter()
        for j, cells in enumerate(zip(*self.released, strict=True)):
            values = {row[j] for row in self.rows}
            if NAMES[j] == "job":  # its tree has all values; the others have only those that occur
                values |= set(PATHS["job"])
            found[NAMES[j]] = sum(not any(self.cell(j, value, cell) for value in values) for cell in cells)
        return {name: n for name, n in found.items() if n}

    def scores(self) -> list[list[int]]:
        return [[sum(self.cell(j, u[j], v[j]) for j in range(len(u))) for v in self.released] for u in self.rows]

    def edges(self) -> Pairs:
        return [[score == len(self.rows[0]) for score in row] for row in self.scores()]

    def with_stars(self) -> Pairs:
        return [row + [True] * (len(self.rows) - len(self.released)) for row in self.edges()]

    def ties(self) -> list[int]:
        return [row.count(max(row)) for row in self.scores()]


def by_permutations(edges: Pairs) -> list[int]:
    """For each original, the released records that it has in some perfect matching."""
    n = len(edges)
    partners: list[set[int]] = [set() for _ in range(n)]
    for order in permutations(range(n)):
        if all(edges[u][v] for u, v in enumerate(order)):
            for u, v in enumerate(order):
                partners[u].add(v)
    return [len(of) for of in partners]


def by_removal(edges: Pairs) -> list[int]:
    """The same: a pair is in a perfect matching where the others can be matched without it."""
    n = len(edges)
    return [
        sum(edges[u][v] and _matched(edges, set(range(n)) - {u}, set(range(n)) - {v}) for v in range(n))
        for u in range(n)
    ]


def _matched(edges: Pairs, left: set[int], right: set[int]) -> bool:
    owner: dict[int, int] = {}

    def place(u: int, seen: set[int]) -> bool:
        for v in right - seen:
            if edges[u][v]:
                seen.add(v)
                if v not in owner or place(owner[v], seen):
                    owner[v] = u
                    return True
        return False

    return all(place(u, set()) for u in left)


def agree(rows: list[Row], released: list[Row], nulls: str, concealing: list[int]) -> None:
    """All figures are those of the definitions, and so are the counts below any threshold."""
    expected = Definition(rows, released, wildcard=nulls == "wildcard")
    edges = expected.edges()
    of_original = {
        "one_k": [sum(row) for row in edges],
        "concealment": concealing,
        "confusion": expected.ties(),
    }
    of_released = {"k_one": [sum(column) for column in zip(*edges, strict=True)]}
    found = compare_with_original(table_of(rows), table_of(released), policy(len(rows[0]), nulls))
    for name, values in (of_original | of_released).items():
        assert getattr(found, name) == min(values), name
        for k in range(len(rows) + 2):
            assert found.below(k)[name] == sum(value < k for value in values), (name, k)
    assert found.k_k == min(found.one_k, found.k_one)
    assert found.dropped == len(rows) - len(released)
    assert found.unknown == expected.unknown()


@UNHURRIED
@given(st.data(), st.sampled_from(["category", "wildcard"]))
def test_all_permutations_of_few_records(data: st.DataObject, nulls: str) -> None:
    rows = data.draw(originals(6))
    released = data.draw(generalized(rows))
    if data.draw(st.booleans()):
        released = data.draw(spoiled(released))
    stars = Definition(rows, released, wildcard=nulls == "wildcard").with_stars()
    agree(rows, released, nulls, by_permutations(stars))


def test_all_permutations_of_seven_records() -> None:
    rows: list[Row] = [
        ("4", "nurse"),
        ("4", "nurse"),
        ("8", "nurse"),
        ("14", "midwife"),
        ("45", "clerk"),
        ("45", "nurse"),
        ("8", None),
    ]
    released: list[Row] = [
        ("0-9", "nurse"),
        ("0-39", "*"),
        ("8", "any"),
        ("*", "nurse"),
        ("45", "*"),
        ("*", "nurse"),
        ("0-9", None),
    ]
    stars = Definition(rows, released, wildcard=False).with_stars()
    assert by_permutations(stars) == by_removal(stars)
    assert len(set(by_permutations(stars))) > 1
    agree(rows, released, "category", by_permutations(stars))


@UNHURRIED
@given(st.data())
def test_more_records_than_can_be_permuted(data: st.DataObject) -> None:
    rows = data.draw(originals(14))
    released = data.draw(generalized(rows))
    released = released[: data.draw(st.integers(max(1, len(rows) - 3), len(rows)))]
    stars = Definition(rows, released, wildcard=False).with_stars()
    agree(rows, released, "category", by_removal(stars))


# --- how the figures nest ----------------------------------------------------------------------------------------


@UNHURRIED
@given(st.data())
def test_k_anonymity_implies_concealment_implies_candidates(data: st.DataObject) -> None:
    rows = data.draw(originals(30))
    released = data.draw(generalized(rows))
    found = compare_with_original(table_of(rows), table_of(released), policy(len(rows[0])))
    k = min(Counter(released).values())
    assert 1 <= k <= found.concealment <= found.one_k <= len(rows)
    assert k <= found.k_k == min(found.one_k, found.k_one)
    assert found.confusion == found.one_k  # in a generalization the best match is a consistent one
    assert found.unknown == {}
    for threshold in range(1, len(rows) + 1):
        below = found.below(threshold)
        assert below["one_k"] <= below["concealment"]


@examples(60)
@given(st.data(), st.sampled_from(["none", "keep", "drop"]))
def test_what_shoal_releases_keeps_its_k_beside_the_original(data: st.DataObject, suppression: str) -> None:
    rows = data.draw(originals(30))
    k = data.draw(st.integers(1, 4))
    options: dict[str, Any] = {} if suppression == "none" else {"max_suppression": 0.5, "suppressed": suppression}
    asked = policy(len(rows[0]), k=k, **options)
    try:
        release = shoal.anonymize(table_of(rows), asked)
    except InfeasibleError:
        return
    found = compare_with_original(table_of(rows), release.table, asked)
    assert found.unknown == {}
    assert found.k_one >= k
    if suppression == "drop":
        assert found.dropped == release.suppressed
        below = found.below(k)
        assert max(below["one_k"], below["concealment"], below["confusion"]) <= found.dropped
    else:
        assert found.dropped == 0
        assert min(found.concealment, found.k_k, found.confusion) >= k


@pytest.mark.parametrize(
    "released",
    [
        pytest.param([("0-9",), ("0-9",), ("10-19",)], id="one cell says too much"),
        pytest.param([("0-9",), ("?",), ("*",)], id="one cell says nothing known"),
    ],
)
def test_a_release_without_a_perfect_matching_conceals_nobody(released: list[Row]) -> None:
    rows: list[Row] = [("4",), ("8",), ("8",)]
    assert by_permutations(Definition(rows, released, wildcard=False).with_stars()) == [0, 0, 0]
    agree(rows, released, "category", [0, 0, 0])
