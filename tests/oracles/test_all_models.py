"""Every model alone and beside every other: optimal against exhaustive, verdicts and bounds against definitions."""

import itertools
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import definitions
from definitions import Asked, Case, Column, Label, Node, Sensitive, classes, exact
from examples import tables
from shoal.errors import InfeasibleError
from shoal.search import SEARCHES, Problem
from shoal.search.full_domain.lattice import below
from shoal.search.problem import Terms
from shoal.tables.frequency import FrequencyTable, count_records
from strategies import (
    NOT_IN_THE_HIERARCHY,
    OBJECTIVES,
    REQUIREMENT,
    SENSITIVE_PATHS,
    SHAPES,
    answer_of,
    models_of,
    suppressed_at,
    table_of,
)

# Parameters that small tables sometimes meet, some of them exactly.
SHARES = (0.1, 0.2, 0.25, 0.3, 0.375, 0.5, 0.6, 0.75, 1.0)
PARAMETERS: dict[str, tuple[str, dict[str, Sequence[Any]]]] = {
    "k": ("k-anonymity", {"k": (1, 2, 3, 4, 6)}),
    "k of a set": ("k-anonymity", {"k": (1, 2, 3, 5, 8)}),
    "k-map": ("k-map", {"k": (1, 2, 3, 5, 8)}),
    "presence": ("delta-presence", {"low": (0.0, 0.0, 0.05, 0.2), "high": (0.25, 0.5, 0.6, 0.75, 1.0)}),
    "p": ("p-sensitive", {"p": (1, 2, 3), "k": (3, 4)}),
    "alpha": ("alpha-k-anonymity", {"alpha": (0.3, 0.5, 0.6, 0.75, 1.0), "k": (1, 2, 3)}),
    "distinct": ("distinct-l-diversity", {"l": (1, 2, 3)}),
    "entropy": ("entropy-l-diversity", {"l": (1, 1.2, 1.5, 2, 2.5)}),
    "recursive": ("recursive-l-diversity", {"c": (0.5, 0.6, 1, 1.5, 2, 3), "l": (1, 2, 3)}),
    **{
        distance: ("t-closeness", {"t": (0, *SHARES[:-1]), "distance": (distance,)})
        for distance in definitions.DISTANCES
    },
    "beta": ("basic-beta-likeness", {"beta": (0.1, 0.5, 1, 2)}),
    "enhanced": ("enhanced-beta-likeness", {"beta": (0.1, 0.5, 1, 2)}),
    "delta": ("delta-disclosure", {"delta": (0.5, 1, 1.5, 3), "absent": ("fail",)}),
    "delta, absent ignored": ("delta-disclosure", {"delta": (0.2, 0.5, 1, 1.5), "absent": ("ignore",)}),
    "maximum risk": ("maximum-risk", {"max": (0.09, 0.2, 0.25, 0.3, 0.5, 1.0)}),
    "average risk": ("average-risk", {"max": SHARES}),
    "sample uniqueness": ("sample-uniqueness", {"max": (0, *SHARES)}),
    "population uniqueness": ("population-uniqueness", {"max": (0, *SHARES)}),
}
KINDS = tuple(PARAMETERS)
OF_POPULATION = {"k-map", "presence", "population uniqueness"}
OF_RELEASE = {"average risk", "sample uniqueness", "population uniqueness"}
OF_CROWDS = {"k", "k of a set", "maximum risk"} | OF_POPULATION | OF_RELEASE


@dataclass(frozen=True)
class World:
    """A case, the population that its records are some of, and what the policy says of single columns."""

    case: Case
    people: tuple[tuple[Label, ...], ...] | None
    weights: tuple[float, ...] | None
    after: tuple[tuple[int, int], ...]

    def problem(self, objective: str) -> Problem:
        table = table_of(self.case)
        population = None
        if self.people is not None:
            codes = [h.encode([row[j] for row in self.people]) for j, h in enumerate(table.hierarchies)]
            leaves = np.column_stack(codes).astype(np.int32)
            population, _ = count_records(table.columns, leaves, {}, None, table.hierarchies)
        return Problem(
            table,
            models_of(self.case),
            Terms(
                limit=self.case.limit,
                objective=objective,
                keep_suppressed=self.case.keep,
                weights=self.weights,
                after=self.after,
            ),
            population=population,
        )

    def living(self, node: Node) -> Counter[tuple[Label, ...]]:
        """How many people have each released tuple."""
        case = replace(self.case, rows=self.people or ())
        return Counter(case.released(i, node) for i in range(case.n))


