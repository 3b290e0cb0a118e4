"""One policy, one table: every engine gives the release that the local one gives, row for row after sorting."""

from collections.abc import Collection, Iterable
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from benches import Bench, nasty
from shoal.engines import connect
from shoal.errors import InfeasibleError, PolicyError
from shoal.hierarchies.bounds import with_bounds
from shoal.models import Requirement
from shoal.models.measured import Limit
from shoal.recoding import Recoding
from shoal.search import SEARCHES, Problem
from shoal.tables.frequency import FrequencyTable


def rows_of(table: pa.Table) -> list[str]:
    return sorted(map(repr, zip(*(column.to_pylist() for column in table.columns), strict=True)))


ASKED = ({"model": "k-anonymity", "k": 3}, {"model": "distinct-l-diversity", "l": 2})


def policy(
    algorithm: str, quasi: dict, require: tuple[dict, ...] = ASKED, folder: Path = Path(), **release
) -> shoal.Policy:
    columns = {name: {"role": "plain"} for name in nasty(2).column_names} | {
        "who": {"role": "identifier"},
        "disease": {"role": "sensitive"},
        **{name: {"role": "quasi", **given} for name, given in quasi.items()},
    }
    fields = {"columns": columns, "require": list(require), "release": {"algorithm": algorithm, **release}}
    return shoal.Policy.of(fields, folder)


@cache
def released_here(asked: str, folder: Path, n: int) -> shoal.Release:
    """The oracle: the release that is made in memory."""
    return shoal.anonymize(nasty(n), shoal.Policy.parse(asked, folder))


LOADED: dict[tuple[str, int], Any] = {}


def loaded(bench: Bench, n: int = 160) -> Any:
    """The table of nasty values in an engine, put there once."""
    if (bench.name, n) not in LOADED:
        LOADED[bench.name, n] = bench.load(nasty(n))
    return LOADED[bench.name, n]


def same(bench: Bench, asked: shoal.Policy) -> shoal.Release:
    """Anonymize in memory and in the engine, and compare all there is to compare."""
    local = released_here(asked.to_toml(), asked.folder, len(nasty()))
    release = shoal.anonymize(loaded(bench), asked)
    proof = release.save("table:same", force=True)
    written = bench.read("same")
    assert written.column_names == local.rows.table.column_names
    assert rows_of(written) == rows_of(local.rows.table)
    assert release.levels == local.levels
    assert release.suppressed == local.suppressed
    assert release.verdicts.same(local.verdicts)
    assert dict(release.loss) == pytest.approx(dict(local.loss))
    assert dict(release.measured) == pytest.approx(dict(local.measured))
    assert set(release.findings) == set(local.findings)
    assert proof["output"]["records"] == local.rows.n_records
    assert proof["input"]["records"] == len(nasty())
    return release


QUASI = {
    "text": {"zip": {"hierarchy": {"mask": "right"}}, "alive": {}},
    "numbers": {"age": {"hierarchy": {"intervals": [10, 100]}}, "weight": {}, "paid": {}},
    "times": {"birth": {"hierarchy": {"dates": ["month", "year"]}}, "seen": {}, "instant": {}},
}
ALGORITHMS = ["optimal", "mondrian", "mondrian_relaxed", "suppress_cells"]

# An engine sees three kinds of recoding: a level per column, labels of a tuple, and parts of a class.
KINDS_OF_RECODING = ("optimal", "top_down", "mondrian_relaxed", "suppress_cells")
# It counts class sizes, sensitive values, and a population beside them.
KINDS_OF_COUNTING = ("k-anonymity", "t-closeness", "k-map")


def by_engine(values: Iterable[Any], kinds: Collection[Any], long_on_spark: Collection[Any] = ()) -> list[Any]:
    """One for each kind, since more would tell nothing new; the others on DuckDB alone, where the long matrices run.

    Some of the kinds meet Spark in other tests too: those run where the long matrices do, on a cluster.
    """

    def marks(engine: str, value: Any) -> list[Any]:
        return [pytest.mark.long] if value not in kinds or (engine == "spark" and value in long_on_spark) else []

    return [
        pytest.param(engine, value, marks=marks(engine, value))
        for engine in ("duckdb", "postgres", "spark")
        for value in values
        if engine == "duckdb" or value in kinds
    ]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("quasi", QUASI)
def test_values_that_look_alike(database: Bench, quasi: str, algorithm: str) -> None:
    same(database, policy(algorithm, QUASI[quasi], max_suppression=0.2))


@pytest.mark.parametrize(("quasi", "algorithm"), [*zip(QUASI, cycle(["optimal", "mondrian_relaxed"]))])
def test_values_that_look_alike_on_spark(spark: Bench, quasi: str, algorithm: str) -> None:
    same(spark, policy(algorithm, QUASI[quasi], max_suppression=0.2))


