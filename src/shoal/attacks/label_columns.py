"""What an intruder makes of each released text of a column who knows the program that wrote it, or assumes one.

With the policy, the algorithm and the kind of cells give the rule of each text. Without it, the texts must do: ranges
or sets that cross, or ranges of uneven width, can only be boxes of their classes, and are taken for the least ones;
everything else is taken for labels that were fixed beforehand and do not depend on who is in the class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from shoal.attacks.column_matching import mark_of
from shoal.attacks.label_rules import (
    LabelRule,
    LeafSet,
    ProvedLabel,
    family_rule,
    leaf_weights,
    lowest_label_rule,
    no_rule,
    star_rule,
    tight_range_rule,
    tight_set_rule,
)
from shoal.hierarchies.hierarchy import Hierarchy, Label
from shoal.hierarchies.reader import LeavesBehind, Reader
from shoal.notation.codec import Coded
from shoal.notation.forms import DecimalMark, decimal_mark, is_star, lists, read_mask, read_number, read_range
from shoal.notation.labels import days_of, read_set
from shoal.policy import Policy
from shoal.policy.column import Cell
from shoal.tables.centres import CENTRES
from shoal.tables.frequency import Counts, RowNumbers

# How an algorithm writes the cells of a class.
BY_CLASS = frozenset({"mondrian", "mondrian_relaxed", "local", "forest_generalize", "mdav"})
STARS = frozenset({"cover", "forest", "suppress_cells", "local_suppression"})
STARS_ON_CUTS = frozenset({"single_dimensional"})
# Ranges and sets of their class are tight, unless the policy tells them from windows that are fixed beforehand: those
# are written such that no value of a window must occur.
HAS_WINDOWS = "tight-range" in get_args(Cell)
TIGHT_RANGES = frozenset({"tight-range" if HAS_WINDOWS else "range"})
TIGHT_SETS = frozenset({"tight-set" if HAS_WINDOWS else "set"})
WIDEST = 4096  # whole numbers in a range that are listed where the original is unknown
MAX_COMPARED = 400  # texts that are compared with each other, the narrowest first
MAX_WIDTHS = 8  # of ranges in one column: hierarchies have a few levels, and narrower ranges at either end
NO_LEAVES: LeafSet = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class LabelColumn:
    """A released column, its texts as an intruder reads them."""

    name: str
    domain: tuple[Label, ...]  # the values that there may be, by leaf
    labels: tuple[ProvedLabel, ...]  # one per released text; a null is the last
    text_of: RowNumbers  # (records)  the text of each record
    leaf_of: RowNumbers | None  # (rows of the original)  -1 for a value outside the domain
    weights: NDArray[np.float64]  # (leaves)  how often each is taken to occur
    printed: tuple[LeafSet, ...]  # per text, the values that it names: the ends of a range, the members of a set
    assumed: bool = False  # whether the texts are only assumed to be boxes of their classes


def label_column(
    name: str, released: Coded, original: Coded | None, policy: Policy | None, hierarchy: Hierarchy | None
) -> LabelColumn:
    """Read a released column; ``hierarchy`` is the policy's, on the values of the original."""
    if hierarchy is not None and policy is not None and original is not None:
        leaf_of_text = hierarchy.encode([*original.texts, None] if None in hierarchy.leaves else original.texts)
        leaf_of = leaf_of_text[original.codes].astype(np.int64)
        return _of_policy(name, released, policy, hierarchy, leaf_of)
    return _of_texts(name, released, original, policy)


def given_back_columns(policy: Policy) -> tuple[str, ...]:
    """Return the quasi-identifiers whose labels depend on the values of their class, as the policy says it."""
    algorithm = policy.release.algorithm
    if algorithm in STARS | STARS_ON_CUTS:
        return policy.quasi
    proving = {"hierarchy", "median", "mode", *TIGHT_RANGES, *TIGHT_SETS} if algorithm in BY_CLASS else set()
    return tuple(name for name in policy.quasi if policy.columns[name].cells in proving)


def columns_of_release(
    released: Mapping[str, Coded],
    hierarchies: Mapping[str, Hierarchy],
    leaf_counts: Mapping[str, Counts],
    policy: Policy,
) -> tuple[LabelColumn, ...]:
    """Read the quasi columns of a release whose hierarchies are known; ``leaf_counts`` says which values occur."""
    return tuple(
        _of_policy(name, coded, policy, hierarchies[name], np.flatnonzero(leaf_counts[name]))
        for name, coded in released.items()
    )


# --- with the policy ----------------------------------------------------------------------------------------------


