"""The full-domain algorithms against what they promise, by definition, over every node."""

import random
from dataclasses import replace
from fractions import Fraction
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from definitions import Case, Column, Sensitive, classes, cost, feasible, suppressed
from examples import examples
from shoal.errors import InfeasibleError, OutOfTimeError, PolicyError
from shoal.search import SEARCHES, Problem
from shoal.search.full_domain.best import tie_break
from shoal.search.full_domain.incognito import satisfying
from shoal.search.full_domain.k_minimal import PREFERENCES, minimal_nodes, preferred
from shoal.search.full_domain.lattice import below
from shoal.search.full_domain.rollup import Rollup
from shoal.search.losses.definitions import HeightLoss
from shoal.search.problem import Terms
from strategies import KINDS, OBJECTIVES, SENSITIVE_PATHS, SHAPES, cases, labelled, models_of, problem_of, table_of

ABSORBING = ("k", "k over columns", "p", "distinct")
CONVEX = tuple(kind for kind in KINDS if kind not in (*ABSORBING, "delta, absent"))
BY_VERDICT = ("samarati", "k_minimal", "incognito", "ola", "flash")
PREFERRED = {  # what is to be least
    "least-absolute": lambda one: sum(one.distance),
    "least-relative": lambda one: one.relative,
    "maximum-distribution": lambda one: 1 / one.classes,
    "least-suppression": lambda one: one.suppressed,
}
OF_ALL = ("mingen", "incognito", "flash")  # these find the least of all


@st.composite
def monotone_cases(draw):
    """Absorbing models with anything that a policy can ask, or convex ones where nothing may be suppressed."""
    if draw(st.integers(0, 3)):
        return draw(cases(draw(st.lists(st.sampled_from(ABSORBING), min_size=1, max_size=2))))
    case = draw(cases(draw(st.lists(st.sampled_from((*CONVEX, "k")), min_size=1, max_size=2))))
    return replace(case, limit=0, wildcard=False)


def minimal(nodes):
    return [node for node in nodes if not any(other != node and below(other, node) for other in nodes)]


def cheapest(nodes, prices):
    return min(nodes, key=lambda node: (prices[node], *tie_break(node)))


def promised(name, feasible_nodes, prices):
    """The node that each algorithm is to find."""
    if name in OF_ALL:
        return cheapest(feasible_nodes, prices)
    if name == "ola":
        return cheapest(minimal(feasible_nodes), prices)
    least = min(map(sum, feasible_nodes))
    return cheapest([node for node in feasible_nodes if sum(node) == least], prices)


def posed(case, objective="loss"):
    """The case as a problem, made anew on every call, since a search counts its looks; the counted table is shared."""
    table, models = table_of(case), models_of(case)
    rollup = Rollup(table)
    return partial(
        Problem,
        table,
        models,
        Terms(limit=case.limit, objective=objective, wildcard=case.wildcard, keep_suppressed=case.keep),
        rollup=rollup,
    )


@examples(300)
@given(monotone_cases(), st.sampled_from(OBJECTIVES))
def test_each_algorithm_finds_what_it_promises(case, objective):
    gone = {node: suppressed(case, node) for node in case.nodes()}
    found = [node for node in case.nodes() if feasible(case, gone[node])]
    prices = {node: cost(case, node, gone[node], objective)[0] for node in found}
    make = posed(case, objective)
    for name in (*BY_VERDICT, "mingen"):
        if not found:
            with pytest.raises(InfeasibleError):
                SEARCHES[name](make())
            continue
        recoding = SEARCHES[name](make())
        assert recoding.node == promised(name, found, prices), name
        released = labelled(make(), recoding.node, recoding.suppressed)
        assert released == set(classes(case, gone[recoding.node], recoding.node))
        assert recoding.n_evaluated <= recoding.n_nodes
        shown = name in OF_ALL or objective == "height" or (name == "ola" and case.limit == 0)
        # Where the suppressed stay as stars, a node may be feasible with more of them than those that fail.
        as_it_is = not any(recoding.node) and not gone[recoding.node]
        assert recoding.proved == (shown and (as_it_is or not (case.keep and case.limit)))
        if recoding.proved:
            assert recoding.node == cheapest(found, prices)

    assert satisfying(make()) == found
    listed = minimal_nodes(make())
    assert [one.node for one in listed] == sorted(minimal(found), key=tie_break)
    for one in listed:
        assert one.distance == one.node
        assert one.height == sum(one.node)
        shares = [Fraction(level, max(1, c.height)) for level, c in zip(one.node, case.columns, strict=True)]
        assert one.relative == sum(shares)
        left = set(range(case.n)) - gone[one.node]
        assert (one.classes, one.suppressed) == (len(classes(case, left, one.node)), len(gone[one.node]))
    assert set(PREFERRED) == set(PREFERENCES)
    for name, value in PREFERRED.items():
        chosen = preferred(listed, name)
        assert bool(chosen) == bool(listed)
        assert all((one in chosen) == (value(one) == min(map(value, listed))) for one in listed)


