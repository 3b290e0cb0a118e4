"""Microaggregation against brute force and against a second, plain implementation."""

from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest

from shoal.masking import kernels
from shoal.masking.groups import improve_groups, mdav_groups, univariate, v_mdav
from shoal.masking.points import Points


def within(values, group):
    """Σ (x − mean)², exact."""
    total = Fraction(0)
    for g in set(group):
        own = [Fraction(x) for x, of in zip(values, group, strict=True) if of == g]
        mean = sum(own) / len(own)
        total += sum((x - mean) ** 2 for x in own)
    return total


@lru_cache(None)
def partitions(n, k):
    """All partitions of n records into groups of k or more, as restricted growth strings."""
    found = []

    def grow(prefix, sizes):
        if len(prefix) == n:
            if min(sizes) >= k:
                found.append(tuple(prefix))
            return
        for g in range(len(sizes) + 1):
            grow([*prefix, g], [*sizes[:g], sizes[g] + 1, *sizes[g + 1 :]] if g < len(sizes) else [*sizes, 1])

    grow([], [])
    return found


@pytest.mark.parametrize("seed", range(40))
def test_no_partition_of_one_column_has_a_smaller_sum_of_squares(seed):
    draw = np.random.default_rng(seed)
    for _ in range(10):
        n = int(draw.integers(1, 8))
        k = int(draw.integers(1, min(n, 4) + 1))
        values = draw.integers(-6, 12, n) ** int(draw.integers(1, 3))
        group = univariate(values.astype(np.float64), k)
        assert np.bincount(group).min() >= k
        found = within(values.tolist(), group.tolist())
        assert found == min(within(values.tolist(), of) for of in partitions(n, k))


def consecutive(values, k):
    """The least sum of squares over all cuts of the sorted values, by plain recursion."""
    values = sorted(values)

    @lru_cache(None)
    def least(start):
        if start == len(values):
            return 0.0
        ends = range(start + k, len(values) + 1)
        costs = [np.var(values[start:e]) * (e - start) + least(e) for e in ends]
        return min(costs, default=np.inf)

    return least(0)


def test_longer_columns_against_a_plain_recursion():
    draw = np.random.default_rng(5)
    for _ in range(300):
        n = int(draw.integers(5, 30))
        k = int(draw.integers(1, 6))
        values = np.round(draw.normal(size=n) * 10.0 ** draw.integers(-3, 4), 3)
        group = univariate(values, k)
        sse = sum(np.var(values[group == g]) * (group == g).sum() for g in np.unique(group))
        assert sse == pytest.approx(consecutive(values.tolist(), k), rel=1e-7, abs=1e-12)


def plain_mdav(distance, from_mean, n, k):
    """MDAV as its paper tells it, on functions of records."""
    left, groups = list(range(n)), []

    def close(i):
        members = sorted(left, key=lambda other: (distance(i, other), other))[:k]
        groups.append(members)
        for member in members:
            left.remove(member)

    while len(left) >= 3 * k:
        far = max(left, key=lambda i: (from_mean(i, left), -i))
        away = {i: distance(far, i) for i in left}
        close(far)
        close(max(left, key=lambda i: (away[i], -i)))
    if len(left) >= 2 * k:
        close(max(left, key=lambda i: (from_mean(i, left), -i)))
    if left:
        groups.append(left)
    return {frozenset(members) for members in groups}


def test_mdav_of_numbers_and_categories_is_the_plain_one():
    draw = np.random.default_rng(3)
    for _ in range(400):
        n = int(draw.integers(2, 26))
        k = int(draw.integers(1, min(n, 5) + 1))
        mixed = bool(draw.integers(2))
        numbers = [draw.integers(0, 1000, n).astype(float) for _ in range(int(draw.integers(1, 4)))]
        signs = [draw.integers(0, 3, n).astype(np.int32) for _ in range(2 * mixed)]
        points = Points.from_columns(numbers, signs, [0.7, 0.4][: len(signs)], n=n)
        power = 2 if not mixed else 1
        x = points.numbers

        def distance(i, j, x=x, power=power, signs=signs):
            own = (np.abs(x[i] - x[j]) ** power).sum()
            return round(own + sum(p * (s[i] != s[j]) for p, s in zip([0.7, 0.4], signs, strict=False)), 12)

        def from_mean(i, left, x=x, power=power, signs=signs):
            own = (np.abs(x[i] - x[left].mean(axis=0)) ** power).sum()
            return round(own + sum(p * (s[left] != s[i]).mean() for p, s in zip([0.7, 0.4], signs, strict=False)), 12)

        group = mdav_groups(points, k)
        assert {frozenset(np.flatnonzero(group == g).tolist()) for g in np.unique(group)} == plain_mdav(
            distance, from_mean, n, k
        )


def test_kernels_against_numpy():
    draw = np.random.default_rng(0)
    for _ in range(100):
        n = int(draw.integers(1, 30))
        points = Points.from_columns([draw.normal(size=n)] * 2, [draw.integers(0, 4, n).astype(np.int32)], [0.5], n=n)
        left = np.flatnonzero(draw.integers(0, 2, n) | (np.arange(n) == 0))
        i = int(draw.integers(n))
        away = kernels.distances(points.numbers, points.signs, points.prices, points.squared, i, left)
        expected = np.abs(points.numbers[left] - points.numbers[i]).sum(axis=1)
        expected += 0.5 * (points.signs[left, 0] != points.signs[i, 0])
        assert away == pytest.approx(expected)
        m = int(draw.integers(1, n + 3))
        coarse = np.round(away, 1)
        assert kernels.smallest_positions(coarse, m).tolist() == np.argsort(coarse, kind="stable")[:m].tolist()


def test_what_improving_finds_is_never_worse_and_no_single_swap_is_left_where_all_groups_are_near():
    draw = np.random.default_rng(9)
    for _ in range(60):
        n = int(draw.integers(4, 14))
        k = int(draw.integers(2, 4))
        if n < 2 * k:
            continue
        points = Points.from_columns([draw.normal(size=n), draw.normal(size=n)], n=n)

        def sse(group, points=points):
            return sum(np.var(points.numbers[group == g], axis=0).sum() * (group == g).sum() for g in np.unique(group))

        for start in (mdav_groups(points, k), v_mdav(points, k)):
            group = improve_groups(points, start, k)
            best = sse(group)
            assert best <= sse(start) + 1e-9
            assert np.bincount(group).min() >= k
            assert np.bincount(group).max() <= 2 * k - 1
            for i in range(n):
                for j in range(n):
                    swapped = group.copy()
                    swapped[[i, j]] = group[[j, i]]
                    assert sse(swapped) >= best - 1e-6
