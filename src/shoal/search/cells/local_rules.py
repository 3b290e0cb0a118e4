"""What the requirements ask of the sensitive values of a class, size by size, for the bound of ``local``.

Every rule is a consequence of the requirements, so a class that breaks one fails; one that breaks none may fail too.
Requirements on how varied values are (distinct, entropy and recursive ℓ-diversity) do not ask which values they are,
and are the easier to meet the more evenly the records spread. So for a class of n records it is enough to try two
histograms: one value with h records and all others even gives the most records of a value, and d values with even
counts give the fewest different values. Other requirements limit the share of every value, or a sum over the values.

All comparisons are loose by ``LOOSE``, which is more than verdicts allow for rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from shoal.models.base import SensitiveModel
from shoal.models.closeness import DeltaDisclosure, TCloseness, line_of_values
from shoal.models.diversity import DistinctDiversity, EntropyDiversity, RecursiveDiversity
from shoal.models.shares import ShareBound
from shoal.models.size import MaximumRisk, PSensitive
from shoal.search.problem import Problem
from shoal.tables.frequency import Codes, Domain, Floats

LOOSE = 1e-9
SIZES = 16  # beyond the smallest, that are looked at one by one
LARGEST = 100  # of these; prices of so many records of a value are kept in order
TESTS = 8  # of subtrees
MANY = 500  # values; beyond, only the smallest size is used
SEARCHED = 1_000  # sizes among which the smallest is looked for


@dataclass(frozen=True, eq=False)
class SizeRule:
    """What a class of ``size`` records must satisfy; of the last rule, also all larger classes, by their shares.

    A test wants a sum of at least ``wanted``: the first ``full`` records of a value add ``rate`` each, and the next one
    ``part``.
    """

    size: int
    caps: Floats  # (values)  the most records of each value
    floors: Floats  # (values)  the fewest
    distinct: int  # different values at the least
    rate: Floats  # (tests, values)
    full: Floats  # (tests, values)
    part: Floats  # (tests, values)
    wanted: Floats  # (tests)


@dataclass(frozen=True, eq=False)
class ClassRules:
    """The rules of one sensitive column, and the smallest size of a class under those of all columns."""

    least: int
    column: str | None  # None if there are no rules beyond the size
    rows: tuple[SizeRule, ...]


def class_rules_of(problem: Problem) -> ClassRules:
    """Return the rules that the requirements of a problem imply; of several columns, those with the largest classes."""
    table = problem.table
    k = problem.least_class_size
    for model in problem.models:
        if isinstance(model, MaximumRisk):  # a class has at least as many records as persons
            k = max(k, math.ceil((1 - LOOSE) / model.max))
    best: tuple[int, _ColumnRules] | None = None
    for name, histogram in table.sensitive.items():
        asked = [m for m in problem.models if isinstance(m, SensitiveModel) and m.column in (None, name)]
        if not asked or histogram.domain is None or histogram.counts.sum() != problem.n_records:
            continue
        rules = _ColumnRules(histogram.domain, asked)
        if rules.asks:
            least = rules.least_size(k, problem.n_records)
            best = (least, rules) if best is None or least > best[0] else best
    if best is None:
        return ClassRules(k, None, ())
    least, rules = best
    if len(rules.caps) > MANY:
        return ClassRules(least, None, ())
    last = min(least, LARGEST) if least >= LARGEST else min(least + SIZES, LARGEST)
    rows = [rule for n in range(least, last) if (rule := rules.at(n)) is not None]
    return ClassRules(least, rules.domain.column, (*rows, rules.beyond(last)))


class _ColumnRules:
    """The requirements on one sensitive column."""

    def __init__(self, domain: Domain, asked: Sequence[SensitiveModel]) -> None:
        q = domain.shares
        self.domain = domain
        self.n_values = int(np.count_nonzero(domain.whole))
        self.silent = np.zeros(len(q), np.bool_) if domain.informative is None else domain.informative < 0
        self.varied: list[Callable[[Floats], bool]] = []
        self.distinct = 1
        self.caps = np.ones(len(q))  # shares
        self.floors = np.zeros(len(q))
        self.tests: list[_Test] = []
        for model in asked:
            self._add(model, q)
        self.asks = bool(self.varied or self.tests) or self.distinct > 1 or (self.caps < 1).any() or self.floors.any()

    def _add(self, model: SensitiveModel, q: Floats) -> None:
        match model:
            case DistinctDiversity():
                self.distinct = max(self.distinct, model.l)
            case PSensitive():
                self.distinct = max(self.distinct, model.p)
            case EntropyDiversity():
                self.varied.append(_with_entropy(math.log(model.l)))
            case RecursiveDiversity():
                self.varied.append(_recursive(model.c, model.l))
            case ShareBound():
                self.caps = np.minimum(self.caps, model.caps(self.domain))
            case DeltaDisclosure():
                self.caps = np.minimum(self.caps, q * math.exp(min(model.delta, 700.0)))
                if model.absent == "fail":
                    self.floors = np.maximum(self.floors, q * math.exp(-min(model.delta, 700.0)))
            case TCloseness(distance="ordered" | "numeric"):
                self._add_line(model)
            case TCloseness(distance="equal"):
                self._add_overlap(q, model.t)
            case TCloseness(distance="kl"):  # Pinsker's inequality, as for the largest part that could pass
                self._add_overlap(q, (model.t / 2) ** 0.5)
            case TCloseness(distance="js"):
                self._add_overlap(q, (2 * model.t) ** 0.5)
            case TCloseness(distance="hierarchical") if self.domain.hierarchy is not None:
                self._add_subtrees(q, model.t, self.domain.hierarchy)

    def _add_overlap(self, q: Floats, t: float) -> None:
        """Shares p within t of q: Σ min(p, q) ≥ 1 − t, and no share is above its own by more than t."""
        if t < 1:
            self.caps = np.minimum(self.caps, q + t)
            self.tests.append(_Test(np.ones(len(q)), q, 1 - t))

    def _add_line(self, model: TCloseness) -> None:
        """Shares within t on a line: the means of a function differ by t at most if its slope is nowhere above 1."""
        if (line := line_of_values(self.domain, model.distance)) is None:
            return
        place = np.append(0.0, np.cumsum(line.gaps))[line.places]
        mean = self.domain.shares @ place
        for f in (place, -place, np.abs(place - mean), -np.abs(place - mean)):
            self.tests.append(_Test(f, np.full(len(f), np.inf), float(self.domain.shares @ f) - model.t))

    def _add_subtrees(self, q: Floats, t: float, codes: Codes) -> None:
        """Shares within t in a tree: what leaves a subtree moves at least to its parent, at the price of its height."""
        height = len(codes) - 1
        for level in range(height):
            within = t * height / (level + 1)
            for node in np.unique(codes[level]):
                inside = (codes[level] == node).astype(np.float64)
                share = float(q @ inside)
                if inside.sum() == 1:
                    self.caps = np.minimum(self.caps, np.where(inside > 0, share + within, 1.0))
                    self.floors = np.maximum(self.floors, inside * (share - within))
                elif len(self.tests) < TESTS and inside.sum() < len(q):
                    anything = np.full(len(q), np.inf)
                    self.tests.append(_Test(inside, anything, share - within))
                    self.tests.append(_Test(-inside, anything, -share - within))

    def least_size(self, k: int, n_records: int) -> int:
        """Return a size below which no class passes: the smallest from k on of which no rule excludes all classes."""
        end = min(n_records, k + SEARCHED)
        return next((n for n in range(k, end) if self.at(n) is not None), max(k, end))

    def at(self, n: int) -> SizeRule | None:
        """Return the rule for classes of n records; None if none can pass."""
        caps = np.minimum(np.floor(n * self.caps + n * LOOSE), self.domain.whole)
        floors = np.maximum(0.0, np.ceil(n * self.floors - n * LOOSE))
        distinct = self.distinct
        if self.varied:
            h = _last(math.ceil(n / self.n_values), n, lambda h: self._passes(_one_of(h, n, self.n_values)))
            d = _first(1, min(n, self.n_values), lambda d: self._passes(_even(n, d)))
            if h is None or d is None:
                return None
            caps, distinct = np.where(self.silent, caps, np.minimum(caps, h)), max(distinct, d)
        if distinct > n or np.count_nonzero(caps) < distinct or (floors > caps).any():
            return None
        if floors.sum() > n or caps.sum() < n:
            return None
        made = [test.at(n) for test in self.tests]
        if any(_most(n, caps, rate, full, part) < wanted for rate, full, part, wanted in made):
            return None
        return _rule(n, caps, floors, distinct, made)

    def beyond(self, n: int) -> SizeRule:
        """Return the rule for classes of n and more records, by shares."""
        caps = self.caps
        if self.varied:
            low, high = 1 / self.n_values, 1.0
            while high - low > LOOSE:
                middle = (low + high) / 2
                passes = self._passes(_one_of(middle, 1.0, self.n_values))
                low, high = (middle, high) if passes else (low, middle)
            caps = np.where(self.silent, caps, np.minimum(caps, high))
        caps = np.minimum(n * (caps + LOOSE), n)
        floors = np.maximum(0.0, n * (self.floors - LOOSE))
        return _rule(n, caps, floors, 0, [test.beyond(n) for test in self.tests])

    def _passes(self, histogram: Floats) -> bool:
        return all(varied(histogram) for varied in self.varied)


@dataclass(frozen=True, eq=False)
class _Test:
    """A sum over the records of a class: those of a value up to a share add a rate each; the mean must not be less."""

    rate: Floats
    shares: Floats
    least: float

    def at(self, n: int) -> tuple[Floats, Floats, Floats, float]:
        """Return rate, full, part and wanted for a class of n records."""
        full = np.floor(n * self.shares)
        part = np.where(np.isfinite(full), n * self.shares - np.where(np.isfinite(full), full, 0), 0.0) * self.rate
        return self.rate, full, part, n * (self.least - LOOSE)

    def beyond(self, n: int) -> tuple[Floats, Floats, Floats, float]:
        """Return the same where records can be divided."""
        return self.rate, n * self.shares, np.zeros(len(self.rate)), n * (self.least - LOOSE)


def _rule(
    n: int, caps: Floats, floors: Floats, distinct: int, tests: Sequence[tuple[Floats, Floats, Floats, float]]
) -> SizeRule:
    none = np.zeros(len(caps))
    made = list(tests) or [(none, none, none, -math.inf)]
    rate, full, part = (np.array([test[i] for test in made]) for i in range(3))
    return SizeRule(n, caps, floors, distinct, rate, full, part, np.array([test[3] for test in made]))


def _most(n: int, caps: Floats, rate: Floats, full: Floats, part: Floats) -> float:
    """Return the largest sum that n records can have under the caps."""
    first = np.minimum(caps, full)
    second = np.where(part > 0, np.minimum(caps - first, 1), 0.0)
    rates = np.concatenate([rate, part, np.zeros(len(caps))])
    amounts = np.concatenate([first, second, caps - first - second])
    order = np.argsort(-rates, kind="stable")
    taken = np.clip(n - (np.cumsum(amounts[order]) - amounts[order]), 0, amounts[order])
    return float(rates[order] @ taken) + LOOSE


# --- how varied ----------------------------------------------------------------------------------------------------


def _with_entropy(least: float) -> Callable[[Floats], bool]:
    def passes(histogram: Floats) -> bool:
        p = histogram[histogram > 0] / histogram.sum()
        return float(-(p @ np.log(p))) >= least - LOOSE

    return passes


def _recursive(c: float, l: int) -> Callable[[Floats], bool]:
    def passes(histogram: Floats) -> bool:
        ranked = np.sort(histogram)[::-1]
        return float(ranked[0]) * (1 - LOOSE) < c * float(ranked[l - 1 :].sum()) + LOOSE * LOOSE

    return passes


def _even(n: float, d: int) -> Floats:
    """Return n whole records over d values, as evenly as possible."""
    return np.floor((n + np.arange(d)) / d)


def _one_of(h: float, n: float, m: int) -> Floats:
    """Return one value with h of n records, and the others over m − 1 values: even, or whole where n is."""
    if m == 1:
        return np.array([n])
    rest = np.full(m - 1, (n - h) / (m - 1)) if isinstance(n, float) else _even(n - h, m - 1)
    return np.append(rest, h)


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int | None:
    """Return the smallest number from which on something holds, by bisection; None if there is none."""
    if low > high or not holds(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _last(low: int, high: int, holds: Callable[[int], bool]) -> int | None:
    """Return the largest number up to which something holds, by bisection; None if there is none."""
    found = _first(-high, -low, lambda x: holds(-x))
    return None if found is None else -found
