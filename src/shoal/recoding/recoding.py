"""Recoding: the result of a search as data, which can be shown, applied and replayed.

A recoding is a level per column (full domain), a cut per column, or released tuples record by record. Each says what
the records of every row of the searched frequency table become.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.grouping import group, sum_by_class
from shoal.compiled.leaves import recoded_leaves, records_by_leaf
from shoal.errors import OtherTableError
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.tables.frequency import ClassOf, Codes, Counts, FrequencyTable, among, packed
from shoal.tables.values import Ids, Values
from shoal.text.figures import format_count, format_number


@dataclass(frozen=True, eq=False)
class Parts:
    """What the rows of a frequency table become; a row has several parts if its records are recoded differently."""

    row: NDArray[np.int64]  # (parts)  ascending
    codes: Codes  # (parts, columns)  numbers of released values
    counts: Counts  # (parts)  records
    suppressed: NDArray[np.bool_]  # (parts)

    @property
    def n_suppressed(self) -> int:
        """The number of suppressed records."""
        return int(self.counts[self.suppressed].sum())

    @cached_property
    def tuples(self) -> tuple[ClassOf, NDArray[np.int64]]:
        """The released tuple of each part, suppressed or not, by number, and the first part with each tuple."""
        return group(packed(self.codes))

    def shown_tuples(self, *, stars: bool) -> NDArray[np.int32]:
        """Return the released tuple of each part by number; with ``stars``, suppressed parts show one tuple of them."""
        tuple_of, firsts = self.tuples
        return (np.where(self.suppressed, len(firsts), tuple_of) if stars else tuple_of).astype(np.int32)

    @cached_property
    def kept_counts(self) -> Counts:
        """The records that are not suppressed, per part."""
        return np.where(self.suppressed, 0, self.counts)


@dataclass(frozen=True, eq=False)
class UniformParts(Parts):
    """Parts in which a value becomes the same everywhere."""

    leaves: Codes  # (parts, columns)  what was released as these codes
    of_leaf: Sequence[Ids]  # per column, leaf to released value

    @cached_property
    def kept_leaves(self) -> list[Counts]:
        """The records with each leaf that are not suppressed, per column."""
        return records_by_leaf(self.leaves, self.kept_counts, [len(ids) for ids in self.of_leaf])


@dataclass(frozen=True)
class HiddenResults:
    """Cells suppressed so that forbidden results cannot be derived. For the owner only: it names those results."""

    results: int  # forbidden results that could be derived before
    cells: int
    least: int  # at least so many cells must be suppressed in whole classes
    rules: int | None = None  # other association rules before; None if no rule was enforced
    lost: int | None = None  # of these, rules that can no longer be derived
    ghosts: int | None = None  # rules that can be derived only now

    @property
    def proved(self) -> bool:
        """Whether no fewer cells can be suppressed in whole classes."""
        return self.cells == self.least

    @property
    def sentence(self) -> str:
        """What was done, as a sentence."""
        if not self.results:
            return "No forbidden result came out, and no cell was suppressed to hide one."
        proof = "proved to be the fewest" if self.proved else f"at least {format_number(self.least)} are needed"
        results, cells = format_count(self.results, "forbidden result"), format_count(self.cells, "suppressed cell")
        summary = f"{results} hidden by {cells} ({proof}, in whole classes)"
        if self.rules is None:
            return f"{summary}."
        other_rules = f"of {format_count(self.rules, 'other rule')}, {self.lost} lost"
        return f"{summary}; {other_rules}; {format_count(self.ghosts or 0, 'ghost rule')}."


_LAST = "_last_parts"


@dataclass(frozen=True, eq=False, kw_only=True)
class Recoding:
    """The base class of all recodings."""

    kind: ClassVar[str]
    hierarchies: tuple[Hierarchy, ...]
    algorithm: str
    proved: bool  # whether the search proved that no solution has a smaller loss
    claim: str = ""  # what else the search proved, as a sentence
    n_evaluated: int = 0  # visited nodes, or the search's equivalent
    n_nodes: int | None = None  # the total number of nodes, if known
    bound: float | None = None  # a lower bound on the loss, if the solution is not proved optimal
    unfinished: str = ""  # says that the time budget ended the search, and how far it got
    hiding: HiddenResults | None = None  # cells suppressed beyond the search, if the policy enforces forbidden results

    @property
    def released(self) -> tuple[Values, ...]:
        """The released values of each column."""
        raise NotImplementedError

    def parts(self, table: FrequencyTable) -> Parts:
        """Return what each row of ``table`` becomes; its codes are leaves of the same hierarchies."""
        raise NotImplementedError

    def _everywhere_alike(self, table: FrequencyTable, of_leaf: Sequence[Ids], suppressed: Codes) -> Parts:
        """Return parts in which a value becomes the same everywhere, cached as they are used several times in a row."""
        last: tuple[FrequencyTable, Parts] | None = vars(self).get(_LAST)
        if last is None or last[0] is not table:
            codes, keys = recoded_leaves(table.codes, of_leaf)
            tuple_of, firsts = tuples = group(packed(codes) if keys is None else keys)
            is_suppressed = among(codes[firsts], suppressed)[tuple_of]
            parts = UniformParts(np.arange(len(codes)), codes, table.counts, is_suppressed, table.codes, of_leaf)
            vars(parts)["tuples"] = tuples
            last = table, parts
            vars(self)[_LAST] = last
        return last[1]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != _LAST}

    @property
    def levels(self) -> dict[str, int | None]:
        """The level of each column; None if its cells are on different levels."""
        return dict.fromkeys(h.column for h in self.hierarchies)

    @property
    def fingerprints(self) -> dict[str, str]:
        """A hash of each hierarchy given by a file or tree; with the levels, it fixes what every value became.

        The leaves of other hierarchies are the data's own values. A hash of them would allow anyone who can guess the
        rest to test whether one rare value occurs, so they are left out; the policy describes them completely.
        """
        return {h.column: h.fingerprint for h in self.hierarchies if h.leaf_order == "given"}


@dataclass(frozen=True, eq=False, kw_only=True)
class FullDomain(Recoding):
    """One level per column, and the released tuples that are suppressed."""

    kind: ClassVar[str] = "full domain"
    node: tuple[int, ...]
    suppressed: Codes  # (tuples, columns): codes at the node's levels

    @cached_property
    def released(self) -> tuple[Values, ...]:
        """The labels at the chosen levels."""
        return tuple(Values.of_level(h, level) for h, level in zip(self.hierarchies, self.node, strict=True))

    def parts(self, table: FrequencyTable) -> Parts:
        """Return one part per row."""
        levels = [h.table[level] for h, level in zip(self.hierarchies, self.node, strict=True)]
        return self._everywhere_alike(table, levels, self.suppressed)

    @property
    def levels(self) -> dict[str, int | None]:
        """The level of each column."""
        return {h.column: h.number(level) for h, level in zip(self.hierarchies, self.node, strict=True)}


@dataclass(frozen=True, eq=False, kw_only=True)
class Cuts(Recoding):
    """A cut per column: each value has one generalization, on any level; some tuples are suppressed."""

    kind: ClassVar[str] = "cuts"
    values: tuple[Values, ...]
    of_leaf: tuple[Ids, ...]  # per column, leaf to released value
    suppressed: Codes  # (tuples, columns): released values

    @property
    def released(self) -> tuple[Values, ...]:
        """The values that the cuts release."""
        return self.values

    def parts(self, table: FrequencyTable) -> Parts:
        """Return one part per row."""
        return self._everywhere_alike(table, self.of_leaf, self.suppressed)


@dataclass(frozen=True, eq=False, kw_only=True)
class Cells(Recoding):
    """A recoding of single records: what each row of the searched table becomes, part by part."""

    kind: ClassVar[str] = "cells"
    values: tuple[Values, ...]
    became: Parts

    @property
    def released(self) -> tuple[Values, ...]:
        """The values that the cells of each column may have."""
        return self.values

    def parts(self, table: FrequencyTable) -> Parts:
        """Return the parts that the search produced; ``table`` must be the one that was searched."""
        row = self.became.row
        # The summing kernel does not check that every row occurs.
        fits = len(row) > 0 and int(row.min()) >= 0 and int(row.max()) < len(table.counts)
        if not fits or not np.array_equal(sum_by_class(self.became.counts, row, len(table.counts)), table.counts):
            raise OtherTableError(
                "the recoding was made for another table",
                "apply it to the table that was searched; shoal.release.replay recodes new rows",
                option="shoal apply",
            )
        return self.became
