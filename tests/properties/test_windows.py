"""Windows: labels that are fixed before classes are formed, and tell no value for certain."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.hierarchies.hierarchy import Hierarchy
from shoal.hierarchies.intervals import Intervals
from shoal.models.size import KAnonymity
from shoal.search import Problem
from shoal.search.cells.classes import Partition, recoding_of_partition
from shoal.search.local.boxes import Space
from shoal.search.losses.cells import prices
from shoal.search.problem import Terms
from shoal.tables.frequency import count_records
from shoal.tables.windows import FixedLabels, companions, covered_twice, sizes, windows_around


def window_by_definition(n, low, high, ranges):
    """The smallest of all windows, listed one by one; of several, the one in whose middle the class is."""
    if low == high:
        return low, high
    for size in (2**t + 1 for t in range(1, 20)):
        if ranges and size == 9:
            continue
        step = max(2, size // 4)
        starts = [start for start in range(0, n, step) if start + size <= n]
        ends = [n - 1 if start == starts[-1] else start + size - 1 for start in starts]
        listed = [w for w in zip(starts, ends, strict=True) if w[0] <= low and high <= w[1] and w != (0, n - 1)]
        if listed:
            return min(listed, key=lambda w: (abs(2 * w[0] + size - 1 - low - high), -w[0]))
    return 0, n - 1


def every_pair(n, ranges):
    low, high = np.triu_indices(n)
    first, last = windows_around(n, low, high, ranges=ranges)
    return list(zip(low.tolist(), high.tolist(), first.tolist(), last.tolist(), strict=True))


@pytest.mark.parametrize("ranges", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 9, 14, 16, 17, 33, 72])
def test_a_window_is_the_smallest_of_all_that_contain_the_class(n, ranges):
    for low, high, first, last in every_pair(n, ranges):
        assert (first, last) == window_by_definition(n, low, high, ranges)
        assert first <= low <= high <= last


@pytest.mark.parametrize("ranges", [False, True])
@pytest.mark.parametrize("n", [*range(3, 60), 65, 100, 128, 129])
def test_no_value_of_a_window_is_certain_even_in_a_class_of_two(n, ranges):
    certain = {}
    for low, high, first, last in every_pair(n, ranges):
        if low < high:
            certain.setdefault((first, last), set(range(n))).intersection_update({low, high})
    assert not any(certain.values())
    assert all(last - first >= 2 for first, last in certain)  # there are others to be mistaken for


def test_sizes_grow_by_nearly_two_and_ranges_skip_one():
    assert list(sizes(40, ranges=False)) == [(3, 2), (5, 2), (9, 2), (17, 4), (33, 8)]
    assert list(sizes(40, ranges=True)) == [(3, 2), (5, 2), (17, 4), (33, 8)]
    assert list(sizes(2, ranges=False)) == []


# ── Columns ─────────────────────────────────────────────────────────────────────────────────────────────────


def flat(values):
    return Hierarchy.from_levels("c", values, [values, ["*"] * len(values)])


def table_of(hierarchy, leaves):
    codes = np.array(leaves, np.int32)[:, None]
    return count_records(("c",), codes, {}, None, (hierarchy,), separately=True)[0]


def written(hierarchy, leaves, class_of, cells):
    """The label of each class, by the search's own way to write."""
    table = table_of(hierarchy, leaves)
    class_of_leaf_row = np.array(class_of)
    problem = Problem(table, (KAnonymity(k=1),), Terms(cells=(cells,)))
    row_of = {int(code): row for row, code in enumerate(table.codes[:, 0])}
    rows = np.array([row_of[leaf] for leaf in leaves])
    partition = Partition(rows, np.ones(len(rows), np.int64), class_of_leaf_row)
    answer = recoding_of_partition(problem, partition, "local")
    parts = answer.parts(table)
    values = answer.released[0]
    return {
        (int(table.codes[row, 0]), values.labels[code])
        for row, code in zip(parts.row.tolist(), parts.codes[:, 0].tolist(), strict=True)
    }


