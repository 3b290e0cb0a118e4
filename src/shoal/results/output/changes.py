"""Whether the data are those of earlier releases: every published figure is computed again.

Figures that all agree are true of today's data, so judging today's data with all that was published is enough, even if
some records changed in a way that no published figure shows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.engines.grouping import Groupable
from shoal.results.output.atoms import AtomTable, atoms_of
from shoal.results.output.group_models import models_of
from shoal.results.output.layout import CellLayout, laid_out
from shoal.results.output.ledger import Earlier
from shoal.results.output.quantiles import quantiles_of
from shoal.results.output.request import TableRequest
from shoal.results.output.rules import OutputRules
from shoal.tables.frequency import Floats

SLIGHT = 1e-12  # of the sum of sizes: what adding in another order changes at most


def linear_figures(request: TableRequest, layout: CellLayout, atoms: AtomTable) -> dict[str, Floats]:
    """Return the counts, sums and means of all cells, as far as they are asked for."""
    counts, sums = layout.members @ atoms.records.astype(float), layout.members @ atoms.sums
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)  # nobody has no mean
    figures = {"count": counts, "sum": sums, "mean": means}
    return {name: np.asarray(figures[name]) for name in request.statistics if name in figures}


def changed_models(rows: Groupable, earlier: Earlier, rules: OutputRules) -> bool:
    """Return whether a published regression is another one today."""
    all_kept = (True,) * len(earlier.request.names)
    today = {(key, all_kept): fit.figures() for key, fit in models_of(rows, earlier.request, None, rules, 0)}
    for key, published in earlier.figures.items():
        for name, published_figure in published.items():
            # Degrees of freedom depend on who counts as a person; orders of addition change the last digits.
            near = 1e-6 * max(abs(published_figure), abs(published.get(name.replace("estimate", "error"), 0.0)))
            if name != "degrees" and not abs(today.get(key, {}).get(name, np.inf) - published_figure) <= near:
                return True
    return False


def changed_figures(rows: Groupable, earlier: Sequence[Earlier], rules: OutputRules) -> list[str]:
    """Return the statistics other than counts of which a published figure is different today."""
    changed: dict[str, None] = {}
    for release in earlier:
        if release.request.value is None or set(release.request.statistics) == {"count"}:
            continue
        if release.request.on:
            if changed_models(rows, release, rules):
                changed["regression"] = None
            continue
        atoms = atoms_of(rows, release.request.features, release.request.value, None, 1)
        layout = laid_out(release.request, atoms)
        today = linear_figures(release.request, layout, atoms)
        today |= {
            name: figures
            for name, (figures, _) in quantiles_of(rows, release.request, layout, atoms, None, rules).items()
        }
        index_of = {key: i for i, key in enumerate(layout.cells)}
        # Engines add in any order, which changes the last digits.
        sizes, counts = layout.members @ atoms.sizes, layout.members @ atoms.records
        for key, published in release.figures.items():
            for name, published_figure in published.items():
                if name == "count" or key not in index_of:  # counts are compared over all tables together
                    continue
                i = index_of[key]
                size = {"sum": sizes[i], "mean": sizes[i] / max(1, counts[i])}.get(name, abs(published_figure))
                if not abs(today[name][i] - published_figure) <= SLIGHT * size:
                    changed[name] = None
    return list(changed)