def _of_policy(name: str, released: Coded, policy: Policy, hierarchy: Hierarchy, leaf_of: RowNumbers) -> LabelColumn:
    read = LeavesBehind.read(hierarchy, released.texts, mark=mark_of(name, policy))
    everything = np.unique(leaf_of)  # who knows which values occur in the column
    occurs = np.zeros(len(hierarchy.leaves), np.bool_)
    occurs[everything] = True
    covered = [
        everything if i in read.everything else np.array([leaf for leaf in sorted(leaves) if occurs[leaf]], np.int64)
        for i, leaves in enumerate(read.behind)
    ]
    covered = [leaves if len(leaves) else everything for leaves in covered]
    cells = policy.columns[name].cells
    centres = cells in CENTRES and policy.release.algorithm in BY_CLASS
    rule = _rule(policy, hierarchy, released.texts)
    labels = []
    for text, leaves in zip(released.texts, covered, strict=True):
        if centres:  # a single value in place of all; the most frequent occurs, and the median of an odd number
            printed_leaf = _leaves_of_value(hierarchy, text, everything)
            witnesses = () if cells == "mean" or not len(printed_leaf) else (printed_leaf,)
            labels.append(ProvedLabel(everything, witnesses, odd_only=cells == "median"))
            continue
        proves = len(leaves) > 1 and not (text == hierarchy.top and _top_is_silent(policy, hierarchy))
        labels.append(ProvedLabel(leaves, rule(leaves) if proves else ()))
    null = np.flatnonzero([leaf is None for leaf in hierarchy.leaves])
    labels.append(ProvedLabel(null if len(null) and policy.release.nulls != "wildcard" else everything))
    text_of = np.where(released.codes < 0, len(released.texts), released.codes).astype(np.int64)
    named = _Named(hierarchy.leaves)
    printed = (*(named.by(text) for text in released.texts), NO_LEAVES)
    weights = leaf_weights(len(hierarchy.leaves), leaf_of)
    return LabelColumn(name, hierarchy.leaves, tuple(labels), text_of, leaf_of, weights, printed)


def _leaves_of_value(hierarchy: Hierarchy, text: str, occurring: LeafSet) -> LeafSet:
    """Return the leaves that a text is the lowest label of; none if it is a label of several levels up."""
    if text not in hierarchy.labels[0]:
        return NO_LEAVES
    leaves = np.flatnonzero(hierarchy.table[0] == hierarchy.labels[0].index(text))
    return np.intersect1d(leaves, occurring).astype(np.int64)


def _rule(policy: Policy, hierarchy: Hierarchy, texts: Sequence[str]) -> LabelRule:
    """Return what the algorithm's cells prove; labels of one level per column depend on no class."""
    cells, algorithm = policy.columns[hierarchy.column].cells, policy.release.algorithm
    if algorithm in STARS:
        level = _level_below_stars(hierarchy, texts)
        # local_suppression may generalize a column to its top; its stars then depend on no class.
        fixed = policy.release.nulls == "wildcard" or (level is None and algorithm == "local_suppression")
        return no_rule if fixed else star_rule(hierarchy, level or 0)
    if algorithm in STARS_ON_CUTS:
        return no_rule if policy.release.nulls == "wildcard" else family_rule(_visible_labels(hierarchy, texts))
    if algorithm not in BY_CLASS:
        return no_rule
    if cells in TIGHT_RANGES:
        return tight_range_rule(hierarchy)
    if cells in TIGHT_SETS:
        return tight_set_rule(hierarchy)
    return lowest_label_rule(hierarchy) if cells == "hierarchy" else no_rule


def _level_below_stars(hierarchy: Hierarchy, texts: Sequence[str]) -> int | None:
    """Return the lowest level that has all labels but the top; None if there are none."""
    visible = set(texts) - {hierarchy.top}
    if not visible:
        return None
    return next((level for level in range(hierarchy.height) if visible <= set(hierarchy.labels[level])), 0)


def _visible_labels(hierarchy: Hierarchy, texts: Sequence[str]) -> list[LeafSet]:
    """Return the leaves below each released label of one cut; of labels that every class hides, the cut is unknown."""
    below: dict[str, LeafSet] = {}
    for labels, codes in zip(hierarchy.labels, hierarchy.table, strict=True):
        for code, label in enumerate(labels):
            if label is not None and label != hierarchy.top and label in texts:
                below[label] = np.flatnonzero(codes == code).astype(np.int64)
    return list(below.values())


def _top_is_silent(policy: Policy, hierarchy: Hierarchy) -> bool:
    """Return whether a cell may show the top for another reason than the values of its class."""
    cells = policy.columns[hierarchy.column].cells
    hidden = None in hierarchy.leaves or hierarchy.uncovered is not None  # which are in no range and no set
    keeps_suppressed = policy.release.suppressed == "keep" and policy.release.max_suppression > 0
    return keeps_suppressed or bool(policy.enforced) or (hidden and cells in TIGHT_RANGES | TIGHT_SETS)


# --- without it ---------------------------------------------------------------------------------------------------


