"""What every figure means, over single records, in plain Python: dicts, lists and fractions, nothing of shoal.

Slow and literal on purpose: this is what the fast code is held against. Verdicts and costs are exact; where a
definition has a logarithm both sides are exponentiated, so that equality is equality.
"""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

Label = str | None
Node = tuple[int, ...]
Asked = Mapping[str, Any]  # one [[require]] of a policy


def exact(x: float) -> Fraction:
    """A number as it is written: 0.1 is one tenth."""
    return Fraction(str(x))


@dataclass(frozen=True)
class Column:
    """A quasi column: the label of every leaf on every level, null among the leaves where it occurs."""

    name: str
    paths: Mapping[Label, tuple[Label, ...]]
    ranges: tuple[Mapping[Label, Fraction], ...] | None = None  # per level, what a label costs where it is a range
    uncovered: bool = False  # whether the table has values without a path: they are at the top from the start

    @property
    def n_levels(self) -> int:
        return len(next(iter(self.paths.values())))

    @property
    def height(self) -> int:
        return self.n_levels - 1

    @property
    def top(self) -> Label:
        return next(iter(self.paths.values()))[-1]

    @property
    def domain(self) -> int:
        """D."""
        return len(self.paths)

    def label(self, value: Label, level: int) -> Label:
        return self.paths[value][level] if value in self.paths else self.top

    def leaves(self, value: Label, level: int) -> int:
        """M: the leaves under the label of a value; one that nobody knows may be any."""
        return self._sizes[level][self.paths[value][level]] if value in self.paths else self.domain

    @cached_property
    def _sizes(self) -> list[Counter[Label]]:
        return [Counter(path[level] for path in self.paths.values()) for level in range(self.n_levels)]

    def loss(self, value: Label, level: int) -> Fraction:
        """(M−1)/(D−1), or the share of the range; 1 at the top where there was anything to lose."""
        if value not in self.paths:
            return Fraction(1)
        if level == self.height:
            return Fraction(self.domain + self.uncovered > 1)
        if self.ranges is not None:
            return self.ranges[level][self.paths[value][level]]
        return Fraction(self.leaves(value, level) - 1, max(1, self.domain - 1))


@dataclass(frozen=True)
class Sensitive:
    """A sensitive column: its values in order, and the tree above them."""

    name: str
    values: tuple[Label, ...]  # of each record
    order: tuple[Label, ...]  # every value, in order
    paths: Mapping[Label, tuple[Label, ...]] | None = None

    @cached_property
    def present(self) -> tuple[Label, ...]:
        """The values of the whole table, in order."""
        return tuple(value for value in self.order if value in self.values)

    def shares(self, records: Iterable[int]) -> list[Fraction]:
        """The distribution among some records, over the values of the whole table."""
        found = Counter(self.values[i] for i in records)
        return [Fraction(found[value], found.total()) for value in self.present]


