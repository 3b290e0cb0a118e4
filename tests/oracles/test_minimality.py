"""Minimality against every way to hand out the values of each class, one by one."""

from itertools import permutations, product

import numpy as np
import pyarrow as pa
import pytest

import shoal
from examples import tables
from shoal.attacks import value_assignments as dealing
from shoal.errors import InfeasibleError
from shoal.models.measured import InferenceRisk

AGES = ["21", "24", "27", "33", "36"]


def policy(requirements, max_suppression=0.0):
    return shoal.Policy.of({
        "columns": {
            "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}},
            "sex": {"role": "quasi"},
            "illness": {"role": "sensitive"},
        },
        "require": requirements,
        "release": {"max_suppression": max_suppression},
    })  # fmt: skip


def label(age, level):
    width = (1, 10, 20, 100)[level]
    return int(age) // width


def fine(sizes_and_values, requirements):
    """Whether a class with these values passes, written down for the requirements of this test."""
    n, values = len(sizes_and_values), sizes_and_values
    most = max(values.count(v) for v in set(values))
    for one in requirements:
        if one["model"] == "k-anonymity" and n < one["k"]:
            return False
        if one["model"] == "distinct-l-diversity" and len(set(values)) < one["l"]:
            return False
        if one["model"] == "alpha-k-anonymity" and (n < one["k"] or most / n > one["alpha"]):
            return False
    return True


def refused(rows, illness, node, requirements, allowance):
    """Whether too many records lie in failing classes at a node; and whether that is so by sizes alone."""
    classes = {}
    for i, (age, sex) in enumerate(rows):
        classes.setdefault((label(age, node[0]), sex if node[1] == 0 else "*"), []).append(i)
    failing = sum(len(of) for of in classes.values() if not fine([illness[i] for i in of], requirements))
    sizes = [one for one in requirements if one["model"] == "k-anonymity"]
    by_size = sum(len(of) for of in classes.values() if not fine([illness[i] for i in of], sizes))
    return failing > allowance, by_size > allowance


def by_hand(rows, illness, node, requirements, allowance):
    """Expected successes: all ways to deal, those that a finer release forbids, the most likely value of each."""
    n = len(rows)
    lower = [tuple(level - (i == j) for i, level in enumerate(node)) for j in range(2) if node[j] > 0]
    lower = [one for one in lower if not refused(rows, illness, one, requirements, allowance)[1]]
    classes = {}
    for i, (age, sex) in enumerate(rows):
        classes.setdefault((label(age, node[0]), sex if node[1] == 0 else "*"), []).append(i)
    seen = [{} for _ in range(n)]
    possible = 0
    members = list(classes.values())
    for dealt in product(*(permutations([illness[i] for i in of]) for of in members)):
        world = [None] * n
        for of, values in zip(members, dealt, strict=True):
            for i, value in zip(of, values, strict=True):
                world[i] = value
        if all(refused(rows, world, one, requirements, allowance)[0] for one in lower):
            possible += 1
            for i, value in enumerate(world):
                seen[i][value] = seen[i].get(value, 0) + 1
    credit = 0.0
    for i in range(n):
        best = [value for value, times in seen[i].items() if times == max(seen[i].values())]
        credit += (illness[i] in best) / len(best)
    return credit, sum(max(of.values()) == possible for of in seen)


@pytest.mark.parametrize(
    "requirements",
    [
        [{"model": "distinct-l-diversity", "l": 2}],
        [{"model": "k-anonymity", "k": 2}, {"model": "distinct-l-diversity", "l": 2}],
        [{"model": "alpha-k-anonymity", "k": 2, "alpha": 0.5}],
    ],
)
@pytest.mark.parametrize("numbers", tables(40, 15))
@pytest.mark.parametrize("budget", [0.0, 0.3])
def test_what_is_learned_is_what_all_deals_say(requirements, budget, numbers):
    random = np.random.default_rng(0)
    tried = certain = 0
    for i in range(numbers.stop):
        n = int(random.integers(4, 7))
        rows = [(str(random.choice(AGES)), str(random.choice(["F", "M"]))) for _ in range(n)]
        illness = [str(v) for v in random.choice(["flu", "hiv", "gout"], n)]
        if i not in numbers:
            continue
        asked = policy(requirements, budget)
        table = pa.table({"age": [r[0] for r in rows], "sex": [r[1] for r in rows], "illness": illness})
        try:
            release = shoal.anonymize(table, asked)
        except InfeasibleError:
            continue
        attacks = shoal.attack(release)
        if not (found := [risk for risk in attacks if risk.name == "minimality"]):
            continue
        node = release.levels["age"], release.levels["sex"]
        expected, sure = by_hand(rows, illness, node, requirements, asked.allowance(n))
        assert found[0].successes == pytest.approx(expected)
        assert "estimated" not in found[0].sentence
        tried += 1
        certain += sure
    assert tried >= len(numbers) / 8


