"""If these fail, the recommended parameters are not the cheapest that are safe enough, or laxer than the policy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import shoal
from shoal.alternatives.dominance import beaten
from shoal.alternatives.frontier import Frontier, Point
from shoal.alternatives.recommend import LECTURE, explore
from shoal.cli.commands import app
from shoal.errors import PolicyError
from shoal.policy import Policy

PEOPLE = pa.table({
    "age": [str(20 + i % 30) for i in range(120)],
    "zip": [("02138", "02139", "02141", "10001")[i % 4] for i in range(120)],
    "disease": [("flu", "hiv", "asthma")[i % 3] for i in range(120)],
})  # fmt: skip


def policy(*require: dict[str, Any], **release: Any) -> Policy:
    return Policy.of({
        "columns": {
            "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10]}},
            "zip": {"role": "quasi", "hierarchy": {"mask": "right"}},
            "disease": {"role": "sensitive"},
        },
        "require": list(require) or [{"model": "k-anonymity", "k": 4}],
        "release": release,
    })  # fmt: skip


def test_k_against_suppression_and_the_policy_among_them() -> None:
    found = shoal.explore(PEOPLE, policy(max_suppression=0.01))
    asked = [(point.asked["k"], point.asked["max_suppression"]) for point in found.frontier]
    assert asked == [(k, s) for k in (2, 3, 4, 5, 10, 20) for s in (0, 0.01, 0.02, 0.05)]
    assert found.own is not None
    assert found.frontier.points[found.own].asked == {"k": 4, "max_suppression": 0.01}
    assert found.chosen == found.own  # no single risk was named
    own = found.frontier.points[found.own]
    release = shoal.anonymize(PEOPLE, policy(max_suppression=0.01))
    assert own.loss == pytest.approx(release.loss["loss"])
    assert own.risk == pytest.approx(1 / release.measured["k"])


def test_l_and_t_are_varied_one_by_one_where_the_policy_has_them() -> None:
    asked = policy(
        {"model": "k-anonymity", "k": 2},
        {"model": "distinct-l-diversity", "l": 2},
        {"model": "t-closeness", "t": 0.3},
    )
    points = [point.asked for point in explore(PEOPLE, asked).frontier]
    assert {point["l"] for point in points} == {2, 3, 4}
    assert {point["t"] for point in points} == {0.1, 0.2, 0.3, 0.5}
    assert all(set(point) == {"k", "l", "t", "max_suppression"} for point in points)
    assert len(points) == len({tuple(point.values()) for point in points}) == 5 * 3 + 2 + 3


def test_different_ls_are_not_made_one() -> None:
    asked = policy({"model": "distinct-l-diversity", "l": 2}, {"model": "entropy-l-diversity", "l": 1.5})
    found = explore(PEOPLE, asked)
    assert [set(point.asked) for point in found.frontier] == [{"max_suppression"}] * 3


@pytest.mark.parametrize("sensitivity", LECTURE)
def test_the_recommendation_is_the_least_loss_that_promises_the_tolerable_risk(sensitivity: str) -> None:
    found = explore(PEOPLE, policy(), sensitivity=sensitivity)
    (told,) = found.recommendations
    least = LECTURE[told.sensitivity][0]  # type: ignore[index]
    assert (told.k, told.tolerable) == (least, 1 / least)
    losses = [point.loss for point in found.frontier if point.feasible and point.asked["k"] >= least]
    assert told.point is not None
    best = found.frontier.points[told.point]
    assert best.loss == min(loss for loss in losses if loss is not None)
    assert best.asked["k"] >= least
    assert best.risk is not None
    assert best.risk <= 1 / least + 1e-12
    assert found.chosen == told.point
    assert f"k between {least} and" in told.sentence


@pytest.mark.parametrize(("risk", "k"), [(0.1, 10), (0.09, 12), (0.2, 5), (1 / 3, 3), (1.0, 1), (0.05, 20)])
def test_the_least_k_of_a_risk(risk: float, k: int) -> None:
    (told,) = explore(PEOPLE, policy(), swept={"k": [2, 12, 60]}, tolerable=risk).recommendations
    assert told.k == k
    assert told.sensitivity is None


def test_nothing_is_that_safe() -> None:
    (told,) = explore(PEOPLE, policy(), swept={"k": [2, 1000]}, tolerable=0.001).recommendations
    assert told.point is None
    assert told.sentence.endswith("none of these releases is that safe and satisfies the rest of the policy.")


def test_a_recommendation_weakens_nothing_that_the_policy_asks() -> None:
    by_age = [("flu", "asthma")[i % 30 // 15] if i % 4 else "stroke" for i in range(120)]
    skewed = PEOPLE.set_column(2, "disease", pa.array(by_age))
    asked = policy(
        {"model": "k-anonymity", "k": 2},
        {"model": "distinct-l-diversity", "l": 2},
        {"model": "t-closeness", "t": 0.2},
        max_suppression=0.02,
    )
    found = explore(skewed, asked, tolerable=0.5)
    (told,) = found.recommendations
    assert told.point is not None
    best = found.frontier.points[told.point]
    assert best.asked["l"] >= 2
    assert best.asked["t"] <= 0.2
    assert best.asked["max_suppression"] <= 0.02
    laxer = [p.loss for p in found.frontier if p.asked["t"] > 0.2 and p.loss is not None]
    assert best.loss is not None
    assert min(laxer) < best.loss  # it would have been cheaper, and was not taken


def test_more_suppression_is_told_and_not_recommended() -> None:
    outlier = pa.concat_tables([PEOPLE, pa.table({"age": ["99"] * 3, "zip": ["90210"] * 3, "disease": ["flu"] * 3})])
    (told,) = explore(outlier, policy(), sensitivity="medium").recommendations
    assert told.point is not None
    assert "max_suppression = 0 has the smallest loss" in told.sentence
    assert "If 0.05 of the records may be suppressed: " in told.sentence
    # Whoever names the shares has them all to choose from.
    named = explore(outlier, policy(), swept={"k": [5], "max_suppression": [0.0, 0.05]}, sensitivity="medium")
    assert "max_suppression = 0.05 has the smallest loss" in named.recommendations[0].sentence


def test_where_k_is_not_swept_the_promise_is_that_of_the_policy() -> None:
    swept = {"max_suppression": [0.0]}
    assert explore(PEOPLE, policy(), swept=swept, tolerable=0.25).recommendations[0].point == 0
    found = explore(PEOPLE, policy({"model": "k-anonymity", "k": 3}), swept=swept, tolerable=0.25)
    assert found.frontier.points[0].risk == 0.25  # classes of four, by accident: three were asked for
    assert found.recommendations[0].point is None


def test_beaten_is_who_loses_more_and_promises_no_more() -> None:
    def point(loss: float | None, risk: float, **asked: float) -> Point:
        return Point(asked, feasible=loss is not None, loss=loss, risk=risk)

    points = (
        point(0.3, 0.2, l=3, t=0.3),
        point(0.3, 0.2, l=3, t=0.3),  # the same is no better
        point(0.2, 0.2, l=2, t=0.3),  # loses less, promises less
        point(0.4, 0.2, l=3, t=0.2),
        point(0.4, 0.3, l=3, t=0.3),  # by the first
        point(None, 0.1, l=3, t=0.3),
        point(0.2, 0.2, l=2, t=0.5),  # by the third
    )
    assert beaten(Frontier("loss", points)) == (False, False, False, False, True, False, True)


def test_three_recommendations_where_nothing_is_named() -> None:
    found = explore(PEOPLE, policy(), swept={"k": [3, 5, 10]})
    assert [each.sensitivity for each in found.recommendations] == ["low", "medium", "high"]
    assert json.loads(json.dumps(found.as_dict())) == found.as_dict()


def test_what_cannot_be_asked() -> None:
    for wrong in ({"tolerable": 0.0}, {"tolerable": 1.5}, {"tolerable": 0.1, "sensitivity": "low"}):
        with pytest.raises(PolicyError, match="explore"):
            explore(PEOPLE, policy(), **wrong)  # type: ignore[arg-type]
    with pytest.raises(PolicyError, match="unknown sensitivity 'secret'"):
        explore(PEOPLE, policy(), sensitivity="secret")


def test_the_command(tmp_path: Path) -> None:
    data, asked = tmp_path / "people.csv", tmp_path / "policy.toml"
    PEOPLE.to_pandas().to_csv(data, index=False)
    policy().save(asked)
    run = CliRunner().invoke
    base = ["explore", str(data), "-p", str(asked), "--sweep", "k=2,5,10"]
    done = run(app, [*base, "--plot", str(tmp_path / "plot.svg"), "--sensitivity", "medium"])
    assert done.exit_code == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert "For data of medium sensitivity, k between 5 and 10 is usual" in text
    assert "recommendations; the publisher decides" in text
    assert (tmp_path / "plot.svg").read_text(encoding="utf-8").startswith("<svg")
    printed = json.loads(run(app, [*base, "--json"]).stdout)
    assert len(printed["points"]) == 3
    assert len(printed["recommendations"]) == 3
    assert run(app, [*base[:-1], "k=1000"]).exit_code == 1
    assert run(app, [*base, "--tolerable", "7"]).exit_code == 2
    assert run(app, [*base, "--plot", str(tmp_path / "plot.gif")]).exit_code == 2
