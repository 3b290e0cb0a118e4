"""If these fail, rows in memory are counted or recoded wrongly."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.engines.local import LocalEngine
from shoal.errors import DataError, HierarchyError, MissingValueError, PolicyError, UncoveredValueError
from shoal.policy import Policy
from shoal.recoding import FullDomain

SECRET = "Wilhelmina-Secret"  # stands for a cell: no message may ever contain it

PEOPLE = pa.table({
    "name": ["Ada", "Bo", "Cy", "Di", "Ed", "Flo"],
    "age": ["21", "22", "34", "36", "21", None],
    "zip": ["02138", "02139", "02138", "02141", "02138", "02139"],
    "disease": ["flu", "flu", "hiv", "flu", "hiv", "flu"],
    "ward": ["1", "2", "3", "4", "5", "6"],
})  # fmt: skip


def policy(require: list[dict[str, Any]] | None = None, **release: Any) -> Policy:
    return Policy.of({
        "columns": {
            "name": {"role": "identifier"},
            "age": {"role": "quasi", "hierarchy": {"intervals": [10]}},
            "zip": {"role": "quasi", "hierarchy": {"mask": "right"}},
            "disease": {"role": "sensitive"},
            "ward": {"role": "plain"},
        },
        "require": require or [{"model": "k-anonymity", "k": 1}],
        "release": release,
    })  # fmt: skip


def recoded(asked: Policy, node: tuple[int, ...], suppressed: list[list[int]] | None = None) -> pa.Table:
    """The rows after climbing to ``node``."""
    engine = LocalEngine.of(PEOPLE)
    counted = engine.count(asked)
    gone = np.array(suppressed or np.empty((0, len(node))), np.int32)
    recoding = FullDomain(
        hierarchies=counted.table.hierarchies, node=node, suppressed=gone, algorithm="by hand", proved=False
    )
    return engine.apply(counted, recoding, asked).table


def rows(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


# ── count ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_rows_are_counted_into_classes() -> None:
    table = LocalEngine.of(PEOPLE).count(policy()).table
    assert table.columns == ("age", "zip")
    leaves = [h.leaves for h in table.hierarchies]
    found = {
        tuple(leaf[code] for leaf, code in zip(leaves, codes, strict=True)): n
        for codes, n in zip(table.codes, table.counts.tolist(), strict=True)
    }
    ages, zips = (PEOPLE[name].to_pylist() for name in ("age", "zip"))
    assert found == Counter(zip(ages, zips, strict=True))
    assert table.n_records == 6
    disease = table.sensitive["disease"]
    assert disease.domain is not None
    assert disease.domain.texts == ("flu", "hiv")
    assert disease.domain.whole.tolist() == [4, 2]


def test_nothing_depends_on_the_order_of_the_rows() -> None:
    one = LocalEngine.of(PEOPLE).count(policy()).table
    other = LocalEngine.of(PEOPLE.take([5, 2, 0, 4, 3, 1])).count(policy()).table
    assert one.codes.tolist() == other.codes.tolist()
    assert one.counts.tolist() == other.counts.tolist()
    for name in ("starts", "values", "counts"):
        mine, theirs = (getattr(table.sensitive["disease"], name).tolist() for table in (one, other))
        assert mine == theirs


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (PEOPLE.append_column("ssn", PEOPLE["name"]), "column 'ssn' of the table is not in the policy"),
        (PEOPLE.drop_columns(["zip"]), "column 'zip' of the policy is not in the table"),
        (PEOPLE.drop_columns(["zip", "ward"]), "columns 'zip', 'ward' of the policy are not in the table"),
        (PEOPLE.drop_columns(["name"]), "column 'name' of the policy is not in the table"),
    ],
)
def test_policy_and_table_must_have_the_same_columns(table: pa.Table, words: str) -> None:
    with pytest.raises(PolicyError, match=words):
        LocalEngine.of(table).count(policy())


def test_the_hint_tells_a_typing_error_from_a_separator() -> None:
    misspelt = PEOPLE.rename_columns(["zipp" if name == "zip" else name for name in PEOPLE.column_names])
    with pytest.raises(PolicyError, match=r"column 'zipp' of the table.*\nHint: the policy has column 'zip' instead"):
        LocalEngine.of(misspelt).count(policy())
    with pytest.raises(PolicyError, match="was not recognized, name it"):
        LocalEngine.of(pa.table({"name:age:zip": ["a:1:2"]})).count(policy())
    with pytest.raises(PolicyError, match="Hint: give each a role"):
        LocalEngine.of(PEOPLE.append_column("ssn", PEOPLE["name"])).count(policy())


def test_nulls_may_be_forbidden() -> None:
    with pytest.raises(MissingValueError, match=r"column 'age': 1 of 6 values are missing"):
        LocalEngine.of(PEOPLE).count(policy(nulls="forbid"))
    # A null that is not looked at does not matter.
    ward = PEOPLE.filter(pa.array([True] * 5 + [False])).set_column(4, "ward", pa.array([None] * 5, pa.string()))
    assert LocalEngine.of(ward).count(policy(nulls="forbid")).table.n_records == 5


def test_everybody_must_say_who_they_are() -> None:
    nameless = PEOPLE.set_column(0, "name", pa.array(["Ada", None, "Ada", "", None, "Ed"]))
    with pytest.raises(MissingValueError, match=r"column 'name': 2 of 6 records have no value"):
        LocalEngine.of(nameless).count(policy(entity="name"))
    assert sorted(LocalEngine.of(PEOPLE).count(policy(entity="name")).table.persons.tolist()) == [1, 1, 1, 1, 2]


def test_values_without_a_place_are_counted_and_not_quoted() -> None:
    table = PEOPLE.set_column(1, "age", pa.array(["21", SECRET, "34", SECRET + "2", "21", None]))
    with pytest.raises(UncoveredValueError, match=r"column 'age': 2 of 4 distinct values") as caught:
        LocalEngine.of(table).count(policy())
    assert SECRET not in str(caught.value)


def test_a_hierarchy_file_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "age.csv"
    asked = Policy.of(
        {"columns": {"age": {"role": "quasi", "hierarchy": "age.csv"}}, "require": [{"model": "k-anonymity", "k": 1}]},
        folder=tmp_path,
    )
    engine = LocalEngine.of(pa.table({"age": ["21"]}))
    for content, words in (("21;20s;*\n32;30s;+\n", "C2"), ("21;20s;*\n21;30s;*\n", "C1"), ("", "empty")):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(HierarchyError, match=words):
            engine.count(asked)
    path.unlink()
    with pytest.raises(HierarchyError, match=r"age\.csv.*does not exist"):
        engine.count(asked)


@pytest.mark.parametrize("other", ["AGE", "Age"])
def test_names_that_differ_only_in_case_are_refused(other: str) -> None:
    with pytest.raises(DataError, match=f"columns 'age' and '{other}' differ only in case"):
        LocalEngine.of(pa.table({"age": ["1"], other: ["2"]}))


def test_a_name_with_a_nul_is_refused() -> None:
    with pytest.raises(DataError, match="1 column names contain a NUL"):
        LocalEngine.of(pa.table({"a\0b": ["1"]}))


# ── apply ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_identifiers_go_and_the_rest_stays_in_its_place() -> None:
    released = recoded(policy(), (0, 0))
    assert released.column_names == ["age", "zip", "disease", "ward"]
    assert rows(released) == rows(PEOPLE.drop_columns(["name"]))


def test_levels() -> None:
    released = recoded(policy(shuffle=False), (1, 2))
    assert released["age"].to_pylist() == ["20-29", "20-29", "30-39", "30-39", "20-29", None]
    assert released["zip"].to_pylist() == ["021**"] * 6
    assert released["disease"].to_pylist() == PEOPLE["disease"].to_pylist()
    top = recoded(policy(shuffle=False), (2, 5))
    assert set(top["age"].to_pylist()) == {"*"}  # the null too
    assert set(top["zip"].to_pylist()) == {"*"}


def suppressed_at(asked: Policy) -> pa.Table:
    """Everybody from 02138 in their twenties is suppressed: Ada and Ed."""
    twenties, zip_02138 = 0, 0
    table = LocalEngine.of(PEOPLE).count(asked).table
    assert table.hierarchies[0].labels[1][twenties] == "20-29"
    assert table.hierarchies[1].labels[0][zip_02138] == "02138"
    return recoded(asked, (1, 0), [[twenties, zip_02138]])


def test_suppressed_records_are_dropped() -> None:
    released = suppressed_at(policy(shuffle=False))
    assert released["ward"].to_pylist() == ["2", "3", "4", "6"]
    assert "*" not in released["age"].to_pylist()


def test_suppressed_records_are_kept_as_stars() -> None:
    released = suppressed_at(policy(shuffle=False, suppressed="keep"))
    assert released["age"].to_pylist() == ["*", "20-29", "30-39", "30-39", "*", None]
    assert released["zip"].to_pylist() == ["*", "02139", "02138", "02141", "*", "02139"]
    assert released["ward"].to_pylist() == PEOPLE["ward"].to_pylist()
    assert released["disease"].to_pylist() == PEOPLE["disease"].to_pylist()


def test_what_is_not_generalized_keeps_its_type() -> None:
    kinds: dict[str, tuple[list[Any], pa.DataType]] = {
        "int": ([3, 3, None], pa.int16()),
        "float": ([0.5, 0.5, None], pa.float64()),
        "bool": ([True, True, None], pa.bool_()),
        "date": ([dt.date(2020, 1, 2)] * 2 + [None], pa.date32()),
        "time": ([dt.datetime(2020, 1, 2)] * 2 + [None], pa.timestamp("us", "Europe/Berlin")),
        "money": ([Decimal("1.50")] * 2 + [None], pa.decimal128(5, 2)),
        "text": (["", "", None], pa.string()),
    }
    data = pa.table({name: pa.array(values, kind) for name, (values, kind) in kinds.items()})
    asked = Policy.of({
        "columns": {name: {"role": "quasi"} for name in kinds},
        "require": [{"model": "k-anonymity", "k": 1}],
        "release": {"shuffle": False},
    })  # fmt: skip
    assert shoal.anonymize(data, asked).table.equals(data)


def test_one_column_at_its_ground_and_one_above() -> None:
    data = pa.table({"n": [1, 2, 1, 2], "m": [10, 10, 20, 20]})
    asked = Policy.of({
        "columns": {"n": {"role": "quasi"}, "m": {"role": "quasi"}},
        "require": [{"model": "k-anonymity", "k": 2}],
        "release": {"shuffle": False, "objective": "height"},
    })  # fmt: skip
    released = shoal.anonymize(data, asked).table
    types = {str(kind) for kind in released.schema.types}
    assert types == {"int64", "string"}


def test_top_coding_holds_at_the_ground_too() -> None:
    data = pa.table({"age": [30, 91, 95]})
    asked = Policy.of({
        "columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [10], "top": 90}}},
        "require": [{"model": "k-anonymity", "k": 1}],
        "release": {"shuffle": False},
    })  # fmt: skip
    release = shoal.anonymize(data, asked)
    assert release.levels == {"age": 0}
    assert release.table["age"].to_pylist() == ["30", ">=90", ">=90"]


@pytest.mark.parametrize("other", [SECRET, SECRET + "2"])
def test_uncovered_values_go_to_the_top_where_the_policy_says_so(other: str) -> None:
    data = pa.table({"job": ["nurse", "nurse", SECRET, other]})
    tree = {"tree": {"*": {"care": ["nurse", "physician"]}}}
    asked = Policy.of({
        "columns": {"job": {"role": "quasi", "hierarchy": tree, "uncovered": "suppress"}},
        "require": [{"model": "k-anonymity", "k": 2}],
        "release": {"shuffle": False},
    })  # fmt: skip
    assert shoal.anonymize(data, asked).table["job"].to_pylist() == ["nurse", "nurse", "*", "*"]


# ── the order of the rows ───────────────────────────────────────────────────────────────────────────────────


def test_rows_keep_their_order_where_they_may() -> None:
    assert recoded(policy(shuffle=False), (0, 0))["ward"].to_pylist() == PEOPLE["ward"].to_pylist()


def test_the_order_comes_from_the_rows_and_the_seed() -> None:
    once = recoded(policy(), (0, 0))
    assert once.equals(recoded(policy(), (0, 0)))
    orders = {tuple(recoded(policy(seed=seed), (0, 0))["ward"].to_pylist()) for seed in range(8)}
    assert len(orders) > 4
    assert {frozenset(order) for order in orders} == {frozenset(PEOPLE["ward"].to_pylist())}


@pytest.mark.parametrize("order", [[5, 4, 3, 2, 1, 0], [1, 0, 3, 2, 5, 4], [2, 5, 0, 4, 1, 3]])
def test_where_a_row_stood_does_not_show(order: list[int]) -> None:
    asked = policy([{"model": "k-anonymity", "k": 2}], max_suppression=0.2)
    expected = shoal.anonymize(PEOPLE, asked).table
    assert shoal.anonymize(PEOPLE.take(order), asked).table.equals(expected)


def test_a_name_does_not_show_in_the_order() -> None:
    others = PEOPLE.set_column(0, "name", pa.array(list("zyxwvu")))
    asked = policy()
    assert shoal.anonymize(others, asked).table.equals(shoal.anonymize(PEOPLE, asked).table)


@pytest.mark.parametrize(
    "name", ["place", "PLACE", "Place_", "rows", "person", "Person", 'a"b', "two\nlines", "é", "*"]
)
@pytest.mark.parametrize("entity", [None, "who"])
def test_a_column_may_have_any_name(name: str, entity: str | None) -> None:
    values = ["a"] * 3 + ["b"] * 3
    data = pa.table({name: values, "s": list("xyzxyz"), "who": ["1", "2", "2", "3", "4", "4"]})
    columns = {name: {"role": "quasi"}, "s": {"role": "sensitive"}, "who": {"role": "identifier"}}
    asked = Policy.of({
        "columns": columns,
        "require": [{"model": "k-anonymity", "k": 2}, {"model": "distinct-l-diversity", "l": 3}],
        "release": {"entity": entity},
    })  # fmt: skip
    release = shoal.anonymize(data, asked)
    assert release.levels == {name: 0}
    assert release.measured["k"] == (3 if entity is None else 2)
    assert rows(release.table) == rows(data.drop_columns(["who"]))
    at_fault = Policy.of({**asked.model_dump(mode="json"), "require": [{"model": "k-anonymity", "k": 3}]})
    assert shoal.anonymize(data, at_fault).levels == {name: 0 if entity is None else 1}


# ── sources ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_path_has_a_fingerprint_a_dialect_and_notes(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes("name;town\nAda;Zürich\n".encode("cp1252"))
    engine = LocalEngine.of(path)
    assert engine.source == path
    assert engine.dialect is not None
    assert engine.dialect.separator == ";"
    assert "Windows-1252" in engine.notes[0]
    assert LocalEngine.of(str(path)).fingerprint == engine.fingerprint
    assert engine.table["town"].to_pylist() == ["Zürich"]
    assert LocalEngine.of(path, separator=",", encoding="latin-1").table.num_columns == 1


def test_a_frame_has_a_fingerprint_of_its_values() -> None:
    engine = LocalEngine.of(PEOPLE)
    assert engine.source is None
    assert engine.fingerprint == LocalEngine.of(PEOPLE.to_pandas()).fingerprint
    assert engine.fingerprint != LocalEngine.of(PEOPLE.slice(1)).fingerprint