@dataclass(frozen=True)
class Case:
    """Records, what must hold, and what may go."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Label, ...], ...]
    asked: tuple[Asked, ...]
    sensitive: Mapping[str, Sensitive] = field(default_factory=dict)
    persons: tuple[int, ...] | None = None
    limit: int = 0
    keep: bool = False
    wildcard: bool = False

    @property
    def n(self) -> int:
        return len(self.rows)

    def nodes(self) -> Iterator[Node]:
        return itertools.product(*(range(column.n_levels) for column in self.columns))

    def released(self, i: int, node: Node) -> tuple[Label, ...]:
        if node not in self._released:
            self._released[node] = [
                tuple(c.label(v, level) for c, v, level in zip(self.columns, row, node, strict=True))
                for row in self.rows
            ]
        return self._released[node][i]

    @cached_property
    def _released(self) -> dict[Node, list[tuple[Label, ...]]]:
        return {}

    def covered(self, model: Asked) -> list[Sensitive]:
        """The sensitive columns that a requirement speaks of."""
        named = model.get("column")
        return [self.sensitive[named]] if named else list(self.sensitive.values())


# --- models: is this set of records a class that may be released? ----------------------------------------------

ABSORBING = {"k-anonymity", "p-sensitive", "distinct-l-diversity"}


def passes(case: Case, model: Asked, records: Sequence[int]) -> bool:
    """The table of the models, line by line."""
    respondents = len(records) if case.persons is None else len({case.persons[i] for i in records})
    if model["model"] == "k-anonymity":
        return respondents >= model["k"]
    if model["model"] in ("p-sensitive", "alpha-k-anonymity") and respondents < model["k"]:
        return False
    return all(_accepts(model, column, records) for column in case.covered(model))


VARIETY = {"distinct-l-diversity", "p-sensitive", "entropy-l-diversity", "recursive-l-diversity"}


def ranked_counts(column: Sensitive, records: Iterable[int], model: str) -> list[int]:
    """How often each value occurs, the most frequent first; a missing one adds nothing to the variety of values."""
    values = (column.values[i] for i in records)
    counts = Counter(value for value in values if value is not None or model not in VARIETY)
    return sorted(counts.values(), reverse=True)


def _accepts(model: Asked, column: Sensitive, records: Sequence[int]) -> bool:
    ranked = ranked_counts(column, records, model["model"])
    match model["model"]:
        case "distinct-l-diversity":
            return len(ranked) >= model["l"]
        case "p-sensitive":
            return len(ranked) >= model["p"]
        case "entropy-l-diversity":
            # −Σ (r/n) ln (r/n) ≥ ln ℓ  ⇔  n^n ≥ ℓ^n Π r^r
            ranked = ranked or [1]  # without values, no more varied than one value
            n = sum(ranked)
            return n**n >= exact(model["l"]) ** n * math.prod(r**r for r in ranked)
        case "recursive-l-diversity":
            return max(ranked, default=0) < exact(model["c"]) * sum(ranked[model["l"] - 1 :])
        case "alpha-k-anonymity":
            return Fraction(ranked[0], sum(ranked)) <= exact(model["alpha"])
    p, q = column.shares(records), column.shares(range(len(column.values)))
    match model["model"]:
        case "t-closeness":
            away = DISTANCES[model.get("distance", "equal")](p, q, column)
            return away <= exact(model["t"]) + (ROUNDING if isinstance(away, float) else 0)
        case "basic-beta-likeness":
            return all((a - b) / b <= exact(model["beta"]) for a, b in zip(p, q, strict=True) if a > b)
        case "enhanced-beta-likeness":
            caps = [min(model["beta"], -math.log(b)) for b in q]
            return all((a - b) / b <= cap + ROUNDING for a, b, cap in zip(p, q, caps, strict=True) if a > b)
        case "delta-disclosure":
            if model.get("absent", "fail") == "fail" and not all(p):
                return False
            return all(abs(math.log(a / b)) < model["delta"] for a, b in zip(p, q, strict=True) if a)
    raise ValueError(model["model"])


ROUNDING = 1e-12  # of logarithms, which no fraction equals


def entropy(records: Iterable[Any]) -> float:
    counts = Counter(records)
    return -math.fsum(r / counts.total() * math.log(r / counts.total()) for r in counts.values())


# --- distances between two distributions over the values of the whole table --------------------------------------


def equal(p: list[Fraction], q: list[Fraction], _: Sensitive) -> Fraction:
    return sum((abs(a - b) for a, b in zip(p, q, strict=True)), Fraction(0)) / 2


def ordered(p: list[Fraction], q: list[Fraction], _: Sensitive) -> Fraction:
    ahead = itertools.accumulate(a - b for a, b in zip(p, q, strict=True))
    return sum((abs(x) for x in ahead), Fraction(0)) / max(1, len(p) - 1)


def numeric(p: list[Fraction], q: list[Fraction], column: Sensitive) -> Fraction:
    """∫ |F_p − F_q| dx / (max − min), step by step along the sorted numbers."""
    points = sorted(zip((Fraction(str(v)) for v in column.present), p, q, strict=True))
    area, ahead = Fraction(0), Fraction(0)
    for (x, a, b), (following, _, _) in itertools.pairwise(points):
        ahead += a - b
        area += abs(ahead) * (following - x)
    span = points[-1][0] - points[0][0]
    return area / span if span else Fraction(0)


def hierarchical(p: list[Fraction], q: list[Fraction], column: Sensitive) -> Fraction:
    """Li 2007: in every subtree the smaller of too much and too little is moved, at the cost of its height."""
    assert column.paths is not None
    paths = [column.paths[value] for value in column.present]
    height = len(paths[0]) - 1
    total = Fraction(0)
    for level in range(1, height + 1):
        extra: dict[Label, dict[Label, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
        for path, a, b in zip(paths, p, q, strict=True):
            extra[path[level]][path[level - 1]] += a - b
        for children in extra.values():
            too_much = sum((x for x in children.values() if x > 0), Fraction(0))
            too_little = sum((-x for x in children.values() if x < 0), Fraction(0))
            total += Fraction(level, height) * min(too_much, too_little)
    return total


def kl(p: Iterable[Fraction], q: Iterable[Fraction], _: Sensitive | None = None) -> float:
    return math.fsum(a * math.log(a / b) for a, b in zip(p, q, strict=True) if a)


def js(p: list[Fraction], q: list[Fraction], _: Sensitive) -> float:
    middle = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
    return (kl(p, middle) + kl(q, middle)) / 2


DISTANCES: dict[str, Any] = {
    "equal": equal,
    "ordered": ordered,
    "numeric": numeric,
    "hierarchical": hierarchical,
    "kl": kl,
    "js": js,
}
MOVED = ("equal", "ordered", "numeric", "hierarchical")  # those that are earth mover's distances


def ground_distance(name: str, i: int, j: int, column: Sensitive) -> Fraction:
    """How far two values are, of which each distance is the earth mover's."""
    a, b = column.present[i], column.present[j]
    if i == j:
        return Fraction(0)
    match name:
        case "equal":
            return Fraction(1)
        case "ordered":
            return Fraction(abs(i - j), len(column.present) - 1)
        case "numeric":
            numbers = [Fraction(str(v)) for v in column.present]
            return abs(numbers[i] - numbers[j]) / ((max(numbers) - min(numbers)) or 1)
        case "hierarchical":
            assert column.paths is not None
            pairs = list(zip(column.paths[a], column.paths[b], strict=True))
            return Fraction(next(level for level, (x, y) in enumerate(pairs) if x == y), max(1, len(pairs) - 1))
    raise ValueError(name)


