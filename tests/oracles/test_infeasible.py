"""Where nothing satisfies, a search says so: it neither runs on nor stumbles."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pandas as pd
import pytest

import shoal
from shoal.errors import InfeasibleError


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """A search that never ends fails its test, and not the whole run."""

    def give_up(_signal: int, _frame: object) -> None:
        raise AssertionError(f"no answer within {seconds} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_a_convex_model_that_no_node_satisfies_under_suppression_ends_in_infeasible():
    # One y in six records: no node leaves a class with two equal shares unless more than three records go.
    frame = pd.DataFrame({"p": list("abcabc"), "q": list("aabbcc"), "s": list("xxxxxy")})
    policy = shoal.Policy.of(
        {
            "columns": {"p": {"role": "quasi"}, "q": {"role": "quasi"}, "s": {"role": "sensitive"}},
            "require": [{"model": "entropy-l-diversity", "l": 2}],
            "release": {"max_suppression": 0.5},
        }
    )
    with at_most(600), pytest.raises(InfeasibleError):
        shoal.anonymize(frame, policy)


def test_a_k_larger_than_the_table_is_infeasible_with_wildcard_nulls_too():
    frame = pd.DataFrame({"q": ["a", None, "b"], "s": list("xyx")})
    policy = shoal.Policy.of(
        {
            "columns": {"q": {"role": "quasi"}, "s": {"role": "sensitive"}},
            "require": [{"model": "k-anonymity", "k": 5}],
            "release": {"nulls": "wildcard"},
        }
    )
    with pytest.raises(InfeasibleError):
        shoal.anonymize(frame, policy)
