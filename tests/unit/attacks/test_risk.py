"""Figures of an attack: the interval, the control, and the three questions."""

import json
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.attacks.confidence import LARGE, _within_two, confidence_interval, effective_attempts, spread_above
from shoal.attacks.risk import Attacks, Control, Risk, Tally, percent_words, wilson


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
    mild = risk("skewness", successes=300, attempts=1000, control=Control(1000, 100, "others"))
    insight = risk("exclusion", successes=10)
    alone = replace(risk("singling out", "singling out", successes=0), bound=0.0)
    found = Attacks((mild, insight, alone))
    single, link, infer = found.answers()
    assert (single.possible, link.possible, infer.possible) == (False, None, True)
    assert infer.risk is mild
    assert "not measured" in link.sentence
    assert "skewness" in infer.sentence
    assert found.answers({"inference": 0.4})[2].possible is False
    assert Attacks((risk("singling out", "singling out", successes=1),)).answers()[0].possible is True


def test_the_interval_answers_not_the_estimate():
    few = Attacks((risk("skewness", successes=3, control=Control(10, 2, "others")),))
    (_, _, infer) = few.answers()
    assert infer.risk.above > 0.09
    assert infer.possible is None
    assert "cannot be determined: too few targets" in infer.sentence
    nobody = Attacks((risk("skewness", successes=0),)).answers()[2]
    assert nobody.possible is None  # of ten people, none: that shows little
    assert Attacks((risk("skewness", successes=0, attempts=1000),)).answers()[2].possible is False


def test_cells_that_were_not_understood_leave_it_open():
    many = risk("identity linking", "linkability", successes=3, attempts=1000, column=None)
    read, unread = Attacks((many,)), Attacks((many,), unread={"zip": 0.4, "age": 0.01})
    assert read.answers()[1].possible is False
    answer = unread.answers()[1]
    assert answer.possible is None
    assert answer.sentence.startswith(
        "linkability: cannot be determined: 40 % of the cells of 'zip' could not be interpreted"
    )
    assert "'zip'" in unread.untold("linkability", 0.09)
    assert unread.untold("linkability", 0.5) == ""  # not even all of them would reach that
    assert Attacks((replace(many, bound=0.05),), unread={"zip": 0.4}).answers()[1].possible is False
    assert Attacks((risk("homogeneity", successes=900, attempts=1000),), unread={"zip": 0.4}).answers()[2].possible


def test_what_depends_on_whose_record_is_whose_is_left_open():
    between = replace(risk("identity linking", "linkability", successes=50, attempts=1000), least=0.0, most=400.0)
    between = replace(between, effective=1000.0)
    low, high = between.interval
    assert low == 0
    assert high > 0.4
    answer = Attacks((between,), owners_known=False).answers()[1]
    assert answer.possible is None
    assert "it is unknown which record belongs to whom" in answer.sentence
    assert "which record belongs to whom" in Attacks((between,), owners_known=False).untold("linkability", 0.09)
    assert Attacks((between,), owners_known=False).untold("linkability", 0.5) == ""


def test_people_of_one_class_count_as_fewer():
    credits = np.repeat([1.0, 0.0, 0.0, 1.0, 0.0] * 4, 50)
    together = effective_attempts(credits, np.repeat(np.arange(20), 50))
    assert 10 < together < 25
    assert effective_attempts(credits, np.arange(1000)) == 1000
    assert effective_attempts(np.ones(1000), np.repeat(np.arange(100), 10)) == pytest.approx(100)
    assert effective_attempts(np.ones(1000), np.repeat(np.arange(20), 50)) == pytest.approx(1000 / LARGE)
    assert effective_attempts(np.tile([1.0, 0.0], 500), np.repeat(np.arange(20), 50)) == 1000  # no class differs
    low, high = confidence_interval(0.4, together)
    assert low < wilson(400, 1000)[0]
    assert high > wilson(400, 1000)[1]
    assert confidence_interval(0.0, 0.0) == (0.0, 1.0)
    assert confidence_interval(0.0, 20)[0] == 0
    assert confidence_interval(1.0, 20)[1] == 1


def test_who_is_not_singled_out_is_not_alone_in_that():
    nobody_alike, one_pair = np.arange(1000), np.append(np.arange(999), 998)
    assert effective_attempts(np.ones(1000), nobody_alike) == 1000
    assert effective_attempts(np.ones(1000), nobody_alike, failing=2) == pytest.approx(500)
    assert effective_attempts(np.zeros(1000), nobody_alike, failing=2) == 1000  # who succeeds may do so alone
    assert effective_attempts(np.zeros(1000), nobody_alike, succeeding=2) == pytest.approx(500)
    credits = np.append(np.ones(998), np.zeros(2))
    assert effective_attempts(credits, one_pair, failing=2) == pytest.approx(500, rel=0.01)
    # About two and a half pairs of 2,000: in one draw of twelve there is none, and the interval must allow for them.
    found = shoal.attack(pa.table({"x": [str(i) for i in range(2000)]}), quasi=["x"]).named("singling out")
    assert found.share == 1
    assert found.interval[0] < 1 - 5 / 2000


