"""The frontier: many related releases at once, each what it would be alone."""

import itertools
import json
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import shoal
from shoal.alternatives.frontier import Frontier, frontier, parameters, with_parameters
from shoal.cli.commands import app
from shoal.errors import InfeasibleError, PolicyError

SECRET = "Wilhelmina-Secret"


def records(n: int = 80, seed: int = 3) -> pa.Table:
    rng = random.Random(seed)
    return pa.table(
        {
            "name": [f"{SECRET}{i}" for i in range(n)],
            "age": [str(rng.randint(20, 59)) for _ in range(n)],
            "zip": [f"{rng.randint(0, 3)}{rng.randint(0, 9)}" for _ in range(n)],
            "ill": [rng.choice(["flu", "flu", "cold", "cough"]) for _ in range(n)],
        }
    )


def policy(*require, **release) -> shoal.Policy:
    return shoal.Policy.of(
        {
            "columns": {
                "name": {"role": "identifier"},
                "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}},
                "zip": {"role": "quasi", "hierarchy": {"mask": "right"}},
                "ill": {"role": "sensitive"},
            },
            "require": list(require) or [{"model": "k-anonymity", "k": 2}],
            "release": release,
        }
    )


K = {"model": "k-anonymity", "k": 2}
T = {"model": "t-closeness", "t": 0.5}
ENTROPY = {"model": "entropy-l-diversity", "l": 1.5}
DISTINCT = {"model": "distinct-l-diversity", "l": 2}


def same_as_alone(data: pa.Table, asked: shoal.Policy, found: Frontier) -> list[bool]:
    """Compare every point with a run of its own; which of them are feasible."""
    feasible = []
    for point in found:
        alone = with_parameters(asked, point.asked)
        try:
            release = shoal.anonymize(data, alone)
        except InfeasibleError as error:
            reason = error.message
            feasible.append(False)
            assert not point.feasible
            told = {"asked": 0, "feasible": 0, "state": "infeasible", "reason": 0}
            assert {**point.as_dict(), "asked": 0, "feasible": 0, "reason": 0} == dict.fromkeys(point.as_dict()) | told
            assert point.reason == reason
            continue
        feasible.append(True)
        assert point.feasible
        assert point.levels == release.levels
        assert point.suppressed == release.suppressed
        assert point.loss == pytest.approx(release.loss[asked.release.objective])
        assert point.classes == release.classes
        assert point.risk == pytest.approx(release.measured["risk_max"])
        assert point.proved == release.recoding.proved
    return feasible


@pytest.mark.parametrize("suppressed", ["drop", "keep"])
@pytest.mark.parametrize("objective", ["loss", "discernibility", "entropy"])
def test_every_point_is_what_a_run_of_its_own_gives(objective, suppressed):
    data = records()
    asked = policy(K, T, objective=objective, suppressed=suppressed)
    found = frontier(data, asked, k=[2, 3, 5, 10, 100], max_suppression=[0, 0.1, 0.3])
    assert len(found) == 15
    assert found.objective == objective
    feasible = same_as_alone(data, asked, found)
    assert 6 < sum(feasible) < 15  # 81 records are not there


@pytest.mark.parametrize("algorithm", ["optimal", "exhaustive", "datafly"])
def test_the_searches_of_a_policy_all_sweep(algorithm):
    data = records()
    asked = policy(K, algorithm=algorithm, max_suppression=0.1)
    found = frontier(data, asked, k=[4, 2, 90])
    assert same_as_alone(data, asked, found) == [True, True, False]
    assert [point.proved for point in found] == [*[algorithm != "datafly"] * 2, None]


def test_the_order_of_the_points_is_that_of_the_values():
    found = frontier(records(), policy(K, T), k=[5, 2], t=[0.9, 0.4])
    expected = [{"k": k, "t": t} for k, t in itertools.product([5, 2], [0.9, 0.4])]
    assert [point.asked for point in found] == expected


def test_the_order_of_the_values_does_not_change_the_points():
    data = records()
    up = frontier(data, policy(K, max_suppression=0.1), k=[2, 3, 5, 8, 13])
    down = frontier(data, policy(K, max_suppression=0.1), k=[13, 8, 5, 3, 2])

    def told(found: Frontier) -> list[dict]:
        return [{**point.as_dict(), "evaluated": None} for point in found]  # how much is left to look at differs

    assert told(up) == told(down)[::-1]


