"""Fewer nulls if a record may match the released form of others: a null on either side matches anything.

Two records match if every column in which they differ is hidden in one of them. Every record with too few matches in
the original hides at least one cell, and at most the cells it would need without the hidden cells of others: so none is
released unchanged, and none becomes a blank that matches everyone. From there, rows change their hidden cells one at a
time, minimizing their cost plus a penalty for each missing match; the penalty grows until no match is missing.

For one row, the matches under all sets of columns are counted together: rows are counted by the columns that this row
would have to hide to match them, and the counts of subsets are added up. Other rows profit from the same matches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.jit import compiled
from shoal.search.problem import Problem
from shoal.tables.frequency import Codes, Counts, Floats

Masks = NDArray[np.int64]  # (rows)  sets of columns, one bit each
RowPairs = NDArray[np.uint16]  # (rows at risk, rows)  columns in which they differ, and the bit FAR

MISSING = -1  # the code of a null of the data
WIDEST = 12  # columns among which a row chooses; in wider tables, those that are hidden most
FAR = 1 << WIDEST  # marks rows that differ in a column that neither ever hides
COLUMNS = 62  # bits of a mask
MOST_ROUNDS = 10  # times that the price rises
PENALTIES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)  # of a missing match, in cells
PAIRS = 100_000_000  # of rows that are compared, two bytes each: larger tables are compared in blocks
WORK = 300_000_000  # pairs that are looked at again at most: a limit that is the same on every machine
SPARE = 0.01  # what one more match is worth to a row that has enough, but hides more than one cell, and
ALL_SPARE = 0.02  # their total worth: less than one more hidden cell
TIES = 0.005  # the largest random price, which decides between equals


@dataclass(frozen=True, eq=False)
class NullChoice:
    """The rows, the cells they hide if they rely on no other row, and the cost of hiding."""

    problem: Problem
    codes: Codes  # (rows, columns)  MISSING where the data has a null
    counts: Counts
    hidden: NDArray[np.bool_]  # (rows, columns)  enough for each row if the others hid nothing
    k: int

    def fewer(self) -> NDArray[np.bool_]:
        """Return what to hide instead: every row matches k released records, and none hides more than before.

        In a large table, rows are compared within blocks of similar ones: what matches in a block matches in the table,
        and a row that stays as it was counts on nobody, so the answer holds for all, but may hide more cells.
        """
        hidden = self.hidden.copy()
        for block in self.blocks:
            part = replace(self, codes=self.codes[block], counts=self.counts[block], hidden=self.hidden[block])
            hidden[block] = part._fewer_together(one_round=len(self.blocks) > 1)
        return hidden

    @cached_property
    def blocks(self) -> list[Masks]:
        """The rows in blocks in which they are compared, in the order of the columns that are hidden least."""
        n_rows = len(self.codes)
        n_blocks = max(1, -(-int(self.hidden.any(axis=1).sum()) * n_rows // PAIRS))
        by_hidden = np.argsort(-(self.counts @ self.hidden), kind="stable")
        similar = np.lexsort(self.codes[:, by_hidden].T) if n_blocks > 1 else np.arange(n_rows)
        return np.array_split(similar, n_blocks)

    def _fewer_together(self, *, one_round: bool) -> NDArray[np.bool_]:
        n_columns = self.codes.shape[1]
        at_risk = np.asarray(self.hidden.any(axis=1))
        if n_columns > COLUMNS or not at_risk.any():
            return self.hidden
        # The columns among which rows choose come first, so that their sets are the smallest numbers.
        order = np.argsort(-(self.counts @ self.hidden), kind="stable")
        weights = np.asarray(self.problem.weights)[order]
        prices = _prices(weights[:WIDEST])
        start = (self.hidden[:, order] * (np.int64(1) << np.arange(n_columns))).sum(axis=1)
        rows = np.flatnonzero(at_risk & (start < len(prices)))
        if not len(rows):
            return self.hidden
        codes = np.ascontiguousarray(self.codes[:, order], np.int32)
        # Rows that hide other columns too never choose again.
        near = start & (FAR - 1)
        hides = start - near + self._searched(codes, at_risk, start, near, rows, prices, one_round)
        fewer = np.empty_like(self.hidden)
        fewer[:, order] = (hides[:, None] >> np.arange(n_columns)) & 1 == 1
        return fewer

    def lower_bounds(self) -> Floats:
        """Return for each row a lower bound on the cost: that of its cheapest cell if it must hide one."""
        cheapest = np.where(self.codes == MISSING, np.inf, np.asarray(self.problem.weights)).min(axis=1)
        return np.where(self.hidden.any(axis=1), cheapest, 0.0)

    def _searched(
        self,
        codes: Codes,
        at_risk: NDArray[np.bool_],
        start: Masks,
        near: Masks,
        rows: Masks,
        prices: Floats,
        one_round: bool,
    ) -> Masks:
        """Return what rows hide of the columns among which they choose; ``near`` is what they hide of them at first."""
        rng = np.random.default_rng(self.problem.terms.seed)
        positive = [weight for weight in self.problem.weights if weight > 0]
        unit = min(positive, default=1.0)
        pair_row = np.cumsum(at_risk) - 1  # of a row at risk among them
        row_differences = differences(codes, np.flatnonzero(at_risk), start)
        barred = ((codes == MISSING) * (np.int64(1) << np.arange(codes.shape[1]))).sum(axis=1)  # a null of the data
        best, cost = near, float(self.counts[rows] @ prices[near[rows]])
        lower_bound = float(self.counts[rows] @ self.lower_bounds()[rows])
        hides = near.copy()
        matched = count_matched(row_differences, self.counts, hides, at_risk)
        # Rows that may choose again in all rounds; in a block, each row once with each price.
        n_turns = len(rows) if one_round else WORK // ((len(codes) + len(prices)) * len(PENALTIES))
        n_rounds = max(1, min(MOST_ROUNDS, n_turns // len(rows)))
        for i in range(n_rounds):
            if cost <= lower_bound + 1e-9:
                break
            for penalty in PENALTIES:
                if self.problem.out_of_time:
                    return best
                ties = TIES * unit * rng.random(len(prices))
                order = rng.permutation(rows)[:n_turns]
                n_several = int((hides[rows] & (hides[rows] - 1) != 0).sum())
                spare = min(SPARE, ALL_SPARE / max(1, n_several))
                rehide(
                    row_differences, pair_row, self.counts, self.k, prices, ties, near, barred, at_risk, hides, matched,
                    order, penalty * unit, spare * unit,
                )  # fmt: skip
            # Skip rows that hide only their initial cells.
            while (short := at_risk & (matched < self.k) & (hides != near)).any():
                hides[short] = near[short]
                matched = count_matched(row_differences, self.counts, hides, at_risk)
            restore(row_differences, pair_row, self.counts, self.k, prices, near, at_risk, hides, matched, rows)
            now = float(self.counts[rows] @ prices[hides[rows]])
            if now < cost - 1e-9:
                best, cost = hides.copy(), now
            self.problem.progress("hiding fewer cells", (i + 1) / n_rounds)
        return best


def _prices(weights: Floats) -> Floats:
    prices = np.zeros(1)
    for weight in weights:
        prices = np.append(prices, prices + weight)
    return prices


@compiled
def differences(codes: Codes, rows: Masks, start: Masks) -> RowPairs:
    """Return the columns in which each of these rows differs from every row; ``FAR`` stands for all but the first."""
    n, n_columns = codes.shape
    row_differences = np.zeros((len(rows), n), np.uint16)
    for r in range(len(rows)):
        i = rows[r]
        for j in range(n):
            mask = np.int64(0)
            for c in range(n_columns):
                a, b = codes[i, c], codes[j, c]
                if a != b and a >= 0 and b >= 0:
                    mask |= np.int64(1) << c
            if mask & ~(start[i] | start[j]) >= FAR:
                row_differences[r, j] = FAR
            row_differences[r, j] |= mask & (FAR - 1)
    return row_differences


@compiled
def count_matched(row_differences: RowPairs, counts: Counts, hides: Masks, at_risk: NDArray[np.bool_]) -> Counts:
    """Return how many records, with what they hide, match each row at risk; 0 for the others."""
    n = len(at_risk)
    matched = np.zeros(n, np.int64)
    r = 0
    for i in range(n):
        if at_risk[i]:
            for j in range(n):
                if row_differences[r, j] & ~(hides[i] | hides[j]) == 0:
                    matched[i] += counts[j]
            r += 1
    return matched


@compiled
def rehide(
    row_differences: RowPairs,
    pair_row: Masks,
    counts: Counts,
    k: int,
    prices: Floats,
    ties: Floats,
    start: Masks,
    barred: Masks,
    at_risk: NDArray[np.bool_],
    hides: Masks,
    matched: Counts,
    order: Masks,
    penalty: float,
    spare: float,
) -> None:
    """Let rows choose again what they hide, in this order; ``hides`` and ``matched`` are changed in place."""
    # Sets of columns are bit masks. For row i and every set m that it could hide:
    #   n_matching[m]      records that match it then;
    #   cost_to_others[m]  penalty that other rows at risk save, because they match row i then.
    n, n_sets = len(counts), len(prices)
    needs = np.zeros(n, np.int64)
    n_matching = np.zeros(n_sets, np.int64)
    cost_to_others = np.zeros(n_sets, np.float64)
    for i in order:
        n_matching[:] = 0
        cost_to_others[:] = 0.0
        mine = counts[i]
        for j in range(n):
            # Row j matches if row i hides all columns in which they differ and j does not hide.
            need = np.int64(row_differences[pair_row[i], j]) & ~hides[j]
            needs[j] = need
            if need >= n_sets:
                continue
            n_matching[need] += counts[j]
            if j != i and at_risk[j]:
                matched_without = matched[j]
                if need & ~hides[i] == 0:
                    matched_without -= mine
                if matched_without < k:
                    cost_to_others[need] += penalty * counts[j] * (min(matched_without + mine, k) - matched_without)
                elif hides[j] & (hides[j] - 1) != 0:
                    cost_to_others[need] += spare
        # Sum over subsets: hiding m satisfies every need contained in m.
        step = 1
        while step < n_sets:
            for m in range(n_sets):
                if m & step != 0:
                    n_matching[m] += n_matching[m ^ step]
                    cost_to_others[m] += cost_to_others[m ^ step]
            step *= 2
        # The cheapest admissible set: own price, penalty for missing matches, minus what others save.
        before = hides[i]
        best, min_cost = before, 1e300
        for m in range(1, n_sets):
            if m & barred[i] == 0 and prices[m] <= prices[start[i]] + 1e-9:
                cost = mine * (prices[m] + ties[m]) + penalty * mine * max(0, k - n_matching[m]) - cost_to_others[m]
                if cost < min_cost:
                    best, min_cost = np.int64(m), cost
        if best != before:
            for j in range(n):
                if j != i:
                    if needs[j] & ~before == 0:
                        matched[j] -= mine
                    if needs[j] & ~best == 0:
                        matched[j] += mine
            hides[i] = best
            matched[i] = n_matching[best]


@compiled
def restore(
    row_differences: RowPairs,
    pair_row: Masks,
    counts: Counts,
    k: int,
    prices: Floats,
    start: Masks,
    at_risk: NDArray[np.bool_],
    hides: Masks,
    matched: Counts,
    order: Masks,
) -> None:
    """Restore the initial hidden cells of rows where that costs no more and no other row relies on the current ones.

    Saving a cell in one row leaves others as they were: fewer records count on what others hide.
    """
    n = len(counts)
    for i in order:
        first, now = start[i], hides[i]
        if first == now or prices[first] > prices[now] + 1e-9:
            continue
        free = True
        for j in range(n):
            if at_risk[j] and j != i and matched[j] - counts[i] < k:
                need = np.int64(row_differences[pair_row[i], j]) & ~hides[j]
                if need & ~now == 0 and need & ~first != 0:
                    free = False
                    break
        if free:
            matched[i] = 0
            for j in range(n):
                need = np.int64(row_differences[pair_row[i], j]) & ~hides[j]
                if need & ~first == 0:
                    matched[i] += counts[j]
                if j != i:
                    if need & ~now == 0:
                        matched[j] -= counts[i]
                    if need & ~first == 0:
                        matched[j] += counts[i]
            hides[i] = first
