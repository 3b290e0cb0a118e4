"""Searches that share their work among threads: with one, two and four of them the answer is the same, to the byte."""

import numpy as np
import pytest

from shoal.models.diversity import DistinctDiversity
from shoal.models.size import KAnonymity
from shoal.search import SEARCHES, Problem
from shoal.search.cells import mondrian as of_mondrian
from shoal.search.cells import nearest
from shoal.search.full_domain import rollup
from shoal.search.problem import Terms
from shoal.table import threads
from shoal.table.frequency import Domain, count_records
from shoal.table.hierarchy import Hierarchy


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Small tables are shared too."""
    monkeypatch.setattr(nearest, "MANY", 1)
    monkeypatch.setattr(nearest, "TOGETHER", 3)
    monkeypatch.setattr(nearest, "WAVE", 5)
    monkeypatch.setattr(of_mondrian, "RUN", 1)
    monkeypatch.setattr(of_mondrian, "RUNS", 5)
    monkeypatch.setattr(rollup, "HUGE", 0)


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
    return count_records(tuple(h.column for h in hierarchies), codes, {ill: values}, None, hierarchies, apart=apart)[0]


def answer(algorithm, seed, terms, monkeypatch, n_threads):
    monkeypatch.setattr(threads, "THREADS", n_threads)
    counted = table(seed, apart=algorithm not in ("mondrian", "optimal"))
    told = []
    models = (KAnonymity(k=3), *([DistinctDiversity(l=2)] if seed % 2 else []))
    problem = Problem(counted, models, Terms(**terms), progress=lambda *share: told.append(share))
    found = SEARCHES[algorithm](problem)
    parts = found.parts(counted)
    arrays = (parts.row, parts.counts, parts.codes, parts.suppressed)
    return [a.tobytes() for a in arrays], [v.labels for v in found.released], found.n_evaluated, found.claim, told


@pytest.mark.parametrize(
    ("algorithm", "terms"),
    [
        ("forest", {}),
        ("forest_generalize", {"weights": (1, 0.3, 0.7, 1.1)}),
        ("cover", {}),
        ("mondrian", {"dimension": "gain"}),
        ("mondrian", {"dimension": "range", "cells": ("range",) * 4}),
        ("mondrian_relaxed", {"dimension": "entropy"}),
        ("optimal", {"limit": 3}),
    ],
)
def test_the_number_of_threads_changes_nothing(algorithm, terms, monkeypatch):
    for seed in range(8):
        n_columns = len(table(seed, apart=False).columns)
        cut = {name: of[:n_columns] if isinstance(of, tuple) else of for name, of in terms.items()}
        one, *others = (answer(algorithm, seed, cut, monkeypatch, n) for n in (1, 2, 4))
        assert all(other == one for other in others), seed