# --- weights, columns in an order, levels left out: every node is looked at by shoal itself -------------------------


@st.composite
def shaped_problems(draw, objective):
    """The same as a policy shapes it."""
    case = draw(monotone_cases())
    table = table_of(case)
    levels = [draw(st.sets(st.integers(0, h.height), min_size=1)) for h in table.hierarchies]
    table = replace(
        table, hierarchies=tuple(h.selected(sorted(of)) for h, of in zip(table.hierarchies, levels, strict=True))
    )
    q = len(case.columns)
    pairs = st.tuples(st.integers(0, q - 1), st.integers(0, q - 1)).filter(lambda pair: pair[0] != pair[1])
    after = draw(st.lists(pairs, max_size=2)) if q > 1 else []
    weights = draw(st.one_of(st.just([1] * q), st.lists(st.sampled_from((0.1, 1, 3)), min_size=q, max_size=q)))
    _, models, terms = posed(case, objective).args
    return partial(Problem, table, models, replace(terms, weights=weights, after=after), rollup=Rollup(table))


def distance(problem, node):
    return sum(h.number(level) for h, level in zip(problem.table.hierarchies, node, strict=True))


@examples(300)
@given(st.data(), st.sampled_from(OBJECTIVES))
def test_each_algorithm_keeps_its_promise_with_weights_an_order_of_columns_and_levels_left_out(data, objective):
    make = data.draw(shaped_problems(objective))
    problem = make()
    looks = {node: problem.evaluate(node) for node in problem.lattice}
    found = [node for node, seen in looks.items() if seen.feasible]
    assert satisfying(make()) == found
    assert [one.node for one in minimal_nodes(make())] == sorted(minimal(found), key=tie_break)
    # Costs are compared as searches do: those that differ by rounding only are equal.
    prices = {node: round(problem.objective.value(looks[node]), 9) for node in found}
    for name in (*BY_VERDICT, "mingen"):
        if not found:
            with pytest.raises(InfeasibleError):
                SEARCHES[name](make())
            continue
        recoding = SEARCHES[name](make())
        if name == "k_minimal":
            least = min(distance(problem, node) for node in found)
            nearest = [node for node in minimal(found) if distance(problem, node) == least]
            assert recoding.node == cheapest(nearest, prices)
        else:
            assert recoding.node == promised(name, found, prices), name
        assert recoding.n_evaluated <= recoding.n_nodes
        if recoding.proved:
            assert prices[recoding.node] == prices[cheapest(found, prices)]
        if name in OF_ALL and problem.suppresses_least:
            assert recoding.proved
        if not isinstance(problem.objective, HeightLoss) and name in ("samarati", "k_minimal"):
            assert not recoding.proved


# --- larger lattices, where most nodes are tagged and few looked at ---------------------------------------------------


