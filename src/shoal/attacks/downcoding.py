"""Downcoding: what the texts of a release, and the rules of the program that wrote it, prove about the tuples.

A. Cohen, "Attacks on deidentification's defenses", USENIX Security 2022.
The possible originals of a class are all multisets of as many tuples that the program could have turned into its text.
A record is given back where some tuple is in all of them, as often as in the one where it is rarest; which row it is
stays open. What the texts say holds column by column, and how the values of a class are combined is free, so that a
whole tuple is certain only if one column of the class is general: with two, the values of one can always be dealt to
the records of the other so that they never meet. (For given counts the least number of records with value v in every
column is max(0, sum of the counts − (columns − 1) n), by Fréchet, and a value of a general column is certain once at
most.) Within one column the counts are exact (``ProvedLabel.required``).
Beyond certainty: which values of a class become likelier than its text says, where records are drawn independently
from the column's frequencies and kept if they fit the text. Exact where that takes few steps, otherwise left as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shoal.attacks.label_columns import LabelColumn
from shoal.attacks.label_rules import shares_given
from shoal.compiled.grouping import group
from shoal.tables.frequency import RowNumbers, packed

LIKELIER = 0.05  # by how much the share of a value in its class must exceed what the text says
MAX_STEPS = 1 << 20  # for one text and size of class


@dataclass(frozen=True, eq=False)
class CertainValues:
    """Values that occur in a class for certain: one entry for each, of a class, a column and a leaf."""

    class_of: RowNumbers
    column: RowNumbers
    leaf: RowNumbers

    def __len__(self) -> int:
        return len(self.class_of)


@dataclass(frozen=True, eq=False)
class Downcoded:
    """The classes of a release, and what is proved about them."""

    columns: tuple[LabelColumn, ...]
    class_of: RowNumbers  # (records)
    texts: RowNumbers  # (classes, columns)
    counts: RowNumbers  # (classes)  records
    is_general: NDArray[np.bool_]  # (classes, columns)
    certain: CertainValues
    likelier: NDArray[np.float64]  # (classes)  expected records with a cell that is likelier than its text says
    n_unsolved: int  # cells whose likelihoods would take too many steps

    @property
    def n_general(self) -> int:
        """The number of records with a general cell."""
        return int(self.counts[self.is_general.any(axis=1)].sum())

    @property
    def n_general_cells(self) -> int:
        """The number of general cells."""
        return int((self.counts[:, None] * self.is_general).sum())

    @cached_property
    def tuples(self) -> CertainValues:
        """The certain values that complete a tuple: no other column of the class is general, or it has one record."""
        open_columns = self.is_general.sum(axis=1)
        single_column = (open_columns[self.certain.class_of] == 1) & (self.counts[self.certain.class_of] > 1)
        return CertainValues(
            *(part[single_column] for part in (self.certain.class_of, self.certain.column, self.certain.leaf))
        )

    @cached_property
    def n_single(self) -> int:
        """The number of classes of one record all of whose general cells are certain."""
        closed = np.bincount(self.certain.class_of, minlength=len(self.counts))
        return int(((self.counts == 1) & self.is_general.any(axis=1) & (closed == self.is_general.sum(axis=1))).sum())


def downcoded(
    columns: Sequence[LabelColumn], weights: RowNumbers | None = None, *, likelihoods: bool = True
) -> Downcoded:
    """Return what the texts of all columns prove; ``weights`` are the records that each row stands for.

    ``likelihoods``: whether to look for values that are likelier than their text says, too, which takes longer.
    """
    text_of = np.column_stack([column.text_of for column in columns])
    class_of, firsts = group(packed(text_of.astype(np.int32)))
    texts, counts = text_of[firsts], np.bincount(class_of, weights).astype(np.int64)
    general = np.column_stack(
        [np.array([label.is_general for label in column.labels])[texts[:, j]] for j, column in enumerate(columns)]
    )
    certain_parts: list[tuple[RowNumbers, RowNumbers, RowNumbers]] = []
    unlikelier = np.ones(len(counts))  # the chance that no cell of a record is likelier
    n_unsolved = 0
    for j, column in enumerate(columns):
        kinds, kind_of = np.unique(np.column_stack([texts[:, j], counts]), axis=0, return_inverse=True)
        kind_of = kind_of.ravel()
        required = [column.labels[text].required(n) for text, n in kinds.tolist()]
        lengths = np.array([len(leaves) for leaves in required], np.int64)
        classes = np.repeat(np.arange(len(counts)), lengths[kind_of])
        leaves = np.concatenate([np.zeros(0, np.int64), *(required[kind] for kind in kind_of.tolist())])
        certain_parts.append((classes, np.full(len(classes), j, np.int64), leaves))
        if not likelihoods:
            continue
        shares = [_likelier(column, text, n) for text, n in kinds.tolist()]
        unlikelier *= 1 - np.array([0.0 if share is None else share for share in shares])[kind_of]
        unsolved = np.array([share is None for share in shares])[kind_of]
        n_unsolved += int(counts[unsolved].sum())
    certain = CertainValues(*(np.concatenate(parts) for parts in zip(*certain_parts, strict=True)))
    return Downcoded(
        tuple(columns),
        class_of.astype(np.int64),
        texts,
        counts,
        general,
        certain,
        counts * (1 - unlikelier),
        n_unsolved,
    )


def _likelier(column: LabelColumn, text: int, n: int) -> float | None:
    """Return the expected share of records whose value is likelier than the text says; None if it takes too long."""
    label = column.labels[text]
    if not label.is_general or not label.holds_for(n):
        return 0.0
    shares = shares_given(label, n, column.weights, MAX_STEPS)
    if shares is None:
        return None
    weights = column.weights[label.leaves]
    prior = weights / weights.sum() if weights.sum() > 0 else np.full(len(weights), 1 / len(weights))
    return float(shares[shares > prior + LIKELIER].sum())
