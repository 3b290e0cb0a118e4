"""One GROUP BY: the records that no feature tells apart, with their number, persons, sum and largest contributions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
from ibis.expr import types as ir
from numpy.typing import NDArray

from shoal.engines.grouping import Groupable
from shoal.errors import CannotTellError, DataError
from shoal.results.grouping import figures_of_groups, row_count
from shoal.results.output.request import Feature, Key, Label
from shoal.tables.frequency import Counts, Floats

MAX_GROUPS = 50_000  # groups beyond which programs over them would take too long
MAX_PARTS = 5_000_000  # pairs of group and person that are held in memory


@dataclass(frozen=True, eq=False)
class PersonParts:
    """Every person's part in every group, where persons are in several groups."""

    atom: NDArray[np.int64]
    person: NDArray[np.int64]
    size: Floats  # of the contribution, without its sign
    records: Floats


@dataclass(frozen=True, eq=False)
class AtomTable:
    """Groups of records that the features do not tell apart; some may be possible only, without records."""

    features: list[Feature]
    labels: list[list[Label]]  # per feature
    codes: NDArray[np.int64]  # (atoms, features)  places in the labels
    records: Counts
    persons: Counts  # in each atom
    sums: Floats
    sizes: Floats  # sums of contributions without their signs
    largest: Floats  # (atoms, n)  the largest contributions without their signs, descending
    most_records: Floats  # (atoms, n)  the largest numbers of records of one person, descending
    ends: Floats  # (atoms, 2)  the least and the largest contribution with its sign
    parts: PersonParts | None = None  # where persons are in several atoms

    @property
    def negative(self) -> bool:
        """Whether some contribution is below zero."""
        return bool((self.ends[:, 0] < 0).any())

    @cached_property
    def mean_size(self) -> float:
        """The mean of the contributions of records without their signs."""
        return float(self.sizes.sum() / max(1, self.records.sum()))

    @property
    def keys(self) -> list[Key]:
        """A label per feature, for each atom."""
        columns = [[labels[i] for i in codes] for labels, codes in zip(self.labels, self.codes.T, strict=True)]
        return [*zip(*columns, strict=True)] if columns else [()] * len(self.codes)

    def codes_of(self, feature: Feature) -> NDArray[np.int64]:
        """Return the labels of one feature as places in ``labels``."""
        return self.codes[:, self.features.index(feature)]

    def holds(self, feature: Feature) -> NDArray[np.bool_]:
        """Return where a condition holds."""
        labels = self.labels[self.features.index(feature)]
        return np.isin(self.codes_of(feature), [i for i, label in enumerate(labels) if label == "1"])

    def with_empty(self, codes: NDArray[np.int64]) -> AtomTable:
        """Return the same with groups that have no records."""
        n_empty = len(codes)

        def longer(column: Any) -> Any:
            return np.concatenate([column, np.zeros((n_empty, *column.shape[1:]), column.dtype)])

        columns = ("records", "persons", "sums", "sizes", "largest", "most_records", "ends")
        return replace(
            self,
            codes=np.concatenate([self.codes, codes]),
            **{name: longer(getattr(self, name)) for name in columns},
        )

    @cached_property
    def _part_order(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        assert self.parts is not None
        order = np.argsort(self.parts.atom, kind="stable")
        return order, np.searchsorted(self.parts.atom[order], np.arange(len(self.codes) + 1))

    def contributions(self, atoms: NDArray[np.int64], *, records: bool = False) -> tuple[int, Floats, float]:
        """Return how many persons some atoms have, the largest contributions to their sum or count, and all of it."""
        largest, sizes = (self.most_records, self.records) if records else (self.largest, self.sizes)
        n = largest.shape[1]
        if self.parts is None:
            top = np.sort(largest[atoms].ravel())[::-1][:n]
            return int(self.persons[atoms].sum()), top, float(sizes[atoms].sum())
        order, starts = self._part_order
        rows = np.concatenate([order[starts[i] : starts[i + 1]] for i in atoms] or [np.zeros(0, np.int64)])
        persons, person_of_row = np.unique(self.parts.person[rows], return_inverse=True)
        sizes_of_parts = (self.parts.records if records else self.parts.size)[rows]
        by_person = np.bincount(person_of_row, sizes_of_parts, minlength=len(persons)) if len(rows) else np.zeros(0)
        top = np.zeros(n)
        descending = np.sort(by_person)[::-1][:n]
        top[: len(descending)] = descending
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
    ranked = parts.mutate(size=parts.v.abs().fill_null(0))
    tops: dict[str, Any] = {}
    for name, by, needed in (("x", "size", value is not None), ("r", "n", entity is not None)):
        if needed and (array := rows.backend.largest(ranked[by], n_largest)) is not None:
            tops[name] = array
        elif needed:
            over = ibis.window(group_by=keys or None, order_by=ibis.desc(ranked[by]))
            ranked = ranked.mutate(**{f"rank_{name}": ibis.row_number().over(over)})
            for i in range(n_largest):
                tops[f"{name}{i}"] = ibis.ifelse(ranked[f"rank_{name}"] == i, ranked[by], 0).max()
    figures = {
        "records": ranked.n.sum(),
        "persons": ranked.count(),
        "total": ranked.v.sum(),
        "sizes": ranked["size"].sum(),
        "least": ranked.v.min(),
        "highest": ranked.v.max(),
    }
    grouped = figures_of_groups(rows, ranked, keys, figures | tops)
    if len(grouped) and not keys and not int(grouped["records"][0].as_py() or 0):
        grouped = grouped.slice(0, 0)  # a total over no rows
    if len(grouped) > MAX_GROUPS:
        raise CannotTellError(
            f"this table and those released before have {len(grouped)} groups together, too many to judge",
            "group by fewer columns, or use bands",
        )
    grouped, labels, codes = _coded(grouped, keys, features)
    nothing = np.zeros((len(grouped), n_largest))

    def top(name: str) -> Floats:
        if name in tops:
            arrays = (array or () for array in grouped[name].to_pylist())
            padded = [[*array, *(0.0,) * (n_largest - len(array))] for array in arrays]
            return np.array(padded, np.float64).reshape(nothing.shape)
        names = [f"{name}{i}" for i in range(n_largest)]
        return (
            np.column_stack([_floats(grouped[column_name]) for column_name in names]) if names[0] in tops else nothing
        )

    if value is not None and not np.isfinite(_floats(grouped["sizes"])).all():
        raise DataError(f"column {value!r} has numbers that are infinite or too large to add up", "leave them out")
    ends = np.column_stack([_floats(grouped["least"]), _floats(grouped["highest"])])
    atoms = AtomTable(
        list(features),
        labels,
        codes,
        _whole(grouped["records"]),
        _whole(grouped["persons"]),
        _floats(grouped["total"]),
        _floats(grouped["sizes"]),
        top("x"),
        top("r"),
        ends,
    )
    if entity is None or len(grouped) == 0 or _persons_in_one_atom(rows, table, atoms):
        return atoms
    return _with_parts(rows, parts, atoms, keys)


def _coded(
    grouped: pa.Table, keys: Sequence[str], features: Sequence[Feature]
) -> tuple[pa.Table, list[list[Label]], NDArray[np.int64]]:
    """Return the groups in the order of their labels, the labels of each feature, and each group's places there."""
    labels: list[list[Label]] = []
    codes = np.zeros((len(grouped), len(keys)), np.int64)
    for j, (key, feature) in enumerate(zip(keys, features, strict=True)):
        column = grouped[key].cast(pa.string()).combine_chunks().dictionary_encode(null_encoding="encode")
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        texts = column.dictionary.to_pylist()
        ordered = list(feature.labels) if feature.cuts else sorted(text for text in texts if text is not None)
        labels.append([*(text for text in ordered if text in texts), *([None] if None in texts else [])])
        index_of = {text: i for i, text in enumerate(texts)}
        order = [index_of[text] for text in labels[-1]]
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        codes[:, j] = rank[np.asarray(column.indices)] if len(grouped) else 0
    if not keys:
        return grouped, labels, codes
    order_of_rows = np.lexsort(codes.T[::-1])
    return grouped.take(pa.array(order_of_rows)), labels, codes[order_of_rows]


def _persons_in_one_atom(rows: Groupable, table: ir.Table, atoms: AtomTable) -> bool:
    """Return whether every person is in one atom only."""
    return row_count(rows, table.select("person").distinct()) == int(atoms.persons.sum())


def _with_parts(rows: Groupable, parts: ir.Table, atoms: AtomTable, keys: Sequence[str]) -> AtomTable:
    if int(atoms.persons.sum()) > MAX_PARTS:
        raise CannotTellError(
            "too many persons have records in several groups to follow them",
            "leave out the entity if each record is a person, or group by fewer columns",
            option="--entity",
        )
    fetched = rows.fetch(parts.select(*keys, "person", "v", "n"))
    labels = list(zip(*(fetched[key].cast(pa.string()).to_pylist() for key in keys), strict=True))
    atom_of_key = {key: i for i, key in enumerate(atoms.keys)}
    person = fetched["person"].combine_chunks().dictionary_encode().indices.fill_null(-1)
    person_parts = PersonParts(
        np.array([atom_of_key[key] for key in labels] if keys else np.zeros(len(fetched)), np.int64),
        np.asarray(person).astype(np.int64),
        np.abs(_floats(fetched["v"])),
        _floats(fetched["n"]),
    )
    return replace(atoms, parts=person_parts)


def _whole(column: pa.ChunkedArray) -> Counts:
    return np.array([int(value or 0) for value in column.to_pylist()], np.int64)


def _floats(column: pa.ChunkedArray) -> Floats:
    return np.array([float(value or 0) for value in column.to_pylist()], np.float64)