def asked(rng: random.Random, kind: str, quasi: Sequence[str], sensitive: Sequence[str]) -> Asked:
    model, parameters = PARAMETERS[kind]
    chosen = {"model": model, **{name: rng.choice(values) for name, values in parameters.items()}}
    if kind == "k of a set":
        chosen["columns"] = tuple(rng.sample(quasi, rng.randint(1, len(quasi))))
    if kind in OF_POPULATION:
        chosen["population"] = "people.csv"
    elif kind not in OF_CROWDS and rng.random() < 0.5:
        chosen["column"] = rng.choice(sensitive)
    if kind == "presence":
        chosen["low"] = min(chosen["low"], chosen["high"])
    return chosen


def column(rng: random.Random, name: str) -> Column:
    shape = rng.choice(SHAPES)
    height = len(shape) - 1
    paths: dict[Label, tuple[Label, ...]] = {
        f"{name}{leaf}": tuple("all" if level == height else f"{name}{level}{c}" for level, c in enumerate(codes))
        for leaf, codes in enumerate(zip(*shape, strict=True))
    }
    if height and rng.random() < 0.2:
        paths[None] = (None,) * height + ("all",)
    return Column(name, paths, None, uncovered=rng.random() < 0.1)


def world(seed: str, kinds: Sequence[str], *, max_rows: int = 24) -> World:
    """Anything that a policy could ask with these models."""
    rng = random.Random(seed)
    quasi = tuple(column(rng, name) for name in "abc"[: rng.choice((1, 2, 2, 3))])
    leaves = [[*c.paths, *[next(iter(c.paths))] * 2, *([NOT_IN_THE_HIERARCHY] * c.uncovered)] for c in quasi]
    n = rng.randint(1, max_rows)
    rows = [tuple(map(rng.choice, leaves)) for _ in range(n)]
    sensitive = {}
    for name in "su":
        values = list(SENSITIVE_PATHS)[: rng.randint(1, 4)]
        drawn = tuple(rng.choices(values, (4, 3, 2, 1)[: len(values)], k=n))
        sensitive[name] = Sensitive(name, drawn, tuple(values), SENSITIVE_PATHS)
    people = None
    if OF_POPULATION & {*kinds}:
        # Now and then somebody of the table is not in the population, against reason.
        covered = rows if rng.random() < 0.8 else rows[1:]
        people = (*covered, *(tuple(map(rng.choice, leaves)) for _ in range(rng.choice((1, n, 2 * n)))))
    names = [c.name for c in quasi]
    case = Case(
        quasi,
        tuple(rows),
        tuple(asked(rng, kind, names, ("s", "u")) for kind in kinds),
        sensitive,
        tuple(rng.randrange(max(1, n // 2)) for _ in range(n)) if rng.random() < 0.2 else None,
        rng.choice((0, rng.randint(0, n), n)),
        keep=rng.random() < 0.3,
    )
    pairs = list(itertools.permutations(range(len(quasi)), 2))
    return World(
        case,
        people,
        tuple(rng.choice((0.25, 1.0, 3.0)) for _ in quasi) if rng.random() < 0.3 else None,
        tuple(rng.sample(pairs, 1)) if pairs and rng.random() < 0.25 else (),
    )


def found(problem: Problem, algorithm: str) -> Any:
    try:
        return answer_of(problem, SEARCHES[algorithm](problem))
    except InfeasibleError:
        return None


def agree(seed: str, kinds: Sequence[str]) -> bool:
    """Whether there is an answer, once it is clear that both searches give the same."""
    some = world(seed, kinds)
    problem = some.problem(OBJECTIVES[sum(seed.encode()) % len(OBJECTIVES)])
    expected = found(problem, "exhaustive")
    assert found(problem, "optimal") == expected, (seed, some)
    return expected is not None


@pytest.mark.parametrize("numbers", tables(8, 3))
@pytest.mark.parametrize("kind", KINDS)
def test_optimal_finds_what_exhaustive_finds_for_every_pair_of_models(kind: str, numbers: range) -> None:
    others = KINDS[KINDS.index(kind) :]
    answers = [agree(f"{kind} and {other} {i}", [kind, other]) for other in others for i in numbers]
    assert sum(answers) >= len(answers) // 8


# --- verdicts ----------------------------------------------------------------------------------------------------


def crowd(case: Case, records: Iterable[int]) -> int:
    return len({i if case.persons is None else case.persons[i] for i in records})


def passes(some: World, model: Asked, records: Sequence[int], left: Iterable[int], node: Node) -> bool:
    """The table of the models, for those that look beyond the values of a class."""
    case = some.case
    mine = case.released(records[0], node)
    match model["model"]:
        case "k-anonymity" if "columns" in model:
            chosen = [j for j, c in enumerate(case.columns) if c.name in model["columns"]]
            same = [i for i in left if all(case.released(i, node)[j] == mine[j] for j in chosen)]
            return crowd(case, same) >= model["k"]
        case "k-map":
            return some.living(node)[mine] >= model["k"]
        case "delta-presence":
            living = some.living(node)
            here = {case.released(i, node) for i in range(case.n)}
            if model["low"] > 0 and not living.keys() <= here:  # of some people nobody is there
                return False
            if not living[mine]:
                return False
            return exact(model["low"]) <= Fraction(len(records), living[mine]) <= exact(model["high"])
        case "maximum-risk":
            return Fraction(1, crowd(case, records)) <= exact(model["max"])
    return definitions.passes(case, model, records)


def limited(some: World, model: Asked, kept: Sequence[Sequence[int]], node: Node) -> bool:
    """Whether the figure of a whole release is at most its limit."""
    case = some.case
    n = sum(map(len, kept))
    living = some.living(node)
    match model["model"]:
        case "average-risk":
            figure = sum((Fraction(len(E), crowd(case, E)) for E in kept), Fraction(0))
        case "sample-uniqueness":
            figure = Fraction(sum(len(E) for E in kept if crowd(case, E) == 1))
        case "population-uniqueness":
            figure = Fraction(sum(len(E) for E in kept if living[case.released(E[0], node)] <= 1))
        case _:
            raise ValueError(model["model"])
    return figure <= exact(model["max"]) * n


def standing(some: World, models: Iterable[Asked], node: Node) -> set[int]:
    """Who is left when no class fails that is left."""
    left = set(range(some.case.n))
    while True:
        found = classes(some.case, sorted(left), node).values()
        failing = [E for E in found if not all(passes(some, model, E, left, node) for model in models)]
        if not failing:
            return left
        left -= {i for E in failing for i in E}


def feasible(some: World, node: Node, kept: Sequence[Sequence[int]]) -> bool:
    """Whether what is kept of a node, with the others as stars or without them, is an answer."""
    case = some.case
    stars = sorted(set(range(case.n)) - {i for E in kept for i in E})
    in_order = all(node[b] == 0 or node[a] == case.columns[a].height for a, b in some.after)
    if len(stars) > case.limit or len(stars) == case.n or not in_order:
        return False
    if not stars:
        return True
    if any(model.get("low", 0) > 0 for model in case.asked):  # a share of 0 is too low
        return False
    if not case.keep:
        return True
    living = some.living(node)
    people = sum(living[labels] for labels in classes(case, stars, node))
    return all(_stars_pass(some, model, stars, people, kept, node) for model in case.asked)


def _stars_pass(
    some: World, model: Asked, stars: Sequence[int], people: int, kept: Sequence[Sequence[int]], node: Node
) -> bool:
    case = some.case
    match model["model"]:
        case "k-anonymity":
            return crowd(case, stars) >= model["k"]
        case "k-map":
            return people >= model["k"]
        case "delta-presence":
            return people > 0 and Fraction(len(stars), people) <= exact(model["high"])
        case "maximum-risk":
            return Fraction(1, crowd(case, stars)) <= exact(model["max"])
        case "average-risk" | "sample-uniqueness":
            return limited(some, model, [*kept, stars], node)
        case "population-uniqueness":
            n = sum(map(len, kept)) + len(stars)
            alone = sum(len(E) for E in kept if some.living(node)[case.released(E[0], node)] <= 1)
            return alone + len(stars) * (people <= 1) <= exact(model["max"]) * n
    return definitions.passes(case, model, stars)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in OF_RELEASE])
def test_every_node_suppresses_whom_the_definitions_suppress(kind: str) -> None:
    partners = ["k of a set", "k-map", "maximum risk", "recursive", "presence"]
    for i in range(15):
        some = world(f"{kind} judged {i}", [kind, partners[i % 5]][: 1 + i % 2], max_rows=12)
        problem = some.problem("loss")
        for node in itertools.islice(problem.lattice, 0, None, 2):
            left = standing(some, some.case.asked, node)
            expected = frozenset(classes(some.case, {*range(some.case.n)} - left, node))
            seen = problem.evaluate(node)
            assert suppressed_at(problem, seen) == expected, (some, node)
            kept = list(classes(some.case, sorted(left), node).values())
            assert seen.feasible == feasible(some, node, kept), (some, node)


@pytest.mark.parametrize("kind", sorted(OF_RELEASE))
def test_a_limit_on_the_release_holds_and_no_more_is_suppressed_than_it_takes(kind: str) -> None:
    n_enforced = 0
    for i in range(60):
        some = world(f"{kind} limited {i}", [kind, "k"][: 1 + i % 2], max_rows=12)
        problem = some.problem("loss")
        model, *others = some.case.asked
        for node in itertools.islice(problem.lattice, 0, None, 2):
            seen = problem.evaluate(node)
            gone = suppressed_at(problem, seen)
            of_node = classes(some.case, sorted(standing(some, others, node)), node)
            kept = [E for labels, E in of_node.items() if labels not in gone]
            assert gone >= classes(some.case, range(some.case.n), node).keys() - of_node.keys()
            assert limited(some, model, kept, node), (some, node)
            assert seen.feasible == feasible(some, node, kept), (some, node)
            if extra := [E for labels, E in of_node.items() if labels in gone]:
                n_enforced += 1
                back = [limited(some, model, [*kept, E], node) for E in extra]
                assert not all(back), (some, node)  # the last to go had to
    assert n_enforced > 20


# --- bounds ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_look_at_a_node_says_of_the_nodes_below_is_true_of_each(kind: str) -> None:
    for i in range(10):
        kinds = [kind, KINDS[(KINDS.index(kind) + 5 * i) % len(KINDS)]][: 1 + i % 2]
        some = world(f"{kind} bounded {i}", kinds, max_rows=16)
        problem = some.problem(OBJECTIVES[i % len(OBJECTIVES)])
        seen = {node: problem.evaluate(node) for node in itertools.islice(problem.lattice, 0, 40)}
        values = {node: problem.objective.value(of) for node, of in seen.items()}
        for high, look in seen.items():
            barren = problem.rules_out_below(look)
            costs = problem.objective.below(look)
            above = problem.objective.above(look)
            for low, of in seen.items():
                if below(high, low):
                    assert not of.feasible or values[low] >= above - 1e-9, (some, high, low)
                if not below(low, high):
                    continue
                assert of.n_suppressed >= look.n_lost, (some, high, low)
                assert not (barren and of.feasible), (some, high, low)
                least = sum(costs[j, level] for j, level in enumerate(low))
                assert not of.feasible or values[low] >= least - 1e-9, (some, high, low)


@pytest.mark.parametrize("high", [0.1, 0.25, 0.5, 0.6, 1.0])
def test_no_more_of_a_class_can_stay_than_its_people_allow(high: float) -> None:
    model = REQUIREMENT.validate_python({"model": "delta-presence", "high": high, "population": "people.csv"})
    for n, people in itertools.product(range(1, 12), range(12)):
        table = FrequencyTable((), np.zeros((1, 0), np.int32), np.array([n]), population=np.array([people]))
        parts = [kept for kept in range(n + 1) for of in range(1, people + 1) if Fraction(kept, of) <= exact(high)]
        assert int(model.max_passing(table, np.array([0]))[0] + 1e-6) >= max(parts, default=0)
