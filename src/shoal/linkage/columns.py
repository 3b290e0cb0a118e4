"""Two files to link: what the intruder knows, what was released, and their common columns.

The files may name a column differently and may contain different people. The true links are used for evaluation only:
``truth`` never takes part in the linkage, only in counting what it found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.engines import frames
from shoal.engines.cells import read_table
from shoal.engines.data import Data
from shoal.engines.formats import table_files
from shoal.errors import DataError, no_column
from shoal.hierarchies import builders
from shoal.hierarchies.builders import SafeHarbor
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.hierarchies.intervals import Intervals
from shoal.hierarchies.reader import Reader
from shoal.hierarchies.spans import Span, spans
from shoal.notation import codec
from shoal.notation.codec import Coded
from shoal.notation.forms import DecimalMark, released_mark
from shoal.policy import Policy, PolicySource, policy_of
from shoal.tables.frequency import Codes, RowNumbers
from shoal.text.figures import quoted_names

On = Sequence[str] | Mapping[str, str] | None
LinkedFile: TypeAlias = Data | NDArray[Any]  # an array of rows and columns is a table, too
Truth = Literal["position"] | Sequence[int] | NDArray[np.integer[Any]] | None


@dataclass(frozen=True, eq=False)
class LinkedColumn:
    """A column that both files have."""

    name: str  # in the release
    known: Coded
    released: Coded
    hierarchy: Hierarchy | None  # of the policy, on the values of all files at hand
    known_spans: tuple[tuple[Span, ...], ...] | None  # what each text stands for as numbers; None for a category
    released_spans: tuple[tuple[Span, ...], ...] | None
    original: Coded | None  # the column of the original file, where it was given
    mark: DecimalMark | None = None  # of its numbers, where the policy names one

    @property
    def numeric(self) -> bool:
        """Whether its values are compared as numbers."""
        return self.known_spans is not None

    @cached_property
    def reader(self) -> Reader:
        """What the released texts cover; texts that are not values of the other file do not become leaves."""
        base = {*self.known.texts, *(() if self.original is None else self.original.texts)}
        hierarchies = [] if self.hierarchy is None else [self.hierarchy]
        ignored = set(self.released.texts) - base
        return Reader(self.released.texts, base, hierarchies, ignored=ignored, freely=False, mark=self.mark)

    @property
    def codes(self) -> tuple[Codes, Codes]:
        """The texts of both files' rows by number; a null comes after all texts."""
        known_codes, released = (
            np.where(side.codes < 0, len(side.texts), side.codes) for side in (self.known, self.released)
        )
        return known_codes.astype(np.int32), released.astype(np.int32)


@dataclass(frozen=True, eq=False)
class Files:
    """The file that the intruder knows and the release."""

    n_known: int
    n_released: int
    columns: tuple[LinkedColumn, ...]
    owners: RowNumbers | None  # per known record, the released record of the same person; -1 where there is none

    @property
    def names(self) -> tuple[str, ...]:
        """The compared columns, as the release names them."""
        return tuple(column.name for column in self.columns)

    @property
    def codes(self) -> tuple[Codes, Codes]:
        """(records, columns) of both files: numbers of texts."""
        sides = [column.codes for column in self.columns]
        return np.column_stack([known_codes for known_codes, _ in sides]), np.column_stack(
            [released for _, released in sides]
        )


def side_by_side(
    known_file: LinkedFile,
    release: LinkedFile,
    *,
    on: On = None,
    numeric: Sequence[str] | None = None,
    policy: PolicySource | None = None,
    original: LinkedFile | None = None,
    truth: Truth = None,
    id: str | None = None,
) -> Files:
    """Read both files and pair their columns.

    ``known_file``, ``release`` and ``original`` are paths, frames or arrays of two dimensions, whose columns are named
    "0", "1", … ``on`` lists the columns to compare, or maps names of the known file to names of the release; without
    it all columns are taken that both have. ``numeric`` lists the columns (of the release) whose values are numbers;
    without it those are, whose type in the known file or whose hierarchy says so, if all their texts can be read so.
    """
    policy = None if policy is None else policy_of(policy)
    spellings = {} if policy is None else policy.spellings
    mine, theirs = (read_table(_table(data), spellings) for data in (known_file, release))
    basis = None if original is None else read_table(_table(original), spellings)
    pairs = _pairs(mine, theirs, on, id)
    names = [name for _, name in pairs]
    if unknown := [name for name in numeric or () if name not in names]:
        raise DataError(f"numeric: {quoted_names(unknown)} is not compared", f"compared columns: {quoted_names(names)}")
    columns = []
    for name_known, name in pairs:
        first = None
        if basis is not None and (present := [n for n in (name, name_known) if n in basis.column_names]):
            first = codec.encode_texts(present[0], basis[present[0]])
        by_type = _is_number(mine.schema.field(name_known).type)
        columns.append(
            _column(
                name,
                codec.encode_texts(name_known, mine[name_known]),
                codec.encode_texts(name, theirs[name]),
                first,
                policy,
                by_type,
                None if numeric is None else name in numeric,
            )
        )
    return Files(mine.num_rows, theirs.num_rows, tuple(columns), _owners(mine, theirs, truth, id))


def _table(data: LinkedFile) -> pa.Table:
    if isinstance(data, np.ndarray):
        if data.ndim != 2:
            raise DataError(f"an array with {data.ndim} dimensions is not a table", "pass an array of rows and columns")
        return frames.with_plain_types(pa.table({str(j): pa.array(column.copy()) for j, column in enumerate(data.T)}))
    if isinstance(data, str | Path):
        return table_files.read_table_file(Path(data), header=None).table
    return frames.to_arrow(data)[0]


