"""Forbidden results against every way to treat the records that leave them open."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from shoal.engines.base import Rows
from shoal.forbidden.mining import mine
from shoal.models.verdict import Verdict
from shoal.policy import Policy

CELLS = st.sampled_from(["a", "b", "*"])
RECORDS = st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=5)
SHARES = st.sampled_from([0.1, 0.25, 0.3, 0.5, 0.6, 0.75, 1.0])
RULE = {"result": "rule", "when": {"x": "a", "y": "a"}, "then": {"z": "a"}}


def judged(records: list[tuple[str, ...]], forbidden: dict[str, Any]) -> Verdict:
    policy = Policy.of(
        {
            "columns": {name: {"role": "quasi"} for name in "xyz"},
            "require": [{"model": "k-anonymity", "k": 1}],
            "forbid": [forbidden],
        }
    )
    rows = Rows(pa.table({name: [record[i] for record in records] for i, name in enumerate("xyz")}))
    return policy.forbid[0].judge(mine(rows, policy))


def filled_in(record: tuple[str, ...], values: str = "ab") -> list[tuple[str, ...]]:
    return list(product(*(values if cell == "*" else [cell] for cell in record)))


def shows(records: list[tuple[str, ...]], support: float, confidence: float) -> bool:
    body = [record for record in records if record[0] == record[1] == "a"]
    both = sum(record[2] == "a" for record in body)
    return both > 0 and both >= Fraction(str(support)) * len(records) and both >= Fraction(str(confidence)) * len(body)


@given(RECORDS, SHARES, SHARES)
def test_a_rule_is_judged_as_every_treatment_of_open_records_shows_it(records, support, confidence):
    found = judged(records, RULE | {"support": support, "confidence": confidence})

    def treatments(record: tuple[str, ...], *, fill: bool) -> list[tuple[tuple[str, ...], ...]]:
        """Return the records that an analyst may have instead of one: none, itself, or one that is filled in."""
        if "b" in record[:2] or "*" not in record:
            return [(record,)]
        return [(), (record,), *([(each,) for each in filled_in(record)] if fill else [])]

    def any_shows(*, fill: bool) -> bool:
        ways = product(*(treatments(record, fill=fill) for record in records))
        return any(shows([record for part in way for record in part], support, confidence) for way in ways)

    expected = "fails" if any_shows(fill=False) else "unknown" if any_shows(fill=True) else "holds"
    assert found.outcome == expected
    accepted = judged(records, RULE | {"support": support, "confidence": confidence, "doubt": "accept"})
    assert accepted.outcome == ("fails" if expected == "fails" else "holds")


@given(RECORDS, st.integers(1, 4), st.none() | st.integers(0, 3))
def test_a_count_is_judged_as_the_certain_matches_and_every_way_to_fill_in_show_it(records, least, more):
    most = None if more is None else least + more
    given_ = {"result": "count", "where": {"x": "a", "y": "a"}, "min": least}
    found = judged(records, given_ | ({} if most is None else {"max": most}))

    def forbidden(matching: list[tuple[str, ...]]) -> bool:
        n = sum(record[:2] == ("a", "a") for record in matching)
        return least <= n and (most is None or n <= most)

    ways = product(*(filled_in(record[:2]) for record in records))
    expected = "fails" if forbidden(records) else "unknown" if any(forbidden(list(way)) for way in ways) else "holds"
    assert found.outcome == expected


@given(st.lists(st.tuples(CELLS, st.sampled_from("ab"), CELLS), min_size=1, max_size=5), SHARES)
def test_no_classifier_is_more_accurate_than_was_judged(records, accuracy):
    found = judged(records, {"result": "classifier", "column": "z", "on": ["x", "y"], "accuracy": accuracy})
    kinds = sorted({record[:2] for record in records})

    def reached(kept: list[tuple[str, ...]]) -> bool:
        """Try every function from released cells to a value."""
        best = 0
        for predicted in product("ab", repeat=len(kinds)):
            of = dict(zip(kinds, predicted, strict=True))
            best = max(best, sum(of[record[:2]] == record[2] for record in kept))
        return bool(kept) and best >= Fraction(str(accuracy)) * len(kept)

    told = [record for record in records if record[2] != "*"]
    ways = product(*([(*record[:2], value) for (value,) in filled_in(record[2:])] for record in records))
    # With only two values that may be filled in, an open record can always be what its group predicts.
    expected = "fails" if reached(told) else "unknown" if any(reached(list(way)) for way in ways) else "holds"
    assert found.outcome == expected


NUMBERS = st.sampled_from(["1", "2", "4", "1-4", "2-6"])


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=2, max_size=4), st.sampled_from(["positive", "negative"]))
def test_the_sign_of_a_coefficient_that_ranges_allow_is_never_called_safe(records, sign):
    given_ = {"result": "sign", "column": "y", "of": "x", "sign": sign}
    found = judged([(*record, "") for record in records], given_)

    def ends(text: str) -> tuple[float, ...]:
        return tuple(map(float, text.split("-")))

    def slope(numbers: list[tuple[float, float]]) -> float:
        if len(numbers) < 2:
            return 0.0
        x, y = np.array(numbers).T
        return float(((x - x.mean()) * (y - y.mean())).sum()) * (1 if sign == "positive" else -1)

    exact = [(ends(x)[0], ends(y)[0]) for x, y in records if "-" not in x + y]
    middle = [(float(np.mean(ends(x))), float(np.mean(ends(y)))) for x, y in records]
    ways = product(*(product(ends(x), ends(y)) for x, y in records))
    most = max(slope(list(way)) for way in ways)  # bilinear: the largest value is at some ends
    if max(slope(exact), slope(middle)) > 1e-6:
        assert found.outcome == "fails"
    elif most > 1e-6:
        assert found.outcome == "unknown"
    elif most < -1e-6 and not all("-" in x and "-" in y for x, y in records):
        one_sided = all("-" not in x for x, _ in records) or all("-" not in y for _, y in records)
        assert found.outcome == "holds" or not one_sided  # exact where one column has no ranges