RELEASES = [{"suppressed": "keep"}, {"entity": "who"}, {"nulls": "wildcard"}]


@pytest.mark.parametrize(("bench", "release"), by_engine(RELEASES, RELEASES, RELEASES), indirect=["bench"], ids=str)
def test_what_a_policy_may_ask_of_a_release(bench: Bench, release: dict) -> None:
    same(bench, policy("optimal", QUASI["text"], max_suppression=0.2, **release))


RANGES = {
    "age": {"hierarchy": {"intervals": [10, 100]}, "cells": "range"},
    "birth": {"hierarchy": {"dates": ["month", "year"]}, "cells": "range"},
}


FORMS = ("bounds", "midpoint")


@pytest.mark.parametrize(("bench", "form"), by_engine(FORMS, FORMS, FORMS), indirect=["bench"])
def test_columns_beside_ranges(bench: Bench, form: str) -> None:
    asked = policy("mondrian", RANGES, ranges=form)
    local = shoal.anonymize(nasty(), asked)
    shown = with_bounds(local.rows.table, asked)
    release = shoal.anonymize(loaded(bench), asked)
    release.save("table:beside", force=True)
    written = bench.read("beside")
    assert written.column_names == shown.column_names
    assert rows_of(written) == rows_of(shown)
    assert shoal.check(bench.con.table("beside"), asked).same(shoal.check(local.rows.table, asked))


def test_persons_and_parts(database: Bench) -> None:
    asked = policy("mondrian_relaxed", QUASI["text"], max_suppression=0.2, entity="who")
    same(database, asked)


def test_uncovered_values_share_a_leaf(database: Bench) -> None:
    tree = {"tree": {"anywhere": {"near": ["02138", "02139"], "far": ["0213", "é"]}}}
    quasi = {"zip": {"hierarchy": tree, "uncovered": "suppress"}, "alive": {}}
    for algorithm in ("optimal", "forest"):
        same(database, policy(algorithm, quasi, max_suppression=0.2))


MIXED = {
    "zip": {"hierarchy": {"mask": "right"}},
    "weight": {},
    "birth": {"hierarchy": {"dates": ["month", "year"]}},
}


@pytest.mark.parametrize(
    ("bench", "algorithm"),
    by_engine(SEARCHES, KINDS_OF_RECODING, ("optimal", "mondrian_relaxed")),
    indirect=["bench"],
)
def test_every_algorithm(bench: Bench, algorithm: str) -> None:
    quasi = {name: MIXED[name] for name in ("weight", "birth")} if algorithm == "k_optimize" else MIXED  # it is slow
    same(bench, policy(algorithm, quasi, max_suppression=0.9 if algorithm == "suppress_records" else 0.3))


MODELS = [
    {"model": "k-anonymity", "k": 4},
    {"model": "k-map", "k": 4, "population": "people.parquet"},
    {"model": "delta-presence", "low": 0.0, "high": 0.6, "population": "people.parquet"},
    {"model": "p-sensitive", "p": 2, "k": 3},
    {"model": "alpha-k-anonymity", "alpha": 0.6, "k": 3},
    {"model": "distinct-l-diversity", "l": 3},
    {"model": "entropy-l-diversity", "l": 1.5},
    {"model": "recursive-l-diversity", "c": 3.0, "l": 2},
    {"model": "t-closeness", "t": 0.3},
    {"model": "basic-beta-likeness", "beta": 2.0},
    {"model": "enhanced-beta-likeness", "beta": 2.0},
    {"model": "delta-disclosure", "delta": 1.5},
    {"model": "maximum-risk", "max": 0.3},
    {"model": "average-risk", "max": 0.2},
    {"model": "sample-uniqueness", "max": 0.1},
    {"model": "population-uniqueness", "max": 0.1, "population": "people.parquet"},
    {"model": "limited-gain", "gain": 0.9},
    {"model": "k-e-anonymity", "column": "score", "k": 2, "e": 0.1},
]


def with_its_column(model: dict, quasi: dict) -> dict:
    """The quasi-identifiers, and the sensitive column that a model is about."""
    return quasi | {name: {"role": "sensitive"} for name in (model.get("column"),) if name}


LIMITS = [
    {"model": "singling-out-risk", "max": 0.95},
    {"model": "linkage-risk", "max": 0.5},
    {"model": "inference-risk", "max": 0.9},
    {"model": "downcoding-risk", "max": 0.9},
    {"model": "predicate-risk", "max": 0.9},
]


