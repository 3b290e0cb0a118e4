"""Quantiles by group: enough persons on both sides, and no two groups that differ by a few persons."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from shoal.engines.grouping import Groupable
from shoal.errors import CannotTellError
from shoal.output.asked import AskedTable
from shoal.output.atoms import AtomTable, by_keys
from shoal.output.layout import CellLayout, released_before
from shoal.output.ledger import Earlier
from shoal.output.rules import OutputRules
from shoal.table.frequency import Floats


def quantiles_of(
    rows: Groupable, asked: AskedTable, layout: CellLayout, atoms: AtomTable, entity: str | None, rules: OutputRules
) -> dict[str, tuple[Floats, list[int]]]:
    """Return each quantile of every cell, and the cells in which too few persons are on one side of it.

    Of n values, a quantile q between neighbours has at least ⌊(n-1)q⌋+1 values at or below and n-⌈(n-1)q⌉ at or above.
    """
    if not asked.quantiles or asked.value is None:
        return {}
    counts = np.asarray(layout.members @ atoms.records)
    if entity is not None and (atoms.parts is not None or (atoms.records != atoms.persons).any()):
        raise CannotTellError(
            "persons have several records, so how many of them are on each side of a quantile cannot be told",
            "use one record per person for quantiles",
        )
    found = {name: np.full(len(layout.cells), np.nan) for name in asked.quantiles}
    place = {key: i for i, key in enumerate(layout.cells)}
    inside = asked.inside
    assert inside is not None  # there is a value
    named = {f"f{j}": asked.feature(name).expression(rows) for j, name in enumerate(asked.names)}
    table = rows.table.select(v=rows.number(asked.value).cast("float64"), inside=inside.expression(rows), **named)
    table = table.filter(table.inside == "1")
    for depth in asked.depths:
        kept = tuple(asked.kept(depth))
        keys = [f"f{j}" for j, keep in enumerate(kept) if keep]
        wanted = {f"q{j}": table.v.quantile(share) for j, share in enumerate(asked.quantiles.values())}
        for row in rows.fetch(by_keys(table, keys, wanted)).to_pylist():
            key = tuple(row[f"f{j}"] if keep else None for j, keep in enumerate(kept))
            for j, name in enumerate(asked.quantiles):
                found[name][place[key, kept]] = float(row[f"q{j}"])
    return {
        name: (found[name], [i for i, n in enumerate(counts) if _sides(int(n), share) < rules.min_count])
        for name, share in asked.quantiles.items()
    }


def _sides(n: int, share: float) -> int:
    """Return the smaller number of values on either side of a quantile, which both count."""
    return min(math.floor((n - 1) * share) + 1, n - math.ceil((n - 1) * share)) if n else 0


def too_similar(
    asked: AskedTable, layout: CellLayout, atoms: AtomTable, earlier: Sequence[Earlier], rules: OutputRules
) -> Iterator[int]:
    """Yield cells whose quantiles were published before for almost the same persons.

    Quantiles are no totals, so nothing is computed from two of them: groups that differ by too few are refused.
    """
    if not asked.quantiles:
        return
    weights = atoms.persons.astype(float)
    size = np.asarray(layout.members @ weights)
    for each in earlier:
        if each.asked.value != asked.value or not each.asked.quantiles:
            continue
        members, _, _ = released_before(each, atoms)
        common = (layout.members.multiply(weights[None, :]).tocsr() @ members.T).toarray()
        apart = size[:, None] + np.asarray(members @ weights)[None, :] - 2 * common
        yield from map(int, np.flatnonzero(((apart > 0) & (apart < rules.min_count)).any(axis=1)))
