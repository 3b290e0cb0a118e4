"""Values and vocabularies: the least value that covers a class."""

import gc
import random
import weakref

import numpy as np
import pytest

from shoal.hierarchies.hierarchy import Hierarchy, once_per_hierarchy
from shoal.hierarchies.intervals import Intervals
from shoal.tables.values import Vocabulary, covering, leaf_groups


def hierarchies():
    yield Hierarchy.from_levels("tree", list("abcdef"), [list("abcdef"), list("xxxyyz"), list("uuuuuv"), ["*"] * 6])
    yield Hierarchy.from_levels("joined", list("abcdef"), [list("aabcdd"), list("xxyyzz"), ["*"] * 6]).with_null()
    yield Intervals.model_validate({"intervals": [5, 10], "top": 30}).build("n", [str(i) for i in range(40)])
    number = Intervals.model_validate({"intervals": [0.5, 2]}).build("f", ["0.5", "1", "1.75", "3", "4.25", "9"])
    yield number.with_null().with_uncovered()


def naive(hierarchy, cells, leaves):
    """The leaves that the least value stands for, from its definition; None for the top."""
    everything = set(range(len(hierarchy.leaves)))
    hidden = {leaf for leaf in everything if hierarchy.leaves[leaf] is None or leaf == hierarchy.uncovered}
    alike = [
        {other for other in everything if hierarchy.table[0][other] == hierarchy.table[0][leaf]}
        for leaf in range(len(everything))
    ]
    if cells == "hierarchy":
        for level in range(hierarchy.n_levels):
            if len({int(hierarchy.table[level][leaf]) for leaf in leaves}) == 1:
                return {i for i in everything if hierarchy.table[level][i] == hierarchy.table[level][min(leaves)]}
    wanted = set().union(*(alike[leaf] for leaf in leaves))
    if cells == "tight-range":
        firsts = sorted({(bool(min(of) in hidden), min(of)) for of in alike})
        mine = [(min(alike[leaf]) in hidden, min(alike[leaf])) for leaf in leaves]
        between = [first for hide, first in firsts if min(mine) <= (hide, first) <= max(mine)]
        wanted = set().union(*(alike[first] for first in between))
    return everything if wanted & hidden and len(wanted) > 1 else wanted


@pytest.mark.parametrize("cells", ["hierarchy", "tight-range", "tight-set"])
@pytest.mark.parametrize("hierarchy", list(hierarchies()), ids=lambda h: h.column)
def test_a_class_is_covered_by_the_least_value_that_stands_for_all_its_leaves(hierarchy, cells):
    rng = random.Random(f"{hierarchy.column} {cells}")
    n = len(hierarchy.leaves)
    classes = [rng.choices(range(n), k=rng.choice([1, 1, 2, 3, 8])) for _ in range(300)]
    vocabulary = Vocabulary(hierarchy, cells)
    starts = np.cumsum([0, *map(len, classes)])[:-1]
    ids = covering(vocabulary, np.concatenate(classes).astype(np.int32), starts)
    values = vocabulary.values
    for leaves, i in zip(classes, ids.tolist(), strict=True):
        covers = set(values.covers[i].tolist())
        if leaves == [hierarchy.uncovered] * len(leaves):
            covers = {hierarchy.uncovered} if i == Vocabulary.TOP_ID else covers  # it looks like the top from the start
        assert covers == naive(hierarchy, cells, leaves)
    # Equal texts are equal sets.
    assert len(set(values.labels)) == len(values.labels)


def test_the_order_of_classes_and_of_leaves_changes_nothing_that_is_shown():
    hierarchy = next(hierarchies())
    classes = [[0, 2], [2, 0, 0], [5], [3, 4], [0, 3], [3, 0]]
    for cells, shown in {
        "hierarchy": ["x", "x", "f", "y", "u", "u"],
        "tight-range": ["x", "x", "f", "y", "{a, b, c, d}", "{a, b, c, d}"],
        "tight-set": ["{a, c}", "{a, c}", "f", "y", "{a, d}", "{a, d}"],
    }.items():
        for order in ([0, 1, 2, 3, 4, 5], [5, 3, 1, 0, 2, 4]):
            vocabulary = Vocabulary(hierarchy, cells)
            picked = [classes[c] for c in order]
            starts = np.cumsum([0, *map(len, picked)])[:-1]
            ids = covering(vocabulary, np.concatenate(picked).astype(np.int32), starts)
            assert [vocabulary.values.labels[i] for i in ids] == [shown[c] for c in order]


