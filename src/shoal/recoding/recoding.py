"""Recoding: a search's answer as data, to be shown, applied and replayed.

Full-domain levels, a cut per column, or released tuples record by record: each tells, for every row of the frequency
table that was searched, what its records become.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shoal.errors import OtherTableError
from shoal.table.frequency import Codes, Counts, FrequencyTable, among
from shoal.table.hierarchy import Hierarchy
from shoal.table.kernels import sum_by_class
from shoal.table.values import Ids, Values


@dataclass(frozen=True, eq=False)
class Parts:
    """What becomes of the rows of a frequency table; a row has several parts where its records part ways."""

    row: NDArray[np.int64]  # (parts)  ascending
    codes: Codes  # (parts, columns)  numbers of released values
    counts: Counts  # (parts)  records
    suppressed: NDArray[np.bool_]  # (parts)

    @property
    def n_suppressed(self) -> int:
        """Records that are suppressed."""
        return int(self.counts[self.suppressed].sum())


@dataclass(frozen=True, eq=False, kw_only=True)
class Recoding:
    """What every answer tells."""

    hierarchies: tuple[Hierarchy, ...]
    algorithm: str
    proved: bool  # whether the search showed that nothing costs less
    claim: str = ""  # what else it showed, in a sentence
    n_evaluated: int = 0  # nodes, or whatever the search looks at
    n_nodes: int | None = None  # of so many, where they were counted
    bound: float | None = None  # no answer costs less; where it was not proved that none does
    unfinished: str = ""  # that a time budget ended the search, and how far it had come

    @property
    def released(self) -> tuple[Values, ...]:
        """Per column, what its cells are released as."""
        raise NotImplementedError

    def parts(self, table: FrequencyTable) -> Parts:
        """What becomes of each row of ``table``, which has leaves of the same hierarchies."""
        raise NotImplementedError

    @property
    def levels(self) -> dict[str, int | None]:
        """The level of each column; None where cells are not all on one."""
        return dict.fromkeys(h.column for h in self.hierarchies)

    @property
    def fingerprints(self) -> dict[str, str]:
        """A hash of each hierarchy that a file or tree lists: with the levels it pins what every value became.

        The leaves of the others are the data's own values. A hash of these would let anyone who can guess the rest
        test whether one rare value is among them, so they are left out; the policy describes them wholly.
        """
        return {h.column: h.fingerprint for h in self.hierarchies if h.leaf_order == "given"}


@dataclass(frozen=True, eq=False, kw_only=True)
class FullDomain(Recoding):
    """One level per column, and the released tuples that are suppressed."""

    node: tuple[int, ...]
    suppressed: Codes  # (tuples, columns): codes at the node's levels

    @cached_property
    def released(self) -> tuple[Values, ...]:
        """The labels of the levels."""
        return tuple(Values.of_level(h, level) for h, level in zip(self.hierarchies, self.node, strict=True))

    def parts(self, table: FrequencyTable) -> Parts:
        """One part per row."""
        levels = [h.table[level] for h, level in zip(self.hierarchies, self.node, strict=True)]
        return _everywhere_alike(table, levels, self.suppressed)

    @property
    def levels(self) -> dict[str, int | None]:
        """The level of each column."""
        return {h.column: h.number(level) for h, level in zip(self.hierarchies, self.node, strict=True)}


@dataclass(frozen=True, eq=False, kw_only=True)
class Cuts(Recoding):
    """A value of a column becomes the same everywhere, though not all on one level; some tuples are suppressed."""

    values: tuple[Values, ...]
    of_leaf: tuple[Ids, ...]  # per column, leaf to released value
    suppressed: Codes  # (tuples, columns): released values

    @property
    def released(self) -> tuple[Values, ...]:
        """The pieces of the cuts."""
        return self.values

    def parts(self, table: FrequencyTable) -> Parts:
        """One part per row."""
        return _everywhere_alike(table, self.of_leaf, self.suppressed)


@dataclass(frozen=True, eq=False, kw_only=True)
class Cells(Recoding):
    """What each row of the searched table becomes, part by part."""

    values: tuple[Values, ...]
    became: Parts

    @property
    def released(self) -> tuple[Values, ...]:
        """Whatever a cell may be."""
        return self.values

    def parts(self, table: FrequencyTable) -> Parts:
        """As the search left them; ``table`` is the one that was searched."""
        row = self.became.row
        # The loop that adds up does not look whether a row is there.
        fits = len(row) > 0 and int(row.min()) >= 0 and int(row.max()) < len(table.counts)
        if not fits or not np.array_equal(sum_by_class(self.became.counts, row, len(table.counts)), table.counts):
            raise OtherTableError(
                "the recoding was made for another table",
                "apply it to the table that was searched; shoal.release.replay recodes new rows",
                option="shoal apply",
            )
        return self.became


def _everywhere_alike(table: FrequencyTable, of_leaf: Sequence[Ids], suppressed: Codes) -> Parts:
    codes = np.column_stack([of[table.codes[:, j]] for j, of in enumerate(of_leaf)]).astype(np.int32)
    return Parts(np.arange(len(codes)), codes, table.counts, among(codes, suppressed))
