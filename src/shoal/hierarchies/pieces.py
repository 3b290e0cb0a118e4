"""Many texts, or copies of rows, handled in pieces.

A single call such as ``sorted`` or ``dict.fromkeys`` keeps Python's lock until it returns: for a million texts a
second, in which nothing else in the process goes on, such as the page that shows the progress of the work.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

PIECE = 2**16  # texts that one call handles

Key = TypeVar("Key", bound=Hashable)


def pieces_of(values: Sequence[Key]) -> Iterator[Sequence[Key]]:
    """Cut a sequence into short ones."""
    return (values[first : first + PIECE] for first in range(0, len(values), PIECE))


def first_seen(values: Sequence[Key]) -> dict[Key, None]:
    """Return the distinct values in the order in which they first appear."""
    distinct: dict[Key, None] = {}
    for piece in pieces_of(values):
        distinct.update(dict.fromkeys(piece))
    return distinct


def in_text_order(values: Sequence[str]) -> list[str]:
    """Return the distinct values, sorted."""
    runs = [sorted(piece) for piece in pieces_of(list(first_seen(values)))]
    while len(runs) > 1:
        runs = [sorted(chain.from_iterable(runs[i : i + 2])) for i in range(0, len(runs), 2)]
    return runs[0] if runs else []


def looked_up(values: Sequence[Key], number_of: Mapping[Key, int], other: int = -1) -> NDArray[np.int32]:
    """Return the number of each value, or ``other`` for those that have none."""
    codes = np.empty(len(values), np.int32)
    for first, piece in zip(range(0, len(values), PIECE), pieces_of(values), strict=True):
        numbers: Iterable[int] = map(number_of.get, piece, repeat(other))
        codes[first : first + len(piece)] = np.fromiter(numbers, np.int32, len(piece))
    return codes


def copies_in_pieces(counts: NDArray[np.int64], size: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Cut repeated rows into pieces of ``size``: yield the first row of each, and the copies of it and of those after.

    >>> [(first, copies.tolist()) for first, copies in copies_in_pieces(np.array([2, 3, 1]), 4)]
    [(0, [2, 2]), (1, [1, 1])]
    """
    ends = np.cumsum(counts)
    n_rows = int(ends[-1]) if len(ends) else 0
    for start in range(0, n_rows, size):
        stop = min(start + size, n_rows)
        first, last = np.searchsorted(ends, [start, stop - 1], "right")
        yield int(first), np.diff(np.minimum(ends[first : last + 1], stop), prepend=start)
