"""A search that may not finish: the best so far, and what no answer costs less than."""

import importlib
import json
import random
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import shoal
from shoal.alternatives.frontier import frontier
from shoal.cli.commands import app
from shoal.errors import InfeasibleError, OutOfTimeError, PolicyError
from shoal.search import Problem
from shoal.text.figures import format_number

NO_TIME = 1e-9  # seconds: over before the second look


def records(n: int = 120, columns: int = 4, seed: int = 2) -> pa.Table:
    """Codes whose digits depend on each other, so that columns compete for what is left of them."""
    rng = random.Random(seed)
    rows = []
    for _ in range(n):
        kind = rng.randint(0, 5)
        rows.append([f"{kind if rng.random() < 0.7 else rng.randint(0, 5)}{rng.randint(0, 3)}" for _ in range(columns)])
    table = {f"c{j}": [row[j] for row in rows] for j in range(columns)}
    return pa.table({**table, "ill": [rng.choice(["flu", "flu", "cold", "cough"]) for _ in range(n)]})


def policy(columns: int = 4, *require, **release) -> shoal.Policy:
    return shoal.Policy.of(
        {
            "columns": {
                **{f"c{j}": {"role": "quasi", "hierarchy": {"mask": "right"}} for j in range(columns)},
                "ill": {"role": "sensitive"},
            },
            "require": list(require) or [{"model": "k-anonymity", "k": 4}],
            "release": {"max_suppression": 0.1, **release},
        }
    )


