"""Hide forbidden results: suppress the fewest cells, in whole classes, so that none of them comes out.

The idea of Y. Saygin, V. Verykios, C. Clifton, "Using unknowns to prevent discovery of association rules", SIGMOD
Record 30(4), 2001, with an integer program instead of their heuristics.
Needs  a recoding, and counts or rules that name a quasi-identifier.
Finds  the fewest cells, proved unless the time ends, if all records of a class hide the same ones. Such a class becomes
       coarser or joins another, so whatever holds for classes and survives merging them still holds.
Costs  one GROUP BY of the released rows, and the integer programs of ``fewest_cells``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.engines.base import Counted, Engine
from shoal.errors import InfeasibleError
from shoal.forbidden.fewest_cells import HiddenColumns, Whole, fewest_cells
from shoal.forbidden.mining import Mined, mined_by
from shoal.forbidden.rules import rules_of
from shoal.hierarchies.containment import Placing
from shoal.hierarchies.hierarchy import Label
from shoal.models.forbidden import CellTexts, ForbiddenRule, MatchedResult
from shoal.policy import Policy
from shoal.recoding import Cells, HiddenResults, Parts, Recoding
from shoal.search.cells.classes import merge_equal_parts
from shoal.tables.frequency import Floats
from shoal.tables.values import Values

SECONDS = 10.0  # for all integer programs together


def with_hidden_results(engine: Engine, counted: Counted, recoding: Recoding, policy: Policy) -> Recoding:
    """Return the recoding with the cells suppressed that the policy's enforced results need; unchanged without any."""
    results = policy.enforced
    if not results:
        return recoding
    rows = engine.apply(counted, recoding, policy)
    mined = mined_by(rows, [*policy.quasi, *policy.sensitive], policy)
    visible = [result for result in results if not result.unread(mined) and result.mining(mined).comes_out]
    if not visible:
        return replace(recoding, hiding=HiddenResults(0, 0, 0))
    classes = _Classes.of(mined, recoding, counted, policy)
    hidden, bound = fewest_cells(classes, results, min(SECONDS, policy.release.time_budget or SECONDS))
    if hidden is None:
        raise InfeasibleError(
            "forbid: no cells of quasi-identifiers can be suppressed, in whole classes, so that the enforced results "
            "do not come out",
            "remove max_level or after from a column that they name, or generalize it",
        )
    costs = {pattern: classes.cost(pattern) for pattern in set(hidden)}
    cells = sum(int(costs[pattern][i]) for i, pattern in enumerate(hidden))
    return replace(
        _recoded(recoding, counted, classes, hidden),
        hiding=HiddenResults(len(visible), cells, bound, *_other_rules(classes, results, hidden)),
    )


@dataclass(frozen=True, eq=False)
class _Classes:
    """The released classes, the groups that each consists of, and the columns that it may hide."""

    mined: Mined
    quasi: tuple[str, ...]
    class_of: Whole  # (groups)
    texts: tuple[tuple[Label, ...], ...]  # (classes)  the released tuple
    tops: dict[str, str]  # what a hidden cell of a column that may be hidden becomes
    fixed: NDArray[np.bool_]  # (classes)  whether nothing of the class may change

    @classmethod
    def of(cls, mined: Mined, recoding: Recoding, counted: Counted, policy: Policy) -> _Classes:
        quasi = policy.quasi
        codes = np.column_stack([mined.columns[name].codes for name in quasi])
        tuples, class_of = np.unique(codes, axis=0, return_inverse=True)
        texts = tuple(
            tuple(None if code < 0 else mined.columns[name].texts[code] for name, code in zip(quasi, row, strict=True))
            for row in tuples.tolist()
        )
        released = set(_released_tuples(recoding, recoding.parts(counted.table)))
        tops = {
            h.column: h.top
            for h in recoding.hierarchies
            if h.cardinality(h.height) == 1 and h.top is not None and policy.columns[h.column].after is None
        }
        fixed = np.array([text_tuple not in released for text_tuple in texts], np.bool_)
        return cls(mined, quasi, class_of.ravel(), texts, tops, fixed)

    @property
    def n_classes(self) -> int:
        return len(self.texts)

    def hideable(self, results: Sequence[MatchedResult]) -> tuple[str, ...]:
        """Return the columns whose cells decide the results and may be hidden."""
        named = dict.fromkeys(name for result in results for name in result.columns)
        return tuple(name for name in named if name in self.tops)

    def cost(self, pattern: HiddenColumns) -> Whole:
        """Return the cells of each class that a pattern newly hides."""
        sizes = np.bincount(self.class_of, self.mined.counts, self.n_classes).astype(np.int64)
        places = [self.quasi.index(name) for name in pattern]
        new = [sum(texts[column] != self.tops[self.quasi[column]] for column in places) for texts in self.texts]
        return sizes * np.array(new, np.int64)

    def figures(self, results: Sequence[MatchedResult], pattern: HiddenColumns) -> Whole:
        """Return what each class adds to the figures of the results, a row per class, if it hides a pattern."""
        hidden_view = _HiddenView(self.mined, {name: self.tops[name] for name in pattern})
        flags = [flag for result in results for flag in result.flags(hidden_view)]
        return np.column_stack(
            [np.bincount(self.class_of, self.mined.counts * flag, self.n_classes).astype(np.int64) for flag in flags]
        )


