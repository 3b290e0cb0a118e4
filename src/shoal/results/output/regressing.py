"""``check_regression``: linear regressions by group, judged together with all tables and regressions released before.

Residuals add up to 0, in every category too. Who knows the means of the other columns can therefore work out the sum of
the values from the coefficients, so a regression is judged as the tables of counts and sums that it amounts to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import vstack

from shoal.engines.base import Engine
from shoal.engines.data import Data
from shoal.engines.formats.table_files import check_target
from shoal.engines.grouping import Groupable, groupable
from shoal.errors import CannotTellError, DataError, InfeasibleError, PolicyError
from shoal.models.verdict import Answered, Outcome
from shoal.results.arguments import whole_argument
from shoal.results.output.atoms import AtomTable, atoms_of
from shoal.results.output.changes import changed_figures
from shoal.results.output.few_values import two_valued, with_few_valued
from shoal.results.output.fitting import Fit
from shoal.results.output.group_models import models_of
from shoal.results.output.judging import Judge
from shoal.results.output.layout import CellLayout, inside, laid_out, released_before
from shoal.results.output.ledger import Earlier, enter, read_ledger
from shoal.results.output.linked import LinkedColumns, linked_columns
from shoal.results.output.possible_groups import with_possible
from shoal.results.output.request import REGRESSION, Key, TableRequest
from shoal.results.output.rules import ModelRule, OutputRules
from shoal.results.output.suppression import Step
from shoal.results.written import write_results
from shoal.tables.frequency import Floats
from shoal.text.figures import format_count


@dataclass(frozen=True, eq=False)
class GroupModel:
    """The regression of one group, whether it is hidden, and the rules that it fails."""

    labels: Key
    fit: Fit
    hidden: bool
    failed_rules: tuple[ModelRule, ...]  # none if it is hidden to protect others


@dataclass(frozen=True, eq=False)
class RegressionCheck(Answered):
    """The verdict on regressions by group, and the coefficients that can be published."""

    request: TableRequest
    rules: OutputRules
    models: tuple[GroupModel, ...]
    missing: str  # why it cannot be determined
    reason: str  # why nothing can be published
    ledger: Path | None
    earlier: tuple[Earlier, ...]

    def __repr__(self) -> str:
        return f"RegressionCheck(outcome={self.outcome!r}, hidden={self.hidden}, models={len(self.models)})"

    @property
    def outcome(self) -> Outcome:
        """Whether all models can be published: holds, fails or unknown."""
        if self.missing and not any(model.failed_rules for model in self.models):
            return "unknown"
        return "fails" if self.missing or self.reason or self.hidden else "holds"

    @property
    def hidden(self) -> int:
        """How many models are hidden."""
        return sum(model.hidden for model in self.models)

    @property
    def safe(self) -> bool:
        """Whether some model can be published."""
        return not self.missing and not self.reason and self.hidden < len(self.models)

    @property
    def sentence(self) -> str:
        """The verdict in a sentence."""
        n = format_count(len(self.models), "regression")
        if self.outcome == "holds":
            return f"All can be published as they are: {n}"
        if self.safe:
            return f"The regressions must not all be published; they can be without {self.hidden} of {n}"
        cause = self.missing or self.reason or "none satisfies the rules"
        return f"The regressions must not be published: {cause}"

    @property
    def table(self) -> pa.Table:
        """A row for each coefficient that can be published; a hidden model has one row without figures."""
        self._require_a_safe_one()
        rows: list[dict[str, Any]] = []
        for model in self.models:
            group = dict(zip(self.request.names, model.labels, strict=True))
            fit = model.fit
            if model.hidden:
                rows.append(group | {"term": None, "suppressed": True})
                continue
            for term, estimate, error in zip(fit.terms, fit.estimates, fit.errors, strict=True):
                figures = {"estimate": float(estimate), "standard_error": float(error), "records": fit.records}
                fit_figures = {"degrees_of_freedom": fit.degrees, "r2": fit.r2, "suppressed": False}
                rows.append(group | {"term": term} | figures | fit_figures)
        kinds = {
            **{name: pa.string() for name in (*self.request.names, "term")},
            **{name: pa.float64() for name in ("estimate", "standard_error")},
            **{name: pa.int64() for name in ("records", "degrees_of_freedom")},
            "r2": pa.float64(),
            "suppressed": pa.bool_(),
        }
        return pa.table({name: pa.array([row.get(name) for row in rows], kind) for name, kind in kinds.items()})

    def _require_a_safe_one(self) -> None:
        if self.missing:
            raise CannotTellError(f"{self.missing}; nothing is released")
        if not self.safe:
            raise InfeasibleError(
                f"{self.reason or 'no regression satisfies the rules'}; nothing is released",
                "use fewer groups, fewer columns or coarser categories",
            )

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Enter the models into the ledger, if there is one, and write their coefficients as CSV or Parquet."""
        table = self.table
        check_target(Path(path), force)
        if self.ledger is not None:
            enter(self.ledger, list(self.earlier), self.entry)
        write_results(table, Path(path), force=force)

    @property
    def entry(self) -> Earlier:
        """What the ledger keeps: the figures that are published."""
        all_kept = (True,) * len(self.request.names)
        return Earlier(
            self.request, {(model.labels, all_kept): model.fit.figures() for model in self.models if not model.hidden}
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: no figure of a hidden model, but which rules fail, which is for you alone."""
        return {
            "outcome": self.outcome,
            "holds": self.holds,
            "sentence": self.sentence,
            "safe": self.safe,
            "missing": self.missing,
            "reason": self.reason,
            "regression": self.request.as_dict(),
            "rules": self.rules.as_dict(),
            "released_before": len(self.earlier),
            "n_models": len(self.models),
            "n_hidden": self.hidden,
            "hidden": [
                {"group": dict(zip(self.request.names, model.labels, strict=True)), "rules": list(model.failed_rules)}
                for model in self.models
                if model.hidden
            ],
        }


def check_regression(
    data: Data | Engine,
    *,
    value: str,
    on: Sequence[str],
    by: Sequence[str] = (),
    categories: Sequence[str] = (),
    where: Sequence[str] = (),
    bands: Mapping[str, Sequence[float]] | None = None,
    entity: str | None = None,
    min_count: int = 10,
    degrees: int = 10,
    leverage: float = 0.5,
    dominance: tuple[int, float] | None = (2, 90.0),
    p: float | None = 10.0,
    protection: float = 10.0,
    ledger: str | Path | None = None,
    progress: Step = lambda task, share: None,
) -> RegressionCheck:
    """Check linear regressions by group before they are published, together with all released before.

    Records with a missing value are left out.

    Parameters
    ----------
    data
        A path, a pandas, polars or pyarrow frame, or an Ibis table, whose rows stay in place.
    value
        The column to explain.
    on
        The columns that explain it, with an intercept.
    by
        The columns to group by: one model for each group.
    categories
        Columns of numbers that are categories: each but the first has a coefficient, as for a column of texts.
    where
        Restricts the table to records, as in ``["age >= 18"]``.
    bands
        For each column of numbers, where it is cut into groups.
    entity
        The column that identifies persons; without it, every record is a person.
    min_count
        The least number of persons behind a model.
    degrees
        The least residual degrees of freedom, in persons.
    leverage
        The largest share that anybody's own values may have in what the model says about them.
    dominance
        (n, share): the n largest contributors may not have more than this percentage of a sum.
    p
        The percentage within which nobody may estimate the value of another (p % rule).
    protection
        How far, in percent, the range of a hidden sum must be from its value.
    ledger
        The file of all that was released before about the same people.
    progress
        Called with the current task and the share of it that is done.

    Returns
    -------
    RegressionCheck
        The models to publish and to hide, and why.

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
    >>> import numpy as np, pyarrow as pa, shoal
    >>> age = np.arange(60) % 30 + 20.0
    >>> rows = pa.table({"age": age, "income": 1000 + 20 * age + 37 * np.sin(np.arange(60))})
    >>> shoal.check_regression(rows, value="income", on=["age"])
    RegressionCheck(outcome='holds', hidden=0, models=1)
    """
    rules = OutputRules(min_count, dominance, p, "show", protection, leverage)
    whole_argument("degrees", degrees, 0, 10**9, "10 is a common choice")
    _check_columns(value, on, by, categories)
    rows = groupable(data)
    earlier = read_ledger(ledger)
    rows.require([value, *on, *by, *([] if entity is None else [entity])])
    for name in (value, *on):
        if rows.table[name].type().is_temporal():
            raise DataError(f"column {name!r} has dates, not numbers", "use the year, or the days since a date")
    categorical = [name for name in on if name in categories or not _numeric(rows, name)]
    request = TableRequest.checked(by, bands, where, value, [REGRESSION], on, categorical)
    rows.require(
        [
            feature.source
            for release in (request, *(release.request for release in earlier))
            for feature in release.features
        ]
    )
    request = with_few_valued(rows, request)
    earlier = [replace(release, request=with_few_valued(rows, release.request)) for release in earlier]
    tables = [table for release in (request, *(release.request for release in earlier)) for table in release.implied]
    features = list(dict.fromkeys(feature for table in tables for feature in table.features))
    progress("grouping", 0.0)
    atoms = atoms_of(rows, features, value, entity, rules.n_largest)
    if not inside(request, atoms).any():
        raise DataError("no record satisfies the conditions and has all values", "check the conditions")
    if two_valued(rows, request, rules):
        raise PolicyError(
            f"column {value!r} has only two values, such as 0 and 1: a linear regression of it tells who has which",
            "count instead",
        )
    atoms = with_possible(atoms, tables)
    fits = dict(models_of(rows, request, entity, rules, degrees))
    linked = linked_columns(rows, request, earlier, features, entity, rules.n_largest)
    return _judged(rows, request, rules, atoms, earlier, fits, ledger, linked)


def _check_columns(value: str, on: Sequence[str], by: Sequence[str], categories: Sequence[str]) -> None:
    if not on:
        raise PolicyError("name at least one column to regress on", "for means, use check_output", option="--on")
    if len({value, *on, *by}) < 1 + len(on) + len(by):
        raise PolicyError("a column has two parts in the regression", "name each column once")
    if unknown := [name for name in categories if name not in on]:
        raise PolicyError(f"{', '.join(map(repr, unknown))} has categories, but is not regressed on")


def _numeric(rows: Groupable, name: str) -> bool:
    """Return whether every value of a column that is there is a number."""
    counts = rows.fetch(rows.table.agg(given=rows.table[name].count(), present=rows.number(name).count())).to_pylist()[
        0
    ]
    return bool(counts["given"] == counts["present"])


def _judged(
    rows: Groupable,
    request: TableRequest,
    rules: OutputRules,
    atoms: AtomTable,
    earlier: list[Earlier],
    fits: Mapping[Key, Fit],
    ledger: str | Path | None,
    linked: LinkedColumns | None,
) -> RegressionCheck:
    """Hide the models that fail, then others until no total can be worked out that must not be."""
    layout, group_of = _cells(request, atoms, list(fits))
    judge = Judge(rules, request, atoms, layout, earlier, (), linked)
    judge.changed += changed_figures(rows, earlier, rules)
    failed_rules: dict[int, list[ModelRule]] = {g: list(fit.failed_rules) for g, fit in enumerate(fits.values())}
    for i, failed in judge.failed_rules.items():
        failed_rules[int(group_of[i])] += failed
    for g in _too_similar_models(request, layout, group_of, atoms, earlier, rules):
        failed_rules[g].append("differencing")
    hidden = np.array([bool(failed_rules[g]) for g in range(len(fits))])
    missing = reason = ""
    if judge.changed:
        missing = "the data changed since earlier releases, so their differences cannot be judged"
        reason = f"published figures are different today: {', '.join(dict.fromkeys(judge.changed))}"
    else:
        puzzle = judge.puzzle(hidden[group_of])
        records = np.array([fit.records for fit in fits.values()])
        while not puzzle.safe(hidden[group_of]) or judge.unprotected(puzzle, hidden[group_of]):
            if hidden.all():
                reason = "earlier releases alone already give away too much about some records"
                break
            hidden[np.argmin(np.where(hidden, np.inf, records))] = True
    if missing or reason:
        hidden[:] = True
    models = [
        GroupModel(key, fit, bool(hidden[g]), tuple(dict.fromkeys(failed_rules[g])))
        for g, (key, fit) in enumerate(fits.items())
    ]
    path = None if ledger is None else Path(ledger)
    return RegressionCheck(request, rules, tuple(models), missing, reason, path, tuple(earlier))


def _cells(request: TableRequest, atoms: AtomTable, groups: list[Key]) -> tuple[CellLayout, NDArray[np.int64]]:
    """Return the groups and their categories as cells, and the group of each."""
    index_of = {key: g for g, key in enumerate(groups)}
    cells, members, group_of = [], [], []
    for table in request.implied:
        layout = laid_out(table, atoms)
        chosen = [
            i
            for i, (key, kept_columns) in enumerate(layout.cells)
            if all(kept_columns) and key[: len(request.names)] in index_of
        ]
        cells += [layout.cells[i] for i in chosen]
        members.append(layout.members[chosen])
        group_of += [index_of[layout.cells[i][0][: len(request.names)]] for i in chosen]
    return CellLayout(cells, vstack(members).tocsr()), np.array(group_of, np.int64)


def _too_similar_models(
    request: TableRequest,
    layout: CellLayout,
    group_of: NDArray[np.int64],
    atoms: AtomTable,
    earlier: Sequence[Earlier],
    rules: OutputRules,
) -> Iterator[int]:
    """Yield the groups for which a regression of the same value was published of almost the same persons.

    The difference of two such models is a matter of the few persons that are in one of them only.
    """
    weights = atoms.persons.astype(float)
    n = int(group_of.max(initial=-1)) + 1
    first = layout.members[:n]  # the groups themselves come first
    size: Floats = np.asarray(first @ weights)
    for release in earlier:
        if release.request.value == request.value and release.request.on:
            members, figures, _ = released_before(release, atoms)
            whole = members[[i for i, published in enumerate(figures) if published]]
            common = (first.multiply(weights[None, :]).tocsr() @ whole.T).toarray()
            difference = size[:, None] + np.asarray(whole @ weights)[None, :] - 2 * common
            for i in np.flatnonzero(((difference > 0) & (difference < rules.min_count)).any(axis=1)):
                yield int(group_of[i])
