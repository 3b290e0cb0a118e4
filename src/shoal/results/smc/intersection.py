"""How many identifiers all parties have, in shares: nothing about a single one, or about fewer parties, is opened.

Each party puts digests of its identifiers into buckets and describes each bucket by the polynomial with these roots
(M. Freedman, K. Nissim, B. Pinkas, EUROCRYPT 2004). An identifier of the first party is in all tables if the
polynomials of all others are zero there: then a secret random combination of them is zero too, and otherwise it is
random. Whether it is zero stays in shares: its power by the order of the field less one is 0 or 1 (Fermat).

Protocols in which parties encrypt digests in turn and compare them (Diffie-Hellman) are faster, but with three parties
they show how many identifiers each two have in common.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from shoal.errors import InfeasibleError

EXPONENT = 89
ORDER = 2**EXPONENT - 1  # a prime; two of a million digests collide with a chance of 2^-50
_LOAD = 32  # identifiers per bucket on average
_TOGETHER = 2**17  # numbers that are shared in one message


async def common(runtime: Any, digests: Sequence[int], at_most: int, noise: int = 0) -> Any:
    """Return in shares how many digests all parties have, with the noise that all parties add; see ``counted``."""
    field = runtime.SecFld(modulus=ORDER)
    buckets = _filled(digests, at_most, len(runtime.parties))
    load = len(buckets[0])
    together = max(1, _TOGETHER // (load * (load + 1)))
    matches = runtime.sum(runtime.input(field(noise % ORDER)))
    for start in range(0, len(buckets), together):
        matches += await _matches(runtime, field, buckets[start : start + together])
    return matches


async def opened_size(runtime: Any, size: Any, at_least: int) -> int | None:
    """Open a number of identifiers unless it is small; None if it is from 1 to less than ``at_least``.

    Then one bit is opened: whether the product of the differences from all small numbers is 0.
    """
    if at_least > 1:
        difference = runtime.prod([size - small for small in range(1, at_least)])
        if not int(await runtime.output(one_unless_zero(difference))):
            return None
    return counted(await runtime.output(size))


def counted(opened: Any) -> int:
    """Return the number in an opened element of the field, which noise can make negative."""
    number = int(opened)
    return number - ORDER if 2 * number > ORDER else number


def _filled(digests: Sequence[int], at_most: int, parties: int) -> list[list[int]]:
    """Put digests into buckets, and fill these up with random numbers, so that nobody learns how many there are."""
    n, load = bucket_sizes(at_most, parties)
    buckets: list[list[int]] = [[] for _ in range(n)]
    for digest in digests:
        buckets[digest % n].append(digest // n % ORDER)
    if any(len(bucket) > load for bucket in buckets):  # once in 2^40 runs
        raise InfeasibleError("the identifiers do not fit into their buckets", "run it again: the key will be another")
    return [bucket + [secrets.randbelow(ORDER) for _ in range(load - len(bucket))] for bucket in buckets]


async def _matches(runtime: Any, field: Any, buckets: list[list[int]]) -> Any:
    """Return in shares how many entries of the first party's buckets are in the same bucket of every other party."""
    n, load = len(buckets), len(buckets[0])
    powers = np.zeros((n, load, load + 1), dtype=object)
    polynomials = np.zeros((n, load + 1), dtype=object)
    if runtime.pid == 0:
        powers = np.array([[list(_powers(x, load)) for x in bucket] for bucket in buckets], dtype=object)
    else:
        polynomials = np.array([with_roots(bucket) for bucket in buckets], dtype=object)
    first = runtime.input(field.array(field.field.array(powers)), senders=0)
    other_parties = runtime.input(field.array(field.field.array(polynomials)), senders=range(1, len(runtime.parties)))
    tested = None
    for polynomial in other_parties:
        drawn = runtime.np_reshape(runtime._np_randoms(field, n), (n, 1))
        # One factor for a bucket is enough: it is as random for each entry, and only zeros are counted.
        term = runtime.np_matmul(first, runtime.np_reshape(drawn * polynomial, (n, load + 1, 1)))
        tested = term if tested is None else tested + term
    if tested is None:  # the first party is alone, and has all that it has
        return field(n * load)
    zero = 1 - one_unless_zero(runtime.np_reshape(tested, (n * load,)))
    total = runtime.np_sum(zero)
    await runtime.gather(total)  # one block at a time keeps memory small
    return total


def one_unless_zero(x: Any) -> Any:
    """Return ``x ** (ORDER - 1)`` with 96 products: from the power to ``2^k - 1`` follows that for ``2 k``."""
    power, k = x, 1
    for bit in f"{EXPONENT - 1:b}"[1:]:
        raised = power
        for _ in range(k):
            raised = raised * raised
        power, k = raised * power, 2 * k
        if bit == "1":
            power, k = power * power * x, k + 1
    return power * power


def _powers(x: int, max_power: int) -> Iterator[int]:
    power = 1
    for _ in range(max_power + 1):
        yield power
        power = power * x % ORDER


def with_roots(roots: Sequence[int], p: int = ORDER) -> list[int]:
    """The coefficients of the polynomial with these roots, modulo a prime, constant first."""
    coefficients = [1]
    for root in roots:
        shifted = [0, *coefficients]
        coefficients = [(a - root * b) % p for a, b in zip(shifted, [*coefficients, 0], strict=True)]
    return coefficients


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
