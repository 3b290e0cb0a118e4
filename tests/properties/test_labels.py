"""Whatever the builder, the limits of levels and the algorithm: a released label of numbers contains its value."""

import re
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import shoal
from examples import examples

NUMBER = r"(-?\d+(?:\.\d+)?)"
ALGORITHMS = ("optimal", "local", "datafly", "samarati", "top_down", "genetic", "incognito")
SPECS: list[dict[str, Any]] = [
    {"intervals": [10]},
    {"intervals": [5, 10]},
    {"intervals": [10], "origin": 1},
    {"intervals": [10, 20], "origin": 0.5},
    {"intervals": [10], "top": 30},
    {"intervals": [5, 10], "bottom": 18, "top": 60},
    {"boundaries": [[18, 65]]},
    {"boundaries": [[18, 40, 65], [18, 65]]},
    {"boundaries": [[0, 18.5, 65]]},
    {"safe_harbor": "age"},
]


def contains(label: str, x: Decimal) -> bool:
    """Whether a label, read as anyone would read it, contains a number."""
    if match := re.fullmatch(rf"(>=|<=|>|<){NUMBER}", label):
        end = Decimal(match[2])
        return {">=": x >= end, "<=": x <= end, ">": x > end, "<": x < end}[match[1]]
    if match := re.fullmatch(rf"\[{NUMBER}, {NUMBER}([\])])", label):
        low, high = Decimal(match[1]), Decimal(match[2])
        return low <= x < high or (x == high and match[3] == "]")
    if match := re.fullmatch(rf"{NUMBER}-{NUMBER}", label):
        return Decimal(match[1]) <= x <= Decimal(match[2])
    return label == "*" or x == Decimal(label)


@st.composite
def columns(draw: st.DrawFn) -> tuple[dict[str, Any], list[Decimal]]:
    """A column with decimals at and beside the ends of its intervals, perhaps capped, perhaps with one level only."""
    spec = draw(st.sampled_from(SPECS))
    column: dict[str, Any] = {"role": "quasi", "hierarchy": spec}
    n_levels = 3 if "safe_harbor" in spec else len(spec.get("intervals", spec.get("boundaries")))
    if draw(st.booleans()):
        column["max_level"] = draw(st.integers(1, n_levels))
    if draw(st.booleans()):
        column["min_level"] = draw(st.integers(0, column.get("max_level", 1)))
    whole = st.integers(0, 100).map(Decimal)
    beside = st.tuples(st.sampled_from([0, 10, 18, 20, 30, 40, 65, 90]), st.sampled_from([-1, 1, 5])).map(
        lambda drawn: abs(drawn[0] + Decimal(drawn[1]).scaleb(-1))
    )
    distinct = draw(st.lists(st.one_of(whole, beside), min_size=1, max_size=8))
    return column, [value for value in distinct for _ in range(draw(st.integers(1, 4)))]


@examples(160)
@given(columns(), st.sampled_from(ALGORITHMS), st.sampled_from([2, 3, 5]), st.sampled_from([0, 0.3, 1]))
def test_a_released_label_contains_its_value(
    drawn: tuple[dict[str, Any], list[Decimal]], algorithm: str, k: int, max_suppression: float
) -> None:
    column, values = drawn
    asked = {
        "columns": {"x": column, "number": {"role": "plain"}},
        "require": [{"model": "k-anonymity", "k": k}],
        "release": {"algorithm": algorithm, "max_suppression": max_suppression},
    }
    table = pa.table({"x": [float(value) for value in values], "number": range(len(values))})
    try:
        release = shoal.anonymize(table, shoal.Policy.of(asked))
    except (shoal.InfeasibleError, shoal.PolicyError):  # the limit of levels leaves no solution
        return
    for row in release.table.to_pylist():
        assert contains(str(row["x"]), values[row["number"]])
