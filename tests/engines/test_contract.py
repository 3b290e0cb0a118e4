"""What every engine must do: the protocol ``Engine``, with memory as the oracle."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import shoal
from benches import Bench
from shoal.engines.base import Engine, Groups, Query, Released, Rows, WrittenFile
from shoal.engines.local import LocalEngine
from shoal.engines.opening import engine_of, rows_of
from shoal.errors import DataError
from shoal.judge.recount import Reference, recounted, recounted_written
from shoal.release.replay import described, replay
from shoal.search import PARTING, SEARCHES, Problem

N = 200
PEOPLE = pa.table({
    "name": [f"person {i}" for i in range(N)],
    "age": pa.array([None if i == 7 else 20 + i * 7 % 40 for i in range(N)], pa.int64()),
    "zip": [f"02{130 + i * i % 11}" for i in range(N)],
    "disease": [("flu", "gout", "cold", None, "flu")[i * 3 // 7 % 5] for i in range(N)],
    "note": [f"note {i % 17}" for i in range(N)],
})  # fmt: skip


def policy(algorithm: str = "optimal", k: int = 4, min_level: int = 0, **release: object) -> shoal.Policy:
    return shoal.Policy.of({
        "columns": {
            "name": {"role": "identifier"},
            "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}},
            "zip": {"role": "quasi", "hierarchy": {"mask": "right"}, "min_level": min_level},
            "disease": {"role": "sensitive"},
            "note": {"role": "plain"},
        },
        "require": [{"model": "k-anonymity", "k": k}],
        "release": {"algorithm": algorithm, "max_suppression": 0.1, **release},
    })  # fmt: skip


@pytest.fixture
def memory() -> LocalEngine:
    return rows_of(PEOPLE)


@pytest.fixture(params=["local", "duckdb", "postgres", "spark"])
def any_engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine in turn, with the same rows."""
    if request.param == "local":
        return engine_of(PEOPLE)
    bench: Bench = request.getfixturevalue({"duckdb": "duck"}.get(request.param, request.param))
    return engine_of(bench.load(PEOPLE))


def lines(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def made(engine: Engine, rows: Rows | Query) -> list[str]:
    """The released rows, whatever holds them."""
    return lines(rows.table if isinstance(rows, Rows) else engine.released(rows).first(10 * N))


def test_an_engine_counts_applies_and_writes_as_memory_does(
    any_engine: Engine, memory: LocalEngine, tmp_path: Path
) -> None:
    for algorithm in ("optimal", "mondrian_relaxed"):
        asked = policy(algorithm)
        ours, theirs = (each.count(asked, apart=algorithm in PARTING) for each in (memory, any_engine))
        assert np.array_equal(theirs.table.codes, ours.table.codes)
        assert np.array_equal(theirs.table.counts, ours.table.counts)
        assert theirs.n_records == N
        answer = SEARCHES[algorithm](Problem.of(theirs.table, asked))
        rows = any_engine.apply(theirs, answer, asked)
        assert rows.n_records == memory.apply(ours, answer, asked).n_records
        assert made(any_engine, rows) == lines(memory.apply(ours, answer, asked).table)
        seen: list[int] = []

        def verify(written: WrittenFile | Groups, asked: shoal.Policy = asked, seen: list[int] = seen) -> None:
            reference = Reference(memory.domains(asked))
            seen.append(recounted_written(written, asked, reference).n_records)

        target = str(tmp_path / f"{algorithm}.parquet") if any_engine.in_memory else f"table:contract_{algorithm}"
        any_engine.check_target(target, True)
        any_engine.write(rows, target, asked, force=True, verify=verify)
        assert seen == [rows.n_records]


def test_an_engine_remembers_no_count(any_engine: Engine) -> None:
    """Whatever is counted since, an answer is applied to the count that it answers."""
    first, second = policy("mondrian"), policy("mondrian_relaxed", k=9, min_level=1, suppressed="keep")
    counted = any_engine.count(first)
    answer = SEARCHES["mondrian"](Problem.of(counted.table, first))
    expected, fingerprint = made(any_engine, any_engine.apply(counted, answer, first)), counted.fingerprint
    other = any_engine.count(second, apart=True)
    assert other.table.n_classes != counted.table.n_classes
    rows = any_engine.apply(counted, answer, first)
    assert made(any_engine, rows) == expected
    assert (counted.fingerprint, counted.n_records) == (fingerprint, N)
    reference = Reference(counted.rows.domains(first))
    assert recounted(rows, first, reference).n_records == rows.n_records


def test_a_release_is_its_own_whatever_its_engine_did_since(any_engine: Engine) -> None:
    release = shoal.anonymize(any_engine, policy("mondrian"))
    kept, proof = described(release), release.certificate
    shoal.anonymize(any_engine, policy("mondrian_relaxed", k=9, min_level=1))
    replay(kept, any_engine)
    assert described(release) == kept
    assert {**release.certificate, "created": None} == {**proof, "created": None}
    assert isinstance(release, Released)


def test_questions_about_columns_have_the_answers_of_memory(any_engine: Engine, memory: LocalEngine) -> None:
    names = ["age", "zip", "disease"]
    assert any_engine.columns == memory.columns
    assert any_engine.text_columns == memory.text_columns
    assert any_engine.n_distinct(names) == memory.n_distinct(names)
    assert any_engine.n_tuples(names) == memory.n_tuples(names)
    assert any_engine.crowds(names) == memory.crowds(names)
    groups, expected = any_engine.groups(names), memory.groups(names)
    assert lines(groups.table.rename_columns([*names, "n"])) == lines(expected.table.rename_columns([*names, "n"]))
    values, filled, records = any_engine.some_values("zip", 5)
    assert (len(values), filled, records) == (5, N, N)
    assert {str(value) for value in values.to_pylist()} <= set(memory.texts("zip"))
    seen = any_engine.tally(["age", "zip"])
    assert seen.n_records == N
    for asked in (any_engine, any_engine.knowing(seen)):
        assert dict(asked.spreads(names)) == memory.spreads(names)
        pairs = [("age", "zip"), ("zip", "note")]
        assert dict(asked.dependences(pairs)) == memory.dependences(pairs)
        assert asked.frequencies("disease").tolist() == memory.frequencies("disease").tolist()
        assert asked.texts("zip") == memory.texts("zip")
    listed, ordered = any_engine.listed(names)
    assert lines(listed.table.select(names)) == lines(PEOPLE.select(names))
    assert ordered == any_engine.in_memory
    assert any_engine.first(3).num_rows == 3
    sampled = any_engine.sampled(policy(), 10**6)
    assert sampled is not None
    assert (sampled[0].n_records, sampled[1]) == (N, N)


def test_only_rows_in_memory_are_handed_out(any_engine: Engine) -> None:
    if any_engine.in_memory:
        assert any_engine.table.num_rows == N
    else:
        with pytest.raises(DataError, match="stay in their engine"):
            _ = any_engine.table
