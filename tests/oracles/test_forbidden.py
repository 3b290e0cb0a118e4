"""Forbidden rules against every way to treat the records that leave a rule open."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from shoal.engines.base import Rows
from shoal.judge.mining import mine
from shoal.policy import Policy

CELLS = st.sampled_from(["a", "b", "*"])
SHARES = st.sampled_from([0.1, 0.25, 0.3, 0.5, 0.6, 0.75, 1.0])


def policy_with(**rule: object) -> Policy:
    columns = {name: {"role": "quasi"} for name in ("x", "y", "z")}
    return Policy.of(
        {
            "columns": columns,
            "require": [{"model": "k-anonymity", "k": 1}],
            "forbid": [{"result": "rule", "when": {"x": "a", "y": "a"}, "then": {"z": "a"}, **rule}],
        }
    )


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=7), SHARES, SHARES)
def test_a_rule_comes_out_where_some_treatment_of_open_records_shows_it(records, support, confidence):
    policy = policy_with(support=support, confidence=confidence)
    rows = Rows(pa.table({name: [record[i] for record in records] for i, name in enumerate("xyz")}))
    found = policy.forbid[0].judge(mine(rows, policy))

    def shows(dropped: tuple[bool, ...]) -> bool:
        """Mine with open cells as non-matches, without the records that are dropped."""
        kept = [record for record, gone in zip(records, dropped, strict=True) if not gone]
        body = [record for record in kept if record[0] == record[1] == "a"]
        both = sum(record[2] == "a" for record in body)
        return both > 0 and both >= Fraction(str(support)) * len(kept) and both >= Fraction(str(confidence)) * len(body)

    def is_open(record: tuple[str, str, str]) -> bool:
        if "b" in record[:2]:
            return False
        return "*" in record

    choices = [(False, True) if is_open(record) else (False,) for record in records]
    assert found.outcome == ("fails" if any(map(shows, product(*choices))) else "holds")
