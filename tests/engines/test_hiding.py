"""Enforced results: every engine suppresses the cells that rows in memory have suppressed."""

from collections import Counter
from typing import Any

import pyarrow as pa

import shoal
from benches import Bench
from shoal.engines.base import Query


def test_every_engine_hides_the_same_cells(bench: Bench) -> None:
    table = pa.table(
        {
            "age": [31, 34, 36, 38, 51, 52, 53, 55],
            "disease": ["hiv", "hiv", "hiv", "flu", "flu", "flu", "flu", "hiv"],
        }
    )
    rule = {"result": "rule", "when": {"age": "30-39"}, "then": {"disease": "hiv"}, "support": 0.3, "confidence": 0.7}
    policy: dict[str, Any] = {
        "columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [10]}}, "disease": {"role": "sensitive"}},
        "require": [{"model": "k-anonymity", "k": 2}],
        "forbid": [rule | {"doubt": "accept", "enforce": True}],
    }
    there, here = shoal.anonymize(bench.load(table), policy), shoal.anonymize(table, policy)
    assert there.recoding.hiding == here.recoding.hiding
    assert isinstance(there.rows, Query)
    groups = there.rows.groups
    found: Counter[tuple[str, str]] = Counter()
    columns = (groups.table[name].to_pylist() for name in ("age", "disease", groups.weight))
    for age, disease, n in zip(*columns, strict=True):
        found[age, disease] += n
    assert found == {("*", "hiv"): 3, ("*", "flu"): 1, ("50-59", "flu"): 3, ("50-59", "hiv"): 1}
