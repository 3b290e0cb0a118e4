"""How strict the proposed requirements on sensitive columns are."""

import numpy as np
import pyarrow as pa

import shoal
from shoal.inspection.inspect import policy_for
from shoal.inspection.sensitive import EXEMPTING, STEPS
from shoal.models.shares import LimitedGain

DRAW = np.random.default_rng(5)
N = 600


def people(share: float, *, mixed: bool) -> pa.Table:
    """People, a share of whom are rich: at any age, or all at one age."""
    ages = DRAW.integers(20, 60, N)
    rich = DRAW.random(N) < share if mixed else ages < 20 + 40 * share
    return pa.table({"age": ages, "sex": DRAW.choice(["f", "m"], N), "salary": np.where(rich, ">50K", "<=50K")})


def test_steps_that_bound_every_value_come_first() -> None:
    assert all((step.common is None) == (i < EXEMPTING) for i, step in enumerate(STEPS))
    gains = [step.gain for step in STEPS]
    assert gains[:EXEMPTING] == sorted(gains[:EXEMPTING])
    assert gains[EXEMPTING:] == sorted(gains[EXEMPTING:])


def test_no_class_of_the_proposal_has_one_value() -> None:
    """Three quarters have one value: a class in which all have it tells it all the same."""
    table = people(0.24, mixed=True)
    found = shoal.inspect(table, known=["age", "sex"], sensitive=["salary"])
    assert found.protection is not None
    assert found.protection.step is not None
    assert found.protection.step < EXEMPTING
    released = shoal.anonymize(table, found.policy).table.to_pandas()
    assert released.groupby(["age", "sex"])["salary"].nunique().min() > 1


def test_frequent_values_are_exempt_only_where_the_rest_costs_too_much() -> None:
    found = shoal.inspect(people(0.24, mixed=False), known=["age", "sex"], sensitive=["salary"])
    assert found.protection is not None
    bound = next(model for model in found.policy.models if isinstance(model, LimitedGain))
    assert (bound.common is None) == (found.protection.step is not None and found.protection.step < EXEMPTING)
    if bound.common is not None:
        assert any("are exempt: everybody guesses them" in sentence for sentence in found.protection.sentences)


def test_the_one_line_tries_requirements_with_its_own_k() -> None:
    table = people(0.24, mixed=True).slice(0, 60)
    proposed = shoal.inspect(table, known=["age", "sex"], sensitive=["salary"]).protection
    _, inspection = policy_for(table, k=30, quasi=["age", "sex"], sensitive=["salary"])
    assert proposed is not None
    assert inspection.protection is not None
    assert inspection.protection.before > proposed.before
