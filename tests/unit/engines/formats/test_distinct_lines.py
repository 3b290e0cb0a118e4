"""The distinct lines of a file stand for all of it, or are not used."""

import hashlib
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.engines.formats import csv_text, distinct_lines, table_files
from shoal.engines.formats.distinct_lines import few_lines
from shoal.engines.formats.layout import decompressed_chunks, layout_of
from shoal.errors import VerificationError

ODD = [b" x,y\n", b' "x",y\n', b"\xff,y\n", b"a,b", b"a,b,c\n", b'a"b,c\n', b'"a" ,b\n', b"\0,b\n"]
LINES = st.sampled_from(
    [*ODD, b"x,y\n", b"1,2\n", b"x,\n", b'"a,b",""\n', b'"a\n', b'b",c\n', b"a\n", b"\n", b"a,b\r\n", b"a,b\rc,d\n"]
)
FINE = st.sampled_from([b"x,y\n", b"1,2\n", b"x,\n", b'"a,b",""\n', b",\n", "é,ü\n".encode(), b'a"b,c\n'])


def rows_in(table: pa.Table, counts: list[int] | None = None) -> Counter:
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return sum((Counter({row: n}) for row, n in zip(rows, counts or [1] * len(table), strict=True)), Counter())


@given(
    st.lists(LINES, max_size=4) | st.lists(FINE, max_size=4),
    st.integers(1, 4),
    st.lists(LINES, max_size=1),
    st.sampled_from([40, 2**21]),
)
def test_they_are_those_of_the_whole_file(
    tmp_path_factory: pytest.TempPathFactory, some: list[bytes], copies: int, last: list[bytes], size: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "written.csv"
    path.write_bytes(b"".join([b"a,b\n", *some * copies, *last]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distinct_lines, "PIECE", size)
        found = few_lines(path, ",")
    if found is None:
        return
    whole = layout_of(partial(decompressed_chunks, path), path.name, separator=",")
    assert (found.layout.names, found.n_records) == (whole.names, whole.records)
    assert found.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert rows_in(table_files.parsed_lines(found), found.counts.tolist()) == rows_in(
        table_files.read_table_file(path).table
    )


@given(st.lists(FINE, min_size=1, max_size=4, unique=True), st.integers(2, 5))
def test_lines_that_repeat_are_few(tmp_path_factory: pytest.TempPathFactory, some: list[bytes], copies: int) -> None:
    path = tmp_path_factory.getbasetemp() / "written.csv"
    path.write_bytes(b"".join([b"a,b\n", *some * copies]))
    found = few_lines(path, ",")
    assert found is not None
    assert found.counts.tolist() == [copies] * len(some)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"a,b\n",
        b"a,b\n1,2\n3,4\n5,6\n",  # not few
        b'a,b\n"1\n2",3\n' * 4,  # a record of two lines
        b"a,b\n1,2\r3,4\n" * 4,  # two records in a line
        b"a,b\n1,2\r\n1,2\r\n1,2\r\n",
        b"a,b\n1,2\n1,2\n\n\n",  # blank lines
        b"a,b\n1,2\n1,2\n1,2",  # the last one does not end
        b"a,b\n1\n1\n1\n",
        b"a,b\n\xff,2\n\xff,2\n",
    ],
)
def test_other_files_are_read_as_a_whole(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "written.csv").write_bytes(text)
    assert few_lines(tmp_path / "written.csv", ",") is None


def test_a_line_may_be_longer_than_a_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distinct_lines, "PIECE", 8)
    (tmp_path / "written.csv").write_bytes(b"a,b\n" + b"1,2345678\n" * 4)
    assert few_lines(tmp_path / "written.csv", ",") is None


def test_a_file_with_other_counts_is_not_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = table_files._write_csv
    monkeypatch.setattr(
        table_files, "_write_csv", lambda tables, file, separator, counts: write(tables, file, separator)
    )
    with pytest.raises(VerificationError, match="columns or rows of the written file differ"):
        table_files.write_table_file(
            pa.table({"a": ["1"]}), tmp_path / "safe.csv", verify=lambda _: None, counts=np.array([4])
        )
    assert not list(tmp_path.iterdir())


@given(
    st.lists(st.tuples(st.sampled_from(["", "a", 'b"', "c,d", "e\nf", None]), st.integers(1, 9)), min_size=1),
    st.integers(1, 30),
)
def test_rows_with_counts_are_written_as_rows(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str | None, int]], size: int
) -> None:
    table = pa.table({"a": pa.array([text for text, _ in rows]), "b": pa.array(["y"] * len(rows))})
    counts = np.array([n for _, n in rows])
    folder = tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_text, "WRITTEN", size)
        short = table_files.write_table_file(
            table, folder / "short.csv", force=True, verify=lambda _: None, counts=counts
        )
    every = table.take(np.repeat(np.arange(len(rows)), counts))
    assert table_files.write_table_file(every, folder / "every.csv", force=True, verify=lambda _: None) == short
