"""What it costs the other columns that some are kept as fine as possible.

A weight makes a search spend the loss elsewhere. How much that is depends on the table, so it is measured: a quick
search, with the weights and without, and what the cells of each column lose in either answer.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from shoal.engines.local import LocalEngine
from shoal.errors import ShoalError
from shoal.policy import Policy
from shoal.search import SEARCHES, Problem
from shoal.search.losses.cells import prices
from shoal.table.kernels import sum_by_class

if TYPE_CHECKING:
    from shoal.engines.ibis import IbisEngine

SAMPLE = 20_000  # records, or distinct tuples of an engine, that the search looks at


@dataclass(frozen=True)
class Share:
    """The mean loss of a column's cells, 0 to 1, without weights and with them."""

    column: str
    without: float
    weighted: float


@dataclass(frozen=True)
class Keeping:
    """What columns gain that are kept fine, and what the others pay."""

    kept: tuple[Share, ...]
    others: tuple[Share, ...]  # the one that pays most, first
    looked_at: int  # records
    records: int

    @property
    def sentences(self) -> tuple[str, ...]:
        """For people."""
        kept = ", ".join(f"'{s.column}' loses {s.weighted:.3f} instead of {s.without:.3f}" for s in self.kept)
        told = [f"Kept fine: {kept} (0 keeps every value, 1 hides all)."]
        if self.others:
            before, after = (
                float(np.mean([getattr(s, name) for s in self.others])) for name in ("without", "weighted")
            )
            most = self.others[0]
            worst = (
                f"; most of all '{most.column}', {most.without:.3f} to {most.weighted:.3f}"
                if len(self.others) > 1
                else ""
            )
            told.append(f"The other columns pay for it: their mean loss goes from {before:.3f} to {after:.3f}{worst}.")
        of = "all" if self.looked_at == self.records else f"{self.looked_at:,} of {self.records:,}"
        told.append(f"Measured with a quick search (mondrian by gain) on {of} records, with the weights and without.")
        return tuple(told)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def cost_of_keeping(engine: LocalEngine | IbisEngine, policy: Policy) -> Keeping | None:
    """Two quick searches, with the policy's weights and without; None where nothing is weighed or nothing is found."""
    weighed = [name for name in policy.quasi if policy.columns[name].weight != 1]
    if not weighed:
        return None
    even = {name: column.model_copy(update={"weight": 1.0}) for name, column in policy.columns.items()}
    quick = policy.release.model_copy(update={"algorithm": "mondrian", "dimension": "gain", "max_suppression": 0.0})
    weighted = policy.model_copy(update={"release": quick})
    try:
        rows = _some(engine.reading(policy), weighted)
        if rows is None:
            return None
        before = _losses(rows, weighted.model_copy(update={"columns": even}))
        after = _losses(rows, weighted)
    except ShoalError:  # nothing satisfies, or the search cannot do what the policy asks
        return None
    shares = [Share(name, before[name], after[name]) for name in policy.quasi]
    others = [share for share in shares if share.column not in weighed]
    total = engine.table.num_rows if isinstance(engine, LocalEngine) else rows.n_records
    return Keeping(
        tuple(share for share in shares if share.column in weighed),
        tuple(sorted(others, key=lambda share: share.without - share.weighted)),
        rows.n_records,
        total,
    )


def _some(engine: LocalEngine | IbisEngine, policy: Policy) -> LocalEngine | None:
    """Records evenly spaced, always the same; of an engine all tuples, where they are few."""
    if not isinstance(engine, LocalEngine):
        entity = policy.release.entity
        names = [*policy.quasi, *policy.sensitive, *([] if entity is None else [entity])]
        return engine.tallied(policy) if engine.n_tuples(names) <= SAMPLE else None
    n = engine.table.num_rows
    if n <= SAMPLE:
        return engine
    return LocalEngine(engine.table.take(pa.array(np.linspace(0, n - 1, SAMPLE).astype(np.int64))), fingerprint="")


def _losses(rows: LocalEngine, policy: Policy) -> dict[str, float]:
    """The mean loss of each quasi column's cells in the answer of a search."""
    there = set(rows.columns)
    asked = policy.model_copy(update={"columns": {n: c for n, c in policy.columns.items() if n in there}})
    table = rows.count(asked)
    recoding = SEARCHES[asked.release.algorithm](Problem.of(table, asked))
    parts = recoding.parts(table)
    found = {}
    for j, values in enumerate(recoding.released):
        records = sum_by_class(parts.counts, parts.codes[:, j].astype(np.int64), len(values.labels))
        found[values.hierarchy.column] = float(records @ prices(table, j, values, "loss")) / max(1, table.n_records)
    return found
