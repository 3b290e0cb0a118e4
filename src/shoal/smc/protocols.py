"""Computations on shares, with mpyc: what is opened is the result and nothing else.

Every function is called by all parties in the same order, each with its own rows. Shamir's secret sharing over a prime
field; a threshold of fewer than half of the parties; semi-honest, that is, all follow the protocol.
"""

from __future__ import annotations

import math
import secrets
from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from shoal.errors import InfeasibleError
from shoal.smc.local import LocalRows
from shoal.smc.plan import MOST_ROWS

WIDE = 256  # bits of numbers that are added and multiplied once
NARROW = 96  # bits of numbers that are compared
DIGITS = 8  # of a coefficient
_LEAST_EXPONENT, _LARGEST_EXPONENT = -12, 24  # of ten; coefficients beyond are 0 or refused
_LOAD = 16  # identifiers per bucket on average

Opened = list[int]


async def sums_in_shares(runtime: Any, own: Sequence[int]) -> list[Any]:
    """Return the sums of the parties' numbers in shares."""
    secint = runtime.SecInt(WIDE)
    shared = runtime.input([secint(number) for number in own])
    return [runtime.sum([of_party[i] for of_party in shared]) for i in range(len(own))]


async def opened_to_all(runtime: Any, numbers: Sequence[Any]) -> Opened:
    """Open shares to all parties."""
    return [int(number) for number in await runtime.output(list(numbers))] if numbers else []


async def enough(runtime: Any, n_rows: int, at_least: int) -> bool:
    """Open whether all parties together have so many rows, and nothing else about their number."""
    secint = runtime.SecInt(NARROW)
    total = runtime.sum(runtime.input(secint(n_rows)))
    return bool(await runtime.output(total >= at_least))


def deviations(runtime: Any, count: Any, total: Any, squares: Any) -> Any:
    """Return ``n Σx² - (Σx)²`` in shares: with ``n``, it gives the variance but not the mean."""
    return count * squares - total * total


# ── order statistics ────────────────────────────────────────────────────────────────────────────────────────────


