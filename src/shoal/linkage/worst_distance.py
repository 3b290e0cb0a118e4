"""The worst case: the distance that links most people correctly, learned from the true links.

D. Abril, G. Navarro-Arribas, V. Torra, "Improving record linkage with supervised learning for disclosure risk
assessment", Information Fusion 13(4), 2012, and "Supervised learning using a symmetric bilinear form for record
linkage", Information Fusion 26, 2015. Minimise Σ K_i so that C_θ(a_i, b_j) − C_θ(a_i, b_i) + C·K_i > 0 for all j ≠ i:
K_i is 1 where record i is not found. No intruder who uses a distance of the family does better than the optimum.
Finds  the optimum and a proof by HiGHS for some 120 records (up to ``MARGIN`` between distances); beyond, the best of a
       search from many starts, which is a lower bound on the risk. Constraints are added as they are broken.
Departs from the papers for equal released records: t of them count 1/t each, as they cannot be distinguished.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import coo_array, csr_array, vstack

from shoal.errors import DataError
from shoal.linkage.columns import LinkedFile, On, Truth, side_by_side
from shoal.linkage.families import Family, Name
from shoal.linkage.families import family as family_of
from shoal.linkage.measure import Categories, DistanceTerm, ScaledBy, Spans, distance_terms
from shoal.linkage.nearest import TIE, Distinct
from shoal.policy import PolicySource
from shoal.tables.frequency import Floats, RowNumbers
from shoal.tables.wildcard import Nulls

LARGEST = 2**26  # differences that are held: half a gigabyte
CHUNK = 2**22  # features computed at once
EXACT = 120  # people up to whom an optimum is proved unless asked otherwise
MARGIN = 1e-4  # a right record must be nearer by so much for the solver, whose tolerances are not much smaller
HINGE = 1e-3  # the margin of the relaxation
DRAWS, STEPS, ROUNDS = 100, 3000, 4  # random starts, steps of the local search, rounds of the relaxation
SAMPLE = 150  # people in the relaxation; the result generalizes to others


@dataclass(frozen=True, eq=False)
class WorstCase:
    """How many people the best distance of a family links correctly, compared with the plain distance."""

    columns: tuple[str, ...]
    family: str
    parameters: Mapping[str, float]  # of the best distance found
    of: int  # people in both files
    plain: float  # found by the distance with equal weights
    correct: float  # found by the best distance; of t that look the same, 1/t
    bound: float  # upper bound for every distance of the family with a margin of ``MARGIN``
    proved: bool  # the bound is reached: this is the worst case, and not a lower bound on it

    @property
    def risk(self) -> float:
        """The share of people linked correctly."""
        return self.correct / max(1, self.of)

    @property
    def plain_risk(self) -> float:
        """The same for the plain distance."""
        return self.plain / max(1, self.of)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "columns": list(self.columns),
            "family": self.family,
            "parameters": dict(self.parameters),
            "of": self.of,
            "plain": self.plain,
            "correct": self.correct,
            "bound": self.bound,
            "proved": self.proved,
            "plain_risk": self.plain_risk,
            "risk": self.risk,
        }


def worst_case(
    known: LinkedFile,
    release: LinkedFile,
    *,
    family: Name = "mean",
    on: On = None,
    numeric: Sequence[str] | None = None,
    policy: PolicySource | None = None,
    original: LinkedFile | None = None,
    scale: ScaledBy = "own",
    categories: Categories = "equal",
    nulls: Nulls = "category",
    truth: Truth = None,
    id: str | None = None,
    exact: bool | None = None,
    time_limit: float = 60.0,
    seed: int = 0,
) -> WorstCase:
    """Learn the distance of a family that links the most people correctly, and count them.

    ``family`` is ``mean`` (weights of columns), ``owa`` (of ranks of differences), ``bilinear`` (a matrix) or
    ``choquet`` (a capacity on sets of columns; of pairs where there are more than six). The truth is needed; without
    ``truth`` or ``id``, row i belongs to row i. ``exact`` asks for the optimum with a proof, whatever the number of
    people; it ends after ``time_limit`` seconds with the best that was found. The answer depends on ``seed`` and, where
    time ran out, on the machine.
    """
    files = side_by_side(
        known,
        release,
        on=on,
        numeric=numeric,
        policy=policy,
        original=original,
        truth="position" if truth is None and id is None else truth,
        id=id,
    )
    if not time_limit > 0:
        raise DataError("time_limit: must be more than 0 seconds")
    if files.owners is None:
        raise TypeError("side_by_side was given the truth")
    chosen = family_of(family, files.names)
    measured = distance_terms(files.columns, scale=scale, nulls=nulls, categories=categories)
    problem = _ParameterProblem.from_codes(*files.codes, files.owners, measured, chosen)
    search = _ParameterSearch(problem, np.random.default_rng(seed))
    if chosen.of_mean is not None:
        # The best weights of columns alone are found sooner, and are a good start.
        simpler = _ParameterProblem.from_codes(*files.codes, files.owners, measured, family_of("mean", files.names))
        first = _ParameterSearch(simpler, np.random.default_rng(seed))
        first.run()
        search.start(chosen.of_mean(first.best[1]))
    search.run()
    if exact or (exact is None and problem.n_people <= EXACT):
        search.prove(time_limit)
    correct, theta = search.best
    bound = max(search.bound, correct)
    return WorstCase(
        files.names,
        family,
        dict(zip(chosen.names, theta.tolist(), strict=True)),
        problem.n_people,
        problem.credit_of(chosen.plain),
        correct,
        bound,
        math.isclose(correct, bound, rel_tol=1e-9, abs_tol=1e-9),
    )


# ── Differences ─────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class _ParameterProblem:
    """People, the distinct released tuples, and the differences between them."""

    differences: Floats  # (people, tuples, columns)
    right: RowNumbers  # (people)  the tuple that is theirs
    credit: Floats  # (people)  what finding it is worth: 1 / records with the tuple, times equal people
    n_people: int
    family: Family

    @classmethod
    def from_codes(
        cls,
        known_codes: NDArray[np.int32],
        released: NDArray[np.int32],
        owners: RowNumbers,
        measured: Sequence[DistanceTerm],
        family: Family,
    ) -> _ParameterProblem:
        people = np.flatnonzero(owners >= 0)
        tuples = Distinct.from_codes(released)
        theirs = tuples.class_of[owners[people]]
        # People who know the same and have the same tuple succeed together.
        alike = Distinct.from_codes(np.column_stack([known_codes[people], theirs.astype(np.int32)]))
        mine, right = known_codes[people][alike.rows], theirs[alike.rows]
        q = known_codes.shape[1]
        if len(mine) * len(tuples.codes) * q > LARGEST:
            raise DataError(
                f"{len(mine)} people, {len(tuples.codes)} distinct released tuples and {q} columns are too many "
                f"to learn from (at most {LARGEST} differences)",
                "learn from a sample of the known file",
            )
        out = np.zeros((len(mine), len(tuples.codes), q))
        for part in measured:
            known_values, released_values = mine[:, part.column][:, None], tuples.codes[:, part.column][None, :]
            if family.signed:
                signed = (
                    part.gap(known_values, released_values)
                    if isinstance(part, Spans)
                    else np.sqrt(part.between(known_values, released_values))
                )
                out[:, :, part.column] += signed
            else:
                out[:, :, part.column] += part.between(known_values, released_values)
        return cls(out, right, alike.counts / tuples.counts[right], len(people), family)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of people and tuples."""
        return self.differences.shape[0], self.differences.shape[1]

    def _chunks(self) -> Iterator[tuple[slice, Floats]]:
        """Yield features of some people at a time."""
        n, m = self.shape
        step = max(1, CHUNK // max(1, m * len(self.family.names)))
        for first in range(0, n, step):
            rows = slice(first, first + step)
            yield rows, self.family.features(self.differences[rows])

    def gaps(self, theta: Floats) -> Floats:
        """Return (people, tuples) how much farther each tuple is than the right one, which is infinitely far here."""
        out = np.empty(self.shape)
        for rows, features in self._chunks():
            out[rows] = features @ theta
        people = np.arange(len(out))
        right = out[people, self.right]
        out -= (right + TIE * (1 + np.abs(right)))[:, None]  # as near, whatever the rounding, is not farther
        out[people, self.right] = np.inf
        return out

    def credit_of(self, theta: Floats) -> float:
        """Return the credit for all people whose own tuple is nearest, with no other as near."""
        return self.score(self.gaps(theta))

    def score(self, gaps: Floats) -> float:
        """Return the same credit, computed from gaps."""
        return float(self.credit[gaps.min(axis=1) > 0].sum())

    def row(self, people: RowNumbers, rivals: RowNumbers) -> Floats:
        """Return features of the gap between each of some people and one other tuple."""
        mine = self.differences[people, rivals], self.differences[people, self.right[people]]
        return self.family.features(mine[0]) - self.family.features(mine[1])

    def lowest(self, people: RowNumbers, rivals: RowNumbers) -> Floats:
        """Return the smallest possible value of such a gap."""
        return self.family.lowest(self.differences[people, rivals], self.differences[people, self.right[people]])


# ── Search ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class _ParameterSearch:
    """The best θ so far, and the constraints found to matter."""

    problem: _ParameterProblem
    rng: np.random.Generator
    best: tuple[float, Floats] = field(init=False)
    bound: float = field(init=False)
    people: RowNumbers = field(init=False)  # of each constraint
    rivals: RowNumbers = field(init=False)  # the tuple that it keeps farther away
    rows: Floats = field(init=False)  # (constraints, parameters)  gap = row · θ
    cuts: list[Floats] = field(default_factory=list)

    def __post_init__(self) -> None:
        plain = self.problem.family.plain
        self.best = (-1.0, plain)
        self.bound = float(self.problem.credit.sum())
        self.people = self.rivals = np.zeros(0, np.int64)
        self.rows = np.zeros((0, len(plain)))
        self._add(self._tried(plain), 5)

    def start(self, theta: Floats) -> None:
        """Start from ``theta`` instead of the plain distance if it links more people."""
        self._add(self._tried(theta), 2)

    def _tried(self, theta: Floats) -> Floats:
        """Return the gaps under ``theta``, and keep it if it is better."""
        gaps = self.problem.gaps(theta)
        score = self.problem.score(gaps)
        if score > self.best[0]:
            self.best = (score, theta)
        return gaps

    def _glanced(self, theta: Floats) -> None:
        """Try ``theta`` if the known constraints leave room for improvement."""
        broken = np.zeros(self.problem.shape[0], np.bool_)
        broken[self.people[self.rows @ theta <= 0]] = True
        if self.problem.credit[~broken].sum() > self.best[0]:
            self._add(self._tried(theta), 1, ~broken)

    def _add(self, gaps: Floats, n: int, among: NDArray[np.bool_] | None = None) -> int:
        """Add constraints for the ``n`` nearest wrong tuples, for some people only violated ones; count new ones."""
        n = min(n, gaps.shape[1] - 1)
        if n < 1:
            return 0
        near = np.argpartition(gaps, n - 1, axis=1)[:, :n]
        people = np.repeat(np.arange(len(gaps)), n)
        rivals = near.ravel()
        is_added = np.ones(len(people), np.bool_) if among is None else (gaps[people, rivals] < MARGIN) & among[people]
        m = gaps.shape[1]
        pairs = np.unique(np.concatenate([self.people * m + self.rivals, people[is_added] * m + rivals[is_added]]))
        added = len(pairs) - len(self.people)
        self.people, self.rivals = np.divmod(pairs, m)
        self.rows = self.problem.row(self.people, self.rivals)
        return added

    def run(self) -> None:
        """Run random starts, a convex relaxation, and small steps from the best."""
        for _ in range(DRAWS):
            self._glanced(self.problem.family.drawn(self.rng))
        self._relaxed()
        for _ in range(STEPS):
            self._glanced(self.problem.family.near(self.best[1], 10 ** self.rng.uniform(-3, 0), self.rng))

    def _relaxed(self) -> None:
        """Minimize the sum of shortfalls instead of their number; people far from success get smaller weights."""
        n = self.problem.shape[0]
        sample = np.zeros(n, np.bool_)
        sample[self.rng.permutation(n)[:SAMPLE]] = True
        weights = self.problem.credit.copy()
        for _ in range(ROUNDS):
            short = np.zeros(n)
            for _ in range(ROUNDS):
                solved = self._shortfalls(weights, sample)
                if solved is None:
                    return
                theta, short = solved
                gaps = self._tried(self.problem.family.inside(theta))
                cut = self.problem.family.cut(theta)
                if cut is not None:
                    self.cuts.append(cut)
                if not self._add(gaps, 1, sample) and cut is None:
                    break
            weights = self.problem.credit / (short + 10 * HINGE)

    def _shortfalls(self, weights: Floats, sample: NDArray[np.bool_]) -> tuple[Floats, Floats] | None:
        """Return θ with the smallest weighted sum of shortfalls of the people in the sample, and the shortfalls."""
        family, n = self.problem.family, self.problem.shape[0]
        p = len(family.names)
        sampled = sample[self.people]
        rows, slack = self.rows[sampled], self._unit_columns()[sampled]
        limits, sides = self._polytope(n)
        solved = linprog(
            np.concatenate([np.zeros(p), weights / weights.sum()]),
            A_ub=-vstack([csr_array(rows) @ _padding(p, n) + slack, limits]),
            b_ub=np.concatenate([np.full(len(rows), -HINGE), np.zeros(limits.shape[0])]),
            A_eq=sides,
            b_eq=[1.0],
            bounds=[(family.low, 1.0)] * p + [(0.0, None)] * n,
            method="highs",
        )
        return (solved.x[:p], solved.x[p:]) if solved.status == 0 else None

    def _unit_columns(self) -> csr_array:
        """Return a 1 in the column of each constraint's person, after the parameters."""
        n, p = self.problem.shape[0], len(self.problem.family.names)
        k = len(self.people)
        return coo_array((np.ones(k), (np.arange(k), p + self.people)), shape=(k, p + n)).tocsr()

    def _polytope(self, n: int) -> tuple[csr_array, csr_array]:
        """Return the constraints on θ: rows that are at least 0, and the one that is 1."""
        family = self.problem.family
        p = len(family.names)
        rows = np.vstack([family.rows, *self.cuts]) if self.cuts else family.rows
        return csr_array(rows) @ _padding(p, n), csr_array(family.unit[None, :]) @ _padding(p, n)

    # ── Proof ───────────────────────────────────────────────────────────────────────────────────────────────

    def prove(self, time_limit: float) -> None:
        """Solve with the known constraints, add violated ones, repeat: a solution that violates none is optimal."""
        end = time.monotonic() + time_limit
        while (left := end - time.monotonic()) > 0 and self.bound > self.best[0] + 1e-9:
            solved = self._solved(left)
            if solved is None:
                return
            theta, linked_people, bound = solved
            self.bound = min(self.bound, bound)
            gaps = self._tried(self.problem.family.inside(theta))
            exact = self.problem.gaps(theta)
            cut = self.problem.family.cut(theta)
            if cut is not None:
                self.cuts.append(cut)
            if not self._add(np.minimum(gaps, exact), 3, linked_people) and cut is None:
                return

    def _solved(self, left: float) -> tuple[Floats, NDArray[np.bool_], float] | None:
        """Return θ, whom it is claimed to link, and an upper bound; None if nothing was found in time."""
        family, n = self.problem.family, self.problem.shape[0]
        p = len(family.names)
        # The smallest C that frees a constraint for every θ, one for each; rows are divided by it.
        free = np.maximum(MARGIN - self.problem.lowest(self.people, self.rivals), MARGIN)
        limits, sides = self._polytope(n)
        constraints = [
            LinearConstraint(
                csr_array(self.rows / free[:, None]) @ _padding(p, n) + self._unit_columns(), MARGIN / free, np.inf
            ),
            LinearConstraint(sides, 1.0, 1.0),
        ]
        if limits.shape[0]:
            constraints.append(LinearConstraint(limits, 0.0, np.inf))
        credit = self.problem.credit
        solved = milp(
            np.concatenate([np.zeros(p), credit]),
            integrality=np.repeat([0, 1], [p, n]),
            bounds=Bounds(np.repeat([family.low, 0.0], [p, n]), np.ones(p + n)),
            constraints=constraints,
            options={"time_limit": left, "mip_rel_gap": 1e-9},
        )
        if solved.x is None:
            return None
        bound = float(credit.sum()) - float(solved.mip_dual_bound or 0.0)
        return solved.x[:p], solved.x[p:] < 0.5, bound


def _padding(p: int, n: int) -> csr_array:
    """Return a (p, p + n) matrix that puts the columns of parameters before those of people."""
    return coo_array((np.ones(p), (np.arange(p), np.arange(p))), shape=(p, p + n)).tocsr()
