"""k_optimize at its edges: time, columns that are shown or hidden, models, and what it refuses."""

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.engines.local import LocalEngine
from shoal.errors import InfeasibleError, OutOfTimeError, PolicyError
from shoal.search import Problem
from shoal.search.cuts.choices import Choices
from shoal.search.cuts.cuts import recoding_of_cuts
from shoal.search.cuts.k_optimize import k_optimize
from shoal.search.full_domain.optimal import optimal
from shoal.search.losses.cells import loss_of


def table(n=300, seed=1):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "age": rng.binomial(16, 0.4, n).astype(str),
            "zip": [f"{z:03}" for z in rng.choice([111, 112, 121, 211, 212, 333], n)],
            "sex": rng.choice(["F", "M"], n, p=[0.9, 0.1]),
            "s": rng.choice(["x", "y", "z"], n, p=[0.6, 0.3, 0.1]),
        }
    )


def problem(require=({"model": "k-anonymity", "k": 5},), sex=None, **release):
    policy = shoal.Policy.of(
        {
            "columns": {
                "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10]}},
                "zip": {"role": "quasi", "hierarchy": {"mask": "right"}},
                "sex": {"role": "quasi", **(sex or {})},
                "s": {"role": "sensitive"},
            },
            "require": list(require),
            "release": {"algorithm": "k_optimize", **release},
        }
    )
    return Problem.of(LocalEngine.of(table()).count(policy).table, policy)


def cost(problem, answer):
    return loss_of(problem, answer.released, answer.parts(problem.table), problem.objective_name)


@pytest.mark.parametrize("objective", ["discernibility", "loss", "arx-loss"])
def test_no_full_domain_answer_is_better(objective):
    asked = problem(objective=objective, max_suppression=0.05)
    answer = k_optimize(asked)
    assert answer.proved
    assert cost(asked, answer) <= cost(asked, optimal(problem(objective=objective, max_suppression=0.05))) + 1e-12


@pytest.mark.parametrize("cells", ["hierarchy", "range", "set"])
@pytest.mark.parametrize("objective", ["loss", "arx-loss", "precision", "height", "entropy", "ambiguity"])
def test_a_set_costs_what_its_recoding_does_however_cells_are_written(objective, cells):
    asked = problem(objective=objective, max_suppression=0.5)
    asked.cells = (cells,) * 3
    choices = Choices(asked)
    rng = np.random.default_rng(0)
    for share in (0, 0.2, 0.4, 0.6):
        chosen = rng.random(choices.axis.n_values) < share
        seen = choices.evaluated(chosen)
        if seen.feasible:
            assert seen.value == pytest.approx(cost(asked, recoding_of_cuts(asked, choices.axis.pieces(chosen), "any")))
    assert choices.evaluated(np.zeros(choices.axis.n_values, np.bool_)).feasible


def test_out_of_time_it_gives_the_best_so_far_and_a_bound(monkeypatch):
    least = cost(problem(objective="discernibility"), k_optimize(problem(objective="discernibility")))
    for looks in (0, 10):
        asked = problem(objective="discernibility", time_budget=1e6)
        left = iter(range(looks))
        monkeypatch.setattr(Problem, "out_of_time", property(lambda _, left=left: next(left, None) is None))
        answer = k_optimize(asked)
        monkeypatch.undo()
        assert not answer.proved
        assert answer.bound <= least <= cost(asked, answer)


def test_with_nothing_found_in_time_it_says_so(monkeypatch):
    require = [{"model": "k-anonymity", "k": 301}]
    assert table().num_rows == 300
    with pytest.raises(InfeasibleError):
        k_optimize(problem(require))
    convex = [{"model": "entropy-l-diversity", "l": 2.99}]
    asked = problem(convex, max_suppression=0.01, time_budget=1e6)
    monkeypatch.setattr(Problem, "out_of_time", property(lambda _: True))
    with pytest.raises(OutOfTimeError):
        k_optimize(asked)


def test_a_column_that_is_shown_or_hidden_is_never_shown_in_part():
    asked = problem(sex={"only": "suppress"}, objective="discernibility", max_suppression=0.1)
    codes = k_optimize(asked).parts(asked.table).codes
    assert len(np.unique(codes[:, 2])) in (1, 2)
    hidden = problem(sex={"only": "suppress"}, require=[{"model": "k-anonymity", "k": 40}], objective="loss")
    answer = k_optimize(hidden)
    assert len(np.unique(answer.parts(hidden.table).codes[:, 2])) == 1
    assert answer.proved


def test_persons_are_counted_where_an_entity_is_named():
    people = table().append_column("who", pa.array([str(i // 2) for i in range(300)]))
    policy = shoal.Policy.of(
        {
            "columns": {
                "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10]}},
                "zip": {"role": "quasi", "hierarchy": {"mask": "right"}},
                "sex": {"role": "quasi"},
                "s": {"role": "sensitive"},
                "who": {"role": "identifier"},
            },
            "require": [{"model": "k-anonymity", "k": 20}],
            "release": {"algorithm": "k_optimize", "entity": "who", "objective": "discernibility"},
        }
    )
    release = shoal.anonymize(people, policy)
    assert release.measured["k"] >= 20
    assert release.recoding.proved


def test_what_is_not_judged_class_by_class_is_refused():
    with pytest.raises(PolicyError, match="'k_optimize' does not support limits on the release"):
        k_optimize(problem([{"model": "average-risk", "max": 0.1}]))


def test_progress_is_told():
    said = []
    asked = problem(objective="loss")
    asked.progress = lambda what, share: said.append((what, share))
    k_optimize(asked)
    assert any("climbing" in what for what, _ in said)
    assert all(0 <= share <= 1 for _, share in said)