def test_what_the_control_gets_too_is_not_uncertain():
    random = np.random.default_rng(0)
    classes = np.repeat(np.arange(20), 50)
    often = np.repeat(random.choice([0.1, 0.9], 20), 50)  # the share of the value that each class bets on
    credits = (random.random(1000) < often).astype(np.float64)
    assert confidence_interval(credits.mean(), effective_attempts(credits, classes))[1] - credits.mean() > 0.15
    assert spread_above(credits, often, classes) < 0.1
    same = (credits == 1).astype(np.float64)
    assert 0 < spread_above(credits, same, classes) < 0.1  # equal by chance, perhaps
    assert spread_above(np.ones(5), np.ones(5), np.arange(5)) == 1
    classes, given = np.repeat(np.arange(40), 5), np.repeat([1.0, 0.0], 100)
    more = np.maximum(given, np.repeat([0.0, 0.0, 1.0, 0.0], 50))  # ten of the twenty classes that are not given away
    assert spread_above(more, given, classes) > 0.2 > spread_above(more * (1 - given), given * 0, classes)
    none, alone = np.zeros(2000), np.arange(2000)
    assert spread_above(none, none, alone, succeeding=2) > 5 / 2000 > spread_above(none, none, alone)


def test_an_exact_interval_as_tables_have_it():
    assert confidence_interval(0.5, 10) == pytest.approx((0.1871, 0.8129), abs=5e-5)
    assert confidence_interval(0.1, 10) == pytest.approx((0.0025, 0.4450), abs=5e-5)


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
    assert [percent_words(x) for x in (0, 0.0001, 0.5, 0.9999, 1)] == [
        "0 %", "less than 0.1 %", "50 %", "more than 99.9 %", "100 %"
    ]  # fmt: skip


def test_people_are_tied_to_the_class_of_their_record_too():
    # Who is looked for in one class and has the record in another: what is bet on there depends on it.
    random = np.random.default_rng(0)
    shares = np.array([0.4, 0.25, 0.15, 0.1, 0.06, 0.04])
    rates, alone, tied = [], [], []
    for _ in range(300):
        value, sought, own = random.choice(6, 800, p=shares), *random.integers(0, 20, (2, 800))
        counts = np.zeros((20, 6))
        np.add.at(counts, (own, value), 1)
        credits = (counts.argmax(axis=1)[sought] == value).astype(np.float64)
        rates.append(credits.mean())
        alone.append(confidence_interval(rates[-1], effective_attempts(credits, sought)))
        tied.append(confidence_interval(rates[-1], effective_attempts(credits, np.column_stack([sought, own]))))
    held = [np.mean([low <= np.mean(rates) <= high for low, high in ends]) for ends in (alone, tied)]
    assert held[0] < 0.93 < held[1]


def test_a_record_in_the_own_class_ties_nobody_to_another():
    credits, classes = np.repeat([1.0, 0.0, 0.0, 1.0, 0.0] * 4, 50), np.repeat(np.arange(20), 50)
    assert effective_attempts(credits, np.column_stack([classes, classes])) == effective_attempts(credits, classes)


def test_pairs_who_share_a_class_with_somebody_are_all_of_them():
    random = np.random.default_rng(1)
    for n, classes in ((12, 4), (30, 6), (40, 15)):
        one, other = random.integers(0, classes, (2, n))
        of, other = random.normal(size=n), other + classes
        shared = (one[:, None] == one) | (other[:, None] == other)
        expected = of @ (shared.astype(int) @ shared > 0) @ of
        assert _within_two(of, one, other) == pytest.approx(expected)


def test_who_is_certain_by_two_releases_goes_together_with_all_of_both_classes():
    # On a grid of two by two the one opposite shares no class, but both depend on the two others.
    random = np.random.default_rng(0)
    block = np.repeat(np.arange(200), 4)
    row, column = 2 * block + np.tile([0, 0, 1, 1], 200), 2 * block + np.tile([0, 1, 0, 1], 200)
    ties = np.column_stack([row, column + 400])
    rates, near, far = [], [], []
    for _ in range(400):
        value = random.integers(0, 4, (200, 2, 2))
        beside, below = value[:, :, ::-1], value[:, ::-1, :]
        credits = ((beside != below) | (beside == value)).astype(np.float64).ravel()
        rates.append(credits.mean())
        near.append(confidence_interval(rates[-1], effective_attempts(credits, ties)))
        far.append(confidence_interval(rates[-1], effective_attempts(credits, ties, reaching=True)))
    held = [np.mean([low <= np.mean(rates) <= high for low, high in ends]) for ends in (near, far)]
    assert held[0] < 0.93 < held[1]
