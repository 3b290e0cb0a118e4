"""The fewest suppressed cells against every choice, and association rules against their definition."""

from __future__ import annotations

from fractions import Fraction
from itertools import chain, combinations, product
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import shoal
from examples import examples
from shoal.engines.base import Rows
from shoal.errors import InfeasibleError
from shoal.forbidden.mining import mine
from shoal.forbidden.rules import rules_of
from shoal.policy import Policy

QUASI = ("x", "y")
HIDES = tuple(chain.from_iterable(combinations(QUASI, n) for n in range(3)))
VALUES = st.sampled_from("ab")
TABLES = st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=4, max_size=14)
ENFORCED = {"doubt": "accept", "enforce": True}
SHARES = st.sampled_from([0.1, 0.2, 0.25, 0.3, 0.5, 0.6, 0.75, 1.0])


@st.composite
def results(draw: Any) -> dict[str, Any]:
    if draw(st.booleans()):
        least = draw(st.integers(1, 4))
        where = draw(st.sampled_from([{"x": "a"}, {"x": "a", "z": "b"}, {"x": "b", "y": "a"}]))
        return {"result": "count", "where": where, "min": least, "max": least + draw(st.integers(0, 6))} | ENFORCED
    when, then = draw(
        st.sampled_from([({"x": "a"}, {"z": "a"}), ({"x": "a", "y": "b"}, {"z": "b"}), ({"y": "a"}, {"x": "a"})])
    )
    rule = {"result": "rule", "when": when, "then": then, "support": draw(SHARES), "confidence": draw(SHARES)}
    return rule | ENFORCED


def policy_with(forbid: list[dict[str, Any]], algorithm: str) -> dict[str, Any]:
    return {
        "columns": {"x": {"role": "quasi"}, "y": {"role": "quasi"}, "z": {"role": "sensitive"}},
        "require": [{"model": "k-anonymity", "k": 2}],
        "forbid": forbid,
        "release": {"algorithm": algorithm},
    }


def fewest(table: pa.Table, policy: Policy) -> int | None:
    """Hide every set of columns in every class."""
    rows = [tuple(row.values()) for row in table.select(["x", "y", "z"]).to_pylist()]
    classes = sorted({row[:2] for row in rows})
    best = None
    for chosen in product(HIDES, repeat=len(classes)):
        hidden = dict(zip(classes, chosen, strict=True))
        seen = [
            tuple("*" if name in hidden[row[:2]] else cell for name, cell in zip("xyz", row, strict=True))
            for row in rows
        ]
        cells = sum(
            a != b for before, after in zip(rows, seen, strict=True) for a, b in zip(before, after, strict=True)
        )
        if best is not None and cells >= best:
            continue
        mined = mine(Rows(pa.table({name: [row[i] for row in seen] for i, name in enumerate("xyz")})), policy)
        if all(result.judge(mined).outcome == "holds" for result in policy.forbid):
            best = cells
    return best


@examples(40)
@given(TABLES, st.lists(results(), min_size=1, max_size=2), st.sampled_from(["suppress_cells", "optimal", "mondrian"]))
def test_no_choice_of_cells_in_whole_classes_hides_results_with_fewer(records, forbid, algorithm):
    table = pa.table({name: [record[i] for record in records] for i, name in enumerate("xyz")})
    plain = shoal.anonymize(table, policy_with([], algorithm)).table
    policy = Policy.of(policy_with(forbid, algorithm))
    best = fewest(plain, policy)
    try:
        release = shoal.anonymize(table, policy)
    except InfeasibleError:
        assert best is None
        return
    hiding = release.recoding.hiding
    assert hiding is not None
    assert (hiding.cells, hiding.proved) == (best, True)
    stars = [sum(cell == "*" for row in of.to_pylist() for cell in row.values()) for of in (plain, release.table)]
    assert stars[1] - stars[0] == hiding.cells
    assert release.verdicts.holds


@given(
    st.lists(st.tuples(*[st.integers(-1, 1)] * 3), min_size=1, max_size=8),
    st.sampled_from(["0.1", "0.25", "0.5"]),
    st.sampled_from(["0.3", "0.5", "1"]),
)
def test_the_rules_are_those_of_the_definition(records, support, confidence):
    found = rules_of(np.array(records), np.ones(len(records), np.int64), Fraction(support), Fraction(confidence))
    items = list(product(range(3), range(2)))
    expected = set()
    for n in (1, 2):
        for body in combinations(items, n):
            for head in items:
                if len({column for column, _ in (*body, head)}) < n + 1:
                    continue
                outside = [r for r in records if any(r[j] not in (code, -1) for j, code in body)]
                told = [r for r in records if all(r[j] == code for j, code in body) and r[head[0]] >= 0]
                both = sum(r[head[0]] == head[1] for r in told)
                if (
                    both
                    and both >= Fraction(support) * (len(outside) + len(told))
                    and both >= Fraction(confidence) * len(told)
                ):
                    expected.add((frozenset(body), head))
    assert found == expected
