"""Small tables of ordered columns, and the least discernibility of all their cuts, in plain Python."""

import itertools
import math
import random
from collections import Counter
from dataclasses import replace

import pytest

from definitions import Case, Column
from shoal.errors import InfeasibleError
from shoal.search.cuts.k_optimize import k_optimize
from shoal.search.losses.cells import loss_of
from strategies import problem_of


def random_case(seed):
    """Up to three columns of up to four values in a row, some rare."""
    rng = random.Random(seed)
    columns = []
    for name in "abc"[: rng.randint(1, 3)]:
        leaves = [f"{name}{i}" for i in range(rng.randint(1, 4))]
        columns.append(Column(name, {leaf: (leaf, "*") for leaf in leaves}))
    n = rng.randint(1, 24)
    weights = [[rng.choice((1, 3, 8)) for _ in c.paths] for c in columns]
    rows = [tuple(rng.choices(list(c.paths), w)[0] for c, w in zip(columns, weights, strict=True)) for _ in range(n)]
    limit = rng.choice((0, 0, rng.randint(0, n), n))
    return Case(tuple(columns), tuple(rows), ({"model": "k-anonymity", "k": rng.randint(1, 5)},), {}, None, limit)


def least_discernibility(case):
    """Every way to cut every column into intervals of the values that occur."""
    k, n = case.asked[0]["k"], case.n
    values = [sorted({row[j] for row in case.rows}) for j in range(len(case.columns))]
    gaps = [(j, i) for j, of in enumerate(values) for i in range(1, len(of))]
    best = math.inf
    for size in range(len(gaps) + 1):
        for cut in itertools.combinations(gaps, size):
            piece = [
                {v: sum((j, g) in cut for g in range(1, i + 1)) for i, v in enumerate(of)}
                for j, of in enumerate(values)
            ]
            found = Counter(tuple(piece[j][v] for j, v in enumerate(row)) for row in case.rows)
            gone = sum(m for m in found.values() if m < k)
            if gone <= case.limit and gone < n:
                best = min(best, sum(m * m for m in found.values() if m >= k) + n * gone)
    return best


def loss_in(problem, answer):
    return loss_of(problem, answer.released, answer.parts(problem.table), problem.objective_name)


def check_against_every_cut(seeds, limits=()):
    """k_optimize finds and proves the least discernibility of all cuts: each table with its limit, or with several."""
    infeasible = 0
    found = [random_case(seed) for seed in seeds]
    found = [replace(case, limit=min(limit, case.n)) for case in found for limit in limits] or found
    for case in found:
        least = least_discernibility(case)
        problem = problem_of(case, "discernibility")
        if least == math.inf:
            infeasible += 1
            with pytest.raises(InfeasibleError):
                k_optimize(problem)
            continue
        answer = k_optimize(problem)
        assert answer.proved
        assert loss_in(problem, answer) == least, case
    assert infeasible < len(found) / 2
