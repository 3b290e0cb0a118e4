"""Integral privacy: recurrence alone is not enough, and all subsets are the oracle."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv
from typer.testing import CliRunner

import shoal
from shoal.cli.commands import app
from shoal.results.integral.recurrence import IntegralResult
from shoal.results.integral.subsets import Subsets


def incomes() -> pa.Table:
    ordinary = np.random.default_rng(1).normal(30_000, 4_000, 99).round()
    return pa.table({"income": [*ordinary.tolist(), 2_000_000.0]})


def test_a_mean_that_recurs_only_with_or_only_without_the_rich_person_is_not_published() -> None:
    (found,) = shoal.integral_privacy(incomes(), "mean", "income", step=1000, k=20, max_share=0.95)
    assert found.outcome == "fails"
    assert found.published is None
    often = [each for each in found.recurrences if each.generators >= 20]
    assert {each.reason for each in often} == {"1 person in none", "1 person in every generator"}


def test_without_the_rich_person_the_same_mean_is_published() -> None:
    (found,) = shoal.integral_privacy(incomes().slice(0, 99), "mean", "income", step=1000, k=20)
    assert found.holds
    assert found.published == 30_000
    best = found.recurrences[0]
    assert best.overlap.shared == best.overlap.left_out == 0
    assert 1 / 4 < best.overlap.jaccard < 1 / 2
    assert found.loss["error"] < 1000


@given(st.lists(st.integers(0, 9), min_size=2, max_size=7), st.sampled_from(["mean", "sum", "median", "count"]))
def test_few_persons_are_judged_on_all_their_databases(values: list[int], statistic: str) -> None:
    column = None if statistic == "count" else "x"
    table = pa.table({"x": values})
    (found,) = shoal.integral_privacy(table, statistic, column, step=1, k=2, subsets=200, max_share=1.0)
    assert found.exhaustive
    assert found.subsets == 2 ** len(values) - 1
    ordered = sorted(values, key=str)
    generators: dict[int, list[set[int]]] = {}
    for size in range(1, len(values) + 1):
        for chosen in itertools.combinations(range(len(values)), size):
            exact = by_hand(statistic, [ordered[i] for i in chosen])
            generators.setdefault(math.floor(exact + Fraction(1, 2)), []).append(set(chosen))
    assert found.different == len(generators)
    everybody = set(range(len(values)))
    for each in found.recurrences:
        own = generators[int(each.value)]
        assert each.generators == len(own)
        assert each.overlap.shared == len(set.intersection(*own))
        assert each.overlap.left_out == len(everybody - set[int]().union(*own))
        ends = {min(values), max(values)}
        full = statistic != "count" and (len(ends) == 1 or (statistic == "mean" and int(each.value) in ends))
        several = len(own) >= 2 and not set.intersection(*own) and set[int]().union(*own) == everybody
        assert each.qualifies == (several and not full)


def by_hand(statistic: str, values: list[int]) -> Fraction:
    values = sorted(values)
    middle = Fraction(values[(len(values) - 1) // 2] + values[len(values) // 2], 2)
    mean = Fraction(sum(values), len(values))
    # A sum or count of a part is projected to the whole: of all databases, a person is in half.
    return {"mean": mean, "median": middle, "sum": Fraction(2 * sum(values)), "count": Fraction(2 * len(values))}[
        statistic
    ]


@pytest.mark.parametrize("statistic", ["count", "sum"])
def test_a_count_or_sum_does_not_give_the_size_of_the_table_away(statistic: str) -> None:
    found = only(shoal.integral_privacy(pa.table({"x": [1] * 60 + [2] * 41}), statistic, "x", step=1, k=20))
    # Half the people, drawn at random, are not 101 / 2 each time.
    assert found.different > 10
    assert found.published % 2 == 0
    assert max(each.share for each in found.recurrences) < 0.2


def people(n: int = 300) -> pa.Table:
    rng = np.random.default_rng(0)
    age = rng.integers(20, 80, n)
    sex = rng.choice(["f", "m"], n)
    ill = np.where((age > 55) ^ (rng.random(n) < 0.1), "yes", "no")
    cost = 100 + 2 * age + rng.normal(0, 5, n)
    return pa.table({"id": np.arange(n) // 2, "age": age, "sex": sex, "ill": ill, "cost": cost.round(2)})


def only(found: list[IntegralResult]) -> IntegralResult:
    assert len(found) == 1
    return found[0]


def test_a_regression_recurs() -> None:
    found = only(shoal.integral_privacy(people(), "regression", "cost", on=["age"], step=[5, 0.1], k=20, subsets=300))
    assert found.holds
    assert found.published["age"] == pytest.approx(2, abs=0.11)
    assert found.loss["r2_published"] <= found.loss["r2_true"] + 1e-12
    x, y = (np.asarray(people()[name], float) for name in ("age", "cost"))
    slope, intercept = np.polyfit(x, y, 1)
    off = max(abs(found.published["age"] - slope), abs(found.published["intercept"] - intercept))
    assert found.loss["error"] == pytest.approx(off, rel=1e-6)


def test_a_tree_recurs_in_its_canonical_form() -> None:
    found = only(
        shoal.integral_privacy(people(), "tree", "ill", on=["age", "sex"], step=10, depth=2, k=20, subsets=200)
    )
    assert found.holds
    assert found.published.startswith("age < 60 ? ")
    assert found.loss["accuracy"] == found.loss["accuracy_true"] - found.loss["error"] > 0.7


def test_a_tree_splits_as_scikit_learn_does() -> None:
    learned = pytest.importorskip("sklearn.tree")
    table = people()
    age = (np.asarray(table["age"]) // 10).reshape(-1, 1)
    stump = learned.DecisionTreeClassifier(max_depth=1).fit(age, table["ill"].to_pylist())
    found = only(shoal.integral_privacy(table, "tree", "ill", on=["age"], step=10, depth=1, k=2, subsets=50))
    cut = math.floor(stump.tree_.threshold[0]) * 10 + 10
    assert f"age < {cut} ? no : yes" in [each.value for each in found.recurrences]
    assert found.loss["accuracy_true"] == pytest.approx(stump.score(age, table["ill"].to_pylist()))


def test_a_person_is_drawn_with_all_their_records() -> None:
    found = only(shoal.integral_privacy(people(), "mean", "age", step=1, entity="id", k=20, subsets=300))
    assert (found.persons, found.records) == (150, 300)


def test_groups_are_judged_one_by_one_and_missing_values_are_counted() -> None:
    table = pa.table({"x": [1, 2, 3, None, 5, 6], "g": ["a", "a", "a", "a", "b", "b"]})
    found = shoal.integral_privacy(table, "mean", "x", step=10, by="g", k=2, max_share=1.0)
    assert [(each.group, each.persons, each.missing) for each in found] == [("a", 3, 1), ("b", 2, 0)]


def test_the_order_of_rows_and_the_engine_do_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    csv.write_csv(people(), path)
    turned = people().take(np.arange(300)[::-1])
    first = only(shoal.integral_privacy(turned, "mean", "cost", step=2, k=20, subsets=100))
    arguments = ["integral", str(path), "mean", "cost", "--step", "2", "-k", "20", "--subsets", "100", "--json"]
    ran = CliRunner().invoke(app, [*arguments, "--engine", "duckdb"])
    assert ran.exit_code == 0, ran.output
    (told,) = json.loads(ran.stdout)
    assert told["published"] == first.published
    assert told["recurrences"][0]["generators"] == first.recurrences[0].generators


def test_a_rich_person_who_joins_shows_in_the_mean() -> None:
    before, after = incomes().slice(0, 99), incomes()
    found = only(shoal.integral_privacy(before, "mean", "income", step=5000, k=20, after=after))
    assert found.change is not None
    assert not found.change.hidden
    assert found.outcome == "fails"
    assert max(found.change.added, found.change.removed) > 0.95


def test_ordinary_people_who_join_and_leave_do_not_show() -> None:
    table = incomes()
    before, after = table.slice(0, 90), table.slice(9, 90)
    found = only(shoal.integral_privacy(before, "mean", "income", step=500, k=20, after=after))
    assert found.change is not None
    assert found.change.hidden
    assert found.holds
    assert found.change.changes > 20
    assert found.change.by_chance == 0.25


def test_each_version_is_computed_from_its_own_rows_also_where_a_person_changed() -> None:
    before = pa.table({"id": ["a", "b", "c"], "x": [10, 20, 30]})
    after = pa.table({"id": ["a", "b", "c"], "x": [10, 20, 90]})
    found = only(shoal.integral_privacy(before, "mean", "x", step=1, entity="id", k=2, max_share=1.0, after=after))
    assert found.change is not None
    assert (found.change.before, found.change.after) == (20, 40)


def test_what_is_compared_is_what_may_be_published() -> None:
    before, after = incomes().slice(0, 99), incomes().slice(0, 98)
    found = only(shoal.integral_privacy(before, "mean", "income", step=200, k=20, after=after))
    again = only(shoal.integral_privacy(after, "mean", "income", step=200, k=20))
    assert found.change is not None
    assert (found.change.before, found.change.after) == (found.published, again.published)
    assert found.change.shows == (found.published != again.published)
    assert (found.change.added_records, found.change.removed_records) == (0, 1)


@given(
    st.lists(st.integers(0, 6), min_size=2, max_size=4),
    st.lists(st.integers(0, 6), min_size=1, max_size=3),
    st.booleans(),
)
def test_a_change_is_explained_by_all_databases_of_both_versions(kept: list[int], new: list[int], named: bool) -> None:
    before = [(i, x) for i, x in enumerate(kept)]
    after = [*before[1:], *((0 if named else 10 + i, 10 + x) for i, x in enumerate(new))]  # 0 left, or changed
    tables = [pa.table({"id": [i for i, _ in rows], "x": [x for _, x in rows]}) for rows in (before, after)]
    given_ = {"step": 1, "entity": "id", "k": 2, "subsets": 1000, "max_share": 1.0}
    found = only(shoal.integral_privacy(tables[0], "mean", "x", after=tables[1], **given_))
    units = {**{("kept", i): [x] for i, x in before[1:]}, ("gone", 0): [kept[0]]}
    for i, x in after[len(before) - 1 :]:
        units.setdefault(("new", i), []).append(x)
    names = list(units)
    generators: dict[int, list[set[Any]]] = {}
    for size in range(1, len(names) + 1):
        for chosen in itertools.combinations(names, size):
            values = [x for name in chosen for x in units[name]]
            generators.setdefault(math.floor(Fraction(sum(values), len(values)) + Fraction(1, 2)), []).append(
                set(chosen)
            )
    assert found.change is not None
    first, second = (generators.get(int(value), []) for value in (found.change.before, found.change.after))
    if first and second:
        low, high = (
            {name: Fraction(sum(name in own for own in of), len(of)) for name in names} for of in (first, second)
        )
        assert found.change.added == pytest.approx(float(max((1 - low[name]) * high[name] for name in names)))
        assert found.change.removed == pytest.approx(float(max(low[name] * (1 - high[name]) for name in names)))


@pytest.mark.parametrize("statistic", ["sum", "count"])
def test_a_change_is_not_judged_by_what_grows_with_the_table(statistic: str) -> None:
    with pytest.raises(shoal.PolicyError, match="cannot be determined"):
        shoal.integral_privacy(incomes(), statistic, "income", step=100, after=incomes())


@pytest.mark.parametrize(
    ("given_", "match"),
    [
        ({"statistic": "mode"}, "unknown statistic 'mode'"),
        ({"column": None}, "name the column"),
        ({"column": "age"}, "the table has no column 'age'"),
        ({"step": 0}, "step"),
        ({"step": [1, 2]}, "one step"),
        ({"k": 1}, "k must be"),
        ({"share": 1.0}, "share must be"),
        ({"max_share": 0.5}, "max_share"),
        ({"statistic": "tree"}, "columns that explain"),
    ],
)
def test_what_cannot_be_asked_is_refused(given_: dict[str, object], match: str) -> None:
    asked: dict[str, object] = {"statistic": "mean", "column": "income", "step": 100} | given_
    with pytest.raises(shoal.PolicyError, match=match):
        shoal.integral_privacy(incomes(), **asked)  # type: ignore[arg-type]


def test_a_text_is_not_a_number_and_is_not_quoted() -> None:
    with pytest.raises(shoal.DataError, match="1 of 2 distinct values are not numbers") as error:
        shoal.integral_privacy(pa.table({"x": ["12", "Alice"]}), "mean", "x", step=1)
    assert "Alice" not in str(error.value)


def test_a_draw_is_the_same_each_time_and_follows_its_share() -> None:
    subsets = Subsets(1000, 50, 0.3, 7)
    assert all((subsets.members(i) == members).all() for i, members in enumerate(subsets))
    assert np.mean([members.mean() for members in subsets]) == pytest.approx(0.3, abs=0.01)


def test_a_result_that_tells_everybodys_value_is_not_published() -> None:
    everybody_ill = pa.table({"ill": [1] * 60, "x": list(range(60))})
    for statistic in ("mean", "median", "sum", "variance"):
        found = only(shoal.integral_privacy(everybody_ill, statistic, "ill", step=1, k=20, max_share=0.95))
        assert found.published is None, statistic
        assert any("same value" in each.reason for each in found.recurrences)
    nearly = pa.table({"ill": [1] * 199 + [0]})
    found = only(shoal.integral_privacy(nearly, "mean", "ill", step=0.1, k=20, max_share=0.95))
    assert found.published is None
    assert "least or the largest" in found.recurrences[0].reason
    half = pa.table({"ill": [1, 0] * 100})
    assert only(shoal.integral_privacy(half, "mean", "ill", step=0.5, k=20)).published == 0.5


def test_a_leaf_or_a_line_that_holds_for_everybody_is_not_published() -> None:
    age = list(range(20, 60)) * 5
    exact = pa.table({"age": age, "ill": ["yes" if x >= 40 else "no" for x in age], "cost": [10.0 * x for x in age]})
    tree = only(shoal.integral_privacy(exact, "tree", "ill", on=["age"], step=10, depth=1, k=20))
    assert tree.published is None
    assert "everybody in 2 of 2 leaves" in tree.recurrences[0].reason
    line = only(shoal.integral_privacy(exact, "regression", "cost", on=["age"], step=1, k=20))
    assert line.published is None
    assert "on the line" in line.recurrences[0].reason
    mixed = pa.table({"age": age, "ill": ["yes" if (x >= 40) != (i % 7 == 0) else "no" for i, x in enumerate(age)]})
    assert only(shoal.integral_privacy(mixed, "tree", "ill", on=["age"], step=10, depth=1, k=20)).published is not None
