"""The fewest cells to suppress in whole classes so that forbidden results do not come out, by integer programming.

Needs  what each class adds to the figures of every result, and costs, for each set of columns that it may hide.
Finds  the cheapest choice for every class; proved unless time runs out, in which case a bound is given.
Costs  one integer program (HiGHS) for each way to hide every result: a rule by its support, by its confidence, or by
       having no match at all; a count by too few or too many matches. Classes that are alike are one variable.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, combinations, product
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from shoal.models.forbidden import ForbiddenCount, ForbiddenRule, MatchedResult, RuleCounts

MOST_PATTERNS = 512  # sets of columns that a class may hide

Whole = NDArray[np.int64]
HiddenColumns = tuple[str, ...]  # columns that a class hides


class HideableClasses(Protocol):
    """Released classes whose cells may be hidden, column by column."""

    @property
    def n_classes(self) -> int:
        """The number of classes."""

    @property
    def fixed(self) -> NDArray[np.bool_]:
        """Whether nothing of a class may change."""

    def hideable(self, results: Sequence[MatchedResult]) -> tuple[str, ...]:
        """Return the columns whose cells decide the results and may be hidden."""

    def cost(self, pattern: HiddenColumns) -> Whole:
        """Return the cells of each class that a pattern newly hides."""

    def figures(self, results: Sequence[MatchedResult], pattern: HiddenColumns) -> Whole:
        """Return what each class adds to the figures of the results, a row per class, if it hides a pattern."""


@dataclass(frozen=True, eq=False)
class _AlikeClasses:
    """Classes that cost and count the same: what each pattern costs one of them and adds to the figures."""

    classes: tuple[int, ...]
    patterns: tuple[HiddenColumns, ...]
    costs: Whole  # (patterns)
    figures: Whole  # (patterns, figures)


def fewest_cells(
    classes: HideableClasses, results: Sequence[MatchedResult], seconds: float
) -> tuple[list[HiddenColumns] | None, int]:
    """Return the columns that each class hides, or None if no way was found, and how many cells are needed at least."""
    kinds, all_patterns = _kinds(classes, results)
    deadline = time.monotonic() + seconds
    best: list[Whole] | None = None
    cost, unsettled = np.inf, [0.0] if not all_patterns else []
    for ways in product(*(list(_ways(result)) for result in results)):
        left = deadline - time.monotonic()
        if left <= 0:
            unsettled.append(0.0)
            break
        choice, bound = _solved(kinds, results, ways, cost, left)
        if choice is not None:
            best, cost = choice, float(sum(x @ kind.costs for x, kind in zip(choice, kinds, strict=True)))
        if bound is not None:
            unsettled.append(bound)
    if best is None:
        best = _most_hidden(kinds, results)
        unsettled.append(0.0)
        if best is None:
            return None, 0
        cost = float(sum(x @ kind.costs for x, kind in zip(best, kinds, strict=True)))
    hidden: list[HiddenColumns] = [()] * classes.n_classes
    for kind, x in zip(kinds, best, strict=True):
        chosen = chain.from_iterable([pattern] * int(n) for pattern, n in zip(kind.patterns, x, strict=True))
        for number, pattern in zip(kind.classes, chosen, strict=True):
            hidden[number] = pattern
    return hidden, int(min([cost, *(np.ceil(bound - 1e-6) for bound in unsettled)]))


def _kinds(classes: HideableClasses, results: Sequence[MatchedResult]) -> tuple[list[_AlikeClasses], bool]:
    """Return the kinds of classes, and whether every useful pattern is among theirs.

    One hidden cell leaves a result open, so no class needs to hide more columns than there are results.
    """
    columns = classes.hideable(results)
    size = min(len(results), len(columns))
    useful = [pattern for n in range(size + 1) for pattern in combinations(columns, n)]
    patterns = useful[:MOST_PATTERNS]
    costs = np.stack([classes.cost(pattern) for pattern in patterns], axis=1)
    figures = np.stack([classes.figures(results, pattern) for pattern in patterns], axis=1)
    alike: dict[bytes, list[int]] = {}
    patterns_of: dict[bytes, NDArray[np.int64]] = {}
    for i in range(classes.n_classes):
        ids = _cheapest(costs[i], figures[i]) if not classes.fixed[i] else np.zeros(1, np.int64)
        key = ids.tobytes() + b"|" + costs[i][ids].tobytes() + b"|" + figures[i][ids].tobytes()
        alike.setdefault(key, []).append(i)
        patterns_of[key] = ids
    kinds = [
        _AlikeClasses(
            tuple(members),
            tuple(patterns[p] for p in patterns_of[key].tolist()),
            costs[members[0]][patterns_of[key]],
            figures[members[0]][patterns_of[key]],
        )
        for key, members in alike.items()
    ]
    return kinds, len(useful) == len(patterns)


def _cheapest(costs: Whole, figures: Whole) -> NDArray[np.int64]:
    """Return for each different row of figures the cheapest pattern, the first of equal ones."""
    order = np.argsort(costs, kind="stable")
    firsts = np.unique(figures[order], axis=0, return_index=True)[1]
    return np.sort(order[firsts])


FigureBound = tuple[tuple[int, ...], int]  # coefficients of the figures of a result, and what their sum may be at most


def _ways(result: MatchedResult) -> Iterator[FigureBound]:
    """Return the ways in which a result does not come out, each a bound on its figures, exact in whole numbers."""
    if isinstance(result, ForbiddenRule):
        support, confidence = Fraction(str(result.support)), Fraction(str(result.confidence))
        yield (-support.numerator, 0, support.denominator), -1
        yield (0, -confidence.numerator, confidence.denominator), -1
        yield (0, 0, 1), 0
    elif isinstance(result, ForbiddenCount):
        yield (1,), result.min - 1
        if result.max is not None:
            yield (-1,), -result.max - 1


def _solved(
    kinds: Sequence[_AlikeClasses],
    results: Sequence[MatchedResult],
    ways: Sequence[FigureBound],
    below: float,
    seconds: float,
) -> tuple[list[Whole] | None, float | None]:
    """Return how many classes of each kind hide each pattern, for less than ``below`` cells; None if that is not so.

    The second value is a bound on the cells of a solution that may have been missed; None if there is none.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import block_diag, csr_array, vstack

    costs = np.concatenate([kind.costs for kind in kinds]).astype(np.float64)
    figures = np.concatenate([kind.figures for kind in kinds])
    capacity = np.concatenate([np.full(len(kind.costs), len(kind.classes)) for kind in kinds])
    one_pattern = block_diag([np.ones((1, len(kind.costs))) for kind in kinds], format="csr")
    n_kinds = np.array([len(kind.classes) for kind in kinds], np.float64)
    coefficients = np.zeros((len(ways), figures.shape[1]))
    start = 0
    for i, (terms, _) in enumerate(ways):
        coefficients[i, start : start + len(terms)] = terms
        start += len(terms)
    rows = [one_pattern, csr_array(coefficients @ figures.T)]
    low, high = [n_kinds, np.full(len(ways), -np.inf)], [n_kinds, np.array([limit for _, limit in ways], np.float64)]
    if np.isfinite(below):
        rows.append(csr_array(costs[None, :]))
        low.append(np.array([-np.inf]))
        high.append(np.array([below - 1]))
    with _printing_to_standard_error():
        answer = milp(
            costs,
            constraints=LinearConstraint(vstack(rows, format="csr"), np.concatenate(low), np.concatenate(high)),
            integrality=np.ones(len(costs)),
            bounds=Bounds(0, capacity),
            options={"time_limit": seconds, "mip_rel_gap": 0.0},
        )
    if answer.status == 2:  # infeasible: nothing was missed
        return None, None
    bound = _bound_of(answer)
    choice = None if answer.x is None else _divided(np.rint(answer.x).astype(np.int64), kinds)
    if choice is None or not _is_hidden(kinds, results, choice):
        return None, bound
    return choice, None if answer.status == 0 else bound