@pytest.mark.parametrize("cells", ["hierarchy", "tight-range", "tight-set"])
def test_no_classes_are_covered_by_nothing(cells):
    none = np.empty(0, np.int64)
    assert len(covering(Vocabulary(next(hierarchies()), cells), none.astype(np.int32), none)) == 0


def test_ranges_of_numbers_cost_their_part_of_the_range():
    *_, hierarchy = hierarchies()
    vocabulary = Vocabulary(hierarchy, "tight-range")
    (i,) = covering(vocabulary, np.array([3, 2], np.int32), np.array([0]))
    assert vocabulary.values.labels[i] == "1.75-3"
    assert vocabulary.values.shares[i] == pytest.approx((3 - 1.75) / (9 - 0.5))


def test_leaves_are_told_apart_as_level_0_does_and_nulls_come_last():
    _, joined, *_ = hierarchies()
    rank, groups = leaf_groups(joined)
    assert [joined.labels[0][joined.table[0][group[0]]] for group in groups] == ["a", "b", "c", "d", None]
    assert rank.tolist() == [0, 0, 1, 2, 3, 3, 4]


def test_a_range_that_begins_with_bottom_coded_values_is_open_below():
    coded = Intervals.model_validate({"intervals": [5, 10], "bottom": 18, "top": 60})
    hierarchy = coded.build("age", ["12", "15", "19", "22", "70", "80"]).with_null()
    vocabulary = Vocabulary(hierarchy, "tight-range")

    def label(*leaves):
        ids = covering(vocabulary, np.array(leaves, np.int32), np.array([0]))
        return vocabulary.values.labels[int(ids[0])]

    assert label(0) == label(1) == label(0, 1) == "<18"
    assert label(0, 2) == label(1, 2) == "<=19"
    assert label(2, 5) == label(2, 4) == ">=19"
    # Every number there is, and no null: no range says that.
    assert label(0, 5) == "{<18, 19, 22, >=60}"


@pytest.mark.parametrize("hierarchy", list(hierarchies()), ids=lambda hierarchy: hierarchy.column)
def test_the_lowest_label_over_any_leaves_is_the_one_that_all_of_them_have(hierarchy):
    vocabulary = Vocabulary(hierarchy)
    draw = random.Random(5)
    n = len(hierarchy.leaves)
    drawn = [sorted(draw.sample(range(n), draw.randint(1, n))) for _ in range(200)]
    in_a_row = [list(range(first, last + 1)) for first in range(n) for last in range(first, n)]
    for leaves in drawn + in_a_row:
        alike = [len(set(hierarchy.table[level][leaves].tolist())) == 1 for level in range(hierarchy.n_levels)]
        level, code = vocabulary.lowest(np.array(leaves, np.int32))
        assert level == alike.index(True)
        assert code == hierarchy.table[level][leaves[0]]


@pytest.mark.parametrize("null", [False, True])
def test_ranges_of_many_values_take_no_room_of_their_own(null):
    n = 3_000
    hierarchy = Intervals.model_validate({"intervals": [10, 100]}).build("n", [str(i) for i in range(n)])
    vocabulary = Vocabulary(hierarchy.with_null() if null else hierarchy, "tight-range")
    before = len(vocabulary.values.covers)
    leaves = np.array([(i, n - 1 - i) for i in range(1, 500)], np.int32).ravel()
    covering(vocabulary, leaves, np.arange(0, len(leaves), 2))
    covers = vocabulary.values.covers[before:]
    assert len(covers) == 499
    assert all(leaves.base is not None for leaves in covers)
    assert all(np.shares_memory(leaves, covers[0]) for leaves in covers)


