"""Searches that share their work among threads: with one, two and four of them the answer is the same, to the byte."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from shoal.compiled import threads
from shoal.errors import InfeasibleError, OutOfTimeError
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.masking import groups
from shoal.models.diversity import DistinctDiversity
from shoal.models.size import KAnonymity
from shoal.search import SEARCHES, Problem
from shoal.search.cells import cell_suppression, nearest
from shoal.search.cells import mondrian as of_mondrian
from shoal.search.cuts import cuts
from shoal.search.full_domain import prefetch, rollup
from shoal.search.problem import Terms
from shoal.tables.frequency import Domain, count_records


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Small tables are shared too."""
    monkeypatch.setattr(nearest, "MIN_THREADED", 1)
    monkeypatch.setattr(nearest, "TOGETHER", 3)
    monkeypatch.setattr(nearest, "WAVE", 5)
    monkeypatch.setattr(of_mondrian, "RUN", 1)
    monkeypatch.setattr(of_mondrian, "RUNS", 5)
    monkeypatch.setattr(rollup, "HUGE", 0)
    monkeypatch.setattr(prefetch, "MAX_SERIAL_TUPLES", 0)
    monkeypatch.setattr(prefetch, "QUICK", 0)
    monkeypatch.setattr(prefetch, "MAX_TOGETHER", 9)
    monkeypatch.setattr(cell_suppression, "TOGETHER", 5)
    monkeypatch.setattr(cuts, "MIN_THREADED_ROWS", 0)
    monkeypatch.setattr(cuts, "MIN_ROWS_PER_CLASS", 0)
    monkeypatch.setattr(groups, "MIN_THREADED", 1)


class Slow(ThreadPoolExecutor):
    """Threads that begin their parts late, each after another while, so that now one and now the other is ahead."""

    def submit(self, work, *given):
        pause = random.Random(str(given[1:2])).choice([0, 0.0002, 0.002])
        return super().submit(lambda: (time.sleep(pause), work(*given))[1])


def table(seed, *, apart):
    rng = np.random.default_rng(seed)
    n, sizes = int(rng.integers(20, 150)), rng.integers(2, 12, int(rng.integers(1, 5))).tolist()
    hierarchies = tuple(
        Hierarchy.from_paths(f"c{j}", [(str(i), f"{i // 3}/3", "*") for i in range(size)], leaf_order="numeric")
        for j, size in enumerate(sizes)
    )
    codes = np.column_stack([rng.integers(0, size, n) for size in sizes]).astype(np.int32)
    values = rng.integers(0, 3, n).astype(np.int32)
    ill = Domain("ill", ("a", "b", "c"), np.bincount(values, minlength=3))
    return count_records(
        tuple(h.column for h in hierarchies), codes, {ill: values}, None, hierarchies, separately=apart
    )[0]


def answer(algorithm, seed, terms, monkeypatch, n_threads):
    monkeypatch.setattr(threads, "THREADS", n_threads)
    counted = table(seed, apart=algorithm not in ("mondrian", "optimal"))
    told = []
    models = (KAnonymity(k=3), *([DistinctDiversity(l=2)] if seed % 2 else []))
    problem = Problem(counted, models, Terms(**terms), progress=lambda *share: told.append(share))
    try:
        found = SEARCHES[algorithm](problem)
    except (InfeasibleError, OutOfTimeError) as error:
        return str(error), problem.n_evaluated, told
    parts = found.parts(counted)
    arrays = (parts.row, parts.counts, parts.codes, parts.suppressed)
    return [a.tobytes() for a in arrays], [v.labels for v in found.released], found.n_evaluated, found.claim, told


CHANGED = [
    ("forest", {}),
    ("forest_generalize", {"weights": (1, 0.3, 0.7, 1.1)}),
    ("cover", {}),
    ("mondrian", {"dimension": "gain"}),
    ("mondrian", {"dimension": "range", "cells": ("range",) * 4}),
    ("mondrian_relaxed", {"dimension": "entropy"}),
    ("optimal", {"limit": 3}),
    ("exhaustive", {"limit": 3}),
    ("exhaustive", {"limit": 3, "objective": "entropy"}),
    ("mingen", {"limit": 3, "objective": "precision"}),
    ("samarati", {}),
    ("samarati", {"limit": 3, "objective": "discernibility"}),
    ("samarati", {"limit": 9, "keep_suppressed": True}),
    ("incognito", {"limit": 3}),
    ("incognito", {"limit": 9, "objective": "discernibility"}),
    ("ola", {"limit": 3}),
    ("k_minimal", {"limit": 3, "preference": "maximum-distribution"}),
    ("flash", {"limit": 3}),
    ("local_suppression", {}),
    ("suppress_cells", {}),
    ("mdav", {}),
    ("top_down", {"limit": 3}),
    ("genetic", {"limit": 3}),
    ("annealing", {"limit": 3, "cells": ("range",) * 4}),
]


