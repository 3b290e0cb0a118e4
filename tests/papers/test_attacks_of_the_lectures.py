"""The attacks that lectures on k-anonymity warn of, on the tables they show."""

import pyarrow as pa
import pytest

import shoal
from lectures import nine_people

ORIGINAL = nine_people()
COLUMNS = tuple(ORIGINAL.column_names)
RECORDS = [tuple(record.values()) for record in ORIGINAL.to_pylist()]
# The lecture's 2-anonymous answer, written as it is on its slides.
RELEASE = pa.table({
    "race": ["person"] * 9,
    "birth": [f"{record[1][:2]}/**/**" for record in RECORDS],
    "sex": [record[2] for record in RECORDS],
    "zip": ["351**"] * 9,
    "marital": ["single" if record[4] == "single" else "been_married" for record in RECORDS],
    "income": [record[5] for record in RECORDS],
})  # fmt: skip
ROLES = {"quasi": COLUMNS[:5], "sensitive": ["income"]}


@pytest.fixture(scope="module")
def found():
    return shoal.attack(RELEASE, original=ORIGINAL, **ROLES)


def test_the_three_single_women_have_one_income(found):
    risk = found.named("homogeneity")
    assert (risk.attempts, risk.successes) == (9, 3)
    assert "33.3 %" in risk.sentence


def test_who_knows_of_the_expensive_car_knows_the_income_of_the_man(found):
    # Excluding one value tells both men apart; the four women of 1964 have four incomes.
    risk = found.named("exclusion")
    assert (risk.successes, risk.control.successes, risk.bound) == (5, 3, None)
    # The car excludes 11; the other man, who has 11, is left with both.
    named = shoal.attack(
        RELEASE, original=ORIGINAL, intruder=shoal.Intruder(excluded={"income": ["11"]}), **ROLES
    ).named("exclusion")
    assert named.successes == 4
    men = ORIGINAL.slice(3, 2)
    assert (
        shoal.attack(RELEASE, original=men, intruder=shoal.Intruder(excluded={"income": ["11"]}), **ROLES)
        .named("exclusion")
        .successes
        == 1
    )


def test_two_excluded_values_are_not_enough_for_the_four_women_but_three_are(found):
    for excludes, successes in ((1, 5), (2, 5), (3, 9)):
        assert (
            shoal.attack(RELEASE, original=ORIGINAL, intruder=shoal.Intruder(excludes=excludes), **ROLES)
            .named("exclusion")
            .successes
            == successes
        )


def test_identity_is_one_in_k_at_the_most(found):
    risk = found.named("identity linking")
    assert risk.successes == pytest.approx(3)  # one for each class
    assert risk.bound == 1 / 2
    assert found.named("singling out").successes == 0


def test_the_slides_keep_the_order_of_the_rows(found):
    assert found.named("unsorted matching").share == 1
    assert found.answers()[1].possible


# ── External knowledge: cities, ages and illnesses ──────────────────────────────────────────────────────────

CITIES = ["Barcelona"] * 2 + ["Tarragona"] * 3
AGES = ["30"] * 2 + ["60"] * 3


def illnesses(*illness):
    return pa.table({"city": CITIES[: len(illness)], "age": AGES[: len(illness)], "illness": list(illness)})


def test_when_all_in_a_class_are_ill_alike_it_is_known_of_each():
    table = illnesses("Cancer", "Cancer", "AIDS", "AIDS")
    found = shoal.attack(table, quasi=["city", "age"], sensitive=["illness"])
    assert found.named("homogeneity").share == 1


def test_the_one_with_the_heart_attack_knows_that_the_neighbour_has_aids():
    table = illnesses("Cancer", "Cancer", "AIDS", "AIDS", "Heart attack")
    found = shoal.attack(table, quasi=["city", "age"], sensitive=["illness"])
    risk = found.named("external knowledge")
    # Both of Barcelona know it of each other, as everybody does; of Tarragona the one who is different.
    assert (risk.attempts, risk.successes, risk.control.successes) == (5, 3, 2)
    # Among three values nobody is certain.
    other = illnesses("Cancer", "Flu", "AIDS", "Flu", "Heart attack").slice(2)
    risk = shoal.attack(other, quasi=["city", "age"], sensitive=["illness"]).named("external knowledge")
    assert (risk.successes, risk.bound) == (0, 0)


def test_a_relative_with_the_odd_illness_gives_the_others_away():
    table = illnesses("Cancer", "Cancer", "AIDS", "AIDS", "Heart attack")
    risk = shoal.attack(table, quasi=["city", "age"], sensitive=["illness"]).named("relative")
    # Barcelona: certain anyway. The two with AIDS: the relative is the third with chance 1/2.
    assert risk.successes == pytest.approx(2 + 2 * 1 / 2)


# ── Similarity: Bob ─────────────────────────────────────────────────────────────────────────────────────────

