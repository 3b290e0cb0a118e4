"""The groups that records might be in for all an intruder knows, and groups that have everybody.

An intruder knows which values each column has, but not which of them occur together: a group without records is as
possible as one with records, unless a published figure excludes it. Columns that are nested in each other, such as
regions and towns, are an exception: who knows the one knows the other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.errors import CannotTellError
from shoal.results.output.atoms import MAX_GROUPS, AtomTable
from shoal.results.output.layout import CellKey, group_numbers, inside
from shoal.results.output.request import TableRequest


def with_possible(atoms: AtomTable, tables: Sequence[TableRequest]) -> AtomTable:
    """Add an atom without records for every combination of values that might occur."""
    if not len(atoms.codes):
        return atoms
    kinds = [_kinds(atoms, columns) for columns in _nested(tables)]
    n = int(np.prod([len(first) for _, first, _ in kinds], dtype=float))
    if n > MAX_GROUPS:
        raise CannotTellError(
            f"this table and those released before tell {n} possible groups apart, too many to judge",
            "group by fewer columns, or use bands",
        )
    sizes = [len(first) for _, first, _ in kinds]
    occupied = np.zeros(len(atoms.codes), np.int64)
    for (kind, _, _), size in zip(kinds, sizes, strict=True):
        occupied = occupied * size + kind
    occurs = np.zeros(n, np.bool_)
    occurs[occupied] = True
    absent = np.flatnonzero(~occurs)
    codes = np.zeros((len(absent), atoms.codes.shape[1]), np.int64)
    rest = absent
    for (_, first, features), size in zip(reversed(kinds), reversed(sizes), strict=True):
        codes[:, features] = atoms.codes[first[rest % size]][:, features]
        rest = rest // size
    return atoms.with_empty(codes)


def _nested(tables: Sequence[TableRequest]) -> list[set[str]]:
    """Return the columns in sets: those that some table nests in each other belong together."""
    column_sets: list[set[str]] = []
    for table in tables:
        for columns in (*table.dimensions, *((feature.source,) for feature in table.insides)):
            joined = set(columns).union(*(other for other in column_sets if other & set(columns)))
            column_sets = [other for other in column_sets if not other & joined] + [joined]
    return column_sets


def _kinds(atoms: AtomTable, columns: Collection[str]) -> tuple[NDArray[np.int64], NDArray[np.int64], list[int]]:
    """Return the kind of each atom in some columns, an atom of each kind, and the features that read the columns."""
    features = [j for j, feature in enumerate(atoms.features) if feature.source in columns]
    kind = group_numbers(atoms.codes[:, features])
    return kind, np.unique(kind, return_index=True)[1], features


@dataclass(frozen=True, eq=False)
class FullGroup:
    """A group that has everybody of a larger one; the others of the larger one are no records."""

    key: CellKey
    members: NDArray[np.int64]
    empty_atoms: NDArray[np.int64]  # the atoms without records
    whole: CellKey | None  # the larger group, if it is a cell of the same table


def full_groups(request: TableRequest, atoms: AtomTable, sensitive: Collection[str]) -> Iterator[FullGroup]:
    """Yield the groups of a table that have everybody of a group which leaves out a sensitive column.

    What is left out is what a dimension adds to its first columns, or a condition together with its column.
    """
    nested = _nested([request])
    columns = [atoms.features.index(request.feature(name)) for name in request.names]
    about = inside(request, atoms)
    for depth in request.depths:
        kept_columns = request.kept_columns(depth)
        group = _numbered(atoms, columns, kept_columns)
        for fewer, dropped in _left_out(request, kept_columns, nested, sensitive):
            larger = _numbered(atoms, columns, fewer)
            wide = inside(request, atoms, dropped)
            n = int(max(group.max(initial=-1), larger.max(initial=-1))) + 1
            counts = np.bincount(group[about], atoms.records[about], minlength=n)
            totals = np.bincount(larger[wide], atoms.records[wide], minlength=n)
            numbers, first = np.unique(group[about], return_index=True)
            first = np.flatnonzero(about)[first]
            full = (counts[numbers] > 0) & (counts[numbers] == totals[larger[first]])
            for number, i in zip(numbers[full], first[full], strict=True):
                members = about & (group == number)
                empty_atoms = np.flatnonzero(wide & (larger == larger[i]) & ~members)
                if len(empty_atoms):
                    whole = None if dropped else _key(atoms, columns, fewer, int(i))
                    yield FullGroup(
                        _key(atoms, columns, kept_columns, int(i)), np.flatnonzero(members), empty_atoms, whole
                    )


def _left_out(
    request: TableRequest, kept_columns: Sequence[bool], nested: Sequence[set[str]], sensitive: Collection[str]
) -> Iterator[tuple[list[bool], set[str]]]:
    """Yield what larger groups are grouped by, and the columns whose conditions they leave out."""
    start = 0
    for dimension in request.dimensions:
        stop = start + len(dimension)
        for i in range(start, stop):
            if kept_columns[i] and set(request.names[i:stop]) & set(sensitive):
                yield [keep and not i <= j < stop for j, keep in enumerate(kept_columns)], set()
        start = stop
    for columns in nested:
        if columns & set(request.conditional) & set(sensitive):
            yield [k and name not in columns for k, name in zip(kept_columns, request.names, strict=True)], columns


def _numbered(atoms: AtomTable, columns: Sequence[int], kept_columns: Sequence[bool]) -> NDArray[np.int64]:
    return group_numbers(atoms.codes[:, [j for j, keep in zip(columns, kept_columns, strict=True) if keep]])


def _key(atoms: AtomTable, columns: Sequence[int], kept_columns: Sequence[bool], i: int) -> CellKey:
    labels = (
        atoms.labels[j][atoms.codes[i, j]] if keep else None for j, keep in zip(columns, kept_columns, strict=True)
    )
    return tuple(labels), tuple(kept_columns)
