"""A release whose rows stay in their engine is attacked as one in memory is."""

import pyarrow as pa
import pytest

import shoal
from benches import Bench
from shoal.errors import VerificationError

PEOPLE = pa.table({
    "who": [f"p{i // 2}" for i in range(80)],
    "age": [str(20 + i % 20) for i in range(80)],
    "disease": [("flu", "gout", "hiv")[(i // 20 + i) % 3] for i in range(80)],
})  # fmt: skip


def policy(limit: float, **release) -> shoal.Policy:
    return shoal.Policy.of({
        "columns": {
            "who": {"role": "identifier"},
            "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}},
            "disease": {"role": "sensitive"},
        },
        "require": [{"model": "k-anonymity", "k": 4}, {"model": "linkage-risk", "max": limit}],
        "release": release,
    })  # fmt: skip


@pytest.mark.parametrize("release", [{}, {"entity": "who"}])
def test_attacks_in_an_engine_find_what_they_find_in_memory(duck: Bench, release: dict) -> None:
    asked = policy(0.9, **release)
    there, here = shoal.anonymize(duck.load(PEOPLE), asked), shoal.anonymize(PEOPLE, asked)
    before = there.counted.fingerprint
    assert there.attacks is not None
    found = {(risk.name, risk.column): risk.successes for risk in shoal.attack(there)}
    for risk in here.attacks:
        if risk.name != "unsorted matching":
            assert found[risk.name, risk.column] == pytest.approx(risk.successes), risk.name
    assert any("in an engine" in reason for reason in there.attacks.left_out)
    assert there.counted.fingerprint == before


def test_a_limit_holds_in_an_engine(duck: Bench) -> None:
    with pytest.raises(VerificationError, match=r"linkage risk at most 0\.01"):
        shoal.anonymize(duck.load(PEOPLE), policy(0.01))
