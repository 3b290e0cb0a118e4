"""``shoal.query``: check, count where the rows are, charge the ledger, draw the noise; in this order."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from shoal.engines.base import Engine
from shoal.engines.data import Data
from shoal.engines.grouping import Groupable, groupable
from shoal.errors import PolicyError
from shoal.policy import Policy, PolicySource, policy_of
from shoal.results.arguments import require_confidence, whole_argument
from shoal.results.dp.answers import COVERS, Answers, NoisyAnswer, PlannedPiece, QueryPlan
from shoal.results.dp.budget import Budget, BudgetError
from shoal.results.dp.counting import ExactStatistics, GroupKey, PrivacyUnit, all_keys, counted_exactly
from shoal.results.dp.ledger import Ledger
from shoal.results.dp.noise import ChangeBound, Noise, Threshold, calibrated, epsilon_of, thresholded
from shoal.results.dp.public_schema import CellsOf, PublicSchema
from shoal.results.dp.quantiles import QuantileStatistic
from shoal.results.dp.regression import RegressionStatistic
from shoal.results.dp.statistics import (
    ContributionsStatistic,
    CountStatistic,
    MeanStatistic,
    PersonsStatistic,
    Piece,
    QueryStatistic,
    SumStatistic,
    TableStatistic,
    require_few_cells,
)

NO_LEDGER = "No ledger: this cost is not added to that of other queries about the same people."
GIVEN_DELTA = Decimal("1e-6")  # for which the ε of a ρ is stated; the δ of unknown keys is added


def query(
    data: Data | Engine,
    *,
    budget: Budget | Mapping[str, Any] | str,
    ledger: Ledger | str | Path | None = None,
    count: bool = False,
    persons: bool = False,
    sum: Sequence[str] = (),
    mean: Sequence[str] = (),
    histogram: Sequence[str] = (),
    table: Sequence[Sequence[str]] = (),
    quantile: Mapping[str, Sequence[float]] | None = None,
    regression: Mapping[str, Sequence[str]] | None = None,
    records_per_person: int | None = None,
    by: Sequence[str] = (),
    bounds: Mapping[str, Sequence[Any]] | None = None,
    categories: Mapping[str, Sequence[Any]] | None = None,
    bins: Mapping[str, int | Sequence[Any]] | None = None,
    granularity: Mapping[str, Any] | None = None,
    entity: str | None = None,
    contributions: int = 1,
    people: int | None = None,
    confidence: float = 0.95,
    policy: PolicySource | None = None,
) -> Answers:
    """Answer queries about a table with differential privacy: the answers hardly depend on any one person.

    The budget is spent and written to the ledger before noise is drawn; ``plan_query``, which takes the same arguments,
    tells beforehand how exact the answers will be.

    Parameters
    ----------
    data
        A path, a data frame, an Arrow or Ibis table, or an open engine.
    budget
        What may be spent, for instance ``"epsilon=1"`` or ``"rho=0.1"``; with ``delta`` if keys are unknown.
    ledger
        The file that adds up what was spent on the same people; a ledger that cannot bear the budget refuses.
    count
        Count the records.
    persons
        Count the people; needs ``entity``.
    sum, mean
        Columns of numbers, each with ``bounds``.
    histogram
        Columns whose values are counted.
    table
        Lists of columns whose combinations of values are counted.
    quantile
        For each column, the shares below the wanted quantiles.
    regression
        For each column to explain, the columns that explain it.
    records_per_person
        A number n: count the people with 1, …, n and more records; needs ``entity``.
    by
        Columns to group by. Keys without ``categories`` are unknown: shown if enough people have them.
    bounds
        For each column of numbers, the lowest and the highest value, from public knowledge.
    categories
        For each column, its possible values, from public knowledge.
    bins
        For each column of numbers, the edges of its bins, or the number of bins within ``bounds``.
    granularity
        For each column of numbers, the unit in which its values are added up.
    entity
        The column that identifies people.
    contributions
        The most records that are used of one person.
    people
        The public number of people, which a large ``delta`` is compared with.
    confidence
        The confidence of the intervals.
    policy
        Says which values are missing and how decimals are written.

    Returns
    -------
    Answers
        The noisy answers with confidence intervals, what they cost and what the ledger has left.

    Raises
    ------
    PolicyError
        If nothing is asked for, or a column lacks the public bounds, categories or bins that it needs.
    BudgetError
        If the ledger cannot bear the budget, or the budget needs a delta, or would waste one.
    DataError
        If a column does not exist or has values of another kind.

    Examples
    --------
    >>> import pyarrow as pa, shoal
    >>> patients = pa.table({"age": [31, 34, 58, 61, 64] * 200, "ward": ["A", "A", "B", "B", "B"] * 200})
    >>> answers = shoal.query(
    ...     patients,
    ...     budget="epsilon=1",
    ...     count=True,
    ...     mean=["age"],
    ...     by=["ward"],
    ...     bounds={"age": (0, 120)},
    ...     categories={"ward": ["A", "B"]},
    ... )
    >>> sorted({answer.ask for answer in answers}), len(answers)
    (['count', 'mean of age'], 4)
    """
    request = _QueryRequest(
        count=count,
        persons=persons,
        sum=sum,
        mean=mean,
        histogram=histogram,
        table=table,
        quantile=quantile,
        regression=regression,
        records_per_person=records_per_person,
        by=by,
        bounds=bounds,
        categories=categories,
        bins=bins,
        granularity=granularity,
        entity=entity,
        contributions=contributions,
        people=people,
        confidence=confidence,
        policy=None if policy is None else policy_of(policy),
    )
    return _query(_opened(data, budget, ledger, request))


def plan_query(
    data: Data | Engine,
    *,
    budget: Budget | Mapping[str, Any] | str,
    ledger: Ledger | str | Path | None = None,
    count: bool = False,
    persons: bool = False,
    sum: Sequence[str] = (),
    mean: Sequence[str] = (),
    histogram: Sequence[str] = (),
    table: Sequence[Sequence[str]] = (),
    quantile: Mapping[str, Sequence[float]] | None = None,
    regression: Mapping[str, Sequence[str]] | None = None,
    records_per_person: int | None = None,
    by: Sequence[str] = (),
    bounds: Mapping[str, Sequence[Any]] | None = None,
    categories: Mapping[str, Sequence[Any]] | None = None,
    bins: Mapping[str, int | Sequence[Any]] | None = None,
    granularity: Mapping[str, Any] | None = None,
    entity: str | None = None,
    contributions: int = 1,
    people: int | None = None,
    confidence: float = 0.95,
    policy: PolicySource | None = None,
) -> QueryPlan:
    """Tell how exact the answers of ``query`` will be, without reading a value of the data and without spending.

    Parameters
    ----------
    data
        A path, a data frame, an Arrow or Ibis table, or an open engine.
    budget
        What may be spent, for instance ``"epsilon=1"`` or ``"rho=0.1"``; with ``delta`` if keys are unknown.
    ledger
        The file that adds up what was spent on the same people; a ledger that cannot bear the budget refuses.
    count
        Count the records.
    persons
        Count the people; needs ``entity``.
    sum, mean
        Columns of numbers, each with ``bounds``.
    histogram
        Columns whose values are counted.
    table
        Lists of columns whose combinations of values are counted.
    quantile
        For each column, the shares below the wanted quantiles.
    regression
        For each column to explain, the columns that explain it.
    records_per_person
        A number n: count the people with 1, …, n and more records; needs ``entity``.
    by
        Columns to group by. Keys without ``categories`` are unknown: shown if enough people have them.
    bounds
        For each column of numbers, the lowest and the highest value, from public knowledge.
    categories
        For each column, its possible values, from public knowledge.
    bins
        For each column of numbers, the edges of its bins, or the number of bins within ``bounds``.
    granularity
        For each column of numbers, the unit in which its values are added up.
    entity
        The column that identifies people.
    contributions
        The most records that are used of one person.
    people
        The public number of people, which a large ``delta`` is compared with.
    confidence
        The confidence of the intervals.
    policy
        Says which values are missing and how decimals are written.

    Returns
    -------
    QueryPlan
        For each answer its noise, the half width of its interval and its cost.

    Raises
    ------
    PolicyError
        If nothing is asked for, or a column lacks the public bounds, categories or bins that it needs.
    BudgetError
        If the ledger cannot bear the budget, or the budget needs a delta, or would waste one.
    DataError
        If a column does not exist or has values of another kind.

    Examples
    --------
    >>> import pyarrow as pa, shoal
    >>> plan = shoal.plan_query(pa.table({"age": [31, 34]}), budget="epsilon=0.5", count=True)
    >>> plan.pieces[0].noise, plan.pieces[0].width
    ('discrete Laplace, scale 2', 6.0)
    """
    request = _QueryRequest(
        count=count,
        persons=persons,
        sum=sum,
        mean=mean,
        histogram=histogram,
        table=table,
        quantile=quantile,
        regression=regression,
        records_per_person=records_per_person,
        by=by,
        bounds=bounds,
        categories=categories,
        bins=bins,
        granularity=granularity,
        entity=entity,
        contributions=contributions,
        people=people,
        confidence=confidence,
        policy=None if policy is None else policy_of(policy),
    )
    return _opened(data, budget, ledger, request).plan()


@dataclass(frozen=True)
class Calibrated:
    """A query, with the noise and the cost of each of its pieces."""

    statistic: QueryStatistic
    pieces: tuple[Piece, ...]
    noises: tuple[Noise, ...]
    costs: tuple[Decimal, ...]


@dataclass(frozen=True, eq=False)
class Prepared:
    """Checked queries over opened rows; no value was read yet."""

    rows: Groupable
    budget: Budget
    ledger: Ledger | None
    unit: PrivacyUnit
    by: tuple[str, ...]
    keys: tuple[CellsOf, ...] | None  # None if some are unknown
    listed_cells: Mapping[str, CellsOf]
    calibrations: tuple[Calibrated, ...]
    threshold: Threshold | None
    confidence: float

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the answers must know."""
        lines = [COVERS]
        if self.budget.loss == "rho":
            epsilon = epsilon_of(self.budget.amount, GIVEN_DELTA)
            delta = Budget("epsilon", self.budget.amount, GIVEN_DELTA + self.budget.delta).as_dict()["delta"]
            lines.append(f"{self.budget} is at most ε = {epsilon:.3g} with δ = {delta}.")
        if self.ledger is None:
            lines.append(NO_LEDGER)
        return tuple(lines)

    def plan(self) -> QueryPlan:
        """Return how exact the answers will be."""
        pieces = [
            PlannedPiece(
                calibration.statistic.name,
                piece.name,
                str(noise),
                noise.half_width(self.confidence) * piece.unit,
                str(cost),
            )
            for calibration in self.calibrations
            for piece, noise, cost in zip(calibration.pieces, calibration.noises, calibration.costs, strict=True)
        ]
        left = None if self.ledger is None else self.ledger.check(self.budget, unit=self.unit.name).left
        threshold = None if self.threshold is None else self.threshold.at_least
        return QueryPlan(tuple(pieces), self.budget, self.confidence, self.unit.protected, threshold, left, self.notes)


