"""One GROUP BY of the rows where they are: figures of each group, as an Arrow table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from ibis.expr import types as ir

from shoal.engines.grouping import Groupable


def figures_of_groups(rows: Groupable, table: ir.Table, keys: Sequence[str], figures: Mapping[str, Any]) -> pa.Table:
    """Return figures of each group of a table of these rows, or of the whole table if there are no keys."""
    return rows.fetch(table.group_by(list(keys)).agg(**figures) if keys else table.agg(**figures))


def row_count(rows: Groupable, table: ir.Table) -> int:
    """Return how many rows a table has."""
    return int(figures_of_groups(rows, table, [], {"n": table.count()})["n"][0].as_py() or 0)
