"""Recode rows in their engine with a JOIN on their tuples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
from ibis.expr import types as ir
from numpy.typing import NDArray

from shoal.compiled.grouping import group, sum_by_class
from shoal.engines.backends.base import Backend
from shoal.engines.base import Groups
from shoal.engines.frames import with_plain_types
from shoal.engines.ibis_columns import Inside
from shoal.engines.ibis_order import order_keys
from shoal.engines.local import LocalEngine
from shoal.engines.sql import unused
from shoal.hierarchies.hierarchy import TOP
from shoal.policy import Policy
from shoal.recoding import Parts
from shoal.tables.frequency import Counts, packed
from shoal.tables.values import Values


def join_recoded(
    backend: Backend,
    rows: ir.Table,
    keys: Sequence[str],
    groups: Groups,
    part_of: NDArray[np.int64],
    changed: dict[str, pa.Array],
    is_kept: NDArray[np.bool_],
) -> ir.Table:
    """Join if every tuple has a single part: its recoded values are next to it."""
    inside = Inside(rows.columns)
    keys_of_tuples = {inside.key(j): groups.table[name] for j, name in enumerate(keys)}
    distinct = pa.table(keys_of_tuples | {inside.row: part_of}).group_by([*keys_of_tuples, inside.row]).aggregate([])
    part = distinct[inside.row].to_numpy()
    distinct = distinct.filter(pa.array(is_kept[part]))
    part = part[is_kept[part]]
    for name, labels in changed.items():
        distinct = distinct.append_column(inside.label(name), labels.take(pa.array(part)))
    types = {inside.key(j): rows[name].type() for j, name in enumerate(keys)}
    mapping = backend.upload(distinct.drop_columns([inside.row]), types)
    joined = rows.join(mapping, [backend.is_same(rows[k], mapping[inside.key(j)]) for j, k in enumerate(keys)])
    return _relabelled(joined, rows.columns, changed, inside)


def regrouped_and_recoded(
    backend: Backend,
    rows: ir.Table,
    keys: Sequence[str],
    groups: Groups,
    part_of: NDArray[np.int64],
    changed: dict[str, pa.Array],
    is_kept: NDArray[np.bool_],
    names: Sequence[str],
) -> Groups:
    """Count the released rows with all their columns: rows are grouped first, and only distinct ones are joined."""
    weight = unused("n", rows.columns)
    grouped = rows.group_by(list(dict.fromkeys((*keys, *names)))).agg(**{weight: rows.count()})
    joined = join_recoded(backend, grouped, keys, groups, part_of, changed, is_kept)
    return Groups(with_plain_types(backend.fetch(joined.select(*names, weight))), weight)


def join_dealt(
    backend: Backend,
    rows: ir.Table,
    keys: Sequence[str],
    groups: Groups,
    row_of: NDArray[np.int64],
    parts: Parts,
    changed: dict[str, pa.Array],
    is_kept: NDArray[np.bool_],
    policy: Policy,
) -> ir.Table:
    """Split equal tuples among parts by the order of a keyed hash: a second join, on the position in that order."""
    inside = Inside(rows.columns)
    keys_of_tuples = {inside.key(j): groups.table[name] for j, name in enumerate(keys)}
    distinct = pa.table(keys_of_tuples | {inside.row: row_of}).group_by([*keys_of_tuples, inside.row]).aggregate([])
    types = {inside.key(j): rows[name].type() for j, name in enumerate(keys)}
    numbered = backend.upload(distinct, types)
    positioned = rows.join(numbered, [backend.is_same(rows[k], numbered[inside.key(j)]) for j, k in enumerate(keys)])
    positioned = positioned.select(*rows.columns, inside.row)
    order = order_keys(positioned.select(*rows.columns), policy.release.seed, columns_of=positioned)
    at = ibis.row_number().over(group_by=positioned[inside.row], order_by=order)
    positioned = positioned.mutate(**{inside.position: at})

    last = np.cumsum(parts.counts)
    first_of_row = np.concatenate([[True], np.diff(parts.row) != 0])
    before = (last - parts.counts)[first_of_row][np.cumsum(first_of_row) - 1]
    bounds = pa.table(
        {
            inside.part: parts.row,
            inside.first: last - parts.counts - before,
            inside.last: last - before,
            **{inside.label(name): labels for name, labels in changed.items()},
        }
    )
    fates = backend.upload(bounds.filter(pa.array(is_kept)), {})
    shared = positioned.join(
        fates,
        [
            positioned[inside.row] == fates[inside.part],
            positioned[inside.position] >= fates[inside.first],
            positioned[inside.position] < fates[inside.last],
        ],
    )
    return _relabelled(shared, rows.columns, changed, inside)


def _relabelled(joined: Any, columns: Sequence[str], changed: dict[str, pa.Array], inside: Inside) -> ir.Table:
    """Return the rows with released values in place of the original ones."""
    relabelled: ir.Table = joined.select(
        **{name: joined[inside.label(name)] if name in changed else joined[name] for name in columns}
    )
    return relabelled


def labels_of(values: Values, parts: Parts, j: int, stars: bool) -> pa.Array:
    """Return the released value of each part in one column."""
    labels = pa.array([*values.labels, TOP], pa.string())
    codes = np.where(parts.suppressed, len(values.labels), parts.codes[:, j]) if stars else parts.codes[:, j]
    return labels.take(pa.array(codes))


def foreseen(
    rows: LocalEngine,
    row_of: NDArray[np.int64],
    parts: Parts,
    changed: dict[str, pa.Array],
    is_kept: NDArray[np.bool_],
    policy: Policy,
) -> Groups:
    """Predict the counts of the released rows from the frequency table alone; ``rows`` are the tuples counted in it."""
    groups = rows.weighed(policy.release.entity)
    if (np.diff(parts.row) == 1).all():
        part, tuples, weights = row_of, np.arange(len(row_of)), np.asarray(groups.table[groups.weight])
        if groups.person is None:
            tuples = np.flatnonzero(is_kept[part])
            class_of, firsts = group(_released_words(rows, part[tuples], tuples, parts, changed, is_kept, policy))
            weights = sum_by_class(weights[tuples].astype(np.int64), class_of, len(firsts))
            tuples = tuples[firsts]
            return _released_as(groups, part[tuples], tuples, weights, changed, policy)
    else:  # all tuples of a row have the same leaves, sensitive values and person: any represents them
        part = np.arange(len(parts.row))
        tuples = np.empty(int(parts.row[-1]) + 1, np.int64)
        tuples[row_of] = np.arange(len(row_of))
        tuples, weights = tuples[parts.row], parts.counts
    chosen = is_kept[part]
    return _released_as(groups, part[chosen], tuples[chosen], weights[chosen], changed, policy)


def _released_words(
    rows: LocalEngine,
    part: NDArray[np.int64],
    tuples: NDArray[np.int64],
    parts: Parts,
    changed: dict[str, pa.Array],
    is_kept: NDArray[np.bool_],
    policy: Policy,
) -> NDArray[np.uint64]:
    """Return a word for each of some tuples; words are equal exactly if the tuples are released as the same row."""
    stars = bool((is_kept & parts.suppressed).any())
    # A text that is released unchanged is a part of the released tuple; other values may share a text.
    texts = {*rows.text_columns} & {*policy.quasi}
    unchanged_names = [name for name in (*policy.quasi, *policy.sensitive) if name not in changed and name not in texts]
    columns = [rows.numbered_column(name).codes[tuples] for name in unchanged_names]
    return packed(np.stack([parts.shown_tuples(stars=stars)[part], *columns]).T)


def _released_as(
    groups: Groups,
    part: NDArray[np.int64],
    tuples: NDArray[np.int64],
    weights: Counts,
    changed: dict[str, pa.Array],
    policy: Policy,
) -> Groups:
    """Return some tuples as they are released, with their numbers of records."""
    names = [*policy.quasi, *policy.sensitive, *([] if groups.person is None else [groups.person])]
    columns = {
        name: changed[name].take(pa.array(part)) if name in changed else groups.table[name].take(pa.array(tuples))
        for name in names
    }
    weight: Counts = weights.astype(np.int64)
    return Groups(pa.table({**columns, groups.weight: weight}), groups.weight, groups.person)
