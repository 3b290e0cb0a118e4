"""All partitions of a few records, by brute force."""

from collections.abc import Mapping
from fractions import Fraction


def least_over_partitions(n: int, limit: int, cost: Mapping[int, Fraction]) -> float | None:
    """The least mean loss of n records in classes that have a ``cost``, with at most ``limit`` of them suppressed.

    A class is the number whose bits are its records. Not all records may go; None if there is no such partition.
    """
    everyone = (1 << n) - 1
    best: dict[tuple[int, int], Fraction] = {(0, 0): Fraction(0)}
    for mask in range(1, everyone + 1):
        lowest = mask & -mask
        for gone in range(limit + 1):
            found = [best[mask ^ lowest, gone - 1] + Fraction(1, n)] if (mask ^ lowest, gone - 1) in best else []
            rest = sub = mask ^ lowest
            while True:
                mine = sub | lowest
                if mine in cost and (mask ^ mine, gone) in best:
                    found.append(best[mask ^ mine, gone] + cost[mine])
                if not sub:
                    break
                sub = (sub - 1) & rest
            if found:
                best[mask, gone] = min(found)
    ends = [best[everyone, gone] for gone in range(min(limit, n - 1) + 1) if (everyone, gone) in best]
    return float(min(ends)) if ends else None
