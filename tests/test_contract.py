"""Every entry of SEARCHES keeps the promises of contract.py."""

import pytest

import shoal
from contract import ONLY_SUPPRESSING, PROMISES, TASKS, may_decline, released
from shoal.errors import InfeasibleError, PolicyError
from shoal.search import SEARCHES

FEASIBLE = [name for name, task in TASKS.items() if task.feasible]
INFEASIBLE = [name for name, task in TASKS.items() if not task.feasible]
# A group each: what one promise has released, the others look at.
ALGORITHMS = [pytest.param(name, marks=pytest.mark.xdist_group(f"contract of {name}")) for name in SEARCHES]


@pytest.mark.parametrize("name", FEASIBLE)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_search_keeps_every_promise(algorithm, name):
    task = TASKS[name]
    broken = []
    for promise in PROMISES:  # each, also where another is broken
        try:
            promise(task, algorithm)
        except Exception as error:
            declined = isinstance(error, PolicyError) and may_decline(task, algorithm)
            if not declined and not (isinstance(error, InfeasibleError) and algorithm in ONLY_SUPPRESSING):
                error.add_note(f"the promise: {promise.__name__}")
                broken.append(error)
    if broken:
        raise ExceptionGroup(f"{algorithm} breaks {len(broken)} of {len(PROMISES)} promises", broken)


@pytest.mark.parametrize("name", INFEASIBLE)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_search_says_so_where_nothing_satisfies(algorithm, name):
    with pytest.raises(InfeasibleError):
        released(TASKS[name], algorithm)


@pytest.mark.parametrize("algorithm", SEARCHES)
def test_a_policy_can_name_every_search(algorithm):
    fields = {
        "columns": {"q": {"role": "quasi"}},
        "require": [{"model": "k-anonymity", "k": 2}],
        "release": {"algorithm": algorithm},
    }
    assert shoal.Policy.of(fields).release.algorithm == algorithm
