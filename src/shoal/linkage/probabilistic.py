"""Probabilistic record linkage: evidence from agreement and disagreement in every column, weighted by how usual it is.

I. Fellegi, A. Sunter, "A theory for record linkage", JASA 64, 1969; M. Jaro, "Advances in record-linkage methodology",
JASA 84, 1989, for the EM algorithm. Pairs of one person agree on column j with probability m_j, others with u_j,
columns independently; the weight of a pair is Σ log2(m_j / u_j) over the columns that agree and
Σ log2((1 − m_j) / (1 − u_j)) over the others.
Needs  the counts of patterns only. Two things keep the EM on the matches: there are no more of them than records in
       the smaller file, and no column agrees less often among them than among the rest (m_j ≥ u_j).
Finds  a maximum of the likelihood, the best of several fixed starts; whether it converged is reported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.errors import DataError
from shoal.linkage.columns import LinkedFile, On, Truth, side_by_side
from shoal.linkage.patterns import PatternCounts, compared, counted_pairs
from shoal.policy import PolicySource
from shoal.tables.frequency import Counts, Floats, RowNumbers

STARTS = tuple(product((0.9, 0.6), (1.0, 0.1)))  # m, and matches as a share of the most that are possible
TOLERANCE = 1e-7  # no parameter moves by more: converged
NO_EVIDENCE = 1e-6  # bits between agreement and disagreement below which a column counts as uninformative
DIGITS = 9  # weights that agree so far are equal

LINK, CLERICAL, NON_LINK = 1, 0, -1


@dataclass(frozen=True, eq=False)
class Model:
    """Agreement probabilities estimated by the EM algorithm."""

    m: Floats  # (q)  agreement of pairs of one person
    u: Floats  # (q)  of other pairs
    prevalence: float  # share of the pairs that are of one person
    log_likelihood: float
    iterations: int
    converged: bool

    @property
    def agreement(self) -> Floats:
        """log2(m/u); 0 for an uninformative column."""
        return np.where(self.informative, np.log2(self.m / self.u), 0.0)

    @property
    def disagreement(self) -> Floats:
        """log2((1 − m)/(1 − u)); 0 for an uninformative column."""
        return np.where(self.informative, np.log2((1 - self.m) / (1 - self.u)), 0.0)

    @property
    def informative(self) -> NDArray[np.bool_]:
        """The columns that distinguish matches from non-matches at all."""
        return np.log2(self.m / self.u) - np.log2((1 - self.m) / (1 - self.u)) > NO_EVIDENCE

    def weights(self, agrees: NDArray[np.bool_]) -> Floats:
        """Return the weight of each pattern."""
        return np.asarray(np.round(np.where(agrees, self.agreement, self.disagreement).sum(axis=1), DIGITS))


@dataclass(frozen=True, eq=False)
class ProbabilisticLinkage:
    """The results, per pair and per known record."""

    patterns: PatternCounts
    model: Model
    weights: Floats  # (2^q)  of each pattern
    decisions: NDArray[np.int8]  # (2^q)  1 link, 0 clerical review, -1 non-link
    upper: float  # the least weight of a link; infinite where there is none
    lower: float  # the largest weight of a non-link; minus infinite where there is none
    false_link: float  # P(link | not the same person) that the model expects
    false_non_link: float  # P(non-link | same person) that the model expects
    weight: Floats  # per known record, of its best pairs; minus infinite where nothing speaks for any
    ties: Counts  # released records that are as good
    rows: RowNumbers  # the first of them, -1 for none
    of: int | None  # known records whose person is in the release; None where the truth is not known
    correct: float | None  # best pairs that are right, one among t counting 1/t, links or not
    correct_links: float | None  # of these, links
    singled_out: int | None  # right without a tie, links or not
    true_pairs: dict[str, int] | None  # the pairs of one person by decision

    @property
    def risk(self) -> float | None:
        """The share of people linked correctly by an intruder who takes the best pair, certain or not."""
        return None if self.of is None or self.correct is None else self.correct / max(1, self.of)

    @property
    def linked(self) -> NDArray[np.bool_]:
        """The known records whose best pairs are links."""
        return (self.rows >= 0) & (self.weight >= self.upper)

    @property
    def pairs(self) -> dict[str, int]:
        """The number of pairs by decision."""
        return {name: int(self.patterns.counts[self.decisions == d].sum()) for name, d in _DECISIONS.items()}

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; a threshold without a pattern beyond it is None."""
        model = self.model
        return {
            "columns": list(self.patterns.columns),
            "m": model.m.tolist(),
            "u": model.u.tolist(),
            "prevalence": model.prevalence,
            "agreement": model.agreement.tolist(),
            "disagreement": model.disagreement.tolist(),
            "converged": model.converged,
            "iterations": model.iterations,
            "upper": self.upper if math.isfinite(self.upper) else None,
            "lower": self.lower if math.isfinite(self.lower) else None,
            "false_link": self.false_link,
            "false_non_link": self.false_non_link,
            "pairs": self.pairs,
            "true_pairs": self.true_pairs,
            "linked": int(self.linked.sum()),
            "of": self.of,
            "correct": self.correct,
            "correct_links": self.correct_links,
            "singled_out": self.singled_out,
            "risk": self.risk,
        }


