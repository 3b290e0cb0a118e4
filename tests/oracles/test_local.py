"""Local recoding against every way to deal out the records of small tables."""

import itertools
import math
import random
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

from definitions import Case, Column, Sensitive, passes
from examples import tables
from partitions import least_over_partitions
from shoal.errors import InfeasibleError
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.models.size import KAnonymity
from shoal.search import SEARCHES, Problem
from shoal.search.cells.classes import Partition
from shoal.search.local.bound import least_loss
from shoal.search.local.boxes import Space
from shoal.search.losses.cells import loss_of
from shoal.search.problem import Terms
from shoal.tables.frequency import count_records
from strategies import SENSITIVE_PATHS, SHAPES, models_of, table_of

CLOSE = 1e-9
MODELS = (
    (),
    ({"model": "distinct-l-diversity", "l": 2},),
    ({"model": "entropy-l-diversity", "l": 1.5},),
    ({"model": "t-closeness", "t": 0.4},),
    ({"model": "alpha-k-anonymity", "alpha": 0.6, "k": 2},),
)


def drawn(rng: random.Random, n: int, *, plain: bool = False) -> Case:
    """A random case: hierarchies of any shape, k, perhaps one more model, persons, records that may go."""
    columns = []
    for name in "abc"[: rng.randint(1, 3)]:
        shape = rng.choice(SHAPES)
        height = len(shape) - 1
        paths = {
            f"{name}{leaf}": tuple("all" if level == height else f"{name}{level}{c}" for level, c in enumerate(codes))
            for leaf, codes in enumerate(zip(*shape, strict=True))
        }
        columns.append(Column(name, paths))
    rows = tuple(tuple(rng.choice(list(c.paths)) for c in columns) for _ in range(n))
    asked = ({"model": "k-anonymity", "k": rng.randint(2, 3)}, *(() if plain else rng.choice(MODELS)))
    values = tuple(rng.choice(list(SENSITIVE_PATHS)[:3]) for _ in range(n))
    sensitive = {"s": Sensitive("s", values, tuple(SENSITIVE_PATHS), SENSITIVE_PATHS)}
    persons = tuple(rng.randint(0, n) for _ in range(n)) if not plain and rng.random() < 0.2 else None
    return Case(tuple(columns), rows, asked, sensitive, persons, rng.choice((0, 0, 1, 2)))


def cells_of(case: Case, records: tuple[int, ...]) -> list[int]:
    """Per column the lowest level on which some records have one label."""
    return [
        next(v for v in range(c.n_levels) if len({c.label(case.rows[i][j], v) for i in records}) == 1)
        for j, c in enumerate(case.columns)
    ]


def mean_loss(case: Case, records: tuple[int, ...], weights: tuple[int, ...], cells: str) -> Fraction:
    """What the cells of one class lose, over all; a set has the leaves that are there, and all that look alike."""
    levels = cells_of(case, records)
    lost = Fraction(0)
    for j, c in enumerate(case.columns):
        of_label = c.loss(case.rows[records[0]][j], levels[j])
        there = {c.label(case.rows[i][j], 0) for i in records}
        n_leaves = sum(path[0] in there for path in c.paths.values())
        of_set = Fraction(n_leaves - 1, max(1, c.domain - 1))
        lost += weights[j] * len(records) * (min(of_label, of_set) if cells == "tight-set" else of_label)
    return lost / (case.n * sum(weights))


def least(case: Case, weights: tuple[int, ...], cells: str) -> float | None:
    """The least mean loss over all partitions, and whoever goes."""
    everyone = (1 << case.n) - 1
    members = [tuple(i for i in range(case.n) if mask >> i & 1) for mask in range(everyone + 1)]
    cost = {
        mask: mean_loss(case, members[mask], weights, cells)
        for mask in range(1, everyone + 1)
        if all(passes(case, model, members[mask]) for model in case.asked)
    }
    return least_over_partitions(case.n, case.limit, cost)


@pytest.mark.parametrize("numbers", tables(110, 40))
@pytest.mark.parametrize("cells", ["hierarchy", pytest.param("tight-set", marks=pytest.mark.long)])
def test_the_answer_holds_is_never_below_the_least_and_mostly_equals_it(cells, numbers):
    rng = random.Random(1)
    n_solved = n_equal = 0
    for i in range(numbers.stop):
        case = drawn(rng, rng.randint(3, 7))
        weights = tuple(rng.choice((1, 1, 2)) for _ in case.columns)
        if i not in numbers:
            continue
        of_columns = (cells,) * len(weights)
        problem = Problem(
            table_of(case, apart=True), models_of(case), Terms(limit=case.limit, weights=weights, cells=of_columns)
        )
        best = least(case, weights, cells)
        try:
            answer = SEARCHES["local"](problem)
        except InfeasibleError:
            continue
        parts = answer.parts(problem.table)
        loss = loss_of(problem, answer.released, parts, "loss")
        holds_on_records(case, problem, parts)
        assert best is not None
        assert loss >= best - CLOSE
        assert answer.bound is not None
        assert answer.bound <= best + CLOSE
        n_solved += 1
        n_equal += loss <= best + CLOSE
    assert n_solved > 8 / 11 * len(numbers)
    assert n_equal > 0.95 * n_solved


