"""What every answer of Mondrian has in common, strict and relaxed."""

import random

import numpy as np
import pytest

from shoal.hierarchies.hierarchy import Hierarchy
from shoal.models.size import KAnonymity
from shoal.search import SEARCHES, Problem
from shoal.search.cells.classes import class_table, holds, passing
from shoal.search.cells.mondrian import _partition
from shoal.search.problem import Terms
from shoal.tables.frequency import Domain, count_records
from strategies import REQUIREMENT

ASKED = [
    [{"model": "distinct-l-diversity", "l": 2}],
    [{"model": "entropy-l-diversity", "l": 1.7}],
    [{"model": "t-closeness", "t": 0.3}, {"model": "distinct-l-diversity", "l": 2}],
    [{"model": "delta-disclosure", "delta": 1.2, "absent": "ignore"}],
]


def tree(name, n, widths):
    levels = [[f"{i}" for i in range(n)], *([f"{w}:{i // w}" for i in range(n)] for w in widths), ["*"] * n]
    return Hierarchy.from_levels(name, levels[0], levels)


def problem_of(rng, k, asked, cells, dimension, *, apart, n=None):
    n = n or rng.randint(1, 120)
    hierarchies = (tree("a", 200, (10, 50)), tree("b", 9, (3,)), tree("c", 2, ()))
    draws = [[int(rng.random() ** 3 * len(h.leaves)) for _ in range(n)] for h in hierarchies]
    values = np.array(rng.choices(range(3), k=n), np.int32)
    domain = Domain("s", ("x", "y", "z"), np.bincount(values, minlength=3))
    table, _ = count_records(
        ("a", "b", "c"), np.array(draws, np.int32).T.copy(), {domain: values}, None, hierarchies, separately=apart
    )
    models = (KAnonymity(k=k), *(REQUIREMENT.validate_python(model) for model in asked))
    return Problem(table, models, Terms(cells=cells, dimension=dimension))


def drawn(seed, n_problems, *, apart, models=True):
    rng = random.Random(seed)
    for _ in range(n_problems):
        k = rng.randint(1, 8)
        asked = rng.choice([[], *ASKED]) if models else []
        cells = tuple(rng.choice(["hierarchy", "range", "set"]) for _ in range(3))
        problem = problem_of(rng, k, asked, cells, rng.choice(["range", "entropy", "gain"]), apart=apart)
        table = problem.table
        whole = class_table(table, np.arange(table.n_classes), table.counts, np.zeros(table.n_classes, np.int64), 1)
        if passing(problem, whole).all():
            yield problem


@pytest.mark.parametrize("parting", [False, True])
def test_every_class_passes_and_no_record_is_lost(parting):
    for problem in drawn(f"passes {parting}", 120, apart=parting):
        partition, _ = _partition(problem, parting)
        assert holds(problem, partition)
        assert np.array_equal(np.bincount(partition.row, partition.counts), problem.table.counts)
        assert (partition.counts > 0).all()
        assert set(partition.class_of) == set(range(partition.n_classes))
        answer = SEARCHES["mondrian_relaxed" if parting else "mondrian"](problem)
        assert answer.parts(problem.table).n_suppressed == 0


def labels_of(problem, partition, c, j):
    """The ground labels of a class in a column, and how many records have each."""
    mine = partition.class_of == c
    ground = problem.table.hierarchies[j].table[0][problem.table.codes[partition.row[mine], j]]
    return np.repeat(ground, partition.counts[mine])


def order_of(problem, j):
    """The place of each ground label in the order in which a column is cut: sets by frequency."""
    hierarchy = problem.table.hierarchies[j]
    if problem.cells[j] != "set":
        return np.arange(hierarchy.cardinality(0))
    counts = np.bincount(hierarchy.table[0], problem.table.leaf_counts[j], hierarchy.cardinality(0))
    above = [[codes[hierarchy.table[0] == g][0] for g in range(len(counts))] for codes in hierarchy.table[1:-1]]
    order = np.lexsort((-counts, *above))
    return np.argsort(order)


