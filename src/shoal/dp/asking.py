"""``shoal.query``: check, count where the rows are, charge the ledger, draw the noise; in this order."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from shoal.dp.answers import COVERS, Answers, NoisyAnswer, PlannedPiece, QueryPlan
from shoal.dp.asks import (
    Ask,
    ContributionsAsk,
    CountAsk,
    MeanAsk,
    PersonsAsk,
    Piece,
    SumAsk,
    TableAsk,
    require_few_cells,
)
from shoal.dp.budget import Budget, BudgetError
from shoal.dp.counting import ExactStatistics, GroupKey, PrivacyUnit, all_keys, counted_exactly
from shoal.dp.described import CellsOf, Described
from shoal.dp.ledger import Ledger
from shoal.dp.noise import ChangeBound, Noise, Threshold, calibrated, epsilon_of, thresholded
from shoal.dp.quantiles import QuantileAsk
from shoal.dp.regression import RegressionAsk
from shoal.engines.base import Engine
from shoal.engines.data import Data
from shoal.engines.grouping import Groupable, groupable
from shoal.errors import PolicyError
from shoal.policy import Policy

NO_LEDGER = "No ledger: this cost is not added to that of other queries about the same people."
GIVEN_DELTA = Decimal("1e-6")  # at which the ε of a ρ is told; that of unknown keys comes on top


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
    policy: Policy | None = None,
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
    request = _AskedOf(
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
        policy=policy,
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
    policy: Policy | None = None,
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
    request = _AskedOf(
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
        policy=policy,
    )
    return _opened(data, budget, ledger, request).plan()


@dataclass(frozen=True)
class Calibrated:
    """A query, with the noise and the cost of each of its pieces."""

    ask: Ask
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
    known: Mapping[str, CellsOf]
    asks: tuple[Calibrated, ...]
    threshold: Threshold | None
    confidence: float

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the answers must know."""
        found = [COVERS]
        if self.budget.loss == "rho":
            epsilon = epsilon_of(self.budget.amount, GIVEN_DELTA)
            delta = Budget("epsilon", self.budget.amount, GIVEN_DELTA + self.budget.delta).as_dict()["delta"]
            found.append(f"{self.budget} is at most ε = {epsilon:.3g} with δ = {delta}.")
        if self.ledger is None:
            found.append(NO_LEDGER)
        return tuple(found)

    def plan(self) -> QueryPlan:
        """Return how exact the answers will be."""
        pieces = [
            PlannedPiece(
                one.ask.name, piece.name, str(noise), noise.half_width(self.confidence) * piece.unit, str(cost)
            )
            for one in self.asks
            for piece, noise, cost in zip(one.pieces, one.noises, one.costs, strict=True)
        ]
        left = None if self.ledger is None else self.ledger.check(self.budget, unit=self.unit.name).left
        threshold = None if self.threshold is None else self.threshold.at_least
        return QueryPlan(tuple(pieces), self.budget, self.confidence, self.unit.protected, threshold, left, self.notes)


def _query(prepared: Prepared) -> Answers:
    if prepared.ledger is not None:
        prepared.ledger.check(prepared.budget, unit=prepared.unit.name)  # before the engine works for nothing
    asks = [one.ask for one in prepared.asks]
    exact = counted_exactly(prepared.rows, asks, prepared.by, prepared.unit, people=prepared.keys is None)
    left = None
    if prepared.ledger is not None:
        names = [ask.name for ask in asks] + ([f"by {', '.join(prepared.by)}"] if prepared.by else [])
        prepared.ledger.charge(prepared.budget, names, unit=prepared.unit.name, data=prepared.rows.fingerprint)
        left = prepared.ledger.read().left
    # From here on the cost is on the disk, whatever happens.
    groups = _groups(prepared, exact)
    answers: list[NoisyAnswer] = []
    for i, one in enumerate(prepared.asks):
        whole = isinstance(one.ask, ContributionsAsk)
        answers += _answered(
            one, [()] if whole else groups, () if whole else prepared.by, exact.exact[i], prepared.confidence
        )
    return Answers(tuple(answers), prepared.budget, prepared.confidence, prepared.unit.protected, left, prepared.notes)


def _groups(prepared: Prepared, exact: ExactStatistics) -> list[GroupKey]:
    """Return the groups to answer for: all that are known, or those that enough people are in."""
    if prepared.keys is not None:
        return all_keys(prepared.keys)
    allowed = [prepared.known.get(name) for name in prepared.by]
    people = {
        json.dumps(key): n
        for key, n in exact.people.items()
        if all(cells is None or value in cells.categories for value, cells in zip(key, allowed, strict=True))
    }
    shown = {} if prepared.threshold is None else prepared.threshold.shown(people)
    return sorted((tuple(json.loads(key)) for key in shown), key=lambda key: [text or "" for text in key])


