"""Association rules of a release, to count what hiding some of them does to the others.

R. Agrawal, R. Srikant, "Fast algorithms for mining association rules", VLDB 1994: a set of values is frequent only if
its parts are.
Needs  codes per column, -1 where a cell says nothing.
Finds  all rules with one or two values in the condition and one in the conclusion. As for forbidden rules, a record
       that leaves a rule open is left out of its shares.
Costs  one pass over the groups per frequent condition.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

RuleItem = tuple[int, int]  # a column and a code
MinedRule = tuple[frozenset[RuleItem], RuleItem]
MOST_PAIRS = 5_000  # conditions of two values that are tried; beyond, only those of one


def rules_of(
    codes: NDArray[np.int64], counts: NDArray[np.int64], support: Fraction, confidence: Fraction
) -> set[MinedRule]:
    """Return the rules with at least this support and confidence.

    >>> codes = np.array([[0, 0], [0, 0], [0, 1], [1, 1]])
    >>> sorted(rules_of(codes, np.ones(4, np.int64), Fraction("0.5"), Fraction("0.6")))
    [(frozenset({(1, 0)}), (0, 0)), (frozenset({(0, 0)}), (1, 0))]
    """
    n_columns = codes.shape[1]
    complete = int(counts[(codes >= 0).all(axis=1)].sum())
    items = [(j, code) for j in range(n_columns) for code in _frequent(codes[:, j], counts, support, complete)]
    pairs = [pair for pair in combinations(items, 2) if pair[0][0] != pair[1][0]]
    conditions = [(item,) for item in items] + (list(pairs) if len(pairs) <= MOST_PAIRS else [])
    rules: set[MinedRule] = set()
    for condition in conditions:
        rows = np.logical_and.reduce([codes[:, j] == code for j, code in condition])
        outside = np.logical_or.reduce([(codes[:, j] != code) & (codes[:, j] >= 0) for j, code in condition])
        n_outside = int(counts[outside].sum())
        for j in range(n_columns):
            if any(j == used_column for used_column, _ in condition):
                continue
            decided = rows & (codes[:, j] >= 0)
            n_body = int(counts[decided].sum())
            n_rule = np.bincount(codes[decided, j], counts[decided]).astype(np.int64)
            enough = (n_rule > 0) & (n_rule * support.denominator >= support.numerator * (n_outside + n_body))
            sure = n_rule * confidence.denominator >= confidence.numerator * n_body
            rules.update((frozenset(condition), (j, code)) for code in np.flatnonzero(enough & sure).tolist())
    return rules


def _frequent(codes: NDArray[np.int64], counts: NDArray[np.int64], support: Fraction, complete: int) -> list[int]:
    """Return the codes that may be in a frequent rule: a share is never one of fewer than the complete records."""
    decided = codes >= 0
    n = np.bincount(codes[decided], counts[decided]).astype(np.int64)
    return list(np.flatnonzero((n > 0) & (n * support.denominator >= support.numerator * complete)).tolist())
