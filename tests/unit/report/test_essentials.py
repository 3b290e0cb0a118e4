"""What is said of a release is never more than was proved."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import shoal
from shoal.report.essentials import proof


@pytest.mark.parametrize(
    ("algorithm", "bound", "told"),
    [
        ("optimal", 0.125, "the best found in the time available; lower bound 0.1250"),
        ("optimal", 0.0, "the best found in the time available; lower bound 0"),
        ("mondrian", 0.125, "the best found; lower bound 0.1250"),
        ("mondrian", 0.0, "not proved optimal"),  # no loss is below 0: that bound tells nothing
        ("mondrian", None, "not proved optimal"),
    ],
)
def test_the_optimality_of_a_solution(algorithm: str, bound: float | None, told: str) -> None:
    policy = {
        "columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [5]}}},
        "require": [{"model": "k-anonymity", "k": 2}],
        "release": {"algorithm": algorithm},
    }
    found = shoal.anonymize(pa.table({"age": [31, 34, 36, 38]}), policy).recoding
    assert proof(replace(found, proved=False, bound=bound)) == told
