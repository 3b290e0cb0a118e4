"""Private queries: sensitivities by brute force, intervals that cover, and refusals that cost nothing."""

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.dp.asking import _opened
from shoal.dp.budget import Budget
from shoal.dp.counting import counted_exactly

ASKED: dict[str, Any] = {
    "count": True,
    "persons": True,
    "sum": ["x"],
    "mean": ["x"],
    "quantile": {"x": [0.5]},
    "histogram": ["g"],
    "table": [["g", "x"]],
    "regression": {"y": ["x"]},
    "records_per_person": 2,
    "bounds": {"x": (-3, 7), "y": (0, 1)},
    "categories": {"g": ["a", "b"]},
    "bins": {"x": [-3, 0, 7]},
    "entity": "who",
}
RECORDS = st.tuples(
    st.sampled_from(["p", "q", "r", None]),
    st.sampled_from(["a", "b", "c", None]),
    st.sampled_from(["-9", "-3", "0", "2.5", "7", "1e90", "n/a", None]),
    st.sampled_from([0.0, 0.4, 1.0, 5.0, None, float("nan")]),
)


def statistics(
    records: list[tuple[Any, ...]], contributions: int, by: list[str]
) -> list[dict[tuple[Any, ...], list[int]]]:
    """The exact statistics of every piece of every query, by group; an empty table has none."""
    columns = list(zip(*records, strict=True)) or [()] * 4
    kinds = [pa.string(), pa.string(), pa.string(), pa.float64()]
    table = pa.table({n: pa.array(c, k) for n, c, k in zip(["who", "g", "x", "y"], columns, kinds, strict=True)})
    prepared = _opened(table, "epsilon=1", None, ASKED | {"contributions": contributions, "by": by})
    asks = [one.ask for one in prepared.asks]
    exact = counted_exactly(prepared.rows, asks, by, prepared.unit)
    found = []
    for one, groups in zip(prepared.asks, exact.exact, strict=True):
        for j, piece in enumerate(one.pieces):
            found.append((piece, {key: pieces[j] for key, pieces in groups.items()}))
    return found  # type: ignore[return-value]


@settings(max_examples=4)
@given(st.lists(RECORDS, min_size=2, max_size=9), st.integers(1, 3), st.booleans())
def test_no_person_changes_a_statistic_by_more_than_its_sensitivity(
    records: list[tuple[Any, ...]], contributions: int, grouped: bool
) -> None:
    by = ["g"] if grouped else []
    whole: Any = statistics(records, contributions, by)
    for person in {record[0] for record in records}:
        rest = [record for record in records if record[0] != person]
        if not rest:  # an empty table is refused: that a table has a record is public
            continue
        without: Any = statistics(rest, contributions, by)
        for (piece, one), (_, other) in zip(whole, without, strict=True):
            zeros = [0] * piece.size
            change = [
                abs(a - b)
                for key in {*one, *other}
                for a, b in zip(one.get(key, zeros), other.get(key, zeros), strict=True)
            ]
            assert sum(change) <= piece.sensitivity.l1, piece.name
            assert sum(c * c for c in change) <= piece.sensitivity.l2_squared, piece.name
            if person is None:
                assert not any(change)


def test_the_sensitivity_of_a_sum_is_reached() -> None:
    whole: Any = statistics([("p", "a", "7", 1.0), ("p", "a", "9", 1.0), ("q", "b", "0", 0.0)], 2, [])
    without: Any = statistics([("q", "b", "0", 0.0)], 2, [])
    changes = {
        piece.name: (abs(one[()][0] - other[()][0]), piece.sensitivity.l1)
        for (piece, one), (_, other) in zip(whole, without, strict=True)
    }
    assert changes["sum of x"][0] == changes["sum of x"][1]


def people(n: int = 400) -> pa.Table:
    draw = np.random.default_rng(3)
    age, bmi = draw.integers(18, 90, n), draw.normal(26, 4, n)
    return pa.table({"age": age, "bmi": bmi, "cost": 20 * age + 10 * bmi, "ward": draw.choice(["A", "B"], n)})


FACTS: dict[str, Any] = {
    "bounds": {"age": (0, 100), "bmi": (10, 50), "cost": (0, 3000)},
    "categories": {"ward": ["A", "B", "C"]},
}