def cut(terms, seed):
    """The terms for a table that may have fewer columns."""
    n_columns = len(table(seed, apart=False).columns)
    return {name: of[:n_columns] if isinstance(of, tuple) else of for name, of in terms.items()}


@pytest.mark.parametrize(("algorithm", "terms"), CHANGED)
def test_the_number_of_threads_changes_nothing(algorithm, terms, monkeypatch):
    for seed in range(8):
        one, *others = (answer(algorithm, seed, cut(terms, seed), monkeypatch, n) for n in (1, 2, 4))
        assert all(other == one for other in others), seed


@pytest.mark.parametrize(("algorithm", "terms"), CHANGED)
def test_which_thread_is_faster_changes_nothing(algorithm, terms, monkeypatch):
    one = [answer(algorithm, seed, cut(terms, seed), monkeypatch, 1) for seed in range(3)]
    monkeypatch.setattr(threads, "ThreadPoolExecutor", Slow)
    for n_threads in (2, 3):
        assert [answer(algorithm, seed, cut(terms, seed), monkeypatch, n_threads) for seed in range(3)] == one


LOOKING_AHEAD = [case for case in CHANGED if case[0] in ("exhaustive", "mingen", "samarati", "incognito")]


@pytest.mark.parametrize(("algorithm", "terms"), LOOKING_AHEAD)
def test_looking_ahead_changes_nothing(algorithm, terms, monkeypatch):
    """Neither the answer nor what is counted and told: a node that is evaluated for nothing leaves no trace."""
    for seed in range(12):
        ahead_of = answer(algorithm, seed, cut(terms, seed), monkeypatch, 2)
        with monkeypatch.context() as sequential:
            sequential.setattr(prefetch, "MAX_SERIAL_TUPLES", 1 << 60)
            assert answer(algorithm, seed, cut(terms, seed), monkeypatch, 1) == ahead_of, seed


@pytest.mark.parametrize(("algorithm", "terms"), LOOKING_AHEAD)
@pytest.mark.parametrize("most", [0, 1, 4, 7, 30])
def test_time_that_runs_out_ends_a_search_at_the_node_that_was_asked_for(algorithm, terms, most, monkeypatch):
    monkeypatch.setattr(Problem, "out_of_time", property(lambda problem: problem.n_evaluated >= most))
    for seed in range(4):
        ahead_of = answer(algorithm, seed, cut(terms, seed), monkeypatch, 2)
        with monkeypatch.context() as sequential:
            sequential.setattr(prefetch, "MAX_SERIAL_TUPLES", 1 << 60)
            assert answer(algorithm, seed, cut(terms, seed), monkeypatch, 1) == ahead_of, seed


@pytest.mark.parametrize("algorithm", ["exhaustive", "samarati", "local_suppression", "mdav"])
def test_an_exception_ends_a_search_on_two_threads(algorithm, monkeypatch):
    monkeypatch.setattr(threads, "THREADS", 2)

    def interrupted(*_):
        raise KeyboardInterrupt

    problem = Problem(table(2, apart=True), (KAnonymity(k=3),), progress=interrupted)
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        SEARCHES[algorithm](problem)
    assert threading.active_count() == before


def test_nodes_ahead_are_really_evaluated_by_two_threads(monkeypatch):
    monkeypatch.setattr(threads, "THREADS", 2)
    who = set()
    evaluated = Problem.evaluated

    def noted(problem, node, **options):
        who.add(threading.get_ident())
        time.sleep(0.001)
        return evaluated(problem, node, **options)

    monkeypatch.setattr(Problem, "evaluated", noted)
    SEARCHES["exhaustive"](Problem(table(2, apart=False), (KAnonymity(k=3),)))
    assert len(who) >= 2
