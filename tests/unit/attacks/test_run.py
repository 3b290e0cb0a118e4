"""shoal.attack: what is given to the intruder, and what comes of it."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import shoal
from shoal.errors import DataError, PolicyError

PEOPLE = pa.table({
    "name": ["Ada", "Bo", "Cy", "Di", "Ed", "Flo"],
    "age": ["21", "24", "27", "33", "36", "39"],
    "sex": ["f", "m", "f", "m", "f", "m"],
    "disease": ["flu", "flu", "hiv", "flu", "gout", "hiv"],
})  # fmt: skip
RELEASE = pa.table({"age": ["20-29"] * 3 + ["30-39"] * 3, "sex": ["*"] * 6, "disease": PEOPLE["disease"]})
POLICY = shoal.Policy.of({
    "columns": {
        "name": {"role": "identifier"},
        "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}},
        "sex": {"role": "quasi"},
        "disease": {"role": "sensitive"},
    },
    "require": [{"model": "k-anonymity", "k": 3}],
})  # fmt: skip
ROLES = {"quasi": ["age", "sex"], "sensitive": ["disease"]}


def test_raw_data_give_everybody_away():
    found = shoal.attack(PEOPLE, **ROLES)
    for name in ("singling out", "identity linking", "homogeneity", "inference"):
        assert found.named(name).share == 1, name
    assert [answer.possible for answer in found.answers()] == [True, True, True]
    assert any("unsorted" in reason for reason in found.left_out)


def test_roles_come_from_a_policy_or_by_name_and_say_the_same():
    by_policy = shoal.attack(RELEASE, original=PEOPLE, policy=POLICY)
    by_name = shoal.attack(RELEASE, original=PEOPLE, **ROLES)
    for mine, theirs in zip(by_name, by_policy, strict=False):
        assert (mine.name, mine.successes, mine.bound) == (theirs.name, theirs.successes, theirs.bound)


def test_a_release_brings_its_original_and_its_policy():
    release = shoal.anonymize(PEOPLE, POLICY)
    found = shoal.attack(release)
    other = shoal.attack(release.table, original=PEOPLE, policy=POLICY)
    assert [risk.as_dict() for risk in found] == [risk.as_dict() for risk in other]
    assert found.named("identity linking").bound <= 1 / 3


def test_frames_and_files_are_the_same(tmp_path):
    pd.DataFrame(RELEASE.to_pydict()).to_csv(tmp_path / "release.csv", index=False)
    one = shoal.attack(tmp_path / "release.csv", original=PEOPLE.to_pandas(), **ROLES)
    two = shoal.attack(RELEASE, original=PEOPLE, **ROLES)
    assert one.as_dict() == two.as_dict()


def test_who_knows_less_finds_less():
    raw = PEOPLE.drop_columns(["name"])
    everything = shoal.attack(raw, original=PEOPLE, **ROLES).named("identity linking")
    sex = shoal.attack(raw, original=PEOPLE, intruder=shoal.Intruder(knows=["sex"]), **ROLES).named("identity linking")
    assert everything.share == 1
    assert sex.share == pytest.approx(1 / 3)
    assert sex.bound == pytest.approx(1 / 3)
    assert "sex" in sex.sentence
    assert "age" not in sex.sentence


# ── The register ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_register_names_those_who_are_there_and_accuses_those_who_are_not():
    register = pa.table(
        {"name": ["Ada", "Zoe", "Flo", "Yan"], "age": ["21", "24", "39", "77"], "sex": ["f", "m", "m", "f"]}
    )
    raw = PEOPLE.drop_columns(["name"])
    found = shoal.attack(raw, original=PEOPLE, policy=POLICY, intruder=shoal.Intruder(register=register))
    # Ada and Flo are found; Bo's record fits Zoe, who is not him; nobody fits Yan.
    assert found.named("identity linking").attempts == 4
    assert found.named("identity linking").successes == 2
    assert found.named("singling out").successes == 2
    released = shoal.attack(RELEASE, original=PEOPLE, policy=POLICY, intruder=shoal.Intruder(register=register))
    assert released.named("identity linking").successes == pytest.approx(2 / 3)
    assert released.named("homogeneity").attempts == 6  # attributes are attacked with the original's people


def test_without_names_who_fits_is_taken_to_be_there():
    register = pa.table({"age": ["21", "24", "77"], "sex": ["f", "m", "f"]})
    found = shoal.attack(PEOPLE, original=PEOPLE, intruder=shoal.Intruder(register=register), **ROLES)
    assert found.named("identity linking").successes == 2
    assert [note for note in found.notes if "share no column that identifies people" in note and "upper bound" in note]
    alone = shoal.attack(PEOPLE, intruder=shoal.Intruder(register=register), **ROLES)
    assert [note for note in alone.notes if "without the original" in note and "upper bound" in note]


def test_a_register_that_lacks_a_column_needs_to_say_what_it_knows():
    register = pa.table({"name": ["Ada"], "sex": ["f"]})
    with pytest.raises(PolicyError, match="register has no column 'age'"):
        shoal.attack(RELEASE, original=PEOPLE, intruder=shoal.Intruder(register=register), **ROLES)
    assert shoal.attack(RELEASE, original=PEOPLE, intruder=shoal.Intruder(register=register, knows=["sex"]), **ROLES)


# ── Controls ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_control_group_tells_what_is_learned_about_anybody():
    # Age decides: people who are not in the release are inferred as well as those who are.
    ages = [str(20 + i % 20) for i in range(200)]
    disease = ["flu" if int(age) < 30 else "gout" for age in ages]
    table = pa.table({"age": ["20-29" if int(age) < 30 else "30-39" for age in ages], "disease": disease})
    people = pa.table({"age": ages, "disease": disease})
    alone = shoal.attack(table, original=people, quasi=["age"], sensitive=["disease"])
    beside = shoal.attack(table, original=people, control=people.slice(0, 60), quasi=["age"], sensitive=["disease"])
    assert alone.named("inference").above > 0.9
    risk = beside.named("inference")
    assert (risk.share, risk.control.share, risk.above) == (1, 1, 0)
    assert risk.control.attempts == 60
    assert "not in the release" in risk.control.of_whom


def test_a_control_group_without_sensitive_values_is_linked_only():
    control = PEOPLE.select(["age", "sex"]).slice(0, 2)
    found = shoal.attack(RELEASE, original=PEOPLE, control=control, **ROLES)
    assert found.named("identity linking").control.attempts == 2
    assert "not in the release" not in found.named("homogeneity").control.of_whom


# ── Two releases ────────────────────────────────────────────────────────────────────────────────────────────


def test_two_releases_that_are_safe_alone_are_not_together():
    by_age = RELEASE
    by_sex = pa.table({"age": ["*"] * 6, "sex": PEOPLE["sex"], "disease": PEOPLE["disease"]})
    found = shoal.attack(by_age, original=PEOPLE, intruder=shoal.Intruder(previous=by_sex), **ROLES)
    risk = found.named("complementary release")
    # 20-29 has flu, hiv; 30-39 flu, gout, hiv; f: flu, hiv, gout; m: flu, hiv.
    # So Ada {flu, hiv}, Bo {flu, hiv}, Cy {flu, hiv}, Di {flu, hiv}, Ed {flu, gout, hiv}, Flo {flu, hiv}: nobody yet.
    assert (risk.successes, risk.control.successes) == (0, 0)
    by_group = pa.table({"age": ["21", "24", "*", "*", "*", "*"], "sex": ["*"] * 6, "disease": PEOPLE["disease"]})
    risk = shoal.attack(by_age, original=PEOPLE, intruder=shoal.Intruder(previous=by_group), **ROLES).named(
        "complementary release"
    )
    # Ada may also be behind the stars, as may Bo.
    assert risk.successes == 0
    finer = pa.table(
        {"age": ["20-24"] * 2 + ["25-34"] * 2 + ["35-39"] * 2, "sex": ["*"] * 6, "disease": PEOPLE["disease"]}
    )
    risk = shoal.attack(by_age, original=PEOPLE, intruder=shoal.Intruder(previous=finer), **ROLES).named(
        "complementary release"
    )
    # 20-24: flu alone (known before); 25-34: hiv, flu against 20-29 and 30-39: both; 35-39: gout, hiv: both.
    assert (risk.successes, risk.control.successes) == (2, 2)
    odd = finer.set_column(2, "disease", pa.array(["flu", "gout", "hiv", "gout", "gout", "hiv"]))
    risk = shoal.attack(by_age, original=PEOPLE, intruder=shoal.Intruder(previous=odd), **ROLES).named(
        "complementary release"
    )
    # Ada and Bo {flu, hiv} and {flu, gout}: flu. Cy {flu, hiv} and {hiv, gout}: hiv. Di {flu, gout, hiv} and that.
    assert (risk.successes, risk.control.successes) == (3, 0)


def test_a_previous_release_of_other_columns_is_refused():
    with pytest.raises(PolicyError, match="previous release has no column 'sex'"):
        shoal.attack(RELEASE, original=PEOPLE, intruder=shoal.Intruder(previous=RELEASE.drop_columns(["sex"])), **ROLES)


# ── Order ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("gone", [0, 3])
def test_kept_order_gives_everybody_away_and_random_order_nobody(gone):
    n = 400
    random = np.random.default_rng(0)
    people = pa.table({"age": [str(a) for a in random.integers(20, 80, n)], "cost": [str(i) for i in range(n)]})
    release = pa.table({"age": ["20-79"] * n, "cost": people["cost"]}).slice(0, n)
    kept = np.delete(np.arange(n), [5, 77, 300][:gone])
    release = release.take(pa.array(kept))
    roles = {"quasi": ["age"], "sensitive": ["cost"]}
    assert shoal.attack(release, original=people, **roles).named("unsorted matching").share == 1
    mixed = release.take(pa.array(random.permutation(len(kept))))
    risk = shoal.attack(mixed, original=people, **roles).named("unsorted matching")
    assert risk.share < 0.15
    assert risk.above < 0.03


def test_a_row_that_stands_elsewhere_does_not_hide_the_order_of_the_others():
    n = 100
    people = pa.table({"age": ["30"] * n, "cost": [str(i) for i in range(n)]})
    moved = people.take(pa.array([5, *range(5), *range(6, n)]))
    found = shoal.attack(moved, original=people, quasi=["age"], sensitive=["cost"])
    assert found.named("unsorted matching").successes == n - 1


def test_shoal_shuffles_unless_told_not_to():
    n = 60
    table = pa.table({"age": [str(20 + i % 10) for i in range(n)], "cost": [str(i) for i in range(n)]})
    fields = {
        "columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [10]}}, "cost": {"role": "sensitive"}},
        "require": [{"model": "k-anonymity", "k": 30}],
    }
    shuffled = shoal.anonymize(table, shoal.Policy.of(fields))
    kept = shoal.anonymize(table, shoal.Policy.of(fields | {"release": {"shuffle": False}}))
    assert shoal.attack(shuffled).named("unsorted matching").above < 0.2
    assert shoal.attack(kept).named("unsorted matching").above == 1


# ── Who is who ──────────────────────────────────────────────────────────────────────────────────────────────


def test_the_referee_may_know_whose_record_is_whose():
    people = PEOPLE.append_column("id", pa.array(list("abcdef")))
    release = RELEASE.append_column("id", pa.array(list("abcdef"))).slice(1)
    told = shoal.attack(release, original=people, id="id", **ROLES).named("identity linking")
    guessed = shoal.attack(release, original=people, **ROLES).named("identity linking")
    assert guessed.successes == pytest.approx(3 / 2 + 1)  # Ada is gone, but two records fit her
    assert told.successes == pytest.approx(2 / 2 + 1)
    swapped = release.set_column(
        3, "id", pa.array(list("fedcb"))
    )  # who is in the other class is not among those who fit
    assert shoal.attack(swapped, original=people, id="id", **ROLES).named("identity linking").successes < told.successes
    with pytest.raises(PolicyError, match="id: the release has no column"):
        shoal.attack(RELEASE, original=people, id="id", **ROLES)
    with pytest.raises(DataError, match="is not unique in the release"):
        shoal.attack(release.set_column(3, "id", pa.array(list("bbcde"))), original=people, id="id", **ROLES)
    for name in ("id", "nope"):  # without an original it would tell nothing, and must not look as if it did
        with pytest.raises(PolicyError, match="there is no original"):
            shoal.attack(release, id=name, **ROLES)


def test_five_records_of_one_person_are_no_crowd():
    table = pa.table({"who": ["a"] * 5 + ["b"] * 2, "age": ["21"] * 5 + ["33"] * 2, "disease": ["flu"] * 7})
    policy = shoal.Policy.of({
        "columns": {"who": {"role": "identifier"}, "age": {"role": "quasi"}, "disease": {"role": "sensitive"}},
        "require": [{"model": "k-anonymity", "k": 1}],
        "release": {"entity": "who"},
    })  # fmt: skip
    release = shoal.anonymize(table, policy)
    found = shoal.attack(release)
    assert found.named("singling out").share == 1
    assert found.named("identity linking").share == 1
    blind = shoal.attack(release.table, original=table, policy=policy)
    assert any("'who'" in note for note in blind.notes)


# ── Releases that changed values ────────────────────────────────────────────────────────────────────────────


def test_values_that_were_changed_are_linked_by_distance():
    people = pa.table(
        {"x": [1.0, 2.0, 3.0, 11.0, 12.0, 13.0], "y": [1.0, 2.0, 3.0, 1.0, 2.0, 3.0], "s": list("aabccc")}
    )
    means = pa.table({"x": [2.2] * 3 + [12.2] * 3, "y": [2.2] * 6, "s": list("aabccc")})
    found = shoal.attack(means, original=people, quasi=["x", "y"], sensitive=["s"])
    assert found.named("identity linking").share == pytest.approx(1 / 3)
    assert found.named("homogeneity").successes == 3
    assert any("nearest" in note for note in found.notes)
    noise = pa.table({"x": [1.1, 2.1, 3.1, 11.1, 12.1, 13.1], "y": people["y"], "s": list("aabccc")})
    assert shoal.attack(noise, original=people, quasi=["x", "y"], sensitive=["s"]).named("identity linking").share == 1


def test_people_who_were_left_out_are_no_sign_of_changed_values():
    found = shoal.attack(RELEASE.slice(0, 3), original=PEOPLE, **ROLES)
    assert not any("nearest" in note for note in found.notes)
    assert found.named("identity linking").successes == pytest.approx(1)


# ── Sampling, nulls, errors ─────────────────────────────────────────────────────────────────────────────────


def test_a_sample_is_drawn_with_the_seed():
    people = pa.table({"age": [str(i % 50) for i in range(500)], "s": ["a", "b"] * 250})
    roles = {"quasi": ["age"], "sensitive": ["s"]}
    one = shoal.attack(people, original=people, sample=40, seed=3, **roles)
    assert one.named("homogeneity").attempts == 40
    assert one.as_dict() == shoal.attack(people, original=people, sample=40, seed=3, **roles).as_dict()
    assert shoal.attack(people, original=people, sample=None, **roles).named("homogeneity").attempts == 500


def test_nulls_empty_texts_and_one_record():
    table = pa.table({"q": pa.array([None, "", "a"], pa.string()), "s": pa.array([None, "x", None], pa.string())})
    found = shoal.attack(table, quasi=["q"], sensitive=["s"])
    assert found.named("identity linking").share == 1
    assert found.named("homogeneity").share == 1
    one = shoal.attack(table.slice(2), quasi=["q"], sensitive=["s"])
    assert one.named("external knowledge").share == 0
    assert one.named("singling out").share == 1


def test_without_a_sensitive_column_identity_is_left():
    found = shoal.attack(RELEASE, original=PEOPLE, quasi=["age", "sex"])
    assert [risk.name for risk in found] == ["singling out", "identity linking", "unsorted matching", "downcoding"]
    assert any("sensitive" in reason for reason in found.left_out)


def test_similar_by_a_hierarchy():
    fields = POLICY.model_dump(mode="json", exclude_none=True)
    fields["columns"]["disease"]["hierarchy"] = {"tree": {"*": {"viral": ["flu", "hiv"], "other": ["gout"]}}}
    found = shoal.attack(RELEASE, original=PEOPLE, policy=shoal.Policy.of(fields))
    risk = found.named("similarity")
    assert risk.successes == 3  # all in their twenties have something viral
    assert risk.control.successes == pytest.approx(3 * 5 / 6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"quasi": []}, "quasi: specify at least one"),
        ({"quasi": ["height"]}, "release has no column 'height'"),
        ({"quasi": ["age", "name"]}, "release has no column 'name'"),
        ({"quasi": ["age"], "intruder": shoal.Intruder(knows=["sex"])}, "knows: 'sex' is not a quasi-identifier"),
        ({"quasi": ["age"], "sensitive": ["age"]}, "both a quasi-identifier and sensitive"),
    ],
)
def test_what_cannot_be_attacked_is_told(given, message):
    with pytest.raises(PolicyError, match=message):
        shoal.attack(RELEASE, original=PEOPLE, **given)


def test_figures_that_make_no_sense_are_refused():
    with pytest.raises(DataError, match="sample"):
        shoal.attack(RELEASE, **ROLES, sample=0)
    with pytest.raises(DataError, match="excludes"):
        shoal.attack(RELEASE, **ROLES, intruder=shoal.Intruder(excludes=0))


def test_values_written_otherwise_than_in_the_original_are_no_sign_of_safety():
    shouted = RELEASE.set_column(2, "disease", pa.array([d.upper() for d in PEOPLE["disease"].to_pylist()]))
    assert shoal.attack(shouted, original=PEOPLE, **ROLES).as_dict() == plain_result()
    coded = RELEASE.set_column(2, "disease", pa.array(["J10", "J10", "B20", "J10", "M10", "B20"]))
    with pytest.raises(DataError, match="none of its 3 released values matches a value of the original") as error:
        shoal.attack(coded, original=PEOPLE, **ROLES)
    assert "B20" not in str(error.value)


def plain_result():
    return shoal.attack(RELEASE, original=PEOPLE, **ROLES).as_dict()


@pytest.mark.parametrize(
    ("true", "written"),
    [
        (["1500", "23", "7"], ["1,500", "23.0", " 7"]),
        (["1500.0", "23.0", "7.0"], ["1500", "23", "7"]),
        (["2001-02-03", "2001-05-06", "2004-12-31"], ["2001-02-03 00:00:00", "2001-05-06T00:00:00", "2004-12-31"]),
        (["flu", "heart attack", "hiv"], ["Flu ", " heart  attack", "HIV"]),
    ],
)
@pytest.mark.parametrize("mixed", [False, True])
def test_a_sensitive_value_is_the_same_however_it_is_written(true, written, mixed):
    random = np.random.default_rng(3)
    value = random.integers(0, 3, 60)
    value[:20] = 0  # one class has one value, in two ways of writing it if they are mixed
    ages = np.repeat(["20-29", "30-39", "40-49"], 20)
    people = pa.table({"age": [age[:2] for age in ages], "s": np.array(true)[value]})
    as_it_is = pa.table({"age": ages, "s": people["s"]})
    otherwise = np.where((not mixed) | (np.arange(60) % 2 == 0), np.array(written)[value], np.array(true)[value])
    expected, found = (
        shoal.attack(release, original=people, quasi=["age"], sensitive=["s"])
        for release in (as_it_is, pa.table({"age": ages, "s": otherwise}))
    )
    assert expected.named("homogeneity").successes == 20
    assert found.as_dict() == expected.as_dict()


def test_a_control_group_and_an_earlier_release_may_write_values_otherwise():
    random = np.random.default_rng(0)
    ages = np.repeat(["20-29", "30-39"], 30)
    values = random.integers(1, 4, 60)
    people = pa.table({"age": [age[:2] for age in ages], "s": values.astype(str)})
    release = pa.table({"age": ages, "s": values.astype(str)})
    others = pa.table({"age": random.choice(["20", "30"], 40), "s": random.integers(1, 4, 40).astype(str)})
    floats = pa.table({"age": others["age"], "s": [f"{s}.0" for s in others["s"].to_pylist()]})
    earlier = pa.table({"age": ages, "s": [f"{s}.0" for s in values]})
    roles = {"original": people, "quasi": ["age"], "sensitive": ["s"]}
    expected = shoal.attack(release, control=others, intruder=shoal.Intruder(previous=release), **roles)
    assert (
        shoal.attack(release, control=floats, intruder=shoal.Intruder(previous=earlier), **roles).as_dict()
        == expected.as_dict()
    )


def test_sensitive_cells_that_stand_for_nothing_are_no_sign_of_safety():
    ages = np.repeat(["20-29", "30-39"], 300)
    values = np.tile(["flu", "gout", "hiv", "none"], 150)
    people = pa.table({"age": [age[:2] for age in ages], "s": values})
    harmless = shoal.attack(pa.table({"age": ages, "s": values}), original=people, quasi=["age"], sensitive=["s"])
    assert harmless.answers()[2].possible is False
    strange = np.where(np.arange(600) % 4 == 1, np.where(np.arange(600) < 300, "M10", "M1O"), values)
    found = shoal.attack(pa.table({"age": ages, "s": strange}), original=people, quasi=["age"], sensitive=["s"])
    answer = found.answers()[2]
    assert answer.possible is None
    assert answer.missing == "25 % of the cells of 's' could not be interpreted"
    assert found.as_dict()["unread"] == {"s": 0.25}
    singling_out = found.answers()[0]
    assert singling_out.possible is False  # which has nothing to do with what the cells say


def test_ranges_of_a_sensitive_number_are_values_unless_they_overlap():
    ages = np.repeat(["20-29", "30-39"], 20)
    values = np.tile(np.arange(10, 30), 2)
    people = pa.table({"age": [age[:2] for age in ages], "s": values.astype(str)})
    decades = np.where(values < 20, "10-19", "20-29")
    given = {"original": people, "quasi": ["age"], "sensitive": ["s"]}
    found = shoal.attack(pa.table({"age": ages, "s": decades}), **given)
    assert found.named("inference").share == 0.5
    assert found.unread_values == {}
    some = np.where(np.arange(40) % 4 == 0, decades, values.astype(str))
    assert shoal.attack(pa.table({"age": ages, "s": some}), **given).unread_values == {"s": 0.25}


def test_sentences_and_notes_show_no_value():
    found = shoal.attack(RELEASE, original=PEOPLE, **ROLES)
    text = " ".join([risk.sentence for risk in found] + list(found.notes) + list(found.left_out))
    assert not [word for word in ("hiv", "gout", "20-29", "Ada") if word in text]


def test_a_register_without_a_policy_counts_only_those_who_are_there():
    random = np.random.default_rng(0)
    n = 300
    register = pa.table({"name": [f"p{i}" for i in range(n)], "age": random.integers(20, 40, n).astype(str)})
    original = register.slice(0, 60).append_column("illness", pa.array(random.choice(["flu", "gout"], 60)))
    release = original.drop_columns(["name"])
    found = shoal.attack(
        release, original=original, intruder=shoal.Intruder(register=register), quasi=["age"], sensitive=["illness"]
    )
    ages = np.array(register["age"].to_pylist())
    crowd = np.array([(ages[:60] == age).sum() for age in ages])
    really = (1 / crowd[:60]).sum() / n  # the others have no record
    assert found.named("identity linking").share == pytest.approx(really)
    assert not [note for note in found.notes if "upper bound" in note]
    floats = register.set_column(1, "age", pa.array([f"{age}.0" for age in ages]))
    found = shoal.attack(
        release, original=original, intruder=shoal.Intruder(register=floats), quasi=["age"], sensitive=["illness"]
    )
    assert found.named("identity linking").share == pytest.approx(really)


@pytest.mark.parametrize("style", ["{}-{}", "[{}; {}]", "{} to {}"])
def test_ranges_with_the_decimal_mark_of_the_policy_are_read(style):
    policy = shoal.Policy.of({
        "columns": {
            "dose": {"role": "quasi", "hierarchy": {"intervals": [2, 4]}, "decimal": ",", "thousands": "."},
            "s": {"role": "sensitive"},
        },
        "require": [{"model": "k-anonymity", "k": 2}],
    })  # fmt: skip
    doses = ["1.000,250", "1.000,375", "1.002,125", "1.002,875"]
    people = pa.table({"dose": doses, "s": ["flu", "flu", "gout", "hiv"]})
    # None of these numbers shows by itself that its comma is no thousands mark.
    ranges = [style.format("1,000", "1.001,000")] * 2 + [style.format("1.002,000", "1.003,000")] * 2
    found = shoal.attack(pa.table({"dose": ranges, "s": people["s"]}), original=people, policy=policy)
    assert found.unread == {}
    assert found.named("identity linking").share == 0.5
    assert found.named("homogeneity").successes == 2


def test_a_register_and_a_control_group_are_read_by_the_policy():
    policy = shoal.Policy.of({
        "columns": {
            "dose": {"role": "quasi", "decimal": ","},
            "s": {"role": "sensitive"},
        },
        "require": [{"model": "k-anonymity", "k": 1}],
    })  # fmt: skip
    people = pa.table({"dose": ["1,5", "2,5", "3,5"], "s": ["flu", "gout", "hiv"]})
    release = pa.table({"dose": ["1.5", "2.5", "3.5"], "s": ["flu", "gout", "hiv"]})
    found = shoal.attack(
        release, original=people, policy=policy, intruder=shoal.Intruder(register=people), control=people.slice(0, 1)
    )
    assert found.named("identity linking").share == 1
    assert found.named("identity linking").control.claims == 1


@pytest.mark.parametrize("written", [str.upper, " {} ".format, "{}.0".format])
def test_names_and_numbers_of_a_register_are_read_as_those_of_a_release(written):
    random = np.random.default_rng(0)
    ages = [str(20 + i // 2) for i in range(40)]
    names = [f"{i}" if written("1") == "1.0" else f"person {i}" for i in range(40)]
    original = pa.table({"name": names, "age": ages, "illness": random.choice(["flu", "gout"], 40)})
    release = original.select(["age", "illness"]).take(pa.array(random.permutation(40)))
    roles = {"quasi": ["age"], "sensitive": ["illness"]}
    strangers = ["Zoe" if i % 4 else written(name) for i, name in enumerate(names)]
    register = pa.table({"name": strangers, "age": ages})
    found = shoal.attack(release, original=original, intruder=shoal.Intruder(register=register), **roles).named(
        "identity linking"
    )
    assert found.successes == pytest.approx(10 / 2)  # ten of the forty are there, and two records fit each
    decades = pa.table({"name": strangers, "age": [f"{age[0]}0-{age[0]}9" for age in ages]})
    found = shoal.attack(release, original=original, intruder=shoal.Intruder(register=decades), **roles).named(
        "identity linking"
    )
    assert found.attempts == 40


def test_nobody_of_a_register_is_there_under_another_name():
    original = pa.table({"name": ["Ada", "Bob"], "age": ["21", "22"], "illness": ["flu", "gout"]})
    register = pa.table({"name": ["Eve", "Mallory"], "age": ["21", "22"]})
    roles = {"quasi": ["age"], "sensitive": ["illness"]}
    found = shoal.attack(
        original.drop_columns(["name"]), original=original, intruder=shoal.Intruder(register=register), **roles
    )
    assert found.named("identity linking").successes == 0


def test_numbers_with_decimal_commas_can_be_similar():
    table = pa.table({"x": ["a", "a", "b", "b"], "pay": ["10,5", "10,6", "90,5", "90,6"]})
    found = shoal.attack(table, quasi=["x"], sensitive=["pay"])
    assert found.named("similarity").successes == 4
