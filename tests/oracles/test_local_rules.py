"""The bound of ``local`` where more is required than a size, against all partitions and all classes of small tables."""

import itertools
import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from definitions import Case, Column, Sensitive, passes
from examples import tables
from shoal.search import Problem
from shoal.search.cells import local_bound
from shoal.search.cells.classes import Partition
from shoal.search.cells.local_bound import PricedTuples, PricedValues, least_costs_of_passing, least_loss
from shoal.search.cells.local_boxes import Space
from shoal.search.cells.local_prices import overpaid_of, visit_of
from shoal.search.cells.local_rule_prices import lists_of, visit_passing_classes
from shoal.search.cells.local_rules import ClassRules, rules_of
from shoal.search.problem import Terms
from strategies import SENSITIVE_PATHS, SHAPES, models_of, table_of

CLOSE = 1e-9
KINDS = (
    {"model": "distinct-l-diversity", "l": 2},
    {"model": "distinct-l-diversity", "l": 3},
    {"model": "p-sensitive", "p": 2, "k": 3},
    {"model": "entropy-l-diversity", "l": 1.5},
    {"model": "entropy-l-diversity", "l": 2},
    {"model": "entropy-l-diversity", "l": 2.5},
    {"model": "recursive-l-diversity", "c": 2, "l": 2},
    {"model": "recursive-l-diversity", "c": 1.5, "l": 3},
    {"model": "recursive-l-diversity", "c": 0.6, "l": 1},
    {"model": "alpha-k-anonymity", "alpha": 0.5, "k": 2},
    {"model": "alpha-k-anonymity", "alpha": 0.6, "k": 3},
    {"model": "t-closeness", "t": 0.0},
    {"model": "t-closeness", "t": 0.2},
    {"model": "t-closeness", "t": 0.3},
    {"model": "t-closeness", "t": 0.25, "distance": "ordered"},
    {"model": "t-closeness", "t": 0.1, "distance": "ordered"},
    {"model": "t-closeness", "t": 0.2, "distance": "numeric"},
    {"model": "t-closeness", "t": 0.15, "distance": "hierarchical"},
    {"model": "t-closeness", "t": 0.3, "distance": "hierarchical"},
    {"model": "t-closeness", "t": 0.1, "distance": "kl"},
    {"model": "t-closeness", "t": 0.05, "distance": "js"},
    {"model": "basic-beta-likeness", "beta": 0.5},
    {"model": "enhanced-beta-likeness", "beta": 1},
    {"model": "delta-disclosure", "delta": 1.0},
    {"model": "delta-disclosure", "delta": 0.8, "absent": "ignore"},
    {"model": "maximum-risk", "max": 0.34},
)


def drawn(rng: random.Random, n: int) -> Case:
    """A random case: hierarchies of any shape, k, one or two more models, persons, records that may go."""
    columns = []
    for name in "abc"[: rng.randint(1, 3)]:
        shape = rng.choice(SHAPES[:7])
        height = len(shape) - 1
        paths = {
            f"{name}{leaf}": tuple("all" if level == height else f"{name}{level}{c}" for level, c in enumerate(codes))
            for leaf, codes in enumerate(zip(*shape, strict=True))
        }
        columns.append(Column(name, paths))
    rows = tuple(tuple(rng.choice(list(c.paths)) for c in columns) for _ in range(n))
    asked = ({"model": "k-anonymity", "k": rng.randint(1, 3)}, *rng.sample(KINDS, rng.choice((1, 1, 2))))
    sensitive = {
        name: Sensitive(
            name,
            tuple(rng.choice(list(SENSITIVE_PATHS)[: rng.randint(2, 4)]) for _ in range(n)),
            tuple(SENSITIVE_PATHS),
            SENSITIVE_PATHS,
        )
        for name in ("s", "t")[: rng.choice((1, 1, 1, 2))]
    }
    persons = tuple(rng.randint(0, n) for _ in range(n)) if rng.random() < 0.1 else None
    return Case(tuple(columns), rows, asked, sensitive, persons, rng.choice((0, 0, 0, 1)))