SALARIES = pa.table({
    "zip": ["601**"] * 3 + ["6012*"] * 3 + ["601**"] * 3,
    "age": ["2*"] * 3 + ["4*"] * 3 + ["3*"] * 3,
    "income": ["3000", "4000", "5000", "6000", "11000", "8000", "7000", "9000", "10000"],
})  # fmt: skip
BOB = pa.table({"zip": ["60121"], "age": ["23"], "income": ["4000"]})


def test_bob_has_a_low_income_though_his_class_has_three():
    found = shoal.attack(SALARIES, original=BOB, quasi=["zip", "age"], sensitive=["income"])
    assert found.named("homogeneity").successes == 0
    assert found.named("similarity").successes == 1
    assert found.named("identity linking").successes == pytest.approx(1 / 3)


def test_the_other_two_classes_are_mixed():
    found = shoal.attack(SALARIES, quasi=["zip", "age"], sensitive=["income"])
    assert found.named("similarity").successes == 3
    assert (
        shoal.attack(SALARIES, quasi=["zip", "age"], sensitive=["income"], intruder=shoal.Intruder(within=0.2))
        .named("similarity")
        .share
        == 0
    )
    assert (
        shoal.attack(SALARIES, quasi=["zip", "age"], sensitive=["income"], intruder=shoal.Intruder(within=0.7))
        .named("similarity")
        .share
        == 1
    )


# ── Twelve medical records ──────────────────────────────────────────────────────────────────────────────────

MEDICAL = pa.table({
    "age": ["20-29"] * 4 + ["40 - 59"] * 4 + ["30-39"] * 4,
    "zip": ["130**"] * 4 + ["14***"] * 4 + ["1322*"] * 4,
    "nation": ["Any"] * 4 + ["Asian"] * 4 + ["American"] * 4,
    "condition": ["heart", "heart", "viral", "viral", "cancer", "flu", "heart", "flu"] + ["cancer"] * 4,
})  # fmt: skip


def test_the_thirties_have_cancer_and_the_twenties_one_of_two():
    found = shoal.attack(MEDICAL, quasi=["age", "zip", "nation"], sensitive=["condition"])
    assert found.named("homogeneity").successes == 4
    assert found.named("exclusion").successes == 8  # the four of the twenties too
    assert found.named("identity linking").share == pytest.approx(1 / 4)
    assert found.named("inference").successes == pytest.approx(2 + 2 + 4)


def test_somebody_of_28_is_found_by_what_is_known_of_him():
    person = pa.table({"age": ["28"], "zip": ["13068"], "condition": ["viral"]})
    found = shoal.attack(MEDICAL, original=person, quasi=["age", "zip"], sensitive=["condition"])
    assert found.named("identity linking").successes == pytest.approx(1 / 4)
    assert found.named("exclusion").successes == 1


# ── Skewness: one in a hundred ──────────────────────────────────────────────────────────────────────────────


def test_a_class_of_equal_parts_tells_a_lot_where_one_in_a_hundred_is_positive():
    table = pa.table({"age": ["20-29"] * 10 + [">=30"] * 990, "test": ["pos", "neg"] * 5 + ["neg"] * 985 + ["pos"] * 5})
    found = shoal.attack(table, quasi=["age"], sensitive=["test"])
    few = shoal.attack(table, original=table.slice(0, 10), quasi=["age"], sensitive=["test"], seed=1).named("skewness")
    assert few.share == 0.5
    assert few.control.share == pytest.approx(0.01)
    assert few.above == pytest.approx((0.5 - 0.01) / 0.99)
    assert found.named("skewness").share <= found.named("skewness").bound


# ── Minimality: who would have been alone ───────────────────────────────────────────────────────────────────


def test_what_was_not_released_finer_tells_who_is_ill():
    # Wong et al. 2007 in small: two people of one age, both with HIV, and four others; half of a class may share.
    table = pa.table(
        {"age": ["25", "25", "35", "35", "36", "36"], "illness": ["hiv", "hiv", "flu", "cold", "gout", "mumps"]}
    )
    policy = shoal.Policy.of({
        "columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}}, "illness": {"role": "sensitive"}},
        "require": [{"model": "alpha-k-anonymity", "alpha": 0.5, "k": 2}],
    })  # fmt: skip
    release = shoal.anonymize(table, policy)
    assert release.levels == {"age": 2}
    risk = shoal.attack(release).named("minimality")
    assert risk.control.successes == pytest.approx(2)  # the class alone: hiv is the most frequent, twice
    assert risk.successes == pytest.approx(3, abs=0.01)  # both of 25 for certain, and one of the four others


def test_sizes_that_explain_everything_tell_nothing():
    table = pa.table({"age": ["25", "35", "36"], "illness": ["hiv", "flu", "cold"]})
    policy = shoal.Policy.of({
        "columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}}, "illness": {"role": "sensitive"}},
        "require": [{"model": "distinct-l-diversity", "l": 2}, {"model": "k-anonymity", "k": 2}],
    })  # fmt: skip
    risk = shoal.attack(shoal.anonymize(table, policy)).named("minimality")
    assert risk.successes == risk.control.successes == pytest.approx(1)
