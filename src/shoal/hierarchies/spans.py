"""Released texts as numbers: a number, a range, or several of both, for distances and means."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from shoal.hierarchies.hierarchy import Hierarchy
from shoal.notation.forms import DecimalMark, decimal_mark, is_star, read_range, released_number
from shoal.notation.labels import read_set

Span = tuple[float, float, bool, bool]  # first, last, and whether each is included
EVERYTHING: Span = (-math.inf, math.inf, True, True)


def spans(
    texts: Sequence[str], hierarchy: Hierarchy | None, mark: DecimalMark | None = None
) -> list[tuple[Span, ...] | None]:
    """Return the numbers that each text covers; None if it is no number, range, or set or label of numbers.

    ``mark``: the decimal mark of the texts, if it is known. The values under a label then have points, as always when a
    policy names the mark; otherwise the mark is inferred from the texts.
    """
    under = _leaves_under(hierarchy, texts) if hierarchy is not None else {}
    mark_of_texts = decimal_mark(texts) if mark is None else mark
    mark_of_leaves = mark_of_texts if mark is None else "."
    return [_spans(text, mark_of_texts) or _joined(under.get(text, ()), mark_of_leaves) for text in texts]


def _spans(text: str, mark: DecimalMark) -> tuple[Span, ...] | None:
    if is_star(text):
        return (EVERYTHING,)
    if (x := released_number(text, mark)) is not None:
        return ((float(x), float(x), True, True),)
    if (parsed := read_range(text, mark)) is not None:
        return ((float(parsed.first), float(parsed.last), parsed.first_within, parsed.last_within),)
    return _joined(read_set(text.strip()) or (), mark)


def _joined(texts: Collection[str], mark: DecimalMark) -> tuple[Span, ...] | None:
    read = [_spans(text, mark) for text in texts]
    parts = {span for spans_of_text in read if spans_of_text is not None for span in spans_of_text}
    return tuple(sorted(parts)) if parts and None not in read else None


def _leaves_under(hierarchy: Hierarchy, texts: Sequence[str]) -> dict[str, list[str]]:
    """Return the leaves under those texts that are labels above the ground."""
    wanted, under = set(texts), defaultdict(list)
    for level in range(1, hierarchy.n_levels):
        for leaf, code in zip(hierarchy.leaves, hierarchy.table[level], strict=True):
            label = hierarchy.labels[level][code]
            # A released text may also be a leaf, because the hierarchy is built on all files: it is not under itself.
            if label in wanted and leaf is not None and label is not None and leaf not in (label, hierarchy.top):
                under[label].append(leaf)
    return under


def closed(span: Span, points: NDArray[np.float64]) -> tuple[float, float]:
    """Include both ends: an excluded end is replaced by the next of ``points`` (ascending) that lies in the range.

    So 1 is not in [0.5, 1), and no known point of the range is lost.
    """
    first, last, first_within, last_within = span
    start = int(np.searchsorted(points, first, "left" if first_within else "right"))
    end = int(np.searchsorted(points, last, "right" if last_within else "left"))
    inside = points[start:end]
    if not last_within:
        last = float(inside[-1]) if len(inside) else _between(first, last, below=True)
    if not first_within:
        first = float(inside[0]) if len(inside) else _between(first, last, below=False)
    return min(first, last), last


def _between(first: float, last: float, *, below: bool) -> float:
    """Return a number within the range, near its excluded end if the other one is infinite."""
    if math.isfinite(first) and math.isfinite(last):
        return (first + last) / 2
    end = last if below else first
    step = max(1.0, abs(end)) / 1000
    return end - step if below else end + step


def standard_deviation(values: NDArray[np.float64]) -> float:
    """Return the sample standard deviation (divisor n − 1), used wherever numbers are scaled; 0 for fewer than two."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