def test_asking_for_more_never_costs_less():
    found = frontier(records(), policy(K, max_suppression=0.2), k=[2, 3, 4, 6, 9, 14, 20])
    losses = [point.loss for point in found if point.feasible]
    assert losses == sorted(losses)
    assert len(set(losses)) > 2


def test_a_parameter_replaces_that_of_every_requirement_that_has_one():
    asked = policy(K, {"model": "p-sensitive", "p": 2, "k": 3}, DISTINCT, ENTROPY, T)
    fields = with_parameters(asked, {"k": 7, "l": 2.0, "t": 0.3, "max_suppression": 0.25})
    assert [(model.model, getattr(model, "k", None)) for model in fields.require][:2] == [
        ("k-anonymity", 7),
        ("p-sensitive", 7),
    ]
    assert [model.l for model in fields.require[2:4]] == [2, 2]
    assert fields.require[4].t == 0.3
    assert fields.release.max_suppression == 0.25
    assert (fields.columns, fields.folder) == (asked.columns, asked.folder)


def test_diversity_sweeps_whole_numbers_and_entropy_any():
    data = records()
    assert same_as_alone(data, policy(DISTINCT), frontier(data, policy(DISTINCT), l=[1.0, 2, 3.0, 4])) == [
        *[True] * 3,
        False,
    ]
    asked = policy(ENTROPY)
    assert same_as_alone(data, asked, frontier(data, asked, l=[1, 1.5, 2.5, 3.5])) == [True, True, True, False]
    with pytest.raises(PolicyError, match=r"require\.0\.l"):
        frontier(data, policy(DISTINCT), l=[2.5])


@pytest.mark.parametrize("l", [float("inf"), float("nan"), 0.5])
def test_a_value_that_a_requirement_cannot_have_is_refused_with_its_field(l):
    with pytest.raises(PolicyError, match=r"require\.0\.l"):
        frontier(records(), policy(DISTINCT), l=[l])


def test_a_preset_stays_as_it_is():
    asked = shoal.Policy.of({"columns": {"age": {"role": "quasi"}}, "preset": "lecture-low", "require": [K]})
    data = pa.table({"age": ["1", "1", "2", "2", "2"]})
    found = frontier(data, asked, k=[2, 4])
    assert [point.risk for point in found] == [1 / 5, 1 / 5]
    same_as_alone(data, asked, found)


def test_a_parameter_that_no_requirement_has_is_refused():
    with pytest.raises(PolicyError, match="no requirement of the policy has a parameter 't'"):
        frontier(records(), policy(K), t=[0.1])


def test_nothing_to_sweep_is_refused_with_what_could_be():
    with pytest.raises(PolicyError, match="parameters: k, l, t, max_suppression"):
        frontier(records(), policy(K))


@pytest.mark.parametrize("values", ["2", 2, None, ["two"], [[2]]])
def test_a_parameter_takes_a_list_of_numbers(values):
    with pytest.raises(PolicyError, match=r"k takes a list of numbers, as in k=\[2, 3, 5\]"):
        frontier(records(), policy(K), k=values)


def test_numbers_of_numpy_are_numbers():
    assert [point.asked for point in frontier(records(), policy(K), k=np.array([2, 3]))] == [{"k": 2}, {"k": 3}]


def test_a_population_is_counted_for_every_point(tmp_path):
    data = records()
    people = "\n".join(
        f"{a},{z}" for a, z in zip(data["age"].to_pylist() * 2, data["zip"].to_pylist() * 2, strict=True)
    )
    (tmp_path / "people.csv").write_text(f"age,zip\n{people}\n", encoding="utf-8")
    fields = policy({"model": "k-map", "k": 2, "population": "people.csv"}).model_dump(mode="json", exclude_none=True)
    asked = shoal.Policy.of(fields, folder=tmp_path)
    found = frontier(data, asked, k=[2, 4, 9, 161])
    assert same_as_alone(data, asked, found) == [True, True, True, False]


def test_persons_and_levels_of_columns_are_heeded():
    data = records()
    data = data.set_column(0, "name", pa.array([f"p{i // 2}" for i in range(80)]))
    fields = policy(K, entity="name", max_suppression=0.1).model_dump(mode="json", exclude_none=True)
    fields["columns"]["age"] |= {"min_level": 1, "max_level": 3}
    asked = shoal.Policy.of(fields)
    found = frontier(data, asked, k=[2, 3, 5])
    assert any(same_as_alone(data, asked, found))