def _query(prepared: Prepared) -> Answers:
    if prepared.ledger is not None:
        prepared.ledger.check(prepared.budget, unit=prepared.unit.name)  # before the engine works for nothing
    statistics = [calibration.statistic for calibration in prepared.calibrations]
    exact = counted_exactly(prepared.rows, statistics, prepared.by, prepared.unit, people=prepared.keys is None)
    left = None
    if prepared.ledger is not None:
        names = [statistic.name for statistic in statistics] + ([f"by {', '.join(prepared.by)}"] if prepared.by else [])
        prepared.ledger.charge(prepared.budget, names, unit=prepared.unit.name, data=prepared.rows.fingerprint)
        left = prepared.ledger.read().left
    # From here on the cost is on the disk, whatever happens.
    groups = _groups(prepared, exact)
    answers: list[NoisyAnswer] = []
    for i, calibration in enumerate(prepared.calibrations):
        whole = isinstance(calibration.statistic, ContributionsStatistic)
        answers += _answered(
            calibration, [()] if whole else groups, () if whole else prepared.by, exact.exact[i], prepared.confidence
        )
    return Answers(tuple(answers), prepared.budget, prepared.confidence, prepared.unit.protected, left, prepared.notes)


def _groups(prepared: Prepared, exact: ExactStatistics) -> list[GroupKey]:
    """Return the groups to answer for: all that are known, or those that enough people are in."""
    if prepared.keys is not None:
        return all_keys(prepared.keys)
    allowed = [prepared.listed_cells.get(name) for name in prepared.by]
    people = {
        json.dumps(key): n
        for key, n in exact.people.items()
        if all(cells is None or value in cells.categories for value, cells in zip(key, allowed, strict=True))
    }
    revealed = {} if prepared.threshold is None else prepared.threshold.revealed_counts(people)
    return sorted((tuple(json.loads(key)) for key in revealed), key=lambda key: [text or "" for text in key])


