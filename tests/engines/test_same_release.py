"""One policy, one table: every engine gives the release that the local one gives, row for row after sorting."""

import datetime
import decimal
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import shoal
from benches import Bench
from contract import TASKS, may_decline
from shoal.errors import InfeasibleError, PolicyError
from shoal.search import PARTING, SEARCHES


def rows_of(table: pa.Table) -> list[str]:
    return sorted(map(repr, zip(*(column.to_pylist() for column in table.columns), strict=True)))


def nasty(n: int = 160) -> pa.Table:
    """Values that engines like to take for others."""
    draw = np.random.default_rng(7)

    def some(*values):
        return [values[i] for i in draw.integers(0, len(values), n)]

    day, moment = datetime.date(1999, 12, 30), datetime.datetime(2024, 2, 29, 23, 59, 59)
    return pa.table(
        {
            "who": [f"person {i // 2}" for i in range(n)],
            "zip": pa.array(some("02138", "02139", "0213", "", None, "é", "e\u0301", " 0213", "NULL", "\\N", '"')),
            "age": pa.array(some(17, 18, 34, 35, None, 2**53, 2**53 + 1), pa.int64()),
            "weight": pa.array(some(-0.0, 0.0, float("nan"), None, 1.5, 1 / 3, 1e300), pa.float64()),
            "birth": pa.array(some(*(day + datetime.timedelta(days=i) for i in range(4)), None), pa.date32()),
            "seen": pa.array(some(moment, moment + datetime.timedelta(microseconds=500_000), None), pa.timestamp("us")),
            "instant": pa.array(some(moment, moment + datetime.timedelta(hours=1)), pa.timestamp("us", "UTC")),
            "paid": pa.array(some(decimal.Decimal("1.50"), decimal.Decimal("-0.05"), None), pa.decimal128(10, 2)),
            "alive": pa.array(some(True, False, None), pa.bool_()),
            "disease": pa.array(some("flu", "", None, "gout", 'Grippe\n"ä"', "a,b;c\t")),
            "score": pa.array(some(-0.0, 0.0, float("nan"), None, 2.0, 1e-7), pa.float64()),
        }
    )


def policy(algorithm: str, quasi: dict, **release) -> shoal.Policy:
    columns = {name: {"role": "plain"} for name in nasty(2).column_names} | {
        "who": {"role": "identifier"},
        "disease": {"role": "sensitive"},
        **{name: {"role": "quasi", **given} for name, given in quasi.items()},
    }
    require = [{"model": "k-anonymity", "k": 3}, {"model": "distinct-l-diversity", "l": 2}]
    fields = {"columns": columns, "require": require, "release": {"algorithm": algorithm, **release}}
    return shoal.Policy.of(fields)


def same(bench: Bench, table: pa.Table, asked: shoal.Policy) -> None:
    """Anonymize in memory and in the engine, and compare all there is to compare."""
    local = shoal.anonymize(table, asked)
    release = shoal.anonymize(bench.load(table), asked)
    target = f"r_{abs(hash((bench.name, str(asked), table.num_rows))):x}"
    proof = release.save(f"table:{target}", force=True)
    written = bench.read(target)
    assert written.column_names == local.rows.table.column_names
    assert rows_of(written) == rows_of(local.rows.table)
    assert release.levels == local.levels
    assert release.suppressed == local.suppressed
    assert release.verdicts.same(local.verdicts)
    assert dict(release.loss) == pytest.approx(dict(local.loss))
    assert dict(release.measured) == pytest.approx(dict(local.measured))
    assert set(release.warnings) == set(local.warnings)
    assert proof["output"]["records"] == local.rows.n_records
    assert proof["input"]["records"] == len(table)


QUASI = {
    "text": {"zip": {"hierarchy": {"mask": "right"}}, "alive": {}},
    "numbers": {"age": {"hierarchy": {"intervals": [10, 100]}}, "weight": {}, "paid": {}},
    "times": {"birth": {"hierarchy": {"dates": ["month", "year"]}}, "seen": {}, "instant": {}},
}
ALGORITHMS = ["optimal", "mondrian", "mondrian_relaxed", "suppress_cells"]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("quasi", QUASI)
def test_values_that_look_alike(database: Bench, quasi: str, algorithm: str) -> None:
    same(database, nasty(), policy(algorithm, QUASI[quasi], max_suppression=0.2))


