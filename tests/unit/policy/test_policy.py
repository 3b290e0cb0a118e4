"""If these fail, a policy accepts what it cannot mean, or explains an error badly."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import shoal
from examples import examples
from shoal.cli.commands import app
from shoal.errors import PolicyError
from shoal.hierarchies.builders import Dates, File, Flat, Intervals, Mask
from shoal.models.size import KAnonymity
from shoal.policy import Column, Options, Policy

SECRET = "Wilhelmina-Secret"  # stands for a cell, such as a tree of the policy may list: no message may contain it

GOOD: dict[str, Any] = {
    "columns": {
        "name": {"role": "identifier"},
        "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}},
        "zip": {"role": "quasi", "hierarchy": {"mask": "right"}},
        "disease": {"role": "sensitive"},
        "ward": {"role": "plain"},
    },
    "require": [
        {"model": "k-anonymity", "k": 5},
        {"model": "t-closeness", "column": "disease", "t": 0.2},
    ],
    "release": {"max_suppression": 0.02, "seed": 3},
}

GOOD_TOML = """
[columns]
name    = { role = "identifier" }
age     = { role = "quasi", hierarchy = { intervals = [5, 10, 20] } }
zip     = { role = "quasi", hierarchy = { mask = "right" } }
disease = { role = "sensitive" }
ward    = { role = "plain" }

[[require]]
model = "k-anonymity"
k = 5
[[require]]
model = "t-closeness"
column = "disease"
t = 0.2

