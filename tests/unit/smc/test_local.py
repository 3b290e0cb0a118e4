"""What a party computes of its own rows: exact, and errors that name the column and quote no value."""

from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import DataError, MissingValueError
from shoal.smc.local import LocalRows
from shoal.smc.plan import SharePlan
from shoal.smc.protocols import _inverted, _with_roots, bucket_sizes
from shoal.smc.share import require_fine

ROWS = pa.table({"age": ["31", "34", "31"], "cost": [1.5, 2.25, 0.1], "ward": ["A", None, "B"]})


def test_sums_are_exact_in_the_last_decimal() -> None:
    rows = LocalRows.of(ROWS, SharePlan(sum=("age", "cost"), decimals={"cost": 2}))
    assert (rows.power("age", 1), rows.power("cost", 1), rows.power("cost", 2)) == (96, 385, 150**2 + 225**2 + 10**2)


def test_rows_are_chosen_by_value() -> None:
    rows = LocalRows.of(ROWS, SharePlan(mean=("age",), where={"ward": "A"}))
    assert (rows.n_rows, rows.power("age", 1)) == (1, 31)


@pytest.mark.parametrize(
    ("plan", "error", "message"),
    [
        (SharePlan(sum=("cost",)), DataError, "more than 0 decimals"),
        (SharePlan(sum=("ward",), skip_missing=True), DataError, "not numbers"),
        (SharePlan(sum=("ward",)), DataError, "not numbers"),
        (SharePlan(sum=("height",)), DataError, "no column 'height'"),
        (SharePlan(sum=("age",), bounds={"age": ("0", "33")}), DataError, "1 of 3 rows are out of the bounds"),
        (SharePlan(intersection="age", at_most=1), DataError, "more than 1 distinct"),
        (SharePlan(intersection="ward"), MissingValueError, "without an identifier"),
    ],
)
def test_errors_name_the_column_and_quote_nothing(plan, error, message) -> None:
    with pytest.raises(error, match=message) as caught:
        require_fine(LocalRows.of(ROWS, plan))
    assert "34" not in str(caught.value)
    assert "2.25" not in str(caught.value)


def test_under_noise_values_move_to_the_bound() -> None:
    rows = LocalRows.of(ROWS, SharePlan(sum=("age",), bounds={"age": ("0", "32")}, epsilon="1"))
    assert rows.power("age", 1) == 31 + 32 + 31


@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 9)), min_size=1, max_size=12), st.integers(1, 4))
def test_sums_of_the_parties_are_sums_of_all(cells, n) -> None:
    plan = SharePlan(variance=("x",), regression=(("y", "x"),), bounds={"x": ("-50", "50"), "y": ("0", "9")})

    def rows(kept: list[tuple[int, int]]) -> LocalRows:
        return LocalRows(plan, {"x": [x for x, _ in kept], "y": [y for _, y in kept]}, [1] * len(kept))

    whole, parts = rows(cells), [rows(cells[i::n]) for i in range(n)]
    assert whole.power("x", 2) == sum(part.power("x", 2) for part in parts) == sum(x * x for x, _ in cells)
    together = [sum(numbers) for numbers in zip(*(part.moments(("y", "x")) for part in parts), strict=True)]
    assert whole.moments(("y", "x")) == together
    assert together[0] == len(cells)


@given(st.lists(st.integers(0, 96), min_size=1, max_size=6), st.integers(0, 96))
def test_a_polynomial_is_zero_at_its_roots_only(roots, x) -> None:
    value = sum(c * x**e for e, c in enumerate(_with_roots(roots, 97))) % 97
    assert (value == 0) == (x in roots)


@given(st.lists(st.lists(st.integers(0, 100), min_size=3, max_size=3), min_size=3, max_size=3))
def test_a_matrix_times_its_inverse_is_one(matrix) -> None:
    p = 101
    inverse, determinant = _inverted(matrix, p)
    (a, b, c), (d, e, f), (g, h, i) = matrix
    assert determinant == (a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)) % p
    if inverse is not None:
        product = [[sum(matrix[r][k] * inverse[k][s] for k in range(3)) % p for s in range(3)] for r in range(3)]
        assert product == [[int(r == s) for s in range(3)] for r in range(3)]


def test_buckets_hold_what_may_come() -> None:
    assert bucket_sizes(6, 3) == (1, 6)
    buckets, load = bucket_sizes(1000, 3)
    assert (buckets, Fraction(1000, buckets) < load < 80) == (62, True)