_DECISIONS = {"link": LINK, "clerical": CLERICAL, "non_link": NON_LINK}


def probabilistic_linkage(
    known: LinkedFile,
    release: LinkedFile,
    *,
    on: On = None,
    numeric: Sequence[str] | None = None,
    policy: PolicySource | None = None,
    original: LinkedFile | None = None,
    false_link: float | None = None,
    false_non_link: float = 0.05,
    smoothing: float = 1.0,
    max_iterations: int = 2000,
    truth: Truth = None,
    id: str | None = None,
) -> ProbabilisticLinkage:
    """Estimate m and u from the two files alone, decide on every pattern, and link each known record.

    ``false_link`` is the probability that a pair of two people becomes a link, ``false_non_link`` that a pair of one
    person becomes a non-link; what neither allows to decide is left for clerical review. Without ``false_link`` it is
    as much as makes false links a twentieth of the matches that are possible. ``smoothing`` pairs are added to each
    outcome of each column, so that no probability is 0 or 1. Nulls and ``*`` agree with nothing. ``truth`` and ``id``
    give the true links, which are only used for counting.
    """
    files = side_by_side(known, release, on=on, numeric=numeric, policy=policy, original=original, truth=truth, id=id)
    max_share = min(files.n_known, files.n_released) / (files.n_known * files.n_released)
    limit = 0.05 * max_share if false_link is None else false_link
    for option, value in (("false_link", limit), ("false_non_link", false_non_link)):
        if not 0 <= value <= 1:
            raise DataError(f"{option}: must be a probability")
    pairs = compared(files)
    patterns = counted_pairs(files, pairs)
    model = fit_mixture(patterns, smoothing=smoothing, max_iterations=max_iterations)
    weights = model.weights(patterns.agrees)
    decisions, upper, lower, false_links, false_non_links = _decided(model, patterns, weights, limit, false_non_link)
    # An intruder need not be certain: every pair with positive weight is worth a guess.
    likely = (decisions == LINK) | (weights > 0)
    levels = np.unique(-weights[likely])  # the best weight first
    level_of = np.where(likely, np.searchsorted(levels, -weights), -1)
    best = pairs.best(level_of, np.flatnonzero(model.informative).tolist())
    paired = best.level >= 0
    weight = np.full(files.n_known, -np.inf)
    weight[paired] = -levels[best.level[paired]]
    n_people = correct = correct_links = singled_out = true_pairs = None
    if files.owners is not None:
        people = np.flatnonzero(files.owners >= 0)
        true_patterns = pairs.patterns(people, files.owners[people])
        right = paired[people] & (level_of[true_patterns] == best.level[people])
        credit = right / np.maximum(best.ties[people], 1)
        n_people, correct = len(people), float(credit.sum())
        correct_links = float(credit[weight[people] >= upper].sum())
        singled_out = int((right & (best.ties[people] == 1)).sum())
        true_pairs = {name: int((decisions[true_patterns] == d).sum()) for name, d in _DECISIONS.items()}
    return ProbabilisticLinkage(
        patterns,
        model,
        weights,
        decisions,
        upper,
        lower,
        false_links,
        false_non_links,
        weight,
        best.ties,
        best.rows,
        n_people,
        correct,
        correct_links,
        singled_out,
        true_pairs,
    )


