"""The mapping of a release: per column every released value, the values it covers, and how often it occurs.

It helps the owner of the original to read and check a release. It must not be published: if a hierarchy is built from
the data, the covered values are values of the data.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from shoal.engines.base import Query, Rows
from shoal.hierarchies.hierarchy import TOP, Label
from shoal.notation import codec
from shoal.recoding import Recoding
from shoal.tables.frequency import Counts
from shoal.tables.values import Values

SCHEMA = pa.schema(
    [
        ("released", pa.string()),
        ("first", pa.string()),  # for numbers or dates, the ends of the covered range
        ("last", pa.string()),
        ("values", pa.list_(pa.string())),  # for others, all covered values; a null among them is a missing value
        ("records", pa.int64()),
    ]
)


def mapping_of(recoding: Recoding, rows: Rows | Query) -> dict[str, pa.Table]:
    """Return one table per quasi-identifier, with one row per released value in the order of the covered values."""
    table, weights = rows.with_counts()
    return {values.hierarchy.column: _column(values, table, weights) for values in recoding.released}


def _column(values: Values, table: pa.Table, weights: Counts) -> pa.Table:
    hierarchy = values.hierarchy
    coded = codec.encode_texts(hierarchy.column, table[hierarchy.column])
    texts: tuple[Label, ...] = (*coded.texts, None)
    counts = np.bincount(np.where(coded.codes < 0, len(coded.texts), coded.codes), weights, len(texts))
    covers = {label: leaves.tolist() for label, leaves in zip(values.labels, values.covers, strict=True)}
    # Suppressed records that are kept are stars, whether or not the column has that label.
    covers.setdefault(TOP, list(range(len(hierarchy.leaves))))
    released = [(covers[text], text, int(n)) for text, n in zip(texts, counts, strict=True) if n]
    ordered = hierarchy.leaf_order in ("numeric", "time")
    lines = [
        _line(text, [hierarchy.leaves[leaf] for leaf in leaves if leaf != hierarchy.uncovered], n, ordered=ordered)
        for leaves, text, n in sorted(released, key=lambda entry: entry[0])
    ]
    return pa.Table.from_pylist(lines, schema=SCHEMA)


def _line(text: Label, leaves: Sequence[Label], records: int, *, ordered: bool) -> dict[str, object]:
    present = [leaf for leaf in leaves if leaf is not None]
    if ordered and present:
        return {"released": text, "first": present[0], "last": present[-1], "records": records}
    return {"released": text, "values": list(leaves), "records": records}
