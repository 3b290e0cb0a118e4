"""Order that gives people away is found, and order that tells nothing is not taken for it."""

import importlib.util
from itertools import permutations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.attacks import unsorted_matching

spec = importlib.util.spec_from_file_location(
    "attacks_order", Path(__file__).parents[3] / "benchmarks" / "attacks_order.py"
)
order = importlib.util.module_from_spec(spec)
spec.loader.exec_module(order)


@pytest.mark.parametrize("name", order.FALLS)
def test_order_that_was_kept_is_found(name):
    for seed in range(3):
        above, share = order.flagged_share(*order.FALLS[name], 200, seed)
        assert above > 0.09, seed
        assert share > (0.3 if "half" in name else 0.9)  # each class is kept or not by a coin


@pytest.mark.parametrize("name", order.SAFE)
def test_order_that_tells_nothing_raises_no_alarm(name):
    seeds = 20
    alarms = sum(order.flagged_share(*order.SAFE[name], 100, seed)[0] > 0 for seed in range(seeds))
    assert alarms <= 4  # at 5 %, more than that would come once in four hundred times


def test_of_few_orders_all_are_tried():
    # A class of four in order: of its 24 orders one is it, and one is it turned round.
    people = pa.table({"age": ["30", "31", "32", "33"], "cost": ["4", "1", "3", "2"]})
    found = set()
    for rows in permutations(range(4)):
        release = pa.table({"age": ["30-39"] * 4, "cost": people["cost"]}).take(pa.array(rows))
        risk = shoal.attack(release, original=people, quasi=["age"], sensitive=["cost"]).named("unsorted matching")
        assert risk.control.share == pytest.approx(0.25)
        if risk.above > 0:
            found.add(rows)
    assert found == set()  # 2 of 24 are more than 5 %
    five = pa.table({"age": ["30"] * 5, "cost": list("41325")})
    release = pa.table({"age": ["30-39"] * 5, "cost": five["cost"]})
    risk = shoal.attack(release, original=five, quasi=["age"], sensitive=["cost"]).named("unsorted matching")
    assert (risk.share, risk.above) == (1, 1)


def test_records_that_say_the_same_tell_nothing_by_their_order():
    people = pa.table({"age": [str(20 + i % 7) for i in range(50)], "cost": ["1"] * 50})
    release = pa.table({"age": ["20-29"] * 50, "cost": people["cost"]})
    risk = shoal.attack(release, original=people, quasi=["age"], sensitive=["cost"]).named("unsorted matching")
    assert risk.above == 0


def test_what_is_found_by_order_and_by_chance_is_counted_exactly():
    random = np.random.default_rng(0)
    n = 60
    ages, costs = random.integers(20, 50, n), random.integers(0, 3, n).astype(str)
    people = pa.table({"age": ages.astype(str), "cost": costs})
    release = pa.table({"age": [f"{a // 10}0-{a // 10}9" for a in ages], "cost": costs})
    risk = shoal.attack(release, original=people, quasi=["age"], sensitive=["cost"]).named("unsorted matching")
    by_chance = [np.mean(costs[ages // 10 == decade] == cost) for decade, cost in zip(ages // 10, costs, strict=True)]
    assert risk.share == 1
    assert risk.control.share == pytest.approx(np.mean(by_chance))


@pytest.mark.parametrize("few", [0, unsorted_matching.MAX_ORDERS])
def test_of_all_orders_of_a_class_one_in_twenty_is_taken_for_no_chance(few, monkeypatch):
    monkeypatch.setattr(unsorted_matching, "MAX_ORDERS", few)  # so that orders are drawn, or all of them tried
    people = pa.table({"age": ["30"] * 5, "cost": list("41325")})
    alarms = 0
    for seed, rows in enumerate(permutations(range(5))):
        release = pa.table({"age": ["30-39"] * 5, "cost": people["cost"]}).take(pa.array(rows))
        found = shoal.attack(release, original=people, quasi=["age"], sensitive=["cost"], seed=seed)
        alarms += found.named("unsorted matching").above > 0
    assert 0 < alarms <= 120 * unsorted_matching.LEVEL
