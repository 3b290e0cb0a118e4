"""Figures of an attack: the interval, the control, and the three questions."""

import json
import math

import numpy as np
import pytest

from shoal.attacks.risk import Attacks, Control, Risk, Tally, percent, wilson


def risk(name="homogeneity", question="inference", successes=5.0, attempts=10, control=None, column="s"):
    return Risk(name, question, column, attempts, successes, control, None, "A sentence.")


@pytest.mark.parametrize(
    ("successes", "attempts", "low", "high"),
    [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0), (1, 100, 0.0018, 0.0545)],
)
def test_wilson_as_tables_have_it(successes, attempts, low, high):
    assert wilson(successes, attempts) == pytest.approx((low, high), abs=5e-5)


def test_wilson_touches_the_ends_exactly_and_knows_nothing_without_attempts():
    assert wilson(0, 7)[0] == 0.0
    assert wilson(7, 7)[1] == 1.0
    assert wilson(0, 0) == (0.0, 1.0)


def test_wilson_solves_its_equation():
    for successes, attempts in ((3, 17), (2.5, 40), (16, 17)):
        rate, z = successes / attempts, 1.959963984540054
        for end in wilson(successes, attempts):
            assert (rate - end) ** 2 == pytest.approx(z * z * end * (1 - end) / attempts)


def test_what_is_left_beside_the_control():
    assert risk(successes=5, control=Control(10, 2, "others")).above == pytest.approx((0.5 - 0.2) / 0.8)
    assert risk(successes=1, control=Control(10, 2, "others")).above == 0.0
    assert risk(successes=10, control=Control(10, 10, "others")).above == 0.0
    assert risk(successes=5).above == 0.5


def test_the_interval_beside_the_control_is_as_wide_as_both_allow():
    found = risk(successes=5, control=Control(20, 4, "others"))
    low, high = found.above_interval
    assert low <= found.above <= high
    (a, b), (c, d) = found.interval, found.control.interval
    assert low == pytest.approx(max(0.0, (a - d) / (1 - d)))
    assert high == pytest.approx((b - c) / (1 - c))
    assert risk().above_interval == risk().interval


def test_a_tally_of_nothing():
    assert Tally(0, 0.0).share == 0.0
    assert Tally.of(np.array([1.0, 0.5, 0.0])) == Tally(3, 1.5)


def test_the_worst_attack_answers_and_insight_does_not_count():
    mild = risk("skewness", successes=3, control=Control(10, 2, "others"))
    insight = risk("exclusion", successes=10)
    alone = risk("singling out", "singling out", successes=0)
    found = Attacks((mild, insight, alone))
    single, link, infer = found.answers()
    assert (single.possible, link.possible, infer.possible) == (False, None, True)
    assert infer.risk is mild
    assert "not measured" in link.sentence
    assert "skewness" in infer.sentence
    assert found.answers({"inference": 0.2})[2].possible is False
    assert Attacks((risk("singling out", "singling out", successes=1),)).answers()[0].possible is True


def test_a_list_of_attacks():
    a, b = risk(successes=1, column="a"), risk(successes=4, column="b")
    found = Attacks((a, b))
    assert len(found) == 2
    assert found[0] is a
    assert found[:1] == (a,)
    assert list(found) == [a, b]
    assert found.named("homogeneity") is b
    assert found.named("homogeneity", "a") is a
    with pytest.raises(KeyError):
        found.named("skewness")


def test_plain_values():
    plain = json.loads(json.dumps(Attacks((risk(control=Control(4, 1, "others")),), ("x: y",), ("z",)).as_dict()))
    (only,) = plain["attacks"]
    assert only["share"] == 0.5
    assert only["control"]["share"] == 0.25
    assert only["control"]["of_whom"] == "others"
    assert only["sentence"] == "A sentence."
    assert math.isclose(only["above"], 1 / 3)
    assert plain["answers"]["inference"]["attack"] == "homogeneity"
    assert plain["answers"]["linkability"]["possible"] is None
    assert (plain["left_out"], plain["notes"]) == (["x: y"], ["z"])


def test_no_percentage_hides_anybody():
    assert [percent(x) for x in (0, 0.0001, 0.5, 0.9999, 1)] == [
        "0 %", "less than 0.1 %", "50 %", "more than 99.9 %", "100 %"
    ]  # fmt: skip
