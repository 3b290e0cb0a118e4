"""Whose the released records are: against every way to assign them to the records of the original."""

import itertools
import json
import random
from collections import Counter, defaultdict
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import shoal
from examples import examples
from shoal.cli.commands import app
from shoal.engines.local import LocalEngine
from shoal.judge.recount import Reference, recounted
from shoal.original.owners import owners_of

LABELS = {"1": ["1", "1-2", "*"], "2": ["2", "1-2", "*"], "3": ["3", "3-4", "*"], "4": ["4", "3-4", "*"]}
NAMES = ["who", "a", "ill"]
TREE = {"*": {"1-2": ["1", "2"], "3-4": ["3", "4"]}}


def asked(k: int, **release: object) -> shoal.Policy:
    return shoal.Policy.of(
        {
            "columns": {
                "who": {"role": "identifier"},
                "a": {"role": "quasi", "hierarchy": {"tree": TREE}},
                "ill": {"role": "sensitive"},
            },
            "require": [{"model": "k-anonymity", "k": k}],
            "release": {"entity": "who", **release},
        }
    )


Record = tuple[str, str, str]  # who, a, ill


@st.composite
def releases(draw: st.DrawFn) -> tuple[list[Record], list[tuple[str, str]]]:
    """An original and what some of its records were made into, each on a level of its own."""
    record = st.tuples(st.sampled_from("xyz"), st.sampled_from("1234"), st.sampled_from("fg"))
    original = draw(st.lists(record, min_size=2, max_size=6))
    kept = draw(st.lists(st.sampled_from(range(len(original))), min_size=1, unique=True))
    made = [(LABELS[original[i][1]][draw(st.integers(0, 2))], original[i][2]) for i in kept]
    return original, made


def assignments(original: list[Record], made: list[tuple[str, str]]) -> list[dict[str, set[str]]]:
    """The persons of each class, for every way to choose an original for each released record."""
    found = []
    for chosen in itertools.permutations(original, len(made)):
        if all(label in LABELS[a] and ill == shown for (_, a, ill), (label, shown) in zip(chosen, made, strict=True)):
            classes = defaultdict(set)
            for (who, _, _), (label, _) in zip(chosen, made, strict=True):
                classes[label].add(who)
            found.append(dict(classes))
    return found


@given(releases(), st.integers(1, 3))
@examples(400)
def test_bounds_hold_for_every_assignment_and_verdicts_for_all_of_them(made, k):
    original, released = made
    truths = assignments(original, released)
    before = pd.DataFrame(original, columns=NAMES)
    after = pd.DataFrame(released, columns=NAMES[1:])
    policy = asked(k)
    engine = LocalEngine.of(before)
    found = owners_of(LocalEngine.of(after), engine, policy)
    labels = sorted(set(after["a"]))
    sizes = {label: [len(truth[label]) for truth in truths] for label in labels}
    if found.rows is None:
        assert found.missing
        tuples, least, greatest = found.between
        assert [label for (label,) in (tuple(labels[c] for c in row) for row in tuples.tolist())] == labels
        for label, fewest, most in zip(labels, least.tolist(), greatest.tolist(), strict=True):
            assert 1 <= fewest <= min(sizes[label])
            assert max(sizes[label]) <= most <= (after["a"] == label).sum()
    else:
        table = recounted(found.rows, policy, Reference(engine.domains(policy)))
        assert all(set(sizes[label]) == {n} for label, n in zip(labels, table.persons.tolist(), strict=True))
    outcome = shoal.check(after, policy, original=before).outcome
    holds = [all(len(persons) >= k for persons in truth.values()) for truth in truths]
    if outcome == "holds":
        assert all(holds)
    if outcome == "fails":
        assert not any(holds)


def people(n: int = 120, seed: int = 2) -> pd.DataFrame:
    draw = random.Random(seed)
    rows = []
    for i in range(n):
        a = draw.choice("1234")
        rows += [(f"p{i}", a, draw.choice("fgh")) for _ in range(draw.choice([1, 1, 2, 5]))]
    draw.shuffle(rows)
    return pd.DataFrame(rows, columns=NAMES)


