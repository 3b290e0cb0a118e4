"""Algorithms side by side: figures are those of the releases that the algorithms would make."""

import json
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import shoal
from shoal.cli.commands import app
from shoal.cli.terminal.alternatives import compact
from shoal.report.essentials import worth
from shoal.search import SEARCHES

PEOPLE = pd.DataFrame(
    [
        (age, zip_code, disease)
        for i, age in enumerate(("21", "22", "23", "34", "35", "36"))
        for j, zip_code in enumerate(("10001", "10002", "20001"))
        for disease in ("flu", "cold", "gout")[: 1 + (i + j) % 3]
    ],
    columns=["age", "zip", "disease"],
)


def policy(**release: object) -> shoal.Policy:
    return shoal.Policy.of({
        "columns": {
            "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}},
            "zip": {"role": "quasi", "hierarchy": {"mask": "right"}},
            "disease": {"role": "sensitive"},
        },
        "require": [{"model": "k-anonymity", "k": 4}],
        "release": release,
    })  # fmt: skip


def test_an_entry_tells_what_the_release_of_its_algorithm_would() -> None:
    found = shoal.compare(PEOPLE, policy(max_suppression=0.1), algorithms=["optimal", "datafly"])
    assert [entry.algorithm for entry in found] == ["optimal", "datafly"]
    for entry in found:
        release = shoal.anonymize(PEOPLE, policy(max_suppression=0.1, algorithm=entry.algorithm))
        assert entry.outcome == "found"
        assert entry.loss == release.loss
        assert (entry.classes, entry.suppressed) == (release.classes, release.suppressed)
        assert entry.risk == 1 / release.measured["k"]
        assert entry.proved == release.recoding.proved
        assert entry.seconds is not None
        assert entry.seconds > 0


def test_all_but_those_that_look_at_every_node_run_when_none_is_named() -> None:
    found = shoal.compare(PEOPLE, policy())
    assert {entry.algorithm for entry in found} == SEARCHES.keys() - {"exhaustive", "mingen"}
    answers = [entry for entry in found if entry.outcome == "found"]
    assert {entry.kind for entry in answers} >= {"full domain", "cells"}
    least = min(entry.loss["loss"] for entry in answers if entry.kind == "full domain")
    assert next(entry for entry in answers if entry.algorithm == "optimal").loss["loss"] == pytest.approx(least)