[release]
max_suppression = 0.02
seed = 3
"""


def changed(**parts: Any) -> dict[str, Any]:
    return {**copy.deepcopy(GOOD), **parts}


def column(name: str, **fields: Any) -> dict[str, Any]:
    fields_of = copy.deepcopy(GOOD)
    fields_of["columns"][name] = fields
    return fields_of


def require(*models: dict[str, Any]) -> dict[str, Any]:
    return changed(require=list(models))


def release(**options: Any) -> dict[str, Any]:
    return changed(release=options)


NO_SENSITIVE = {"age": {"role": "quasi"}}

# What is wrong, where the message says it is, and what it must mention besides.
MISTAKES: dict[str, tuple[dict[str, Any], str, tuple[str, ...]]] = {
    "nothing at all": ({}, "columns", ("missing",)),
    "an unknown part": (changed(realease={}), "realease", ("unknown field", "fields: columns, require, ")),
    "an unknown role": (
        column("age", role="quasy"),
        "columns.age.role",
        ("'identifier'", "'quasi'", "'sensitive'", "'plain'"),
    ),
    "no role": (column("age", hierarchy="age.csv"), "columns.age.role", ("missing",)),
    "a role alone": (changed(columns={"age": "quasi"}), "columns.age", ("should be a table", "role")),
    "no table of columns": (changed(columns=["age"]), "columns", ("should be a table",)),
    "an unknown field of a column": (
        column("age", role="quasi", hierachy="x"),
        "columns.age.hierachy",
        ("unknown field", "role, hierarchy"),
    ),
    "an unknown way with uncovered values": (
        column("age", role="quasi", uncovered="drop"),
        "columns.age.uncovered",
        ("'error' or 'suppress'",),
    ),
    "a hierarchy on a plain column": (
        column("ward", role="plain", hierarchy={"flat": True}),
        "columns.ward",
        ("'plain'", "takes no hierarchy"),
    ),
    "a hierarchy on an identifier": (
        column("name", role="identifier", hierarchy={"mask": "right"}),
        "columns.name",
        ("'identifier'", "takes no hierarchy"),
    ),
    "an unknown kind of hierarchy": (
        column("age", role="quasi", hierarchy={"interval": [5]}),
        "columns.age.hierarchy",
        ("file name", "intervals, boundaries, mask, dates, times, codes, ordered, tree, flat"),
    ),
    "two kinds of hierarchy": (
        column("age", role="quasi", hierarchy={"mask": "right", "flat": True}),
        "columns.age.hierarchy",
        ("exactly one", "intervals, boundaries, mask, dates, times, codes, ordered, tree, flat"),
    ),
    "an unknown key of a hierarchy": (
        column("age", role="quasi", hierarchy={"intervals": [5], "start": 0}),
        "columns.age.hierarchy",
        ("unknown key: start", "origin", "bottom", "top"),
    ),
    "a hierarchy that is none": (
        column("age", role="quasi", hierarchy={"intervals": [5, 8]}),
        "columns.age.hierarchy",
        ("intervals", "whole multiple"),
    ),
    "a column named as a model": (
        column("k-anonymity", role="quasy"),
        "columns.k-anonymity.role",
        ("'quasi'",),
    ),
    "a weight on a plain column": (column("ward", role="plain", weight=2), "columns.ward", ("quasi", "weight")),
    "a weight of nothing": (column("age", role="quasi", weight=0), "columns.age.weight", ("greater than 0",)),
    "levels the wrong way round": (
        column("age", role="quasi", min_level=2, max_level=1),
        "columns.age",
        ("max_level must be at least min_level",),
    ),
    "levels where there is no choice": (
        column("age", role="quasi", only="suppress", min_level=1),
        "columns.age",
        ("only = 'suppress'", "min_level"),
    ),
    "after itself": (column("age", role="quasi", after="age"), "columns.age.after", ("'age'", "role 'quasi'")),
    "no quasi column": (changed(columns={"disease": {"role": "sensitive"}}), "columns", ("role 'quasi'",)),
    "no requirement": (require(), "require", ("at least one model", "k-anonymity")),
    "a requirement that is no list": (changed(require={"model": "k-anonymity", "k": 5}), "require", ("[[require]]",)),
    "a requirement that is no table": (changed(require=["k-anonymity"]), "require.0", ("should be a table",)),
    "no model": (require({"k": 5}), "require.0", ("model is missing", "k-anonymity", "t-closeness")),
    "an unknown model": (
        require({"model": "k-anonymous", "k": 5}),
        "require.0",
        ("unknown model", "k-anonymity", "recursive-l-diversity"),
    ),
    "an unknown field of a model": (
        require({"model": "k-anonymity", "k": 5, "l": 2}),
        "require.0.l",
        ("unknown field", "model, k"),
    ),
    "k = 0": (require({"model": "k-anonymity", "k": 0}), "require.0.k", ("greater than or equal to 1",)),
    "k as text": (require({"model": "k-anonymity", "k": "5"}), "require.0.k", ("integer",)),
    "k as a fraction": (require({"model": "k-anonymity", "k": 2.5}), "require.0.k", ("integer",)),
    "k as true": (require({"model": "k-anonymity", "k": True}), "require.0.k", ("integer",)),
    "k missing": (require({"model": "k-anonymity"}), "require.0.k", ("missing",)),
    "the second of two": (
        require({"model": "k-anonymity", "k": 5}, {"model": "distinct-l-diversity"}),
        "require.1.l",
        ("missing",),
    ),
    "k beyond all numbers": (require({"model": "k-anonymity", "k": 10**20}), "require.0.k", ("less than or equal to",)),
    "beta without end": (require({"model": "basic-beta-likeness", "beta": math.inf}), "require.0.beta", ("finite",)),
    "l = 0": (require({"model": "distinct-l-diversity", "l": 0}), "require.0.l", ("greater than or equal to 1",)),
    "entropy l below 1": (require({"model": "entropy-l-diversity", "l": 0.5}), "require.0.l", ("equal to 1",)),
    "c = 0": (require({"model": "recursive-l-diversity", "c": 0, "l": 2}), "require.0.c", ("greater than 0",)),
    "p above k": (require({"model": "p-sensitive", "p": 4, "k": 3}), "require.0", ("p must be at most k",)),
    "t above 1": (require({"model": "t-closeness", "t": 1.5}), "require.0", ("t", "1")),
    "t below 0": (require({"model": "t-closeness", "t": -0.1}), "require.0.t", ("greater than or equal to 0",)),
    "t as text": (require({"model": "t-closeness", "t": "much"}), "require.0.t", ("number",)),
    "an unknown distance": (
        require({"model": "t-closeness", "t": 0.2, "distance": "euclid"}),
        "require.0.distance",
        ("'equal'", "'ordered'", "'numeric'", "'hierarchical'"),
    ),
    "a column that is not sensitive": (
        require({"model": "t-closeness", "t": 0.2, "column": "age"}),
        "require.0.column",
        ("'age'", "role 'sensitive'", "disease"),
    ),
    "a column that is nowhere": (
        require({"model": "distinct-l-diversity", "l": 2, "column": "illness"}),
        "require.0.column",
        ("'illness'", "disease"),
    ),
    "no sensitive column": (
        changed(columns=NO_SENSITIVE, require=[{"model": "distinct-l-diversity", "l": 2}]),
        "require.0",
        ("distinct-l-diversity", "role 'sensitive'"),
    ),
    "an unknown preset": (changed(preset="best"), "preset", ("'hipaa-safe-harbor'", "'cms-cell'")),
    "two populations": (
        require(
            {"model": "k-map", "k": 2, "population": "town.csv"},
            {"model": "k-map", "k": 3, "population": "land.csv"},
        ),
        "require",
        ("one population",),
    ),
    "a set of columns that are not quasi": (
        require({"model": "k-anonymity", "k": 2, "columns": ["age", "disease"]}),
        "require.0.columns",
        ("'disease'", "role 'quasi'"),
    ),
    "no time": (release(time_budget=0), "release.time_budget", ("greater than 0",)),
    "an unknown option": (release(max_supression=0.1), "release.max_supression", ("unknown field", "max_suppression")),
    "max_suppression = 2": (release(max_suppression=2), "release.max_suppression", ("less than or equal to 1",)),
    "max_suppression below 0": (release(max_suppression=-0.1), "release.max_suppression", ("equal to 0",)),
    "max_suppression is not a number": (release(max_suppression=float("nan")), "release.max_suppression", ()),
    "an unknown algorithm": (release(algorithm="fastest"), "release.algorithm", ("'optimal'", "'datafly'")),
    "an unknown objective": (release(objective="beauty"), "release.objective", ("'loss'", "'discernibility'")),
    "a negative seed": (release(seed=-1), "release.seed", ("greater than or equal to 0",)),
    "a seed with a fraction": (release(seed=1.5), "release.seed", ("integer",)),
    "shuffle as text": (release(shuffle="no"), "release.shuffle", ("boolean",)),
    "an unknown fate of the suppressed": (release(suppressed="hide"), "release.suppressed", ("'drop' or 'keep'",)),
    "an unknown reading of nulls": (
        release(nulls="ignore"),
        "release.nulls",
        ("'category', 'wildcard' or 'forbid'",),
    ),
    "an entity that is nowhere": (release(entity="person"), "release.entity", ("'person'", "columns")),
    "an entity that stays": (release(entity="zip"), "release.entity", ("'zip'", "'identifier'")),
    "an entity among wildcards": (
        release(entity="name", nulls="wildcard"),
        "release.entity",
        ("nulls = 'wildcard'", "'category'"),
    ),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_is_named_with_what_is_allowed(what: str) -> None:
    fields, place, words = MISTAKES[what]
    for make in (Policy.of, lambda fields: Policy(**fields)):
        with pytest.raises(PolicyError) as caught:
            make(fields)
        message = str(caught.value)
        assert f"policy: {place}:" in message
        for word in words:
            assert word in message, message
        assert "pydantic" not in message
        assert caught.value.exit_code == 2
        assert caught.value.__suppress_context__


def test_every_mistake_is_told_at_once() -> None:
    with pytest.raises(PolicyError) as caught:
        Policy.of(release(seed=-1, algorithm="fastest", nulls="ignore"))
    lines = caught.value.message.splitlines()
    assert [line.split(":")[1].strip() for line in lines] == ["release.algorithm", "release.nulls", "release.seed"]


def test_a_value_that_the_policy_lists_is_not_quoted() -> None:
    for hierarchy in ({"tree": {SECRET: [{}]}}, {"tree": {"*": [[], SECRET]}}, {"tree": SECRET}, {"intervals": SECRET}):
        with pytest.raises(PolicyError) as caught:
            Policy.of(column("age", role="quasi", hierarchy=hierarchy))
        assert SECRET not in str(caught.value)


def test_toml_cannot_say_where_it_lies() -> None:
    with pytest.raises(PolicyError, match=r"folder: unknown field") as caught:
        Policy.parse('folder = "elsewhere"\n' + GOOD_TOML)
    assert caught.value.hint is not None
    assert "folder" not in caught.value.hint


# ── files ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_syntax_error_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text("[columns]\nage = { role = 'quasi' }\nzip = = 3\n", encoding="utf-8")
    with pytest.raises(PolicyError, match=r"not valid TOML.*line 3"):
        Policy.load(path)


def unreadable(folder: Path) -> dict[str, tuple[Path, str]]:
    latin = folder / "latin.toml"
    latin.write_bytes("[columns]\nstraße = { role = 'quasi' }\n".encode("latin-1"))
    syntax = folder / "syntax.toml"
    syntax.write_text("[columns\n", encoding="utf-8")
    return {
        "missing": (folder / "none.toml", "cannot be read"),
        "a directory": (folder, "cannot be read"),
        "not UTF-8": (latin, "not UTF-8"),
        "a syntax error": (syntax, "line 1"),
    }


@pytest.mark.parametrize("what", ["missing", "a directory", "not UTF-8", "a syntax error"])
def test_files_that_cannot_be_read(tmp_path: Path, what: str) -> None:
    path, words = unreadable(tmp_path)[what]
    with pytest.raises(PolicyError, match=words):
        Policy.load(path)
    data = tmp_path / "data.csv"
    data.write_text("age\n1\n", encoding="utf-8")
    for command in (["check", str(data)], ["anonymize", str(data), "-o", str(tmp_path / "out.csv")]):
        result = CliRunner().invoke(app, [*command, "-p", str(path)])
        assert result.exit_code == 2
        assert result.stderr.startswith("PolicyError: policy")
        assert words in result.stderr
    assert not (tmp_path / "out.csv").exists()


def test_a_mistake_ends_the_command_line_with_2(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(GOOD_TOML.replace("k = 5", "k = 0"), encoding="utf-8")
    result = CliRunner().invoke(app, ["check", str(tmp_path / "never-read.csv"), "-p", str(path)])
    assert result.exit_code == 2
    assert "policy: require.0.k:" in result.stderr
    assert result.stdout == ""


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD_TOML.encode())
    assert Policy.load(path) == Policy.parse(GOOD_TOML)


def test_hierarchy_files_are_found_beside_the_policy(tmp_path: Path) -> None:
    fields = column("age", role="quasi", hierarchy="trees/age.csv")
    policy = Policy.of(fields, folder=tmp_path)
    assert policy.folder == tmp_path
    assert policy.files == (tmp_path / "trees" / "age.csv",)
    path = tmp_path / "policy.toml"
    policy.save(path)
    assert Policy.load(path).files == policy.files
    assert Policy.of(fields).files == (Path("trees/age.csv"),)
    among = require({"model": "k-map", "k": 2, "population": "town.csv"})
    assert Policy.of(among, folder=tmp_path).files == (tmp_path / "town.csv",)
    assert Policy.of(column("age", role="quasi", hierarchy=str(tmp_path / "age.csv"))).files == (tmp_path / "age.csv",)


# ── in code ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_policy_built_in_code_equals_the_one_read() -> None:
    read = Policy.parse(GOOD_TOML)
    assert Policy(**GOOD) == Policy.of(GOOD) == read
    assert shoal.Policy is Policy
    typed = Policy(
        columns={
            "name": Column(role="identifier"),
            "age": Column(role="quasi", hierarchy=Intervals(intervals=(5, 10, 20))),
            "zip": Column(role="quasi", hierarchy=Mask(mask="right")),
            "disease": Column(role="sensitive"),
            "ward": {"role": "plain"},
        },
        require=(KAnonymity(k=5), {"model": "t-closeness", "column": "disease", "t": 0.2}),
        release=Options(max_suppression=0.02, seed=3),
        folder="somewhere",
    )
    assert typed == read
    assert hash(typed) == hash(read)
    assert typed.folder == Path("somewhere")


def test_whole_numbers_do_where_fractions_are_meant() -> None:
    policy = Policy(
        columns=GOOD["columns"],
        require=[
            {"model": "t-closeness", "t": 1},
            {"model": "entropy-l-diversity", "l": 2},
            {"model": "recursive-l-diversity", "c": 3, "l": 2},
        ],
        release={"max_suppression": 0},
    )
    assert [type(x) for x in (policy.require[0].t, policy.require[1].l, policy.require[2].c)] == [float] * 3
    assert type(policy.release.max_suppression) is float


def test_what_is_not_said_is_the_default() -> None:
    policy = Policy(columns={"age": {"role": "quasi"}}, require=[{"model": "k-anonymity", "k": 2}])
    assert policy.release == Options()
    assert (policy.release.algorithm, policy.release.objective) == ("optimal", "loss")
    assert (policy.release.max_suppression, policy.release.suppressed) == (0.0, "drop")
    assert (policy.release.nulls, policy.release.entity) == ("category", None)
    assert (policy.release.seed, policy.release.shuffle) == (0, True)
    assert policy.columns["age"].hierarchy is None


def test_roles() -> None:
    policy = Policy.of(GOOD)
    assert policy.quasi == ("age", "zip")
    assert policy.sensitive == ("disease",)
    assert policy.identifiers == ("name",)
    assert policy.having("plain") == ("ward",)


def test_a_policy_is_frozen_and_what_it_was_made_of_is_its_own() -> None:
    fields = copy.deepcopy(GOOD)
    policy = Policy.of(fields)
    with pytest.raises(ValueError, match="frozen"):
        policy.release = Options()
    with pytest.raises(ValueError, match="frozen"):
        policy.release.seed = 4
    fields["columns"]["ward"]["role"] = "quasi"
    assert policy.columns["ward"].role == "plain"
    assert fields["require"] == GOOD["require"]


@pytest.mark.parametrize(
    ("part", "other"),
    [
        ("columns", {**GOOD["columns"], "ward": {"role": "quasi"}}),
        ("require", GOOD["require"][:1]),
        ("release", {**GOOD["release"], "shuffle": False}),
    ],
)
def test_another_wish_is_another_policy(part: str, other: Any) -> None:
    assert Policy.of({**GOOD, part: other}) != Policy.of(GOOD)
    assert Policy.of(GOOD) != GOOD


# ── there and back ──────────────────────────────────────────────────────────────────────────────────────────

NAMES = st.text(max_size=8) | st.sampled_from(
    ["", " ", "a.b", 'say "hi"', "it's", "back\\slash", "two\nlines", "\ttab", "\r", "\x00", "\x7f", "ñ", "名前", "😀",
     "columns", "role", "k-anonymity", "#", "a = 1", "[release]", "*", "model"]
)  # fmt: skip
LEAVES = st.text(max_size=6) | st.integers() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False)
GROUPS = st.recursive(
    st.lists(LEAVES, min_size=1, max_size=3),
    lambda inner: st.dictionaries(NAMES, inner, min_size=1, max_size=3),
    max_leaves=6,
)
HIERARCHIES = st.one_of(
    st.none(),
    st.just({"flat": True}),
    st.builds(lambda side: {"mask": side}, st.sampled_from(["right", "left"])),
    st.builds(
        lambda width, factors, origin, bound: {
            "intervals": [width * factor for factor in factors],
            **origin,
            **bound,
        },
        st.sampled_from([1, 5, 0.5, 0.1, 1000]),
        st.sampled_from([[1], [1, 2], [1, 2, 10]]),
        st.sampled_from([{}, {"origin": 3}, {"origin": -0.5}, {"origin": 0}]),
        st.sampled_from([{}, {"bottom": 10}, {"top": 90}, {"bottom": -1.5, "top": 1e6}]),
    ),
    st.builds(
        lambda units, form: {"dates": units, **form},
        st.sampled_from([["day"], ["week", "month"], ["month", "quarter", "year", "decade"]]),
        st.sampled_from([{}, {"format": "%d/%m/%y", "pivot": 30}, {"format": "%Y%m%d"}, {"format": "ISO"}]),
    ),
    st.builds(lambda tree: {"tree": {"*": tree}}, GROUPS),
    st.text(min_size=1, max_size=8),  # the name of a file
)
MODELS = st.one_of(
    st.builds(lambda k: {"model": "k-anonymity", "k": k}, st.integers(1, 10**12)),
    st.builds(lambda p, more: {"model": "p-sensitive", "p": p, "k": p + more}, st.integers(1, 9), st.integers(0, 9)),
    st.builds(lambda l: {"model": "distinct-l-diversity", "l": l}, st.integers(1, 99)),
    st.builds(lambda l: {"model": "entropy-l-diversity", "l": l}, st.floats(1, 1e300)),
    st.builds(
        lambda c, l: {"model": "recursive-l-diversity", "c": c, "l": l},
        st.floats(0, exclude_min=True, allow_infinity=False),
        st.integers(1, 9),
    ),
    st.builds(
        lambda t, distance: {"model": "t-closeness", "t": t, **distance},
        st.floats(0, 1) | st.integers(0, 1),
        st.sampled_from([{}, *({"distance": d} for d in ("equal", "ordered", "numeric", "hierarchical"))]),
    ),
    st.builds(
        lambda alpha, k: {"model": "alpha-k-anonymity", "alpha": alpha, "k": k},
        st.floats(0, 1, exclude_min=True),
        st.integers(1, 9),
    ),
    st.builds(
        lambda name, beta: {"model": name, "beta": beta},
        st.sampled_from(["basic-beta-likeness", "enhanced-beta-likeness"]),
        st.floats(0, 9, exclude_min=True),
    ),
    st.builds(
        lambda delta, absent: {"model": "delta-disclosure", "delta": delta, **absent},
        st.floats(0, 9, exclude_min=True),
        st.sampled_from([{}, {"absent": "ignore"}]),
    ),
    st.builds(lambda k: {"model": "k-map", "k": k, "population": "town.csv"}, st.integers(1, 9)),
)
OF_PERSONS = ("k-anonymity", "k-map")  # models that look at no sensitive column
QUASI = st.fixed_dictionaries(
    {},
    optional={
        "weight": st.floats(0, 1e9, exclude_min=True) | st.integers(1, 9),
        "min_level": st.integers(0, 2),
        "max_level": st.integers(2, 4),
    },
) | st.just({"only": "suppress"})
SWITCHES = st.fixed_dictionaries(
    {},
    optional={
        "algorithm": st.sampled_from(["optimal", "exhaustive", "datafly"]),
        "objective": st.sampled_from(["loss", "arx-loss", "discernibility", "entropy"]),
        "max_suppression": st.floats(0, 1) | st.integers(0, 1),
        "suppressed": st.sampled_from(["drop", "keep"]),
        "nulls": st.sampled_from(["category", "forbid"]),
        "seed": st.integers(0, 2**70),
        "shuffle": st.booleans(),
        "time_budget": st.floats(0, 1e6, exclude_min=True) | st.integers(1, 60),
    },
)


@st.composite
def policies(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(NAMES, min_size=3, max_size=7, unique=True))
    columns: dict[str, Any] = {}
    for i, name in enumerate(names):
        role = "quasi" if i == 0 else "sensitive" if i == 1 else draw(st.sampled_from(ROLES))
        columns[name] = {"role": role}
        if role in ("quasi", "sensitive") and (spec := draw(HIERARCHIES)) is not None:
            columns[name]["hierarchy"] = spec
        if role == "quasi":
            columns[name] |= draw(QUASI)
            if i > 0 and draw(st.booleans()):
                columns[name]["after"] = names[0]
        if draw(st.booleans()):
            columns[name]["uncovered"] = draw(st.sampled_from(["error", "suppress"]))
    sensitive = [name for name, column in columns.items() if column["role"] == "sensitive"]
    require = draw(st.lists(MODELS, min_size=1, max_size=3))
    for model in require:
        if model["model"] not in OF_PERSONS and draw(st.booleans()):
            model["column"] = draw(st.sampled_from(sensitive))
    options = draw(SWITCHES)
    identifiers = [name for name, column in columns.items() if column["role"] == "identifier"]
    if identifiers and draw(st.booleans()):
        options["entity"] = draw(st.sampled_from(identifiers))
    preset = draw(st.sampled_from([{}, {"preset": "cms-cell"}]))
    return {"columns": columns, "require": require, "release": options, **preset}


ROLES = ["identifier", "quasi", "sensitive", "plain"]


@examples(60)
@given(policies())
def test_what_is_written_reads_back_equal(fields: dict[str, Any]) -> None:
    policy = Policy.of(fields)
    text = policy.to_toml()
    back = Policy.parse(text)
    assert back == policy
    assert hash(back) == hash(policy)
    assert back.to_toml() == text
    assert list(back.columns) == list(fields["columns"])  # the order of the columns is that of the policy
    assert back.require == policy.require
    assert back.release == policy.release
    for name, given_column in policy.columns.items():
        assert type(back.columns[name].hierarchy) is type(given_column.hierarchy)


@examples(40)
@given(policies())
def test_a_certificate_holds_the_policy_as_plain_values(fields: dict[str, Any]) -> None:
    policy = Policy.of(fields)
    assert Policy.of(policy.model_dump(mode="json", exclude_none=True)) == policy


def test_hierarchies_of_every_kind_come_back_as_their_kind() -> None:
    specs = {
        "a": ({"intervals": [5, 10], "top": 90}, Intervals),
        "b": ({"mask": "left"}, Mask),
        "c": ({"dates": ["month", "year"], "format": "%d.%m.%y", "pivot": 20}, Dates),
        "d": ({"flat": True}, Flat),
        "e": ("trees/e.csv", File),
    }
    columns = {name: {"role": "quasi", "hierarchy": spec} for name, (spec, _) in specs.items()}
    back = Policy.parse(Policy(columns=columns, require=GOOD["require"][:1]).to_toml())
    for name, (_, kind) in specs.items():
        assert isinstance(back.columns[name].hierarchy, kind)


def test_dates_of_a_tree_survive_the_way_through_text() -> None:
    policy = Policy.parse(
        '[columns]\nday = { role = "quasi", hierarchy = { tree = { "*" = { spring = [2020-03-01, 2020-04-01] } } } }\n'
        '[[require]]\nmodel = "k-anonymity"\nk = 2\n'
    )
    assert Policy.parse(policy.to_toml()) == policy


def test_saved_and_loaded(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    policy = Policy.of(column("straße\n", role="quasi"))
    policy.save(path)
    assert Policy.load(path) == Policy.load(str(path)) == policy
    assert Policy.load(path).folder == tmp_path


# ── how many may go ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("share", "n", "allowed"),
    [
        (0.29, 100, 29),  # 28.999999999999996 in floats
        (0.57, 100, 57),  # 56.99999999999999
        (0.1, 10, 1),
        (0.3, 10, 3),
        (0.07, 100, 7),  # 7.000000000000001, the other way
        (0.02, 49, 0),
        (0.02, 50, 1),
        (0.02, 99, 1),
        (1.0, 7, 7),
        (1, 10**15, 10**15),
        (0.0, 10**9, 0),
        (0.5, 0, 0),
        (1e-7, 10**7, 1),
        (1 / 3, 3, 0),  # 0.3333333333333333 is less than a third
    ],
)
def test_the_allowance_is_exact(share: float, n: int, allowed: int) -> None:
    assert Policy.of(release(max_suppression=share)).allowance(n) == allowed


@given(st.integers(0, 1000), st.integers(0, 10**6))
def test_the_allowance_is_what_the_decimals_say(thousandths: int, n: int) -> None:
    policy = Policy.of(release(max_suppression=float(f"0.{thousandths:03}") if thousandths < 1000 else 1.0))
    assert policy.allowance(n) == thousandths * n // 1000
