"""Rows made from their counts: the same rows in the same order, and the same bytes."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.engines.base import Groups
from shoal.engines.formats import table_files
from shoal.engines.row_order import hash_order
from shoal.engines.run_length_rows import PAGE, RunLengthRows, rows_from_counts

CELLS = st.sampled_from(["", "a", "b", "a\x1fb", "\x1e", "é", '"', None])


def test_a_worked_example() -> None:
    groups = Groups(pa.table({"age": ["30-39", None, "30-39"], "person": [1, 2, 3], "n": [2, 1, 1]}), "n", "person")
    found = rows_from_counts(groups, ["age"], 0)
    assert sorted(zip(found.distinct["age"].to_pylist(), found.counts.tolist(), strict=True), key=repr) == [
        ("30-39", 3),
        (None, 1),
    ]
    assert [len(piece) for piece in found.pieces(3)] == [3, 1]
    assert found.schema == pa.schema([("age", pa.string())])


@given(st.lists(st.tuples(CELLS, CELLS, st.integers(1, 5)), min_size=1, max_size=8), st.integers(1, 7), st.booleans())
def test_the_rows_are_those_that_were_counted(rows: list[tuple], size: int, as_codes: bool) -> None:
    kinds = {"a": pa.string(), "b": pa.string(), "n": pa.int64()}
    counted = pa.table({name: pa.array([row[j] for row in rows], kind) for j, (name, kind) in enumerate(kinds.items())})
    every = counted.take(np.repeat(np.arange(len(rows)), [n for *_, n in rows])).select(["a", "b"])
    pieces = list(rows_from_counts(Groups(counted, "n"), ["a", "b"], 3).pieces(size, as_codes=as_codes))
    assert all(len(piece) == size for piece in pieces[:-1])
    found = pa.concat_tables([piece.cast(every.schema) for piece in pieces])
    assert found.combine_chunks() == every.take(hash_order(every, 3)).combine_chunks()


def repeated(*columns: list[str | None], counts: list[int]) -> RunLengthRows:
    """Rows in the order given."""
    coded = [pa.array(column, pa.string()).dictionary_encode() for column in columns]
    codes = [np.asarray(of.indices.fill_null(-1)) + 1 for of in coded]
    values = tuple(pa.concat_arrays([pa.nulls(1, pa.string()), of.dictionary]) for of in coded)
    names = tuple(f"c{j}" for j in range(len(columns)))
    return RunLengthRows(names, np.stack(codes).T.astype(np.int32), values, np.array(counts))


def early(n: int) -> list[str | None]:
    return [str(i) for i in range(n)]


@pytest.mark.parametrize(
    ("first", "later", "as_dictionary"),
    [
        (early(5), ["0", "5"], True),  # still three bits
        (early(8), ["0", "8"], False),  # a ninth value: three bits in the first page, four in the next
        ([None], ["a"], False),
        ([None], ["a", "b"], False),
        (["a"], ["b"], False),
        ([None, "a", "b"], [None, "b"], False),
        (["a"] * 3, ["a"], True),
        ([None], [None], False),
        (["x" * 300 + str(i) for i in range(2000)], ["a"], False),  # too many bytes for a dictionary
    ],
)
def test_codes_give_the_bytes_of_texts(
    tmp_path: Path, first: list[str | None], later: list[str | None], as_dictionary: bool
) -> None:
    counts = [3] * len(first) + [2 * PAGE] * (1 + len(later))  # the first page has all of the first values
    rows = repeated([*first, first[0], *later], ["y"] * len(counts), counts=counts)
    for size in (table_files.ROW_GROUP, PAGE + 7):
        pieces = {as_codes: list(rows.pieces(size, as_codes=as_codes)) for as_codes in (False, True)}
        for as_codes, tables in pieces.items():
            table_files.write_table_file(
                tables, tmp_path / f"{as_codes}.parquet", force=True, verify=lambda _: None, in_row_groups=True
            )
        assert (tmp_path / "True.parquet").read_bytes() == (tmp_path / "False.parquet").read_bytes()
        if size == table_files.ROW_GROUP:
            assert pa.types.is_dictionary(pieces[True][0]["c0"].type) == as_dictionary


def test_a_dictionary_holds_only_values_of_its_rows() -> None:
    rows = repeated(["a", "b", "c", "b"], counts=[3, 3, 3, 3])
    found = [piece["c0"].chunk(0).dictionary.to_pylist() for piece in rows.pieces(3, as_codes=True)]
    assert found == [["a"], ["b"], ["c"], ["b"]]
