"""If these fail, a frame comes back as another kind, or with other types or values."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from decimal import Decimal
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import shoal
from shoal.engines import frames
from shoal.engines.frames import nested_columns, table_fingerprint, to_arrow, with_plain_types
from shoal.engines.local import LocalEngine
from shoal.errors import DataError

SECRET = "Wilhelmina-Secret"  # stands for a cell: no message may ever contain it


def column(data: object, name: str = "a") -> pa.ChunkedArray:
    return to_arrow(data)[0][name]


def failure(data: object) -> str:
    with pytest.raises(DataError) as caught:
        to_arrow(data)
    error = caught.value
    assert SECRET not in str(error)
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None
    return str(error)


# ── there and back ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "index",
    [
        [2, 0, 1],
        [7, 7, 7],
        ["x", "y", "z"],
        pd.MultiIndex.from_tuples([(1, "a"), (1, "b"), (2, "a")]),
        pd.Index([5, 6, 7], name="a"),
    ],
)
def test_a_pandas_index_without_a_name_of_its_own_takes_no_part(index: Any) -> None:
    table, back = to_arrow(pd.DataFrame({"a": ["u", "v", None], "n": [1, 2, 3]}, index=index))
    assert table.to_pydict() == {"a": ["u", "v", None], "n": [1, 2, 3]}
    assert table.schema == pa.schema([("a", pa.string()), ("n", pa.int64())])
    assert table.schema.metadata is None
    released = back(table)
    assert type(released) is pd.DataFrame
    assert released.index.equals(pd.RangeIndex(3))
    assert list(released.columns) == ["a", "n"]


def test_a_named_pandas_index_is_a_column() -> None:
    frame = pd.DataFrame({"a": ["u", "v", None]}, index=pd.Index(["x", "y", "z"], name="person"))
    table, back = to_arrow(frame)
    assert table.to_pydict() == {"person": ["x", "y", "z"], "a": ["u", "v", None]}
    assert back(table)["person"].tolist() == ["x", "y", "z"]
    levels = pd.MultiIndex.from_tuples([(1, "a"), (1, "b"), (2, "a")], names=["p", None])
    assert to_arrow(pd.DataFrame({"n": [1, 2, 3]}, index=levels))[0].to_pydict() == {"p": [1, 1, 2], "n": [1, 2, 3]}


@pytest.mark.parametrize("cells", [[["u"], ["v", "w"], None], [{"x": 1}, {"x": 2}, None], [("u",), ("v",), None]])
@pytest.mark.parametrize("library", [pd, pl])
def test_a_column_of_lists_or_dicts_is_marked(library: Any, cells: list[Any]) -> None:
    table, _ = to_arrow(library.DataFrame({"n": [1, 2, 3], "tags": cells}))
    assert nested_columns(table) == ["tags"]
    assert table["tags"].null_count == 1
    assert pa.types.is_string(table["tags"].type)
    assert nested_columns(to_arrow(table)[0]) == ["tags"]


def test_a_filtered_pandas_frame() -> None:
    frame = pd.DataFrame({"a": list("uvwx")})
    assert column(frame[frame["a"] > "v"].sort_values("a", ascending=False)).to_pylist() == ["x", "w"]


def test_polars_comes_back_as_it_came() -> None:
    frame = pl.DataFrame({"a": ["u", None], "n": [1, 2]})
    table, back = to_arrow(frame)
    assert table.schema == pa.schema([("a", pa.string()), ("n", pa.int64())])
    assert isinstance(back(table), pl.DataFrame)
    assert back(table).equals(frame)
    table, back = to_arrow(frame.lazy().filter(pl.col("n") > 1))
    assert table.to_pylist() == [{"a": None, "n": 2}]
    assert isinstance(back(table), pl.LazyFrame)
    assert back(table).collect().rows() == [(None, 2)]


def test_arrow_comes_back_as_it_came() -> None:
    table = pa.table({"a": ["u", "v"]})
    plain_table, back = to_arrow(table)
    assert plain_table.equals(table)
    assert back(table) is table
    batch = pa.record_batch({"a": ["u", "v"]})
    plain_table, back = to_arrow(batch)
    assert plain_table.equals(table)
    assert back(pa.concat_tables([table, table])).equals(pa.record_batch({"a": ["u", "v", "u", "v"]}))
    assert back(table.schema.empty_table()).num_rows == 0


def test_a_narwhals_frame_comes_back_as_one() -> None:
    for native in (pd.DataFrame({"a": ["u"]}), pl.DataFrame({"a": ["u"]})):
        table, back = to_arrow(nw.from_native(native))
        assert table.to_pydict() == {"a": ["u"]}
        released = back(table)
        assert isinstance(released, nw.DataFrame)
        assert type(released.to_native()) is type(native)


def test_pandas_integers_and_booleans_survive_nulls() -> None:
    _, back = to_arrow(pd.DataFrame({"a": [1]}))
    big = 2**62 + 1
    released = back(pa.table({
        "n": [big, None], "u": pa.array([1, None], pa.uint8()), "y": [True, None], "m": [1, 2], "s": ["x", None],
    }))  # fmt: skip
    assert [str(released[name].dtype) for name in "nuym"] == ["Int64", "UInt8", "boolean", "int64"]
    assert released["n"][0] == big
    assert released.isna().to_numpy().tolist() == [[False] * 5, [True, True, True, False, True]]


def test_pandas_columns_get_their_types_back() -> None:
    kinds = {
        "category": pd.Categorical(["b", "a", None, "b"], categories=["z", "b", "a"], ordered=True),
        "number": pd.Categorical([3, 1, 3, 1]),
        "Int8": pd.array([1, 2, 3, None], "Int8"),
        "Float64": pd.array([1.5, None, 2.5, 3.5], "Float64"),
        "boolean": pd.array([True, False, None, True], "boolean"),
        "string": pd.array(["x", None, "", "y"], "string"),
        "arrow": pd.array([1, None, 3, 4], "int64[pyarrow]"),
        "zoned": pd.to_datetime(["2020-01-01", "2021-06-01", None, "2022-01-01"]).tz_localize("Europe/Rome"),
    }
    frame = pd.DataFrame(kinds, index=pd.MultiIndex.from_product([[1, 1], ["x", "x"]]))
    table, back = to_arrow(frame)
    expected = frame.reset_index(drop=True)
    expected["category"] = expected["category"].cat.remove_categories(["z"])  # nobody has it: it tells nothing
    pd.testing.assert_frame_equal(back(table), expected)
    kept = back(table.slice(0, 1))
    assert [str(kind) for kind in kept.dtypes] == [str(kind) for kind in frame.dtypes]
    assert list(kept["category"].cat.categories) == ["b"]  # the others were suppressed, and are not told
    for name in ("category", "number", "Int8", "boolean"):
        j = table.column_names.index(name)
        generalized = back(table.set_column(j, name, pa.array(["*"] * 4)))
        assert list(generalized[name]) == ["*"] * 4
        assert pd.api.types.is_string_dtype(generalized[name].dtype)


def test_polars_categories_get_their_types_back() -> None:
    frame = pl.DataFrame(
        {
            "c": pl.Series(["b", "a", None], dtype=pl.Categorical),
            "e": pl.Series(["b", "a", None], dtype=pl.Enum(["z", "b", "a"])),
        }
    )
    for data in (frame, frame.lazy()):
        table, back = to_arrow(data)
        assert dict(back(table).collect_schema()) == {"c": pl.Categorical, "e": pl.Enum(["b", "a"])}
        assert back(table).lazy().collect().to_dict(as_series=False) == frame.to_dict(as_series=False)
        generalized = back(pa.table({"c": ["*"], "e": ["*"]}))
        assert dict(generalized.collect_schema()) == {"c": pl.Categorical, "e": pl.String}


def test_arrow_dictionaries_come_back_as_some() -> None:
    kinds = {"c": pa.dictionary(pa.int8(), pa.string()), "o": pa.dictionary(pa.int32(), pa.string(), ordered=True)}
    cells = ["b", "a", None, "b"]
    data = pa.table({name: pa.array(cells).cast(kind) for name, kind in kinds.items()})
    for source in (data, data.to_batches()[0], data.to_reader()):
        table, back = to_arrow(source)
        released = back(table.slice(0, 1))
        found = released.read_all() if isinstance(released, pa.RecordBatchReader) else released
        assert type(released) is type(source)
        assert found.schema.types == [kinds["c"], pa.string()]  # an order that is not known is not claimed
        chunk = found["c"] if isinstance(found, pa.RecordBatch) else found["c"].chunk(0)
        assert chunk.dictionary.to_pylist() == ["b"]
    many = back(pa.table({"c": [str(i) for i in range(300)]})).read_all()
    assert many.schema.types == [pa.string()]  # more than eight bits can number


def test_a_relation_of_duckdb_comes_back_as_one() -> None:
    with duckdb.connect() as con:
        table, back = to_arrow(con.sql("SELECT 1 AS a UNION ALL SELECT 2 ORDER BY a"))
    assert table["a"].to_pylist() == [1, 2]
    assert back(table).fetchall() == [(1,), (2,)]
    assert type(back(table)) is duckdb.DuckDBPyRelation
    with duckdb.connect() as con:
        assert "could not be collected" in failure(con.sql(f"SELECT CAST('{SECRET}' AS INTEGER) AS a"))


def test_no_frame_library_is_imported_on_our_own_account() -> None:
    # Arrow imports pandas when it builds a table from Python lists, so only our imports are looked at.
    names = "[name for name in ('pandas', 'polars') if name in sys.modules]"
    code = f"import sys, shoal.engines.formats.table_files; print({names})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ── values ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_categories_become_their_values() -> None:
    assert column(pd.DataFrame({"a": pd.Categorical(["u", None, "v", "u"])})).to_pylist() == ["u", None, "v", "u"]
    numbers = column(pd.DataFrame({"a": pd.Categorical([3, None, 1])}))
    assert (numbers.type, numbers.to_pylist()) == (pa.int64(), [3, None, 1])
    assert column(pd.DataFrame({"a": pd.Categorical([1, "1", None])})).to_pylist() == ["1", "1", None]
    for kind in (pl.Categorical, pl.Enum(["u", "v"])):
        values = column(pl.DataFrame({"a": pl.Series(["u", None, "v"], dtype=kind)}))
        assert (values.type, values.to_pylist()) == (pa.string(), ["u", None, "v"])
    values = column(pa.table({"a": pa.array(["u", None]).dictionary_encode()}))
    assert (values.type, values.to_pylist()) == (pa.string(), ["u", None])


def test_mixed_objects_become_text() -> None:
    cells = [1, "x", 2.5, True, None, float("nan"), pd.NA, pd.NaT, Decimal("1.50"), dt.date(2020, 1, 2)]
    values = column(pd.DataFrame({"a": pd.Series(cells, dtype=object)}))
    assert values.type == pa.string()
    assert values.to_pylist() == ["1", "x", "2.5", "True", None, None, None, None, "1.50", "2020-01-02"]


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["x", None], pa.string()),
        ([1, None], pa.int64()),
        ([True, None], pa.bool_()),
        ([dt.date(2020, 1, 2), None], pa.date32()),
        ([Decimal("1.5"), None], pa.decimal128(2, 1)),
        ([None, None], pa.string()),
    ],
)
def test_objects_of_one_type_keep_it(cells: list[object], kind: pa.DataType) -> None:
    values = column(pd.DataFrame({"a": pd.Series(cells, dtype=object)}))
    assert (values.type, values.to_pylist()) == (kind, cells)


def test_objects_arrow_does_not_know_become_text() -> None:
    assert column(pd.DataFrame({"a": pd.Series([2**80, 1], dtype=object)})).to_pylist() == [str(2**80), "1"]
    periods = pd.Series(pd.PeriodIndex(["2020-01", None], freq="M"))
    assert column(pd.DataFrame({"a": periods})).to_pylist() == ["2020-01", None]
    assert column(pd.DataFrame({"a": pd.interval_range(0, 2)})).to_pylist() == ["(0, 1]", "(1, 2]"]


def test_sparse_columns() -> None:
    assert column(pd.DataFrame({"a": pd.arrays.SparseArray([1.5, np.nan])})).to_pylist() == [1.5, None]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_nan_is_null_and_minus_zero_is_zero(make: Any) -> None:
    values = column(make({"a": [float("nan"), -0.0, 1.5, float("inf")]}))
    assert values.to_pylist() == [None, 0.0, 1.5, float("inf")]
    assert not np.signbit(values[1].as_py())


def test_the_other_types_pass() -> None:
    moment = dt.datetime(2020, 1, 2, 3)
    table = pa.table({
        "zone": pa.array([moment, None], pa.timestamp("us", "Europe/Berlin")),
        "money": pa.array([Decimal("1.50"), None], pa.decimal128(9, 2)),
        "yes": [True, None], "n": pa.array([1, None], pa.uint16()), "day": [dt.date(2020, 1, 2), None],
        "clock": [dt.time(1, 2), None],
    })  # fmt: skip
    assert with_plain_types(table).equals(table)
    frame = pd.DataFrame({"n": pd.array([1, None], "Int32"), "y": pd.array([True, None], "boolean")})
    assert to_arrow(frame)[0].equals(pa.table({"n": pa.array([1, None], pa.int32()), "y": [True, None]}))


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary()])
def test_every_kind_of_text_is_a_string(kind: pa.DataType) -> None:
    cells = ["u", None, ""] if "string" in str(kind) else [b"u", None, b""]
    values = column(pa.table({"a": pa.chunked_array([pa.array(cells[:1], kind), pa.array(cells[1:], kind)])}))
    assert (values.type, values.to_pylist()) == (pa.string(), ["u", None, ""])


def test_encoded_and_small_types() -> None:
    runs = pa.RunEndEncodedArray.from_arrays([2, 3], ["u", "v"])
    assert column(pa.table({"a": runs})).to_pylist() == ["u", "u", "v"]
    assert column(pa.table({"a": pa.nulls(2)})).type == pa.string()
    assert column(pa.table({"a": pa.array([np.float16(1.5)])})).type == pa.float32()
    assert column(pa.table({"a": pa.array([dt.date(2020, 1, 2)], pa.date64())})).type == pa.date32()


def test_pieces_put_together_are_the_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "PIECE_ROWS", 3)
    cells = [str(i) for i in range(20)]
    assert column(pa.table({"a": pa.array(cells, pa.large_string())})).to_pylist() == cells
    assert column(pd.DataFrame({"a": pd.Categorical(cells)})).to_pylist() == cells


# ── what is refused ─────────────────────────────────────────────────────────────────────────────────────────


def test_names_that_are_refused() -> None:
    assert "(columns 1, 2)" in failure(pd.DataFrame([[SECRET, 2]], columns=["a", "a"]))
    assert "(columns 1, 2)" in failure(pd.DataFrame([[SECRET, 2]], columns=[1, "1"]))
    assert "(columns 1, 2)" in failure(pa.table([[SECRET], [2]], names=["a", "a"]))
    assert "2 levels" in failure(pd.DataFrame([[SECRET, 2]], columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])))
    for label in ("", None, float("nan")):
        assert "column 2 of 2 has no name" in failure(
            pd.DataFrame([[SECRET, 2]], columns=pd.Index(["a", label], dtype=object))
        )
    assert "column 1 of 1 has no name" in failure(pl.DataFrame({"": [SECRET]}))


def test_names_that_are_numbers_become_text() -> None:
    assert to_arrow(pd.DataFrame([[1, 2]], columns=[0, "b"]))[0].column_names == ["0", "b"]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_empty_tables(make: Any) -> None:
    assert "no rows" in failure(make({"a": pa.array([], pa.string())} if make is pa.table else {"a": []}))
    assert "no columns" in failure(make({}))


@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame({"ok": [1], "bad": [1 + 2j]}),
        pd.DataFrame({"ok": [1], "bad": pd.to_timedelta([1])}),
        pd.DataFrame({"ok": [1], "bad": pd.Series(["\ud800" + SECRET], dtype=object)}),
        pl.DataFrame({"ok": [1], "bad": pl.Series([object()], dtype=pl.Object)}),
        pl.DataFrame({"ok": [1], "bad": pl.Series([1], dtype=pl.Int128)}),
        pa.table({"ok": [1], "bad": [b"\xff" + SECRET.encode()]}),
        pa.table({"ok": [1], "bad": pa.array([b"\xff" + SECRET.encode()]).view(pa.string())}),
    ],
)
def test_columns_that_are_refused_are_named(data: object) -> None:
    message = failure(data)
    assert "'bad'" in message
    assert "'ok'" not in message


@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame({"ok": [1], "bad": [[SECRET]]}),
        pd.DataFrame({"ok": [1], "bad": [{"x": SECRET}]}),
        pd.DataFrame({"ok": [1], "bad": [(SECRET,)]}),
        pl.DataFrame({"ok": [1], "bad": [[SECRET]]}),
        pl.DataFrame({"ok": [1], "bad": [{"x": SECRET}]}),
        pa.table({"ok": [1], "bad": [[SECRET]]}),
        pa.table({"ok": [1], "bad": [{"x": SECRET}]}),
        pa.table({"ok": [1], "bad": pa.array([[("k", SECRET)]], pa.map_(pa.string(), pa.string()))}),
        pa.record_batch({"ok": [1], "bad": [[SECRET]]}),
    ],
)
@pytest.mark.parametrize("role", ["quasi", "sensitive", "plain"])
def test_lists_and_dicts_can_only_be_removed(data: object, role: str) -> None:
    columns = {"ok": {"role": "quasi"}, "bad": {"role": role}}
    policy = shoal.Policy.of({"columns": columns, "require": [{"model": "k-anonymity", "k": 1}]})
    with pytest.raises(DataError, match="'bad' holds nested values") as caught:
        shoal.anonymize(data, policy)
    assert SECRET not in str(caught.value) + str(caught.value.__cause__)
    released = shoal.anonymize(data, policy.with_columns(bad="identifier"))
    assert LocalEngine.of(released.table).columns == ["ok"]


def test_a_lazy_frame_that_fails_does_not_quote_a_cell() -> None:
    message = failure(pl.LazyFrame({"a": [SECRET]}).with_columns(pl.col("a").cast(pl.Int64)))
    assert "could not be collected" in message


@pytest.mark.parametrize("data", [SECRET, [SECRET], {"a": [SECRET]}, None, pd.Series([SECRET]), pl.Series([SECRET]), 5])
def test_what_is_not_a_table(data: object) -> None:
    assert "cannot read a table from" in failure(data)


# ── fingerprints ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_fingerprint_does_not_see_chunks_encodings_or_what_lies_under_nulls() -> None:
    table = pa.table({"a": ["u", None, "", "vw"], "n": [1, None, 3, 4], "y": [True, None, False, True]})
    cut = pa.concat_tables([table.slice(0, 1), table.slice(1, 0), table.slice(1, 2), table.slice(3)])
    encoded = table.set_column(0, "a", table["a"].dictionary_encode())
    longer = pa.concat_tables([pa.table({"a": ["z"], "n": [9], "y": [True]}), table]).combine_chunks().slice(1)
    garbage = pa.Array.from_buffers(pa.int64(), 4, [pa.py_buffer(b"\x0d"), pa.py_buffer(np.array([1, 77, 3, 4]))])
    hidden = table.set_column(1, "n", garbage)
    assert hidden.equals(table)
    assert len({table_fingerprint(each) for each in (table, cut, encoded, longer, hidden)}) == 1


def test_a_fingerprint_sees_everything_else() -> None:
    base = {"a": ["ab", "c"], "b": ["x", None]}
    others = [
        base,
        {"a": ["a", "bc"], "b": ["x", None]},
        {"a": ["c", "ab"], "b": ["x", None]},
        {"a": ["ab", "c"], "b": ["x", ""]},
        {"a": ["ab", "c"], "b": [None, "x"]},
        {"b": ["x", None], "a": ["ab", "c"]},
        {"a": ["ab", "c"], "B": ["x", None]},
        {"a": ["ab", "c"]},
        {"a": ["ab", "c", None], "b": ["x", None, None]},
        {"a": [1, 2]},
        {"a": [1.0, 2.0]},
        {"a": pa.array([1, 2], pa.int32())},
        {"a": [True, False]},
        {"a": [Decimal("1"), Decimal("2")]},
        {"a": [dt.date(1970, 1, 2), dt.date(1970, 1, 3)]},
    ]
    assert len({table_fingerprint(pa.table(each)) for each in others}) == len(others)


def test_a_fingerprint_in_a_certificate_stays_valid() -> None:
    expected = "ab189408eef711165d54fb652c994c3577aec04ca1a79a184418869c2faef875"
    assert table_fingerprint(pa.table({"a": ["u", None], "n": [1, 2]})) == expected


def test_too_little_memory_is_not_called_a_fault_of_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: pa.Array) -> pa.Array:
        raise pa.ArrowMemoryError("malloc of size 64 failed")

    monkeypatch.setattr(frames, "_plain_array", full)
    with pytest.raises(MemoryError):
        frames.plain_column("age", pa.chunked_array([["31"]]))
