"""Forbidden results are judged by every door: holds, fails, cannot be told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pyarrow.csv
import pytest
from typer.testing import CliRunner

import shoal
from shoal.cli import app
from shoal.errors import CannotTellError, PolicyError, VerificationError
from shoal.release.replay import described

PEOPLE = pa.table(
    {
        "name": list("abcdefgh"),
        "age": [31, 34, 36, 38, 51, 52, 53, 55],
        "zip": ["13053"] * 4 + ["13068"] * 4,
        "disease": ["hiv", "hiv", "hiv", "flu", "flu", "flu", "flu", "hiv"],
        "days": [2, 3, 4, 5, 20, 21, 22, 23],
    }
)
RULE = {"result": "rule", "when": {"age": "30-39"}, "then": {"disease": "hiv"}, "support": 0.3, "confidence": 0.7}
COUNT = {"result": "count", "where": {"zip": "13068", "disease": "hiv"}}
CLASSIFIER = {"result": "classifier", "column": "disease", "on": ["age"], "accuracy": 0.75}
SIGN = {"result": "sign", "column": "days", "of": "age", "sign": "positive"}


def policy_with(*forbid: dict[str, Any], **release: Any) -> dict[str, Any]:
    return {
        "columns": {
            "name": {"role": "identifier"},
            "age": {"role": "quasi", "hierarchy": {"intervals": [10]}},
            "zip": {"role": "quasi", "hierarchy": {"mask": "right"}},
            "disease": {"role": "sensitive"},
            "days": {"role": "sensitive"},
        },
        "require": [{"model": "k-anonymity", "k": 2}],
        "forbid": list(forbid),
        "release": release,
    }


SAFE = policy_with(
    RULE | {"confidence": 0.8}, COUNT | {"min": 2}, CLASSIFIER | {"accuracy": 0.76}, SIGN | {"sign": "negative"}
)
OPEN = policy_with()
MEASLES = policy_with(RULE | {"then": {"disease": "measles"}})


def outcomes(verdicts: shoal.Verdicts) -> list[str]:
    return [verdict.outcome for verdict in verdicts.verdicts[1:]]


@pytest.mark.parametrize("forbidden", [RULE, COUNT, CLASSIFIER, SIGN])
@pytest.mark.parametrize("engine", ["local", "duckdb"])
def test_anonymize_refuses_a_release_from_which_a_result_comes_out(forbidden, engine):
    data = PEOPLE if engine == "local" else ibis.memtable(PEOPLE)
    with pytest.raises(VerificationError, match=r"forbid\.0: .*comes out of the finished release") as refused:
        shoal.anonymize(data, policy_with(forbidden))
    assert "hiv" not in str(refused.value)
    assert "13068" not in str(refused.value)


@pytest.mark.parametrize("engine", ["local", "duckdb"])
def test_what_does_not_come_out_is_released_and_verified(engine, tmp_path):
    release = shoal.anonymize(PEOPLE if engine == "local" else ibis.memtable(PEOPLE), SAFE)
    assert outcomes(release.verdicts) == ["holds"] * 4
    assert [verdict.worst for verdict in release.verdicts.verdicts[1:]] == pytest.approx([0.75, 1, 0.75, 0.9])
    certificate = release.save(tmp_path / "out.parquet")
    found = shoal.verify_certificate(certificate, tmp_path / "out.parquet")
    assert found.holds
    assert sum("forbid." in line.name for line in found) == 4


def test_the_written_file_is_mined_again(tmp_path, monkeypatch):
    from shoal.release import publish

    release = shoal.anonymize(PEOPLE, SAFE)
    monkeypatch.setattr(publish, "mine", lambda written, policy: None)
    with pytest.raises(CannotTellError, match="not mined"):
        release.save(tmp_path / "out.csv")
    assert not list(tmp_path.iterdir())


def test_check_says_which_results_come_out():
    table = shoal.anonymize(PEOPLE, OPEN).table
    asked = policy_with(RULE, COUNT, RULE | {"support": 0.4}, CLASSIFIER, SIGN)
    assert outcomes(shoal.check(table, asked)) == ["fails", "fails", "holds", "fails", "fails"]
    assert shoal.check(table, SAFE).holds


def test_a_result_is_found_in_the_original_at_any_level():
    original = PEOPLE.drop_columns(["name"])
    asked = policy_with(
        RULE, COUNT, {"result": "count", "where": {"age": "34"}}, {"result": "count", "where": {"age": "33"}}
    )
    assert outcomes(shoal.check(original, asked)) == ["fails", "fails", "fails", "holds"]


def test_cells_that_cannot_be_read_leave_it_open():
    columns = OPEN["columns"] | {"disease": {"role": "sensitive", "hierarchy": {"tree": {"*": ["flu", "cold"]}}}}
    asked = policy_with({"result": "count", "where": {"disease": "cold"}}) | {"columns": columns}
    columns["disease"]["uncovered"] = "suppress"
    found = shoal.check(PEOPLE.drop_columns(["name"]), asked)
    assert outcomes(found) == ["unknown"]
    assert "4 cells cannot be read" in found.verdicts[-1].missing


def test_a_value_outside_the_hierarchy_cannot_be_told():
    columns = OPEN["columns"] | {"disease": {"role": "sensitive", "hierarchy": {"tree": {"*": ["flu", "hiv"]}}}}
    with pytest.raises(CannotTellError, match="none of its values"):
        shoal.anonymize(PEOPLE, MEASLES | {"columns": columns})


STARS = pa.table(
    {
        "age": ["30-39"] * 3 + ["*"] * 3,
        "zip": ["13053"] * 3 + ["*"] * 3,
        "disease": ["hiv", "hiv", "flu", "hiv", "hiv", "flu"],
        "days": [9, 8, 7, 1, 2, 3],
    }
)


@pytest.mark.parametrize(
    ("forbidden", "n"),
    [
        (COUNT | {"where": {"age": "30-39"}, "min": 4}, "3 records may match"),
        (COUNT | {"where": {"zip": "13068"}}, "3 records may match"),
        (RULE, "2 records may match"),
        (SIGN, "6 records have ranges"),
    ],
)
def test_what_stars_leave_open_is_never_called_safe(forbidden, n):
    asked = policy_with(forbidden) if forbidden is not RULE else policy_with(RULE | {"confidence": 0.8})
    found = shoal.check(STARS, asked).verdicts[-1]
    assert (found.outcome, found.missing[: len(n)]) == ("unknown", n)
    accepted = shoal.check(STARS, policy_with(asked["forbid"][0] | {"doubt": "accept"}))
    assert outcomes(accepted) == ["holds"]


def test_a_value_that_is_missing_may_be_what_a_classifier_predicts():
    table = STARS.set_column(2, "disease", pa.array(["hiv", "flu", None, None, "hiv", "flu"]))
    asked = policy_with(CLASSIFIER | {"accuracy": 0.6})  # 2 of 4 told, 4 of 6 if both are filled in
    assert outcomes(shoal.check(table, asked)) == ["unknown"]
    assert outcomes(shoal.check(table, policy_with(CLASSIFIER | {"accuracy": 0.7}))) == ["holds"]


def test_other_columns_of_a_regression_may_turn_a_sign():
    table = pa.table(
        {
            "age": [30, 40, 50, 50, 60, 70],
            "zip": ["13053"] * 3 + ["13068"] * 3,
            "disease": ["flu"] * 6,
            "days": [9, 8, 7, 19, 18, 17],
        }
    )
    assert outcomes(shoal.check(table, policy_with(SIGN, SIGN | {"given": ["zip"]}))) == ["fails", "holds"]
    turned = SIGN | {"sign": "negative"}
    found = shoal.check(table, policy_with(turned, turned | {"given": ["zip"]}))
    assert outcomes(found) == ["holds", "fails"]
    assert found.verdicts[-1].worst == pytest.approx(-0.1)
    category = table.set_column(1, "zip", pa.array(["13053"] * 3 + ["1306*"] * 3))
    assert outcomes(shoal.check(category, policy_with(SIGN | {"given": ["zip"]}))) == ["unknown"]


def test_a_sign_needs_numbers():
    found = shoal.check(PEOPLE.drop_columns(["name"]), policy_with(SIGN | {"of": "disease"}))
    assert outcomes(found) == ["unknown"]
    assert "8 cells are neither numbers nor ranges" in found.verdicts[-1].missing


def test_replay_refuses_new_rows_from_which_a_result_comes_out():
    recoding = described(shoal.anonymize(PEOPLE, SAFE))
    assert outcomes(shoal.replay(recoding, PEOPLE).verdicts) == ["holds"] * 4
    ill = PEOPLE.set_column(3, "disease", pa.array(["hiv"] * 4 + ["flu"] * 4))
    with pytest.raises(VerificationError, match=r"forbid\.0"):
        shoal.replay(recoding, ill)


def test_a_certificate_fails_for_a_release_from_which_a_result_comes_out():
    certificate = shoal.anonymize(PEOPLE, OPEN).certificate
    certificate["policy"]["forbid"] = [RULE]
    found = shoal.verify_certificate(certificate, shoal.anonymize(PEOPLE, OPEN).table)
    assert found.outcome == "fails"
    wrong = [line.name for line in found if line.holds is False]
    assert "requirements" in wrong  # the certificate does not list it
    assert any(name.startswith("requirement: forbid.0") for name in wrong)


def test_frontier_and_compare_refuse_as_anonymize_does():
    points = shoal.frontier(PEOPLE, policy_with(RULE), k=[2, 5])
    assert [point.state for point in points] == ["refused", "cannot be told"]  # with k = 5 no cell tells an age
    points = shoal.frontier(PEOPLE, policy_with(RULE | {"doubt": "accept"}), k=[2, 5])
    assert [point.state for point in points] == ["refused", "found"]
    entries = shoal.compare(PEOPLE, policy_with(RULE), algorithms=["optimal", "datafly"])
    assert {entry.outcome for entry in entries} == {"refused"}


def test_of_several_releases_one_is_enough_to_fail_and_none_to_hold():
    table = shoal.anonymize(PEOPLE, OPEN).table
    fails = shoal.check(table, policy_with(RULE), original=PEOPLE, previous=[table])
    assert [verdict.outcome for verdict in fails.verdicts if "forbid" in verdict.asked] == ["fails", "fails"]
    open_ = shoal.check(table, SAFE, original=PEOPLE, previous=[table])
    told = [verdict for verdict in open_.verdicts if "forbid" in verdict.asked]
    assert [verdict.outcome for verdict in told] == ["holds"] * 4 + ["unknown"] * 4
    assert open_.outcome == "unknown"


@pytest.mark.parametrize("engine", ["local", "duckdb"])
@pytest.mark.parametrize(("forbidden", "code"), [([RULE | {"confidence": 0.8}], 0), ([RULE], 1), (None, 2)])
def test_exit_codes(tmp_path, engine, forbidden, code):
    asked = SAFE | {"forbid": forbidden or [{"result": "count", "where": {"disease": "measles"}}]}
    if forbidden is None:
        asked["columns"] = asked["columns"] | {
            "disease": {"role": "sensitive", "hierarchy": {"tree": {"*": ["flu", "hiv"]}}}
        }
    shoal.Policy.of(asked).save(tmp_path / "policy.toml")
    pyarrow.csv.write_csv(shoal.anonymize(PEOPLE, OPEN).table, tmp_path / "release.csv")
    line = ["check", str(tmp_path / "release.csv"), "-p", str(tmp_path / "policy.toml"), "--engine", engine, "--json"]
    result = CliRunner().invoke(app, line)
    assert result.exit_code == code
    told = json.loads(result.stdout)
    assert told["outcome"] == {0: "holds", 1: "fails", 2: "unknown"}[code]


def test_a_policy_without_forbidden_results_is_written_as_before():
    policy = shoal.Policy.of(OPEN)
    assert "forbid" not in policy.model_dump(mode="json")
    assert "forbid" not in policy.to_toml()
    assert shoal.Policy.parse(shoal.Policy.of(SAFE).to_toml()) == shoal.Policy.of(SAFE)


@pytest.mark.parametrize(
    ("forbid", "message"),
    [
        ([{"result": "mean"}], "forbid.0: unknown result"),
        ([{}], "forbid.0: result is missing"),
        (RULE, r"write \[\[forbid\]\]"),
        ([RULE | {"sign": 1}], "forbid.0.sign: unknown field"),
        ([COUNT | {"where": {"name": "a"}}], "forbid.0: 'name' has neither role"),
        ([COUNT | {"where": {}}], "forbid.0.where: name at least one column"),
        ([COUNT | {"where": {"zip": "*"}}], "forbid.0.where: a value is empty"),
        ([COUNT | {"min": 3, "max": 2}], "forbid.0: max must be at least min"),
        ([RULE | {"then": {"age": "40-49"}}], "forbid.0: when and then name the same column"),
        ([RULE | {"support": 0}], "forbid.0.support"),
        ([RULE | {"enforce": True}], 'forbid.0: enforce needs doubt = "accept"'),
        ([CLASSIFIER | {"on": ["disease"]}], "forbid.0: on: name other columns"),
        ([CLASSIFIER | {"on": []}], "forbid.0.on"),
        ([SIGN | {"given": ["age"]}], "forbid.0: column, of and given name a column twice"),
        ([SIGN | {"of": "name"}], "forbid.0: 'name' has neither role"),
        ([SIGN | {"enforce": True}], "forbid.0.enforce: unknown field"),
    ],
)
def test_mistakes_are_explained(forbid, message):
    with pytest.raises(PolicyError, match=message):
        shoal.Policy.of(OPEN | {"forbid": forbid})


@pytest.mark.long
def test_the_report_names_forbidden_results(tmp_path: Path):
    shoal.anonymize(PEOPLE, SAFE).report(tmp_path / "report.html")
    assert "forbid.0: no rule age → disease" in (tmp_path / "report.html").read_text(encoding="utf-8")
    shoal.check(shoal.anonymize(PEOPLE, OPEN).table, policy_with(RULE), report=tmp_path / "check.html")
    assert "it comes out" in (tmp_path / "check.html").read_text(encoding="utf-8")