def names(union: Any) -> set[str]:
    return {model.model_fields["model"].default for model in get_args(get_args(union)[0])}


def test_no_requirement_is_left_out() -> None:
    assert [{model["model"] for model in of} for of in (MODELS, LIMITS)] == [names(Requirement), names(Limit)]


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a population: everybody twice, and some who are not in the table."""
    folder = tmp_path_factory.mktemp("people")
    pq.write_table(pa.concat_tables([nasty(), nasty(), nasty(200)]).select(list(MIXED)), folder / "people.parquet")
    return folder


@pytest.mark.parametrize(
    ("bench", "model"),
    by_engine([model["model"] for model in MODELS], KINDS_OF_COUNTING, ("k-anonymity", "k-map")),
    indirect=["bench"],
)
def test_every_requirement(bench: Bench, model: str, people: Path) -> None:
    (asked,) = (given for given in MODELS if given["model"] == model)
    same(bench, policy("optimal", with_its_column(asked, MIXED), (asked,), people, max_suppression=0.3))


def alike(one: Any, other: Any) -> bool:
    """Whether two frequency tables, or what they are made of, say the same."""
    if isinstance(one, np.ndarray):
        return bool(np.array_equal(one, other))
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(alike(one[key], other[key]) for key in one)
    if is_dataclass(one):
        return all(alike(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    return bool(one == other)


@pytest.mark.long
@pytest.mark.parametrize("algorithm", KINDS_OF_RECODING)  # every algorithm is above
def test_every_kind_of_recoding_with_every_requirement(
    duck: Bench, algorithm: str, people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Searched once: where the engine counts the same table, the search that is asked again has the same answer."""
    search, n = SEARCHES[algorithm], 60
    table = loaded(duck, n)
    answers: list[tuple[FrequencyTable, Recoding]] = []
    quasi = {name: MIXED[name] for name in ("weight", "birth")}

    def first(problem: Problem) -> Recoding:
        answers.append((problem.table, search(problem)))
        return answers[-1][1]

    def again(problem: Problem) -> Recoding:
        counted, answer = answers[-1]
        assert alike(problem.table, counted)
        return answer

    refused = []
    for model in MODELS:
        columns = with_its_column(model, quasi)
        asked = policy(algorithm, columns, (model,), people, max_suppression=0.9 if "records" in algorithm else 0.3)
        monkeypatch.setitem(SEARCHES, algorithm, first)
        try:
            local = shoal.anonymize(nasty(n), asked)
        except (PolicyError, InfeasibleError):
            refused.append(model["model"])
            continue
        monkeypatch.setitem(SEARCHES, algorithm, again)
        release = shoal.anonymize(table, asked)
        assert rows_of(release.table.to_pyarrow()) == rows_of(local.rows.table), model
        assert release.verdicts.same(local.verdicts), model
        assert release.suppressed == local.suppressed, model
    assert len(answers) == len(MODELS) - len(refused) >= 2


@pytest.mark.parametrize(
    ("bench", "limit"), by_engine([limit["model"] for limit in LIMITS], ("linkage-risk",)), indirect=["bench"]
)
def test_every_limit(bench: Bench, limit: str) -> None:
    (wanted,) = (given for given in LIMITS if given["model"] == limit)
    asked = policy("optimal", MIXED, (*ASKED, wanted), max_suppression=0.3)
    release = same(bench, asked)
    local = released_here(asked.to_toml(), asked.folder, len(nasty()))
    (measured,) = asked.limits
    assert measured.value(release.attacks) == pytest.approx(measured.value(local.attacks))


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


def test_no_nan_passes_for_a_number_in_a_file_without_nulls(tmp_path) -> None:
    nan, inf = float("nan"), float("inf")
    table = pa.table({"weight": [0.0, 70.5, nan, -0.0] * 5, "score": [1.0, nan] * 10, "dose": [inf, nan, -inf, 1] * 5})
    pq.write_table(table, tmp_path / "people.parquet")
    asked = shoal.Policy.of(
        {
            "columns": {"weight": {"role": "quasi"}, "score": {"role": "plain"}, "dose": {"role": "plain"}},
            "require": [{"model": "k-anonymity", "k": 5}],
        }
    )
    shoal.anonymize(tmp_path / "people.parquet", asked).save(tmp_path / "local.parquet")
    release = shoal.anonymize(connect.from_files(tmp_path / "people.parquet"), asked)
    release.save(tmp_path / "engine.parquet")
    assert (tmp_path / "engine.parquet").read_bytes() == (tmp_path / "local.parquet").read_bytes()
    written = pq.read_table(tmp_path / "engine.parquet")
    assert [written[name].null_count for name in table.column_names] == [5, 10, 5]
