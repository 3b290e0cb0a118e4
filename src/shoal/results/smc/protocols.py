"""Computations on shares, with mpyc: what is opened is the result and nothing else.

Every function is called by all parties in the same order, each with its own rows. Shamir's secret sharing over a prime
field; a threshold of fewer than half of the parties; semi-honest, that is, all follow the protocol.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

from shoal.errors import InfeasibleError
from shoal.results.smc.local import LocalRows
from shoal.results.smc.plan import MAX_ROWS

WIDE = 256  # bits of numbers that are added and multiplied once
NARROW = 72  # bits of numbers that are compared: 2^31 rows of each of 64 parties, times the fraction of a quantile
DIGITS = 8  # of a coefficient
_LEAST_EXPONENT, _LARGEST_EXPONENT = -12, 24  # of ten; coefficients beyond are 0 or refused

Opened = list[int]


async def sums_in_shares(runtime: Any, numbers: Sequence[int]) -> list[Any]:
    """Return the sums of the parties' numbers in shares."""
    secint = runtime.SecInt(WIDE)
    shared = runtime.input([secint(number) for number in numbers])
    return [runtime.sum([of_party[i] for of_party in shared]) for i in range(len(numbers))]


async def opened_to_all(runtime: Any, numbers: Sequence[Any]) -> Opened:
    """Open shares to all parties."""
    return [int(number) for number in await runtime.output(list(numbers))] if numbers else []


async def enough(runtime: Any, sizes: Sequence[int], n_identifiers: Sequence[int], at_least: int) -> bool:
    """Open one bit: whether everything that will be opened is about so many rows, and nothing else about their number.

    Parties that pool what they see can subtract their own rows. So the rows of the others must be enough, whoever
    these are; and each party must have enough identifiers, as one with a single identifier would ask about a person.
    """
    secint = runtime.SecInt(NARROW)
    n_parties = len(runtime.parties)
    shared = runtime.input([secint(size) for size in (*sizes, *n_identifiers)])
    bits = []
    for coalition in combinations(range(n_parties), n_parties - runtime.threshold):
        bits += [runtime.sum([shared[i][j] for i in coalition]) >= at_least for j in range(len(sizes))]
    for of_party in shared:
        bits += [number >= at_least for number in of_party[len(sizes) :]]
    return bool(await runtime.output(runtime.prod(bits)))


def deviations(runtime: Any, count: Any, total: Any, squares: Any) -> Any:
    """Return ``n Σx² - (Σx)²`` in shares: with ``n``, it gives the variance but not the mean."""
    return count * squares - total * total


# ── order statistics ────────────────────────────────────────────────────────────────────────────────────────────


