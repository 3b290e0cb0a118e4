"""The values of a sensitive column in order, as distances between distributions need them."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from shoal.hierarchies.hierarchy import Hierarchy
from shoal.notation.codec import Coded
from shoal.notation.numbers import EXACT, parse_number
from shoal.tables.frequency import Codes, Counts, Domain


def domain_of(
    column: str, coded: Coded, hierarchy: Hierarchy | None, weights: Counts | None = None
) -> tuple[Domain, Codes]:
    """Return the domain of a column and the codes of its records, each of which may represent several.

    Values are in the order of the file or tree that lists them, otherwise in numeric order if all are numbers,
    otherwise in text order; a null is a separate value after all others.
    """
    numbers = [parse_number(text) for text in coded.texts]
    numeric = all(x is not None for x in numbers) and bool(numbers)
    if hierarchy is not None and hierarchy.leaf_order != "text":
        position: NDArray[np.int64] = hierarchy.encode(coded.texts).astype(np.int64)
    elif numeric:
        position = np.array(sorted(range(len(numbers)), key=lambda i: (numbers[i], coded.texts[i]))).argsort()
    else:
        position = np.arange(len(coded.texts))
    order = np.lexsort((np.arange(len(position)), position))
    codes = np.append(order.argsort(), len(order))[coded.codes].astype(np.int32)  # a null, -1, takes the last place
    has_null = bool((coded.codes < 0).any())
    texts = (*(coded.texts[i] for i in order), *((None,) if has_null else ()))
    exact = [x for i in order if (x := numbers[i]) is not None] if numeric and not has_null else None
    return (
        Domain(
            column,
            texts,
            _tally(codes, len(texts), weights),
            None if exact is None else np.array([float(x) for x in exact]),
            None if hierarchy is None else hierarchy.table[:, hierarchy.encode(texts)],
            None if exact is None else _offsets(exact),
        ),
        codes,
    )


def _offsets(numbers: Sequence[Decimal]) -> NDArray[np.float64]:
    """Return each number's distance from the least; the unit, a power of ten near the range, avoids overflow."""
    smallest = min(numbers)
    unit = -EXACT.subtract(max(numbers), smallest).adjusted()
    return np.array([float(EXACT.scaleb(EXACT.subtract(x, smallest), unit)) for x in numbers])


def _tally(codes: Codes, n: int, weights: Counts | None) -> Counts:
    if weights is None:
        return np.bincount(codes, minlength=n).astype(np.int64)
    totals = np.zeros(n, np.int64)  # bincount would sum weights as floats
    np.add.at(totals, codes, weights)
    return totals
