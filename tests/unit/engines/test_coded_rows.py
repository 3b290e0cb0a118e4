"""Rows as codes: their order is that of the rows themselves."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.engines.coded_rows import CodedColumn, decoded_table, is_worth_coding, order_of_codes
from shoal.engines.row_order import hash_order

TEXTS = st.sampled_from(["", "a", "b", "\x1e", "\x1f", "a\x1fb", "'", '"', "é", "\n", "*", None])
NUMBERS = st.sampled_from([0.0, 0.1, 2.0**60, -(2.0**60), 1e-300, None])
ROWS = st.lists(st.tuples(TEXTS, TEXTS, st.sampled_from([1, 2, None]), NUMBERS), max_size=6)


def table_of(rows: list[tuple]) -> pa.Table:
    kinds = {"a": pa.string(), "b": pa.string(), "n": pa.int64(), "x": pa.float64()}
    return pa.table({name: pa.array([row[j] for row in rows], kind) for j, (name, kind) in enumerate(kinds.items())})


def coded(table: pa.Table) -> dict[str, CodedColumn]:
    return {name: CodedColumn.of(table[name]) for name in table.column_names}


def test_a_worked_example() -> None:
    column = CodedColumn.of(pa.chunked_array([["b", None], ["a", "b"]]))
    assert column.values.to_pylist() == [None, "b", "a"]
    assert column.codes.tolist() == [1, 0, 2, 1]
    assert column.take(np.array([3, 1])).decoded().to_pylist() == ["b", None]


@given(ROWS, st.integers(1, 9), st.integers(0, 3))
def test_the_order_is_that_of_all_rows(rows: list[tuple], copies: int, seed: int) -> None:
    table = table_of(rows * copies)
    assert decoded_table(coded(table)) == table
    assert np.array_equal(order_of_codes(coded(table), seed), hash_order(table, seed))


def test_equal_rows_do_not_keep_their_order() -> None:
    order = order_of_codes(coded(pa.table({"a": ["x"] * 200})), 1)
    assert sorted(order.tolist()) == list(range(200))
    assert abs(np.corrcoef(order, np.arange(200))[0, 1]) < 0.3


@pytest.mark.parametrize(("values", "worth"), [([], True), (["a"], False), (["a", "a"], True), (range(99), False)])
def test_values_that_repeat_are_coded(values: list, worth: bool) -> None:
    assert (
        is_worth_coding(pa.chunked_array([pa.array(list(values), pa.int64() if values == range(99) else None)]))
        == worth
    )