async def order_statistics(
    runtime: Any, rows: LocalRows, wanted: Sequence[tuple[str, Fraction | None]]
) -> list[int | None]:
    """Open order statistics: for each, a column and the fraction of rows up to the answer (None: at least one row).

    G. Aggarwal, N. Mishra, B. Pinkas, "Secure computation of the k-th ranked element", EUROCRYPT 2004: a binary search
    between the agreed bounds. Each step opens whether enough rows are up to a value, which follows from the answer.
    Where no party has a value, there is none, and that is opened.
    """
    secint = runtime.SecInt(NARROW)
    own_counts = [rows.below(name) for name, _ in wanted]
    totals = runtime.input([secint(below[-1] if below else 0) for _, below in own_counts])
    n_rows = [runtime.sum([of_party[i] for of_party in totals]) for i in range(len(wanted))]
    present = [bool(int(bit)) for bit in await runtime.output([total >= 1 for total in n_rows])]
    low, high = map(list, zip(*(rows.plan.limits(name) for name, _ in wanted), strict=True))
    while open_ones := [i for i in range(len(wanted)) if present[i] and low[i] < high[i]]:
        middle = {i: (low[i] + high[i]) // 2 for i in open_ones}
        shared = runtime.input([secint(_up_to(own_counts[i], middle[i])) for i in open_ones])
        bits = []
        for j, i in enumerate(open_ones):
            up_to, fraction = runtime.sum([of_party[j] for of_party in shared]), wanted[i][1]
            if fraction is None:
                bits.append(up_to >= 1)
            else:
                bits.append(up_to * fraction.denominator >= n_rows[i] * fraction.numerator)
        for i, bit in zip(open_ones, await runtime.output(bits), strict=True):
            low[i], high[i] = (low[i], middle[i]) if int(bit) else (middle[i] + 1, high[i])
    return [number if has_rows else None for number, has_rows in zip(low, present, strict=True)]


def _up_to(distribution: tuple[list[int], list[int]], number: int) -> int:
    numbers, below = distribution
    position = bisect_right(numbers, number)
    return below[position - 1] if position else 0


# ── regression ──────────────────────────────────────────────────────────────────────────────────────────────────


async def coefficients(runtime: Any, rows: LocalRows, names: tuple[str, ...]) -> list[Fraction] | None:
    """Open the least-squares coefficients, intercept first, each cut off after eight significant digits.

    The normal equations are solved in shares by Cramer's rule. A solution is a ratio of whole numbers; exact, it would
    tell more than anybody asked for, so its digits are found by comparisons that follow from them. None if there is no
    single solution, and then only this is opened.
    """
    k = len(names)
    bits = _entry_bits(rows, names) * k + math.factorial(k).bit_length()
    # Both sides of a comparison are at most this much larger than the determinants: the first halving of the exponents
    # leaves a quarter of them to the next threshold, and a mantissa has fewer digits.
    digits = max(DIGITS + 1, (_LARGEST_EXPONENT - _LEAST_EXPONENT) // 4 + 1)
    secint = runtime.SecInt(bits + 2 + math.ceil(digits * math.log2(10)))
    moments = rows.moments(names)
    shared = runtime.input([secint(number) for number in moments])
    entries = [runtime.sum([of_party[i] for of_party in shared]) for i in range(len(moments))]
    equations = [[*entries[i * k : (i + 1) * k], entries[k * k + i]] for i in range(k)]
    *minors, determinant = _minors(runtime, equations)
    if not int(await runtime.output(determinant >= 1)):  # of sums of squares and products, it is never negative
        return None
    numerators = [-minor if (k - 1 - j) % 2 else minor for j, minor in enumerate(minors)]
    units = await _digits(runtime, numerators, determinant)
    target = rows.plan.scale(names[0])
    scales = [1, *(rows.plan.scale(name) for name in names[1:])]
    return [value * scale / target for value, scale in zip(units, scales, strict=True)]


def _entry_bits(rows: LocalRows, names: tuple[str, ...]) -> int:
    """How many bits a sum of products needs, from the bounds and the most rows there may be."""
    largest = max(max(map(abs, rows.plan.limits(name))) for name in names)
    return (max(largest, 1) ** 2 * MAX_ROWS).bit_length()


def _minors(runtime: Any, matrix: list[list[Any]]) -> list[Any]:
    """Return in shares the determinants of a matrix with one column too many, without each of its columns.

    Laplace's expansion by rows, in which each determinant of the first rows is computed once. Nothing is opened: a
    masked matrix, which would be faster to solve, shows how the predictors depend on each other if they do, and so the
    row itself where there is only one.
    """
    width = len(matrix) + 1
    minors: dict[tuple[int, ...], Any] = {(j,): entry for j, entry in enumerate(matrix[0])}
    for i, row in enumerate(matrix[1:], 1):
        minors = {
            columns: runtime.in_prod(
                [-row[j] if (i + position) % 2 else row[j] for position, j in enumerate(columns)],
                [minors[(*columns[:position], *columns[position + 1 :])] for position in range(i + 1)],
            )
            for columns in combinations(range(width), i + 1)
        }
    return [minors[tuple(j for j in range(width) if j != left_out)] for left_out in range(width)]


async def _digits(runtime: Any, numerators: list[Any], denominator: Any) -> list[Fraction]:
    """Open ratios of shares, the denominator being positive, cut off after ``DIGITS`` significant digits."""
    positive = [int(bit) for bit in await runtime.output([numerator >= 0 for numerator in numerators])]
    sizes = [number if sign else -number for number, sign in zip(numerators, positive, strict=True)]

    async def reach(thresholds: list[Fraction]) -> list[bool]:
        bits = [
            size * limit.denominator >= denominator * limit.numerator
            for size, limit in zip(sizes, thresholds, strict=True)
        ]
        return [bool(int(bit)) for bit in await runtime.output(bits)]

    n = len(sizes)
    # The least exponent with |x| < 10^exponent.
    exponents = await _searched(
        [(_LEAST_EXPONENT, _LARGEST_EXPONENT)] * n,
        lambda middle: reach([Fraction(10) ** e for e in middle]),
    )
    if any(e == _LARGEST_EXPONENT for e in exponents):
        raise InfeasibleError(
            f"a coefficient of a regression has more than {_LARGEST_EXPONENT} digits; only its size was opened",
            "agree on other units",
        )
    units = [Fraction(10) ** (e - DIGITS) for e in exponents]
    # The least mantissa m with |x| < (m + 1) units.
    mantissas = await _searched(
        [(0, 10**DIGITS)] * n, lambda middle: reach([(m + 1) * unit for m, unit in zip(middle, units, strict=True)])
    )
    signed = zip(mantissas, units, positive, strict=True)
    return [m * unit * (1 if sign else -1) for m, unit, sign in signed]


async def _searched(ranges: list[tuple[int, int]], beyond: Callable[[list[int]], Any]) -> list[int]:
    """Search each range for the least number that the value is not beyond, all at the same time."""
    low, high = [a for a, _ in ranges], [b for _, b in ranges]
    while any(a < b for a, b in zip(low, high, strict=True)):
        middle = [(a + b) // 2 for a, b in zip(low, high, strict=True)]
        for i, bit in enumerate(await beyond(middle)):
            if low[i] < high[i]:
                low[i], high[i] = (middle[i] + 1, high[i]) if bit else (low[i], middle[i])
    return low