@pytest.mark.parametrize("cells", ["tight-range", "tight-set"])
@pytest.mark.parametrize("hierarchy", list(hierarchies()), ids=lambda h: h.column)
def test_values_taken_together_have_the_figures_of_each_alone(hierarchy, cells):
    rng = random.Random(f"{hierarchy.column} {cells} taken")
    n = len(hierarchy.leaves)
    vocabulary = Vocabulary(hierarchy, cells)
    n_labels = len(vocabulary.values.labels)
    classes = [rng.sample(range(n), k=rng.choice([1, 2, 3])) for _ in range(60)]
    covering(vocabulary, np.concatenate(classes).astype(np.int32), np.cumsum([0, *map(len, classes)])[:-1])
    values = vocabulary.values
    assert len(values.labels) > n_labels
    for i, leaves in enumerate(values.covers[n_labels:], start=n_labels):
        level, code = vocabulary.lowest(leaves)
        covering_labels = [at for at in range(hierarchy.n_levels) if len(set(hierarchy.table[at][leaves])) == 1]
        assert values.levels[i] == hierarchy.number(level) == min(covering_labels)
        assert values.sizes[i] == len(leaves)
        assert values.shares[i] == vocabulary.least_share(leaves) <= hierarchy.shares[level][code]
    counts = np.array([rng.randrange(9) for _ in range(n)])
    assert values.under(counts).tolist() == [counts[leaves].sum() for leaves in values.covers]
    # A second vocabulary begins with the labels alone, whatever was added to the first.
    assert len(Vocabulary(hierarchy, cells).values.labels) == n_labels


def test_what_is_computed_once_per_hierarchy_is_forgotten_with_it():
    calls = []
    count = once_per_hierarchy(lambda hierarchy: calls.append(hierarchy.column) or len(hierarchy.leaves))
    first, second = (Intervals.model_validate({"intervals": [5]}).build(name, ["1", "7"]) for name in "ab")
    assert [count(first), count(first), count(second)] == [2, 2, 2]
    assert calls == ["a", "b"]
    Vocabulary(first, "tight-range"), leaf_groups(first)
    alive = weakref.ref(first)
    del first
    gc.collect()
    assert alive() is None


def decimals():
    """Numbers of few digits, of many, with a null between, of one value, and 039 beside 39."""
    rng = random.Random(4)
    few = [f"{rng.uniform(-50, 900):.2f}" for _ in range(60)]
    many = ["1e-300", "2.5", "3", "7e200", "11.123456789012345678901234567890"]
    for texts in (few, many, ["5"], ["39", "039", "40", "1e3"]):
        built = Intervals.model_validate({"intervals": [10, 50]}).build("x", texts)
        yield from (built, built.with_null().with_uncovered())


@pytest.mark.parametrize("hierarchy", list(decimals()), ids=lambda h: str(len(h.leaves)))
def test_the_shares_of_many_ranges_are_those_of_decimal_arithmetic(hierarchy):
    rng = random.Random(5)
    vocabulary = Vocabulary(hierarchy, "tight-set")
    n = len(hierarchy.leaves)
    ends = [sorted(rng.choices(range(n), k=2)) for _ in range(200)]
    covers = [np.arange(first, last + 1) for first, last in ends]
    covers += [np.unique(rng.choices(range(n), k=3)) for _ in range(100)]
    assert vocabulary._shares(covers).tolist() == [vocabulary._share(leaves) for leaves in covers]


@pytest.mark.parametrize("cells", ["hierarchy", "tight-range", "tight-set"])
@pytest.mark.parametrize("hierarchy", list(hierarchies()), ids=lambda h: h.column)
def test_values_that_are_not_written_cover_and_lose_the_same(hierarchy, cells):
    rng = random.Random(f"{hierarchy.column} {cells}")
    classes = [rng.choices(range(len(hierarchy.leaves)), k=rng.choice([1, 2, 5])) for _ in range(100)]
    leaves, starts = np.concatenate(classes).astype(np.int32), np.cumsum([0, *map(len, classes)])[:-1]
    written, priced = Vocabulary(hierarchy, cells), Vocabulary(hierarchy, cells, written=False)
    assert covering(written, leaves, starts).tolist() == covering(priced, leaves, starts).tolist()
    texts, numbers = written.values, priced.values
    assert [of.tolist() for of in texts.covers] == [of.tolist() for of in numbers.covers]
    for one, other in ((texts.shares, numbers.shares), (texts.sizes, numbers.sizes), (texts.levels, numbers.levels)):
        assert one.tolist() == other.tolist()
    assert [label is None for label in texts.labels] == [label is None for label in numbers.labels]
