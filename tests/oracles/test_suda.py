"""SUDA2 against trying every set of columns for every record."""

from dataclasses import replace
from itertools import combinations
from math import factorial

import numpy as np
import pytest

from shoal.risk.suda2 import special_uniques
from shoal.tables.frequency import count_records


def compatible(one, other, columns, wildcard):
    return all(one[j] == other[j] or (wildcard and (one[j] is None or other[j] is None)) for j in columns)


def brute_force(rows, wildcard, max_size):
    """Sizes and contributions of the MSU of each record, by definition."""
    M = len(rows[0])
    sets = [columns for size in range(1, M + 1) for columns in combinations(range(M), size)]
    scores, parts = np.zeros(len(rows)), np.zeros((len(rows), M))
    for i, row in enumerate(rows):
        alone = {
            columns
            for columns in sets
            if not any(compatible(row, other, columns, wildcard) for k, other in enumerate(rows) if k != i)
        }
        for columns in alone:
            proper = [part for size in range(1, len(columns)) for part in combinations(columns, size)]
            if len(columns) <= max_size and not any(part in alone for part in proper):
                scores[i] += factorial(M - len(columns))
                parts[i, list(columns)] += factorial(M - len(columns))
    return scores, parts


def table(rng, nulls):
    """Small random tables; a null is None in the rows, and 9 in the codes."""
    n, M = rng.integers(1, 13), rng.integers(1, 6)
    codes = rng.integers(0, rng.integers(1, 5) + 1, (n, M)).astype(np.int32)
    codes[rng.random((n, M)) < nulls] = 9
    rows = [tuple(None if code == 9 else int(code) for code in row) for row in codes]
    found, class_of = count_records(tuple(f"c{j}" for j in range(M)), codes, {})
    return rows, replace(found, nulls=(9,) * M), class_of


@pytest.mark.parametrize("reading", ["category", "wildcard"])
def test_scores_and_contributions_are_those_of_the_definition(reading):
    rng = np.random.default_rng(11)
    special = 0
    for _ in range(1_000):
        rows, counts, class_of = table(rng, float(rng.choice([0, 0.1, 0.4])))
        max_size = int(rng.integers(1, len(rows[0]) + 1))
        found = special_uniques(counts, nulls=reading, max_size=max_size)
        scores, parts = brute_force(rows, reading == "wildcard", max_size)
        assert found.scores[class_of].tolist() == scores.tolist(), rows
        shares = np.divide(parts, scores[:, None], out=np.zeros_like(parts), where=scores[:, None] > 0)
        assert np.allclose(found.contributions[class_of], shares, rtol=0, atol=1e-12), rows
        special += (scores > 0).sum()
    assert special > 1_000
