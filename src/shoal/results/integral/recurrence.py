"""Integral privacy: publish a result only if many different databases generate it.

V. Torra, G. Navarro-Arribas, "Integral privacy", CANS 2016; N. Senavirathne, V. Torra, "Integrally private model
selection for decision trees", Computers & Security 83, 2019.
Needs  a step to discretize results by, and the persons behind the records where a person has several.
Finds  the results that recur: at least ``k`` different subsets of the persons generate them, and these generators share
       no person and leave none out. Recurrence alone protects nobody: a mean may recur only with the one rich person.
Costs  one computation per subset, and a second pass over the generators of the results that recur.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.engines.data import Data
from shoal.engines.local import LocalEngine
from shoal.engines.opening import engine_of, rows_of
from shoal.errors import DataError, PolicyError, no_column
from shoal.models.verdict import Answered, Outcome
from shoal.results.arguments import MAX_SEED, SMALLEST, real_argument, whole_argument
from shoal.results.integral.results import STATISTICS, Result, integral_result
from shoal.results.integral.subsets import Subsets
from shoal.text.figures import format_count

MAX_JUDGED = 50  # results, those with the most generators
PAIRS = 200  # of generators, whose overlap is measured


@dataclass(frozen=True)
class Overlap:
    """What the generators of a result have in common; persons are those of the database."""

    shared: int  # persons who are in every generator
    left_out: int  # persons who are in none
    largest_share: float  # of the generators, that one person is in
    smallest_share: float
    jaccard: float  # of pairs of generators, on average; NaN if there is one generator


@dataclass(frozen=True)
class Recurrence:
    """A discretized result, how many databases generate it, and whether it may be published."""

    value: Any
    generators: int
    share: float  # of all subsets
    overlap: Overlap
    qualifies: bool
    reason: str  # why it does not; empty if it does


@dataclass(frozen=True)
class Change:
    """What the results before and after a change of the database tell about the change.

    They are those that may be published; of a table of which none may, the discretized result of the whole table. An
    intruder who sees both asks which changes lead from a generator of the first to a generator of the second.
    """

    before: Any
    after: Any
    added_records: int  # the actual change; for the owner only, as all that follows
    removed_records: int
    changes: int  # different changes that explain both results, at least
    added: float  # the largest probability, over persons, of having been added
    removed: float
    by_chance: float  # the same for a person who was drawn independently of both results
    hidden: bool  # whether nobody was added, or removed, in more than ``max_share`` of the changes

    @property
    def shows(self) -> bool:
        """Whether the two results differ."""
        return bool(self.before != self.after)


@dataclass(frozen=True)
class IntegralResult(Answered):
    """The results that recur, most frequent first, and the one to publish."""

    asked: str
    group: str | None
    persons: int
    records: int
    missing: int  # records without a value, which are not used
    subsets: int
    exhaustive: bool  # whether these are all subsets
    k: int
    recurrences: tuple[Recurrence, ...]
    different: int  # different results
    loss: dict[str, float]  # of the published result, against that of the whole table; for the owner, not for others
    change: Change | None = None

    @property
    def published(self) -> Any:
        """The qualifying result with the most generators; None if none qualifies."""
        return next((recurrence.value for recurrence in self.recurrences if recurrence.qualifies), None)

    @property
    def outcome(self) -> Outcome:
        """Holds if a result may be published, and if what it tells about a change is hidden."""
        if not any(recurrence.qualifies for recurrence in self.recurrences):
            return "fails"
        return "holds" if self.change is None or self.change.hidden else "fails"

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"outcome": self.outcome, "published": self.published} | asdict(self)


def integral_privacy(
    data: Data,
    statistic: str,
    column: str | None = None,
    *,
    step: float | Sequence[float],
    on: Sequence[str] = (),
    by: str | None = None,
    entity: str | None = None,
    k: int = 50,
    subsets: int = 1000,
    share: float = 0.5,
    max_share: float = 0.8,
    depth: int = 3,
    seed: int = 0,
    after: Data | None = None,
) -> list[IntegralResult]:
    """Find a result that many different databases generate: one per group of ``by``, or one for the whole table.

    A result qualifies if at least ``k`` subsets generate it, nobody is in more than ``max_share`` of them, nobody is
    left out by more, and it does not tell the value of everybody.

    Parameters
    ----------
    data
        A path, a pandas, polars or pyarrow frame, or an Ibis table, whose rows stay in place.
    statistic
        One of mean, median, sum, variance, count, regression or tree.
    column
        The column that the statistic is about.
    step
        Results are rounded to multiples of it; for a tree, numbers are cut at them.
    on
        The columns that explain ``column``, for a regression or a tree.
    by
        The column to group by.
    entity
        The column that identifies persons; without it, every record is a person.
    k
        The least number of subsets that generate the result.
    subsets
        How many random subsets are tried.
    share
        The probability that a person is in a subset.
    max_share
        The largest share of the generating subsets that one person may be in, or left out of.
    depth
        The depth of a tree.
    seed
        Repeats the subsets.
    after
        The table after a change: it is told how the change shows in both results.

    Returns
    -------
    list of IntegralResult
        For each group the published result and its recurrences, or why there is none.

    Raises
    ------
    PolicyError
        If the statistic is unknown or an argument is out of its range.
    DataError
        If the table cannot be read, or lacks a column.

    Examples
    --------
    >>> import pyarrow as pa, shoal
    >>> ward = pa.table({"income": [20 + i % 9 for i in range(60)]})
    >>> found = shoal.integral_privacy(ward, "mean", "income", step=1)[0]
    >>> found.published, found.recurrences[0].overlap.shared
    (24.0, 0)
    """
    request = _IntegralRequest(
        statistic, column, tuple(on), _steps(step), by, entity, k, subsets, share, max_share, depth, seed
    )
    request.check(changed=after is not None)
    table = request.read(data)
    later = None if after is None else request.read(after)
    groups = request.groups(table)
    return [request.judged(table, group, later) for group in groups]


def _steps(step: float | Sequence[float]) -> tuple[float, ...]:
    steps = tuple(step) if isinstance(step, list | tuple) else (step,)
    if not steps:
        raise PolicyError("step: must be a positive number", "results are rounded to its multiples")
    return tuple(real_argument("step", size, "a positive number", SMALLEST, sys.float_info.max) for size in steps)


@dataclass(frozen=True)
class _IntegralRequest:
    statistic: str
    column: str | None
    on: tuple[str, ...]
    steps: tuple[float, ...]
    by: str | None
    entity: str | None
    k: int
    subsets: int
    share: float
    max_share: float
    depth: int
    seed: int

    def check(self, *, changed: bool) -> None:
        if self.statistic not in STATISTICS:
            raise PolicyError(f"unknown statistic {self.statistic!r}", f"statistics: {', '.join(STATISTICS)}")
        if self.statistic in ("regression", "tree") and not self.on:
            raise PolicyError(f"{self.statistic}: name the columns that explain it", 'on=["age", "sex"]')
        if self.statistic not in ("regression", "tree") and len(self.steps) > 1:
            raise PolicyError("step: one number has one step")
        whole_argument("subsets", self.subsets, 2, 10**8)
        whole_argument("k", self.k, 2, self.subsets, "at most the number of subsets")
        real_argument("share", self.share, "above 0 and below 1", SMALLEST, math.nextafter(1, 0))
        least_share = math.nextafter(max(self.share, 1 - self.share), 1)
        real_argument("max_share", self.max_share, "above share and 1 - share, and at most 1", least_share, 1)
        if changed and self.statistic in ("sum", "count"):
            raise PolicyError(
                f"after: what a change tells cannot be determined for a {self.statistic}, which grows with the table",
                "ask for the mean",
            )
        whole_argument("depth", self.depth, 1, 100)
        whole_argument("seed", self.seed, 0, MAX_SEED)

    @property
    def names(self) -> list[str]:
        columns = (self.column, *self.on, self.by, self.entity)
        return list(dict.fromkeys(name for name in columns if name is not None))

    def read(self, data: Data) -> LocalEngine:
        """Return the columns that are needed, in an order that does not depend on that of the rows."""
        engine = engine_of(data)
        if absent := [name for name in self.names if name not in engine.columns]:
            raise no_column("the table", absent, engine.columns)
        rows, _ = engine.listed(self.names or engine.columns[:1])
        codes = [rows.coded(name).codes for name in reversed(self.names)]
        order = np.lexsort(codes) if codes else np.arange(rows.n_records)
        return rows_of(rows.table.take(order))

    def groups(self, table: LocalEngine) -> list[str | None]:
        if self.by is None:
            return [None]
        coded = table.coded(self.by)
        if (coded.codes < 0).any():
            raise DataError(f"column {self.by!r}: {int((coded.codes < 0).sum())} records have no group")
        return list(coded.texts)

    def judged(self, table: LocalEngine, group: str | None, later: LocalEngine | None) -> IntegralResult:
        database = self.database(table, group)
        generated = _Generated.enumerated(database, self)
        recurrences = tuple(generated.recurrence(key, self) for key in generated.most_frequent())
        key = generated.published(recurrences)
        loss = {} if key is None else database.result.loss(key, database.rows)
        change = None
        if later is not None:
            change = _change(self, table, later, group, None if key is None else database.result.value(key))
        return IntegralResult(
            database.result.title,
            group,
            database.n_persons,
            len(database.rows),
            database.missing,
            len(generated.subsets),
            generated.subsets.exhaustive,
            self.k,
            recurrences,
            len(generated.numbers),
            loss,
            change,
        )

    def database(self, table: LocalEngine, group: str | None) -> _Database:
        result, usable = integral_result(self.statistic, table, self.column, self.on, self.steps, self.depth)
        inside = usable.copy()
        n_records = table.n_records
        if self.by is not None and group is not None:
            coded = table.coded(self.by)
            of_group = coded.codes == (coded.texts.index(group) if group in coded.texts else -2)
            n_records = int(of_group.sum())
            inside &= of_group
        rows = np.flatnonzero(inside)
        if not len(rows):
            raise DataError("no record has the values that are needed")
        persons = np.arange(len(rows))
        if self.entity is not None:
            codes = table.coded(self.entity).codes[rows]
            if (codes < 0).any():
                raise DataError(f"column {self.entity!r}: {int((codes < 0).sum())} records have no person")
            persons = np.unique(codes, return_inverse=True)[1]
        return _Database(result, rows, persons, int(persons.max()) + 1, n_records - len(rows))


@dataclass(frozen=True, eq=False)
class _Database:
    """What is computed, on which rows, and the person behind each."""

    result: Result
    rows: NDArray[np.int64]
    persons: NDArray[np.int64]
    n_persons: int
    missing: int

    def key(self, members: NDArray[np.bool_], drawn: float) -> Hashable | None:
        return self.result.key(self.rows[members[self.persons]], drawn)


@dataclass(frozen=True, eq=False)
class _Generated:
    """The different subsets that generate each result, by their numbers."""

    database: _Database
    subsets: Subsets
    numbers: dict[Hashable, list[int]]

    @classmethod
    def enumerated(cls, database: _Database, request: _IntegralRequest) -> _Generated:
        subsets = Subsets(database.n_persons, request.subsets, request.share, request.seed)
        numbers: dict[Hashable, list[int]] = {}
        digests: set[bytes] = set()
        # Of all subsets, a person is in half. The share of this very subset would give the size of the table away.
        drawn = 0.5 if subsets.exhaustive else request.share
        for i, members in enumerate(subsets):
            if not subsets.exhaustive:
                digest = hashlib.blake2b(np.packbits(members).tobytes(), digest_size=16).digest()
                if digest in digests or not members.any():
                    continue  # the same database twice is one generator
                digests.add(digest)
            key = database.key(members, drawn)
            if key is not None:
                numbers.setdefault(key, []).append(i)
        return cls(database, subsets, numbers)

    def most_frequent(self) -> list[Hashable]:
        """Return the results with the most generators; ties in the order of their text, not of the draws."""
        order = sorted(self.numbers, key=lambda key: (-len(self.numbers[key]), str(key)))
        return order[:MAX_JUDGED]

    def published(self, recurrences: Sequence[Recurrence]) -> Hashable | None:
        """Return the key of the qualifying result with the most generators."""
        keys = zip(self.most_frequent(), recurrences, strict=True)
        return next((key for key, recurrence in keys if recurrence.qualifies), None)

    def shares(self, key: Hashable) -> NDArray[np.float64]:
        """Return the share of the generators that each person is in."""
        numbers = self.numbers[key]
        total = np.zeros(self.database.n_persons, np.int64)
        for i in numbers:
            total += self.subsets.members(i)
        return total / len(numbers)

    def recurrence(self, key: Hashable, request: _IntegralRequest) -> Recurrence:
        numbers, shares = self.numbers[key], self.shares(key)
        overlap = Overlap(
            int((shares == 1).sum()),
            int((shares == 0).sum()),
            float(shares.max()),
            float(shares.min()),
            self._jaccard(numbers, request.seed),
        )
        reasons = []
        if len(numbers) < request.k:
            reasons.append(f"{format_count(len(numbers), 'generator')}, fewer than {request.k}")
        if overlap.shared:
            reasons.append(f"{format_count(overlap.shared, 'person')} in every generator")
        elif overlap.largest_share > request.max_share:
            reasons.append(f"a person is in {overlap.largest_share:.3g} of the generators")
        if overlap.left_out:
            reasons.append(f"{format_count(overlap.left_out, 'person')} in none")
        elif overlap.smallest_share < 1 - request.max_share - 1e-12:
            reasons.append(f"a person is in only {overlap.smallest_share:.3g} of the generators")
        if full := self.database.result.full(key, self.database.rows):
            reasons.append(full)
        value = self.database.result.value(key)
        return Recurrence(
            value, len(numbers), len(numbers) / len(self.subsets), overlap, not reasons, "; ".join(reasons)
        )

    def _jaccard(self, numbers: list[int], seed: int) -> float:
        if len(numbers) < 2:
            return math.nan
        rng = np.random.default_rng([seed, len(numbers)])
        n_all = len(numbers) * (len(numbers) - 1) // 2
        if n_all <= PAIRS:
            pairs = [(a, b) for i, a in enumerate(numbers) for b in numbers[:i]]
        else:
            pairs = [tuple(rng.choice(numbers, 2, replace=False).tolist()) for _ in range(PAIRS)]
        indices = []
        for a, b in pairs:
            first, second = self.subsets.members(a), self.subsets.members(b)
            indices.append((first & second).sum() / (first | second).sum())
        return float(np.mean(indices))


def _change(
    request: _IntegralRequest, before: LocalEngine, after: LocalEngine, group: str | None, published: Any | None
) -> Change:
    """Explain the results of two versions of a database by subsets of all persons who are in either.

    A person is a row of equal values, or an entity; persons in both versions are counted once, and the rows of an
    entity that only one version has come and go on their own. The generators of the two results are drawn
    independently, so a person was added with probability (1 - share before) · share after.
    """
    databases, earlier_shares, are = _united(request, before, after)
    database = _changes_apart(request.database(databases, group), earlier_shares, are)
    pairs = _Generated.enumerated(database, request)
    key_of = {str(database.result.value(key)): key for key in pairs.numbers}  # codes of a tree differ by table
    results, keys = [], []
    for value, side in ((published, earlier_shares), (_published(request, after, group), are)):
        own_change = database.result.key(database.rows[side[database.rows]], 1.0) if value is None else None
        if value is None and own_change is None:
            raise DataError("the result of one of the two tables cannot be computed")
        results.append(database.result.value(own_change) if value is None else value)
        keys.append(key_of.get(str(results[-1])))
    chance = request.share * (1 - request.share)
    moved = [
        int((side & ~other)[database.rows].sum()) for side, other in ((are, earlier_shares), (earlier_shares, are))
    ]
    unchanged = results[0] == results[1]
    first, second = keys
    if first is None or second is None:
        # Equal results are explained by no change at all; otherwise nothing that was drawn explains them.
        return Change(
            results[0],
            results[1],
            moved[0],
            moved[1],
            int(unchanged),
            float(not unchanged),
            float(not unchanged),
            chance,
            unchanged,
        )
    low, high = pairs.shares(first), pairs.shares(second)
    added, removed = float(((1 - low) * high).max()), float((low * (1 - high)).max())
    hidden = unchanged or max(added, removed) < request.max_share
    n_changes = _different_changes(pairs, first, second)
    return Change(results[0], results[1], moved[0], moved[1], n_changes, added, removed, chance, hidden)


def _published(request: _IntegralRequest, table: LocalEngine, group: str | None) -> Any | None:
    """Return the result that a table publishes; None if it publishes none."""
    database = request.database(table, group)
    generated = _Generated.enumerated(database, request)
    key = generated.published([generated.recurrence(recurrence, request) for recurrence in generated.most_frequent()])
    return None if key is None else database.result.value(key)


def _changes_apart(database: _Database, earlier: NDArray[np.bool_], are: NDArray[np.bool_]) -> _Database:
    """Return the database with the rows of a person that only one version has as another person."""
    units = np.column_stack([database.persons, earlier[database.rows], are[database.rows]])
    persons = np.unique(units, axis=0, return_inverse=True)[1].ravel()
    return replace(database, persons=persons, n_persons=int(persons.max()) + 1)


def _different_changes(pairs: _Generated, first: Hashable, second: Hashable) -> int:
    """Count the different changes among the first generators of both results."""
    starts, ends = (pairs.numbers[key][: int(PAIRS**0.5)] for key in (first, second))
    changes = {
        (earlier & ~now).tobytes() + (now & ~earlier).tobytes()
        for earlier in map(pairs.subsets.members, starts)
        for now in map(pairs.subsets.members, ends)
    }
    return len(changes)


def _united(
    request: _IntegralRequest, before: LocalEngine, after: LocalEngine
) -> tuple[LocalEngine, NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the rows of both versions, equal rows of both once, and which version each is in."""
    tables = [side.table.select(request.names) for side in (before, after)]
    if tables[0].schema != tables[1].schema:
        raise DataError("the two tables have different types", "read both in the same way")
    keys = [list(zip(*(column.to_pylist() for column in table.columns), strict=True)) for table in tables]
    waiting: dict[Any, list[int]] = {}
    for i, key in enumerate(keys[0]):
        waiting.setdefault(key, []).append(i)
    earlier, are = [True] * len(keys[0]), [False] * len(keys[0])
    new = []
    for i, key in enumerate(keys[1]):
        if waiting.get(key):
            are[waiting[key].pop()] = True
        else:
            new.append(i)
    joined = pa.concat_tables([tables[0], tables[1].take(pa.array(new, pa.int64()))])
    united = rows_of(joined)
    return united, np.array(earlier + [False] * len(new)), np.array(are + [True] * len(new))
