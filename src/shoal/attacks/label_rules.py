"""Label rules: what the text of a cell proves about the values of its class, given how the cell was written.

A search that recodes every class separately writes the least value of some family that covers the class: the least
range, the least set, the lowest label of a hierarchy, the least window of a grid. So the values of the class lie in
that value and in no smaller one of the family, which means that each of some sets of leaves has a value that occurs:
its *witnesses*. A range ends at somebody's value, each member of a set occurs, and two children of a label do. Where
a witness has one leaf only, the text gives it back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shoal.hierarchies.hierarchy import Hierarchy
from shoal.tables.frequency import RowNumbers
from shoal.tables.values import leaf_groups

LeafSet = NDArray[np.int64]  # ascending
MAX_WITNESSES = 12  # sets that overlap: all combinations of them are added up
MAX_RECORDS = 150  # of a class whose ways to meet disjoint witnesses are counted: 150! is still a double


@dataclass(frozen=True, eq=False)
class ProvedLabel:
    """The leaves that a released text covers, and the sets of leaves of which one must occur in its class."""

    leaves: LeafSet
    witnesses: tuple[LeafSet, ...] = ()
    odd_only: bool = False  # whether they hold in classes with an odd number of records only, as for a median

    @property
    def is_general(self) -> bool:
        """Whether the text stands for several values."""
        return len(self.leaves) != 1

    def holds_for(self, n: int) -> bool:
        """Whether anything must occur in a class of ``n`` records."""
        return bool(self.witnesses) and not (self.odd_only and n % 2 == 0)

    @cached_property
    def disjoint(self) -> bool:
        """Whether no leaf belongs to two witnesses."""
        members = np.concatenate([*self.witnesses, np.zeros(0, np.int64)])
        return len(np.unique(members)) == len(members)

    def required(self, n: int) -> LeafSet:
        """Return the leaves that occur in every class of ``n`` records with this text; each then occurs at least once.

        A record can be moved from a value that occurs twice to any other, so no more than one is ever certain. All
        witnesses can be met without a given leaf unless it is a witness alone or, for one record, common to all.
        """
        if not self.holds_for(n):
            return np.zeros(0, np.int64)
        if n == 1:
            common = self.witnesses[0]
            for witness in self.witnesses[1:]:
                common = np.intersect1d(common, witness)
            return common if len(common) == 1 else np.zeros(0, np.int64)
        return np.unique(np.concatenate([w for w in self.witnesses if len(w) == 1] or [np.zeros(0, np.int64)]))


LabelRule = Callable[[LeafSet], tuple[LeafSet, ...]]
"""The witnesses of a text that covers these leaves."""


def no_rule(_: LeafSet) -> tuple[LeafSet, ...]:
    """Return no witness: the text does not depend on the values of the class."""
    return ()


def tight_set_rule(hierarchy: Hierarchy) -> LabelRule:
    """Return the rule of the least set: every member occurs; leaves that level 0 joins are one member."""
    rank, groups = leaf_groups(hierarchy)

    def witnesses(leaves: LeafSet) -> tuple[LeafSet, ...]:
        return tuple(np.sort(groups[at]).astype(np.int64) for at in np.unique(rank[leaves]).tolist())

    return _of_several(witnesses)


def tight_range_rule(hierarchy: Hierarchy) -> LabelRule:
    """Return the rule of the least range, in the order of the hierarchy: both ends occur."""
    rank, groups = leaf_groups(hierarchy)

    def witnesses(leaves: LeafSet) -> tuple[LeafSet, ...]:
        ranks = rank[leaves]
        ends = (int(ranks.min()), int(ranks.max()))
        return tuple(np.sort(groups[at]).astype(np.int64) for at in ends)

    return _of_several(witnesses)


def lowest_label_rule(hierarchy: Hierarchy) -> LabelRule:
    """Return the rule of the lowest label that covers the class: its values are not all below one of its children."""

    def witnesses(leaves: LeafSet) -> tuple[LeafSet, ...]:
        for level in range(hierarchy.height, -1, -1):
            codes = hierarchy.table[level][leaves]
            children = np.unique(codes)
            if len(children) > 1:
                return tuple(leaves[codes != child] for child in children.tolist())
        return ()

    return witnesses


def star_rule(hierarchy: Hierarchy, level: int) -> LabelRule:
    """Return the rule of cell suppression at a level: a star says that the class has two labels of that level."""

    def witnesses(leaves: LeafSet) -> tuple[LeafSet, ...]:
        codes = hierarchy.table[level][leaves]
        children = np.unique(codes)
        if len(children) < 2:
            return ()
        return tuple(leaves[codes != child] for child in children.tolist())

    return witnesses


def family_rule(members: Sequence[LeafSet]) -> LabelRule:
    """Return the rule of the least member of any family: the values do not all lie in a smaller member.

    ``members``: all sets of leaves that could have been written.
    """
    sets = [frozenset(member.tolist()) for member in members]

    def witnesses(leaves: LeafSet) -> tuple[LeafSet, ...]:
        covered = frozenset(leaves.tolist())
        smaller = [member for member in sets if member < covered]
        largest = [member for member in smaller if not any(member < other for other in smaller)]
        return tuple(np.array(sorted(covered - member), np.int64) for member in dict.fromkeys(largest))

    return witnesses


def _of_several(witnesses: LabelRule) -> LabelRule:
    """Return a rule that says nothing about a text that stands for one distinguishable value."""

    def witnesses_of_several(leaves: LeafSet) -> tuple[LeafSet, ...]:
        sets = witnesses(leaves)
        return sets if len({witness.tobytes() for witness in sets}) > 1 else ()

    return witnesses_of_several


# --- what remains likely ------------------------------------------------------------------------------------------


def shares_given(label: ProvedLabel, n: int, weights: NDArray[np.float64], limit: int) -> NDArray[np.float64] | None:
    """Return the expected share of each leaf of a text in a class of ``n`` records, given its witnesses.

    Records are drawn independently with ``weights`` (one per leaf of the domain), and kept where every witness is met.
    Returns None where that takes more than ``limit`` steps.
    """
    total = float(weights[label.leaves].sum())
    prior = weights[label.leaves] / total if total > 0 else np.full(len(label.leaves), 1 / len(label.leaves))
    if not label.holds_for(n):
        return prior
    index_of = {leaf: i for i, leaf in enumerate(label.leaves.tolist())}
    sets = [np.array([index_of[leaf] for leaf in witness.tolist()], np.int64) for witness in label.witnesses]
    if label.disjoint:
        return _shares_with_disjoint(prior, sets, n) if n <= MAX_RECORDS and len(sets) * n * n <= limit else None
    if (children := _complements(sets, len(prior))) is not None:
        return _shares_with_two_children(prior, children, n)
    return _shares_by_inclusion(prior, sets, n) if len(sets) <= MAX_WITNESSES else None


def _shares_with_disjoint(prior: NDArray[np.float64], sets: list[NDArray[np.int64]], n: int) -> NDArray[np.float64]:
    """Return the shares where each of some disjoint sets must be met.

    The generating function of the number of ways is exp(r x) · Π (exp(q_i x) − 1); all its terms are positive, so
    nothing cancels. Without one set it counts the ways to go on after a record of that set.
    """
    masses = [float(prior[leaves].sum()) for leaves in sets]
    rest = max(0.0, 1.0 - sum(masses))
    steps = np.arange(n + 1)
    factorials = np.cumprod(np.concatenate([[1.0], np.arange(1, n + 1, dtype=np.float64)]))

    def series(mass: float, *, met: bool) -> NDArray[np.float64]:
        terms = mass**steps / factorials
        if met:
            terms[0] = 0.0
        return np.asarray(terms)

    def product(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.convolve(a, b)[: n + 1]

    before = [series(rest, met=False)]
    for mass in masses:
        before.append(product(before[-1], series(mass, met=True)))
    after = [np.eye(1, n + 1)[0]]
    for mass in reversed(masses):
        after.append(product(after[-1], series(mass, met=True)))
    ways = before[-1][n] * n  # n! / (n − 1)!, what one record more can be
    if not ways > 0:
        return prior
    shares = prior * before[-1][n - 1] / ways
    for i, leaves in enumerate(sets):
        others_met = product(before[i], after[len(sets) - 1 - i])
        shares[leaves] = prior[leaves] * (others_met[n - 1] + before[-1][n - 1]) / ways
    return np.asarray(shares)


def _complements(sets: list[NDArray[np.int64]], n_leaves: int) -> list[NDArray[np.int64]] | None:
    """Return the children of which each set is the complement, if they divide all leaves."""
    everything = np.arange(n_leaves)
    children = [np.setdiff1d(everything, leaves) for leaves in sets]
    members = np.concatenate(children)
    return children if len(members) == n_leaves and len(np.unique(members)) == n_leaves else None


def _shares_with_two_children(
    prior: NDArray[np.float64], children: list[NDArray[np.int64]], n: int
) -> NDArray[np.float64]:
    """Return the shares where not all records may lie in one child."""
    masses = np.array([prior[child].sum() for child in children])
    possible = 1.0 - float((masses**n).sum())
    if possible <= 1e-12:
        return prior
    shares = prior.copy()
    for child, mass in zip(children, masses, strict=True):
        shares[child] = prior[child] * (1.0 - mass ** (n - 1)) / possible
    return shares


def _shares_by_inclusion(prior: NDArray[np.float64], sets: list[NDArray[np.int64]], n: int) -> NDArray[np.float64]:
    """Return the shares for any sets, by inclusion and exclusion of those that are missed."""
    possible, shares = 0.0, np.zeros(len(prior))
    for chosen in range(1 << len(sets)):
        free = np.ones(len(prior), np.bool_)
        for i, leaves in enumerate(sets):
            if chosen >> i & 1:
                free[leaves] = False
        sign = -1.0 if chosen.bit_count() % 2 else 1.0
        mass = float(prior[free].sum())
        possible += sign * mass**n
        shares += np.where(free, sign * prior * mass ** (n - 1), 0.0)
    return shares / possible if possible > 1e-12 else prior


def leaf_weights(n_leaves: int, leaf_of_row: RowNumbers | None) -> NDArray[np.float64]:
    """Return the share of each leaf in a column, or equal shares where the column is unknown."""
    if leaf_of_row is None or not len(leaf_of_row):
        return np.ones(n_leaves)
    counts = np.bincount(leaf_of_row, minlength=n_leaves).astype(np.float64)
    return counts if counts.sum() > 0 else np.ones(n_leaves)