@pytest.mark.parametrize("seed", range(24))
def test_on_larger_lattices_each_algorithm_finds_what_it_promises_with_fewer_looks(seed):
    rng = random.Random(seed)
    columns = []
    for name, shape in zip("abcde", rng.choices([s for s in SHAPES if len(s) > 2], k=5), strict=True):
        paths = {
            f"{name}{leaf}": tuple(f"{name}{level}{c}" for level, c in enumerate(codes))
            for leaf, codes in enumerate(zip(*shape, strict=True))
        }
        columns.append(Column(name, paths))
    n = rng.randint(60, 120)
    leaves = [[*c.paths, *[min(c.paths)] * 3] for c in columns]
    rows = tuple(tuple(map(rng.choice, leaves)) for _ in range(n))
    values = tuple(rng.choices(list(SENSITIVE_PATHS), (5, 3, 2, 1), k=n))
    sensitive = {"s": Sensitive("s", values, tuple(SENSITIVE_PATHS), SENSITIVE_PATHS)}
    asked = (
        {"model": "k-anonymity", "k": rng.randint(2, 6)},
        {"model": "distinct-l-diversity", "l": rng.randint(1, 3)},
    )
    case = Case(tuple(columns), rows, asked, sensitive, limit=rng.choice((0, n // 20, n // 5)), keep=seed % 4 == 0)
    make = posed(case, OBJECTIVES[seed % len(OBJECTIVES)])
    problem = make()
    looks = {node: problem.evaluate(node) for node in problem.lattice}
    found = [node for node, seen in looks.items() if seen.feasible]
    prices = {node: round(problem.objective.value(looks[node]), 9) for node in found}
    assert found
    assert satisfying(make()) == found
    assert [one.node for one in minimal_nodes(make())] == sorted(minimal(found), key=tie_break)
    for name in BY_VERDICT:
        recoding = SEARCHES[name](make())
        assert recoding.node == promised(name, found, prices), name
        if case.limit == 0 and name in ("flash", "ola", "k_minimal", "incognito"):
            assert recoding.n_evaluated < recoding.n_nodes / 2


# --- the order of looks -----------------------------------------------------------------------------------------------


def flash_looks(verdicts, shape, shares):
    """Flash as published, on nodes with known verdicts: the nodes that it checks, in turn."""

    def criteria(node):
        climbed = sum(Fraction(level, max(1, n - 1)) for level, n in zip(node, shape, strict=True))
        return sum(node), climbed, sum(1 - of[level] for level, of in zip(node, shares, strict=True)), node

    nodes = sorted(verdicts, key=criteria)
    tagged, looks = set(), []

    def open_above(node):
        return [up for up in nodes if sum(up) == sum(node) + 1 and below(node, up) and up not in tagged]

    for start in nodes:
        queue = [start]
        while queue:
            queue.sort(key=criteria)
            head = queue.pop(0)
            if head in tagged:
                continue
            path = [head]
            while ups := open_above(path[-1]):
                path.append(ups[0])
            failed, low, high = [], 0, len(path) - 1
            while low <= high:
                middle = (low + high) // 2
                node = path[middle]
                if node not in tagged:
                    looks.append(node)
                    tagged |= {
                        other for other in nodes if (below(node, other) if verdicts[node] else below(other, node))
                    }
                if verdicts[node]:
                    high = middle - 1
                else:
                    failed.append(node)
                    low = middle + 1
            queue += [up for node in failed for up in open_above(node)]
    return looks


@examples(150)
@given(cases(["k"], max_rows=20))
def test_flash_looks_at_nodes_in_the_published_order(case):
    case = replace(case, limit=0)  # then nothing is left to look at when the traversal is done
    make = posed(case)
    problem = make()
    verdicts = {node: not problem.rules_out_below(problem.evaluate(node)) for node in problem.lattice}
    shares = [
        [Fraction(h.cardinality(level), h.cardinality(0)) for level in range(h.n_levels)]
        for h in problem.table.hierarchies
    ]
    seen = []
    hurried = make()
    hurried.evaluate = lambda node: seen.append(node) or Problem.evaluate(hurried, node)
    try:
        SEARCHES["flash"](hurried)
    except InfeasibleError:
        seen.pop()  # the top again, for the message
    assert seen == flash_looks(verdicts, problem.lattice.shape, shares)


# --- when the time is over -------------------------------------------------------------------------------------------


class Hurried(Problem):
    """Out of time after so many looks."""

    looks = 0

    @property
    def out_of_time(self):
        return self.n_evaluated >= self.looks


@pytest.mark.parametrize("name", [*BY_VERDICT, "mingen"])
@examples(40)
@given(monotone_cases(), st.sampled_from(OBJECTIVES), st.integers(0, 12))
def test_out_of_time_each_algorithm_answers_with_the_best_it_saw_and_claims_nothing(name, case, objective, looks):
    make = posed(case, objective)
    table, models, terms = make.args
    problem = Hurried(table, models, replace(terms, time_budget=1), **make.keywords)
    problem.looks = looks
    whole = make()
    try:
        recoding = SEARCHES[name](problem)
    except OutOfTimeError:
        return
    except InfeasibleError:
        assert not satisfying(whole)
        return
    seen = whole.evaluate(recoding.node)
    assert seen.feasible
    if recoding.bound is not None:
        assert not recoding.proved
        assert recoding.claim == ""
        slack = 1e-9 * max(1.0, abs(recoding.bound))
        assert recoding.bound <= whole.objective.published_figure(whole.objective.value(seen)) + slack
    else:
        assert recoding.node == SEARCHES[name](make()).node


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BY_VERDICT)
@examples(25)
@given(st.data())
def test_where_verdicts_do_not_survive_generalization_who_prunes_by_them_declines(name, data):
    kind = data.draw(st.sampled_from((*CONVEX, "delta, absent")))
    case = data.draw(cases([kind, "k"]))
    if kind != "delta, absent":
        case = replace(case, limit=max(1, case.limit))
    problem = problem_of(case)
    with pytest.raises(PolicyError, match=f"algorithm '{name}' assumes") as raised:
        SEARCHES[name](problem)
    assert any(model.summary in raised.value.message for model in problem.convex)
    assert "optimal" in raised.value.hint
    # The hint is true: with nothing suppressed there is an answer, or it is known that there is none.
    if "max_suppression = 0" in raised.value.hint:
        try:
            SEARCHES[name](problem_of(replace(case, limit=0)))
        except InfeasibleError:
            return


# --- datafly ---------------------------------------------------------------------------------------------------------


def datafly(case: Case, k: int):
    """The published steps over single records: the node and how many are suppressed."""
    node = [0] * len(case.columns)
    while True:
        found = classes(case, range(case.n), tuple(node))
        seldom = {i for E in found.values() if len(E) < k for i in E}
        if len(seldom) <= k:
            others = [E for E in found.values() if len(E) >= k]
            if 0 < len(seldom) < k and others:
                seldom |= set(min(others, key=len))
            if feasible(case, seldom):
                return tuple(node), len(seldom)
        distinct = [
            (len({case.released(i, tuple(node))[j] for i in range(case.n)}), -j)
            for j, column in enumerate(case.columns)
            if node[j] < column.height
        ]
        if not distinct:
            return None
        node[-max(distinct)[1]] += 1


@examples(200)
@given(cases(["k"], max_rows=14, persons=False))
def test_datafly_takes_the_published_steps(case):
    case = replace(case, wildcard=False)
    expected = datafly(case, case.asked[0]["k"])
    problem = problem_of(case)
    if expected is None:
        with pytest.raises(InfeasibleError):
            SEARCHES["datafly"](problem)
        return
    recoding = SEARCHES["datafly"](problem)
    found = classes(case, range(case.n), recoding.node)
    gone = labelled(problem, recoding.node, recoding.suppressed)
    assert (recoding.node, sum(len(found[released]) for released in gone)) == expected
    assert not recoding.proved


def test_datafly_goes_on_while_more_than_k_stand_alone_and_stops_at_k():
    column = Column("q", {x: (x, "*") for x in "abcdefgh"})
    asked = ({"model": "k-anonymity", "k": 3},)
    for alone, level in ((3, 0), (4, 1)):
        rows = tuple((x,) for x in "a" * 5 + "bcdefgh"[:alone])
        case = Case((column,), rows, asked, limit=len(rows))
        recoding = SEARCHES["datafly"](problem_of(case))
        assert recoding.node == (level,)
        assert len(recoding.suppressed) == (0 if level else alone)
