"""One GROUP BY: the records that no feature tells apart, with their number, persons, sum and largest contributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
from ibis.expr import types as ir
from numpy.typing import NDArray

from shoal.engines.grouping import Groupable
from shoal.errors import CannotTellError
from shoal.output.asked import Feature, Key
from shoal.table.frequency import Counts, Floats

MOST = 50_000  # groups beyond which programs over them would take too long
MOST_PARTS = 5_000_000  # pairs of group and person that are held in memory


@dataclass(frozen=True, eq=False)
class PersonParts:
    """Every person's part in every group, where persons are in several groups."""

    atom: NDArray[np.int64]
    person: NDArray[np.int64]
    size: Floats  # of the contribution, without its sign
    records: Floats


@dataclass(frozen=True, eq=False)
class AtomTable:
    """Groups of records that the features do not tell apart."""

    features: list[Feature]
    keys: list[Key]  # (atoms)  a label per feature
    records: Counts
    persons: Counts  # in each atom
    sums: Floats
    sizes: Floats  # sums of contributions without their signs
    largest: Floats  # (atoms, n)  the largest contributions without their signs, descending
    most: Floats  # (atoms, n)  the largest numbers of records of one person, descending
    negative: bool  # whether some value is below zero
    parts: PersonParts | None = None  # where persons are in several atoms

    def column(self, feature: Feature) -> list[str | None]:
        """Return the labels of one feature."""
        j = self.features.index(feature)
        return [key[j] for key in self.keys]

    def with_empty(self, keys: Sequence[Key]) -> AtomTable:
        """Return the same with groups that have no records."""
        more = len(keys)
        zero = np.zeros(more, np.int64)
        return AtomTable(
            self.features,
            [*self.keys, *keys],
            np.concatenate([self.records, zero]),
            np.concatenate([self.persons, zero]),
            np.concatenate([self.sums, zero]),
            np.concatenate([self.sizes, zero]),
            np.concatenate([self.largest, np.zeros((more, self.largest.shape[1]))]),
            np.concatenate([self.most, np.zeros((more, self.most.shape[1]))]),
            self.negative,
            self.parts,
        )

    @cached_property
    def _part_order(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        assert self.parts is not None
        order = np.argsort(self.parts.atom, kind="stable")
        return order, np.searchsorted(self.parts.atom[order], np.arange(len(self.keys) + 1))

    def contributions(self, atoms: NDArray[np.int64], *, records: bool = False) -> tuple[int, Floats, float]:
        """Return how many persons some atoms have, the largest contributions to their sum or count, and all of it."""
        largest, sizes = (self.most, self.records) if records else (self.largest, self.sizes)
        n = largest.shape[1]
        if self.parts is None:
            top = np.sort(largest[atoms].ravel())[::-1][:n]
            return int(self.persons[atoms].sum()), top, float(sizes[atoms].sum())
        order, starts = self._part_order
        rows = np.concatenate([order[starts[i] : starts[i + 1]] for i in atoms] or [np.zeros(0, np.int64)])
        persons, of = np.unique(self.parts.person[rows], return_inverse=True)
        each = (self.parts.records if records else self.parts.size)[rows]
        by_person = np.bincount(of, each, minlength=len(persons)) if len(rows) else np.zeros(0)
        top = np.zeros(n)
        found = np.sort(by_person)[::-1][:n]
        top[: len(found)] = found
        return len(persons), top, float(by_person.sum())


def atoms_of(
    rows: Groupable, features: Sequence[Feature], value: str | None, entity: str | None, n_largest: int
) -> AtomTable:
    """Group the rows by the features where they are; only the groups are fetched."""
    named = {f"f{i}": feature.expression(rows) for i, feature in enumerate(features)}
    number = rows.number(value).cast("float64") if value is not None else ibis.literal(0, "int64")
    person = {} if entity is None else {"person": rows.table[entity].cast("string")}
    table = rows.table.select(v=number, **named, **person)
    keys = list(named)
    if entity is None:
        parts = table.mutate(n=ibis.literal(1, "int64"))
    else:
        parts = table.group_by([*keys, "person"]).agg(n=table.count(), v=table.v.sum())
    ranked = parts.mutate(size=parts.v.abs().fill_null(0), least=parts.v)
    tops: dict[str, Any] = {}
    for name, by, needed in (("x", "size", value is not None), ("r", "n", entity is not None)):
        if needed:
            over = ibis.window(group_by=keys or None, order_by=ibis.desc(ranked[by]))
            ranked = ranked.mutate(**{f"rank_{name}": ibis.row_number().over(over)})
            for i in range(n_largest):
                tops[f"{name}{i}"] = ibis.ifelse(ranked[f"rank_{name}"] == i, ranked[by], 0).max()
    figures = {
        "records": ranked.n.sum(),
        "persons": ranked.count(),
        "total": ranked.v.sum(),
        "sizes": ranked["size"].sum(),
        "least": ranked.least.min(),
    }
    found = rows.fetch(by_keys(ranked, keys, figures | tops))
    if len(found) and not keys and not int(found["records"][0].as_py() or 0):
        found = found.slice(0, 0)  # a total over no rows
    if len(found) > MOST:
        raise CannotTellError(
            f"this table and those released before have {len(found)} groups together, too many to judge",
            "group by fewer columns, or use bands",
        )
    labels = [found[key].cast(pa.string()).to_pylist() for key in keys]
    nothing = np.zeros((len(found), n_largest))

    def top(name: str) -> Floats:
        names = [f"{name}{i}" for i in range(n_largest)]
        return np.column_stack([_floats(found[each]) for each in names]) if names[0] in tops else nothing

    atoms = AtomTable(
        list(features),
        list(zip(*labels, strict=True)) if keys else [()] * len(found),
        _whole(found["records"]),
        _whole(found["persons"]),
        _floats(found["total"]),
        _floats(found["sizes"]),
        top("x"),
        top("r"),
        bool(value is not None and (_floats(found["least"]) < 0).any()),
    )
    if entity is None or len(found) == 0 or _apart(rows, table, atoms):
        return atoms
    return _with_parts(rows, parts, atoms, keys)


def by_keys(table: ir.Table, keys: Sequence[str], figures: Mapping[str, Any]) -> ir.Table:
    """Return figures of each group, or of the whole table if there are no keys."""
    return table.group_by(keys).agg(**figures) if keys else table.agg(**figures)


def _apart(rows: Groupable, table: ir.Table, atoms: AtomTable) -> bool:
    """Return whether every person is in one atom only."""
    distinct = table.select("person").distinct()
    n = rows.fetch(distinct.agg(n=distinct.count()))["n"][0].as_py()
    return int(n) == int(atoms.persons.sum())


def _with_parts(rows: Groupable, parts: ir.Table, atoms: AtomTable, keys: Sequence[str]) -> AtomTable:
    if int(atoms.persons.sum()) > MOST_PARTS:
        raise CannotTellError(
            "too many persons have records in several groups to follow them",
            "leave out the entity if each record is a person, or group by fewer columns",
            option="--entity",
        )
    found = rows.fetch(parts.select(*keys, "person", "v", "n"))
    labels = list(zip(*(found[key].cast(pa.string()).to_pylist() for key in keys), strict=True))
    place = {key: i for i, key in enumerate(atoms.keys)}
    person = found["person"].combine_chunks().dictionary_encode().indices.fill_null(-1)
    return AtomTable(
        **{
            **{name: getattr(atoms, name) for name in AtomTable.__dataclass_fields__},
            "parts": PersonParts(
                np.array([place[key] for key in labels] if keys else np.zeros(len(found)), np.int64),
                np.asarray(person).astype(np.int64),
                np.abs(_floats(found["v"])),
                _floats(found["n"]),
            ),
        }
    )


def _whole(column: pa.ChunkedArray) -> Counts:
    return np.array([int(value or 0) for value in column.to_pylist()], np.int64)


def _floats(column: pa.ChunkedArray) -> Floats:
    return np.array([float(value or 0) for value in column.to_pylist()], np.float64)
