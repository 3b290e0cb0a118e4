"""Determine from the original which people are behind the released records if their identifier was removed.

A released record was made from one original record, with which it is consistent, and no two from the same one. If as
many originals match a released tuple as it has records, these are its originals, and the people of the tuple are known;
the remaining originals then match fewer tuples, and so on. If records stay undecided, their class has at least as many
people as needed to fill it and at most as many as match: every possible assignment lies in between.
Needs  the original, with the column that identifies people; cells that cover values (a mean covers none).
Costs  as much as ``consistency``, plus one pass over the consistent pairs per round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from shoal.compiled.grouping import group, sum_by_class
from shoal.engines.base import Engine, Groups, Rows
from shoal.engines.local import LocalEngine
from shoal.engines.sql import unused
from shoal.errors import ShoalError
from shoal.original.comparison import LARGEST, consistent_pairs, read_columns
from shoal.policy import Policy
from shoal.tables.centres import CENTRES
from shoal.tables.frequency import ClassOf, Codes, Counts, FrequencyTable, RowNumbers, packed
from shoal.text.figures import quoted_names

ROUNDS = 1000  # after which undecided records stay undecided


class PersonBounds(NamedTuple):
    """Bounds on the number of people in each class of a release."""

    tuples: Codes  # (classes, columns)  codes as ``recounted`` gives them
    fewest: Counts  # (classes)
    most: Counts  # (classes)


@dataclass(frozen=True, eq=False)
class Owners:
    """The people behind the classes of a release, as far as the original determines them."""

    rows: Rows | Groups | None = None  # the released rows with a person for each, if every class is settled
    between: PersonBounds | None = None  # otherwise bounds on the numbers of people
    missing: str = ""  # why the result is incomplete


def owners_of(release: LocalEngine, original: Engine, policy: Policy) -> Owners:
    """Find the people of the ``original`` behind the released rows, each of which may represent several records."""
    entity = policy.release.entity
    if absent := [name for name in policy.columns if name not in original.columns]:
        return Owners(missing=f"needs {quoted_names(absent)} in the original, which identifies people by {entity!r}")
    if centres := [name for name in policy.quasi if policy.columns[name].cells in CENTRES]:
        return Owners(
            missing=f"cells of {quoted_names(centres)} show means or similar values, which match no record of the "
            "original"
        )
    try:
        table = original.count(policy.of_all_levels(), apart=True).table
        pairs = _GroupCells.of(release, table, policy)
    except ShoalError as error:
        return Owners(missing=f"the original does not identify people: {error.message}")
    return pairs if isinstance(pairs, Owners) else pairs.settled().as_owners(release, entity or "person")


@dataclass(eq=False)
class _GroupCells:
    """Which original records may have become which released ones.

    Original records that nothing released distinguishes form one *group*; released ones with equal quasi and sensitive
    values form one *cell*. ``left`` and ``needed`` shrink as groups are settled.
    """

    table: FrequencyTable  # of the original: each row has one person
    tuples: Codes  # (classes, columns)  of the release
    class_of: RowNumbers  # (cells)
    cell_of_row: RowNumbers  # (released rows)
    needed: Counts  # (cells)  records that are not settled yet
    group_of: RowNumbers  # (rows of the table)
    left: Counts  # (groups)  originals that are not settled yet
    group: RowNumbers  # (pairs)
    cell: RowNumbers  # (pairs)
    owner: RowNumbers  # (groups)  the cell that all of the group are in, or -1
    contradicted: bool = False  # the release was not made from the original

    @classmethod
    def of(cls, release: LocalEngine, table: FrequencyTable, policy: Policy) -> _GroupCells | Owners:
        columns = read_columns(table.hierarchies, [release.coded(name) for name in policy.quasi], policy)
        for column in columns:
            if column.n_unknown:
                cells = f"{column.n_unknown} released cells of {column.name!r}"
                return Owners(missing=f"{cells} match no value of the original")
        texts = np.column_stack([column.texts for column in columns])
        released, firsts = group(packed(texts))
        order = np.lexsort(texts[firsts].T[::-1])
        released, tuples = order.argsort()[released], texts[firsts[order]]
        kinds = np.column_stack([column.kind_of[table.codes[:, j]] for j, column in enumerate(columns)])
        kind_of, firsts = group(packed(kinds))
        secrets, released_secrets = _secrets(release, table, policy)
        n_secrets = int(max(secrets.max(initial=0), released_secrets.max(initial=0))) + 1
        groups, group_of = np.unique(kind_of * n_secrets + secrets, return_inverse=True)
        cells, cell_of_row = np.unique(released * n_secrets + released_secrets, return_inverse=True)
        edges = consistent_pairs(kinds[firsts], tuples, columns)
        degree = np.diff(edges.indptr)[groups // n_secrets]
        if degree.sum() > LARGEST:
            return Owners(missing="too many original records match too many released ones to compare")
        of_group = np.repeat(np.arange(len(groups)), degree)
        entry = np.arange(len(of_group)) - np.repeat(np.cumsum(degree) - degree, degree)
        fits = edges.indices[edges.indptr[:-1][groups // n_secrets][of_group] + entry]
        wanted = fits.astype(np.int64) * n_secrets + (groups % n_secrets)[of_group]
        position = np.minimum(np.searchsorted(cells, wanted), len(cells) - 1)
        consistent = cells[position] == wanted
        weights = np.ones(len(cell_of_row), np.int64) if release.weights is None else release.weights
        return cls(
            table,
            tuples,
            cells // n_secrets,
            cell_of_row,
            sum_by_class(weights, cell_of_row, len(cells)),
            group_of,
            sum_by_class(table.counts, group_of, len(groups)),
            of_group[consistent],
            position[consistent],
            np.full(len(groups), -1, np.int64),
        )

    def settled(self) -> _GroupCells:
        """Assign records that have no alternative, until there are none."""
        for _ in range(ROUNDS):
            open_ = (self.left[self.group] > 0) & (self.needed[self.cell] > 0)
            self.group, self.cell = self.group[open_], self.cell[open_]
            fitting = _sums(self.left[self.group], self.cell, len(self.needed))
            if (fitting < self.needed).any():
                self.contradicted = True
                return self
            if not len(self.group) or not (self._filled(fitting) or self._forced()) or self.contradicted:
                return self
        return self

    def _filled(self, fitting: Counts) -> bool:
        """Return cells with as many records as matching originals: all of these are in them."""
        full = (self.needed == fitting)[self.cell]
        if full.any():
            self._settle(self.group[full], self.cell[full])
        return bool(full.any())

    def _forced(self) -> bool:
        """Return groups with a single possible cell in components with equally many groups and cells."""
        n_groups, n = len(self.left), len(self.left) + len(self.needed)
        graph = coo_array((np.ones(len(self.group), np.int8), (self.group, n_groups + self.cell)), shape=(n, n))
        _, part = connected_components(graph, directed=False)
        spare = _sums(self.left, part[:n_groups], n) - _sums(self.needed, part[n_groups:], n)
        choices = np.bincount(self.group, minlength=n_groups)
        forced = (choices[self.group] == 1) & (spare[part[self.group]] == 0)
        if forced.any():
            self._settle(self.group[forced], self.cell[forced])
        return bool(forced.any())

    def _settle(self, groups: RowNumbers, cells: RowNumbers) -> None:
        if len(np.unique(groups)) < len(groups):  # a whole group cannot be in two cells
            self.contradicted = True
            return
        self.owner[groups] = cells
        self.needed -= _sums(self.left[groups], cells, len(self.needed))
        self.left[groups] = 0
        self.contradicted |= bool((self.needed < 0).any())

    def as_owners(self, release: LocalEngine, entity: str) -> Owners:
        """Return the people of each row if all are assigned, otherwise bounds on the number of people per class."""
        if self.contradicted:
            return Owners(missing="the release has records that match no record of the original")
        if not self.needed.any():
            return Owners(self._rows(release, entity))
        n_open = int(self.needed.sum())
        missing = f"the original does not determine whose {n_open} of the {release.n_records} records are"
        return Owners(None, self._between(), missing)

    @property
    def _person(self) -> RowNumbers:
        """Return the person of each row of the original table."""
        if self.table.entities is None:
            raise TypeError("people were not counted")
        return self.table.entities.values.astype(np.int64)

    def _rows(self, release: LocalEngine, entity: str) -> Rows | Groups:
        """Assign people to rows; rows of the same cell are interchangeable for every requirement."""
        cell = self.owner[self.group_of]
        inside = np.flatnonzero(cell >= 0)
        inside = inside[np.argsort(cell[inside], kind="stable")]
        person, n = self._person[inside], self.table.counts[inside]
        if release.weights is None:
            persons = np.empty(release.n_records, np.int32)
            persons[np.argsort(self.cell_of_row, kind="stable")] = np.repeat(person, n)
            return Rows(release.table, persons)
        names = release.columns
        weight, person_name = unused("n", names), unused(entity, names)
        row = np.empty(len(self.needed), np.int64)
        row[self.cell_of_row] = np.arange(len(self.cell_of_row))
        table = release.table.take(pa.array(row[cell[inside]]))
        return Groups(
            table.append_column(weight, pa.array(n)).append_column(person_name, pa.array(person)), weight, person_name
        )

    def _between(self) -> PersonBounds | None:
        """Return the smallest and largest number of people in each class; None if that takes too long to count."""
        n_classes, person = len(self.tuples), self._person
        n_persons = int(person.max()) + 1
        settled = np.flatnonzero(self.owner[self.group_of] >= 0)
        certain = np.unique(self.class_of[self.owner[self.group_of[settled]]] * n_persons + person[settled])
        members = np.bincount(self.group_of, minlength=len(self.left))
        if members[self.group].sum() > LARGEST:
            return None
        order = np.argsort(self.group_of, kind="stable")
        starts = np.cumsum(members) - members
        pair = np.repeat(np.arange(len(self.group)), members[self.group])
        entry = np.arange(len(pair)) - np.repeat(
            np.cumsum(members[self.group]) - members[self.group], members[self.group]
        )
        row = order[starts[self.group[pair]] + entry]
        keys, of_key = np.unique(self.class_of[self.cell[pair]] * n_persons + person[row], return_inverse=True)
        room = _sums(self.table.counts[row], of_key, len(keys))  # records of a person that fit a class
        class_of_key = keys // n_persons
        certain_key = np.isin(keys, certain)
        sure = np.bincount(certain // n_persons, minlength=n_classes)
        open_ = _sums(self.needed, self.class_of, n_classes)
        rest = np.maximum(open_ - _sums(room[certain_key], class_of_key[certain_key], n_classes), 0)
        # The people with the most fitting records fill a class with the fewest persons.
        undecided = np.flatnonzero(~certain_key)
        undecided = undecided[np.lexsort((-room[undecided], class_of_key[undecided]))]
        before = np.cumsum(room[undecided]) - room[undecided]
        first = np.searchsorted(
            class_of_key[undecided], class_of_key[undecided]
        )  # the first entry of the class of each entry
        needed = before - before[first] < rest[class_of_key[undecided]]
        fewest = sure + np.bincount(class_of_key[undecided][needed], minlength=n_classes)
        at_most = sure + np.minimum(open_, np.bincount(class_of_key[undecided], minlength=n_classes))
        return PersonBounds(self.tuples, fewest.astype(np.int64), at_most.astype(np.int64))


def _secrets(release: LocalEngine, table: FrequencyTable, policy: Policy) -> tuple[ClassOf, ClassOf]:
    """Return a number for the sensitive values of each original row and of each released row."""
    n = table.n_classes
    columns = [np.zeros((n + release.table.num_rows, 1), np.int32)]
    for name in policy.sensitive:
        histogram, coded = table.sensitive[name], release.coded(name)
        texts = () if histogram.domain is None else histogram.domain.texts
        number_of = {text: i for i, text in enumerate(texts)}
        numbers = np.array([number_of.get(text, len(texts)) for text in (*coded.texts, None)], np.int32)
        columns.append(np.concatenate([histogram.values, numbers[coded.codes]])[:, None])
    number, _ = group(packed(np.hstack(columns)))
    return number[:n], number[n:]


def _sums(values: Counts, groups: RowNumbers, n: int) -> Counts:
    return np.bincount(groups, values, n).astype(np.int64)  # exact below 2^53