@contextmanager
def _printing_to_standard_error() -> Iterator[None]:
    """Send what the solver prints, although it was told to be silent, to standard error: the other may be JSON."""
    try:
        standard_output = os.dup(1)
    except OSError:  # there is no standard output
        yield
        return
    sys.stdout.flush()
    os.dup2(2, 1)
    try:
        yield
    finally:
        with suppress(OSError, TypeError):  # no C library to be found by this name
            ctypes.CDLL(None).fflush(None)
        os.dup2(standard_output, 1)
        os.close(standard_output)


def _bound_of(answer: Any) -> float:
    bound = getattr(answer, "mip_dual_bound", None)
    return float(bound) if bound is not None and np.isfinite(bound) else 0.0


def _divided(x: Whole, kinds: Sequence[_AlikeClasses]) -> list[Whole]:
    return np.split(x, np.cumsum([len(kind.costs) for kind in kinds])[:-1])


def _is_hidden(kinds: Sequence[_AlikeClasses], results: Sequence[MatchedResult], chosen: Sequence[Whole]) -> bool:
    """Return whether no result comes out, in whole numbers: a solver's rounding does not decide."""
    if any(x.sum() != len(kind.classes) or x.min(initial=0) < 0 for x, kind in zip(chosen, kinds, strict=True)):
        return False
    totals = sum(x @ kind.figures for x, kind in zip(chosen, kinds, strict=True))
    figures = iter(np.asarray(totals).tolist())
    for result in results:
        if isinstance(result, ForbiddenRule):
            if result.comes_out(RuleCounts(next(figures), next(figures), next(figures))):
                return False
        elif isinstance(result, ForbiddenCount) and result.comes_out(next(figures)):
            return False
    return True


def _most_hidden(kinds: Sequence[_AlikeClasses], results: Sequence[MatchedResult]) -> list[Whole] | None:
    """Return the choice with the fewest matches everywhere, if that hides all results; not the cheapest."""
    ends = np.cumsum([3 if isinstance(result, ForbiddenRule) else 1 for result in results]) - 1
    chosen = []
    for kind in kinds:
        x = np.zeros(len(kind.costs), np.int64)
        x[np.lexsort([kind.costs, kind.figures[:, ends].sum(axis=1)])[0]] = len(kind.classes)
        chosen.append(x)
    return chosen if _is_hidden(kinds, results, chosen) else None