def test_progress_tells_what_is_being_solved():
    told = []
    frontier(records(), policy(K, T), k=[2, 5], t=[0.4], progress=lambda what, share: told.append((what, share)))
    solving = [(what, share) for what, share in told if what.startswith("solving")]
    assert solving == [("solving k = 2, t = 0.4", 0), ("solving k = 5, t = 0.4", 0.5)]


# --- the command line ----------------------------------------------------------------------------------------------


def test_parameters_are_read_as_a_command_line_has_them():
    assert parameters(["k=2,3,5", "max_suppression=0,0.05"]) == {"k": [2, 3, 5], "max_suppression": [0.0, 0.05]}
    assert parameters(["l=1.5", "t=.2,1"]) == {"l": [1.5], "t": [0.2, 1.0]}


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (["k"], "k takes numbers separated by commas"),
        (["k="], "k takes numbers separated by commas"),
        (["k=2,,3"], "k takes numbers separated by commas"),
        (["k=2.5"], "k takes numbers separated by commas"),
        (["t=low"], "t takes numbers separated by commas"),
        (["alpha=0.5"], "parameters: k, l, t, max_suppression"),
        (["=2"], "parameters: k, l, t, max_suppression"),
        ([""], "parameters: k, l, t, max_suppression"),
        (["k=2", "k=3"], "each parameter once"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_can(texts, says):
    with pytest.raises(PolicyError) as error:
        parameters(texts)
    assert says in str(error.value)


class Place:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        data = records()
        rows = zip(*data.to_pydict().values(), strict=True)
        lines = [",".join(data.column_names), *(",".join(row) for row in rows)]
        (folder / "data.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        self.policy = policy(K, max_suppression=0.1)
        self.policy.save(folder / "policy.toml")

    def run(self, *arguments: str):
        data, asked = str(self.folder / "data.csv"), str(self.folder / "policy.toml")
        return CliRunner().invoke(app, ["anonymize", data, "-p", asked, *arguments])


@pytest.fixture
def place(tmp_path) -> Place:
    return Place(tmp_path)


def test_the_command_line_prints_the_frontier_as_json(place):
    result = place.run("--frontier", "k=2,5,90", "--frontier", "max_suppression=0,0.2", "--json")
    assert result.exit_code == 0
    expected = frontier(records(), place.policy, k=[2, 5, 90], max_suppression=[0.0, 0.2]).as_dict()
    assert json.loads(result.stdout) == expected
    assert len(expected["points"]) == 6
    assert [point["feasible"] for point in expected["points"]] == [True] * 4 + [False] * 2
    assert SECRET not in result.output


def test_the_command_line_shows_the_frontier_as_a_table(place):
    result = place.run("--frontier", "k=2,5,90")
    assert result.exit_code == 0
    assert "infeasible" in result.stdout
    assert "proved" in result.stdout
    assert "Levels of age, zip." in result.stdout
    assert SECRET not in result.output


def test_a_frontier_of_nothing_feasible_is_shown_too_and_exits_with_1(place):
    result = place.run("--frontier", "k=90,95")
    assert result.exit_code == 1
    assert result.stdout.count("infeasible") == 2
    assert "No release satisfies any of these requirements." in result.stdout


def test_quiet_prints_nothing(place):
    result = place.run("--frontier", "k=2", "-q")
    assert (result.exit_code, result.output) == (0, "")


def test_a_frontier_writes_no_release_and_says_so(place):
    before = sorted(path.name for path in place.folder.iterdir())
    result = place.run("--frontier", "k=2", "-o", str(place.folder / "safe.csv"))
    assert result.exit_code == 2
    assert "omit -o" in result.output
    assert sorted(path.name for path in place.folder.iterdir()) == before


def test_without_a_frontier_a_file_to_write_to_is_needed(place):
    result = place.run()
    assert result.exit_code == 2
    assert "-o" in result.output
    assert "--frontier" in result.output


@pytest.mark.parametrize("swept", ["k=two", "q=2", "t=0.2", "k=0", "max_suppression=2", "k=-1"])
def test_a_frontier_that_makes_no_sense_exits_with_2(place, swept):
    result = place.run("--frontier", swept)
    assert result.exit_code == 2
    assert "PolicyError" in result.output
    assert "Traceback" not in result.output