def test_drawn_deals_come_near_the_listed_ones(monkeypatch):
    table = pa.table(
        {
            "age": ["25"] * 4 + ["35"] * 12,
            "sex": ["F"] * 16,
            "illness": ["hiv"] * 4 + ["flu", "cold", "gout", "mumps"] * 3,
        }
    )
    asked = policy([{"model": "alpha-k-anonymity", "k": 2, "alpha": 0.5}])
    release = shoal.anonymize(table, asked)
    exact = shoal.attack(release).named("minimality")
    monkeypatch.setattr(dealing, "LISTED", 3)
    monkeypatch.setattr(dealing, "DRAWN", 4000)
    drawn = shoal.attack(release).named("minimality")
    assert "estimated" in drawn.sentence
    assert drawn.successes == pytest.approx(exact.successes, abs=3)
    assert exact.successes > exact.control.successes


def small(ages, illness):
    return pa.table({"age": ages, "sex": ["F"] * len(ages), "illness": illness})


def test_four_people_fall_where_only_their_common_value_explains_the_release():
    # The decades were refused, since all values in one of them are the same; only hiv occurs four times.
    requirements = [{"model": "alpha-k-anonymity", "k": 2, "alpha": 0.75}]
    table = small(["25"] * 4 + ["35"] * 12, ["hiv"] * 4 + ["flu", "cold", "gout", "mumps"] * 3)
    release = shoal.anonymize(table, policy(requirements))
    assert (release.levels["age"], release.levels["sex"]) == (2, 0)
    risk = shoal.attack(release).named("minimality")
    assert risk.successes == pytest.approx(4 + 12 / 4)  # the other four values are equally likely for the others
    assert risk.control.successes == pytest.approx(4)  # hiv is the most frequent of all sixteen
    # With four values that occur four times, any of them may be the common one.
    table = small(["25"] * 4 + ["35"] * 12, ["hiv"] * 4 + ["flu", "cold", "gout"] * 4)
    risk = shoal.attack(shoal.anonymize(table, policy(requirements))).named("minimality")
    assert risk.successes == pytest.approx(16 / 4)
    assert risk.above == 0


def test_a_release_that_sizes_explain_tells_nothing_more():
    table = small(["25"] + ["35"] * 5, ["hiv", "flu", "cold", "gout", "flu", "hiv"])
    requirements = [{"model": "k-anonymity", "k": 2}, {"model": "distinct-l-diversity", "l": 2}]
    found = shoal.attack(shoal.anonymize(table, policy(requirements)))
    risk = found.named("minimality")
    assert risk.above == 0
    assert risk.successes == risk.control.successes
    assert found.undecided == {}


def test_where_nothing_explains_the_release_inference_cannot_be_told(monkeypatch):
    n = 60
    table = small(["25"] * 4 + ["35"] * (n - 4), ["hiv"] * 4 + ["flu", "cold", "gout", "mumps"] * ((n - 4) // 4))
    asked = policy([{"model": "alpha-k-anonymity", "k": 2, "alpha": 0.75}])
    release = shoal.anonymize(table, asked)
    monkeypatch.setattr(dealing, "LISTED", 3)
    monkeypatch.setattr(dealing, "DRAWN", 1)
    found = shoal.attack(release)
    assert not [risk for risk in found if risk.name == "minimality"]
    assert "minimality: cannot be determined: no assignment that was tried explains the release" in found.left_out
    tolerant = {"singling out": 1.0, "linkability": 1.0, "inference": 1.0}
    answers = {answer.question: answer for answer in found.answers(tolerant)}
    assert answers["inference"].possible is None
    assert "no assignment that was tried explains the release" in answers["inference"].missing
    assert answers["singling out"].possible is False
    limit = InferenceRisk(max=1.0).judge(found)
    assert (limit.outcome, limit.missing) == ("unknown", answers["inference"].missing)
