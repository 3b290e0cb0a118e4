"""Every finding on every engine: the list in memory is the oracle, and no list tells a value."""

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from benches import Bench
from examples import examples
from shoal.findings import KINDS
from shoal.policy import Policy
from shoal.release.replay import described, replay

N = 240
DRAW = random.Random(29)
AGE = [DRAW.randrange(20, 80) for _ in range(N)]
DISEASE = [DRAW.choice(["flu", "gout", "asthma", "angina"]) for _ in range(N)]
BASE: dict[str, Any] = {"age": AGE, "town": [DRAW.choice(["Ulm", "Bonn"]) for _ in range(N)], "disease": DISEASE}
ROLES: dict[str, Any] = {
    "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}},
    "town": {"role": "quasi"},
    "disease": {"role": "sensitive"},
}
K3, DIVERSE = {"model": "k-anonymity", "k": 3}, {"model": "distinct-l-diversity", "l": 2}

# Per kind the columns that bring it about, their roles, what is required, and how the release is made.
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]], dict[str, Any]]] = {
    "reading": ({}, {}, [K3, DIVERSE], {"shuffle": False}),
    "identifying-values": ({"x": [f"p{i % 60}@example.org" for i in range(N)]}, {"x": "plain"}, [K3, DIVERSE], {}),
    "singled-out": ({"ward": [i % 20 for i in range(N)]}, {"ward": "plain"}, [K3, DIVERSE], {}),
    "attack-succeeds": ({"disease": AGE}, {}, [K3, {"model": "inference-risk", "max": 1.0}], {}),
    "guessed-values": (
        {
            "age": [20 + i // 10 for i in range(N)],
            "town": ["Ulm"] * N,
            "disease": [["flu", "gout", "asthma", "angina"][(i // 10 + max(0, i % 10 - 6)) % 4] for i in range(N)],
        },
        {},
        [K3, DIVERSE],
        {},
    ),
    "labels-give-back": (
        {},
        {"age": ROLES["age"] | {"cells": "tight-range"}},
        [K3, DIVERSE],
        {"algorithm": "mondrian"},
    ),
    "unique-sensitive": ({"wage": [1000.5 + i for i in range(N)]}, {"wage": "sensitive"}, [K3, DIVERSE], {}),
    "answers-single-out": (
        {f"a{i}": [DRAW.randrange(4) for _ in range(N)] for i in range(10)},
        {f"a{i}": "sensitive" for i in range(10)},
        [K3],
        {},
    ),
    "persons-spelled": (
        {"person": [f"{i // 2}" if i % 2 else f"0{i // 2}" for i in range(N)]},
        {"person": "identifier"},
        [K3, DIVERSE],
        {"entity": "person"},
    ),
    "two-digit-years": (
        {"born": [f"{1 + i % 28:02}/06/{(30 + i) % 100:02}" for i in range(N)]},
        {"born": {"role": "quasi", "hierarchy": {"dates": ["year", "decade"], "format": "%d/%m/%y", "pivot": 30}}},
        [K3, DIVERSE],
        {},
    ),
    "persons-repeat": ({"person": [f"p{i // 3}" for i in range(N)]}, {"person": "identifier"}, [K3, DIVERSE], {}),
    "unique-plain": ({"bill": [*range(N - 2), 0, 1]}, {"bill": "plain"}, [K3, DIVERSE], {"max_suppression": 0.05}),
    "reveals-quasi": (
        {"year": [2024 - age - DRAW.randrange(2) for age in AGE]},
        {"year": "plain"},
        [{"model": "k-anonymity", "k": 12}, DIVERSE],
        {},
    ),
    "reveals-sensitive": ({"drug": [f"for {d}" for d in DISEASE]}, {"drug": "plain"}, [K3, DIVERSE], {}),
    "copy-of-quasi": ({"years": AGE}, {"years": "sensitive"}, [K3, DIVERSE | {"column": "disease"}], {}),
    "unprotected": ({}, {}, [K3], {}),
    "near-numbers": ({"wage": [1000.5 + i for i in range(N)]}, {"wage": "sensitive"}, [K3, DIVERSE], {}),
    "spelling": (
        {"disease": [["HIV", "hiv ", "caf\u00e9", "cafe\u0301", "", None][i % 6] for i in range(N)]},
        {},
        [K3, DIVERSE],
        {},
    ),
    "single-label": ({"town": [f"t{i}" for i in range(N)]}, {}, [K3, DIVERSE], {}),
    "half-lost": (
        {"age": [20 if i % 10 == 0 else 100 + i for i in range(N)], "town": ["Ulm"] * N},
        {},
        [K3],
        {"algorithm": "suppress_records", "max_suppression": 1.0},
    ),
    "time-budget": ({}, {}, [K3], {"algorithm": "local", "time_budget": 1e-9}),
    "closeness-before-suppression": (
        {
            "town": ["Ulm"] * 48 + ["Bonn"] * 48 + ["Jena"] * 144,
            "age": [30] * N,
            "disease": ["hiv"] * 12 + ["flu"] * 84 + ["hiv"] * 108 + ["flu"] * 36,
        },
        {},
        [{"model": "t-closeness", "t": 0.25}],
        {"max_suppression": 0.2},
    ),
    "nulls-alone": (
        {"age": [None, None, *range(22, 20 + N)], "town": [None, None, *(["Ulm"] * (N - 2))]},
        {},
        [{"model": "k-anonymity", "k": 3}],
        {"nulls": "wildcard", "algorithm": "suppress_cells"},
    ),
}


def case(kind: str) -> tuple[pa.Table, Policy]:
    columns, roles, require, release = CASES[kind]
    asked = ROLES | {name: {"role": role} if isinstance(role, str) else role for name, role in roles.items()}
    if kind == "nulls-alone":
        asked = {
            name: {"role": column["role"], "max_level": 0} if name == "age" else column
            for name, column in asked.items()
        }
    return pa.table(BASE | columns), Policy.of({"columns": asked, "require": require, "release": release})


WITHOUT_A_POLICY = ("proposed-roles",)
OF_FILES = ("reading", "writing", "beside-the-table", "stored-cells")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in (*WITHOUT_A_POLICY, *OF_FILES)])
def test_every_finding_is_the_same_on_every_engine(bench: Bench, kind: str) -> None:
    data, asked = case(kind)
    if kind == "nulls-alone":  # of a table as it stands: no search would leave it so
        here, there = shoal.check(data, asked), shoal.check(bench.load(data), asked)
        assert kind in {finding.kind for finding in here.findings}
        assert there.findings == here.findings
        return
    local, release = shoal.anonymize(data, asked), shoal.anonymize(bench.load(data), asked)
    assert kind in {finding.kind for finding in local.findings}
    assert release.findings == local.findings
    assert release.certificate["findings"] == local.certificate["findings"]
    assert [line["fact"] for line in local.certificate["findings"]] == [finding.fact for finding in local.findings]


def test_proposed_roles_are_the_same_on_every_engine(bench: Bench) -> None:
    data = pa.table(BASE)
    local, release = (
        shoal.anonymize(each, k=3, quasi=["age"], sensitive=["disease"], l=2) for each in (data, bench.load(data))
    )
    assert "proposed-roles" in {finding.kind for finding in local.findings}
    assert release.findings == local.findings


def test_what_an_engine_tells_while_it_reads_is_a_note(bench: Bench) -> None:
    data, asked = case("reading")
    [finding] = shoal.anonymize(bench.load(data), asked).findings
    assert (finding.kind, finding.severity) == ("reading", "note")


def test_check_and_apply_tell_the_same_on_every_engine(bench: Bench) -> None:
    data, asked = case("reveals-quasi")
    data = data.append_column("person", pa.array([i // 2 for i in range(N)]))
    columns = {name: column.model_dump(exclude_none=True) for name, column in asked.columns.items()}
    asked = Policy.of({"columns": columns | {"person": {"role": "identifier"}}, "require": [K3]})
    local = shoal.anonymize(data, asked)
    there, released = bench.load(data), bench.load(local.rows.table)  # type: ignore[union-attr]
    for original, beside in ((None, None), (data, there)):
        here = shoal.check(local.table, asked, original=original).findings
        assert shoal.check(released, asked, original=beside).findings == here
        assert here
    kept = described(local)
    assert replay(kept, there).verdicts.findings == replay(kept, data).verdicts.findings == local.findings


# ── random tables ───────────────────────────────────────────────────────────────────────────────────────────


@st.composite
def tables(draw: st.DrawFn) -> tuple[pa.Table, Policy]:
    """A table whose columns follow from one another as often as not; its values have signs that no sentence has."""
    n = draw(st.integers(8, 60))
    source = draw(st.lists(st.integers(0, 8), min_size=n, max_size=n))
    columns: dict[str, list[str | None]] = {}
    roles = {
        "q0": "quasi",
        "q1": "quasi",
        "s0": "sensitive",
        "s1": "sensitive",
        "p0": "plain",
        "p1": "plain",
        "i0": "identifier",
    }
    for name in roles:
        kind = draw(st.sampled_from(["follows", "drawn", "own", "spelled"]))
        numbers = draw(st.lists(st.integers(0, 8), min_size=n, max_size=n)) if kind != "follows" else source
        columns[name] = [
            f"§{i}" if kind == "own" else [f"§{x}", f"¶{x}", f"§{x} ", None][x % 4] if kind == "spelled" else f"§{x}"
            for i, x in enumerate(numbers)
        ]
    k = {"model": "k-anonymity", "k": draw(st.integers(1, 4))}
    fields = {"columns": {name: {"role": role} for name, role in roles.items()}, "require": [k]}
    if draw(st.booleans()):
        fields["require"] = [k, {"model": "distinct-l-diversity", "l": 2, "column": "s0"}]
    fields["release"] = {"max_suppression": draw(st.sampled_from([0.0, 0.3, 1.0]))}
    return pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()}), Policy.of(fields)


def _findings(make: Callable[[], Any]) -> tuple[str, ...] | None:
    try:
        return tuple(map(str, make().findings))
    except shoal.ShoalError:
        return None


@examples(30)
@given(tables())
def test_memory_and_duckdb_give_one_list_and_no_value(duck: Bench, drawn: tuple[pa.Table, Policy]) -> None:
    data, asked = drawn
    there = duck.load(data)
    for make in (
        lambda rows: shoal.anonymize(rows, asked),
        lambda rows: shoal.check(rows.drop_columns(["i0"]) if isinstance(rows, pa.Table) else rows.drop("i0"), asked),
        lambda rows: shoal.check(rows, asked, original=rows),
    ):
        here = _findings(lambda make=make: make(data))  # type: ignore[misc]
        assert here == _findings(lambda make=make: make(there))  # type: ignore[misc]
        for finding in here or ():
            assert "§" not in finding
            assert "¶" not in finding