@dataclass(frozen=True, eq=False)
class _HiddenView:
    """Mined groups with some columns hidden in all of them."""

    mined: Mined
    tops: dict[str, str]

    @property
    def counts(self) -> Whole:
        return self.mined.counts

    def placed(self, column: str, value: str) -> Placing:
        placed = self.mined.placed(column, value)
        if column not in self.tops:
            return placed
        return np.full_like(placed, self.mined.placed_text(column, self.tops[column], value))

    def labels(self, column: str) -> CellTexts:
        return self.mined.labels(column)

    def numbers(self, column: str) -> Floats:
        return self.mined.numbers(column)


# ── The recoding ────────────────────────────────────────────────────────────────────────────────────────────


def _released_tuples(recoding: Recoding, parts: Parts) -> list[tuple[Label, ...]]:
    """Return the released tuple of each part that is not suppressed."""
    labels = [values.labels for values in recoding.released]
    rows = parts.codes[~parts.suppressed].tolist()
    return [tuple(column_labels[code] for column_labels, code in zip(labels, row, strict=True)) for row in rows]


def _recoded(recoding: Recoding, counted: Counted, classes: _Classes, hidden: Sequence[HiddenColumns]) -> Cells:
    parts = recoding.parts(counted.table)
    pattern_of = dict(zip(classes.texts, hidden, strict=True))
    of_parts = [pattern_of.get(row, ()) for row in _released_tuples(recoding, parts)]
    codes = parts.codes.copy()
    values = list(recoding.released)
    shown_rows = np.flatnonzero(~parts.suppressed)
    for j, name in enumerate(classes.quasi):
        hides = np.array([name in pattern for pattern in of_parts], np.bool_)
        if hides.any():
            values[j], top = _with_top(values[j])
            codes[shown_rows[hides], j] = top
    return Cells(
        hierarchies=recoding.hierarchies,
        values=tuple(values),
        became=merge_equal_parts(Parts(parts.row, codes, parts.counts, parts.suppressed)),
        algorithm=recoding.algorithm,
        proved=False,  # what the search proved is about the release before
        n_evaluated=recoding.n_evaluated,
        n_nodes=recoding.n_nodes,
        bound=recoding.bound,
        unfinished=recoding.unfinished,
    )


def _with_top(values: Values) -> tuple[Values, int]:
    """Return the values with the top of the hierarchy among them, and its number."""
    top = Values.of_level(values.hierarchy, values.hierarchy.height)
    if top.labels[0] in values.labels:
        return values, values.labels.index(top.labels[0])
    return (
        Values(
            values.hierarchy,
            (*values.labels, *top.labels),
            (*values.covers, *top.covers),
            np.append(values.shares, top.shares),
            np.append(values.sizes, top.sizes),
            np.append(values.levels, top.levels),
        ),
        len(values.labels),
    )


# ── Other rules ─────────────────────────────────────────────────────────────────────────────────────────────


def _other_rules(
    classes: _Classes, results: Sequence[MatchedResult], hidden: Sequence[HiddenColumns]
) -> tuple[int | None, int | None, int | None]:
    """Count the other rules before, those lost and those that come out only now; None without an enforced rule."""
    enforced = [result for result in results if isinstance(result, ForbiddenRule)]
    if not enforced:
        return None, None, None
    support = min(Fraction(str(rule.support)) for rule in enforced)
    confidence = min(Fraction(str(rule.confidence)) for rule in enforced)
    mined, names = classes.mined, tuple(classes.mined.columns)
    before = np.column_stack([np.where(mined.silent(name), -1, mined.columns[name].codes) for name in names])
    after = before.copy()
    for j, name in enumerate(names):
        hides = np.array([name in pattern for pattern in hidden], np.bool_)
        after[hides[classes.class_of], j] = -1
    ours = {_numbered(rule, mined, names) for rule in enforced}
    first, second = (rules_of(codes, mined.counts, support, confidence) - ours for codes in (before, after))
    return len(first), len(first - second), len(second - first)


def _numbered(rule: ForbiddenRule, mined: Mined, names: Sequence[str]) -> Any:
    """Return an enforced rule as ``rules_of`` writes it; values that are no text of the release have no number."""
    items = [
        frozenset(
            (names.index(name), mined.columns[name].texts.index(value) if value in mined.columns[name].texts else -1)
            for name, value in part.items()
        )
        for part in (rule.when, rule.then)
    ]
    return items[0], next(iter(items[1])) if len(items[1]) == 1 else None