def transport(p: Sequence[Fraction], q: Sequence[Fraction], cost: Sequence[Sequence[Fraction]]) -> Fraction:
    """The earth mover's distance from p to q: cheapest augmenting paths, found by relaxing every edge."""
    m = len(p)
    supply, demand = list(p), list(q)
    flow = [[Fraction(0)] * m for _ in range(m)]
    while any(supply):
        # Nodes 0 … m−1 give, m … 2m−1 take; an edge with flow on it can be walked back.
        best: list[Fraction | None] = [Fraction(0) if s else None for s in supply] + [None] * m
        before: list[int | None] = [None] * (2 * m)
        for _ in range(2 * m):
            for i, j in itertools.product(range(m), range(m)):
                for a, b, c in ((i, m + j, cost[i][j]), (m + j, i, -cost[i][j])):
                    reached, known = best[a], best[b]
                    if reached is not None and (a < m or flow[i][j]) and (known is None or reached + c < known):
                        best[b], before[b] = reached + c, a
        end = min((m + j for j in range(m) if demand[j]), key=lambda b: best[b])  # type: ignore[arg-type,return-value]
        walk = [end]
        while (previous := before[walk[-1]]) is not None:
            walk.append(previous)
        steps = [(a, b) for b, a in itertools.pairwise(walk)]
        back = [flow[b][a - m] for a, b in steps if a >= m]
        amount = min([supply[walk[-1]], demand[end - m], *back])
        for a, b in steps:
            if a < m:
                flow[a][b - m] += amount
            else:
                flow[b][a - m] -= amount
        supply[walk[-1]] -= amount
        demand[end - m] -= amount
    return sum((flow[i][j] * cost[i][j] for i in range(m) for j in range(m)), Fraction(0))


# --- a node ------------------------------------------------------------------------------------------------------


def classes(case: Case, records: Iterable[int], node: Node) -> dict[tuple[Label, ...], list[int]]:
    """Records by released tuple."""
    found: dict[tuple[Label, ...], list[int]] = defaultdict(list)
    for i in records:
        found[case.released(i, node)].append(i)
    return found


def compatible(a: Sequence[Label], b: Sequence[Label]) -> bool:
    """Where null matches anything."""
    return all(x == y or x is None or y is None for x, y in zip(a, b, strict=True))


def suppressed(case: Case, node: Node) -> set[int]:
    """The records that cannot be released at a node."""
    everyone = set(range(case.n))
    if not case.wildcard and not any("columns" in model for model in case.asked):
        found = classes(case, everyone, node).values()
        return {i for E in found if not all(passes(case, model, E) for model in case.asked) for i in E}
    # Who is suppressed backs nobody, so judging repeats: first for what only more records can mend, then for all.
    left = everyone
    crowds = [{"model": "k-anonymity", "k": m["k"]} for m in case.asked if m["model"] == "alpha-k-anonymity"]
    for models in ([*crowds, *(m for m in case.asked if m["model"] in ABSORBING)], case.asked):
        while failing := {i for i in left if not _backed(case, models, i, left, node)}:
            left = left - failing
    return everyone - left