def _of_texts(name: str, released: Coded, original: Coded | None, policy: Policy | None) -> LabelColumn:
    base = _visible_values(released.texts, mark_of(name, policy)) if original is None else original.texts
    reader = Reader(released.texts, base, freely=original is not None, mark=mark_of(name, policy))
    has_null = original is not None and bool((original.codes < 0).any())
    domain: tuple[Label, ...] = (*base, None) if has_null else tuple(base)
    everything = np.arange(len(domain), dtype=np.int64)
    behind: list[list[int]] = [[] for _ in released.texts]
    for leaf, texts in enumerate(reader.covering(base)):
        for i in texts:
            behind[i].append(leaf)
    silent = set(reader.everything)
    covered = [
        everything if i in silent or not leaves else np.array(leaves, np.int64) for i, leaves in enumerate(behind)
    ]
    named = _Named(domain)
    printed = [named.by(text) for text in released.texts]
    stated = policy is not None and _is_tight(policy, name)  # else the shape of the texts decides
    boxes = stated or _are_boxes(released.texts, covered, printed)
    labels = [
        ProvedLabel(
            leaves,
            tuple(named_leaves[[i]] for i in range(len(named_leaves))) if boxes and len(named_leaves) > 1 else (),
        )
        for leaves, named_leaves in zip(covered, printed, strict=True)
    ]
    labels.append(ProvedLabel(everything[-1:] if has_null else everything))
    text_of = np.where(released.codes < 0, len(released.texts), released.codes).astype(np.int64)
    leaf_of = None if original is None else np.where(original.codes < 0, len(base), original.codes).astype(np.int64)
    return LabelColumn(
        name,
        domain,
        tuple(labels),
        text_of,
        leaf_of,
        leaf_weights(len(domain), leaf_of),
        (*printed, NO_LEAVES),
        assumed=boxes and not stated,
    )


def _is_tight(policy: Policy, name: str) -> bool:
    """Return whether a policy says that a column's labels are the tightest boxes of their classes."""
    cells = policy.columns[name].cells if name in policy.columns else "hierarchy"
    return cells in TIGHT_RANGES | TIGHT_SETS and policy.release.algorithm in BY_CLASS


class _Named:
    """The values that texts name: the ends of a closed range, the members of a set."""

    def __init__(self, domain: Sequence[Label]) -> None:
        self._leaf_of = {value: leaf for leaf, value in enumerate(domain) if value is not None}
        self._mark = decimal_mark(list(self._leaf_of))
        self._by_number: dict[Decimal, int] = {}
        for value, leaf in self._leaf_of.items():
            if (x := read_number(value, self._mark)) is not None:
                self._by_number.setdefault(x, leaf)

    def by(self, text: str) -> LeafSet:
        """Return the leaves that a text names; none if it names something else, or a value itself."""
        if text in self._leaf_of:
            return NO_LEAVES
        members = read_set(text)
        if members is None:
            members = next(
                (listed for listed in lists(text) if all(member in self._leaf_of for member in listed)), None
            )
        if members is not None:
            named = [self._leaf_of[member] for member in members if member in self._leaf_of]
            return np.array(sorted(set(named)), np.int64) if len(named) == len(members) else NO_LEAVES
        first, last = days_of(text)
        if first != last:
            ends = [self._leaf_of[end] for end in (first, last) if end in self._leaf_of]
            return np.array(sorted(ends), np.int64) if len(ends) == 2 else NO_LEAVES
        span = read_range(text, self._mark)
        if span is None or not (span.first_within and span.last_within and span.first < span.last):
            return NO_LEAVES
        ends = [self._by_number[x] for x in (span.first, span.last) if x in self._by_number]
        return np.array(ends, np.int64) if len(ends) == 2 else NO_LEAVES


def _visible_values(texts: Sequence[str], mark: DecimalMark | None) -> list[str]:
    """Return the values that released texts show, and the whole numbers within their ranges.

    Where the original is unknown these are the values that there may be; what they prove does not depend on others.
    """
    visible: set[str] = set()
    for text in texts:
        if (members := read_set(text)) is not None:
            visible.update(members)
        elif (span := read_range(text, mark or ".")) is not None and span.first.is_finite() and span.last.is_finite():
            first, last = span.first, span.last
            whole = first == int(first) and last == int(last) and last - first <= WIDEST
            visible.update(map(str, range(int(first), int(last) + 1)) if whole else (f"{first:f}", f"{last:f}"))
        elif days_of(text)[0] != days_of(text)[1]:
            visible.update(days_of(text))
        elif not is_star(text) and read_mask(text) is None:
            visible.add(text)
    return sorted(visible)


def _are_boxes(texts: Sequence[str], covered: Sequence[LeafSet], printed: Sequence[LeafSet]) -> bool:
    """Return whether ranges or sets can only be boxes of their classes: some cross, or ranges are uneven.

    Labels of a hierarchy are nested or apart. Ranges fixed beforehand have one width a level; at the ends of a column
    they may be narrower.
    """
    general = [set(leaves.tolist()) for leaves, named in zip(covered, printed, strict=True) if len(named) > 1]
    general = sorted(general, key=len)[:MAX_COMPARED]
    for i, smaller in enumerate(general):
        for larger in general[i + 1 :]:
            if smaller & larger and not (smaller <= larger or larger <= smaller):
                return True
    ranges = [span for text in texts if (span := read_range(text)) is not None and span.last_within]
    widths = sorted({span.last - span.first for span in ranges if span.first.is_finite() and span.last.is_finite()})
    return len(widths) > MAX_WIDTHS
