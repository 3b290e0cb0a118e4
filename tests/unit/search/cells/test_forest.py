"""The parts of forest and cover that their oracles do not see: distances, dealing, merging, suppressing, giving up."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import shoal
from shoal.errors import InfeasibleError, OutOfTimeError, PolicyError
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.models.closeness import TCloseness
from shoal.models.diversity import DistinctDiversity, EntropyDiversity
from shoal.models.size import AlphaK, KAnonymity, MaximumRisk
from shoal.search import PARTING, SEARCHES, Problem
from shoal.search.cells import nearest
from shoal.search.cells.classes import passing, released
from shoal.search.cells.merge import least_size
from shoal.search.cells.nearest import Metric, Neighbours
from shoal.search.problem import Terms
from shoal.tables.frequency import Domain, count_records

ALGORITHMS = ["forest", "forest_generalize", "cover"]
AGES = Hierarchy.from_paths("age", [(f"{a}", f"{a // 10}0s", f"{a // 20 * 20}+", "*") for a in range(20, 60)])
SEXES = Hierarchy.from_paths("sex", [("f", "*"), ("m", "*")])


def table_of(codes, values=None, persons=None):
    hierarchies = (AGES, SEXES)
    sensitive = {}
    if values is not None:
        texts = tuple(map(str, range(max(values) + 1)))
        sensitive = {Domain("s", texts, np.bincount(values)): np.array(values, np.int32)}
    codes = np.array(codes, np.int32)
    entities = None if persons is None else np.array(persons, np.int32)
    return count_records(("age", "sex"), codes, sensitive, entities, hierarchies, separately=True)[0]


def random_table(n, *, n_values=3, seed=0):
    rng = np.random.default_rng(seed)
    return table_of(np.column_stack([rng.integers(0, 40, n), rng.integers(0, 2, n)]), rng.integers(0, n_values, n))


def test_all_three_may_part_equal_records():
    assert set(ALGORITHMS) <= PARTING


def test_distances_are_those_of_the_nearest_common_ancestors():
    problem = Problem(table_of([[0, 0], [5, 0], [12, 0], [35, 1]]), (KAnonymity(k=2),), Terms(weights=[3, 5]))
    expected = [
        [0, 1, 2, 8],  # 20 f: with 25 the decade, a third of 3; with 32 the two decades; with 55 m all, and the sex
        [1, 0, 2, 8],
        [2, 2, 0, 8],
        [8, 8, 8, 0],
    ]
    assert Metric(problem).matrix() == pytest.approx(np.array(expected))


@pytest.mark.parametrize("small", [0, 1024])
def test_the_nearest_are_those_of_a_sort(small, monkeypatch):
    monkeypatch.setattr(nearest, "SMALL", small)
    metric = Metric(Problem(random_table(60), (KAnonymity(k=2),), Terms(weights=[1, 0.3])))
    apart = metric.matrix()
    barred = np.arange(metric.n) % 3 == 1
    for i in range(metric.n):
        order = [t for t in np.lexsort((np.arange(metric.n), apart[i])) if not barred[t]]
        for m in (1, 4, metric.n):
            tuples, costs = metric.nearest(i, m, barred)
            assert tuples.tolist() == order[:m]
            assert costs == pytest.approx(apart[i][order[:m]])


def test_the_records_of_a_tuple_are_dealt_out_to_its_pieces():
    table = table_of([[0, 0]] * 3 + [[0, 1]] * 2 + [[7, 0]], [0, 0, 1, 0, 1, 2])
    metric = Metric(Problem(table, (KAnonymity(k=2),)))
    assert metric.counts.tolist() == [3, 2, 1]
    partition = metric.partition([{0: 1, 2: 1}, {0: 2, 1: 1}, {1: 1}])
    assert list(zip(partition.row, partition.counts, partition.class_of, strict=True)) == [
        (0, 1, 0),  # the two records of one sensitive value are parted
        (0, 1, 1),
        (1, 1, 1),
        (2, 1, 1),
        (3, 1, 2),
        (4, 1, 0),
    ]
    assert metric.cost(partition) == pytest.approx(2 * 1 / 3 + 3 * 1)


def test_ground_labels_that_join_leaves_are_one_tuple():
    coded = Hierarchy.from_levels("age", ["88", "91", "95"], [["88", "90+", "90+"], ["*"] * 3])
    codes = np.array([[0], [1], [2]], np.int32)
    table = count_records(("age",), codes, {}, None, (coded,), separately=True)[0]
    problem = Problem(table, (KAnonymity(k=2),))
    metric = Metric(problem)
    assert metric.counts.tolist() == [1, 2]
    assert Neighbours.from_metric(metric, 2, 1).bound == 1.0
    for algorithm in ALGORITHMS:
        parts = SEARCHES[algorithm](problem).parts(table)
        assert len(np.unique(parts.codes)) == 1  # two records of 90+ cannot spare one


def test_a_crowd_of_equals_lends_only_what_it_can_spare():
    table = table_of([[0, 0]] * 5 + [[1, 0]])
    for algorithm in ALGORITHMS:
        assert released(
            Problem(table, (KAnonymity(k=3),)), SEARCHES[algorithm](Problem(table, (KAnonymity(k=3),)))
        ).counts.tolist() == [3, 3]
    few = table_of([[0, 0]] * 4 + [[1, 0]])
    for algorithm in ALGORITHMS:
        problem = Problem(few, (KAnonymity(k=3),))
        assert released(problem, SEARCHES[algorithm](problem)).counts.tolist() == [5]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_needs_nothing_done_is_left_alone(algorithm):
    problem = Problem(table_of([[0, 0]] * 5 + [[33, 1]] * 7), (KAnonymity(k=5),))
    answer = SEARCHES[algorithm](problem)
    assert released(problem, answer).counts.tolist() == [5, 7]
    assert [v.labels[c] for v, c in zip(answer.released, answer.parts(problem.table).codes[0], strict=True)] == [
        "20",
        "f",
    ]
    assert "at most 1 times" in answer.claim


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(
    "models",
    [
        (KAnonymity(k=4), DistinctDiversity(l=3)),
        (KAnonymity(k=2), EntropyDiversity(l=2.5)),
        (KAnonymity(k=3), TCloseness(t=0.15)),
        (TCloseness(t=0.2),),
        (DistinctDiversity(l=3),),
        (MaximumRisk(max=0.2),),
    ],
    ids=lambda models: " and ".join(model.summary for model in models),
)
def test_classes_that_fail_are_merged_until_all_pass(algorithm, models):
    for seed in range(3):
        problem = Problem(random_table(80, seed=seed), models)
        answer = SEARCHES[algorithm](problem)
        assert passing(problem, released(problem, answer)).all()
        assert answer.parts(problem.table).n_suppressed == 0


@pytest.mark.parametrize(("weights", "partner"), [([5, 1], (0, 0)), ([1, 5], (20, 1))])
def test_a_failing_class_joins_the_class_with_which_it_costs_the_least(weights, partner):
    # Four classes of two. The men of 20 all have value 0: with women of 20 they lose the sex, with men of 40 the age.
    codes = [[0, 1]] * 2 + [[0, 0]] * 2 + [[20, 1]] * 2 + [[39, 0]] * 2
    table = table_of(codes, [0, 0, 0, 1, 0, 1, 0, 1])
    problem = Problem(table, (KAnonymity(k=2), DistinctDiversity(l=2)), Terms(weights=weights))
    answer = SEARCHES["forest_generalize"](problem)
    parts = answer.parts(table)
    became = dict(zip(map(tuple, table.codes[parts.row].tolist()), parts.codes.tolist(), strict=True))
    assert became[0, 1] == became[partner]
    assert released(problem, answer).n_classes == 3


def test_the_size_to_start_from_is_what_no_passing_class_is_below():
    table = random_table(30)
    for models, k in (
        ((KAnonymity(k=4), DistinctDiversity(l=3)), 4),
        ((EntropyDiversity(l=2.5),), 3),
        ((MaximumRisk(max=0.2),), 5),
        ((MaximumRisk(max=0.09),), 12),
        ((TCloseness(t=0.2),), 1),
    ):
        assert least_size(Problem(table, models)) == k


def test_persons_are_counted_where_one_has_many_records():
    rng = np.random.default_rng(3)
    codes = np.column_stack([rng.integers(0, 40, 60), rng.integers(0, 2, 60)])
    for algorithm in ALGORITHMS:
        problem = Problem(table_of(codes, None, rng.integers(0, 9, 60)), (KAnonymity(k=4),))
        assert released(problem, SEARCHES[algorithm](problem)).persons.min() >= 4


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_records_are_suppressed_only_where_nothing_else_helps(algorithm):
    # Value 0 has more than half of the whole, which no class may have: the class of seven equals goes.
    codes = [[0, 0]] * 7 + [[10, 0], [10, 0], [20, 1], [20, 1], [30, 0], [30, 0]]
    table = table_of(codes, [0] * 7 + [1, 2, 1, 2, 1, 2])
    with pytest.raises(InfeasibleError, match="even with every column"):
        SEARCHES[algorithm](Problem(table, asked_of(2, alpha=0.5)))
    problem = Problem(table, asked_of(2, alpha=0.5), Terms(limit=7))
    answer = SEARCHES[algorithm](problem)
    assert answer.parts(table).n_suppressed == 7
    assert passing(problem, released(problem, answer)).all()
    assert answer.claim == ""
    with pytest.raises(InfeasibleError, match="no classes were found"):  # some of the seven would have been enough
        SEARCHES[algorithm](Problem(table, asked_of(2, alpha=0.5), Terms(limit=6)))
    with pytest.raises(InfeasibleError):  # they would be a class of stars, which fails
        SEARCHES[algorithm](Problem(table, asked_of(2, alpha=0.5), Terms(limit=7, keep_suppressed=True)))
    assert SEARCHES[algorithm](Problem(table, (KAnonymity(k=2),), Terms(limit=7))).parts(table).n_suppressed == 0


def asked_of(k, alpha):
    return AlphaK(k=k, alpha=alpha).components()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_too_few_records_are_infeasible(algorithm):
    with pytest.raises(InfeasibleError, match="no generalization"):
        SEARCHES[algorithm](Problem(random_table(5), (KAnonymity(k=6),)))
    with pytest.raises(InfeasibleError, match="no generalization"):
        SEARCHES[algorithm](Problem(random_table(5), (KAnonymity(k=2), DistinctDiversity(l=4)), Terms(limit=2)))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_time_budget_that_is_used_up_ends_the_search(algorithm):
    with pytest.raises(OutOfTimeError, match="within 1e-09 seconds"):
        SEARCHES[algorithm](Problem(random_table(200), (KAnonymity(k=3),), Terms(time_budget=1e-9)))
    with pytest.raises(OutOfTimeError, match="merging"):
        SEARCHES[algorithm](
            Problem(
                table_of([[0, 0]] * 3 + [[1, 1]] * 3, [0, 0, 0, 1, 1, 1]),
                (KAnonymity(k=3), DistinctDiversity(l=2)),
                Terms(time_budget=1e-9),
            )
        )


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_progress_is_told_and_stays_within_its_range(algorithm):
    told = []
    problem = Problem(random_table(900), (KAnonymity(k=3), DistinctDiversity(l=2)), progress=lambda *a: told.append(a))
    SEARCHES[algorithm](problem)
    assert told
    assert all(0 <= share <= 1 for _, share in told)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_limit_of_levels_is_declined(algorithm):
    capped = (AGES.selected([0, 1]), SEXES)
    table = replace(random_table(30), hierarchies=capped)
    with pytest.raises(PolicyError, match="max_level"):
        SEARCHES[algorithm](Problem(table, (KAnonymity(k=2),)))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_value_that_is_written_as_the_top_is_taken_for_hidden(algorithm):
    frame = pd.DataFrame({"a": ["*", "*", "x", "y", "x", None, None], "b": ["1"] * 7})
    fields = {
        "columns": {"a": {"role": "quasi"}, "b": {"role": "quasi"}},
        "require": [{"model": "k-anonymity", "k": 2}],
        "release": {"algorithm": algorithm},
    }
    release = shoal.anonymize(frame, shoal.Policy.of(fields))
    texts = ["*" if text == "*" else "?" if pd.isna(text) else text for text in release.table["a"]]
    assert sorted(texts).count("*") in (3, 5)
    assert min(texts.count(text) for text in set(texts)) >= 2


@pytest.mark.parametrize("algorithm", ["forest", "cover"])
def test_a_cell_is_hidden_or_as_it_was(algorithm):
    problem = Problem(random_table(100), (KAnonymity(k=5),), Terms(cells=["range", "hierarchy"]))
    answer = SEARCHES[algorithm](problem)
    parts = answer.parts(problem.table)
    shown, hidden = np.zeros(2, bool), np.zeros(2, bool)
    for j, values in enumerate(answer.released):
        labels = np.array(values.labels, object)[parts.codes[:, j]]
        leaves = np.array(problem.table.hierarchies[j].leaves, object)[problem.table.codes[parts.row, j]]
        assert ((labels == "*") | (labels == leaves)).all()
        shown[j], hidden[j] = (labels != "*").any(), (labels == "*").any()
    assert shown.any()
    assert hidden.any()
    assert answer.hierarchies == problem.table.hierarchies