def _pairs(mine: pa.Table, theirs: pa.Table, on: On, id: str | None) -> list[tuple[str, str]]:
    if on is None:
        pairs = [(name, name) for name in theirs.column_names if name in mine.column_names and name != id]
        if not pairs:
            raise DataError("the two files have no column in common", "map names of the first to names of the second")
        return pairs
    pairs = list(on.items()) if isinstance(on, Mapping) else [(name, name) for name in on]
    if not pairs:
        raise DataError("on: no column to compare")
    for role, table, side in (("known file", mine, 0), ("release", theirs, 1)):
        if absent := [pair[side] for pair in pairs if pair[side] not in table.column_names]:
            raise no_column(f"the {role}", absent, table.column_names, error=DataError)
    if len({name for _, name in pairs}) < len(pairs):
        raise DataError("on: a column of the release is named twice")
    return pairs


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _column(
    name: str,
    known_coded: Coded,
    released: Coded,
    first: Coded | None,
    policy: Policy | None,
    by_type: bool,
    requested: bool | None,
) -> LinkedColumn:
    spec = policy.columns[name].hierarchy if policy is not None and name in policy.columns else None
    hierarchy = None
    numeric = by_type if requested is None else requested
    if spec is not None and policy is not None:
        sides = [known_coded, released] if first is None else [known_coded, released, first]
        texts = sorted({text for side in sides for text in side.texts})
        hierarchy = builders.build(name, spec, texts, nulls=True, uncovered="suppress", folder=policy.folder)
        by_spec = isinstance(spec, Intervals) or (isinstance(spec, SafeHarbor) and spec.safe_harbor == "age")
        numeric = numeric or (by_spec and requested is None)
    mark = None if policy is None else policy.marks.get(name)
    category = LinkedColumn(name, known_coded, released, hierarchy, None, None, first, mark)
    if not numeric:
        return category
    values = {*known_coded.texts, *(() if first is None else first.texts)}
    theirs_mark = None if mark is None else released_mark(released.texts, values, mark)
    read = [
        spans(known_coded.texts, hierarchy, None if mark is None else "."),
        spans(released.texts, hierarchy, theirs_mark),
    ]
    unread = [sum(span is None for span in side) for side in read]
    if not any(unread):
        mine, theirs = (tuple(span for span in side if span is not None) for side in read)
        return LinkedColumn(name, known_coded, released, hierarchy, mine, theirs, first, mark)
    if requested:
        n_texts = len(known_coded.texts), len(released.texts)
        raise DataError(
            f"column {name!r}: {unread[0]} of {n_texts[0]} distinct values in the known file and {unread[1]} of "
            f"{n_texts[1]} in the release are neither numbers nor ranges",
            "remove the column from numeric to compare its values as categories",
        )
    return category


# ── True links ─────────────────────────────────────────────────────────────────────────────────────────────


def _owners(mine: pa.Table, theirs: pa.Table, truth: Truth, id: str | None) -> RowNumbers | None:
    if id is not None:
        if truth is not None:
            raise DataError("truth and id are alternatives", "pass only one of them")
        return _by_id(mine, theirs, id)
    if truth is None:
        return None
    if isinstance(truth, str):
        if truth != "position":
            raise DataError("truth: a text can only be 'position'", "to name a column that identifies people, use id")
        if mine.num_rows != theirs.num_rows:
            raise DataError(
                f"the known file has {mine.num_rows} records, but the release has {theirs.num_rows}: positions do "
                "not match",
                "pass the released row of each known record as truth, or a column of both files as id",
            )
        return np.arange(mine.num_rows)
    row_numbers = np.asarray(truth)
    if row_numbers.shape != (mine.num_rows,) or not np.issubdtype(row_numbers.dtype, np.integer):
        raise DataError(f"truth: must be {mine.num_rows} whole numbers, a released row for each known record")
    owners = row_numbers.astype(np.int64)
    if outside := int(((owners < -1) | (owners >= theirs.num_rows)).sum()):
        raise DataError(
            f"truth: {outside} of {len(owners)} are not rows of the release",
            f"rows are 0 to {theirs.num_rows - 1}; use -1 for a person who is not in the release",
        )
    return owners


def _by_id(mine: pa.Table, theirs: pa.Table, id: str) -> RowNumbers:
    if absent := [role for role, t in (("known file", mine), ("release", theirs)) if id not in t.column_names]:
        raise DataError(f"the {absent[0]} has no column {id!r}")
    known_ids, released = codec.encode_texts(id, mine[id]), codec.encode_texts(id, theirs[id])
    present = released.codes[released.codes >= 0]
    if repeated := int((np.bincount(present) > 1).sum()) if len(present) else 0:
        raise DataError(f"column {id!r}: {repeated} people have more than one record in the release")
    row_of = np.full(len(released.texts) + 1, -1, np.int64)
    row_of[released.codes[released.codes >= 0]] = np.flatnonzero(released.codes >= 0)
    number = {text: i for i, text in enumerate(released.texts)}
    # A null, and an id that the release lacks, belong to nobody: both reach the last entry.
    places = np.array([*(number.get(text, -1) for text in known_ids.texts), -1], np.int64)
    return row_of[places[known_ids.codes]]