def _answered(
    one: Calibrated,
    groups: Sequence[GroupKey],
    by: Sequence[str],
    exact: Mapping[GroupKey, list[list[int]]],
    confidence: float,
) -> list[NoisyAnswer]:
    """Draw the noise of all groups, piece by piece, and derive the figures of each group."""
    noisy: list[list[list[int]]] = [[] for _ in groups]
    for j, (piece, noise) in enumerate(zip(one.pieces, one.noises, strict=True)):
        zeros = [0] * piece.size
        drawn = noise.draw([n for key in groups for n in (exact[key][j] if key in exact else zeros)])
        for i in range(len(groups)):
            noisy[i].append(drawn[i * piece.size : (i + 1) * piece.size])
    return [
        NoisyAnswer(one.ask.name, dict(zip(by, key, strict=True)), figure)
        for key, statistics in zip(groups, noisy, strict=True)
        for figure in one.ask.figures(statistics, one.noises, confidence)
    ]


# ── checked before a value is read ──────────────────────────────────────────────────────────────────────────


def _opened(
    data: Data | Engine,
    budget: Budget | Mapping[str, Any] | str,
    ledger: Ledger | str | Path | None,
    request: _AskedOf,
) -> Prepared:
    if ledger is not None and not isinstance(ledger, Ledger):
        ledger = Ledger(ledger)
    return request.prepared(data, Budget.of(budget), ledger)


@dataclass(frozen=True)
class _AskedOf:
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
        if not 0.5 <= self.confidence < 1:
            raise PolicyError("confidence must be at least 0.5 and less than 1")
        unit = self._unit()
        described = Described.of(self.bounds, self.categories, self.bins, self.granularity, self.policy)
        asks = self._asks(described, unit)
        by = tuple(_listed("by", self.by))
        known = {name: CellsOf(name, described.categories[name]) for name in by if name in described.categories}
        grouped = bool(by)
        keys = tuple(known[name] for name in by) if len(known) == len(by) else None
        if keys is None and not budget.delta:
            unlisted = ", ".join(repr(name) for name in by if name not in known)
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
        require_few_cells(asks, unit.contributions, grouped, n_groups)
        for ask in asks:
            if isinstance(ask, TableAsk):
                ask.require_own_labels()
        rows = groupable(data, self.policy, even_empty=True)  # a refusal would reveal that nobody is in it
        names = [*by, *(name for ask in asks for name in ask.columns), *([self.entity] if self.entity else [])]
        rows.require(names)
        rows = rows.only(names)
        rows.require_numbers([name for ask in asks for name in ask.numbers])
        shares = budget.shares([1] * (len(asks) + (keys is None)))
        threshold = None
        if keys is None:
            c = unit.contributions
            threshold = thresholded(budget.loss, shares.pop(), budget.delta, ChangeBound(c, c, 1, c))
        calibrations = tuple(
            _calibrated(ask, Budget(budget.loss, share), unit, grouped) for ask, share in zip(asks, shares, strict=True)
        )
        return Prepared(rows, budget, ledger, unit, by, keys, known, calibrations, threshold, self.confidence)

    def _unit(self) -> PrivacyUnit:
        unit = PrivacyUnit.checked(self.entity, self.contributions)
        if self.entity is None and (self.persons or self.records_per_person is not None):
            raise PolicyError("persons and records_per_person need an entity column", option="--entity")
        if self.records_per_person is not None and not 1 <= self.records_per_person <= 1000:
            raise PolicyError("records_per_person must be between 1 and 1000")
        return unit

    def _asks(self, described: Described, unit: PrivacyUnit) -> list[Ask]:
        values: Callable[[str], Any] = described.fixed_point
        asks: list[Ask] = [CountAsk()] if self.count else []
        asks += [PersonsAsk()] if self.persons else []
        asks += [SumAsk(values(name)) for name in _listed("sum", self.sum)]
        asks += [MeanAsk(values(name)) for name in _listed("mean", self.mean)]
        asks += [TableAsk((described.cells(name),)) for name in _listed("histogram", self.histogram)]
        asks += [TableAsk(tuple(described.cells(name) for name in _listed("table", names))) for names in self.table]
        asks += [QuantileAsk(values(name), tuple(shares)) for name, shares in (self.quantile or {}).items()]
        asks += [
            RegressionAsk(values(target), tuple(values(name) for name in _listed("regression", names)))
            for target, names in (self.regression or {}).items()
        ]
        if self.records_per_person is not None:
            asks.append(ContributionsAsk(self.records_per_person))
        if not asks:
            raise PolicyError("nothing is asked", "ask for count, sum, mean, histogram, table, quantile or regression")
        return asks


def _listed(what: str, names: Sequence[str]) -> list[str]:
    if isinstance(names, str):
        raise PolicyError(f"{what} is a list of columns, not one text", f"write {what}=[{names!r}]")
    if len(set(names)) < len(names):
        raise PolicyError(f"{what} names a column twice")
    return list(names)


def _calibrated(ask: Ask, budget: Budget, unit: PrivacyUnit, grouped: bool) -> Calibrated:
    pieces = ask.pieces(unit.contributions, grouped)
    costs = budget.shares([1] * len(pieces))
    noises = [calibrated(budget.loss, cost, piece.sensitivity) for piece, cost in zip(pieces, costs, strict=True)]
    return Calibrated(ask, pieces, tuple(noises), tuple(costs))