@pytest.mark.parametrize(
    ("algorithm", "more"),
    [
        ("optimal", {}),
        ("optimal", {"max_suppression": 0.2}),
        ("optimal", {"max_suppression": 0.2, "suppressed": "keep"}),
        ("mondrian", {}),
        ("local_suppression", {}),
    ],
)
@pytest.mark.parametrize("k", [5, 30])
def test_an_honest_release_of_persons_holds_with_its_original(algorithm, more, k):
    before, policy = people(), asked(k, algorithm=algorithm, **more)
    release = shoal.anonymize(before, policy)
    assert shoal.check(release.table, policy).outcome == "unknown"
    checked = shoal.check(release.table, policy, original=before)
    assert checked.holds
    assert checked.verdicts[0].worst == release.measured["k"]
    claims = json.loads(json.dumps(release.certificate))
    verified = shoal.verify_certificate(claims, release.table, original=before)
    assert verified.holds
    exact = {line.name: line.holds for line in verified}
    assert exact["measured.k"] is True
    assert exact["measured.risk_mean"] is True


def test_records_of_one_person_are_not_a_crowd_whatever_the_certificate_says():
    rows = [(f"p{i // 5}", "1234"[i // 5 % 4], "fg"[i % 2]) for i in range(20)]
    before = pd.DataFrame(rows, columns=NAMES)
    honest = asked(5).model_copy(update={"release": asked(5).release.model_copy(update={"entity": None})})
    release = shoal.anonymize(before, honest)  # five records a class, all of one person
    checked = shoal.check(release.table, asked(5), original=before)
    assert checked.outcome == "fails"
    assert checked.verdicts[0].worst == 1
    forged = json.loads(json.dumps(release.certificate))
    forged["policy"]["release"]["entity"] = "who"
    assert shoal.verify_certificate(forged, release.table).outcome == "unknown"
    assert shoal.verify_certificate(forged, release.table, original=before).outcome == "fails"


def test_a_release_that_the_original_cannot_have_made_is_not_judged_by_it():
    before, policy = people(), asked(5)
    release = shoal.anonymize(before, policy).table
    more = pd.concat([release, release.head(1)])
    found = shoal.check(more, policy, original=before)
    assert found.outcome == "unknown"
    assert "match no record of the original" in found.verdicts[0].missing
    without = before.drop(columns="who")
    assert "needs 'who' in the original" in shoal.check(release, policy, original=without).verdicts[0].missing


def test_persons_are_assigned_for_attacks_too():
    before = people()
    policy = asked(5)
    limit = {"model": "singling-out-risk", "max": 0.1}
    limited = shoal.Policy.of(policy.model_dump(exclude={"require"}) | {"require": [limit]})
    release = shoal.anonymize(before, limited)
    assert shoal.check(release.table, limited, original=before).holds
    assert shoal.check(release.table, limited).outcome == "unknown"


def test_who_repeats_in_a_cell_is_counted_once():
    rows = [("x", "1", "f"), ("x", "1", "f"), ("y", "2", "f"), ("z", "3", "g")]
    before = pd.DataFrame(rows, columns=NAMES)
    after = pd.DataFrame([("1-2", "f"), ("1-2", "f"), ("1-2", "f")], columns=NAMES[1:])
    found = owners_of(LocalEngine.of(after), LocalEngine.of(before), asked(2))
    assert Counter(found.rows.persons.tolist()) == {0: 2, 1: 1}


@pytest.mark.parametrize("engine", ["local", "duckdb"])
def test_persons_are_told_apart_on_the_command_line(tmp_path: Path, engine: str) -> None:
    people().to_csv(tmp_path / "raw.csv", index=False)
    asked(5, max_suppression=0.2).save(tmp_path / "policy.toml")
    raw, policy, safe, proof = (str(tmp_path / name) for name in ("raw.csv", "policy.toml", "safe.csv", "proof.json"))

    def code(*words: str) -> int:
        return CliRunner().invoke(app, [*words, "--engine", engine]).exit_code

    assert code("anonymize", raw, "-p", policy, "-o", safe, "--certificate", proof) == 0
    assert code("check", safe, "-p", policy) == 2
    assert code("check", safe, "-p", policy, "--original", raw) == 0
    assert code("verify", proof, safe) == 2
    assert code("verify", proof, safe, "--original", raw) == 0
    asked(60).save(tmp_path / "policy.toml")
    assert code("check", safe, "-p", policy, "--original", raw) == 1
