"""``shoal.synthesize``: a synthetic table from noisy marginals, within a budget."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.engines.base import Engine
from shoal.engines.data import Data
from shoal.engines.formats.formulas import Formulas
from shoal.engines.formats.table_files import TEXT, write_table_file
from shoal.engines.grouping import Groupable, groupable
from shoal.errors import PolicyError
from shoal.policy import Policy, PolicySource, policy_of
from shoal.results.arguments import MAX_SEED, require_confidence, whole_argument
from shoal.results.dp.answers import PlannedPiece, QueryPlan
from shoal.results.dp.budget import Budget, BudgetError
from shoal.results.dp.counting import PrivacyUnit, counted_exactly
from shoal.results.dp.ledger import Ledger
from shoal.results.dp.marginals import (
    MeasuredTable,
    TreePair,
    closes_a_circle,
    consistent,
    dependence,
    drawn_rows,
    spanning_tree,
)
from shoal.results.dp.noise import Noise, calibrated, chosen
from shoal.results.dp.public_schema import CellsOf, PublicSchema
from shoal.results.dp.query import NO_LEDGER
from shoal.results.dp.statistics import TableStatistic, require_few_cells
from shoal.tables.frequency import Codes, Floats

MAX_COLUMNS = 40  # 780 pairs, each a GROUP BY
MAX_ROWS = 20_000_000  # with hardly any budget, the noisy total may be anything
NOT_KEPT = (
    "Only the counts of columns and of the named pairs are kept, with noise; what else the rows seem to show follows "
    "from them. Records with a missing or unlisted value are in no count of that column."
)


@dataclass(frozen=True, eq=False)
class SyntheticTable:
    """Synthetic rows, the counts of the original that they reproduce, and the privacy spent."""

    table: pa.Table
    pairs: tuple[tuple[str, str], ...]
    cost: Budget
    unit: str
    left: Budget | None = None
    notes: tuple[str, ...] = ()

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the rows, completely or not at all."""
        table = self.table
        if Path(path).suffix.lower() in TEXT:
            table = Formulas().escaped(table)  # a label must not be run by a spreadsheet
        write_table_file(table, Path(path), force=force, verify=lambda _: None)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, without the rows."""
        return {
            "rows": self.table.num_rows,
            "columns": self.table.column_names,
            "pairs": [list(pair) for pair in self.pairs],
            "cost": self.cost.as_dict(),
            "left": None if self.left is None else self.left.as_dict(),
            "unit": self.unit,
            "notes": list(self.notes),
        }


def synthesize(
    data: Data | Engine,
    *,
    budget: Budget | Mapping[str, Any] | str,
    ledger: Ledger | str | Path | None = None,
    rows: int | None = None,
    seed: int | None = None,
    columns: Sequence[str] = (),
    pairs: Sequence[Sequence[str]] | None = None,
    bounds: Mapping[str, Sequence[Any]] | None = None,
    categories: Mapping[str, Sequence[Any]] | None = None,
    bins: Mapping[str, int | Sequence[Any]] | None = None,
    entity: str | None = None,
    contributions: int = 1,
    confidence: float = 0.95,
    policy: PolicySource | None = None,
) -> SyntheticTable:
    """Make a synthetic table with differential privacy, from noisy counts of columns and of pairs of columns.

    Parameters
    ----------
    data
        A path, a data frame, an Arrow or Ibis table, or an open engine.
    budget
        What may be spent, for instance ``"epsilon=1"`` or ``"rho=0.1"``.
    ledger
        The file that adds up what was spent on the same people; a ledger that cannot bear the budget refuses.
    rows
        How many rows to draw; by default as many as the noisy counts say, at least one.
    seed
        Repeats how rows are drawn from the noisy counts; the noise comes from a secure source and never repeats.
    columns
        The columns of the synthetic table, each with ``categories`` or ``bins``.
    pairs
        The pairs of columns to count, without circles; by default those that depend most on each other are chosen
        privately, and a third of the budget goes to columns, choice and pairs each.
    bounds
        For each column of numbers, the lowest and the highest value, from public knowledge.
    categories
        For each column, its possible values, from public knowledge; a ``policy`` with hierarchies may say them.
    bins
        For each column of numbers, the edges of its bins, or the number of bins within ``bounds``.
    entity
        The column that identifies people.
    contributions
        The most records that are used of one person.
    confidence
        The confidence of the widths in the plan.
    policy
        Says which values are missing, how decimals are written, and the values of columns with a hierarchy.

    Returns
    -------
    SyntheticTable
        The rows, the pairs of columns whose counts they follow, and what they cost.

    Raises
    ------
    PolicyError
        If a column lacks public categories or bins, or the pairs close a circle.
    BudgetError
        If the ledger cannot bear the budget, or the budget has a delta, which would be wasted.
    DataError
        If a column does not exist or has values of another kind.

    Examples
    --------
    >>> import pyarrow as pa, shoal
    >>> patients = pa.table({"age": [31, 34, 58, 61, 64] * 200, "ward": ["A", "A", "B", "B", "B"] * 200})
    >>> made = shoal.synthesize(
    ...     patients,
    ...     budget="epsilon=1",
    ...     rows=500,
    ...     columns=["age", "ward"],
    ...     bins={"age": [0, 40, 60, 120]},
    ...     categories={"ward": ["A", "B"]},
    ... )
    >>> made.table.num_rows, made.table.column_names, made.pairs
    (500, ['age', 'ward'], (('age', 'ward'),))
    """
    if rows is not None:
        whole_argument("rows", rows, 1, MAX_ROWS)
    if seed is not None:
        whole_argument("seed", seed, 0, MAX_SEED)
    request = _SynthesisRequest(
        columns=columns,
        pairs=pairs,
        bounds=bounds,
        categories=categories,
        bins=bins,
        entity=entity,
        contributions=contributions,
        confidence=confidence,
        policy=None if policy is None else policy_of(policy),
    )
    return request.prepared(data, Budget.of(budget), _ledger(ledger)).run(rows, seed)


def plan_synthesis(
    data: Data | Engine,
    *,
    budget: Budget | Mapping[str, Any] | str,
    ledger: Ledger | str | Path | None = None,
    columns: Sequence[str] = (),
    pairs: Sequence[Sequence[str]] | None = None,
    bounds: Mapping[str, Sequence[Any]] | None = None,
    categories: Mapping[str, Sequence[Any]] | None = None,
    bins: Mapping[str, int | Sequence[Any]] | None = None,
    entity: str | None = None,
    contributions: int = 1,
    confidence: float = 0.95,
    policy: PolicySource | None = None,
) -> QueryPlan:
    """Tell how exact the counts behind a synthetic table will be; no value is read and nothing is spent.

    Parameters
    ----------
    data
        A path, a data frame, an Arrow or Ibis table, or an open engine.
    budget
        What may be spent, for instance ``"epsilon=1"`` or ``"rho=0.1"``.
    ledger
        The file that adds up what was spent on the same people; a ledger that cannot bear the budget refuses.
    columns
        The columns of the synthetic table, each with ``categories`` or ``bins``.
    pairs
        The pairs of columns to count, without circles; by default those that depend most on each other are chosen
        privately, and a third of the budget goes to columns, choice and pairs each.
    bounds
        For each column of numbers, the lowest and the highest value, from public knowledge.
    categories
        For each column, its possible values, from public knowledge; a ``policy`` with hierarchies may say them.
    bins
        For each column of numbers, the edges of its bins, or the number of bins within ``bounds``.
    entity
        The column that identifies people.
    contributions
        The most records that are used of one person.
    confidence
        The confidence of the widths in the plan.
    policy
        Says which values are missing, how decimals are written, and the values of columns with a hierarchy.

    Returns
    -------
    QueryPlan
        For each count its noise, the half width of its interval and its cost.

    Raises
    ------
    PolicyError
        If a column lacks public categories or bins, or the pairs close a circle.
    BudgetError
        If the ledger cannot bear the budget, or the budget has a delta, which would be wasted.
    DataError
        If a column does not exist or has values of another kind.

    Examples
    --------
    >>> import pyarrow as pa, shoal
    >>> table = pa.table({"sex": ["f"], "ward": ["A"]})
    >>> known = {"sex": ["f", "m"], "ward": ["A", "B"]}
    >>> plan = shoal.plan_synthesis(table, budget="epsilon=3", columns=["sex", "ward"], categories=known)
    >>> [(piece.ask, piece.cost) for piece in plan.pieces]
    [('histogram of sex', '0.5'), ('histogram of ward', '0.5'), ('choice of 1 pairs', '1'), ('1 pairs', '1')]
    """
    request = _SynthesisRequest(
        columns=columns,
        pairs=pairs,
        bounds=bounds,
        categories=categories,
        bins=bins,
        entity=entity,
        contributions=contributions,
        confidence=confidence,
        policy=None if policy is None else policy_of(policy),
    )
    return request.prepared(data, Budget.of(budget), _ledger(ledger)).plan()


def _ledger(ledger: Ledger | str | Path | None) -> Ledger | None:
    return ledger if ledger is None or isinstance(ledger, Ledger) else Ledger(ledger)


@dataclass(frozen=True)
class _SynthesisRequest:
    columns: Sequence[str] = ()
    pairs: Sequence[Sequence[str]] | None = None
    bounds: Mapping[str, Sequence[Any]] | None = None
    categories: Mapping[str, Sequence[Any]] | None = None
    bins: Mapping[str, int | Sequence[Any]] | None = None
    entity: str | None = None
    contributions: int = 1
    confidence: float = 0.95
    policy: Policy | None = None

    def prepared(self, data: Data | Engine, budget: Budget, ledger: Ledger | None) -> PreparedSynthesis:
        require_confidence(self.confidence)
        if isinstance(self.columns, str) or not 1 <= len(self.columns) <= MAX_COLUMNS:
            raise PolicyError(f"columns must be a list of 1 to {MAX_COLUMNS} columns", option="--columns age,ward")
        if len(set(self.columns)) < len(self.columns):
            raise PolicyError("columns names a column twice")
        if self.entity in self.columns:
            raise PolicyError(
                f"column {self.entity!r} identifies people: a synthetic table has none", "leave it out of columns"
            )
        if budget.delta:
            raise BudgetError("a synthetic table needs no delta: it would be wasted", "leave it out")
        unit = PrivacyUnit.checked(self.entity, self.contributions)
        described = PublicSchema.from_arguments(self.bounds, self.categories, self.bins, None, self.policy)
        cells = tuple(described.cells(name) for name in self.columns)
        pairs = self._pairs()
        candidates = list(combinations(range(len(cells)), 2)) if pairs is None else pairs
        require_few_cells([TableStatistic((cells[i], cells[j])) for i, j in candidates], unit.contributions, False, 1)
        rows = groupable(data, self.policy, even_empty=True)  # an error would reveal that the table is empty
        names = [*self.columns, *([self.entity] if self.entity else [])]
        rows.require(names)
        rows = rows.only(names)
        rows.require_numbers([column_cells.column for column_cells in cells if column_cells.edges])
        n_pairs = len(cells) - 1 if pairs is None else len(pairs)
        weights = (1, 1, 1) if pairs is None and n_pairs else (1, 0, 1 if n_pairs else 0)
        column_share, choice, pair_share = budget.shares(weights)
        return PreparedSynthesis(
            rows, budget, ledger, unit, cells, pairs, self.confidence,
            _shared(budget, column_share, len(cells)), _shared(budget, choice, n_pairs),
            _shared(budget, pair_share, n_pairs),
        )  # fmt: skip

    def _pairs(self) -> list[TreePair] | None:
        if self.pairs is None:
            return None
        places = {name: i for i, name in enumerate(self.columns)}
        pairs = []
        for pair in self.pairs:
            if isinstance(pair, str) or len(pair) != 2 or not all(name in places for name in pair):
                raise PolicyError("pairs are lists of two of the columns", option="--pair age,ward")
            i, j = sorted(places[name] for name in pair)
            pairs.append((i, j))
        if closes_a_circle(len(self.columns), pairs):
            raise PolicyError(
                "the pairs close a circle, or one is named twice: rows are drawn along a tree",
                "leave out one pair of the circle",
            )
        return pairs


def _shared(budget: Budget, amount: Decimal, parts: int) -> Decimal:
    """Return one of equal parts of an amount, rounded down."""
    return Budget(budget.loss, amount).shares([1] * parts)[0] if parts and amount else Decimal(0)


@dataclass(frozen=True, eq=False)
class PreparedSynthesis:
    """A checked request over opened rows, with the cost of each column, choice and pair; no value was read yet."""

    source: Groupable
    budget: Budget
    ledger: Ledger | None
    unit: PrivacyUnit
    cells: tuple[CellsOf, ...]
    pairs: list[TreePair] | None  # None: they are chosen
    confidence: float
    column_cost: Decimal
    choice_cost: Decimal
    pair_cost: Decimal

    @property
    def costs(self) -> list[Decimal]:
        """What every measurement and choice costs, each by itself."""
        n_pairs = len(self.cells) - 1 if self.pairs is None else len(self.pairs)
        choices = n_pairs if self.pairs is None else 0
        return [self.column_cost] * len(self.cells) + [self.choice_cost] * choices + [self.pair_cost] * n_pairs

    @property
    def _notes(self) -> tuple[str, ...]:
        return (NOT_KEPT,) if self.ledger is not None else (NOT_KEPT, NO_LEDGER)

    def noise_of(self, statistic: TableStatistic) -> Noise:
        """Return the noise of a table of one or two columns."""
        cost = self.column_cost if len(statistic.cells) == 1 else self.pair_cost
        return calibrated(self.budget.loss, cost, statistic.pieces(self.unit.contributions, False)[0].sensitivity)

    def plan(self) -> QueryPlan:
        """Return how exact the counts will be."""
        pieces = []
        for column_cells in self.cells:
            statistic = TableStatistic((column_cells,))
            noise = self.noise_of(statistic)
            width = noise.half_width(self.confidence)
            pieces.append(PlannedPiece(statistic.name, "records", str(noise), width, _short(self.column_cost)))
        n_pairs = len(self.cells) - 1 if self.pairs is None else len(self.pairs)
        if self.pairs is None and n_pairs:
            # Each chosen pair is within this of the best one (McSherry, Talwar 2007; McKenna, Sheldon 2020).
            spend = float(self.choice_cost)
            scale = 2 * self.unit.contributions / (spend if self.budget.loss == "epsilon" else math.sqrt(8 * spend))
            max_error = scale * math.log(math.comb(len(self.cells), 2) / (1 - self.confidence))
            choice_name = f"choice of {n_pairs} pairs"
            pieces.append(PlannedPiece(choice_name, "dependence", "noisy maximum", max_error, _short(self.choice_cost)))
        if n_pairs:
            noise = self.noise_of(TableStatistic((self.cells[0], self.cells[1])))
            width = noise.half_width(self.confidence)
            pieces.append(PlannedPiece(f"{n_pairs} pairs", "records", str(noise), width, _short(self.pair_cost)))
        left = None if self.ledger is None else self.ledger.check(self.budget, unit=self.unit.name).left
        return QueryPlan(tuple(pieces), self.budget, self.confidence, self.unit.protected, left=left, notes=self._notes)

    def run(self, n_rows: int | None, seed: int | None) -> SyntheticTable:
        """Count, charge the ledger, draw the noise, draw the rows."""
        if self.ledger is not None:
            self.ledger.check(self.budget, unit=self.unit.name)  # before the engine works for nothing
        candidates = list(combinations(range(len(self.cells)), 2)) if self.pairs is None else self.pairs
        singles = [TableStatistic((cells,)) for cells in self.cells]
        paired = [TableStatistic((self.cells[i], self.cells[j])) for i, j in candidates]
        counted = counted_exactly(self.source, [*singles, *paired], (), self.unit, people=False).exact
        exact = [
            np.array(
                group_counts[()][0] if () in group_counts else np.zeros(math.prod(statistic.shape)), np.float64
            ).reshape(statistic.shape)
            for statistic, group_counts in zip([*singles, *paired], counted, strict=True)
        ]
        left = None
        if self.ledger is not None:
            names = [f"synthetic table of {', '.join(cells.column for cells in self.cells)}"]
            self.ledger.charge(self.budget, names, unit=self.unit.name, data=self.source.fingerprint)
            left = self.ledger.read().left
        # From here on the cost is on the disk, whatever happens.
        columns = [self._measured(statistic, cells) for statistic, cells in zip(singles, exact, strict=False)]
        of_pair = dict(zip(candidates, zip(paired, exact[len(singles) :], strict=True), strict=True))
        tree = self.pairs if self.pairs is not None else self._chosen({p: of_pair[p][1] for p in candidates}, columns)
        marginals = consistent(columns, {pair: self._measured(*of_pair[pair]) for pair in tree})
        n_rows = min(max(round(marginals.total), 1), MAX_ROWS) if n_rows is None else n_rows  # no file has no rows
        codes = drawn_rows(marginals, n_rows, np.random.default_rng(seed))
        labelled = {cells.column: _labelled(cells, codes[:, i]) for i, cells in enumerate(self.cells)}
        names_of = [(self.cells[i].column, self.cells[j].column) for i, j in tree]
        return SyntheticTable(pa.table(labelled), tuple(names_of), self.budget, self.unit.protected, left, self._notes)

    def _measured(self, statistic: TableStatistic, exact: Floats) -> MeasuredTable:
        noise = self.noise_of(statistic)
        noisy = np.array(noise.draw([int(n) for n in exact.ravel()]), np.float64).reshape(exact.shape)
        return MeasuredTable(noisy, (2 if noise.law == "laplace" else 1) * noise.scale**2)

    def _chosen(self, exact: Mapping[TreePair, Floats], columns: Sequence[MeasuredTable]) -> list[TreePair]:
        """Choose a tree of pairs that depend on each other, each by a noisy maximum."""
        margins = [np.maximum(margin.noisy, 0.0) for margin in columns]
        scores = {(i, j): dependence(table, margins[i], margins[j]) for (i, j), table in exact.items()}

        def choose(pairs: Sequence[TreePair]) -> int:
            return chosen(self.budget.loss, self.choice_cost, [scores[p] for p in pairs], self.unit.contributions)

        return spanning_tree(len(self.cells), choose)


def _labelled(cells: CellsOf, codes: Codes) -> pa.Array:
    """Return a column of labels; a listed null is a null."""
    return pa.array(cells.labels, pa.string()).take(pa.array(codes))


def _short(cost: Decimal) -> str:
    return f"{cost.normalize():f}"
