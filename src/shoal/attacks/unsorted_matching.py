"""Unsorted matching: the rows of a release are still in the order of the original, which identifies people.

L. Sweeney, "k-anonymity", IJUFKS 10(5), 2002: the attack that a release in random order answers.
The order of the classes discloses nothing beyond their values, so the test is whether the records of a class are in
random order. Several statistics detect order kept in the whole table, within classes, or reversed: the rank correlation
of records with their possible owners, summed over classes (P. van Elteren, Bulletin of the ISI 37, 1960); how often the
n-th person of a class, from either end, has the values of its n-th record; the same for the whole table. The largest is
compared with its distribution under random order within classes. Records with equal values cannot be distinguished and
may stand in runs, as programs that group rows write them, so runs are permuted instead of rows. All orders are tried if
there are few; otherwise a sample is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, permutations, product

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from shoal.attacks.candidates import CandidateView, entries
from shoal.attacks.risk import Control, Risk, percent_words
from shoal.tables.frequency import Floats, RowNumbers

LEVEL = 0.05  # probability of taking a random order for a sorted one
MAX_ORDERS = 3_000  # orders, if all are tried
DRAWS = (39, 199)  # orders drawn otherwise: minimum and maximum
EFFORT = 1_000_000  # records sorted in total
MOST_PEOPLE = 50_000  # examined
WORK = 30_000_000  # pairs of tuples and what people say, of those who fit
MAX_ROWS = 2_000  # rows matched with people one by one
AHEAD = 600  # the most people skipped, if that many were left out
ASIDE = 20  # additional places by which a row may be off
SMALL = 500  # rows of a release tested this way, if some were left out
CELLS = 4_000_000  # rows x offsets x orders compared at once
SHUFFLES = 9  # random orders, for comparison with matching one by one
SURE = 1e9  # attempts; nobody was sampled, so the share is exact


def unsorted_matching(view: CandidateView, *, n_absent: int = 0, seed: int = 0) -> Risk:
    """Measure how many people the row order discloses: their position gives the right record.

    ``gone`` is how many people were left out. Where the order of the records in their classes cannot be told from
    chance, the intruder gets no further than with rows in random order.
    """
    random = np.random.default_rng(seed)
    labels = _labels(view)
    n = view.n_records
    if labels is None:
        return _risk(n, 0.0, 0.0, "records of a class are identical, so their order discloses nothing more", exact=True)
    classes = _MatchedClasses.of(view, labels, random)
    backwards = classes.tested(_Statistics(view, labels, classes, n_absent), random)
    if backwards is None:
        chance = classes.by_chance
        words = (
            f"The row order discloses nothing: within their classes, the records are in random order, where "
            f"{percent_words(chance)} of the targets would be found."
        )
        return _risk(n, chance, chance, words, exact=True)
    share, chance, exact = _gain(view, labels, n_absent, random, backwards=backwards)
    words = (
        f"An attacker who matches both tables row by row{', in reverse,' if backwards else ''} finds "
        f"{percent_words(share)} of the targets by the row order; in random order, {percent_words(chance)} "
        "would be found."
    )
    return _risk(n, share, chance, words, exact=exact)


def _risk(n: int, share: float, chance: float, words: str, *, exact: bool) -> Risk:
    of_whom = "the same with the rows of each class in random order"
    control = Control(n, chance * n, of_whom, expected=True)
    sentence = words[0].upper() + words[1:].rstrip(".") + "."
    effective = SURE if exact else None
    return Risk("unsorted matching", "linkability", None, n, share * n, control, None, sentence, effective=effective)


def _labels(view: CandidateView) -> tuple[RowNumbers, RowNumbers] | None:
    """Label people and records by their other shared columns, or by the owner if there are none; -1 for neither."""
    if view.says is not None:
        return view.says
    if view.owner is not None:
        return view.owner, np.arange(view.n_records)
    return None


# ── The test ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class _MatchedClasses:
    """The records of classes one after the other, each class in the order of the release."""

    records: RowNumbers
    class_of: RowNumbers
    run_of: RowNumbers  # consecutive records of a class with equal values
    weighed: Floats  # the place in the class, centred, by the size of the class
    rank: Floats  # of the place in the original of those who could be behind the record, centred
    by_chance: float  # of the people in a class, how many say what a record of it says

    @classmethod
    def of(
        cls, view: CandidateView, labels: tuple[RowNumbers, RowNumbers], random: np.random.Generator
    ) -> _MatchedClasses:
        mine, theirs = labels
        tuple_of = np.zeros(view.n_records, np.int64) if view.changed else view.tuple_of
        kind_of = np.zeros(view.n_people, np.int64) if view.changed else view.kind_of
        # Where values were changed they make no classes: all records are in one that everybody fits.
        fits = csr_array(np.ones((1, 1))) if view.changed else csr_array(view.fits.T)
        labelled = np.flatnonzero(mine >= 0)
        shape = (fits.shape[1], int(max(mine.max(initial=-1), theirs.max(initial=-1))) + 1)
        people = csr_array((np.ones(len(labelled)), (kind_of[labelled], mine[labelled])), shape=shape)
        places = csr_array((labelled + 1.0, (kind_of[labelled], mine[labelled])), shape=shape)
        people.sum_duplicates()
        sampled = _affordable(fits, people, random)
        records = np.flatnonzero(sampled[tuple_of])
        records = records[np.argsort(tuple_of[records], kind="stable")]
        _, class_of = np.unique(tuple_of[records], return_inverse=True)
        fits, label_of = fits[np.flatnonzero(sampled)], theirs[records]
        row = (np.cumsum(sampled) - 1)[tuple_of[records]]
        n_alike = entries(csr_array(fits @ people), row, label_of)
        n_fit = np.asarray(fits @ np.bincount(kind_of, minlength=fits.shape[1]), np.float64)[row]
        by_chance = float((n_alike / np.maximum(n_fit, 1)).mean()) if len(row) else 0.0
        position = entries(csr_array(fits @ places), row, label_of) / np.maximum(n_alike, 1)
        # A record that agrees with nobody may be anywhere.
        explained = n_alike > 0
        sizes = np.bincount(class_of)
        total = np.bincount(class_of, np.where(explained, position, 0)) / np.maximum(
            np.bincount(class_of, explained), 1
        )
        position = np.where(explained, position, total[class_of])
        starts = np.cumsum(sizes) - sizes
        centre = (sizes - 1) / 2
        weighed = (np.arange(len(row)) - starts[class_of] - centre[class_of]) / (sizes[class_of] + 1)
        rank = _ranks(class_of, position, starts) - centre[class_of]
        new_run = np.ones(len(row), np.bool_)
        new_run[1:] = (np.diff(class_of) != 0) | (np.diff(label_of) != 0)
        return cls(records, class_of, np.cumsum(new_run) - 1, weighed, rank, by_chance)

    def tested(self, statistics: _Statistics, random: np.random.Generator) -> bool | None:
        """Return whether the records are in order (False) or reversed (True); None if it may be chance."""
        if len(np.unique(self.class_of)) == int(self.run_of[-1]) + 1:
            return None  # the records of each class have equal values
        as_it_is = np.arange(len(self.records))
        orders = self._all()
        exact = orders is not None
        if orders is None:
            n = int(np.clip(EFFORT // len(self.records), *DRAWS))
            orders = (self._drawn(random) for _ in range(n))
        observed = statistics.of([as_it_is])[0]
        drawn = np.vstack([statistics.of(batch) for batch in _batches(orders, statistics.at_once)])
        among = drawn if exact else np.vstack([drawn, observed])
        spread = among.std(axis=0)
        spread[spread < 1e-12] = np.inf
        scores = (among - among.mean(axis=0)) / spread
        score = (observed - among.mean(axis=0)) / spread
        probability = float((scores.max(axis=1) >= score.max() - 1e-9).mean())
        return None if probability > LEVEL else bool(score.argmax() % 2)

    def _drawn(self, random: np.random.Generator) -> RowNumbers:
        """Return the runs in random order within their classes."""
        keys = random.random(int(self.run_of[-1]) + 1)
        return np.argsort(self.class_of + keys[self.run_of], kind="stable")

    def _all(self) -> Iterable[RowNumbers] | None:
        """Return all orders of runs within classes; None if there are too many."""
        by_class, n = [], 1
        for members in np.split(np.arange(len(self.records)), np.flatnonzero(np.diff(self.class_of)) + 1):
            runs = np.split(members, np.flatnonzero(np.diff(self.run_of[members])) + 1)
            n *= math.factorial(min(len(runs), 20))
            if n > MAX_ORDERS:
                return None
            by_class.append([np.concatenate(order) for order in permutations(runs)])
        return (np.concatenate(order) for order in product(*by_class))


class _Statistics:
    """How well the records match the people by several statistics, in the given order and reversed."""

    def __init__(
        self, view: CandidateView, labels: tuple[RowNumbers, RowNumbers], classes: _MatchedClasses, n_absent: int
    ) -> None:
        self.view, self.mine, self.theirs, self.classes, self.n_absent = view, labels[0], labels[1], classes, n_absent
        self.pairs = [pairs for backwards in (False, True) if (pairs := _pairs(view, backwards=backwards)) is not None]
        n = min(view.n_people, view.n_records)
        places, ends = np.arange(n), np.arange(view.n_people)[::-1][:n]
        self.whole = [(people, places, _fit(view, people, places)) for people in (places, ends)]
        # In large releases ranks find what is to be found.
        rows, people = np.arange(view.n_records), np.arange(view.n_people)
        near = n_absent and view.n_records <= SMALL
        self.bands = [_DiagonalBand.of(view, rows, order, n_absent) for order in (people, people[::-1])] if near else []
        width = max((band.people.shape[1] for band in self.bands), default=1)
        self.at_once = max(1, CELLS // (view.n_records * width))  # orders

    def of(self, orders: Sequence[RowNumbers]) -> Floats:
        """Compute the statistics, a row for each order of the records of classes."""
        records = self.classes.records
        theirs = np.tile(self.theirs, (len(orders), 1))
        theirs[:, records] = self.theirs[records[np.array(orders)]]
        ranks = np.array([float(self.classes.weighed @ self.classes.rank[order]) for order in orders])
        out = [ranks, -ranks]
        out += [(self.mine[people] == theirs[:, rows]).sum(axis=1) for people, rows in self.pairs]
        out += [((self.mine[people] == theirs[:, rows]) & fit).sum(axis=1) for people, rows, fit in self.whole]
        out += [_longest(band.alike(self.mine, theirs)) for band in self.bands]
        return np.column_stack(out).astype(np.float64)


def _batches(orders: Iterable[RowNumbers], n: int) -> Iterator[list[RowNumbers]]:
    orders = iter(orders)
    while batch := list(islice(orders, n)):
        yield batch


def _affordable(fits: csr_array, people: csr_array, random: np.random.Generator) -> NDArray[np.bool_]:
    """Return the tuples to look at: all, or a random sample that the work limit allows."""
    n_said = np.diff(people.indptr)
    of_entry = n_said[fits.indices].astype(np.float64)
    ends = np.concatenate([[0.0], np.cumsum(of_entry)])
    work = ends[fits.indptr[1:]] - ends[fits.indptr[:-1]]
    sampled = np.ones(fits.shape[0], np.bool_)
    if work.sum() > WORK:
        order = random.permutation(len(work))
        sampled[order[np.cumsum(work[order]) > WORK]] = False
    return sampled


def _ranks(class_of: RowNumbers, values: Floats, starts: RowNumbers) -> Floats:
    """Return the rank of each value in its class, from 0; ties share their mean rank."""
    order = np.lexsort((values, class_of))
    sorted_values, sorted_classes = values[order], class_of[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (np.diff(sorted_values) != 0) | (np.diff(sorted_classes) != 0)
    firsts = np.flatnonzero(new)
    sizes = np.diff(np.append(firsts, len(order)))
    tie = np.cumsum(new) - 1
    out = np.empty(len(order))
    out[order] = (firsts + (sizes - 1) / 2)[tie] - starts[sorted_classes]
    return out


# ── What it gains ───────────────────────────────────────────────────────────────────────────────────────────


def _gain(
    view: CandidateView,
    labels: tuple[RowNumbers, RowNumbers],
    n_absent: int,
    random: np.random.Generator,
    *,
    backwards: bool,
) -> tuple[float, float, bool]:
    """Return the shares found by order and by chance, for the most successful way to match; and whether it is exact."""
    ways = [] if (paired := _paired(view, labels, backwards=backwards)) is None else [(*paired, True)]
    if ways and ways[0][0] == 1:
        return ways[0]
    whole = view.n_records <= MAX_ROWS and view.n_people <= MAX_ROWS + AHEAD + ASIDE
    by_class = np.argsort(view.tuple_of, kind="stable"), np.argsort(view.class_of, kind="stable")
    for rows, people in ((np.arange(view.n_records), np.arange(view.n_people)), by_class):
        ahead = _reversed(view, people, classwise=people is by_class[1]) if backwards else people
        aligned_share = aligned(view, labels, rows[:MAX_ROWS], ahead, n_absent) / len(rows[:MAX_ROWS])
        mixed = [aligned(view, labels, _mixed(view, rows, random)[:MAX_ROWS], ahead, n_absent) for _ in range(SHUFFLES)]
        ways.append((aligned_share, float(np.mean(mixed)) / len(rows[:MAX_ROWS]), whole))
    return max(ways, key=lambda way: ((way[0] - way[1]) / (1 - way[1]) if way[1] < 1 else 0.0, way[0]))


def _reversed(view: CandidateView, people: RowNumbers, *, classwise: bool) -> RowNumbers:
    if not classwise:
        return people[::-1]
    return np.lexsort((-people, view.class_of[people]))  # each class from its end


def _mixed(view: CandidateView, rows: RowNumbers, random: np.random.Generator) -> RowNumbers:
    """Return the rows of each tuple in random order, in their positions."""
    tuples = np.zeros(len(rows), np.int64) if view.changed else view.tuple_of[rows]
    out = np.empty_like(rows)
    out[np.argsort(tuples, kind="stable")] = rows[np.lexsort((random.random(len(rows)), tuples))]
    return out


def _paired(
    view: CandidateView, labels: tuple[RowNumbers, RowNumbers], *, backwards: bool
) -> tuple[float, float] | None:
    """Return the share found by pairing the n-th person of a class with its n-th record, and by random pairing."""
    if (pairs := _pairs(view, backwards=backwards)) is None:
        return None
    people, records = pairs
    mine, theirs, class_of = labels[0][people], labels[1][records], view.tuple_of[records]
    width = int(max(mine.max(), theirs.max())) + 2
    counted = [np.unique(class_of * width + labels_of + 1, return_counts=True) for labels_of in (mine, theirs)]
    _, left, right = np.intersect1d(counted[0][0], counted[1][0], assume_unique=True, return_indices=True)
    expected = counted[0][1][left] * counted[1][1][right] / view.counts[counted[0][0][left] // width]
    return float((mine == theirs).mean()), float(expected.sum() / view.n_people)


def _pairs(view: CandidateView, *, backwards: bool) -> tuple[RowNumbers, RowNumbers] | None:
    """Pair the n-th people of classes with their n-th records; None unless each matches one class of the same size."""
    if view.changed or (np.diff(view.fits.indptr)[view.kind_of] != 1).any():
        return None
    class_of = view.fits.indices[view.fits.indptr[:-1][view.kind_of]]
    if (np.bincount(class_of, minlength=len(view.tuples)) != view.counts).any():
        return None
    position = np.arange(view.n_people)
    return np.lexsort((-position if backwards else position, class_of)), np.argsort(view.tuple_of, kind="stable")


def aligned(
    view: CandidateView, labels: tuple[RowNumbers, RowNumbers], rows: RowNumbers, people: RowNumbers, n_absent: int
) -> int:
    """Return the largest number of rows that match people in the same order, each near its position.

    A longest common subsequence, within a band around the diagonal: rows may have been left out, or stand elsewhere.
    """
    mine, theirs = labels
    return int(_longest(_DiagonalBand.of(view, rows, people, n_absent).alike(mine, theirs[None]))[0])


@dataclass(frozen=True, eq=False)
class _DiagonalBand:
    """Rows and the people around their positions."""

    rows: RowNumbers
    people: RowNumbers  # (rows, offsets)
    fit: NDArray[np.bool_]  # (rows, offsets)

    @classmethod
    def of(cls, view: CandidateView, rows: RowNumbers, people: RowNumbers, n_absent: int) -> _DiagonalBand:
        offsets = np.arange(-ASIDE, min(n_absent, AHEAD) + ASIDE + 1)
        places = np.arange(len(rows))[:, None] + offsets
        inside = (places >= 0) & (places < len(people))
        nearby = people[np.clip(places, 0, len(people) - 1)]
        fit = _fit(view, nearby.ravel(), np.repeat(rows, len(offsets))).reshape(nearby.shape)
        return cls(rows, nearby, inside & fit)

    def alike(self, mine: RowNumbers, theirs: RowNumbers) -> NDArray[np.bool_]:
        """Return which of the people match the row and have the same values, in each order of the rows."""
        return np.asarray(self.fit & (mine[self.people] == theirs[:, self.rows, None]))


def _longest(fits: NDArray[np.bool_]) -> RowNumbers:
    """Return for each order how many rows match people who stand in the same order."""
    # best[:, j]: the most rows so far whose people stand before the place of the j-th offset, or there.
    best = np.zeros((len(fits), fits.shape[2]), np.int64)
    for row in range(fits.shape[1]):
        extended = best + fits[:, row]
        np.maximum(
            extended[:, :-1], best[:, 1:], out=extended[:, :-1]
        )  # people are one offset less from the next place
        best = np.maximum.accumulate(extended, axis=1)
    return np.asarray(best.max(axis=1, initial=0))


def _fit(view: CandidateView, people: RowNumbers, rows: RowNumbers) -> NDArray[np.bool_]:
    return np.ones(len(rows), np.bool_) if view.changed else view.fit(people, rows)
