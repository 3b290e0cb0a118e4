"""Forest and cover on anything that a policy could ask."""

import pytest
from hypothesis import given

from definitions import passes
from examples import examples
from shoal.errors import InfeasibleError, PolicyError
from shoal.search import SEARCHES
from shoal.search.cells.classes import passing, released
from strategies import cases, problem_of


@pytest.mark.parametrize("algorithm", ["forest", "forest_generalize", "cover"])
@examples(120)
@given(case=cases(max_rows=14))
def test_the_answer_holds_and_there_is_one_wherever_the_whole_passes(algorithm, case):
    problem = problem_of(case, apart=True)
    together = all(passes(case, model, list(range(case.n))) for model in case.asked)
    try:
        answer = SEARCHES[algorithm](problem)
    except PolicyError:
        assert case.wildcard or problem.cascades
        return
    except InfeasibleError:
        assert not together
        return
    parts = answer.parts(problem.table)
    assert passing(problem, released(problem, answer)).all()
    assert parts.n_suppressed <= (0 if together else case.limit)
    assert parts.n_suppressed < case.n
    for part, row in enumerate(parts.row):
        for j, values in enumerate(answer.released):
            assert parts.suppressed[part] or problem.table.codes[row, j] in values.covers[parts.codes[part, j]]
