"""SUDA (Elliot, Manning, Ford 2002; Manning, Haglin, Keane 2008): special uniques and their scores."""

import pandas as pd
import pytest

from shoal.risk import suda

approx = pytest.approx


def survey():
    """Ten people with four keys: the handbook example, not the paper's own, that sdcMicro tests its scores on."""
    rows = [
        ("urban", "female", "secondary, incomplete", "employed"),
        ("urban", "female", "secondary, incomplete", "employed"),
        ("urban", "female", "primary, incomplete", "out of labour force"),
        ("urban", "male", "secondary", "employed"),
        ("rural", "female", "secondary", "unemployed"),
        ("urban", "male", "secondary", "employed"),
        ("urban", "female", "primary", "out of labour force"),
        ("urban", "male", "post-secondary", "unemployed"),
        ("urban", "female", "secondary, incomplete", "out of labour force"),
        ("urban", "female", "secondary, incomplete", "out of labour force"),
    ]
    return pd.DataFrame(rows, columns=["residence", "gender", "education", "labour"])


def test_scores_of_the_example():
    found = suda(survey(), ["residence", "gender", "education", "labour"])
    # The fifth is alone by residence (3! = 6) and by three pairs of columns (2! = 2 each).
    assert found.scores[found.class_of].tolist() == [0, 0, 6, 0, 12, 0, 6, 10, 0, 0]
    assert found.sizes[found.class_of][4].tolist() == [1, 3, 0, 0]
    assert found.sizes[found.class_of][7].tolist() == [1, 2, 0, 0]


def test_what_each_key_adds_to_the_scores():
    found = suda(survey(), ["residence", "gender", "education", "labour"])
    assert found.contributions[found.class_of][4].tolist() == approx([6 / 12, 4 / 12, 4 / 12, 4 / 12])
    # Of 34 points in all: residence 6 + 2 (fifth, eighth), education 6 + 4 + 6 + 6.
    assert found.by_column["residence"] == approx((6 + 2) / 34)
    assert found.by_column["education"] == approx((6 + 4 + 6 + 6) / 34)


def test_a_unique_is_the_more_special_the_fewer_columns_it_needs():
    found = suda(survey(), ["residence", "gender", "education", "labour"])
    dis = found.dis[found.class_of]
    assert dis[4] > dis[7] > dis[2] == dis[6] > dis[0] == 0


def test_dis_by_its_formula():
    found = suda(survey(), ["residence", "gender", "education", "labour"], sampling_fraction=0.1)
    power = {score: score ** (1 + (8 - 4) / 20) for score in (6, 10, 12)}
    total = 2 / power[6] + 1 / power[10] + 1 / power[12]
    pairs = 3  # the first two, the fourth and sixth, the last two
    for row, score in {2: 6, 4: 12, 7: 10}.items():
        assert found.dis[found.class_of][row] == approx(1 / (1 + 2 * pairs * 0.9 / 0.1 / (power[score] * total)))


def test_an_eighteen_year_old_widow_is_special_wherever_she_lives():
    """The text-book special unique: unique by few and by coarse keys."""
    rows = [("18", "widowed", "north"), *[("18", "single", "north"), ("70", "widowed", "north")] * 3]
    rows += [("18", "single", "south"), ("70", "widowed", "south")] * 3
    found = suda(pd.DataFrame(rows, columns=["age", "status", "region"]), ["age", "status", "region"])
    assert found.scores[found.class_of].tolist() == [1.0] + [0.0] * (len(rows) - 1)
    assert found.contributions[found.class_of][0].tolist() == [1, 1, 0]
