"""Quantiles by group: enough persons on both sides, and no two groups that differ by a few persons."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

import numpy as np

from shoal.engines.grouping import Groupable
from shoal.errors import CannotTellError
from shoal.results.grouping import figures_of_groups
from shoal.results.output.atoms import AtomTable
from shoal.results.output.few_values import rows_about
from shoal.results.output.layout import CellLayout, released_before
from shoal.results.output.ledger import Earlier
from shoal.results.output.request import TableRequest
from shoal.results.output.rules import OutputRules
from shoal.tables.frequency import Floats


def quantiles_of(
    rows: Groupable, request: TableRequest, layout: CellLayout, atoms: AtomTable, entity: str | None, rules: OutputRules
) -> dict[str, tuple[Floats, list[int]]]:
    """Return each quantile of every cell, and the cells in which too few persons are beside it, or up to the next one.

    Of n values, a quantile q between neighbours has at least ⌊(n-1)q⌋+1 values at or below and n-⌈(n-1)q⌉ at or above.
    """
    if not request.quantiles or request.value is None:
        return {}
    counts = np.asarray(layout.members @ atoms.records)
    if entity is not None and (atoms.parts is not None or (atoms.records != atoms.persons).any()):
        raise CannotTellError(
            "persons have several records, so how many of them are on each side of a quantile cannot be told",
            "use one record per person for quantiles",
        )
    figures = {name: np.full(len(layout.cells), np.nan) for name in request.quantiles}
    index_of = {key: i for i, key in enumerate(layout.cells)}
    named = {f"f{j}": request.feature(name).expression(rows) for j, name in enumerate(request.names)}
    table = rows_about(rows, request, {"v": rows.number(request.value).cast("float64"), **named})
    for depth in request.depths:
        kept_columns = tuple(request.kept_columns(depth))
        keys = [f"f{j}" for j, keep in enumerate(kept_columns) if keep]
        wanted = {f"q{j}": table.v.quantile(share) for j, share in enumerate(request.quantiles.values())}
        for row in figures_of_groups(rows, table, keys, wanted).to_pylist():
            key = tuple(row[f"f{j}"] if keep else None for j, keep in enumerate(kept_columns))
            for j, name in enumerate(request.quantiles):
                figures[name][index_of[key, kept_columns]] = float(row[f"q{j}"])
    shares = request.quantiles.values()
    failing = [i for i, n in enumerate(counts) if n and _fewest(int(n), shares) < rules.min_count]
    return {name: (figures[name], failing) for name in request.quantiles}


def _fewest(n: int, shares: Collection[float]) -> int:
    """Return the smallest number of values below, between or above quantiles; those at a quantile count on both sides.

    >>> _fewest(101, [0.5]), _fewest(101, [0.5, 0.6]), _fewest(100, [0.5, 0.6])
    (51, 11, 10)
    """
    ends = [0.0, *sorted({(n - 1) * share for share in shares}), float(n - 1)]
    return min(math.floor(high + 1e-9) - math.ceil(low - 1e-9) + 1 for low, high in pairwise(ends))


def too_similar(
    request: TableRequest, layout: CellLayout, atoms: AtomTable, earlier: Sequence[Earlier], rules: OutputRules
) -> Iterator[int]:
    """Yield cells whose quantiles were published before for almost the same persons.

    Quantiles are no totals, so nothing is computed from two of them: groups that differ by too few are refused, and so
    are further quantiles of a group that are too close to those published before.
    """
    if not request.quantiles:
        return
    weights = atoms.persons.astype(float)
    size = np.asarray(layout.members @ weights)
    shares = [set(request.quantiles.values()) for _ in size]
    for release in earlier:
        if release.request.value != request.value or not release.request.quantiles:
            continue
        members, _, _ = released_before(release, atoms)
        common = (layout.members.multiply(weights[None, :]).tocsr() @ members.T).toarray()
        difference = size[:, None] + np.asarray(members @ weights)[None, :] - 2 * common
        yield from map(int, np.flatnonzero(((difference > 0) & (difference < rules.min_count)).any(axis=1)))
        for i in np.flatnonzero((difference == 0).any(axis=1) & (size > 0)):
            shares[i] |= set(release.request.quantiles.values())
            if _fewest(int(size[i]), shares[i]) < rules.min_count:
                yield int(i)
