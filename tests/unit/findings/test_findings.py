"""One test a kind of finding: that it comes, that it stays away, and what it says."""

import json
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import shoal
from shoal.attacks.risk import Attacks
from shoal.findings import KINDS, Finding
from shoal.notation.same_values import spelled_alike
from shoal.policy import Policy

N = 600
DRAW = np.random.default_rng(13)
AGE = DRAW.integers(20, 80, N)
DISEASE = DRAW.choice(["flu", "gout", "asthma", "angina"], N)
BASE = {"age": AGE.tolist(), "town": DRAW.choice(["Ulm", "Bonn", "Jena"], N).tolist(), "disease": DISEASE.tolist()}
ROLES: dict[str, Any] = {
    "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}},
    "town": {"role": "quasi"},
    "disease": {"role": "sensitive"},
}
DIVERSE = {"model": "distinct-l-diversity", "l": 2}
K5 = {"model": "k-anonymity", "k": 5}


def table(**columns: Any) -> pa.Table:
    return pa.table(BASE | columns)


def policy(*require: Any, release: dict[str, Any] | None = None, **roles: Any) -> Policy:
    columns = ROLES | {name: {"role": role} if isinstance(role, str) else role for name, role in roles.items()}
    return Policy.of({"columns": columns, "require": list(require) or [K5, DIVERSE], "release": release or {}})


def found(data: pa.Table, asked: Policy) -> dict[str, Finding]:
    """The findings of a release by kind."""
    findings = shoal.anonymize(data, asked).findings
    assert all(finding.severity in KINDS[finding.kind] for finding in findings)
    return {finding.kind: finding for finding in findings}


def test_an_ordinary_release_has_none() -> None:
    assert found(table(), policy()) == {}
    assert shoal.check(shoal.anonymize(table(), policy()).table, policy()).findings == ()


