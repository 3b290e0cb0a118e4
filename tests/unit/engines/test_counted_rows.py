"""Released rows that are kept as counts are those that would be kept one by one."""

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.engines import local
from shoal.engines.base import Rows
from shoal.engines.counted_rows import CountedRows
from shoal.engines.opening import rows_of
from shoal.engines.run_length_rows import RunLengthRows
from shoal.errors import VerificationError

ROWS = st.lists(
    st.tuples(
        st.sampled_from(["31", "34", "36", "52", None]),
        st.sampled_from(["f", "m", "*", "=x", ""]),
        st.sampled_from(["flu", "'=1", None]),
        st.sampled_from([1.5, 2.0, None]),
    ),
    min_size=1,
    max_size=9,
)
KINDS = {"age": pa.string(), "sex": pa.string(), "disease": pa.string(), "x": pa.float64()}


def table_of(rows: list[tuple], copies: int) -> pa.Table:
    rows = rows * copies
    return pa.table({name: pa.array([row[j] for row in rows], kind) for j, (name, kind) in enumerate(KINDS.items())})


def policy(**release: object) -> dict:
    return {
        "columns": {
            "age": {"role": "quasi", "hierarchy": {"intervals": [10]}},
            "sex": {"role": "quasi"},
            "disease": {"role": "sensitive"},
            "x": {"role": "plain"},
        },
        "require": [{"model": "k-anonymity", "k": 3}],
        "release": {"max_suppression": 0.5, **release},
    }


def released(table: pa.Table, many: int, **release: object) -> shoal.Release:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "MANY_ROWS", many)
        return shoal.anonymize(table, policy(**release))


@given(
    ROWS,
    st.integers(2, 6),
    st.sampled_from(["drop", "keep"]),
    st.sampled_from(["optimal", "mondrian", "suppress_records"]),
    st.integers(0, 3),
)
def test_they_are_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple],
    copies: int,
    suppressed: str,
    algorithm: str,
    seed: int,
) -> None:
    table = table_of(rows, copies)
    try:
        every = released(table, 10**9, suppressed=suppressed, algorithm=algorithm, seed=seed)
    except shoal.errors.ShoalError as error:
        with pytest.raises(type(error)):
            released(table, 0, suppressed=suppressed, algorithm=algorithm, seed=seed)
        return
    counts = released(table, 0, suppressed=suppressed, algorithm=algorithm, seed=seed)
    assert not isinstance(every.rows, CountedRows)
    assert isinstance(every.rows, Rows)
    assert isinstance(counts.rows, Rows)
    assert counts.verdicts.same(every.verdicts)
    assert (counts.measured, counts.loss, counts.findings) == (every.measured, every.loss, every.findings)
    folder = tmp_path_factory.getbasetemp()
    for suffix in (".csv", ".parquet"):
        notes = [
            release.save(folder / f"{name}{suffix}", force=True)["findings"]
            for name, release in (("every", every), ("counts", counts))
        ]
        assert notes[0] == notes[1]
        assert (folder / f"counts{suffix}").read_bytes() == (folder / f"every{suffix}").read_bytes()
    again = pickle.loads(pickle.dumps(counts.rows))
    for rows_again in (counts.rows, again):
        assert rows_again.table.combine_chunks() == every.rows.table.combine_chunks()
        assert np.array_equal(rows_again.sources, every.rows.sources)
        assert (rows_again.columns, rows_again.schema) == (every.rows.columns, every.rows.schema)
        assert rows_again.n_records == every.rows.n_records


def test_few_distinct_rows_are_kept_as_counts() -> None:
    rows = released(table_of([("31", "f", "flu", 1.5), ("52", "m", "flu", 2.0)], 4), 0).rows
    assert isinstance(rows, CountedRows)
    assert rows.repeated.counts.tolist() == [4, 4]
    assert "table" not in vars(rows)


def test_rows_that_are_not_those_counted_are_not_released(monkeypatch: pytest.MonkeyPatch) -> None:
    def spoiled(wrong: list[int]) -> shoal.Release:
        found = released(table_of([("31", "f", "flu", 1.5), ("52", "m", "flu", 2.0)], 4), 0)
        pieces = RunLengthRows.pieces
        with monkeypatch.context() as patch:
            patch.setattr(RunLengthRows, "pieces", lambda *given: (piece.take(wrong) for piece in pieces(*given)))
            return found.table

    assert len(spoiled(list(range(8)))) == 8
    for wrong in (list(range(7)), [0, *range(7)], [0, *range(8)]):
        with pytest.raises(VerificationError, match="do not match the counts"):
            spoiled(wrong)


def test_a_file_of_counts_that_holds_other_rows_never_appears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from shoal.engines.formats import table_files

    found = released(table_of([("31", "f", "flu", 1.5), ("52", "m", "flu", 2.0)], 4), 0)
    write = table_files._write_csv
    for counts in ([4, 3], [5, 4], [3, 5]):
        other = np.array(counts)
        monkeypatch.setattr(
            table_files, "_write_csv", lambda tables, file, separator, _, n=other: write(tables, file, separator, n)
        )
        with pytest.raises(VerificationError):
            found.save(tmp_path / "release.csv")
    assert not list(tmp_path.iterdir())


def test_utility_is_measured_on_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("31", "f", "flu", 1.5)] * 9 + [("34", "f", "flu", 1.5)] * 3 + [("52", "m", "flu", 2.0)] * 4
    found = []
    for many in (10**9, 0):
        monkeypatch.setattr(local, "MANY_ROWS", many)
        (entry,) = shoal.compare(table_of(rows, 1), policy(), algorithms=["optimal"], utility=True)
        found.append(entry.query_error)
    assert found[0] == found[1]


def test_whoever_needs_rows_gets_all_of_them() -> None:
    rows = released(table_of([("31", "f", "flu", 1.5), ("52", "m", "flu", 2.0)], 4), 0).rows
    engine = local.LocalEngine.of(rows.table).released(rows)
    assert engine.table.num_rows == 2
    assert sorted(rows_of(engine).table.to_pylist(), key=str) == sorted(rows.table.to_pylist(), key=str)
