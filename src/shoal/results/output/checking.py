"""``check_output``: group, judge every cell, hide what is unsafe and what would give it away, and say what is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from shoal.engines.base import Engine
from shoal.engines.data import Data
from shoal.engines.grouping import groupable
from shoal.errors import DataError, PolicyError
from shoal.results.arguments import real_argument
from shoal.results.output.atoms import atoms_of
from shoal.results.output.changes import changed_figures, linear_figures
from shoal.results.output.checked import OutputCheck
from shoal.results.output.few_values import two_valued, with_few_valued
from shoal.results.output.judging import Judge
from shoal.results.output.layout import inside, laid_out
from shoal.results.output.ledger import read_ledger
from shoal.results.output.linked import linked_columns
from shoal.results.output.possible_groups import with_possible
from shoal.results.output.quantiles import quantiles_of, too_similar
from shoal.results.output.request import TableRequest
from shoal.results.output.rules import OutputRules, Zeros
from shoal.results.output.suppression import Step


def check_output(
    data: Data | Engine,
    *,
    by: Sequence[str | Sequence[str]] = (),
    value: str | None = None,
    statistics: Sequence[str] = ("count",),
    where: Sequence[str] = (),
    bands: Mapping[str, Sequence[float]] | None = None,
    entity: str | None = None,
    sensitive: Sequence[str] | None = None,
    min_count: int = 10,
    dominance: tuple[int, float] | None = (2, 90.0),
    p: float | None = 10.0,
    zeros: Zeros = "show",
    protection: float = 10.0,
    ledger: str | Path | None = None,
    total: str = "Total",
    time_limit: float = 60.0,
    progress: Step = lambda task, share: None,
) -> OutputCheck:
    """Check a table of counts, sums, means or quantiles before it is published, together with all released before.

    Parameters
    ----------
    data
        A path, a pandas, polars or pyarrow frame, or an Ibis table, whose rows stay in place.
    by
        The columns to group by; ``"region > town"`` nests towns in regions. All totals are part of the table.
    value
        The column of numbers that statistics other than counts are about.
    statistics
        Those to be published: count, sum, mean, median or quantiles such as p90.
    where
        Restricts the table to records, as in ``["age >= 18"]``.
    bands
        For each column of numbers, where it is cut into groups.
    entity
        The column that identifies persons; without it, every record is a person.
    sensitive
        The columns where everybody in one group is a disclosure; by default all.
    min_count
        The least number of persons behind a cell.
    dominance
        (n, share): the n largest contributors may not have more than this percentage of a sum.
    p
        The percentage within which nobody may estimate the value of another (p % rule).
    zeros
        Whether empty cells are shown.
    protection
        How far, in percent, the range of a hidden sum must be from its value.
    ledger
        The file of all tables released before about the same people.
    total
        The label of totals.
    time_limit
        Seconds after which nothing more is tried to hide fewer cells; what is hidden is enough all the same.
    progress
        Called with the current task and the share of it that is done.

    Returns
    -------
    OutputCheck
        The cells to publish and to hide, and the ranges that an intruder could compute.

    Raises
    ------
    PolicyError
        If an argument is out of its range.
    OutputError
        If the ledger cannot be continued or written.
    DataError
        If the table cannot be read, or lacks a column.

    Examples
    --------
    >>> import pyarrow as pa, shoal
    >>> rows = pa.table({"town": ["A"] * 40 + ["B"] * 30 + ["C"] * 3})
    >>> found = shoal.check_output(rows, by=["town"])
    >>> found.outcome, found.hidden
    ('fails', 2)
    """
    real_argument("time_limit", time_limit, "a number of seconds", 0)
    rules = OutputRules(min_count, dominance, p, zeros, protection)
    request = TableRequest.checked(by, bands, where, value, statistics)
    rows = groupable(data)
    earlier = read_ledger(ledger)
    rows.require([feature.source for release in earlier for feature in release.request.features])
    earlier = [replace(release, request=with_few_valued(rows, release.request)) for release in earlier]
    tables = [request, *(table for release in earlier for table in release.request.implied)]
    known_columns = list(dict.fromkeys(name for table in tables for name in (*table.names, *table.conditional)))
    if unknown := [name for name in sensitive or () if name not in known_columns]:
        raise PolicyError(f"{', '.join(map(repr, unknown))} is sensitive, but not grouped by")
    features = list(dict.fromkeys(feature for table in tables for feature in table.features))
    rows.require([feature.source for feature in features] + ([] if entity is None else [entity]))
    if value is not None and rows.table[value].type().is_temporal():
        raise DataError(f"column {value!r} has dates, not numbers")
    progress("grouping", 0.0)
    atoms = atoms_of(rows, features, value, entity, rules.n_largest)
    if not inside(request, atoms).any():
        raise DataError(
            "no record satisfies the conditions, or the value is missing everywhere", "check the conditions"
        )
    if request.sums and two_valued(rows, request, rules):
        raise PolicyError(
            f"column {value!r} has only two values, such as 0 and 1, so its sums and means tell how many people have "
            "which",
            f"count instead: add {value!r} to the columns to group by",
            option="--by",
        )
    atoms = with_possible(atoms, tables)
    layout = laid_out(request, atoms)
    if total in {label for key, _ in layout.cells for label in key}:
        raise PolicyError("a group has the name of the totals", "choose another name for them", option="--total")
    linked = linked_columns(rows, request, earlier, features, entity, rules.n_largest)
    judge = Judge(
        rules, request, atoms, layout, earlier, tuple(known_columns if sensitive is None else sensitive), linked
    )
    judge.changed += changed_figures(rows, earlier, rules)
    figures = linear_figures(request, layout, atoms)
    quantiles = quantiles_of(rows, request, layout, atoms, entity, rules)
    for name, (checked, failing) in quantiles.items():
        figures[name] = checked
        for i in failing:
            judge.fail(i, "quantile")
    for i in too_similar(request, layout, atoms, earlier, rules):
        judge.fail(i, "differencing")
    return judge.checked(figures, ledger, total, progress, time_limit)
