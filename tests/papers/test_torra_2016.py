"""V. Torra, G. Navarro-Arribas, "Integral privacy", CANS 2016, and what followed from it.

N. Senavirathne, V. Torra, "Integrally private model selection for decision trees", Computers & Security 83, 2019.
V. Torra, G. Navarro-Arribas, E. Galván, "Explaining recurrent machine learning models: integral privacy revisited",
PSD 2020, which is open access.

Confirmed by the texts that are public, the last one and the authors' page on integral privacy: a result is integrally
private if the databases that generate it are many and diverse; the example of the mean salary of the patients of a
psychiatric department in a small town, where the salary of one person singles that person out; the first paper asks
that changes of a database are not detected; the second, that a tree can be chosen that is both accurate and recurrent.
The figures of the papers were not at hand: the tables below are invented, and small enough to list all databases.
"""

from __future__ import annotations

from itertools import combinations

import pyarrow as pa
import pytest

import shoal
from shoal.results.integral.recurrence import IntegralResult

SALARIES = [1000, 1100, 1200, 1300, 1400, 1250, 1150]
RICH = 90_000


def unit(salaries: list[int]) -> pa.Table:
    return pa.table({"salary": salaries})


def generators(salaries: list[int], value: float, step: int) -> list[tuple[int, ...]]:
    """All non-empty databases, by the places of their records, whose mean rounds to a value."""
    places = range(len(salaries))
    found = (own for n in range(1, len(salaries) + 1) for own in combinations(places, n))
    return [own for own in found if int(sum(salaries[i] for i in own) / len(own) / step + 0.5) * step == value]


def test_the_mean_salary_of_the_unit_is_not_published_with_one_rich_patient():
    (found,) = shoal.integral_privacy(unit([*SALARIES, RICH]), "mean", "salary", step=100, k=2, max_share=1.0)
    assert found.exhaustive
    assert found.outcome == "fails"
    rich = len(SALARIES)
    for each in found.recurrences:
        own = generators([*SALARIES, RICH], each.value, 100)
        assert each.generators == len(own)
        assert len({rich in one for one in own}) == 1  # each mean is generated only with, or only without that patient
    assert max(each.generators for each in found.recurrences) > 30  # however often it recurs


def test_without_that_patient_many_diverse_databases_generate_it():
    (found,) = shoal.integral_privacy(unit(SALARIES), "mean", "salary", step=100, k=20, max_share=1.0)
    assert found.published == 1200
    own = generators(SALARIES, 1200, 100)
    assert found.recurrences[0].generators == len(own) >= 20
    assert set.intersection(*map(set, own)) == set()


def test_a_change_by_an_ordinary_patient_is_not_detected_and_one_by_the_rich_is():
    given = {"step": 100, "k": 20, "max_share": 1.0}
    (ordinary,) = shoal.integral_privacy(unit(SALARIES), "mean", "salary", after=unit([*SALARIES, 1180]), **given)
    assert ordinary.change is not None
    assert not ordinary.change.shows
    assert ordinary.holds
    (rich,) = shoal.integral_privacy(unit(SALARIES), "mean", "salary", after=unit([*SALARIES, RICH]), **given)
    assert rich.change is not None
    assert rich.change.shows
    assert rich.change.added == 1.0  # the patient is in no generator of the one, and in all of the other


AGES = [21, 25, 28, 33, 36, 52, 55, 58, 61]


def tree_of_illness(ill: list[str]) -> IntegralResult:
    people = pa.table({"age": AGES, "ill": ill})
    (found,) = shoal.integral_privacy(people, "tree", "ill", on=["age"], step=10, depth=1, k=50, max_share=1.0)
    assert found.exhaustive
    return found


def test_a_tree_can_be_both_recurrent_and_accurate():
    found = tree_of_illness(["no", "no", "yes", "no", "no", "yes", "yes", "no", "yes"])
    assert found.published == "age < 40 ? no : yes"
    assert found.recurrences[0].generators >= 50
    assert found.loss == {"error": 0.0, "accuracy": pytest.approx(7 / 9), "accuracy_true": pytest.approx(7 / 9)}


def test_a_recurrent_tree_is_not_published_if_everybody_in_a_leaf_has_what_the_leaf_says():
    found = tree_of_illness(["no"] * 5 + ["yes"] * 4)
    tree = found.recurrences[0]
    assert tree.value == "age < 40 ? no : yes"
    # A subset grows it if the oldest of the young is above 30, and some old patient is there to tell apart.
    young = sum(any(AGES[i] > 30 for i in own) for n in range(1, 6) for own in combinations(range(5), n))
    assert tree.generators == young * (2**4 - 1)
    assert tree.reason == "everybody in 2 of 2 leaves has what the leaf says"
    assert found.published is None