@pytest.mark.parametrize("algorithm", ["optimal", "mondrian_relaxed"])  # one join, and two with a window between
@pytest.mark.parametrize("quasi", QUASI)
def test_values_that_look_alike_on_spark(spark: Bench, quasi: str, algorithm: str) -> None:
    same(spark, nasty(), policy(algorithm, QUASI[quasi], max_suppression=0.2))


@pytest.mark.parametrize("release", [{"suppressed": "keep"}, {"entity": "who"}, {"nulls": "wildcard"}], ids=str)
def test_what_a_policy_may_ask_of_a_release(bench: Bench, release: dict) -> None:
    same(bench, nasty(), policy("optimal", QUASI["text"], max_suppression=0.2, **release))


def test_persons_and_parts(database: Bench) -> None:
    asked = policy("mondrian_relaxed", QUASI["text"], max_suppression=0.2, entity="who")
    same(database, nasty(), asked)


def test_uncovered_values_share_a_leaf(database: Bench) -> None:
    tree = {"tree": {"anywhere": {"near": ["02138", "02139"], "far": ["0213", "é"]}}}
    quasi = {"zip": {"hierarchy": tree, "uncovered": "suppress"}, "alive": {}}
    for algorithm in ("optimal", "forest"):
        same(database, nasty(), policy(algorithm, quasi, max_suppression=0.2))


@pytest.mark.parametrize("algorithm", SEARCHES)
def test_every_algorithm(duck: Bench, algorithm: str) -> None:
    for name in ("k and distinct values", "nulls"):
        task = TASKS[name]
        try:
            same(duck, pa.Table.from_pandas(task.frame, preserve_index=False), task.policy(algorithm))
        except (PolicyError, InfeasibleError):
            assert may_decline(task, algorithm) or algorithm == "suppress_records"


@pytest.mark.parametrize("algorithm", sorted(PARTING))
def test_every_algorithm_that_parts_equals(postgres: Bench, algorithm: str) -> None:
    task = TASKS["k and distinct values"]
    same(postgres, pa.Table.from_pandas(task.frame, preserve_index=False), task.policy(algorithm))


MODELS = [
    {"model": "p-sensitive", "p": 2, "k": 3},
    {"model": "alpha-k-anonymity", "alpha": 0.6, "k": 3},
    {"model": "entropy-l-diversity", "l": 1.5},
    {"model": "recursive-l-diversity", "c": 3.0, "l": 2},
    {"model": "t-closeness", "t": 0.3},
    {"model": "basic-beta-likeness", "beta": 2.0},
    {"model": "enhanced-beta-likeness", "beta": 2.0},
    {"model": "delta-disclosure", "delta": 1.5},
    {"model": "average-risk", "max": 0.2},
    {"model": "sample-uniqueness", "max": 0.1},
    {"model": "k-map", "k": 4, "population": "people.csv"},
    {"model": "delta-presence", "low": 0.0, "high": 0.9, "population": "people.csv"},
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model["model"])
def test_every_requirement(database: Bench, model: dict, tmp_path) -> None:
    task = replace(TASKS["k"], require=(model,), max_suppression=0.3)
    people = task.frame[["q0", "q1"]]
    type(people)(list(people.values) * 2, columns=people.columns).to_csv(tmp_path / "people.csv", index=False)
    asked = task.policy("optimal").model_copy(update={"folder": tmp_path})
    same(database, pa.Table.from_pandas(task.frame, preserve_index=False), asked)


def test_the_same_file_to_the_byte(duck: Bench, tmp_path) -> None:
    asked = policy("mondrian_relaxed", QUASI["numbers"], max_suppression=0.2)
    table = nasty(1000)
    release = shoal.anonymize(duck.load(table), asked)
    local = shoal.anonymize(table, asked)
    for suffix in ("csv", "tsv", "parquet"):
        proof = release.save(tmp_path / f"engine.{suffix}")
        expected = local.save(tmp_path / f"local.{suffix}")
        assert (tmp_path / f"engine.{suffix}").read_bytes() == (tmp_path / f"local.{suffix}").read_bytes()
        assert proof["output"] == expected["output"]