# ── columns that identify ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("alone", "expected"), [(N, True), (N - 2, True), (N // 2, True), (N // 2 - 2, False)])
def test_a_plain_column_in_which_half_of_the_records_are_alone(alone: int, expected: bool) -> None:
    receipt = [*range(alone), *(N + i // 2 for i in range(N - alone))]
    finding = found(table(receipt=receipt), policy(receipt="plain")).get("unique-plain")
    assert (finding is not None) == expected
    if finding is not None:
        assert finding.columns == ("receipt",)
        assert 'role = "quasi"' in str(finding)
        assert f"({alone} of {N} records) is plain but nearly unique" in str(finding)
        assert (finding.severity, finding.people) == ("stop", alone)


def test_several_plain_columns_are_named_together() -> None:
    columns = {f"c{i}": [i * N + j for j in range(N)] for i in range(8)}
    finding = found(table(**columns), policy(**dict.fromkeys(columns, "plain")))["unique-plain"]
    assert str(finding).startswith(f"Columns 'c0' ({N} of {N} records), 'c1' (")
    assert "and 3 others are plain but nearly unique" in str(finding)
    assert finding.columns == tuple(columns)


def test_few_values_of_a_plain_column_say_little() -> None:
    note = [i if i < 0.04 * N else None for i in range(N)]
    assert "unique-plain" not in found(table(note=pa.array(note)), policy(note="plain"))


def test_an_identifier_that_repeats() -> None:
    data = table(person=[f"p{i // 3}" for i in range(N)])
    finding = found(data, policy(person="identifier"))["persons-repeat"]
    assert f"'person' repeats, with {N // 3} different values in {N} records" in str(finding)
    assert str(finding).endswith('Add entity = "person" to [release] if it identifies people.')
    assert found(data, policy(person="identifier", release={"entity": "person"})) == {}
    assert found(table(person=[f"p{i}" for i in range(N)]), policy(person="identifier")) == {}


def test_an_identifier_that_repeats_and_has_nulls_is_completed_first() -> None:
    data = table(person=[f"p{i // 3}" if i > 8 else None for i in range(N)])
    finding = found(data, policy(person="identifier"))["persons-repeat"]
    assert str(finding).endswith("after filling in or removing the 9 records without a value in it.")


def test_a_name_that_people_share_is_no_sign_beside_a_number_of_their_own() -> None:
    roles = {"name": "identifier", "number": "identifier"}
    number = list(range(N))
    assert found(table(name=[f"n{i % 200}" for i in range(N)], number=number), policy(**roles)) == {}
    # The same people twice, with the same age in the same town.
    half = {name: values[: N // 2] * 2 for name, values in BASE.items()}
    twice = pa.table(half | {"name": [f"n{i % (N // 2)}" for i in range(N)], "number": number})
    assert set(found(twice, policy(**roles))) == {"persons-repeat"}


def test_names_that_people_share_are_no_persons_that_repeat() -> None:
    """Sex follows from a name, birth does not; within one person's records neither changes."""
    who = DRAW.integers(0, 200, N)
    names = {"name": [f"n{i}" for i in who], "sex": np.where(who % 2, "m", "f").tolist()}
    roles = {"name": "identifier", "sex": "plain", "birth": "plain"}
    strangers = table(**names, birth=DRAW.integers(1930, 2010, N).tolist())
    assert "persons-repeat" not in found(strangers, policy(**roles))
    same = table(**names, birth=(1930 + who % 70).tolist())
    assert found(same, policy(**roles))["persons-repeat"].columns == ("name",)
    slips = (1930 + who % 70 + (DRAW.random(N) < 0.01)).tolist()
    assert "persons-repeat" in found(table(**names, birth=slips), policy(**roles))


def test_a_key_of_persons_that_stays_is_told_whatever_its_role() -> None:
    who = DRAW.integers(0, 200, N)
    sex = DRAW.choice(["m", "f"], 200)
    data = table(pid=[f"p{i}" for i in who], sex=sex[who].tolist())
    finding = found(data, policy(pid="plain", sex="plain"))["persons-repeat"]
    assert str(finding).endswith(
        'Set role = "identifier" for it and add entity = "pid" to [release] if it identifies people.'
    )
    released = shoal.anonymize(data, policy(pid="plain", sex="plain")).table
    assert "persons-repeat" in {
        finding.kind for finding in shoal.check(released, policy(pid="plain", sex="plain")).findings
    }
    mixed = table(pid=[f"p{i}" for i in who], sex=DRAW.choice(["m", "f"], N).tolist())
    assert "persons-repeat" not in found(mixed, policy(pid="plain", sex="plain"))
    assert "persons-repeat" not in found(data.drop_columns(["sex"]), policy(pid="plain"))


def test_numbers_of_persons_that_start_again_in_every_hospital():
    visits = [(center, number) for center in "AB" for number in range(N // 8) for _ in range(4)][:N]
    sexes = {key: "fm"[(key[1] // 2 + (key[0] == "B")) % 2] for key in visits}
    data = table(
        center=[center for center, _ in visits],
        id=[str(number) for _, number in visits],
        sex=[sexes[key] for key in visits],
    )
    assert found(data, policy(center="quasi", id="identifier", sex="quasi"))["persons-repeat"].columns == ("id",)
    # A number that few share, who differ, was given twice by mistake.
    mistakes = table(id=[str(i % (N - 30)) for i in range(N)], sex=DRAW.choice(["m", "f"], N).tolist())
    assert "persons-repeat" not in found(mistakes, policy(id="identifier", sex="quasi"))


# ── columns that tell others ────────────────────────────────────────────────────────────────────────────────


def test_a_plain_column_that_tells_a_generalized_one() -> None:
    year = (2024 - AGE).tolist()
    finding = found(table(year=year), policy(year="plain"))["reveals-quasi"]
    assert finding.columns == ("year",)
    assert "reveals a generalized column: 'age' (for 100 % of the records)" in str(finding)
    assert 'Set role = "quasi" for it as well, or remove it' in str(finding)
    # Where the age itself is released nothing is told that the release does not tell.
    assert "reveals-quasi" not in found(table(year=year), policy({"model": "k-anonymity", "k": 1}, year="plain"))


def test_a_birthday_leaves_two_ages_for_a_year() -> None:
    year = 2024 - AGE - DRAW.integers(0, 2, N)
    finding = found(table(year=year.tolist()), policy(year="plain"))["reveals-quasi"]
    assert "'age' (up to two values, for 100 % of the records)" in str(finding)


def test_a_few_exceptions_do_not_hide_it_and_many_do() -> None:
    for share, expected in ((0.02, True), (0.2, False)):
        year = np.where(DRAW.random(N) < share, DRAW.permutation(2024 - AGE), 2024 - AGE)
        assert ("reveals-quasi" in found(table(year=year.tolist()), policy(year="plain"))) == expected


def test_chance_tells_nothing() -> None:
    columns = {"ward": DRAW.integers(0, 30, N), "bed": DRAW.integers(0, 300, N), "month": DRAW.integers(1, 13, N)}
    kinds = set(found(table(**columns), policy(**dict.fromkeys(columns, "plain"))))
    assert kinds == {"singled-out"}


def test_a_plain_column_that_tells_a_sensitive_one() -> None:
    drug = [f"for {disease} {i % 2}" for i, disease in enumerate(DISEASE)]
    finding = found(table(drug=drug), policy(drug="plain"))["reveals-sensitive"]
    assert finding.columns == ("drug",)
    assert "reveals a sensitive value: 'disease' (for 100 % of the records)" in str(finding)


def test_a_sensitive_column_that_is_a_copy_of_a_quasi_column() -> None:
    findings = found(table(years=AGE.tolist()), policy(K5, DIVERSE | {"column": "disease"}, years="sensitive"))
    assert (
        "Quasi-identifier 'age' reveals a sensitive column: 'years' (for 100 % of the records)"
        in findings["copy-of-quasi"].fact
    )
    assert "reveals-quasi" not in findings  # said once


def test_a_sensitive_column_that_is_finer_than_a_quasi_column() -> None:
    fine = [f"{age} {i % 3}" for i, age in enumerate(AGE)]
    finding = found(table(fine=fine), policy(fine="sensitive"))["reveals-quasi"]
    assert "'fine' is released unchanged and reveals a generalized column: 'age'" in str(finding)


# ── sensitive columns ───────────────────────────────────────────────────────────────────────────────────────


def test_nothing_is_required_of_a_sensitive_column() -> None:
    alike = ["flu" if age < 40 else disease for age, disease in zip(AGE, DISEASE, strict=True)]
    finding = found(table(disease=alike), policy(K5))["unprotected"]
    assert str(finding).startswith("No requirement protects 'disease'. In ")
    assert "all records have the same value: finding the class discloses it" in str(finding)
    assert "Require distinct-l-diversity" in str(finding)
    some = found(table(), policy(K5))["unprotected"].fact
    assert "% of the records share a value" in some
    limit = {"model": "inference-risk", "max": 1.0}
    assert "unprotected" not in found(table(), policy(K5, limit))


def guessable(share: float) -> pa.Table:
    """Forty classes of twenty, in each of which this share has the value of its own."""
    ages = [age for age in range(20, 60) for _ in range(20)]
    own = round(20 * share)
    diseases = [
        ("flu", "gout", "asthma", "angina")[(age + (0 if i < own else 1 + i % 3)) % 4]
        for age in range(20, 60)
        for i in range(20)
    ]
    return pa.table({"age": ages, "town": ["Ulm"] * 800, "disease": diseases})


def test_values_that_are_guessed_from_the_class() -> None:
    asked = policy({"model": "k-anonymity", "k": 20}, {"model": "limited-gain", "gain": 0.5})
    finding = found(guessable(0.6), asked)["guessed-values"]
    assert (finding.severity, finding.columns) == ("decide", ("disease",))
    assert (
        "is right in 60 % of all cases instead of 25 %: 47 % above the control, where 9 % is tolerated" in finding.fact
    )
    assert "guessed-values" not in found(guessable(0.3), asked)
    assert "guessed-values" not in found(guessable(0.6)[:380], asked)  # 19 classes: too few to say
    nobody_minds = ["flu", "gout", "asthma", "angina"]
    exempt = policy({"model": "k-anonymity", "k": 20}, {"model": "limited-gain", "gain": 0.5, "exempt": nobody_minds})
    assert "guessed-values" not in found(guessable(0.6), exempt)


@pytest.mark.parametrize(("gain", "severity"), [(0.5, "decide"), (None, "stop")])
def test_attacks_replace_guesses_and_a_gain_that_is_allowed_was_decided_on(gain: float | None, severity: str) -> None:
    """A policy that allows a gain has decided on it, as one that limits an attack."""
    bound = DIVERSE if gain is None else {"model": "limited-gain", "gain": gain}
    release = shoal.anonymize(guessable(0.6), policy({"model": "k-anonymity", "k": 20}, bound))
    assert [finding.kind for finding in release.findings if finding.severity == "decide"] == ["guessed-values"]
    kinds = {finding.kind: finding.severity for finding in release.attacked().findings}
    assert "guessed-values" not in kinds
    assert kinds["attack-succeeds"] == severity


def test_attacks_that_decide_nothing_take_back_no_guess_that_was_counted() -> None:
    """A release was 'ready to publish' as soon as attacks on a few of its people, or none, decided nothing."""
    asked = policy({"model": "k-anonymity", "k": 20}, {"model": "limited-gain", "gain": 0.5})
    release = shoal.anonymize(guessable(0.5), asked)
    assert [finding.kind for finding in release.findings if finding.severity == "decide"] == ["guessed-values"]
    skipped = Attacks((), ("all attacks: 1,000,000 records are too many for the report; run shoal attack",))
    attacked = release.with_attacks(skipped)
    assert "guessed-values" in {finding.kind for finding in attacked.findings}
    assert attacked.publication == release.publication == "decide first"


def test_answers_and_findings_tolerate_the_same() -> None:
    five = shoal.anonymize(guessable(0.6), policy({"model": "k-anonymity", "k": 5}, DIVERSE)).attacked()
    assert five.attacks is not None
    assert [answer.tolerance for answer in five.attacks.answers()] == [0.0, 0.2, 0.09]
    exceeded = {answer.question for answer in five.attacks.answers() if answer.possible}
    assert {finding.fact.partition("(")[2].partition(")")[0] for finding in five.findings
            if finding.kind == "attack-succeeds"} == exceeded  # fmt: skip


def test_numbers_that_are_almost_all_different() -> None:
    data = table(wage=[1000 + i // 10 * 10 + i % 10 for i in range(N)])
    diverse = policy(K5, DIVERSE, wage="sensitive")
    assert (
        f"'wage' are almost all different, with {N} different values in {N} records"
        in found(data, diverse)["near-numbers"].fact
    )
    close = {"model": "t-closeness", "t": 0.9, "distance": "numeric", "column": "wage"}
    assert "near-numbers" not in found(data, policy(K5, DIVERSE, close, wage="sensitive"))
    assert "near-numbers" not in found(table(wage=[i % 50 for i in range(N)]), diverse)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("HIV", "hiv "), ("1", "1.0"), ("caf\u00e9", "cafe\u0301"), ("", None), ("heart  attack", "Heart attack"),
        ("HIV", "HIV\u200b"), ("straße", "STRASSE"), (" ", ""), ("1e3", "1000"),
    ],
)  # fmt: skip
def test_values_that_differ_only_in_spelling(one: str | None, other: str | None) -> None:
    disease = [[one, other][i % 2] if i % 4 < 2 else value for i, value in enumerate(DISEASE.tolist())]
    finding = found(pa.table(BASE | {"disease": pa.array(disease, pa.string())}), policy())["spelling"]
    assert "6 spellings of 5 values, which diversity counts as one and distances" in str(finding)


def test_spellings_do_not_feign_the_diversity_of_a_class() -> None:
    only = ["HIV", "hiv", " HIV"] * (N // 3)
    with pytest.raises(shoal.InfeasibleError, match="distinct 2-diversity"):
        shoal.anonymize(table(disease=only), policy())
    assert shoal.measure(table(disease=only), quasi=["town"], sensitive=["disease"])["l"] == 1


def test_what_is_no_spelling() -> None:
    texts = ["1", "2", "10", "1.5", "a", "b", "a b", "ab", "é", "e", "-", "n/a", None]
    assert len(set(spelled_alike(texts).tolist())) == len(texts)
    assert "spelling" not in found(table(), policy())


# ── what is left ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_column_with_a_single_label() -> None:
    town = [f"t{i}" for i in range(N)]
    finding = found(table(town=town), policy())["single-label"]
    assert str(finding).startswith(f"Column 'town' has a single label in all {N} records and carries no information.")
    assert "single-label" not in found(table(town=["Ulm"] * N), policy())  # it had no other


@pytest.mark.parametrize(
    ("release", "remedy"),
    [
        ({"algorithm": "optimal"}, 'Use algorithm = "single_dimensional"'),
        ({"algorithm": "optimal", "max_suppression": 0.05}, 'Use algorithm = "single_dimensional"'),
        ({"algorithm": "mondrian"}, "Allow max_suppression"),
        ({"algorithm": "local", "max_suppression": 0.05}, "Provide a finer hierarchy"),
    ],
)
def test_the_remedy_of_a_single_label_is_nothing_that_the_policy_has_already(release, remedy) -> None:
    town = [f"t{i}" for i in range(N)]
    assert found(table(town=town), policy(release=release))["single-label"].remedy.startswith(remedy)


def test_more_than_half_is_lost() -> None:
    both = found(
        table(town=[f"t{i}" for i in range(N)], age=list(range(N))), policy({"model": "k-anonymity", "k": 500})
    )
    assert "More than half of the table is lost: the loss is more than " in both["half-lost"].fact
    few = {"model": "k-anonymity", "k": 5}
    release = {"algorithm": "suppress_records", "max_suppression": 1.0}
    age = [i if i % 10 else 20 for i in range(N)]
    lost = found(table(age=age, town=["Ulm"] * N), policy(few, release=release))["half-lost"].fact
    assert f"{N - N // 10} of {N} records are suppressed" in lost


# ── where they are told ─────────────────────────────────────────────────────────────────────────────────────


def test_a_finding_is_plain_data_with_a_text() -> None:
    [finding] = shoal.anonymize(table(), policy(K5)).findings
    assert (finding.kind, finding.severity, finding.columns) == ("unprotected", "decide", ("disease",))
    assert str(finding) == f"{finding.fact}. {finding.remedy}."
    assert pickle.loads(pickle.dumps(finding)) == finding
    assert Finding.from_dict(json.loads(json.dumps(finding.as_dict()))) == finding


def test_check_tells_what_the_table_tells_and_with_the_original_the_rest() -> None:
    data = table(year=(2024 - AGE).tolist(), receipt=list(range(N)), person=[f"p{i // 2}" for i in range(N)])
    asked = policy(K5, year="plain", receipt="plain", person="identifier")
    release = shoal.anonymize(data, asked)
    kinds = ["unique-plain", "singled-out", "reveals-quasi", "unprotected", "persons-repeat"]
    assert [finding.kind for finding in release.findings] == kinds
    beside = {finding.kind: finding for finding in shoal.check(release.table, asked, original=data).findings}
    assert set(beside) == set(kinds)
    assert beside["reveals-quasi"].fact == release.findings[kinds.index("reveals-quasi")].fact
    assert beside["persons-repeat"].people is None  # the release has no column with persons
    alone = {finding.kind: finding for finding in shoal.check(release.table, asked).findings}
    assert set(alone) == {"unique-plain", "singled-out", "reveals-quasi", "unprotected"}
    assert "'year' is released unchanged and reveals a coarser quasi-identifier: 'age'" in alone["reveals-quasi"].fact
    assert alone["unprotected"] in release.findings


def test_an_original_without_the_quasi_columns_tells_nothing_more() -> None:
    release = shoal.anonymize(table(), policy(K5))
    assert shoal.check(release.table, policy(K5), original=table().select(["disease"])).findings == release.findings


def test_apply_tells_of_new_rows() -> None:
    from shoal.release.replay import described, replay

    asked = policy(K5, year="plain")
    data = table(year=(2024 - AGE).tolist())
    release = shoal.anonymize(data, asked)
    done = replay(described(release), data)
    assert done.verdicts.findings == release.findings
    assert done.as_dict()["verdicts"]["findings"] == [finding.as_dict() for finding in release.findings]


def test_frames_of_pandas_get_the_same() -> None:
    data = table(year=(2024 - AGE).tolist(), receipt=[float(i) for i in range(N)])
    asked = policy(K5, year="plain", receipt="plain")
    frame: pd.DataFrame = data.to_pandas()
    assert shoal.anonymize(frame, asked).findings == shoal.anonymize(data, asked).findings


def test_two_digit_years_below_the_pivot() -> None:
    """25/01/03 may be a day of 1925 or of 2025, which are generalized with very different people."""
    dated = {"role": "quasi", "hierarchy": {"dates": ["month", "year"], "format": "%y/%m/%d"}}
    births = ["25/01/03"] * 5 + ["26/07/07"] * 5 + ["70/02/03"] * (N - 10)
    said = found(table(birth=births), policy(K5, birth=dated))["two-digit-years"]
    assert said.severity == "decide"
    assert said.columns == ("birth",)
    assert "2 of 3 distinct dates have a year of two digits below the pivot 69" in said.fact
    lower = dated | {"hierarchy": dated["hierarchy"] | {"pivot": 20}}
    assert "two-digit-years" not in found(table(birth=births), policy(K5, birth=lower))
    long = dated | {"hierarchy": {"dates": ["month", "year"], "format": "%Y/%m/%d"}}
    whole = ["20" + text if text < "69" else "19" + text for text in births]
    assert "two-digit-years" not in found(table(birth=whole), policy(K5, birth=long))


def test_a_key_with_nulls_beside_another_key_is_in_doubt() -> None:
    """A number of a case, which some records lack, beside a number that every record has: which is the person?"""
    case = [None if i < 5 else f"c{i // 6}" for i in range(N)]
    same = {"sex": ["f" if i // 6 % 3 else "m" for i in range(N)], "age": [20 + i // 6 % 60 for i in range(N)]}
    data = table(number=[f"n{i}" for i in range(N)], case_id=case, town=["Ulm"] * N, **same)
    both = found(data, policy(number="identifier", case_id="identifier", sex="quasi"))["persons-repeat"]
    assert both.severity == "decide"
    assert "the 5 records without a value in it" in both.remedy
    alone = found(data.drop_columns("number"), policy(case_id="identifier", sex="quasi"))["persons-repeat"]
    assert alone.severity == "stop"


def test_skewed_numbers_are_rounded_in_a_small_proposal() -> None:
    """Days of survival, nearly all different and most of them few."""
    days = [round(1.08**i) + i for i in range(90)]
    people = pa.table({"age": [40 + i % 6 for i in range(90)], "survival": days})
    release = shoal.anonymize(people, shoal.inspect(people).policy)
    assert release.policy.columns["survival"].released is not None
    assert "unique-sensitive" not in {finding.kind for finding in release.findings}


def test_nulls_in_the_same_records_reveal_nothing_more() -> None:
    """Who was not interviewed has neither a wage nor a region: a wage says that there is a region, not which."""
    gone = DRAW.random(N) < 0.4
    wage = [None if absent else float(w) for absent, w in zip(gone, DRAW.integers(0, 40, N), strict=True)]
    south = [None if absent else str(s) for absent, s in zip(gone, DRAW.integers(0, 2, N), strict=True)]
    asked = policy(wage="plain", south={"role": "quasi", "min_level": 1})
    assert "reveals-quasi" not in found(table(wage=wage, south=south), asked)
    same = [None if s is None else 10.0 + int(s) for s in south]
    assert "'south' (for 100 % of" in found(table(wage=same, south=south), asked)["reveals-quasi"].fact
