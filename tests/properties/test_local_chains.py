"""Laws of the chains of ``local``, whatever the table and its classes."""

import importlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from shoal.models.size import KAnonymity
from shoal.search import Problem
from shoal.search.cells.classes import Partition
from shoal.search.cells.local_boxes import Space
from shoal.search.cells.local_chains import LEAST, move_chains
from shoal.search.cells.local_kernels import rebox_all
from shoal.search.problem import Terms
from shoal.table.frequency import count_records
from shoal.table.hierarchy import Hierarchy

pytestmark = pytest.mark.xdist_group("chains")  # its loops take seconds to compile
local = importlib.import_module("shoal.search.cells.local")  # the package has a function of this name
NUMBERS = Hierarchy.from_paths("a", [(str(i), f"{i // 2}x2", f"{i // 4}x4", "*") for i in range(8)])
KINDS = Hierarchy.from_paths("b", [(x, "*") for x in "xyz"])


def begun(records, k, class_of, cells=("hierarchy", "hierarchy")):
    """A search that begins with the given classes."""
    codes = np.array(records, np.int32)
    table = count_records(("a", "b"), codes, {}, None, (NUMBERS, KINDS), apart=True)[0]
    problem = Problem(table, (KAnonymity(k=k),), Terms(objective="loss", cells=cells))
    order = np.lexsort(codes.T[::-1])
    rows = np.repeat(np.arange(table.n_classes), table.counts)
    assert (table.codes[rows] == codes[order]).all()
    partition = Partition(rows, np.ones(len(rows), np.int64), np.asarray(class_of, np.int64)[order])
    return local._LocalSearch(problem, Space(problem), partition)


def chained(search):
    search.classes.side[:] = 0
    return move_chains(search.boxes, search.atoms, search.classes, search.k, 0, 0, len(search.row))


def sizes(search):
    return sorted(n for n in search.classes.n_records.tolist() if n)


@examples(100)
@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 2)), min_size=4, max_size=30),
    st.integers(2, 3),
    st.randoms(use_true_random=False),
    st.sampled_from(["hierarchy", "range", "set"]),
)
def test_chains_save_what_they_say_and_keep_every_class_large_enough(records, k, chance, cells):
    n_classes = len(records) // k
    if not n_classes:
        return
    class_of = [i % n_classes for i in range(len(records))]
    chance.shuffle(class_of)
    search = begun(records, k, class_of, (cells, "hierarchy"))
    before = rebox_all(search.boxes, search.atoms, search.classes)
    n_records = search.classes.n_records.sum()
    saved = chained(search)
    boxes, costs = search.classes.box.copy(), search.classes.cost.copy()
    after = rebox_all(search.boxes, search.atoms, search.classes)
    used = search.classes.first >= 0
    assert (boxes[used] == search.classes.box[used]).all()
    assert (costs[used] == search.classes.cost[used]).all()
    assert saved >= 0
    assert abs(before - saved - after) < 1e-6
    assert search.classes.n_records.sum() == n_records
    assert min(sizes(search)) >= k
    assert -LEAST <= after - chained(search) <= after


def test_three_classes_pass_their_records_on_in_a_circle():
    # Each of three pairs has a record that belongs to the next; no two of them could exchange theirs and gain as much.
    records = [(0, 0), (3, 1), (2, 1), (5, 2), (4, 2), (1, 0)]
    search = begun(records, 2, [0, 0, 1, 1, 2, 2])
    assert chained(search) > 0
    parts = search.partition
    pairs = {}
    for row, c in zip(parts.row, parts.class_of, strict=True):
        pairs.setdefault(int(c), []).append(int(search.problem.table.codes[row, 0]))
    assert sorted(map(sorted, pairs.values())) == [[0, 1], [2, 3], [4, 5]]


def test_other_sides_are_left_alone():
    records = [(0, 0), (7, 2), (1, 0), (6, 2)]
    search = begun(records, 2, [0, 0, 1, 1])
    search.classes.side[:] = 1
    before = search.classes.class_of.copy()
    assert move_chains(search.boxes, search.atoms, search.classes, 2, 0, 0, 4) == 0
    assert (search.classes.class_of == before).all()