# ── Estimation ──────────────────────────────────────────────────────────────────────────────────────────────


def fit_mixture(patterns: PatternCounts, *, smoothing: float = 1.0, max_iterations: int = 2000) -> Model:
    """Estimate m, u and the share of matches by EM from several fixed starts; return the most likely."""
    if not (math.isfinite(smoothing) and smoothing > 0):
        raise DataError("smoothing: must be more than 0", "a probability of 0 or 1 would give an infinite weight")
    if max_iterations < 1:
        raise DataError("max_iterations: must be at least 1")
    models = [_em(patterns, m, share, smoothing, max_iterations) for m, share in STARTS]
    return max(models, key=lambda model: model.log_likelihood)


def _em(patterns: PatternCounts, start: float, share: float, smoothing: float, max_iterations: int) -> Model:
    agrees = patterns.agrees.astype(np.float64)
    counts = patterns.counts.astype(np.float64)
    total = counts.sum()
    max_share = min(patterns.n_known, patterns.n_released) / total
    overall = (counts @ agrees + 2 * smoothing) / (total + 4 * smoothing)
    u = overall
    m = np.maximum(u, start)
    p = share * max_share
    converged = False
    iterations = 0
    for iterations in range(1, max_iterations + 1):  # noqa: B007 (read after the loop)
        match = _posterior(agrees, m, u, p)[0] * counts
        n_match = match.sum()
        new_m = (match @ agrees + smoothing) / (n_match + 2 * smoothing)
        new_u = ((counts - match) @ agrees + smoothing) / (total - n_match + 2 * smoothing)
        # Where matches agree less often than others, the likeliest values with m ≥ u are both the overall share.
        pooled = new_m < new_u
        new_m, new_u = np.where(pooled, overall, new_m), np.where(pooled, overall, new_u)
        # At least a thousandth of a pair: 0 has no logarithm.
        new_p = max(min(float(n_match / total), max_share), 1e-3 / float(total))
        moved = max(np.abs(new_m - m).max(), np.abs(new_u - u).max(), abs(new_p - p) / max_share)
        m, u, p = new_m, new_u, new_p
        if moved < TOLERANCE:
            converged = True
            break
    likelihood = counts @ _posterior(agrees, m, u, p)[1]
    prior = smoothing * float((np.log(m) + np.log(1 - m) + np.log(u) + np.log(1 - u)).sum())
    return Model(m, u, p, float(likelihood) + prior, iterations, converged)


def _posterior(agrees: Floats, m: Floats, u: Floats, p: float) -> tuple[Floats, Floats]:
    """Return the probability of each pattern to be a match, and the logarithm of its own probability."""
    matching = math.log(p) + agrees @ np.log(m) + (1 - agrees) @ np.log(1 - m)
    other = (
        math.log1p(-p) + agrees @ np.log(u) + (1 - agrees) @ np.log(1 - u) if p < 1 else np.full(len(agrees), -np.inf)
    )
    log_total = np.logaddexp(matching, other)
    return np.exp(matching - log_total), log_total


# ── Decision ────────────────────────────────────────────────────────────────────────────────────────────────


def _decided(
    model: Model, patterns: PatternCounts, weights: Floats, false_link: float, false_non_link: float
) -> tuple[NDArray[np.int8], float, float, float, float]:
    """Decide on links from the largest weight down while false links stay rare enough, then on non-links."""
    agrees = patterns.agrees.astype(np.float64)
    m, u = (np.exp(agrees @ np.log(x) + (1 - agrees) @ np.log(1 - x)) for x in (model.m, model.u))
    levels, level_of = np.unique(weights, return_inverse=True)  # equal weights are decided alike
    m_at, u_at = (np.bincount(level_of, weights=x, minlength=len(levels)) for x in (m, u))
    links = np.cumsum(u_at[::-1])[::-1] <= false_link
    non_links = (np.cumsum(m_at) <= false_non_link) & ~links
    decisions = np.where(links, LINK, np.where(non_links, NON_LINK, CLERICAL)).astype(np.int8)[level_of]
    return (
        decisions,
        float(levels[links].min(initial=np.inf)),
        float(levels[non_links].max(initial=-np.inf)),
        float(u_at[links].sum()),
        float(m_at[non_links].sum()),
    )
