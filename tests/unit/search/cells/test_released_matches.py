"""Nulls that match anything in large tables: compared within blocks, and as safe as in one."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.search.cells import released_matches


def released(rows: pa.Table, matches: str) -> Any:
    columns = "".join(f'columns.{name} = {{ role = "quasi" }}\n' for name in rows.column_names)
    return shoal.anonymize(
        rows,
        shoal.Policy.parse(f"""
        {columns}
        require = [{{ model = "k-anonymity", k = 3 }}]
        release = {{ algorithm = "suppress_cells", nulls = "wildcard", matches = "{matches}" }}
        """),
    )


def cells_hidden(release: Any) -> int:
    return int(sum(column.null_count for column in release.table.columns))


def test_more_pairs_than_are_compared_at_once_are_compared_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    n = 600
    rows = pa.table(
        {name: rng.integers(0, size, n).astype(str) for name, size in (("a", 30), ("b", 20), ("c", 12), ("d", 8))}
    )
    alone, together = released(rows, "original"), released(rows, "released")
    monkeypatch.setattr(released_matches, "PAIRS", 40_000)
    blocks = released(rows, "released")
    assert "blocks of similar records" in str(blocks.certificate)
    assert cells_hidden(together) <= cells_hidden(blocks) < cells_hidden(alone)
    cells = [column.to_pylist() for column in blocks.table.columns]
    tuples = list(zip(*cells, strict=True))
    for one in tuples[:80]:  # as a check counts: a null of either side matches anything
        matching = sum(
            all(x is None or y is None or x == y for x, y in zip(one, other, strict=True)) for other in tuples
        )
        assert matching >= 3