@pytest.mark.parametrize("budget", ["epsilon=4", "rho=2"])
def test_the_intervals_contain_the_exact_figures_as_often_as_they_say(budget: str) -> None:
    table = people()
    age = table["age"].to_numpy()
    truth = {
        ("count", ""): len(age), ("sum of age", ""): age.sum(), ("mean of age", ""): age.mean(),
        ("histogram of ward", "A"): (table["ward"].to_numpy() == "A").sum(), ("histogram of ward", "C"): 0,
        ("quantiles of age", "0.5"): np.sort(age)[len(age) // 2 - 1],
    }  # fmt: skip
    runs, missed = 30, dict.fromkeys(truth, 0)
    prepared = _opened(
        table,
        budget,
        None,
        FACTS | {"count": True, "sum": ["age"], "mean": ["age"], "histogram": ["ward"], "quantile": {"age": [0.5]}},
    )
    from shoal.dp.asking import _answered

    exact = counted_exactly(prepared.rows, [one.ask for one in prepared.asks], (), prepared.unit)
    for _ in range(runs):
        for i, one in enumerate(prepared.asks):
            for answer in _answered(one, [()], (), exact.exact[i], 0.95):
                key = (answer.ask, answer.figure.of)
                if key in truth and not answer.figure.low <= truth[key] <= answer.figure.high:
                    missed[key] += 1
    # With 5 % each, more than 10 of 30 has a probability below 1e-6.
    assert max(missed.values()) <= 10, missed


def test_with_a_large_budget_the_answers_are_almost_exact() -> None:
    table = people()
    answers = shoal.query(
        table, budget="rho=5000", count=True, mean=["age"], quantile={"age": [0.5]},
        regression={"cost": ["age", "bmi"]},         by=["ward"], **FACTS,
    )  # fmt: skip
    for ward in ("A", "B"):
        some = table.to_pandas().query("ward == @ward")
        assert answers.of("count", ward=ward)[""].value == len(some)
        assert answers.of("mean of age", ward=ward)[""].value == pytest.approx(some.age.mean(), abs=0.05)
        assert answers.of("quantiles of age", ward=ward)["0.5"].value == pytest.approx(some.age.median(), abs=1.5)
        line = answers.of("regression of cost on age, bmi", ward=ward)
        assert line["age"].value == pytest.approx(20, abs=1)
        assert line["age"].low <= 20 <= line["age"].high
    assert answers.of("count", ward="C")[""].value == 0  # a listed group without people is answered too


def test_unknown_keys_are_shown_only_where_many_people_are() -> None:
    table = pa.table({"town": ["big"] * 500 + ["tiny"] + [None] * 300})
    answers = shoal.query(table, budget="epsilon=1,delta=1e-9", count=True, by=["town"])
    assert [answer.group["town"] for answer in answers] == [None, "big"]


def test_the_records_of_a_person_are_limited_and_what_it_costs_can_be_asked() -> None:
    table = pa.table({"who": ["a"] * 50 + ["b"] * 2 + [None] * 9})
    asked = {"count": True, "persons": True, "records_per_person": 3, "entity": "who", "contributions": 4}
    answers = shoal.query(table, budget="rho=9000", **asked)
    found = {(answer.ask, answer.figure.of): answer.figure.value for answer in answers}
    assert found == {
        ("count", ""): 6, ("persons", ""): 2,
        ("people by number of records", "1"): 0, ("people by number of records", "2"): 1,
        ("people by number of records", "3"): 0, ("people by number of records", "more than 3"): 1,
    }  # fmt: skip


BAD: list[tuple[dict[str, Any], str]] = [
    ({"budget": "epsilon=0"}, "epsilon must be greater than 0"),
    ({"mean": ["bmi"], "bounds": {}}, "'bmi' needs bounds"),
    ({"count": True, "by": ["ward"], "categories": {}}, "'ward' are not listed"),
    ({"budget": "epsilon=1,delta=1e-3", "count": True, "by": ["ward"], "categories": {}, "people": 1000}, "too large"),
    ({"budget": "epsilon=1,delta=1e-9", "count": True}, "would be wasted"),
    ({"histogram": ["cost"]}, "'cost' needs categories or bins"),
    ({"sum": ["wage"], "bounds": {"wage": (0, 1)}}, "no column 'wage'"),
    ({"count": True, "entity": "id"}, "no column 'id'"),
    ({"count": True, "contributions": 2}, "needs an entity"),
    ({"persons": True}, "need an entity"),
    ({}, "nothing is asked"),
    ({"mean": "age"}, "list of columns"),
    ({"mean": ["age"], "bounds": {"age": (9, 9)}}, "lower bound"),
    ({"mean": ["age"], "bounds": {"age": (0, "inf")}}, "must be numbers"),
    ({"mean": ["age"], "granularity": {"age": 0.3}}, "granularity"),
    ({"sum": ["age"], "granularity": {"age": 1e-9}}, "granularity"),
    ({"quantile": {"age": [1.5]}}, "between 0 and 1"),
    ({"regression": {"age": ["age"]}}, "regression"),
    ({"count": True, "confidence": 1}, "confidence"),
    ({"histogram": ["age"], "bins": {"age": [3, 2]}}, "increasing"),
]


@pytest.mark.parametrize(("asked", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_questions_are_refused_and_nothing_is_spent(asked: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    with pytest.raises(shoal.ShoalError, match=message):
        shoal.query(people(20), **({"budget": "epsilon=1", "ledger": shoal.Ledger(path, "epsilon=1")} | FACTS | asked))
    assert not path.exists()


def test_the_plan_does_not_depend_on_the_data_and_spends_nothing(tmp_path: Path) -> None:
    ledger = shoal.Ledger(tmp_path / "ledger.json", "epsilon=1")
    asked: dict[str, Any] = FACTS | {"count": True, "mean": ["age"], "by": ["ward"]}
    plans = [shoal.plan_query(people(n), budget="epsilon=0.5", ledger=ledger, **asked) for n in (5, 300)]
    assert plans[0] == plans[1]
    assert str(plans[0].left) == "ε = 0.5"
    assert not (tmp_path / "ledger.json").exists()
    assert plans[0].as_dict()["cost"] == {"epsilon": "0.5"}


def test_categories_come_from_the_hierarchy_of_a_policy() -> None:
    policy = shoal.Policy.of(
        {
            "columns": {
                "ward": {"role": "quasi", "hierarchy": {"tree": {"all": ["A", "B", "C"]}}},
                "age": {"role": "plain"}, "bmi": {"role": "plain"}, "cost": {"role": "plain"},
            },
            "require": [{"model": "k-anonymity", "k": 2}],
        }
    )  # fmt: skip
    answers = shoal.query(people(), budget="epsilon=1", histogram=["ward"], policy=policy)
    assert [answer.figure.of for answer in answers] == ["A", "B", "C"]


def test_shares_of_several_queries_stay_within_the_budget() -> None:
    prepared = _opened(people(), "epsilon=1", None, FACTS | {"count": True, "mean": ["age", "bmi"], "sum": ["cost"]})
    costs = [cost for one in prepared.asks for cost in one.costs]
    assert len(list(combinations(costs, 2))) == 15
    assert sum(costs) <= Budget.of("epsilon=1").amount


def test_answers_as_csv_have_a_line_for_each_figure() -> None:
    answers = shoal.query(people(), budget="epsilon=1", count=True, by=["ward"], **FACTS)
    lines = answers.as_csv().splitlines()
    assert lines[0] == "ask,ward,of,value,low,high"
    assert len(lines) == 4
    assert answers.as_dict()["answers"][0]["group"] == {"ward": "A"}


def test_values_that_share_a_text_do_not_count_a_person_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    from shoal.dp import counting

    plain = counting.texts_of
    monkeypatch.setattr(counting, "texts_of", lambda rows, name: [text and text.lower() for text in plain(rows, name)])
    table = pa.table({"who": ["p", "p", "q"], "town": ["a", "A", "A"]})
    asked = {"persons": True, "entity": "who", "contributions": 2, "by": ["town"]}
    prepared = _opened(table, "epsilon=1,delta=1e-8", None, asked)
    found = counted_exactly(prepared.rows, [one.ask for one in prepared.asks], ["town"], prepared.unit)
    assert found.people == {("a",): 2}
    assert found.exact[0] == {("a",): [[2]]}