def test_no_strict_cut_is_left_that_leaves_a_crowd_on_either_side():
    for problem in drawn("minimal", 120, apart=False, models=False):
        partition, _ = _partition(problem, parting=False)
        k = problem.least_class_size
        for c in range(partition.n_classes):
            for j, hierarchy in enumerate(problem.table.hierarchies):
                ground = labels_of(problem, partition, c, j)
                if problem.cells[j] != "hierarchy":
                    ground = order_of(problem, j)[ground]
                    cuts = [(ground <= cut).sum() for cut in np.unique(ground)[:-1]]
                    assert all(min(low, len(ground) - low) < k for low in cuts)
                elif len(np.unique(ground)) > 1:
                    enough, rest = children(hierarchy, ground, k)
                    assert enough == 0 or (enough == 1 and rest < k)


def test_relaxed_classes_have_fewer_than_two_crowds_unless_their_records_are_alike():
    for problem in drawn("relaxed", 120, apart=True, models=False):
        partition, _ = _partition(problem, parting=True)
        k = problem.least_class_size
        for c in range(partition.n_classes):
            for j, hierarchy in enumerate(problem.table.hierarchies):
                ground = labels_of(problem, partition, c, j)
                if len(np.unique(ground)) == 1 or len(ground) < 2 * k:
                    continue
                assert problem.cells[j] == "hierarchy"
                assert children(hierarchy, ground, k)[0] == 0


def children(hierarchy, ground, k):
    """Of the labels right under the lowest common one: how many have a crowd, and the records of the others."""
    level = next(n for n in range(hierarchy.n_levels) if len(np.unique(hierarchy.table[n][ground])) == 1)
    sizes = np.unique(hierarchy.table[level - 1][ground], return_counts=True)[1]
    return int((sizes >= k).sum()), int(sizes[sizes < k].sum())


def test_strict_regions_keep_equal_rows_whole_and_are_disjoint_in_some_column():
    for problem in drawn("disjoint", 60, apart=False, models=False):
        partition, _ = _partition(problem, parting=False)
        assert sorted(partition.row) == list(range(problem.table.n_classes))
        leaves = [
            [set(problem.table.codes[partition.row[partition.class_of == c], j]) for j in range(3)]
            for c in range(partition.n_classes)
        ]
        for a in range(len(leaves)):
            for b in range(a):
                assert any(not mine & other for mine, other in zip(leaves[a], leaves[b], strict=True))


def test_relaxed_splits_deal_equal_records_out_in_the_proportions_of_what_is_sensitive():
    # 60 equal records, a third of each sensitive value, and 4 others who need 6 of them to be a crowd of ten.
    h = tree("a", 2, ())
    values = np.array([0, 1, 2] * 20 + [0, 1, 2, 0], np.int32)
    codes = np.array([[0]] * 60 + [[1]] * 4, np.int32)
    domain = Domain("s", ("x", "y", "z"), np.bincount(values))
    table, _ = count_records(("a",), codes, {domain: values}, None, (h,), separately=True)
    for cells in ("range", "hierarchy"):
        partition, _ = _partition(Problem(table, (KAnonymity(k=10),), Terms(cells=(cells,))), parting=True)
        small = np.bincount(partition.class_of, partition.counts).argmin()
        mine = (partition.class_of == small) & (table.codes[partition.row, 0] == 0)
        assert partition.counts[mine].tolist() == [2, 2, 2]


def test_counts_beyond_all_rows_are_split_exactly():
    h = tree("a", 3, ())
    codes = np.array([[0], [1], [2]], np.int32)
    table, _ = count_records(("a",), codes, {}, None, (h,))
    huge = 4 * 10**18
    object.__setattr__(table, "counts", np.array([5, huge, 7], np.int64))
    for cells in ("range", "hierarchy"):
        partition, _ = _partition(Problem(table, (KAnonymity(k=10**15 + 1),), Terms(cells=(cells,))), parting=True)
        assert sorted(np.bincount(partition.class_of, minlength=2).tolist())[-1] >= 2
        sizes = [sum(partition.counts[partition.class_of == c].tolist()) for c in range(partition.n_classes)]
        assert min(sizes) >= 10**15 + 1
        assert sum(sizes) == huge + 12


def test_out_of_time_the_regions_so_far_are_released():
    rng = random.Random(1)
    problem = problem_of(rng, 2, [], ("range",) * 3, "range", apart=False, n=100)
    late = Problem(problem.table, problem.models, Terms(cells=problem.cells, time_budget=1e-9))
    answer = SEARCHES["mondrian"](late)
    assert len(np.unique(answer.parts(late.table).codes, axis=0)) == 1
    assert len(np.unique(SEARCHES["mondrian"](problem).parts(problem.table).codes, axis=0)) > 10
