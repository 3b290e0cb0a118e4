"""Private queries: answers near the truth, plans, and refusals that cost nothing."""

import math
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.results.dp.budget import Budget
from shoal.results.dp.counting import counted_exactly
from shoal.results.dp.noise import opendp
from shoal.results.dp.query import _opened, _QueryRequest


def people(n: int = 400) -> pa.Table:
    draw = np.random.default_rng(3)
    age, bmi = draw.integers(18, 90, n), draw.normal(26, 4, n)
    ward, born = draw.choice(["A", "B"], n), pa.array(range(n), pa.int32()).cast(pa.date32())
    return pa.table({"age": age, "bmi": bmi, "cost": 20 * age + 10 * bmi, "ward": ward, "born": born})


FACTS: dict[str, Any] = {
    "bounds": {"age": (0, 100), "bmi": (10, 50), "cost": (0, 3000)},
    "categories": {"ward": ["A", "B", "C"]},
}


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
    ({"sum": ["born"], "bounds": {"born": (0, 1)}}, "'born' is of type date"),
    ({"histogram": ["born"], "bins": {"born": [0, 1]}}, "'born' is of type date"),
    ({"histogram": ["ward"], "categories": {"ward": ["", None]}}, "share the label"),
]


@pytest.mark.parametrize(("asked", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_questions_are_refused_and_nothing_is_spent(asked: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    with pytest.raises(shoal.ShoalError, match=message):
        shoal.query(people(20), **({"budget": "epsilon=1", "ledger": shoal.Ledger(path, "epsilon=1")} | FACTS | asked))
    assert not path.exists()


def test_the_plan_has_the_figures_of_opendps_typical_workflow() -> None:
    # In its guide, ε = 1 is spent on three queries about numbers between 0 and 100: the noise of a count has scale 3,
    # and differs from 0 by no more than 9 with 95 % confidence; that of a sum is 100 times as much.
    rows = pa.table({"x": list(range(100))})
    asked = {"count": True, "sum": ["x"], "histogram": ["x"]}
    known = {"bounds": {"x": (0, 100)}, "bins": {"x": 10}, "granularity": {"x": 1}}
    count, total, bins = shoal.plan_query(rows, budget="epsilon=1", **asked, **known).pieces
    assert (count.noise, count.width) == ("discrete Laplace, scale 3", 9)
    assert (total.noise, total.width) == ("discrete Laplace, scale 300", math.ceil(300 * math.log(20) - 0.5))
    assert (bins.noise, bins.width) == (count.noise, count.width)
    accuracy = opendp().discrete_laplacian_scale_to_accuracy(scale=3.0000000000000004, alpha=0.05)
    assert accuracy == pytest.approx(9.445721638273584)  # of which the whole part may be taken


def test_the_plan_does_not_depend_on_the_data_and_spends_nothing(tmp_path: Path) -> None:
    ledger = shoal.Ledger(tmp_path / "ledger.json", "epsilon=1")
    asked: dict[str, Any] = FACTS | {"count": True, "mean": ["age"], "by": ["ward"]}
    plans = [shoal.plan_query(people(n), budget="epsilon=0.5", ledger=ledger, **asked) for n in (5, 300)]
    assert plans[0] == plans[1]
    assert str(plans[0].left) == "ε = 0.5"
    assert not (tmp_path / "ledger.json").exists()
    assert plans[0].as_dict()["cost"] == {"epsilon": "0.5"}


def test_a_table_without_records_is_answered_like_any_other(tmp_path: Path) -> None:
    # One person fewer than a table of one: a refusal would reveal that nobody is there.
    path = tmp_path / "nobody.csv"
    path.write_text("age,bmi,cost,ward,born\n")
    asked: dict[str, Any] = {"count": True, "mean": ["age"], "quantile": {"bmi": [0.5]}, "by": ["ward"]} | FACTS
    for nobody in (people(9).slice(0, 0), people(9).slice(0, 0).to_pandas(), path):
        answers = shoal.query(nobody, budget="rho=9000", **asked)
        assert [(answer.ask, answer.group["ward"]) for answer in answers] == [
            (ask, ward) for ask in ("count", "mean of age", "quantiles of bmi") for ward in "ABC"
        ]
        assert [answer.figure.value for answer in answers][:3] == [0, 0, 0]
    made = shoal.synthesize(path, budget="rho=9000", columns=["ward"], **FACTS)
    made.save(tmp_path / "one.csv")  # the noisy count says none, and a file without rows could not be written
    assert made.table.num_rows == 1
    with pytest.raises(shoal.DataError, match="no rows"):
        shoal.anonymize(people(9).slice(0, 0), k=2, quasi=["age"])


def test_the_epsilon_that_is_told_for_a_rho_comes_with_all_of_delta() -> None:
    asked: dict[str, Any] = {"count": True, "by": ["ward"]}
    notes = shoal.plan_query(people(5), budget="rho=0.5,delta=3e-7", **asked).notes
    assert notes[1].endswith("with δ = 1.3e-6.")  # 1e-6 of the conversion and 3e-7 of the keys


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
    prepared = _opened(
        people(), "epsilon=1", None, _QueryRequest(**FACTS, count=True, mean=["age", "bmi"], sum=["cost"])
    )
    costs = [cost for one in prepared.calibrations for cost in one.costs]
    assert len(list(combinations(costs, 2))) == 15
    assert sum(costs) <= Budget.of("epsilon=1").amount


def test_answers_as_csv_have_a_line_for_each_figure() -> None:
    answers = shoal.query(people(), budget="epsilon=1", count=True, by=["ward"], **FACTS)
    lines = answers.as_csv().splitlines()
    assert lines[0] == "ask,ward,of,value,low,high"
    assert len(lines) == 4
    assert answers.as_dict()["answers"][0]["group"] == {"ward": "A"}


def test_values_that_share_a_text_do_not_count_a_person_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    from shoal.results.dp import counting

    plain = counting.texts_of
    monkeypatch.setattr(counting, "texts_of", lambda rows, name: [text and text.lower() for text in plain(rows, name)])
    table = pa.table({"who": ["p", "p", "q"], "town": ["a", "A", "A"]})
    asked = {"persons": True, "entity": "who", "contributions": 2, "by": ["town"]}
    prepared = _opened(table, "epsilon=1,delta=1e-8", None, _QueryRequest(**asked))
    found = counted_exactly(prepared.rows, [one.statistic for one in prepared.calibrations], ["town"], prepared.unit)
    assert found.people == {("a",): 2}
    assert found.exact[0] == {("a",): [[2]]}
