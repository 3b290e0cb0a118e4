"""The cost to other columns of keeping some columns in more detail.

A weight makes a search move the loss to other columns. How much depends on the table, so it is measured: a fast search
with and without the weights, and the loss of each column in both solutions.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from shoal.compiled.grouping import sum_by_class
from shoal.engines.base import Engine
from shoal.engines.local import LocalEngine
from shoal.errors import ShoalError
from shoal.policy import Policy
from shoal.search import SEARCHES, Problem
from shoal.search.losses.cells import prices

SAMPLE = 20_000  # records, or distinct tuples of an engine, that the search looks at
CUT_ONCE = {"algorithm": "top_down", "max_suppression": 0.1}  # instead of single cells, records are suppressed


@dataclass(frozen=True)
class Share:
    """The mean loss of a column's cells, from 0 to 1, without and with weights."""

    column: str
    without: float
    weighted: float


@dataclass(frozen=True)
class Keeping:
    """The gain of the columns kept in more detail, and the cost to the others."""

    kept: tuple[Share, ...]
    others: tuple[Share, ...]  # the one that pays most, first
    looked_at: int  # records
    records: int
    search: str = "mondrian by gain"

    @property
    def sentences(self) -> tuple[str, ...]:
        """The result as sentences."""
        detail = ", ".join(f"'{s.column}' has a loss of {s.weighted:.3f} instead of {s.without:.3f}" for s in self.kept)
        lines = [f"Kept in more detail: {detail} (0: every value kept, 1: all suppressed)."]
        if self.others:
            before, after = (
                float(np.mean([getattr(s, name) for s in self.others])) for name in ("without", "weighted")
            )
            worst_share = self.others[0]
            worst = (
                f"; the largest change is in '{worst_share.column}', from {worst_share.without:.3f} to "
                f"{worst_share.weighted:.3f}"
                if len(self.others) > 1
                else ""
            )
            lines.append(
                f"In return, the mean loss of the other columns rises from {before:.3f} to {after:.3f}{worst}."
            )
        extent = "all" if self.looked_at == self.records else f"{self.looked_at:,} of {self.records:,}"
        lines.append(f"Measured with a fast search ({self.search}) on {extent} records, with and without the weights.")
        return tuple(lines)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def cost_of_keeping(engine: Engine, policy: Policy) -> Keeping | None:
    """Run two fast searches, with and without the policy's weights; None without weights or without a solution."""
    weighed = [name for name in policy.quasi if policy.columns[name].weight != 1]
    if not weighed:
        return None
    even = {name: column.model_copy(update={"weight": 1.0}) for name, column in policy.columns.items()}
    one_cut = policy.release.algorithm == "single_dimensional"
    search = CUT_ONCE if one_cut else {"algorithm": "mondrian", "dimension": "gain", "max_suppression": 0.0}
    quick = policy.release.model_copy(update=search)
    weighted = policy.model_copy(update={"release": quick})
    try:
        sampled = engine.reading(policy).sampled(weighted, SAMPLE)
        if sampled is None:
            return None
        rows, total = sampled
        before = _losses(rows, weighted.model_copy(update={"columns": even}))
        after = _losses(rows, weighted)
    except ShoalError:  # nothing satisfies, or the search cannot do what the policy asks
        return None
    shares = [Share(name, before[name], after[name]) for name in policy.quasi]
    other_shares = [share for share in shares if share.column not in weighed]
    return Keeping(
        tuple(share for share in shares if share.column in weighed),
        tuple(sorted(other_shares, key=lambda share: share.without - share.weighted)),
        rows.n_records,
        total,
        "top_down" if one_cut else "mondrian by gain",
    )


def _losses(rows: LocalEngine, policy: Policy) -> dict[str, float]:
    """Return the mean loss of each quasi-identifier in the solution of a search."""
    present = set(rows.columns)
    narrowed = policy.model_copy(update={"columns": {n: c for n, c in policy.columns.items() if n in present}})
    table = rows.count(narrowed).table
    recoding = SEARCHES[narrowed.release.algorithm](Problem.of(table, narrowed))
    parts = recoding.parts(table)
    mean_losses = {}
    for j, values in enumerate(recoding.released):
        records = sum_by_class(parts.counts, parts.codes[:, j].astype(np.int64), len(values.labels))
        mean_losses[values.hierarchy.column] = float(records @ prices(table, j, values, "loss")) / max(
            1, table.n_records
        )
    return mean_losses
