"""Laws that every exact search obeys, whatever the table."""

import itertools
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from definitions import Case, Column
from examples import examples
from shoal.errors import InfeasibleError
from shoal.search import SEARCHES
from shoal.search.full_domain.lattice import Lattice, below
from strategies import OBJECTIVES, answer_of, cases, problem_of

EXAMPLES = examples(150)


def answered(case, objective):
    problem = problem_of(case, objective)
    try:
        return answer_of(problem, SEARCHES["optimal"](problem))
    except InfeasibleError:
        return None


@EXAMPLES
@given(cases(), st.sampled_from(OBJECTIVES), st.randoms(use_true_random=False))
def test_the_order_of_the_records_does_not_matter(case, objective, random):
    order = list(range(case.n))
    random.shuffle(order)
    shuffled = replace(
        case,
        rows=tuple(case.rows[i] for i in order),
        sensitive={
            name: replace(column, values=tuple(column.values[i] for i in order))
            for name, column in case.sensitive.items()
        },
        persons=case.persons and tuple(case.persons[i] for i in order),
    )
    assert answered(shuffled, objective) == answered(case, objective)


@EXAMPLES
@given(cases(persons=False), st.sampled_from(OBJECTIVES), st.sampled_from([2, 7]))
def test_many_copies_with_k_as_many_times_as_large_have_the_same_answer(case, objective, times):
    copies = replace(
        case,
        rows=case.rows * times,
        sensitive={name: replace(c, values=c.values * times) for name, c in case.sensitive.items()},
        asked=tuple({**model, **({"k": model["k"] * times} if "k" in model else {})} for model in case.asked),
        limit=case.limit * times,
    )
    one, many = answered(case, objective), answered(copies, objective)
    assert (one and (one.node, one.suppressed)) == (many and (many.node, many.suppressed))


@EXAMPLES
@given(cases(), st.sampled_from(OBJECTIVES), st.integers(1, 4))
def test_who_may_suppress_more_never_loses_more(case, objective, more):
    strict = answered(case, objective)
    if strict is not None:
        loose = answered(replace(case, limit=case.limit + more), objective)
        assert loose.value <= strict.value + 1e-9 * max(1.0, strict.value)


@EXAMPLES
@given(cases(), st.sampled_from(OBJECTIVES), st.integers(2, 3))
def test_who_asks_for_less_never_loses_more(case, objective, k):
    # Not so with kept stars, which must be a class of their own, nor where a null matches anything.
    case = replace(case, keep=False, wildcard=False)
    strict = answered(replace(case, asked=(*case.asked, {"model": "k-anonymity", "k": k})), objective)
    if strict is not None:
        loose = answered(case, objective)
        assert loose.value <= strict.value + 1e-9 * max(1.0, strict.value)


HEIGHTS = st.lists(st.integers(0, 3), min_size=1, max_size=4).map(tuple)


@given(HEIGHTS)
def test_layers_and_neighbours_are_those_of_the_product_of_levels(heights):
    lattice = Lattice(heights)
    nodes = list(itertools.product(*(range(h + 1) for h in heights)))
    assert list(lattice) == nodes
    assert (lattice.ground, lattice.top, lattice.height) == (nodes[0], nodes[-1], sum(heights))
    for height in range(sum(heights) + 1):
        assert sorted(lattice.layer(height)) == [node for node in nodes if sum(node) == height]
    for node in nodes:
        above = [other for other in nodes if below(node, other) and sum(other) == sum(node) + 1]
        assert sorted(lattice.successors(node)) == above


def test_a_k_beyond_the_table_has_no_answer_whatever_the_objective():
    column = Column("a", {"x": ("x", "*"), "y": ("y", "*")})
    case = Case((column,), (("x",), ("y",)), ({"model": "k-anonymity", "k": 3},), limit=2)
    assert all(answered(case, objective) is None for objective in OBJECTIVES)