def test_both_purposes_are_shown_when_no_algorithm_is_named() -> None:
    found = shoal.compare(PEOPLE, policy())
    tables, analysis = found.purposes
    assert (tables.purpose, tables.algorithm, analysis.purpose, analysis.algorithm) == (
        "tables", "single_dimensional", "analysis", "local",
    )  # fmt: skip
    by_name = {entry.algorithm: entry for entry in found}
    assert tables.loss == by_name["single_dimensional"].loss
    finer = policy().with_columns(
        age={"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}, "cells": "range"},
        zip={"role": "quasi", "hierarchy": {"mask": "right"}, "cells": "set"},
    )
    own = shoal.compare(PEOPLE, finer)
    assert own.purposes[1].loss == analysis.loss == next(e for e in own if e.algorithm == "local").loss
    tight = finer.with_columns(
        age={"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}, "cells": "tight-range"},
        zip={"role": "quasi", "hierarchy": {"mask": "right"}, "cells": "tight-set"},
    )
    tightest = next(e for e in shoal.compare(PEOPLE, tight) if e.algorithm == "local")
    assert tightest.loss["loss"] < min(by_name["local"].loss["loss"], tables.loss["loss"], analysis.loss["loss"])
    assert shoal.compare(PEOPLE, policy(), algorithms=["optimal"]).purposes == ()


def test_only_what_is_so_is_called_the_smallest() -> None:
    found = shoal.compare(PEOPLE, policy(max_suppression=0.2))
    told = {entry.algorithm: worth(entry, "loss") for entry in found if entry.outcome == "found"}
    assert told["optimal"] == "smallest loss with one level per column, proved"
    least = min(entry.loss["loss"] for entry in found if entry.kind == "full domain")
    for entry in found:
        if entry.outcome == "found" and "one level per column" in told[entry.algorithm]:
            assert entry.loss["loss"] == pytest.approx(least)
    assert not any("proved" in told.get(name, "") for name in ("suppress_records", "suppress_columns", "datafly"))
    worst = max((e for e in found if e.outcome == "found"), key=lambda e: e.loss["loss"])
    assert told[worst.algorithm] == ""


def test_an_algorithm_that_cannot_says_why() -> None:
    asked = policy().model_copy(update={"require": shoal.Policy.of({
        "columns": {"age": {"role": "quasi"}, "disease": {"role": "sensitive"}},
        "require": [{"model": "t-closeness", "t": 0.5}],
    }).require})  # fmt: skip
    found = {entry.algorithm: entry for entry in shoal.compare(PEOPLE, asked, algorithms=["datafly", "optimal"])}
    assert found["datafly"].outcome == "declined"
    assert "needs a k-anonymity requirement" in found["datafly"].reason
    assert found["optimal"].outcome == "found"


def test_what_nobody_can_keep_is_infeasible() -> None:
    asked = policy().model_copy(update={"require": (type(policy().require[0])(model="k-anonymity", k=10**6),)})
    assert [entry.outcome for entry in shoal.compare(PEOPLE, asked, algorithms=["optimal"])] == ["infeasible"]


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(shoal.ShoalError, match="unknown algorithm: 'magic'"):
        shoal.compare(PEOPLE, policy(), algorithms=["magic"])


@pytest.fixture
def place(tmp_path: Path) -> Path:
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "policy.toml").write_text(policy().to_toml(), encoding="utf-8")
    return tmp_path


def run(place: Path, *options: str) -> tuple[int, str]:
    arguments = ["compare", str(place / "people.csv"), "-p", str(place / "policy.toml"), *options]
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.output


def test_the_table_has_a_line_per_algorithm(place: Path) -> None:
    code, output = run(place, "--algorithms", "optimal, datafly")
    assert code == 0
    assert {"optimal", "datafly"} <= {line.split()[0] for line in output.splitlines() if line}
    assert "discernibility" not in output
    assert "discernibility" in run(place, "--algorithms", "optimal, datafly", "--verbose")[1]
    both = run(place)[1]
    assert both.startswith("For tables, the same labels in the whole column (single_dimensional): loss")
    assert "For analysis, each class separately (local): loss 0." in both


def test_the_json_is_the_comparison(place: Path) -> None:
    code, output = run(place, "--algorithms", "optimal", "--json")
    assert code == 0
    found = json.loads(output)
    expected = shoal.compare(PEOPLE, policy(), algorithms=["optimal"]).as_dict()
    assert found["entries"][0]["loss"] == pytest.approx(expected["entries"][0]["loss"])


def test_the_plot_names_every_algorithm_and_needs_no_network(place: Path) -> None:
    plot = place / "plot.svg"
    assert run(place, "--algorithms", "optimal,datafly", "--plot", str(plot), "-q") == (0, "")
    text = plot.read_text(encoding="utf-8")
    assert "optimal" in text
    assert "datafly" in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    code, output = run(place, "--plot", str(plot))
    assert code == 2
    assert "already exists" in output


def test_a_plot_of_another_kind_is_refused_before_the_work(place: Path) -> None:
    code, output = run(place, "--plot", str(place / "plot.doc"))
    assert code == 2
    assert "only be saved as .svg" in " ".join(output.split())


def test_nothing_found_ends_with_1(place: Path) -> None:
    (place / "policy.toml").write_text(policy().to_toml().replace("k = 4", "k = 4000"), encoding="utf-8")
    assert run(place, "--algorithms", "optimal", "-q")[0] == 1


@pytest.mark.parametrize(
    ("value", "text"), [(0.25, "0.250"), (54.34, "54.3"), (3_554_128, "3.55 M"), (2.17e10, "21.7 G"), (999, "999")]
)
def test_large_figures_are_short(value: float, text: str) -> None:
    assert compact(value) == text


def test_queries_are_asked_of_what_each_algorithm_would_release(tmp_path: Path) -> None:
    from shoal.utility import query_error

    names = ["mondrian_relaxed", "mondrian", "optimal", "k_optimize", "mdav"]
    found = shoal.compare(PEOPLE, policy(seed=3), algorithms=[*names, "suppress_records"], utility=True)
    for entry in list(found)[:-1]:
        release = shoal.anonymize(PEOPLE, policy(algorithm=entry.algorithm, seed=3))
        assert entry.query_error == query_error(PEOPLE, release, policy(), seed=3)
    assert list(found)[-1].query_error is None  # it has no answer
    assert {entry.query_error for entry in shoal.compare(PEOPLE, policy(), algorithms=["datafly"])} == {None}


def test_the_median_error_of_queries_is_a_column_where_it_is_asked_for(tmp_path: Path) -> None:
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    policy().save(tmp_path / "policy.toml")
    arguments = [
        "compare",
        str(tmp_path / "people.csv"),
        "-p",
        str(tmp_path / "policy.toml"),
        "--algorithms",
        "datafly",
    ]
    assert "query error" not in CliRunner().invoke(app, arguments).stdout
    shown = CliRunner().invoke(app, [*arguments, "--utility"]).stdout
    (entry,) = shoal.compare(PEOPLE, policy(), algorithms=["datafly"], utility=True)
    assert entry.query_error is not None
    assert "query error" in shown
    assert f"{entry.query_error['median']:.1%}" in shown