def test_sets_are_of_the_values_that_are_about_as_frequent():
    hierarchy = flat(["a", "b", "c", "d", "e", "f"])
    leaves = [0] * 9 + [1] * 2 + [2] * 5 + [3] * 8 + [4] * 4 + [5]  # by records: a, d, c, e, b, f
    class_of = [0] * 9 + [2] * 2 + [1] * 5 + [0] * 8 + [1] * 4 + [2]
    labels = written(hierarchy, [*leaves, *range(6)], [*class_of, *range(3, 9)], "set")
    assert labels == {
        *((leaf, "{a, c, d}") for leaf in (0, 3)),
        *((leaf, "{b, c, e, f}") for leaf in (2, 4, 1, 5)),
        *enumerate("abcdef"),
    }


def test_no_value_is_in_the_label_of_one_class_alone():
    hierarchy = flat(["a", "b", "c", "d", "e", "f"])
    leaves, class_of = [0, 0, 1, 3, 2, 2, 4, 5, 5, 0], [0, 0, 0, 0, 1, 1, 2, 2, 3, 3]
    labels = written(hierarchy, leaves, class_of, "set")
    texts = {label for leaf, label in labels if leaf in (0, 1, 3)}
    rng = np.random.default_rng(0)
    fixed = FixedLabels.for_column(hierarchy, "range", np.ones(6, np.int64))
    assert "*" in texts
    for _ in range(300):
        n_classes = int(rng.integers(2, 7))
        low, high = np.sort(rng.integers(0, 6, (2, n_classes)), axis=0)
        before = fixed.around(low, high)
        first, last = covered_twice(fixed, *before, rng.integers(2, 9, n_classes))
        assert (first <= before[0]).all()
        assert (last >= before[1]).all()
        for position in range(6):
            covering = (first <= position) & (position <= last)
            assert covering.sum() != 1 or (covering & (first == last)).any()


def test_sets_stay_within_labels_of_the_hierarchy_where_they_can():
    paths = [("a", "x", "*"), ("b", "y", "*"), ("c", "x", "*"), ("d", "y", "*"), ("e", "x", "*"), ("f", "y", "*")]
    hierarchy = Hierarchy.from_paths("c", paths)
    fixed = FixedLabels.for_column(hierarchy, "set", np.array([1, 5, 2, 4, 3, 6]))
    assert [int(group[0]) for group in fixed.groups] == [4, 2, 0, 5, 1, 3]


def test_ranges_are_of_values_that_occur_and_cover_those_between():
    numbers = Intervals.model_validate({"intervals": [10]}).build("c", [str(i) for i in range(20, 40)])
    leaves = [1, 2, 4, 5, 9, 12, 19]
    labels = written(numbers, [*leaves, *leaves], [0, 0, 1, 1, 1, 2, 2, *range(3, 10)], "range")
    ranges = {1: "21-24", 2: "21-24", 4: "24-29", 5: "24-29", 9: "24-29", 12: "29-39", 19: "29-39"}
    assert labels == {*ranges.items(), *((leaf, str(20 + leaf)) for leaf in leaves)}


def test_a_null_with_a_value_is_the_top_and_so_are_others():
    hierarchy = flat(["a", "b", "c", "d"]).with_null()
    leaves = [0, 4, 1, 2, 0, 3, 1, 2]
    labels = written(hierarchy, leaves, [0, 0, 1, 1, 2, 2, 3, 3], "set")
    assert {label for leaf, label in labels if leaf == 4} == {"*"}
    assert (3, "*") in labels  # the least frequent value, without a null


def test_of_two_values_a_class_with_both_has_a_companion_with_one():
    hierarchy = flat(["a", "b"])
    leaves = [0, 0, 0, 1, 0, 1, 1, 1]
    labels = written(hierarchy, leaves, [0, 0, 0, 1, 1, 2, 2, 2], "set")
    assert labels in ({(0, "*"), (1, "*"), (1, "b")}, {(0, "*"), (1, "*"), (0, "a")})
    mixed = np.array([True, False, False, False])
    assert companions(~mixed, np.random.default_rng(0)).tolist() == [0]  # all there are


