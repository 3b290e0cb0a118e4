"""Iterative proportional fitting against a Poisson regression on the full cross table."""

from itertools import combinations

import numpy as np

from shoal.risk.loglinear import fit_loglinear
from shoal.tables.frequency import count_records


def regressed(codes, pairs):
    """λ of each record by Newton's method on dummy variables for every value and pair of values."""
    shape = tuple(codes.max(axis=0) + 1)
    cells = np.array(list(np.ndindex(shape)))
    observed = np.zeros(shape)
    np.add.at(observed, tuple(codes.T), 1)
    columns = [np.ones(len(cells))]
    columns += [cells[:, j] == v for j in range(len(shape)) for v in range(1, shape[j])]
    columns += [
        (cells[:, i] == v) & (cells[:, j] == w)
        for i, j in pairs
        for v in range(1, shape[i])
        for w in range(1, shape[j])
    ]
    X, y = np.column_stack(columns).astype(float), observed.ravel()
    mean = y + 0.5
    for _ in range(60):
        target = np.log(mean) + (y - mean) / mean
        beta = np.linalg.lstsq(X * np.sqrt(mean)[:, None], target * np.sqrt(mean), rcond=None)[0]
        mean = np.maximum(np.exp(np.clip(X @ beta, -40, 40)), 1e-12)
    return mean.reshape(shape)[tuple(codes.T)]


def test_the_fit_has_the_greatest_likelihood():
    rng = np.random.default_rng(8)
    for _ in range(60):
        q = int(rng.integers(2, 5))
        values = rng.integers(2, 4, q)
        codes = np.column_stack([rng.integers(0, v, 400) for v in values]).astype(np.int32)
        codes[:, 1] = np.where(rng.random(400) < 0.4, codes[:, 0] % values[1], codes[:, 1])
        every = list(combinations(range(q), 2))
        pairs = tuple(every[k] for k in rng.choice(len(every), rng.integers(0, len(every) + 1), replace=False))
        table, class_of = count_records(tuple("abcd"[:q]), codes, {})
        rates, converged = fit_loglinear(table, pairs)
        assert converged
        assert np.allclose(rates[class_of], regressed(codes, pairs), rtol=1e-3), pairs