async def order_statistics(runtime: Any, rows: LocalRows, wanted: Sequence[tuple[str, Fraction | None]]) -> Opened:
    """Open order statistics: for each, a column and the fraction of rows up to the answer (None: at least one row).

    G. Aggarwal, N. Mishra, B. Pinkas, "Secure computation of the k-th ranked element", EUROCRYPT 2004: a binary search
    between the agreed bounds. Each step opens whether enough rows are up to a value, which follows from the answer.
    """
    secint = runtime.SecInt(NARROW)
    own = [rows.below(name) for name, _ in wanted]
    totals = runtime.input([secint(below[-1] if below else 0) for _, below in own])
    n_rows = [runtime.sum([of_party[i] for of_party in totals]) for i in range(len(wanted))]
    present = await runtime.output([total >= 1 for total in n_rows])
    if not all(map(int, present)):
        raise InfeasibleError("a column has no value at any party; nothing was opened")
    low, high = map(list, zip(*(rows.plan.limits(name) for name, _ in wanted), strict=True))
    while any(a < b for a, b in zip(low, high, strict=True)):
        middle = [(a + b) // 2 for a, b in zip(low, high, strict=True)]
        counts = [_up_to(own[i], middle[i]) for i in range(len(wanted))]
        shared = runtime.input([secint(n) for n in counts])
        bits = []
        for i, (_, fraction) in enumerate(wanted):
            up_to = runtime.sum([of_party[i] for of_party in shared])
            if fraction is None:
                bits.append(up_to >= 1)
            else:
                bits.append(up_to * fraction.denominator >= n_rows[i] * fraction.numerator)
        for i, bit in enumerate(await runtime.output(bits)):
            if low[i] == high[i]:
                continue
            low[i], high[i] = (low[i], middle[i]) if int(bit) else (middle[i] + 1, high[i])
    return low


def _up_to(own: tuple[list[int], list[int]], number: int) -> int:
    numbers, below = own
    place = bisect_right(numbers, number)
    return below[place - 1] if place else 0


# ── regression ──────────────────────────────────────────────────────────────────────────────────────────────────


async def coefficients(runtime: Any, rows: LocalRows, names: tuple[str, ...]) -> list[Fraction]:
    """Open the least-squares coefficients, intercept first, each cut off after eight significant digits.

    The normal equations ``A x = b`` are solved in the field, exactly: with a secret random matrix ``R``, only ``R A``
    is opened, which is as random as ``R`` (J. Bar-Ilan, D. Beaver, PODC 1989). A solution is a ratio of whole numbers;
    exact, it would tell more than anybody asked for. So its digits are found by comparisons that follow from them.
    """
    k = len(names)
    bits = _entry_bits(rows, names) * k + math.factorial(k).bit_length()
    secint = runtime.SecInt(bits + 2 + math.ceil((DIGITS - _LEAST_EXPONENT) * math.log2(10)))
    own = rows.moments(names)
    shared = runtime.input([secint(number) for number in own])
    entries = [runtime.sum([of_party[i] for of_party in shared]) for i in range(len(own))]
    matrix, right = [entries[i * k : (i + 1) * k] for i in range(k)], entries[k * k :]
    numerators, determinant = await _solved(runtime, secint, matrix, right)
    units = await _digits(runtime, numerators, determinant)
    target = rows.plan.scale(names[0])
    scales = [1, *(rows.plan.scale(name) for name in names[1:])]
    return [value * scale / target for value, scale in zip(units, scales, strict=True)]


def _entry_bits(rows: LocalRows, names: tuple[str, ...]) -> int:
    """How many bits a sum of products needs, from the bounds and the most rows there may be."""
    largest = max(max(map(abs, rows.plan.limits(name))) for name in names)
    return (max(largest, 1) ** 2 * MOST_ROWS).bit_length()


async def _solved(runtime: Any, secint: Any, matrix: list[list[Any]], right: list[Any]) -> tuple[list[Any], Any]:
    """Return numerators and common denominator of the solution in shares; the denominator is the determinant."""
    k, field = len(matrix), secint.field
    drawn = runtime._randoms(secint, k * k)
    lower = [[drawn[i * k + j] if j < i else secint(int(i == j)) for j in range(k)] for i in range(k)]
    upper = [[drawn[i * k + j] if j >= i else secint(0) for j in range(k)] for i in range(k)]
    product = _times(runtime, lower, upper)  # its determinant is that of its upper part
    masked_rows = _times(runtime, product, matrix)
    masked = [await runtime.output(row, raw=True) for row in masked_rows]
    masked_right = [runtime.in_prod(row, right) for row in product]
    inverse, determinant = _inverted([[field(int(x) % field.order).value for x in row] for row in masked], field.order)
    if inverse is None:
        raise InfeasibleError(
            "the regression has no single solution: a predictor is constant, or a combination of others",
            "leave one predictor out; nothing was opened",
        )
    diagonal = runtime.prod([upper[i][i] for i in range(k)])
    whole = runtime.reciprocal(diagonal) * determinant
    solution = [runtime.sum([masked_right[j] * inverse[i][j] for j in range(k)]) for i in range(k)]
    return [x * whole for x in solution], whole


def _times(runtime: Any, left: list[list[Any]], right: list[list[Any]]) -> list[list[Any]]:
    columns = [list(column) for column in zip(*right, strict=True)]
    return [[runtime.in_prod(list(row), column) for column in columns] for row in left]


def _inverted(matrix: list[list[int]], p: int) -> tuple[list[list[int]] | None, int]:
    """Invert a public matrix modulo a prime, and return its determinant too; None if it has no inverse."""
    k = len(matrix)
    rows = [[*row, *(int(i == j) for j in range(k))] for i, row in enumerate(matrix)]
    determinant = 1
    for i in range(k):
        pivot = next((r for r in range(i, k) if rows[r][i] % p), None)
        if pivot is None:
            return None, 0
        if pivot != i:
            rows[i], rows[pivot] = rows[pivot], rows[i]
            determinant = -determinant
        determinant = determinant * rows[i][i] % p
        scale = pow(rows[i][i], -1, p)
        rows[i] = [x * scale % p for x in rows[i]]
        for r in range(k):
            if r != i:
                factor = rows[r][i]
                rows[r] = [(x - factor * y) % p for x, y in zip(rows[r], rows[i], strict=True)]
    return [row[k:] for row in rows], determinant % p


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
        raise InfeasibleError("a coefficient is too large to be computed; nothing was opened", "agree on other units")
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


# ── intersection ────────────────────────────────────────────────────────────────────────────────────────────────


async def common(runtime: Any, digests: Sequence[int], at_most: int) -> Any:
    """Return in shares how many keyed identifiers all parties have.

    Each party puts its digests into buckets and describes each bucket by the polynomial with these roots (M. Freedman,
    K. Nissim, B. Pinkas, EUROCRYPT 2004). An identifier of the first party is in all tables if all polynomials are zero
    there; a secret random combination of them is tested in shares. Buckets are padded, so that sizes stay hidden.
    """
    secint = runtime.SecInt(NARROW)
    p = secint.field.order
    buckets, load = bucket_sizes(at_most, len(runtime.parties))
    filled: list[list[int]] = [[] for _ in range(buckets)]
    for digest in digests:
        filled[digest % buckets].append(digest // buckets % p)
    if any(len(bucket) > load for bucket in filled):  # once in 2^40 runs
        raise InfeasibleError("the identifiers do not fit into their buckets", "run it again: the key will be another")
    for bucket in filled:
        bucket += [secrets.randbelow(p) for _ in range(load - len(bucket))]
    found = secint(0)
    for bucket in filled:
        found += await _matches(runtime, secint, bucket)
    return found


async def _matches(runtime: Any, secint: Any, bucket: list[int]) -> Any:
    """Return in shares how many entries of the first party's bucket are in the bucket of every other party."""
    p, load = secint.field.order, len(bucket)
    first = runtime.pid == 0
    powers = [pow(x, e, p) if first else 0 for x in bucket for e in range(load + 1)]
    shared = runtime.input([secint(secint.field(x)) for x in powers], senders=0)
    others = runtime.input(
        [secint(secint.field(c)) for c in _with_roots(bucket, p)], senders=range(1, len(runtime.parties))
    )
    tests = []
    for i in range(load):
        own = shared[i * (load + 1) : (i + 1) * (load + 1)]
        values = [runtime.in_prod(list(own), list(polynomial)) for polynomial in others]
        tests.append(runtime.in_prod(runtime._randoms(secint, len(values)), values))
    zero = [runtime.is_zero(test) for test in tests]
    await runtime.gather(zero)  # one bucket at a time keeps memory small
    return runtime.sum(zero)


def _with_roots(roots: list[int], p: int) -> list[int]:
    """The coefficients of the polynomial with these roots, modulo a prime, constant first."""
    found = [1]
    for root in roots:
        shifted = [0, *found]
        found = [(a - root * b) % p for a, b in zip(shifted, [*found, 0], strict=True)]
    return found


def bucket_sizes(at_most: int, parties: int) -> tuple[int, int]:
    """Return how many buckets there are and how many digests fit into one, with a chance of 2^-40 that they do not."""
    buckets = max(1, at_most // _LOAD)
    mean = at_most / buckets
    load = math.ceil(mean)
    # Chernoff: P(X ≥ x) ≤ exp(-mean) (e mean / x)^x for x above the mean, for each bucket of each party.
    while load < at_most and (load + 1) * (1 + math.log(mean / (load + 1))) - mean > -math.log(
        2**40 * buckets * parties
    ):
        load += 1
    return buckets, load