def test_of_two_values_the_size_of_a_class_does_not_tell_whether_it_has_both():
    sizes_of = (2, 3, 4, 5)
    shown = {}  # by release, which classes have both values in each original that may have been written so
    for mixed in itertools.product([False, True], repeat=len(sizes_of)):
        for seed in range(40):
            chosen = companions(np.array(mixed), np.random.default_rng(seed)).tolist()
            hidden = tuple(both or i in chosen for i, both in enumerate(mixed))
            shown.setdefault(hidden, []).append(mixed)
    for hidden, originals in shown.items():
        for i in np.flatnonzero(hidden):
            assert not all(mixed[i] for mixed in originals)


@settings(max_examples=40)
@given(
    st.sampled_from(["range", "set"]),
    st.lists(st.lists(st.integers(0, 15), min_size=1, max_size=4), min_size=2, max_size=8),
    st.randoms(use_true_random=False),
    st.booleans(),
)
def test_labels_contain_their_class_and_depend_on_the_column_alone(cells, classes, rng, null):
    texts = [str(3 * i) for i in range(15)]
    numbers = Intervals.model_validate({"intervals": [10]}).build("c", texts)
    numbers = numbers.with_null() if null else numbers
    classes = [[min(leaf, len(numbers.leaves) - 1) for leaf in of] for of in classes]
    leaves = [leaf for of in classes for leaf in of]
    table = table_of(numbers, leaves)
    problem = Problem(table, (KAnonymity(k=1),), Terms(cells=(cells,)))
    row_of = {int(code): row for row, code in enumerate(table.codes[:, 0])}

    def labels(order):
        rows = np.array([row_of[leaf] for c in order for leaf in classes[c]])
        numbers_of = np.repeat(np.arange(len(order)), [len(classes[c]) for c in order])
        answer = recoding_of_partition(problem, Partition(rows, np.ones(len(rows), np.int64), numbers_of), "local")
        parts, values = answer.parts(table), answer.released[0]
        for row, code in zip(parts.row.tolist(), parts.codes[:, 0].tolist(), strict=True):
            assert int(table.codes[row, 0]) in values.covers[code].tolist()
        return sorted(
            (row, str(values.labels[code]))
            for row, code in zip(parts.row.tolist(), parts.codes[:, 0].tolist(), strict=True)
        )

    order = list(range(len(classes)))
    rng.shuffle(order)
    if len(set(leaves)) > 2:
        assert labels(range(len(classes))) == labels(order)


@pytest.mark.parametrize("cells", ["range", "set"])
@pytest.mark.parametrize("objective", ["loss", "arx-loss", "precision", "height"])
@pytest.mark.parametrize("null", [False, True])
def test_a_search_prices_labels_as_they_are_written(cells, objective, null):
    texts = [str(i * i) for i in range(12)]
    numbers = Intervals.model_validate({"intervals": [10, 50]}).build("c", texts)
    numbers = numbers.with_null() if null else numbers
    rng = np.random.default_rng(1)
    leaves = [*range(len(numbers.leaves)), *rng.integers(0, len(numbers.leaves), 60).tolist()]
    table = table_of(numbers, leaves)
    problem = Problem(table, (KAnonymity(k=2),), Terms(cells=(cells,), objective=objective))
    column = Space(problem).columns[0]
    row_of = {int(code): row for row, code in enumerate(table.codes[:, 0])}
    for a, b in itertools.combinations(range(len(numbers.leaves)), 2):
        partition = Partition(np.array([row_of[a], row_of[b]]), np.ones(2, np.int64), np.zeros(2, np.int64))
        answer = recoding_of_partition(problem, partition, "local")
        price = prices(table, 0, answer.values[0], objective)[answer.became.codes[0, 0]]
        low, high = sorted((column.ranks[a], column.ranks[b]))
        assert column.pairs[low, high] == pytest.approx(price, abs=1e-12)
