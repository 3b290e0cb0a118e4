"""What new rows are recoded to under a saved recoding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.compiled.grouping import group
from shoal.engines.base import Groups
from shoal.engines.local import LocalEngine
from shoal.engines.sql import unused
from shoal.errors import ShoalError
from shoal.hierarchies import builders
from shoal.hierarchies.hierarchy import Label
from shoal.judge import failing_classes
from shoal.notation import codec
from shoal.policy import Policy
from shoal.tables.frequency import FrequencyTable, among, packed


@dataclass(frozen=True, eq=False)
class ReplayMap:
    """What the values of a quasi-identifier are replaced by: a label for every row, by its number."""

    codes: NDArray[np.int64]
    labels: tuple[Label, ...]
    is_unchanged: bool  # whether all known values stay unchanged

    @classmethod
    def of(cls, class_of: NDArray[Any], labels: Sequence[Label], is_unchanged: bool) -> ReplayMap:
        """Build it from the class of each row and the label of each class."""
        code_of = {label: i for i, label in enumerate(dict.fromkeys(labels))}
        return cls(np.array([code_of[label] for label in labels], np.int64)[class_of], tuple(code_of), is_unchanged)

    @property
    def column(self) -> pa.Array:
        """The labels of the rows."""
        return pa.array(self.labels, pa.string()).take(pa.array(self.codes))


IsCovered = NDArray[np.bool_]  # whether the recoding covers a row


def by_value(saved: Mapping[str, Any], rows: LocalEngine, policy: Policy) -> tuple[list[ReplayMap], IsCovered]:
    """Recode value by value; with levels, values that did not occur before can be recoded too."""
    columns = []
    is_covered = np.ones(rows.table.num_rows, np.bool_)
    for name in policy.quasi:
        coded = rows.coded(name)
        replacement: dict[Label, Label] = dict(saved["columns"][name]["values"])
        texts = [*coded.texts, None]
        strange = [text for text in texts if text not in replacement and (text is not None or (coded.codes < 0).any())]
        if strange and saved["columns"][name]["level"] is not None:
            replacement |= _grown(name, saved["columns"][name], strange, policy)
        has_replacement = np.array([text in replacement for text in texts], np.bool_)
        is_covered &= has_replacement[coded.codes]  # a null, -1, takes the last
        is_unchanged = all(replacement.get(text, text) == text for text in texts)
        columns.append(ReplayMap.of(coded.codes, [replacement.get(text) for text in texts], is_unchanged))
    return columns, is_covered


def _grown(name: str, saved: Mapping[str, Any], strange: Sequence[Label], policy: Policy) -> dict[Label, Label]:
    """Recode new values at the level of a column if its hierarchy can be extended without changing old labels."""
    column = policy.columns[name]
    before: dict[Label, Label] = dict(saved["values"])
    texts = sorted({text for text in (*before, *strange) if text is not None})
    nulls = None in before or None in strange
    try:
        hierarchy = builders.build(
            name, column.hierarchy, texts, nulls=nulls, uncovered=column.uncovered, folder=policy.folder
        )
        leaves = [*before, *strange]
        level = saved["level"]
        labels = [hierarchy.labels[level][code] for code in hierarchy.table[level][hierarchy.encode(leaves)]]
    except (ShoalError, IndexError, OverflowError):  # a level that the hierarchy has not
        return {}
    if labels[: len(before)] != list(before.values()):
        return {}
    return dict(zip(strange, labels[len(before) :], strict=True))


def by_tuple(saved: Mapping[str, Any], rows: LocalEngine, policy: Policy) -> tuple[list[ReplayMap], IsCovered]:
    """Recode tuple by tuple: cells were recoded individually, so only tuples that occurred are known."""
    replacement = {tuple(leaves): labels for leaves, labels in saved["tuples"]}
    coded = [rows.coded(name) for name in policy.quasi]
    codes = np.column_stack([column.codes + 1 for column in coded]).astype(np.int32)
    class_of, firsts = group(packed(codes))
    texts = [(None, *column.texts) for column in coded]
    tuples = [
        tuple(column_texts[c] for column_texts, c in zip(texts, row, strict=True)) for row in codes[firsts].tolist()
    ]
    is_covered = np.array([tuple_ in replacement for tuple_ in tuples], np.bool_)
    columns = []
    for j in range(len(coded)):
        labels = [replacement[tuple_][j] if tuple_ in replacement else None for tuple_ in tuples]
        is_unchanged = all(
            label == tuple_[j] for label, tuple_ in zip(labels, tuples, strict=True) if tuple_ in replacement
        )
        columns.append(ReplayMap.of(class_of, labels, is_unchanged))
    return columns, is_covered[class_of]


def is_among(maps: Sequence[ReplayMap], tuples: Sequence[Sequence[Label]]) -> IsCovered:
    """Return the rows whose labels are one of the ``tuples``."""
    places = [{label: i for i, label in enumerate(column.labels)} for column in maps]
    wanted = [[code_of.get(label, -1) for code_of, label in zip(places, tuple_, strict=True)] for tuple_ in tuples]
    wanted = [codes for codes in wanted if -1 not in codes]
    codes = np.column_stack([column.codes for column in maps]).astype(np.int32)
    return among(codes, np.array(wanted, np.int32).reshape(-1, len(maps)))


def _recoded(table: pa.Table, names: Sequence[str], policy: Policy, maps: Sequence[ReplayMap]) -> pa.Table:
    """Return the recoded columns; an unchanged column keeps its type."""
    map_of = dict(zip(policy.quasi, maps, strict=True))
    return pa.table(
        {
            name: map_of[name].column if name in map_of and not map_of[name].is_unchanged else table[name]
            for name in names
        }
    )


def expected(rows: LocalEngine, policy: Policy, maps: Sequence[ReplayMap], left: NDArray[np.int64]) -> Groups:
    """Return the classes of the rows that are ``left``, row by row."""
    names = [*policy.quasi, *policy.sensitive]
    table, persons = _recoded(rows.table, names, policy, maps), rows.persons(policy)
    weight, person = unused("n", names), unused("person", names)
    table = table.append_column(
        weight, pa.array(np.ones(len(table), np.int64) if rows.weights is None else rows.weights)
    )
    if persons is not None:
        table = table.append_column(person, pa.array(persons))
    return Groups(table.take(pa.array(left)), weight, None if persons is None else person)


def failing(rows: pa.Table, table: FrequencyTable, policy: Policy) -> NDArray[np.bool_]:
    """Return the rows to hold back so that the others satisfy the policy, by the rule of ``failing_classes``."""
    passing = ~failing_classes(table, policy)
    if passing.all():
        return np.zeros(len(rows), np.bool_)
    coded = [codec.encode_texts(name, rows[name]) for name in policy.quasi]
    codes = np.column_stack([np.where(column.codes < 0, len(column.texts), column.codes) for column in coded]).astype(
        np.int32
    )
    keys = packed(np.concatenate([table.codes, codes]))
    classes, records = keys[: table.n_classes], keys[table.n_classes :]
    order = np.argsort(classes)
    return np.asarray(~passing[order[np.searchsorted(classes[order], records)]])
