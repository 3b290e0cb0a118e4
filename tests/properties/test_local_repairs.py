"""Laws of the repairs of ``local``, whatever the table, its classes and the prices of its records."""

import importlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.models.size import KAnonymity
from shoal.search import Problem
from shoal.search.cells.classes import Partition
from shoal.search.local.boxes import Space
from shoal.search.local.kernels import rebox_all
from shoal.search.local.repairs import LEAST, repair_classes
from shoal.search.problem import Terms
from shoal.tables.frequency import count_records

pytestmark = pytest.mark.xdist_group("repairs")  # its loops take seconds to compile
local = importlib.import_module("shoal.search.local.local")  # the package has a function of this name
NUMBERS = Hierarchy.from_paths("a", [(str(i), f"{i // 2}x2", f"{i // 4}x4", "*") for i in range(8)])
KINDS = Hierarchy.from_paths("b", [(x, "*") for x in "xyz"])


@pytest.fixture(autouse=True, scope="module")
def always_priced():
    """Prices count, however little of the cost they explain."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "EXPLAINED", 0)
        yield


def begun(records, k, class_of, cells=("hierarchy", "hierarchy")):
    """A search that begins with the given classes."""
    codes = np.array(records, np.int32)
    table = count_records(("a", "b"), codes, {}, None, (NUMBERS, KINDS), separately=True)[0]
    problem = Problem(table, (KAnonymity(k=k),), Terms(objective="loss", cells=cells))
    order = np.lexsort(codes.T[::-1])
    rows = np.repeat(np.arange(table.n_classes), table.counts)
    assert (table.codes[rows] == codes[order]).all()
    partition = Partition(rows, np.ones(len(rows), np.int64), np.asarray(class_of, np.int64)[order])
    return local._LocalSearch(problem, Space(problem), partition)


def repaired(search):
    """What repairs of all classes save."""
    search.classes.side[:] = 0
    of = (search.boxes, search.atoms, search.classes, search.prices)
    return repair_classes(*of, search.k, 0, 0, len(search.row), 50)


def classes_of(search):
    """The values of the first column in each class."""
    parts, found = search.partition, {}
    for row, n, c in zip(parts.row, parts.counts, parts.class_of, strict=True):
        found.setdefault(int(c), []).extend([int(search.problem.table.codes[row, 0])] * int(n))
    return sorted(map(sorted, found.values()))


def sizes(search):
    return sorted(n for n in search.classes.n_records.tolist() if n)


@examples(100)
@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 2)), min_size=4, max_size=30),
    st.integers(2, 3),
    st.randoms(use_true_random=False),
    st.sampled_from(["hierarchy", "range", "set", "tight-set"]),
    st.sampled_from(["none", "fair", "any"]),
)
def test_repairs_save_what_they_say_and_keep_every_class_large_enough(records, k, chance, cells, priced):
    n_classes = len(records) // k
    if not n_classes:
        return
    class_of = [i % n_classes for i in range(len(records))]
    chance.shuffle(class_of)
    search = begun(records, k, class_of, (cells, "hierarchy"))
    if priced == "fair":
        search._price()
    elif priced == "any":  # however wrong prices are, only the way is another
        search.prices = np.array([chance.random() for _ in search.prices])
    before = rebox_all(search.boxes, search.atoms, search.classes)
    n_records = search.classes.n_records.sum()
    saved = repaired(search)
    boxes, costs = search.classes.box.copy(), search.classes.cost.copy()
    after = rebox_all(search.boxes, search.atoms, search.classes)
    used = search.classes.first >= 0
    assert (boxes[used] == search.classes.box[used]).all()
    assert (costs[used] == search.classes.cost[used]).all()
    assert saved >= 0
    assert abs(before - saved - after) < 1e-6
    assert search.classes.n_records.sum() == n_records
    assert (search.classes.class_of > 0).all()
    assert min(sizes(search)) >= k
    assert -LEAST <= after - repaired(search) <= after


@examples(60)
@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 2)), min_size=4, max_size=30), st.integers(2, 3),
    st.randoms(use_true_random=False),
)  # fmt: skip
def test_no_class_costs_less_than_its_records_are_worth(records, k, chance):
    n_classes = len(records) // k
    if not n_classes:
        return
    class_of = [i % n_classes for i in range(len(records))]
    chance.shuffle(class_of)
    search = begun(records, k, class_of)
    search._price()
    worth = np.bincount(search.classes.class_of, search.prices[search.atoms.tuple_of], len(search.classes.first))
    assert (worth <= search.classes.n_records * search.classes.cost + 1e-6).all()


def test_three_classes_pass_their_records_on_in_a_circle():
    # Each of three pairs has a record that belongs to the next; no two of them could exchange theirs and gain as much.
    records = [(0, 0), (3, 1), (2, 1), (5, 2), (4, 2), (1, 0)]
    search = begun(records, 2, [0, 0, 1, 1, 2, 2])
    search._price()
    assert search.prices.any()
    assert repaired(search) > 0
    assert classes_of(search) == [[0, 1], [2, 3], [4, 5]]


def test_a_class_is_dissolved_if_its_records_belong_to_others():
    records = [(0, 0), (7, 0), (0, 0), (0, 0), (7, 0), (7, 0)]
    search = begun(records, 2, [0, 0, 1, 1, 2, 2])
    assert repaired(search) > 0
    assert classes_of(search) == [[0, 0, 0], [7, 7, 7]]


def test_records_that_classes_can_spare_found_one_of_their_own():
    records = [(0, 0), (0, 0), (3, 0), (7, 0), (7, 0), (3, 0)]
    search = begun(records, 2, [0, 0, 0, 1, 1, 1])
    assert repaired(search) > 0
    assert classes_of(search) == [[0, 0], [3, 3], [7, 7]]


def test_other_sides_are_left_alone():
    records = [(0, 0), (7, 2), (1, 0), (6, 2)]
    search = begun(records, 2, [0, 0, 1, 1])
    search.classes.side[:] = 1
    before = search.classes.class_of.copy()
    assert repair_classes(search.boxes, search.atoms, search.classes, search.prices, 2, 0, 0, 4, 50) == 0
    assert (search.classes.class_of == before).all()


def test_records_that_the_other_thread_moves_count_for_nothing():
    # Six equal records of the other side come first; whether they have a class at the moment changes nothing.
    records = [(0, 0)] * 6 + [(0, 0), (7, 2), (0, 0), (7, 2)]
    found = []
    for loose in (False, True):
        search = begun(records, 2, [2, 2, 2, 3, 3, 3, 0, 0, 1, 1])
        members = search.atoms.members[search.atoms.starts[0] : search.atoms.starts[1]]
        others = members[search.classes.class_of[members] >= 3]
        assert len(others) == 6
        search.classes.side[:] = 0
        search.classes.side[np.unique(search.classes.class_of[others])] = 1
        if loose:
            search.classes.class_of[others] = -1
        of = (search.boxes, search.atoms, search.classes, search.prices)
        found.append(repair_classes(*of, 2, 0, 0, len(search.row), 50))
    assert found[0] == found[1] > 0