def _backed(case: Case, models: Iterable[Asked], i: int, left: Iterable[int], node: Node) -> bool:
    return all(passes(case, model, _alike(case, model, i, left, node)) for model in models)


def _alike(case: Case, model: Asked, i: int, left: Iterable[int], node: Node) -> list[int]:
    """Who cannot be told from record ``i`` by the columns that a requirement names, or by all."""
    chosen = [j for j, c in enumerate(case.columns) if c.name in model.get("columns", [c.name])]
    mine = [case.released(i, node)[j] for j in chosen]
    told = ((r, [case.released(r, node)[j] for j in chosen]) for r in left)
    return [r for r, theirs in told if (compatible(mine, theirs) if case.wildcard else mine == theirs)]


def feasible(case: Case, gone: set[int]) -> bool:
    """Few enough are suppressed, somebody is left, and where the suppressed stay as stars they are a class too."""
    if len(gone) > case.limit or len(gone) == case.n:
        return False
    return not (gone and case.keep) or all(passes(case, model, sorted(gone)) for model in case.asked)


def cost(case: Case, node: Node, gone: set[int], objective: str) -> tuple[Any, float]:
    """A loss: an exact number to compare by (a power of the figure where that is rational), and the figure."""
    n, q = case.n, len(case.columns)
    left = [i for i in range(n) if i not in gone]

    def cells(price: Any) -> list[Fraction]:
        """Per column the sum over records, 1 for a suppressed cell."""
        return [
            sum((price(c, case.rows[i][j], node[j]) for i in left), Fraction(len(gone)))
            for j, c in enumerate(case.columns)
        ]

    exactly: Any
    match objective:
        case "loss":
            exactly = sum(cells(Column.loss), Fraction(0)) / (n * q)
        case "arx-loss":
            shares = cells(lambda c, value, level: Fraction(c.leaves(value, level), c.domain))
            scaled = [
                (s - Fraction(n, c.domain)) / (n - Fraction(n, c.domain)) if c.domain > 1 else Fraction(0)
                for s, c in zip(shares, case.columns, strict=True)
            ]
            exactly = math.prod((1 + L for L in scaled), start=Fraction(1))
            return exactly, float(exactly) ** (1 / q) - 1
        case "discernibility":
            exactly = sum(len(E) ** 2 for E in classes(case, left, node).values()) + n * len(gone)
        case "average-class":
            exactly = Fraction(n, len(classes(case, left, node)) + bool(gone))
        case "height":
            exactly = sum(node)
        case "precision":
            climbed = cells(lambda c, _, level: Fraction(level, max(1, c.height)))
            exactly = sum(climbed, Fraction(0)) / (n * q)
        case "ambiguity":
            exactly = math.prod(c.domain for c in case.columns) * len(gone) + sum(
                math.prod(c.leaves(case.rows[i][j], node[j]) for j, c in enumerate(case.columns)) for i in left
            )
        case "entropy":
            likely, of = 1, 1
            for j, c in enumerate(case.columns):
                known = [row[j] if row[j] in c.paths else "nobody knows" for row in case.rows]
                values, labels = Counter(known), Counter(case.released(i, node)[j] for i in range(n))
                likely *= math.prod(values[value] for value in known)
                of *= math.prod(n if i in gone else labels[case.released(i, node)[j]] for i in range(n))
            exactly = Fraction(of, likely)
            return exactly, math.log(exactly.numerator) - math.log(exactly.denominator)
        case _:
            raise ValueError(objective)
    return exactly, float(exactly)


@dataclass(frozen=True)
class Answer:
    node: Node
    suppressed: frozenset[tuple[Label, ...]]  # released tuples
    value: float


def best(case: Case, objective: str) -> Answer | None:
    """Every node is tried; among equals the lowest wins, then the one with the least levels."""
    found = []
    for node in case.nodes():
        gone = suppressed(case, node)
        if feasible(case, gone):
            found.append(((cost(case, node, gone, objective)[0], sum(node), node), gone))
    if not found:
        return None
    (_, _, node), gone = min(found, key=lambda entry: entry[0])
    return Answer(node, frozenset(classes(case, gone, node)), cost(case, node, gone, objective)[1])
