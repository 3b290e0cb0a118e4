"""A release and its original as an analyst reads them: which values a released cell covers.

A cell is read by its text alone: as a label of the column's hierarchy, a range, a set, a mask, or a star. All that it
may stand for is taken to be equally likely. A number that is no value of the original, such as a mean, counts as the
value nearest to it. What cannot be read stands for everything, and is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from shoal.compiled.grouping import group
from shoal.engines.base import Released
from shoal.engines.data import Data
from shoal.engines.opening import rows_of
from shoal.errors import PolicyError, no_column
from shoal.hierarchies import builders
from shoal.hierarchies.hierarchy import TOP, Hierarchy
from shoal.hierarchies.reader import LeavesBehind
from shoal.hierarchies.spans import spans
from shoal.notation.codec import Coded
from shoal.notation.forms import DecimalMark, is_star, released_mark
from shoal.notation.numbers import parse_number
from shoal.policy import Policy
from shoal.tables.frequency import Codes, Counts, Floats, packed


@dataclass(frozen=True, eq=False)
class ColumnPair:
    """One column of both tables."""

    hierarchy: Hierarchy
    original: Codes  # (records)  leaves
    released: Codes  # (released records)  numbers of texts
    texts: tuple[str | None, ...]
    masses: csr_array  # (texts, leaves)  how likely each leaf is behind a text
    unknown: int  # released cells that could not be read
    mark: DecimalMark | None = None  # of the released numbers, where the policy names that of the data

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.hierarchy.column

    @property
    def ordered(self) -> bool:
        """Whether consecutive leaves form a range."""
        return self.hierarchy.leaf_order in ("numeric", "time", "rank")

    @property
    def n_leaves(self) -> int:
        """The number of distinct values."""
        return len(self.hierarchy.leaves)

    @cached_property
    def numbers(self) -> Floats | None:
        """The number of each leaf; None if the column is not numeric or some record has none."""
        if self.hierarchy.leaf_order != "numeric":
            return None
        read = [None if text is None else parse_number(text) for text in self.hierarchy.leaves]
        values = np.array([np.nan if value is None else float(value) for value in read])
        return None if np.isnan(values[self.original]).any() else values

    @cached_property
    def midpoints(self) -> Floats:
        """The midpoint of the numbers that each released text covers; open ends use the range of the data."""
        values = self.numbers
        if values is None:
            raise ValueError("the column is not numeric")
        lowest, highest = np.nanmin(values), np.nanmax(values)
        out = np.empty(len(self.texts))
        read = spans([text or TOP for text in self.texts], None, self.mark)
        for i, (text, covered_spans) in enumerate(zip(self.texts, read, strict=True)):
            if text is not None and not is_star(text) and covered_spans is not None:
                out[i] = (max(covered_spans[0][0], lowest) + min(covered_spans[-1][1], highest)) / 2
            else:
                covered = values[self.masses.indices[self.masses.indptr[i] : self.masses.indptr[i + 1]]]
                present = covered[~np.isnan(covered)]
                out[i] = (present.min() + present.max()) / 2 if len(present) else (lowest + highest) / 2
        return out


@dataclass(frozen=True, eq=False)
class Pair:
    """Both tables, column by column."""

    columns: tuple[ColumnPair, ...]
    n_original: int
    n_released: int

    @classmethod
    def from_tables(
        cls, original: Data, release: Data | Released, policy: Policy, columns: Sequence[str] | None = None
    ) -> Pair:
        """Read some columns, or all quasi-identifiers and sensitive columns, of a Release, a path or a frame."""
        before, after = rows_of(original, policy), rows_of(release, policy)
        names = (*policy.quasi, *policy.sensitive) if columns is None else tuple(columns)
        for engine, role in ((before, "original"), (after, "release")):
            if absent := [name for name in names if name not in engine.table.column_names]:
                raise no_column(f"the {role}", absent, engine.table.column_names)
        if strange := [name for name in names if name not in (*policy.quasi, *policy.sensitive)]:
            raise PolicyError(
                f"columns: {', '.join(map(repr, strange))}: neither a quasi-identifier nor a sensitive column of "
                "the policy"
            )
        read = tuple(_column(name, before.coded(name), after.coded(name), policy) for name in names)
        return cls(read, before.table.num_rows, after.table.num_rows)

    def tuples(self, columns: Sequence[ColumnPair], *, released: bool) -> tuple[Codes, Counts]:
        """Return the distinct tuples of some columns, and how often each occurs."""
        codes = np.column_stack([c.released if released else c.original for c in columns]).astype(np.int32)
        class_of, firsts = group(packed(codes))
        return codes[firsts], np.bincount(class_of, minlength=len(firsts)).astype(np.int64)

    @property
    def unknown(self) -> dict[str, int]:
        """The number of released cells that could not be read, by column."""
        return {c.name: c.unknown for c in self.columns if c.unknown}


def _column(name: str, before: Coded, after: Coded, policy: Policy) -> ColumnPair:
    column = policy.columns[name]
    hierarchy = builders.build(
        name,
        column.hierarchy,
        before.texts,
        nulls=bool((before.codes < 0).any()),
        uncovered=column.uncovered,
        folder=policy.folder,
    )
    leaf_of = hierarchy.encode([*before.texts, None] if None in hierarchy.leaves else before.texts)
    texts = (*after.texts, None)
    wildcard = policy.release.nulls == "wildcard"
    mark = policy.marks.get(name)
    masses, understood = _masses(hierarchy, texts, wildcard=wildcard, mark=mark)
    released = np.where(after.codes < 0, len(after.texts), after.codes).astype(np.int32)
    return ColumnPair(
        hierarchy,
        leaf_of[before.codes],
        released,
        texts,
        masses,
        int((~understood[released]).sum()),
        None if mark is None else released_mark(after.texts, frozenset(before.texts), mark),
    )


def _masses(
    hierarchy: Hierarchy, texts: Sequence[str | None], *, wildcard: bool, mark: DecimalMark | None
) -> tuple[csr_array, NDArray[np.bool_]]:
    """Return how likely each leaf is for each text, and which texts could be read."""
    read = LeavesBehind.read(hierarchy, [text for text in texts if text is not None], nearest=True, mark=mark)
    nulls = {leaf for leaf, text in enumerate(hierarchy.leaves) if text is None}
    behind = [*read.behind, nulls]  # the null is the last text
    everything = [leaf for leaf in range(len(hierarchy.leaves)) if leaf != hierarchy.uncovered] or [0]
    understood = np.ones(len(texts), np.bool_)
    for i, text in enumerate(texts):
        star = (text is None and wildcard) or i in read.everything
        if star or not behind[i]:
            understood[i] = star or text is None
            behind[i] = set(everything)
    lengths = np.array([len(leaves) for leaves in behind])
    indices = np.concatenate([np.sort(np.array(list(leaves), np.int64)) for leaves in behind])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    shape = (len(texts), len(hierarchy.leaves))
    return csr_array((np.repeat(1.0 / np.maximum(lengths, 1), lengths), indices, starts), shape=shape), understood
