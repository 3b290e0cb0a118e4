"""Texts that a Parquet file stores as numbers: the same table, the same codes and the same release as from texts."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

import shoal
from shoal.engines import local
from shoal.engines.formats import dictionary_columns, table_files
from shoal.engines.local import LocalEngine
from shoal.errors import DataError

CELLS = st.sampled_from(["", "a", "b", "ä", "A", "n/a", "=x", "'=x", '"', "\x1f", None])
KINDS = st.sampled_from([pa.string(), pa.large_string(), pa.string_view()])


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files too are read as numbers."""
    for module, name, value in (
        (dictionary_columns, "MIN_ROWS", 1),
        (dictionary_columns, "MIN_GROUP_ROWS", 1),
        (dictionary_columns, "LENGTH", 2**20),
    ):
        monkeypatch.setattr(module, name, value)


@pytest.mark.usefixtures("small")
@examples(400)
@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=12), KINDS, st.integers(1, 5), st.data())
def test_a_file_is_read_as_if_it_stored_texts(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple], kind: pa.DataType, size: int, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("numbers") / "rows.parquet"
    table = pa.table({"x": pa.array([x for x, _ in rows], kind), "y": pa.array([y for _, y in rows], pa.string())})
    pq.write_table(table, path, row_group_size=size, data_page_version=data.draw(st.sampled_from(["1.0", "2.0"])))
    found, plain = LocalEngine.of(path), LocalEngine(table_files.read_table_file(path).table)
    assert all(pa.types.is_dictionary(field.type) for field in found.held.schema)
    assert found.table.equals(plain.table)
    assert found.text_columns == plain.text_columns
    for name in ("x", "y"):
        here, there = found.coded(name), plain.coded(name)
        assert (here.texts, here.codes.tolist()) == (there.texts, there.codes.tolist())
        assert here.values.equals(there.values)
        assert found.frequencies(name).tolist() == plain.frequencies(name).tolist()
    n = data.draw(st.integers(0, len(rows)))
    assert found.first(n).equals(plain.first(n))
    assert found.in_order(["y"]).equals(plain.in_order(["y"]))
    assert found.dependences([("x", "y")]) == plain.dependences([("x", "y")])


POLICY = {
    "columns": {
        "name": {"role": "identifier"},
        "age": {"role": "quasi", "hierarchy": {"intervals": [10]}},
        "town": {"role": "quasi", "hierarchy": {"flat": True}, "missing": ["n/a"]},
        "disease": {"role": "sensitive"},
        "ward": {"role": "plain"},
    },
    "require": [{"model": "k-anonymity", "k": 3}, {"model": "distinct-l-diversity", "l": 2}],
    "release": {"max_suppression": 0.2},
}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("many", [1, 10**6])
def test_the_release_has_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shuffle: bool, many: int
) -> None:
    monkeypatch.setattr(local, "MANY_ROWS", many)  # whether the release is kept as its distinct rows
    chosen = np.random.default_rng(7)
    values = {
        "name": [f"person {i % 70}" for i in range(200)],
        "age": ["21", "24", "35", "38", None],
        "town": ["Bern", "n/a", "", "Basel"],
        "disease": ["flu", "=hiv", "'=x", None],
        "ward": ["1", "2", None],
    }
    people = pa.table({name: [of[i] for i in chosen.integers(0, len(of), 200)] for name, of in values.items()})
    for name, stored in (("numbers", True), ("texts", False)):
        pq.write_table(people, tmp_path / f"{name}.parquet", use_dictionary=stored)
        asked = {**POLICY, "release": {**POLICY["release"], "shuffle": shuffle}}
        release = shoal.anonymize(tmp_path / f"{name}.parquet", asked)
        release.save(tmp_path / f"{name}.csv")
    assert (tmp_path / "numbers.csv").read_bytes() == (tmp_path / "texts.csv").read_bytes()


def test_numbers_are_read_only_where_a_large_file_stores_them(tmp_path: Path) -> None:
    n = dictionary_columns.MIN_ROWS
    table = pa.table({"few": ["yes", "no"] * (n // 2), "own": [str(i) for i in range(n)], "n": list(range(n))})
    pq.write_table(table, tmp_path / "large.parquet")
    pq.write_table(table[:-1], tmp_path / "small.parquet")
    assert dictionary_columns.numbered_columns(pq.ParquetFile(tmp_path / "large.parquet")) == ["few"]
    assert dictionary_columns.numbered_columns(pq.ParquetFile(tmp_path / "small.parquet")) == []
    assert LocalEngine.of(tmp_path / "large.parquet").table.equals(table)


@pytest.mark.usefixtures("small")
def test_bytes_that_are_no_text_are_refused_as_ever(tmp_path: Path) -> None:
    wrong = pa.array([b"good", b"\xff\xfe"] * 3).dictionary_encode()
    text = pa.Array.from_buffers(pa.string(), 2, wrong.dictionary.buffers())
    pq.write_table(pa.table({"x": text.take(wrong.indices)}), tmp_path / "x.parquet")
    with pytest.raises(DataError, match=r"'x'.*not text"):
        LocalEngine.of(tmp_path / "x.parquet")


def test_texts_are_made_in_chunks_that_arrow_can_address(monkeypatch: pytest.MonkeyPatch) -> None:
    column = pa.chunked_array([pa.array(["abcd", "ef", None, "abcd"]).dictionary_encode()])
    monkeypatch.setattr(dictionary_columns, "PIECE_BYTES", 8)
    assert [len(chunk) for chunk in dictionary_columns.column_of_texts(column).chunks] == [2, 2]
    assert dictionary_columns.column_of_texts(column).to_pylist() == ["abcd", "ef", None, "abcd"]
