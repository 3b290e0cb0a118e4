"""k-Optimize after the example of Bayardo, Agrawal 2005: anonymizations as sets of values, and the cost metric."""

import itertools

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.engines.local import LocalEngine
from shoal.search import Problem
from shoal.search.cuts.choices import Choices
from shoal.search.cuts.k_optimize import k_optimize

# Three ages, two genders and four marital statuses, each in its order: nine values, numbered 1 to 9. The first of each
# starts an interval anyway and need not be listed.
AGES = ("[10-29]", "[30-39]", "[40-49]")
GENDERS = ("M", "F")
MARITAL = ("married", "widowed", "divorced", "never married")
LISTED = (2, 3, 5, 7, 8, 9)


def table(n=60, seed=5):
    rng = np.random.default_rng(seed)
    people = list(itertools.product(AGES, GENDERS, MARITAL)) + [
        (AGES[a], GENDERS[g], MARITAL[m])
        for a, g, m in zip(
            rng.choice(3, n, p=[0.6, 0.3, 0.1]),
            rng.choice(2, n, p=[0.7, 0.3]),
            rng.choice(4, n, p=[0.5, 0.1, 0.15, 0.25]),
            strict=True,
        )
    ]
    return pa.table(dict(zip(("age", "gender", "marital"), map(list, zip(*people, strict=True)), strict=True)))


def policy(**release):
    domains = {"age": AGES, "gender": GENDERS, "marital": MARITAL}
    return shoal.Policy.of(
        {
            "columns": {n: {"role": "quasi", "hierarchy": {"tree": {"*": [*of]}}} for n, of in domains.items()},
            "require": [{"model": "k-anonymity", "k": 5}],
            "release": {"algorithm": "k_optimize", "objective": "discernibility", "max_suppression": 1, **release},
        }
    )


@pytest.fixture(scope="module")
def choices():
    return Choices(Problem.of(LocalEngine.of(table()).count(policy()).table, policy()))


def chosen(*values):
    return np.array([value in values for value in LISTED])


def test_the_list_has_every_value_but_the_first_of_each_domain(choices):
    assert choices.axis.n_values == len(LISTED)
    assert choices.axis.column.tolist() == [0, 0, 1, 2, 2, 2]


def test_the_set_2_7_9_parts_one_age_and_three_marital_statuses(choices):
    # Age {[10-29]}, {[30-39], [40-49]}; gender {M, F}; marital {married}, {widowed, divorced}, {never married}.
    _, ends = choices.axis.intervals(chosen(2, 7, 9))
    assert ends == [[(0, 0), (1, 2)], [(0, 1)], [(0, 0), (1, 2), (3, 3)]]
    pieces = choices.axis.pieces(chosen(2, 7, 9))
    assert [of.tolist() for of in pieces] == [[0, 1, 1], [0, 0], [0, 1, 1, 2]]


def test_the_empty_set_generalizes_most_and_the_full_set_not_at_all(choices):
    assert choices.axis.intervals(chosen())[1] == [[(0, 2)], [(0, 1)], [(0, 3)]]
    assert [len(of) for of in choices.axis.intervals(chosen(*LISTED))[1]] == [3, 2, 4]


def discernibility(rows, values, k):
    """Σ n_E² over classes of at least k, n for every other record; straight from the rows."""
    domains = (AGES, GENDERS, MARITAL)
    starts = [[1, 4, 6][j] for j in range(3)]
    sizes = {}
    for row in rows:
        own = [starts[j] + domains[j].index(value) for j, value in enumerate(row)]
        # The interval of a value is that of the greatest listed value of its domain up to it.
        key = tuple(max(v for v in (starts[j], *values) if starts[j] <= v <= at) for j, at in enumerate(own))
        sizes[key] = sizes.get(key, 0) + 1
    return sum(n * n if n >= k else n * len(rows) for n in sizes.values())


def test_of_all_64_sets_the_one_of_least_discernibility_is_found(choices):
    rows = list(zip(*(column.to_pylist() for column in table().columns), strict=True))
    sets = [s for n in range(7) for s in itertools.combinations(LISTED, n)]
    assert len(sets) == 64
    costs = {s: discernibility(rows, s, 5) for s in sets}
    for s in sets:
        assert choices.evaluated(chosen(*s)).value == costs[s]
    release = shoal.anonymize(table(), policy())
    assert release.loss["discernibility"] == min(costs.values())
    assert min(costs.values()) < min(costs[()], costs[LISTED])  # neither end of the tree
    assert release.recoding.proved
    assert release.recoding.bound is None


def test_a_value_all_of_whose_splits_are_suppressed_is_useless_and_costs_nothing_to_leave_out():
    # One woman among the men: to tell gender suppresses her, whatever else is told.
    people = pa.table({"age": [*AGES[:2]] * 10, "gender": ["M"] * 19 + ["F"], "marital": ["married"] * 20})
    fields = policy()
    problem = Problem.of(LocalEngine.of(people).count(fields).table, fields)
    answer = k_optimize(problem)
    assert {value for value in answer.released[1].labels if value} >= {"*"}
    codes = answer.parts(problem.table).codes
    assert len(np.unique(codes[:, 0])) == 2
    assert len(np.unique(codes[:, 1])) == 1
