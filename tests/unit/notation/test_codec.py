"""If these fail, one value has several texts, or a null is taken for a text."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.engines.frames import to_arrow
from shoal.errors import DataError
from shoal.hierarchies.builders import Dates
from shoal.notation.codec import Coded, encode_texts

SECRET = "Wilhelmina-Secret"  # stands for a cell: no message may ever contain it
MOMENT = dt.datetime(2020, 1, 2, 3, 4, 5)


def coded(values: list[Any], kind: pa.DataType | None = None, chunks: int = 1) -> Coded:
    cuts = [len(values) * i // chunks for i in range(chunks + 1)]
    parts = [pa.array(values[a:b], kind) for a, b in pairwise(cuts)]
    return encode_texts("a", pa.chunked_array(parts))


def decoded(found: Coded) -> list[str | None]:
    return [None if code < 0 else found.texts[code] for code in found.codes]


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (["02138", "NO", "1e5", " x", "x ", "", "é"], pa.string(), ["02138", "NO", "1e5", " x", "x ", "", "é"]),
        ([1, -2, 0], pa.int64(), ["1", "-2", "0"]),
        ([2**64 - 1], pa.uint64(), ["18446744073709551615"]),
        ([1.0, 1.5, -0.0, 0.1, 1e16], pa.float64(), ["1", "1.5", "0", "0.1", "10000000000000000"]),
        ([float("inf"), float("-inf")], pa.float64(), ["inf", "-inf"]),
        ([0.5], pa.float32(), ["0.5"]),
        ([True, False], pa.bool_(), ["true", "false"]),
        ([dt.date(2020, 1, 2)], pa.date32(), ["2020-01-02"]),
        ([MOMENT], pa.timestamp("s"), ["2020-01-02T03:04:05"]),
        ([MOMENT], pa.timestamp("ns"), ["2020-01-02T03:04:05"]),
        ([MOMENT.replace(microsecond=250_000)], pa.timestamp("us"), ["2020-01-02T03:04:05.25"]),
        ([MOMENT], pa.timestamp("us", "UTC"), ["2020-01-02T03:04:05Z"]),
        ([MOMENT.replace(microsecond=250_000)], pa.timestamp("us", "UTC"), ["2020-01-02T03:04:05.25Z"]),
        ([MOMENT], pa.timestamp("s", "Asia/Kolkata"), ["2020-01-02T08:34:05+0530"]),
        ([dt.time(1, 2, 3)], pa.time32("s"), ["01:02:03"]),
        ([Decimal("1.50"), Decimal("-0.25")], pa.decimal128(5, 2), ["1.50", "-0.25"]),
    ],
)
def test_one_text_per_value(values: list[Any], kind: pa.DataType, expected: list[str]) -> None:
    assert decoded(coded(values, kind)) == expected
    assert decoded(coded([*values, None], kind)) == [*expected, None]


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "Europe/Berlin", "+05:30", "-03:00"])
def test_an_offset_is_no_fraction(zone: str) -> None:
    [text] = coded([MOMENT], pa.timestamp("us", zone)).texts
    assert text == coded([MOMENT], pa.timestamp("s", zone)).texts[0]
    assert Dates(dates=("month",)).build("a", [text]).leaves == (text,)


def test_integers_with_a_gap_are_the_same_text_whatever_frame_they_come_from() -> None:
    frames = [
        pd.DataFrame({"a": [1, None, 3]}),  # floats, in pandas
        pd.DataFrame({"a": pd.array([1, None, 3], "Int64")}),
        pl.DataFrame({"a": [1, None, 3]}),
        pa.table({"a": pa.array([1, None, 3], pa.int8())}),
        pa.table({"a": ["1", None, "3"]}),
    ]
    for frame in frames:
        assert decoded(encode_texts("a", to_arrow(frame)[0]["a"])) == ["1", None, "3"]


def test_nan_is_null_and_minus_zero_is_zero() -> None:
    found = coded([0.0, -0.0, float("nan"), None])
    assert found.codes.tolist() == [0, 0, -1, -1]
    assert found.texts == ("0",)


def test_empty_text_is_no_null() -> None:
    found = coded(["", None, " "])
    assert found.codes.tolist() == [0, -1, 1]
    assert found.texts == ("", " ")


def test_nulls_alone_and_nothing() -> None:
    for values, kind in (([None, None], pa.null()), ([None, None], pa.string()), ([None, None], pa.float64())):
        found = coded(values, kind)
        assert found.codes.tolist() == [-1, -1]
        assert found.texts == ()
    found = encode_texts("a", pa.chunked_array([], pa.string()))
    assert (len(found.codes), found.texts) == (0, ())


def test_texts_are_sorted_by_code_point() -> None:
    words = ["é", "z", "Z", "a", "😀", "\uffff", "10", "9", "", "ab"]
    assert coded(words).texts == tuple(sorted(words))


def test_dictionaries_are_their_values() -> None:
    parts = [pa.array(["b", None, "a"]).dictionary_encode(), pa.array(["c", "a"]).dictionary_encode()]
    found = encode_texts("a", pa.chunked_array(parts))
    assert decoded(found) == ["b", None, "a", "c", "a"]
    assert found.texts == ("a", "b", "c")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([3, 1, None, 3], pa.int16()),
        ([Decimal("2.50"), Decimal("1.00"), None], pa.decimal128(5, 2)),
        ([MOMENT, None], pa.timestamp("us", "Europe/Berlin")),
        ([dt.date(2020, 1, 2), dt.date(1969, 1, 1)], pa.date32()),
        (["x", "", None], pa.string()),
    ],
)
def test_every_text_has_a_value_of_the_columns_own_type(values: list[Any], kind: pa.DataType) -> None:
    found = coded(values, kind)
    assert found.values.type == kind
    back = found.values.take(pa.array(found.codes, mask=found.codes < 0))
    assert back.equals(pa.array(values, kind))


@given(st.lists(st.none() | st.text(max_size=3) | st.sampled_from(["a", "b"]), max_size=20), st.data())
def test_codes_do_not_depend_on_the_order_of_rows_nor_on_chunks(values: list[str | None], data: st.DataObject) -> None:
    found = coded(values, pa.string())
    assert decoded(found) == values
    assert list(found.texts) == sorted({value for value in values if value is not None})
    order = data.draw(st.permutations(range(len(values))))
    chunks = data.draw(st.integers(1, 4))
    other = coded([values[i] for i in order], pa.string(), chunks)
    assert other.texts == found.texts
    assert other.codes.tolist() == [found.codes[i] for i in order]
    assert other.codes.dtype == np.int32


@given(st.lists(st.floats(allow_nan=False) | st.integers(-(2**60), 2**60).map(float), max_size=10))
def test_floats_read_back_equal(numbers: list[float]) -> None:
    found = coded(numbers, pa.float64())
    assert [float(text) for text in decoded(found) if text is not None] == [x + 0.0 for x in numbers]
    assert len(found.texts) == len(set(numbers))


def test_what_has_no_text_is_refused_and_not_quoted() -> None:
    with pytest.raises(DataError, match="column 'a'") as caught:
        coded([SECRET.encode() + b"\xff"], pa.binary())
    assert SECRET not in str(caught.value)


@given(st.lists(st.integers(0, 4) | st.none(), max_size=8), st.lists(st.sampled_from(["", "a", "b", None]), min_size=5))
def test_a_dictionary_is_encoded_like_its_values(numbers: list[int | None], values: list[str | None]) -> None:
    """It may list a value twice, values that do not occur, and null."""
    column = pa.chunked_array([
        pa.DictionaryArray.from_arrays(pa.array(part, pa.int32()), pa.array(values, pa.string()))
        for part in (numbers[:3], numbers[3:])
    ])  # fmt: skip
    found, plain = encode_texts("x", column), encode_texts("x", column.cast(pa.string()))
    assert (found.texts, found.codes.tolist()) == (plain.texts, plain.codes.tolist())
    assert found.values.equals(plain.values)
