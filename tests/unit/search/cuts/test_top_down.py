"""top_down: every step by definition, its end, and the label."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import shoal
from examples import examples
from shoal.engines.local import LocalEngine
from shoal.errors import InfeasibleError, PolicyError
from shoal.search import Problem
from shoal.search.cells.classes import require_class_by_class
from shoal.search.cuts.cuts import judged_classes
from shoal.search.cuts.ordered import Axis
from shoal.search.cuts.top_down import _steps, top_down
from shoal.search.losses.cells import losses
from strategies import OBJECTIVES, cases, problem_of


def pieces_of(problem, answer):
    """The released value of each leaf, as pieces."""
    return [ids.astype(np.int32) for ids in answer.of_leaf]


@examples(100)
@given(cases(max_rows=12), st.sampled_from(OBJECTIVES), st.sampled_from(["hierarchy", "range"]))
def test_the_answer_satisfies_and_no_single_step_below_it_helps(case, objective, cells):
    problem = problem_of(case, objective)
    problem.cells = (cells,) * len(problem.table.columns)
    try:
        require_class_by_class(problem, "top_down")
    except PolicyError:
        assume(False)
    axis = Axis(problem.table)
    top = judged_classes(problem, axis.pieces(np.zeros(axis.n_values, np.bool_)))
    if not top.feasible:
        with pytest.raises(InfeasibleError):
            top_down(problem)
        return
    answer = top_down(problem)
    assert not answer.proved
    seen = judged_classes(problem, pieces_of(problem, answer))
    assert seen.feasible
    assert seen.n_suppressed == answer.parts(problem.table).n_suppressed
    value = losses(problem, answer)[objective]
    # What is chosen, read off the answer; then every step that is left is tried.
    chosen = np.zeros(axis.n_values, np.bool_)
    for j, domain in enumerate(axis.domains):
        ids = np.array([answer.of_leaf[j][of[0]] for of in domain.values])
        chosen[axis.listed[j][ids[1:] != ids[:-1]]] = True
    ends = axis.intervals(chosen)[1]
    for j, domain in enumerate(axis.domains):
        for first, last in ends[j]:
            for step in _steps(domain, j, cells, first, last):
                finer = chosen.copy()
                finer[axis.listed[j][np.array(step.starts) - 1]] = True
                pieces = axis.pieces(finer)
                after = judged_classes(problem, pieces)
                if after.feasible:
                    from shoal.search.cuts.cuts import recoding_of_cuts

                    assert losses(problem, recoding_of_cuts(problem, pieces, "finer"))[objective] >= value - 1e-9 * max(
                        1, value
                    )


def test_a_step_that_leaves_too_few_stars_is_tried_again():
    # Cutting b alone leaves one record of stars, which fails; with c cut as well there are two that pass together.
    table = pa.table({
        "b": ["b0"] * 10 + ["b1"],
        "c": ["c0"] * 9 + ["c1"] * 2,
        "s": ["x"] * 8 + ["y", "x", "y"],
    })  # fmt: skip
    asked = shoal.Policy.of({
        "columns": {"b": {"role": "quasi"}, "c": {"role": "quasi"}, "s": {"role": "sensitive"}},
        "require": [{"model": "distinct-l-diversity", "l": 2}],
        "release": {"algorithm": "top_down", "suppressed": "keep", "max_suppression": 1.0},
    })  # fmt: skip
    release = shoal.anonymize(table, asked)
    assert release.suppressed == 2
    assert release.loss["loss"] == pytest.approx(2 / 11)


def frame():
    return pa.table(
        {
            "age": [str(a) for a in (21, 22, 23, 24, 51, 52, 53, 54)],
            "job": ["nurse", "nurse", "doctor", "doctor", "clerk", "clerk", "clerk", "clerk"],
            "s": list("xxyyzzzz"),
        }
    )


def policy(cells="hierarchy", k=2, **release):
    tree = {"*": {"health": ["nurse", "doctor"], "office": ["clerk"]}}
    return shoal.Policy.of(
        {
            "columns": {
                "age": {"role": "quasi", "hierarchy": {"intervals": [50]}, "cells": cells},
                "job": {"role": "quasi", "hierarchy": {"tree": tree}},
                "s": {"role": "sensitive"},
            },
            "require": [{"model": "k-anonymity", "k": k}],
            "release": {"algorithm": "top_down", **release},
        }
    )


def test_a_label_gives_way_to_its_children_one_level_at_a_time():
    release = shoal.anonymize(frame(), policy())
    assert set(release.table["job"].to_pylist()) == {"nurse", "doctor", "clerk"}
    assert set(release.table["age"].to_pylist()) == {"0-49", "50-99"}


def test_with_ranges_numbers_are_cut_in_two_where_it_helps_most():
    release = shoal.anonymize(frame(), policy("range"))
    assert set(release.table["age"].to_pylist()) == {"21-22", "23-24", "51-52", "53-54"}
    assert release.measured["k"] == 2


def test_with_a_label_the_gain_is_in_what_is_told_about_it():
    # The label tells nurses, doctors and clerks apart, and so does the job; age tells less of it.
    release = shoal.anonymize(frame(), policy(k=2, label="s"))
    assert release.loss["classification"] == 0
    assert "classification" not in shoal.anonymize(frame(), policy()).loss
    coarse = shoal.anonymize(frame(), policy(k=8, label="s"))
    assert coarse.loss["classification"] == pytest.approx(1 - 4 / 8)


def test_a_gain_counts_less_the_more_anonymity_it_takes():
    # a tells more of the label than b, 0.276 bits against 0.191, but leaves a class of 4 where b leaves two of 10.
    cells = [("v", "c", "y", 2), ("v", "d", "y", 2), ("u", "c", "x", 8), ("u", "d", "x", 3), ("u", "d", "y", 5)]
    rows = [row for *row, n in cells for _ in range(n)]
    table = pa.table(dict(zip(("a", "b", "s"), map(list, zip(*rows, strict=True)), strict=True)))
    fields = {
        "columns": {"a": {"role": "quasi"}, "b": {"role": "quasi"}, "s": {"role": "sensitive"}},
        "require": [{"model": "k-anonymity", "k": 4}],
        "release": {"algorithm": "top_down", "label": "s"},
    }
    release = shoal.anonymize(table, shoal.Policy.of(fields))
    assert set(release.table["b"].to_pylist()) == {"c", "d"}
    assert set(release.table["a"].to_pylist()) == {"*"}


def test_suppressed_records_are_misled_about():
    table = pa.table({"q": [*"aaab"], "s": [*"xxyz"]})
    fields = {
        "columns": {"q": {"role": "quasi"}, "s": {"role": "sensitive"}},
        "require": [{"model": "k-anonymity", "k": 2}],
        "release": {"label": "s", "max_suppression": 0.25},
    }
    release = shoal.anonymize(table, shoal.Policy.of(fields))
    assert release.suppressed == 1
    assert release.loss["classification"] == pytest.approx(2 / 4)


def test_it_does_not_say_that_nothing_satisfies_where_only_the_top_fails():
    table = pa.table({"q": [*"aabbbb"], "s": [*"xyxxxx"]})
    fields = {
        "columns": {"q": {"role": "quasi"}, "s": {"role": "sensitive"}},
        "require": [{"model": "k-anonymity", "k": 2}, {"model": "entropy-l-diversity", "l": 2}],
        "release": {"algorithm": "top_down", "max_suppression": 0.7},
    }
    with pytest.raises(InfeasibleError, match="'top_down' found no release") as raised:
        shoal.anonymize(table, shoal.Policy.of(fields))
    assert "no generalization" not in str(raised.value)


def test_out_of_time_it_stops_where_it_is(monkeypatch):
    problem = Problem.of(LocalEngine.of(frame()).count(policy()).table, policy())
    left = itertools.repeat(True)
    monkeypatch.setattr(Problem, "out_of_time", property(lambda _: next(left)))
    answer = top_down(problem)
    assert [len(np.unique(column)) for column in answer.parts(problem.table).codes.T] == [1, 1]
