"""What nobody should pass and somebody will: each ends in an error of ours, with a hint, and never in another one."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal import utility
from shoal.engines import connect
from shoal.errors import DataError, HierarchyError, OtherTableError, OutputError, PolicyError
from shoal.policy import Policy
from shoal.recoding import Cells, Parts
from shoal.release import replay as replay_module
from shoal.release.replay import replay
from shoal.tables.frequency import FrequencyTable
from shoal.text.jsonable import DEEPEST, nested_deeper, read_json

TABLE = pa.table(
    {"age": ["21", "24", "38", "33"], "zip": ["02138", "02138", "02139", "02139"], "ill": ["a", "b", "a", "c"]}
)
FIELDS: dict[str, Any] = {
    "columns": {
        "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}},
        "zip": {"role": "quasi", "hierarchy": {"mask": "right"}},
        "ill": {"role": "sensitive"},
    },
    "require": [{"model": "k-anonymity", "k": 2}],
}


def changed(value: Any, *place: str | int) -> dict[str, Any]:
    """The fields of the policy with another value at a place."""
    fields = copy.deepcopy(FIELDS)
    inner: Any = fields
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    return fields


def nested(depth: int) -> Any:
    value: Any = "a"
    for _ in range(depth):
        value = [value]
    return value


# ── policies ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = " + "[" * 3000 + "]" * 3000, "too many nested brackets"),
        ("x = " + "{a=" * 3000 + "1" + "}" * 3000, "too many nested brackets"),
        (".".join(["a"] * 500) + " = 1", f"nested more than {DEEPEST} levels deep"),
        ("k = " + "9" * 5000, "a number has too many digits"),
        ("tree = { Wilhelmina = 1, Wilhelmina = 2 }", "not valid TOML"),
        ("[columns]\n[columns]", "not valid TOML"),
        ("x = 'open", "not valid TOML"),
    ],
)
def test_toml_that_no_policy_has(text: str, told: str) -> None:
    with pytest.raises(PolicyError, match=told) as raised:
        Policy.parse(text)
    assert "Wilhelmina" not in str(raised.value)


def test_a_tree_of_brackets_is_refused() -> None:
    with pytest.raises(PolicyError, match=f"nested more than {DEEPEST} levels deep"):
        Policy.of(changed({"tree": nested(3000)}, "columns", "age", "hierarchy"))
    round_and_round: list[Any] = []
    round_and_round.append(round_and_round)
    with pytest.raises(PolicyError, match="nested more than"):
        Policy.of(changed({"tree": round_and_round}, "columns", "age", "hierarchy"))


def test_what_may_be_nested_can_be_used() -> None:
    policy = Policy.of(changed({"tree": {"*": nested(DEEPEST - 6)}}, "columns", "ill", "hierarchy"))
    assert Policy.parse(policy.to_toml()) == policy
    assert hash(policy) == hash(Policy.parse(policy.to_toml()))


def test_depth_is_counted_without_recursion() -> None:
    assert not nested_deeper("a", 0)
    assert not nested_deeper(nested(5), 5)
    assert nested_deeper(nested(6), 5)
    assert nested_deeper({"a": ({"b": [[]]},)}, 4)
    assert not nested_deeper({"a": ({"b": [[]]},)}, 5)
    twice: Any = "a"
    for _ in range(200):
        twice = [twice, twice]  # 2²⁰⁰ paths
    assert nested_deeper(twice, 199)
    assert not nested_deeper(twice, 200)
    with pytest.raises(ValueError, match="too deep"):
        read_json("[" * 500 + "]" * 500)
    with pytest.raises(ValueError, match="too deep"):
        read_json("[" * 500_000)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("require", 0, "k"), 10**400),
        (("columns", "age", "weight"), 10**400),
        (("columns", "age", "weight"), 1e308),
        (("columns", "age", "min_level"), 10**400),
        (("columns", "age", "hierarchy"), {"intervals": [10**5000]}),
        (("columns", "age", "hierarchy"), {"intervals": [float("inf")]}),
        (("columns", "age", "hierarchy"), {"intervals": [10**400]}),
    ],
)
def test_numbers_beyond_all_bounds(place: tuple[str | int, ...], value: Any) -> None:
    with pytest.raises(shoal.ShoalError):
        shoal.anonymize(TABLE, changed(value, *place))


def test_a_seed_has_at_most_a_hundred_digits() -> None:
    release = shoal.anonymize(TABLE, {**FIELDS, "release": {"seed": 10**100 - 1}})
    assert shoal.verify_certificate(release.certificate, release.table).holds
    with pytest.raises(PolicyError, match=r"release\.seed: Input should be less than"):
        shoal.anonymize(TABLE, {**FIELDS, "release": {"seed": 10**100}})


@pytest.mark.parametrize("length", [2, 3])
def test_columns_that_wait_for_one_another_are_refused(length: int) -> None:
    fields = copy.deepcopy(FIELDS)
    fields["columns"]["ill"]["role"] = "quasi"
    names = ["age", "zip", "ill"][:length]
    for name, after in zip(names, [*names[1:], names[0]], strict=True):
        fields["columns"][name]["after"] = after
    with pytest.raises(PolicyError, match=r"columns\.age\.after: forms a cycle: 'age' → 'zip' → "):
        Policy.of(fields)
    del fields["columns"][names[-1]]["after"]
    assert Policy.of(fields).columns["age"].after == "zip"


def test_equal_policies_hash_alike_and_others_are_not_equal() -> None:
    policy = Policy.of(FIELDS)
    turned = Policy.of({**FIELDS, "columns": dict(reversed(FIELDS["columns"].items()))})
    assert policy == turned
    assert len({policy, turned, Policy.parse(policy.to_toml())}) == 1
    trees = [
        Policy.of(changed({"tree": {"*": [value, "b"]}}, "columns", "ill", "hierarchy"))
        for value in (1, 1.0, True, "1.0", "true")
    ]
    # As texts they are 1, 1.0, true: the same tree may be written in two ways, but never are two trees one.
    assert len(set(trees)) == 5
    assert Policy.of(changed(2.0, "columns", "age", "weight")) == Policy.of(changed(2, "columns", "age", "weight"))


RUNS: dict[str, Callable[[Any], Any]] = {
    "anonymize": lambda policy: shoal.anonymize(TABLE, policy),
    "check": lambda policy: shoal.check(TABLE, policy),
    "frontier": lambda policy: shoal.frontier(TABLE, policy, k=[2]),
    "explore": lambda policy: shoal.explore(TABLE, policy, swept={"k": [2]}),
    "compare": lambda policy: shoal.compare(TABLE, policy, algorithms=["optimal"]),
    "k_minimal": lambda policy: shoal.k_minimal(TABLE, policy),
    "attack": lambda policy: shoal.attack(TABLE, policy=policy),
    "beside": lambda policy: shoal.compare_with_original(TABLE, TABLE, policy),
    "utility": lambda policy: utility.utility(TABLE, TABLE, policy, queries=10),
    "query_error": lambda policy: utility.query_error(TABLE, TABLE, policy, queries=10),
    "statistics_kept": lambda policy: utility.statistics_kept(TABLE, TABLE, policy),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_policy_is_given_as_a_path_or_plain_values_everywhere(name: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    Policy.of(FIELDS).save(path)
    for given in (Policy.of(FIELDS), path, str(path), FIELDS):
        assert RUNS[name](given) is not None
    with pytest.raises(
        PolicyError, match=r"cannot be read \(No such file or directory\)\nHint: shoal.inspect proposes one"
    ):
        RUNS[name](str(tmp_path / "other.toml"))
    with pytest.raises(PolicyError, match=r"must be a shoal\.Policy, the path of a TOML file or a dict, not int"):
        RUNS[name](5)
    with pytest.raises(PolicyError, match="dict with string keys"):
        RUNS[name]({1: 2})


@pytest.mark.parametrize(
    "values", [[10**400], [float("inf")], [float("nan")], ["x"], [None], [[1], [2, 3]], "k", 5, [2.5], [-1]]
)
@pytest.mark.parametrize("name", ["k", "max_suppression"])
def test_a_sweep_over_no_numbers(name: str, values: Any) -> None:
    with pytest.raises(PolicyError):
        shoal.frontier(TABLE, FIELDS, **{name: values})


# ── paths ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["a\0b.csv", "a\ud800b.csv", "a" * 5000 + ".csv"])
def test_names_that_no_file_can_have(name: str) -> None:
    release = shoal.anonymize(TABLE, FIELDS)
    for run, error in (
        (lambda: Policy.load(name), PolicyError),
        (lambda: shoal.anonymize(name, FIELDS), DataError),
        (lambda: shoal.anonymize(TABLE, changed(name, "columns", "age", "hierarchy")), shoal.ShoalError),
        (lambda: shoal.verify_certificate(name, TABLE), DataError),
        (lambda: replay(name, TABLE), DataError),
        (lambda: release.save(name), OutputError),
        (lambda: release.report(name), OutputError),
        (lambda: Policy.of(FIELDS).save(name), OutputError),
    ):
        with pytest.raises(error):
            run()
    population = changed([{"model": "k-map", "k": 2, "population": name}], "require")
    with pytest.raises(DataError):
        shoal.anonymize(TABLE, population)


def test_folders_in_place_of_files(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="Is a directory"):
        Policy.load(tmp_path)
    with pytest.raises(DataError, match="is a directory"):
        shoal.anonymize(tmp_path, FIELDS)
    with pytest.raises(DataError, match="cannot be read"):
        shoal.verify_certificate(tmp_path, TABLE)
    with pytest.raises(DataError, match="cannot be read"):
        replay(tmp_path, TABLE)
    with pytest.raises(shoal.ShoalError, match="cannot be read"):
        shoal.anonymize(TABLE, changed(str(tmp_path), "columns", "age", "hierarchy"))
    with pytest.raises(OutputError, match="cannot be written"):
        Policy.of(FIELDS).save(tmp_path)


# ── certificates and recodings ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("text", ["[" * 3000 + "]" * 3000, '{"a":' * 100_000, '{"schema": ' + "9" * 5000 + "}", ""])
def test_json_that_no_certificate_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match="is not JSON"):
        shoal.verify_certificate(path, TABLE)
    with pytest.raises(DataError, match="is not a recoding"):
        replay(path, TABLE)
    with pytest.raises(DataError, match="nested more than"):
        shoal.verify_certificate({"policy": nested(3000)}, TABLE)


def claim(*place: str | int, value: Any) -> tuple[dict[str, Any], pa.Table]:
    release = shoal.anonymize(TABLE, FIELDS)
    claims = json.loads(json.dumps(release.certificate))
    inner = claims
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    return claims, release.table


@pytest.mark.parametrize("value", ["inf", "-inf", "nan", "l"])
def test_a_figure_is_a_name_and_no_number(value: str) -> None:
    claims, table = claim("requirements", 0, "figure", value=value)
    assert not shoal.verify_certificate(claims, table).holds


@pytest.mark.parametrize("place", [("input", "records"), ("output", "suppressed"), ("requirements", 0, "classes")])
def test_counts_beyond_all_that_is_counted_are_no_certificate(place: tuple[str | int, ...]) -> None:
    claims, table = claim(*place, value=10**400)
    with pytest.raises(DataError, match=r"does not match the schema .* \(maximum\)"):
        shoal.verify_certificate(claims, table)


def test_figures_beyond_all_that_is_counted_do_not_hold() -> None:
    claims, table = claim("measured", "k", value=10**400)
    assert not shoal.verify_certificate(claims, table).holds


RECODING: dict[str, Any] = replay_module.described(shoal.anonymize(TABLE, FIELDS))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("policy",), None),
        (("policy", "columns"), 5),
        (("columns",), None),
        (("columns", "age"), None),
        (("columns", "age", "level"), -1),
        (("columns", "age", "level"), True),
        (("columns", "age", "values"), [["21"]]),
        (("columns", "age", "values"), [["21", ["20-29"]]]),
        (("suppressed",), [["20-29"]]),
        (("suppressed",), 3),
        (("tuples",), [[["21"], ["20-29"]]]),
        (("tuples",), {"21": "20-29"}),
    ],
)
def test_a_recoding_that_was_changed(place: tuple[str, ...], value: Any) -> None:
    kept = json.loads(json.dumps(RECODING))
    assert replay(kept, TABLE).held_back == 0
    inner = kept
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    with pytest.raises(DataError, match="the recoding "):
        replay(kept, TABLE)


def test_a_table_without_a_header_is_not_shown() -> None:
    headless = pa.table({"Wilhelmina": ["a"], "21": ["b"]})
    with pytest.raises(PolicyError, match="none of the 2 columns of the table is in the policy") as raised:
        shoal.check(headless, FIELDS)
    assert "Wilhelmina" not in str(raised.value)
    twice = pa.Table.from_arrays([pa.array(["a"])] * 2, ["Wilhelmina", "Wilhelmina"])
    with pytest.raises(DataError, match=r"more than once \(columns 1, 2\)") as again:
        shoal.check(twice, FIELDS)
    assert "Wilhelmina" not in str(again.value)


def test_a_tree_has_no_numbers_that_are_none() -> None:
    for value in (float("nan"), float("inf")):
        with pytest.raises(PolicyError, match="must be made of groups"):
            Policy.of(changed({"tree": {"*": [value]}}, "columns", "age", "hierarchy"))


def test_levels_are_counted_before_a_search_prepares_for_them(tmp_path: Path) -> None:
    lines = [";".join([age, *(f"{level}" for level in range(2998)), "*"]) for age in TABLE["age"].to_pylist()]
    path = tmp_path / "deep.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    fields = changed(str(path), "columns", "age", "hierarchy") | {"release": {"time_budget": 2}}
    with pytest.raises(HierarchyError, match="column 'age': its hierarchy has 3000 levels; at most 256 are allowed"):
        shoal.anonymize(TABLE, fields)
    path.write_text("\n".join(";".join([*line.split(";")[:255], "*"]) for line in lines), encoding="utf-8")
    assert shoal.anonymize(TABLE, fields).classes


def test_a_uri_with_brackets_is_no_address_of_ipv6(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def session(uri: str) -> None:
        asked.append(uri)
        raise InterruptedError

    monkeypatch.setattr("shoal.engines.backends.spark.backend.session", session)
    for uri in ("spark://local[2]", "spark://local[*]", "spark://local["):
        with pytest.raises((DataError, InterruptedError)):
            connect.connected(uri, parquet="people")
        assert asked[-1] == uri
    with pytest.raises(DataError, match="could not be reached"):
        connect.connected("postgresql://[x", table="t")


# ── from Python ─────────────────────────────────────────────────────────────────────────────────────────────


def test_parts_of_another_table_are_refused_before_the_loop_runs() -> None:
    def searched(n: int) -> FrequencyTable:
        return FrequencyTable(("a",), np.arange(n, dtype=np.int32)[:, None], np.ones(n, np.int64))

    def cells(rows: list[int]) -> Cells:
        n = len(rows)
        codes = np.zeros((n, 1), np.int32)
        became = Parts(np.array(rows, np.int64), codes, np.ones(n, np.int64), np.zeros(n, np.bool_))
        return Cells(hierarchies=(), algorithm="x", proved=False, values=(), became=became)

    assert cells([0, 1, 2]).parts(searched(3)).n_suppressed == 0
    for rows in ([0, 1, 10**6], [-1, 0, 1], [-(10**6), 1, 2], []):
        with pytest.raises(OtherTableError, match="made for another table"):
            cells(rows).parts(searched(3))
    with pytest.raises(OtherTableError, match="made for another table"):
        cells([0, 1, 2]).parts(searched(2))


def test_a_folder_that_goes_while_it_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(folder: Path, onerror: Callable[[OSError], None]) -> list[Any]:
        onerror(FileNotFoundError(2, "No such file or directory"))
        return []

    monkeypatch.setattr(os, "walk", gone)
    with pytest.raises(DataError, match=r"its files cannot be listed \(No such file or directory\)"):
        connect.from_files(tmp_path)
