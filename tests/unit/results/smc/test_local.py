"""What a party computes of its own rows: exact, and errors that name the column and quote no value."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import DataError, MissingValueError
from shoal.results.smc.local import LocalRows
from shoal.results.smc.plan import SharePlan
from shoal.results.smc.share import own_figures, require_fine

ROWS = pa.table({"age": ["31", "34", "31"], "cost": [1.5, 2.25, 0.1], "ward": ["A", None, "B"]})


def test_sums_are_exact_in_the_last_decimal() -> None:
    rows = LocalRows.counted(ROWS, SharePlan(sum=("age", "cost"), decimals={"cost": 2}))
    assert (rows.power("age", 1), rows.power("cost", 1), rows.power("cost", 2)) == (96, 385, 150**2 + 225**2 + 10**2)


def test_rows_are_chosen_by_value() -> None:
    rows = LocalRows.counted(ROWS, SharePlan(mean=("age",), where={"ward": "A"}))
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
        require_fine(LocalRows.counted(ROWS, plan))
    assert "34" not in str(caught.value)
    assert "2.25" not in str(caught.value)


def test_under_noise_values_move_to_the_bound() -> None:
    rows = LocalRows.counted(ROWS, SharePlan(sum=("age",), bounds={"age": ("0", "32")}, epsilon="1"))
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


@pytest.mark.parametrize("huge", ["1e999999999", "-1e-999999999", Decimal("Infinity"), "inf", float("-inf"), "nan"])
def test_numbers_without_end_are_no_numbers(huge: Any) -> None:
    """A cell that would fill the memory with digits, too."""
    plan = SharePlan(sum=("x",))
    with pytest.raises(DataError, match="column 'x' has values that are not numbers"):
        LocalRows(plan, {"x": [3, huge]}, [1, 1]).power("x", 1)


@pytest.mark.parametrize("empty", [None, float("nan"), "", "  "])
@pytest.mark.parametrize(
    "asked",
    [{"sum": ("x",)}, {"histogram": {"x": ("3", "4")}}, {"histogram": {"x": ("3", "4")}, "bounds": {"x": "09"}}],
)
def test_missing_values_are_refused_or_left_out_everywhere(asked: dict[str, Any], empty: Any) -> None:
    cells, counts = {"x": [3, 4, empty, 5]}, [1, 2, 4, 8]
    with pytest.raises(MissingValueError, match="4 of 15 rows have no value"):
        require_fine(LocalRows(SharePlan(**asked), cells, counts))
    rows = LocalRows(SharePlan(**asked, skip_missing=True), cells, counts)
    require_fine(rows)
    assert rows.sizes() == [15, 11]
    if "histogram" in asked:
        assert sum(rows.cells("x")) == 11


def test_a_table_without_rows_has_sums_of_zero() -> None:
    plan = SharePlan(variance=("age",), regression=(("age", "b"),), bounds={"age": ("0", "9"), "b": ("0", "9")})
    rows = LocalRows.counted(pa.table({"age": pa.array([], pa.int64()), "b": pa.array([], pa.int64())}), plan)
    require_fine(rows)
    assert (rows.n_rows, rows.power("age", 2), rows.count("age"), rows.below("age")) == (0, 0, 0, ([], []))
    assert rows.moments(("age", "b")) == [0] * 6


def test_a_sum_that_shares_cannot_hold_is_refused() -> None:
    rows = LocalRows(SharePlan(sum=("x",)), {"x": [2**51]}, [1])
    with pytest.raises(DataError, match="its sum is too large to be shared"):
        require_fine(rows)  # of squares, which a variance would need
    assert LocalRows(SharePlan(sum=("x",)), {"x": [2**49]}, [1]).power("x", 2) == 2**98


def test_one_row_counts_once_in_the_noise() -> None:
    """The part of a party is its own figure, rounded down to the unit of the noise, and a draw."""
    plan = SharePlan(sum=("x",), count=True, bounds={"x": ("0", "99999")}, epsilon="1e9")
    rows = LocalRows(plan, {"x": [12345, 54321]}, [1, 1])
    assert own_figures(rows, 3) == {("rows", ""): 2, ("sum", "x"): 66660}
