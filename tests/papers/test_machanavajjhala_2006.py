"""ℓ-diversity (Machanavajjhala et al. 2006): the lecture's income bands, the twelve medical records, the boundaries."""

import math

import pandas as pd
import pytest

import shoal
from shoal.engines.local import LocalEngine
from shoal.models.diversity import shares

# Five classes over five income bands: counts, distinct values, entropy (the lecture rounds shares to two places first).
BANDS = [
    ((50, 0, 30, 50, 10), 4, 1.2540),
    ((110, 5, 5, 5, 5), 5, 0.6426),
    ((20, 50, 40, 10, 20), 5, 1.4701),
    ((0, 0, 10, 70, 40), 3, 0.8877),
    ((40, 10, 80, 20, 60), 5, 1.4104),
]


def bands():
    rows = [
        (f"class {i}", f"band {band}")
        for i, (counts, _, _) in enumerate(BANDS)
        for band, n in enumerate(counts)
        for _ in range(n)
    ]
    return pd.DataFrame(rows, columns=["class", "income"])


def asked(**model):
    columns = {"class": {"role": "quasi"}, "income": {"role": "sensitive"}}
    return shoal.Policy.of({"columns": columns, "require": [model]})


@pytest.mark.parametrize("i", range(5))
def test_each_class_of_income_bands_has_the_distinct_values_and_the_entropy_of_the_lecture(i):
    _, distinct, entropy = BANDS[i]
    frame = bands()
    figures = shoal.measure(frame[frame["class"] == f"class {i}"], quasi=["class"], sensitive=["income"])
    assert figures["l"] == distinct
    assert round(math.log(figures["entropy_l"]), 4) == entropy


def test_the_whole_table_of_bands_is_as_diverse_as_its_worst_class():
    figures = shoal.measure(bands(), quasi=["class"], sensitive=["income"])
    assert figures["l"] == 3
    assert math.log(figures["entropy_l"]) == pytest.approx(0.6426, abs=5e-5)


def test_a_check_names_how_many_classes_and_records_are_at_fault():
    verdicts = shoal.check(bands(), asked(model="entropy-l-diversity", l=2.5))
    assert not verdicts.holds
    # ln 2.5 = 0.916: the second class (130 records) and the fourth (120) are below.
    assert (verdicts.verdicts[0].classes, verdicts.verdicts[0].records) == (2, 250)
    assert shoal.check(bands(), asked(model="distinct-l-diversity", l=3)).holds
    assert shoal.check(bands(), asked(model="entropy-l-diversity", l=1.9)).holds


# --- twelve medical records ------------------------------------------------------------------------------------

MEDICAL = [
    ("20-29", "130**", "*", ["heart", "heart", "viral", "viral"]),
    ("40-59", "14***", "Asian", ["cancer", "flu", "heart", "flu"]),
    ("30-39", "1322*", "American", ["cancer", "cancer", "cancer", "cancer"]),
]
QUASI = ["age", "zip", "nationality"]


def medical():
    rows = [(age, code, nation, illness) for age, code, nation, ills in MEDICAL for illness in ills]
    return pd.DataFrame(rows, columns=[*QUASI, "illness"])


def test_the_twelve_medical_records_have_two_three_and_one_distinct_values():
    frame = medical()
    found = [
        shoal.measure(frame[frame["zip"] == code], quasi=QUASI, sensitive=["illness"])["l"] for _, code, _, _ in MEDICAL
    ]
    assert found == [2, 3, 1]
    assert shoal.measure(frame, quasi=QUASI, sensitive=["illness"])["k"] == 4
    assert shoal.measure(frame, quasi=QUASI, sensitive=["illness"])["l"] == 1


def test_the_shares_of_the_medical_table_and_of_its_second_class_are_those_of_the_lecture():
    columns = {name: {"role": "quasi"} for name in QUASI} | {"illness": {"role": "sensitive"}}
    policy = shoal.Policy.of({"columns": columns, "require": [{"model": "k-anonymity", "k": 4}]})
    histogram = LocalEngine.of(medical()).count(policy).table.sensitive["illness"]
    texts = histogram.domain.texts
    whole = dict(zip(texts, histogram.domain.shares, strict=True))
    assert whole == pytest.approx({"heart": 1 / 4, "flu": 1 / 6, "viral": 1 / 6, "cancer": 5 / 12})
    by_class = [{} for _ in range(histogram.n_classes)]
    for c, value, share in zip(histogram.class_of_entry, histogram.values, shares(histogram), strict=True):
        by_class[c][texts[value]] = share
    second = next(found for found in by_class if "flu" in found)
    assert second == pytest.approx({"heart": 1 / 4, "flu": 1 / 2, "cancer": 1 / 4})


# --- boundaries --------------------------------------------------------------------------------------------------


def one_class(*counts):
    """One class in which values occur so often."""
    values = [f"band {i}" for i, n in enumerate(counts) for _ in range(n)]
    return pd.DataFrame({"class": "a", "income": values})


@pytest.mark.parametrize("l", [1, 2, 3, 5, 6, 7, 10, 11, 13, 50, 97])
@pytest.mark.parametrize("each", [1, 3, 7])
def test_exactly_l_values_in_equal_shares_are_entropy_l_diverse(l, each):
    assert shoal.check(one_class(*[each] * l), asked(model="entropy-l-diversity", l=l)).holds


@pytest.mark.parametrize("l", [2, 3, 10, 50])
def test_l_values_in_almost_equal_shares_are_not_entropy_l_diverse(l):
    counts = [1001, *[1000] * (l - 1)]
    assert not shoal.check(one_class(*counts), asked(model="entropy-l-diversity", l=l)).holds


@pytest.mark.parametrize(
    ("c", "counts"),
    [(1, (3, 3)), (0.1, (3, *[3] * 10)), (0.3, (3, *[2] * 5)), (1.1, (11, 5, 5)), (0.7, (7, 5, 5)), (3, (3, 1))],
)
def test_recursive_diversity_is_strict_so_r1_equal_to_c_times_the_tail_fails(c, counts):
    assert not shoal.check(one_class(*counts), asked(model="recursive-l-diversity", c=c, l=2)).holds
    more = (*counts, 1)
    assert shoal.check(one_class(*more), asked(model="recursive-l-diversity", c=c, l=2)).holds


def test_the_tail_of_recursive_diversity_is_a_sum_from_the_lth_value_on():
    counts = (6, 4, 3, 2, 1)  # r_1 = 6; the tail from the third value on is 3 + 2 + 1 = 6
    assert not shoal.check(one_class(*counts), asked(model="recursive-l-diversity", c=1, l=3)).holds
    assert shoal.check(one_class(*counts), asked(model="recursive-l-diversity", c=1.01, l=3)).holds
    assert shoal.check(one_class(*counts), asked(model="recursive-l-diversity", c=1, l=2)).holds
    assert shoal.measure(one_class(*counts), quasi=["class"], sensitive=["income"], l=3)["recursive_c"] == 1


def test_fewer_than_l_values_are_recursive_diverse_for_no_c():
    assert not shoal.check(one_class(5, 5), asked(model="recursive-l-diversity", c=1e9, l=3)).holds
