"""How verdicts behave when classes merge or lose records: what pruning may rely on."""

import itertools

from hypothesis import given

from examples import examples
from shoal.search.full_domain.lattice import below
from strategies import cases, problem_of

EXAMPLES = examples(100)


@examples(200)
@given(cases())
def test_a_node_that_is_ruled_out_has_no_feasible_node_below(case):
    problem = problem_of(case)
    looks = {node: problem.evaluate(node) for node in problem.lattice}
    for upper, lower in itertools.product(looks, looks):
        if below(lower, upper):
            assert looks[upper].n_lost <= looks[lower].n_suppressed
            assert not (problem.rules_out_below(looks[upper]) and looks[lower].feasible)


@examples(200)
@given(cases())
def test_a_monotone_model_survives_generalization(case):
    problem = problem_of(case)
    if not problem.monotone or problem.keep_suppressed:
        return
    looks = {node: problem.evaluate(node) for node in problem.lattice}
    for lower, upper in itertools.product(looks, looks):
        if below(lower, upper):
            assert not looks[lower].feasible or looks[upper].feasible
