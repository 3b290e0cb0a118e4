"""What holds for a release holds for its records before they were generalized: one of the ways to fill them in."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import shoal
from examples import examples
from shoal.engines.base import Rows
from shoal.forbidden.mining import mine
from shoal.policy import Policy

RECORDS = st.lists(st.tuples(st.integers(20, 49), st.sampled_from("abc"), st.integers(0, 9)), min_size=4, max_size=12)
WHEN = st.sampled_from([{"age": "30-39"}, {"age": "31"}, {"ward": "a"}, {"age": "20-29", "ward": "b"}])
SHARES = st.sampled_from([0.1, 0.3, 0.5, 0.8])


@st.composite
def forbidden(draw: Any) -> dict[str, Any]:
    kind = draw(st.sampled_from(["count", "rule", "sign"]))
    if kind == "count":
        least = draw(st.integers(1, 5))
        return {"result": "count", "where": draw(WHEN), "min": least, "max": least + draw(st.integers(0, 5))}
    if kind == "rule":
        then = {"cost": str(draw(st.integers(0, 9)))}
        return {
            "result": "rule", "when": draw(WHEN), "then": then, "support": draw(SHARES), "confidence": draw(SHARES)
        }  # fmt: skip
    given_ = draw(st.sampled_from([[], ["ward"]]))
    return {"result": "sign", "column": "cost", "of": "age", "given": given_, "sign": draw(st.sampled_from(SIGNS))}


SIGNS = ("positive", "negative")


@examples(60)
@given(RECORDS, forbidden(), st.sampled_from(["optimal", "mondrian", "suppress_cells"]))
def test_a_result_that_a_release_does_not_show_is_not_in_the_records(records, result, algorithm):
    table = pa.table({name: [record[i] for record in records] for i, name in enumerate(("age", "ward", "cost"))})
    columns = {
        "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}},
        "ward": {"role": "quasi"},
        "cost": {"role": "sensitive"},
    }
    plain = {
        "columns": columns,
        "require": [{"model": "k-anonymity", "k": 2}],
        "release": {"algorithm": algorithm},
    }
    released = shoal.anonymize(table, plain).table
    policy = Policy.of(plain | {"forbid": [result]})
    after, before = (policy.forbid[0].judge(mine(Rows(each), policy)) for each in (released, table))
    if after.outcome == "holds":
        assert before.outcome != "fails"