def _answered(
    calibration: Calibrated,
    groups: Sequence[GroupKey],
    by: Sequence[str],
    exact: Mapping[GroupKey, list[list[int]]],
    confidence: float,
) -> list[NoisyAnswer]:
    """Draw the noise of all groups, piece by piece, and derive the figures of each group."""
    noisy: list[list[list[int]]] = [[] for _ in groups]
    for j, (piece, noise) in enumerate(zip(calibration.pieces, calibration.noises, strict=True)):
        zeros = [0] * piece.size
        drawn = noise.draw([n for key in groups for n in (exact[key][j] if key in exact else zeros)])
        for i in range(len(groups)):
            noisy[i].append(drawn[i * piece.size : (i + 1) * piece.size])
    return [
        NoisyAnswer(calibration.statistic.name, dict(zip(by, key, strict=True)), figure)
        for key, statistics in zip(groups, noisy, strict=True)
        for figure in calibration.statistic.figures(statistics, calibration.noises, confidence)
    ]


# ── checked before a value is read ──────────────────────────────────────────────────────────────────────────


def _opened(
    data: Data | Engine,
    budget: Budget | Mapping[str, Any] | str,
    ledger: Ledger | str | Path | None,
    request: _QueryRequest,
) -> Prepared:
    if ledger is not None and not isinstance(ledger, Ledger):
        ledger = Ledger(ledger)
    return request.prepared(data, Budget.of(budget), ledger)