def accepted(case: Case, records) -> bool:
    return all(
        len(records) * Fraction(str(model["max"])) >= 1 if model["model"] == "maximum-risk" and case.persons is None
        else len({case.persons[i] for i in records}) * Fraction(str(model["max"])) >= 1 if model["model"] == "maximum-risk"
        else passes(case, model, records)
        for model in case.asked
    )  # fmt: skip


def cost_of_class(case: Case, records, weights) -> Fraction:
    """What the lowest labels that all these share lose, over all cells, in one class."""
    lost = Fraction(0)
    for j, c in enumerate(case.columns):
        level = next(v for v in range(c.n_levels) if len({c.label(case.rows[i][j], v) for i in records}) == 1)
        lost += weights[j] * len(records) * c.loss(case.rows[records[0]][j], level)
    return lost / (case.n * sum(weights))


def classes_of(case: Case, weights) -> dict[int, Fraction]:
    """Every set of records that passes, as bits, and what it costs."""
    found = {}
    for mask in range(1, 1 << case.n):
        members = tuple(i for i in range(case.n) if mask >> i & 1)
        if accepted(case, members):
            found[mask] = cost_of_class(case, members, weights)
    return found


def least(case: Case, cost: dict[int, Fraction]) -> float | None:
    """The least mean loss over all partitions into passing classes, and whoever goes."""
    everyone = (1 << case.n) - 1
    best: dict[tuple[int, int], Fraction] = {(0, 0): Fraction(0)}
    for mask in range(1, everyone + 1):
        lowest = mask & -mask
        for gone in range(case.limit + 1):
            found = [best[mask ^ lowest, gone - 1] + Fraction(1, case.n)] if (mask ^ lowest, gone - 1) in best else []
            rest = sub = mask ^ lowest
            while True:
                mine = sub | lowest
                if mine in cost and (mask ^ mine, gone) in best:
                    found.append(best[mask ^ mine, gone] + cost[mine])
                if not sub:
                    break
                sub = (sub - 1) & rest
            if found:
                best[mask, gone] = min(found)
    ends = [best[everyone, gone] for gone in range(min(case.limit, case.n - 1) + 1) if (everyone, gone) in best]
    return float(min(ends)) if ends else None


def problem_of(case: Case, weights, objective: str = "loss") -> tuple[Problem, Space, Partition]:
    terms = Terms(limit=case.limit, weights=weights, objective=objective)
    problem = Problem(table_of(case, apart=True), models_of(case), terms)
    return problem, Space(problem), Partition.of_rows(problem.table, np.zeros(problem.table.n_classes, np.int64))


def by_size_alone(problem: Problem) -> ClassRules:
    return ClassRules(problem.least_class_size, None, ())


@pytest.mark.parametrize("numbers", tables(1200, 300))
def test_no_partition_into_passing_classes_is_below_the_bound(monkeypatch, numbers):
    rng = random.Random(7)
    n_solved = n_higher = n_tight = 0
    for i in range(numbers.stop):
        case = drawn(rng, rng.randint(4, 7))
        weights = tuple(rng.choice((1, 1, 2)) for _ in case.columns)
        if i not in numbers:
            continue
        best = least(case, classes_of(case, weights))
        if best is None:
            continue
        problem, space, whole = problem_of(case, weights)
        none = np.zeros(len(space.codes))
        bound, _ = least_loss(problem, space, whole, none)
        with monkeypatch.context() as patched:
            patched.setattr(local_bound, "rules_of", by_size_alone)
            of_size, _ = least_loss(problem, space, whole, none)
        assert bound is not None
        assert of_size is not None
        assert bound <= best + CLOSE
        assert bound >= of_size - CLOSE
        n_solved += 1
        n_higher += bound > of_size + 1e-6
        n_tight += bound >= best - 1e-6
    print(n_solved, n_higher, n_tight)
    assert n_solved > 0.5 * len(numbers)
    assert n_higher > 0.3 * n_solved
    assert n_tight > 0.3 * n_solved
