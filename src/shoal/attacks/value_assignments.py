"""Assignments of the sensitive values of a class to its people, given that every finer release was infeasible.

People of a class who fall into the same classes of every finer release form a *group*. A *deal* says how many of each
value every group has; if values are dealt at random, its probability is proportional to the number of ways to do so.
A finer release is refused if more records than may be suppressed lie in failing classes. Classes therefore depend on
each other only through these numbers, which are convolved class by class.
All deals of a class are listed if there are few; otherwise a sample is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import exp, inf, lgamma, log, log1p

import numpy as np
from numpy.typing import NDArray

from shoal.tables.frequency import Counts, Floats

# A class of a finer release and histograms (rows, joint values) that it may have, to whether it would fail with each.
Failing = Callable[[int, Counts], NDArray[np.bool_]]

LISTED = 2_000  # deals of a class that are all listed
DRAWN = 200  # deals drawn of a class that has more
STATES = 20_000  # sums of failing records that are told apart

Sums = dict[tuple[int, ...], float]  # logarithms of chances: those of many classes together are too small for a float


class TooManyError(Exception):
    """There are too many cases to enumerate."""


@dataclass(frozen=True, eq=False)
class Deals:
    """The possible assignments of one class."""

    tables: Counts  # (deals, groups, values)
    chances: Floats  # (deals)
    failing: Counts  # (deals, finer releases)  records in classes that fail
    listed: bool  # whether these are all deals


def deals(
    sizes: Counts, values: Counts, parts: Sequence[Counts], refused: Sequence[Failing], random: np.random.Generator
) -> Deals:
    """Return the assignments of a class whose groups have ``sizes`` and whose people have ``values``.

    Per finer release, ``parts`` has the class of each group, and ``refused`` judges the histograms of such classes.
    """
    listed = _listed(sizes, values)
    if listed is None:
        tables = np.array([_drawn(sizes, values, random) for _ in range(DRAWN)])
        chances = np.full(DRAWN, 1 / DRAWN)
    else:
        tables = listed
        logs = np.array([-sum(lgamma(n + 1) for n in table.ravel().tolist()) for table in tables])
        chances = np.exp(logs - logs.max())
        chances /= chances.sum()
    failing = np.zeros((len(tables), len(parts)), np.int64)
    for j, (part_of, fails) in enumerate(zip(parts, refused, strict=True)):
        for part in np.unique(part_of).tolist():
            histograms = tables[:, part_of == part].sum(axis=1)
            distinct, row_of = np.unique(histograms, axis=0, return_inverse=True)
            failing[:, j] += fails(part, distinct)[row_of.ravel()] * int(sizes[part_of == part].sum())
    return Deals(tables, chances, failing, listed is not None)


def _listed(sizes: Counts, values: Counts) -> Counts | None:
    """List all tables of groups by values with these sums; None if there are too many."""
    out = []
    for table in _tables(sizes.tolist(), tuple(values.tolist())):
        out.append(table)
        if len(out) > LISTED:
            return None
    return np.array(out, np.int64)


def _tables(sizes: list[int], left: tuple[int, ...]) -> Iterator[list[tuple[int, ...]]]:
    if len(sizes) == 1:
        yield [left]
        return
    for row in _rows(sizes[0], left):
        for rest in _tables(sizes[1:], tuple(n - m for n, m in zip(left, row, strict=True))):
            yield [row, *rest]


def _rows(n: int, left: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """List the ways to take ``n`` values from those that are left."""
    if len(left) == 1:
        if n <= left[0]:
            yield (n,)
        return
    rest_total = sum(left[1:])
    for first in range(max(0, n - rest_total), min(n, left[0]) + 1):
        for rest in _rows(n - first, left[1:]):
            yield (first, *rest)


def _drawn(sizes: Counts, values: Counts, random: np.random.Generator) -> Counts:
    left, rows = values.copy(), []
    for n in sizes[:-1].tolist():
        rows.append(random.multivariate_hypergeometric(left, n))
        left = left - rows[-1]
    return np.array([*rows, left], np.int64)


def posterior(classes: list[Deals], allowance: int) -> list[Floats] | None:
    """Return the posterior of each class's deals, given that every finer release is infeasible; None if none is.

    A release is infeasible if more records than ``allowance`` lie in failing classes.
    """
    n_finer = classes[0].failing.shape[1]
    nothing = (0,) * n_finer
    enough = allowance + 1
    merged = [_merged(of_class, enough) for of_class in classes]
    after: list[Sums] = [{nothing: 0.0}]  # of the classes from each on
    for sums in reversed(merged):
        after.append(_added(after[-1], sums, enough))
    after.reverse()
    before: Sums = {nothing: 0.0}
    out = []
    for i, of_class in enumerate(classes):
        other_sums = _added(before, after[i + 1], enough)
        chance_of: dict[tuple[int, ...], float] = {}
        for own_sums in merged[i]:
            chance_of[own_sums] = _sum([
                chance
                for sums, chance in other_sums.items()
                if all(a + b >= enough for a, b in zip(own_sums, sums, strict=True))
            ])  # fmt: skip
        log_chances = np.array([chance_of[key] for key in _keys(of_class, enough)])
        if np.isneginf(log_chances).all():
            return None
        weighed = of_class.chances * np.exp(log_chances - log_chances.max())
        out.append(weighed / weighed.sum())
        before = _added(before, merged[i], enough)
    return out


def _keys(of_class: Deals, enough: int) -> list[tuple[int, ...]]:
    return [tuple(row) for row in np.minimum(of_class.failing, enough).tolist()]


def _merged(of_class: Deals, enough: int) -> Sums:
    out: Sums = {}
    for key, chance in zip(_keys(of_class, enough), of_class.chances.tolist(), strict=True):
        out[key] = out.get(key, 0.0) + chance
    return {key: log(chance) for key, chance in out.items() if chance > 0}


def _sum(logs: list[float]) -> float:
    """Return the logarithm of the sum of exponentials."""
    highest = max(logs, default=-inf)
    return highest if highest == -inf else highest + log(sum(exp(x - highest) for x in logs))


def _added(left: Sums, right: Sums, enough: int) -> Sums:
    """Return the distribution of the sum of both, with each number capped at what is enough."""
    if len(left) * len(right) > 50 * STATES:
        raise TooManyError
    out: Sums = {}
    for a, p in left.items():
        for b, q in right.items():
            key = tuple(min(x + y, enough) for x, y in zip(a, b, strict=True))
            low, high = sorted((out.get(key, -inf), p + q))
            out[key] = high + log1p(exp(low - high))
    if len(out) > STATES:
        raise TooManyError
    return out
