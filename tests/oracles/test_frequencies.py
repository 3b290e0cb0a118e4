"""Frequencies under nulls against comparing every record with every other."""

from dataclasses import replace

import numpy as np

from shoal.risk.keys import matched
from shoal.tables.frequency import count_records


def by_pairs(rows, weights, alpha):
    """By definition: others without nulls and equals count in full, others with nulls alpha."""
    sample, population = [], []
    for one in rows:
        f = F = 0.0
        for other, weight in zip(rows, weights, strict=True):
            if all(value is None for value in one):
                factor = 1.0
            elif not all(x == y or x is None or y is None for x, y in zip(one, other, strict=True)):
                factor = 0.0
            else:
                factor = alpha if None in other and other != one else 1.0
            f += factor
            F += factor * weight
        sample.append(f)
        population.append(F)
    return sample, population


def test_every_alpha_gives_what_the_definition_says():
    rng = np.random.default_rng(2)
    for _ in range(1_000):
        n, q = rng.integers(1, 15), rng.integers(1, 5)
        codes = rng.integers(0, 3, (n, q)).astype(np.int32)
        codes[(codes == 0) & (rng.random((n, q)) < 0.7)] = 9
        rows = [tuple(None if code == 9 else int(code) for code in row) for row in codes]
        weights = rng.uniform(0.5, 30, n)
        table, class_of = count_records(tuple("abcd"[:q]), codes, {})
        sums = np.stack([table.counts, np.bincount(class_of, weights)])
        alpha = float(rng.choice([0, 0.1, 0.5, 1]))
        found = matched(replace(table, nulls=(9,) * q), sums, nulls="wildcard", alpha=alpha)[:, class_of]
        sample, population = by_pairs(rows, weights, alpha)
        assert np.allclose(found[0], sample, rtol=1e-12), rows
        assert np.allclose(found[1], population, rtol=1e-12), rows