def holds_on_records(case: Case, problem: Problem, parts) -> None:
    """Deal the records out as the parts say, and judge each class by its definition."""
    table = problem.table
    sensitive = table.sensitive["s"]
    waiting = defaultdict(list)  # who is behind a row of the table
    for i, row in enumerate(case.rows):
        codes = tuple(int(h.encode([value])[0]) for h, value in zip(table.hierarchies, row, strict=True))
        person = None if case.persons is None else case.persons[i]
        waiting[codes, case.sensitive["s"].values[i], person].append(i)
    released = defaultdict(list)
    gone = 0
    for row, codes, n, suppressed in zip(parts.row, parts.codes, parts.counts, parts.suppressed, strict=True):
        value = sensitive.domain.texts[sensitive.values[sensitive.starts[row]]]
        person = None if table.entities is None else int(table.entities.values[table.entities.starts[row]])
        mine = [waiting[tuple(table.codes[row].tolist()), value, person].pop() for _ in range(n)]
        gone += len(mine) * bool(suppressed)
        if not suppressed:
            released[tuple(codes.tolist())] += mine
    assert not any(waiting.values())
    assert gone <= case.limit
    assert all(passes(case, model, records) for model in case.asked for records in released.values())


@pytest.mark.parametrize("numbers", tables(500, 150))
@pytest.mark.parametrize("objective", ["loss", "arx-loss", "precision", "height", "entropy"])
def test_the_bound_is_below_every_partition(objective, numbers):
    rng = random.Random(2)
    n_tight = 0
    for i in range(numbers.stop):
        case = drawn(rng, rng.randint(2, 5), plain=True)
        k = case.asked[0]["k"]
        if case.n < k:
            continue
        limit = 0 if objective == "height" else case.limit
        weights = tuple(rng.choice((1, 2, 5)) for _ in case.columns)
        if i not in numbers:
            continue
        problem = Problem(
            table_of(case, apart=True), models_of(case), Terms(limit=limit, objective=objective, weights=weights)
        )
        whole = Partition.of_rows(problem.table, np.zeros(problem.table.n_classes, np.int64))
        space = Space(problem)
        bound, _ = least_loss(problem, space, whole)
        assert bound is not None
        best = min(
            value(case, classes, gone, objective, weights)
            for gone in range(limit + 1)
            for out in itertools.combinations(range(case.n), gone)
            for classes in partitions([i for i in range(case.n) if i not in out], k)
            if classes
        )
        assert bound <= best + CLOSE
        n_tight += bound >= best - CLOSE
    assert n_tight > (0.05 if objective == "arx-loss" else 0.2) * len(numbers)


def test_the_bound_knows_that_a_set_of_a_leaf_like_the_top_costs_nothing():
    # As a label the leaf `*` is the top; as a set it is one value of two.
    told = Hierarchy.from_paths("a", [("*", "*"), ("x", "*")])
    table = count_records(("a",), np.array([[0], [0], [1], [1]], np.int32), {}, None, (told,), separately=True)[0]
    for objective in ("loss", "arx-loss", "precision", "height"):
        problem = Problem(table, (KAnonymity(k=2),), Terms(objective=objective, cells=("tight-set",)))
        answer = SEARCHES["local"](problem)
        bound, _ = least_loss(problem, Space(problem), Partition.of_rows(table, np.array([0, 1])))
        assert bound is not None
        assert bound <= loss_of(problem, answer.released, answer.parts(table), objective) + CLOSE


def partitions(records: list[int], k: int):
    """Every way to deal records out into classes of k or more."""
    if not records:
        yield []
        return
    first, rest = records[0], records[1:]
    for size in range(k - 1, len(rest) + 1):
        for others in itertools.combinations(rest, size):
            left = [i for i in rest if i not in others]
            for classes in partitions(left, k):
                yield [(first, *others), *classes]


def value(case: Case, classes, gone: int, objective: str, weights: tuple[int, ...]) -> float:
    """The published figure of a partition."""
    shares = [w / sum(weights) for w in weights]
    total = 0.0
    for j, c in enumerate(case.columns):
        cells = [(i, cells_of(case, records)[j]) for records in classes for i in records]
        match objective:
            case "loss":
                total += shares[j] * (sum(c.loss(case.rows[i][j], v) for i, v in cells) + gone) / case.n
            case "precision":
                total += shares[j] * (sum(Fraction(v, max(1, c.height)) for _, v in cells) + gone) / case.n
            case "height":
                total += weights[j] * sum(v for _, v in cells) / case.n
            case "entropy":
                for i, v in cells:
                    under = sum(c.label(row[j], v) == c.label(case.rows[i][j], v) for row in case.rows)
                    total += weights[j] * math.log(under / sum(row[j] == case.rows[i][j] for row in case.rows))
                for i in set(range(case.n)) - {i for i, _ in cells}:
                    total += weights[j] * math.log(case.n / sum(row[j] == case.rows[i][j] for row in case.rows))
            case "arx-loss":
                if c.domain > 1:
                    sums = sum(c.leaves(case.rows[i][j], v) / c.domain for i, v in cells) + gone
                    least = case.n / c.domain
                    total += shares[j] * math.log1p(max(0, (sums - least) / (case.n - least)))
    return math.expm1(total) if objective == "arx-loss" else float(total)
