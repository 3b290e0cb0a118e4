"""Individual risk (Benedetti, Franconi 1998), on the eight records that sdcMicro ships as francdat."""

from math import log

import pandas as pd
import pytest

from shoal.risk import individual_risk

approx = pytest.approx

KEYS = ["Key1", "Key2", "Key3", "Key4"]


def survey():
    """Two pairs with the same key and four uniques, whose weights say how many people they stand for."""
    rows = [
        (1, 2, 5, 1, 18),
        (1, 2, 1, 1, 45.5),
        (1, 2, 1, 1, 39),
        (3, 3, 1, 5, 17),
        (4, 3, 1, 4, 541),
        (4, 3, 1, 1, 8),
        (6, 2, 1, 5, 5),
        (1, 2, 5, 1, 92),
    ]
    return pd.DataFrame(rows, columns=[*KEYS, "w"])


def test_frequencies_in_the_sample_and_in_the_population():
    risk = individual_risk(survey(), KEYS, weight="w")
    assert risk.sample.tolist() == [2, 2, 2, 1, 1, 1, 1, 2]
    assert risk.population.tolist() == [110, 84.5, 84.5, 17, 541, 8, 5, 110]


def test_uniques_by_their_formula():
    risk = individual_risk(survey(), KEYS, weight="w")
    for i, weight in {3: 17, 4: 541, 5: 8, 6: 5}.items():
        p = 1 / weight
        assert risk.risks[i] == approx(p / (1 - p) * log(1 / p), rel=1e-12)


def test_pairs_by_theirs():
    risk = individual_risk(survey(), KEYS, weight="w")
    for i, people in {0: 110, 1: 84.5, 2: 84.5, 7: 110}.items():
        p = 2 / people
        odds = p / (1 - p)
        assert risk.risks[i] == approx(odds - odds**2 * log(1 / p), rel=1e-12)


def test_the_figures_are_those_of_sdcmicro_to_four_places():
    risk = individual_risk(survey(), KEYS, weight="w")
    assert [round(float(x), 4) for x in risk.risks] == [0.0171, 0.0220, 0.0220, 0.1771, 0.0117, 0.2971, 0.4024, 0.0171]
    assert risk.expected == approx(0.9665, abs=1e-4)


def test_a_unique_of_large_weight_is_safer_than_a_pair_of_small_ones():
    risk = individual_risk(survey(), KEYS, weight="w")
    assert risk.risks[4] < risk.risks[0]


def test_lowering_what_is_over_the_threshold_reaches_the_rate():
    risk = individual_risk(survey(), KEYS, weight="w")
    limit = risk.threshold(0.05)
    assert risk.risks.clip(max=limit).mean() == approx(0.05)
    assert risk.at_risk(limit) == 3
