"""Laws that risks obey on every table."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.risk.belief import beliefs_of
from shoal.risk.identity import table_identity_risk
from shoal.risk.individual import household_risk, risk_of, threshold
from shoal.risk.intervals import deviation_disclosed, rank_disclosed
from shoal.risk.keys import matched
from shoal.risk.loglinear import log_linear
from shoal.risk.suda2 import special_uniques
from shoal.risk.uniqueness import estimated_uniqueness
from shoal.tables.frequency import Domain, count_records


@st.composite
def tables(draw, max_columns=5):
    """Codes of records; the greatest code is the null."""
    q = draw(st.integers(1, max_columns))
    rows = draw(st.lists(st.tuples(*[st.integers(0, 3)] * q), min_size=1, max_size=25))
    codes = np.array(rows, np.int32)
    table, class_of = count_records(tuple("abcde"[:q]), codes, {})
    return replace(table, nulls=(3,) * q), class_of


@given(tables())
def test_prosecutor_risk_has_its_mean_in_the_number_of_classes(given_):
    table, _ = given_
    risk = table_identity_risk(table)
    assert risk.prosecutor.mean == pytest.approx(risk.marketer)
    assert risk.marketer <= risk.prosecutor.max <= 1
    assert sum(band.records for band in risk.prosecutor.bands) == table.n_records


@given(tables(), st.data())
def test_a_larger_population_lowers_the_journalists_risk(given_, data):
    table, _ = given_
    people = np.array([data.draw(st.integers(int(n), 50)) for n in table.counts])
    risk = table_identity_risk(replace(table, population=people))
    assert (risk.journalist_risks <= risk.prosecutor_risks).all()
    assert risk.journalist.mean <= risk.prosecutor.mean + 1e-12


@given(st.floats(1, 500), st.floats(1, 1e7))
def test_individual_risk_lies_between_one_in_the_population_and_one_in_the_sample(f, ratio):
    risk = risk_of(np.array([f]), np.array([f * ratio]))[0]
    assert 1 / (f * ratio) * (1 - 1e-9) <= risk <= 1 / f * (1 + 1e-9)


@given(st.floats(1, 100), st.floats(1, 1e6), st.floats(1.001, 5))
def test_individual_risk_falls_with_the_people_behind_a_record(f, ratio, more):
    few, many = risk_of(np.array([f, f]), np.array([f * ratio, f * ratio * more]))
    assert many < few


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 4)), min_size=1, max_size=20))
def test_a_household_is_at_least_as_risky_as_its_members(members):
    risks, homes = np.array([r for r, _ in members]), np.array([h for _, h in members])
    together = household_risk(risks, homes)
    assert (together >= risks - 1e-12).all()
    assert (together <= 1).all()
    for home in set(homes.tolist()):
        assert together[homes == home] == pytest.approx(1 - np.prod(1 - risks[homes == home]), abs=1e-12)


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=20), st.floats(1e-6, 1))
def test_the_threshold_is_the_greatest_that_reaches_the_rate(risks, rate):
    array = np.array(risks)
    limit = threshold(array, rate)
    assert np.minimum(array, limit).mean() <= rate * (1 + 1e-9)
    if array.mean() > rate:
        assert np.minimum(array, limit * 1.001).mean() > rate * (1 - 1e-9)


@given(tables(), st.randoms(use_true_random=False))
def test_scores_do_not_depend_on_the_order_of_columns(given_, random):
    table, class_of = given_
    order = list(range(len(table.columns)))
    random.shuffle(order)
    codes = table.codes[class_of][:, order]
    other, other_class = count_records(tuple(table.columns[j] for j in order), codes, {})
    one, two = special_uniques(table), special_uniques(other)
    assert one.scores[class_of].tolist() == two.scores[other_class].tolist()
    assert np.allclose(one.contributions[class_of][:, order], two.contributions[other_class])


@given(tables())
def test_exactly_the_sample_uniques_are_special_and_none_in_two_copies(given_):
    table, _ = given_
    assert ((special_uniques(table).scores > 0) == (table.counts == 1)).all()
    assert special_uniques(replace(table, counts=2 * table.counts)).msu == 0


@given(tables())
def test_nulls_that_match_anything_make_nobody_more_special(given_):
    table, _ = given_
    as_value, matching = special_uniques(table), special_uniques(table, nulls="wildcard")
    assert (matching.scores[as_value.scores == 0] == 0).all()


@given(tables(), st.floats(0, 1), st.floats(0, 1))
def test_frequencies_grow_with_alpha_and_never_fall_below_those_of_values(given_, one, other):
    table, _ = given_
    counts = table.counts[None].astype(float)
    less, more = (matched(table, counts, nulls="wildcard", alpha=a) for a in sorted((one, other)))
    assert (counts <= less + 1e-9).all()
    assert (less <= more + 1e-9).all()


@given(tables(), st.floats(0.001, 1))
def test_as_many_uniques_are_matched_as_are_unique_in_the_population_at_least(given_, fraction):
    table, _ = given_
    found = log_linear(table, fraction)
    assert found.population_uniques <= found.matches + 1e-9
    assert found.matches <= found.sample_uniques + 1e-9
    assert (found.rates > 0).all()


@given(st.lists(st.integers(1, 30), min_size=1, max_size=40), st.floats(0.001, 1))
def test_estimates_of_unique_people_lie_within_the_population(counts, fraction):
    found = estimated_uniqueness(np.array(counts), fraction)
    for estimate in (found.zayatz, found.pitman, found.snb):
        assert estimate is None or -1e-9 <= estimate <= found.population_size * (1 + 1e-9)


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=2, max_size=30), st.floats(0, 50))
def test_wider_intervals_disclose_more(pairs, p):
    x, masked = np.array(pairs, float).T
    assert (rank_disclosed(x, masked, p) <= rank_disclosed(x, masked, 2 * p)).all()
    assert (deviation_disclosed(x, masked, p) <= deviation_disclosed(x, masked, 2 * p)).all()
    assert rank_disclosed(x, x, p).all()
    assert deviation_disclosed(x, x, p).all()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_on_average_the_class_tells_no_less_than_the_whole_table(rows):
    codes = np.array([[q] for q, _ in rows], np.int32)
    values, place = np.unique([s for _, s in rows], return_inverse=True)
    domain = Domain("s", tuple(map(str, values)), np.bincount(place).astype(np.int64))
    table, _ = count_records(("q",), codes, {domain: place.astype(np.int32)})
    found = beliefs_of(table.sensitive["s"])
    assert found.gain.mean >= -1e-12  # Σ_E n_E Σ_s p_s² ≥ n Σ_s q_s²
    assert found.gain.max >= -1e-12
    assert found.gain.max_ratio >= 1 - 1e-12
    assert found.counts.sum() == len(rows)