@dataclass(frozen=True)
class _QueryRequest:
    count: bool = False
    persons: bool = False
    sum: Sequence[str] = ()
    mean: Sequence[str] = ()
    histogram: Sequence[str] = ()
    table: Sequence[Sequence[str]] = ()
    quantile: Mapping[str, Sequence[float]] | None = None
    regression: Mapping[str, Sequence[str]] | None = None
    records_per_person: int | None = None
    by: Sequence[str] = ()
    bounds: Mapping[str, Sequence[Any]] | None = None
    categories: Mapping[str, Sequence[Any]] | None = None
    bins: Mapping[str, int | Sequence[Any]] | None = None
    granularity: Mapping[str, Any] | None = None
    entity: str | None = None
    contributions: int = 1
    people: int | None = None
    confidence: float = 0.95
    policy: Policy | None = None

    def prepared(self, data: Data | Engine, budget: Budget, ledger: Ledger | None) -> Prepared:
        require_confidence(self.confidence)
        unit = self._unit()
        described = PublicSchema.from_arguments(self.bounds, self.categories, self.bins, self.granularity, self.policy)
        statistics = self._statistics(described, unit)
        by = tuple(_listed("by", self.by))
        listed_cells = {name: CellsOf(name, described.categories[name]) for name in by if name in described.categories}
        grouped = bool(by)
        keys = tuple(listed_cells[name] for name in by) if len(listed_cells) == len(by) else None
        if keys is None and not budget.delta:
            unlisted = ", ".join(repr(name) for name in by if name not in listed_cells)
            raise BudgetError(
                f"the values of {unlisted} are not listed: which groups exist would reveal who is in the table",
                "list the categories, or add a delta to the budget: groups with enough people are then shown",
                option="--categories, --budget epsilon=1,delta=1e-8",
            )
        if keys is not None and budget.delta:
            raise BudgetError("delta is needed only if keys are unknown, and would be wasted", "leave it out")
        budget.require_small_delta(self.people)
        n_groups = 1
        for cells in keys or ():
            n_groups *= cells.n_cells
        require_few_cells(statistics, unit.contributions, grouped, n_groups)
        for statistic in statistics:
            if isinstance(statistic, TableStatistic):
                statistic.require_own_labels()
        rows = groupable(data, self.policy, even_empty=True)  # an error would reveal that the table is empty
        names = [
            *by,
            *(name for statistic in statistics for name in statistic.columns),
            *([self.entity] if self.entity else []),
        ]
        rows.require(names)
        rows = rows.only(names)
        rows.require_numbers([name for statistic in statistics for name in statistic.numbers])
        shares = budget.shares([1] * (len(statistics) + (keys is None)))
        threshold = None
        if keys is None:
            c = unit.contributions
            threshold = thresholded(budget.loss, shares.pop(), budget.delta, ChangeBound(c, c, 1, c))
        calibrations = tuple(
            _calibrated(statistic, Budget(budget.loss, share), unit, grouped)
            for statistic, share in zip(statistics, shares, strict=True)
        )
        return Prepared(rows, budget, ledger, unit, by, keys, listed_cells, calibrations, threshold, self.confidence)

    def _unit(self) -> PrivacyUnit:
        unit = PrivacyUnit.checked(self.entity, self.contributions)
        if self.entity is None and (self.persons or self.records_per_person is not None):
            raise PolicyError("persons and records_per_person need an entity column", option="--entity")
        if self.records_per_person is not None:
            whole_argument("records_per_person", self.records_per_person, 1, 1000)
        return unit

    def _statistics(self, described: PublicSchema, unit: PrivacyUnit) -> list[QueryStatistic]:
        values: Callable[[str], Any] = described.fixed_point
        statistics: list[QueryStatistic] = [CountStatistic()] if self.count else []
        statistics += [PersonsStatistic()] if self.persons else []
        statistics += [SumStatistic(values(name)) for name in _listed("sum", self.sum)]
        statistics += [MeanStatistic(values(name)) for name in _listed("mean", self.mean)]
        statistics += [TableStatistic((described.cells(name),)) for name in _listed("histogram", self.histogram)]
        statistics += [
            TableStatistic(tuple(described.cells(name) for name in _listed("table", names))) for names in self.table
        ]
        statistics += [QuantileStatistic(values(name), tuple(shares)) for name, shares in (self.quantile or {}).items()]
        statistics += [
            RegressionStatistic(values(target), tuple(values(name) for name in _listed("regression", names)))
            for target, names in (self.regression or {}).items()
        ]
        if self.records_per_person is not None:
            statistics.append(ContributionsStatistic(self.records_per_person))
        if not statistics:
            raise PolicyError("nothing is asked", "ask for count, sum, mean, histogram, table, quantile or regression")
        return statistics


def _listed(parameter: str, names: Sequence[str]) -> list[str]:
    if isinstance(names, str):
        raise PolicyError(f"{parameter} is a list of columns, not one text", f"write {parameter}=[{names!r}]")
    if len(set(names)) < len(names):
        raise PolicyError(f"{parameter} names a column twice")
    return list(names)


def _calibrated(statistic: QueryStatistic, budget: Budget, unit: PrivacyUnit, grouped: bool) -> Calibrated:
    pieces = statistic.pieces(unit.contributions, grouped)
    costs = budget.shares([1] * len(pieces))
    noises = [calibrated(budget.loss, cost, piece.sensitivity) for piece, cost in zip(pieces, costs, strict=True)]
    return Calibrated(statistic, pieces, tuple(noises), tuple(costs))