def after_looks(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    """Time that is over after so many looks, on any machine."""
    monkeypatch.setattr(Problem, "out_of_time", property(lambda problem: problem.n_evaluated >= n))


T = {"model": "t-closeness", "column": "ill", "t": 0.3}


@pytest.mark.parametrize("require", [(), (T,)], ids=["k-anonymity", "t-closeness"])
@pytest.mark.parametrize("objective", ["loss", "arx-loss", "discernibility", "average-class", "height", "entropy"])
def test_the_optimum_lies_between_the_bound_and_the_loss(objective, require, monkeypatch):
    data, asked = records(), policy(4, *require, objective=objective)
    least = shoal.anonymize(data, asked)
    assert least.recoding.proved
    assert least.recoding.bound is None
    losses = []
    for n in (1, 2, 5, 10, 20, 40, 80):
        with monkeypatch.context() as patch:
            after_looks(patch, n)
            release = shoal.anonymize(data, asked)
        losses.append(release.loss[objective])
        assert losses[-1] >= least.loss[objective] - 1e-9
        if release.recoding.proved:
            assert release.levels == least.levels
            assert release.recoding.bound is None
        else:
            assert release.recoding.bound <= release.loss[objective] + 1e-9
            assert release.recoding.bound <= least.loss[objective] + 1e-9
        assert all(verdict.holds for verdict in release.verdicts.verdicts)
    assert losses == sorted(losses, reverse=True)


def test_a_search_that_was_cut_short_says_so(monkeypatch):
    after_looks(monkeypatch, 1)
    recoding = shoal.anonymize(records(), policy()).recoding
    assert not recoding.proved
    assert recoding.bound is not None
    assert recoding.n_evaluated < recoding.n_nodes


def test_the_bound_comes_nearer_with_time(monkeypatch):
    data, asked = records(), policy(4, T)
    gaps = []
    for n in (2, 30, 60):
        with monkeypatch.context() as patch:
            after_looks(patch, n)
            release = shoal.anonymize(data, asked)
        bound = release.loss["loss"] if release.recoding.proved else release.recoding.bound
        gaps.append(release.loss["loss"] - bound)
    assert gaps[0] > gaps[-1] >= 0


def test_almost_no_time_is_enough_for_some_answer():
    release = shoal.anonymize(records(), policy(time_budget=NO_TIME))
    assert not release.recoding.proved
    assert release.measured["k"] >= 4
    assert release.recoding.bound < release.loss["loss"]


def test_enough_time_proves_as_none_at_all_does():
    data = records()
    patient = shoal.anonymize(data, policy())
    timed = shoal.anonymize(data, policy(time_budget=600))
    assert timed.recoding.proved
    assert timed.recoding.bound is None
    assert timed.levels == patient.levels


def test_a_lattice_of_more_than_a_billion_nodes_is_searched(monkeypatch):
    data = records(400, 20)
    after_looks(monkeypatch, 50)
    release = shoal.anonymize(data, policy(20, {"model": "k-anonymity", "k": 20}))
    assert release.recoding.n_nodes == 3**20 > 10**9
    assert release.measured["k"] >= 20
    assert release.suppressed <= 40
    assert not release.recoding.proved
    assert 0 < release.recoding.bound <= release.loss["loss"] < 1


def test_a_lattice_with_more_nodes_than_an_index_can_count_is_searched(monkeypatch):
    data = records(60, 45)
    after_looks(monkeypatch, 20)
    release = shoal.anonymize(data, policy(45))
    assert release.recoding.n_nodes == 3**45 > 2**63
    assert json.loads(json.dumps(release.receipt))["search"]["nodes"] == 3**45


# --- who tells -----------------------------------------------------------------------------------------------------


def test_the_certificate_tells_the_gap():
    release = shoal.anonymize(records(), policy(time_budget=NO_TIME))
    search = release.certificate["search"]
    assert search["proved"] is False
    assert search["bound"] == float(f"{release.recoding.bound:.2g}")
    assert release.receipt["search"]["bound"] == release.recoding.bound <= release.receipt["loss"]["loss"]
    assert release.certificate["policy"]["release"]["time_budget"] == NO_TIME
    proved = shoal.anonymize(records(), policy()).certificate["search"]
    assert (proved["proved"], proved["bound"]) == (True, None)


class Place:
    def __init__(self, folder: Path, data: pa.Table, asked: shoal.Policy) -> None:
        self.folder = folder
        lines = [",".join(data.column_names), *map(",".join, zip(*data.to_pydict().values(), strict=True))]
        (folder / "data.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        asked.save(folder / "policy.toml")

    def run(self, *arguments: str):
        names = [str(self.folder / name) for name in ("data.csv", "policy.toml", "safe.csv")]
        return CliRunner().invoke(app, ["anonymize", names[0], "-p", names[1], "-o", names[2], *arguments])


def test_the_terminal_tells_the_gap(tmp_path):
    asked = policy(time_budget=NO_TIME)
    bound = shoal.anonymize(records(), asked).recoding.bound
    result = Place(tmp_path, records(), asked).run()
    assert result.exit_code == 0
    assert f"the best found in the time available; lower bound {format_number(bound)}" in " ".join(
        result.stdout.split()
    )


def test_the_terminal_and_the_certificate_tell_that_the_time_of_local_ended(tmp_path):
    asked = policy(algorithm="local", max_suppression=0.0, time_budget=NO_TIME)
    told = "The time budget of 1e-09 seconds ended before the first of the planned steps. More time may reduce the loss"
    result = Place(tmp_path, records(), asked).run()
    assert result.exit_code == 0
    assert told in " ".join(result.stdout.split())
    release = shoal.anonymize(records(), asked)
    assert any(f"{line['fact']}. {line['remedy']}".startswith(told) for line in release.certificate["findings"])
    release.report(tmp_path / "report.html")
    assert told in (tmp_path / "report.html").read_text(encoding="utf-8")
    patient = shoal.anonymize(records(), policy(algorithm="local", max_suppression=0.0))
    assert "time-budget" not in {finding.kind for finding in patient.findings}


def test_the_terminal_tells_a_proof(tmp_path):
    result = Place(tmp_path, records(), policy(time_budget=600)).run()
    assert result.exit_code == 0
    assert "the smallest with one level per column, proved" in " ".join(result.stdout.split())


# --- no answer -----------------------------------------------------------------------------------------------------


def hidden() -> tuple[pa.Table, shoal.Policy]:
    """Joined, the two groups fail; apart, one of them passes and the other may go. The top alone tells nothing."""
    data = pa.table(
        {"a": ["x"] * 8 + ["y"] * 8, "b": ["1", "2"] * 8, "ill": ["flu", "flu", "cold", "cold"] * 2 + ["flu"] * 8}
    )
    fields = {
        "columns": {"a": {"role": "quasi"}, "b": {"role": "quasi"}, "ill": {"role": "sensitive"}},
        "require": [{"model": "alpha-k-anonymity", "alpha": 0.5, "k": 2}],
        "release": {"max_suppression": 0.5},
    }
    return data, shoal.Policy.of(fields)


def timed(asked: shoal.Policy, seconds: float = NO_TIME) -> shoal.Policy:
    fields = asked.model_dump(mode="json", exclude_none=True)
    fields["release"]["time_budget"] = seconds
    return shoal.Policy.of(fields)


def test_where_nothing_was_found_in_time_the_error_says_so_and_what_helps():
    data, asked = hidden()
    assert shoal.anonymize(data, asked).levels["a"] == 0
    with pytest.raises(OutOfTimeError) as error:
        shoal.anonymize(data, timed(asked))
    assert "1e-09 seconds" in str(error.value)
    assert "increase time_budget" in str(error.value)
    assert error.value.exit_code == 1


def test_where_nothing_was_found_in_time_nothing_is_written(tmp_path):
    data, asked = hidden()
    result = Place(tmp_path, data, timed(asked)).run()
    assert result.exit_code == 1
    assert "OutOfTimeError" in result.output
    assert not (tmp_path / "safe.csv").exists()


def test_a_proof_that_there_is_no_answer_is_one_even_without_time():
    with pytest.raises(InfeasibleError):
        shoal.anonymize(records(), policy(4, {"model": "k-anonymity", "k": 121}, time_budget=NO_TIME))


def test_a_frontier_tells_which_points_had_no_time():
    data, asked = hidden()
    (point,) = frontier(data, timed(asked), k=[2])
    assert point.feasible is None
    (point,) = frontier(data, timed(asked, 600), k=[2])
    assert point.feasible
    (point,) = frontier(data, timed(asked), k=[17])
    assert point.feasible is False


def test_any_limit_on_looks_gives_a_valid_answer_or_none(monkeypatch):
    data, asked = hidden()
    problem = None
    for n in range(1, 8):
        with monkeypatch.context() as patch:
            after_looks(patch, n)
            try:
                recoding = shoal.anonymize(data, timed(asked, 600)).recoding
            except OutOfTimeError:
                continue
            problem = recoding.node
    assert problem == shoal.anonymize(data, asked).recoding.node


@pytest.mark.parametrize("seconds", [0, -1.0, float("inf"), float("nan"), "soon"])
def test_a_budget_that_is_no_time_is_refused(seconds):
    with pytest.raises(PolicyError, match=r"release\.time_budget"):
        policy(time_budget=seconds)


def test_a_budget_survives_the_way_through_toml():
    asked = policy(time_budget=2.5)
    assert shoal.Policy.parse(asked.to_toml()) == asked


def test_k_optimize_ends_without_a_time_too_and_tells_the_gap(monkeypatch):
    data, asked = records(24, 2), policy(2, algorithm="k_optimize")
    least = shoal.anonymize(data, asked)
    assert least.recoding.proved
    monkeypatch.setattr(importlib.import_module("shoal.search.cuts.k_optimize"), "LOOKS", 5)
    left = shoal.anonymize(data, asked)
    assert not left.recoding.proved
    assert left.recoding.bound is not None
    assert left.recoding.bound <= least.loss["loss"] <= left.loss["loss"]
    assert shoal.anonymize(data, policy(2, algorithm="k_optimize", time_budget=600)).recoding.proved  # time decides


def test_a_search_that_found_nothing_tells_of_seconds_only_where_they_were_given(monkeypatch):
    k_optimize = importlib.import_module("shoal.search.cuts.k_optimize")
    monkeypatch.setattr(k_optimize, "LOOKS", 0)
    monkeypatch.setattr(k_optimize._SetEnumeration, "climb_and_kick", lambda search: None)
    with pytest.raises(OutOfTimeError, match=r"no solution was found, after 0 nodes"):
        shoal.anonymize(records(40, 3), policy(3, algorithm="k_optimize"))
