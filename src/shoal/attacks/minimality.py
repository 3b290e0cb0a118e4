"""Minimality: the intruder knows that the release is as fine as the policy allows, so nothing finer was.

R. C.-W. Wong, A. W.-C. Fu, K. Wang, J. Pei, "Minimality attack in privacy preserving data publishing", VLDB 2007.
An intruder with everybody's raw quasi-identifiers can form the classes of every release one step finer. If their sizes
do not explain why it was refused, their sensitive values must. All assignments of a class's values to its people are
weighted by probability (``value_assignments``); those that would have allowed a finer release are ruled out. That gives
the posterior of each value, exactly for classes with few assignments, and estimated from a sample otherwise.
Needs  a full-domain release of all records, the original, the policy, and a requirement on sensitive values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.attacks.risk import Risk, percent_words
from shoal.attacks.scoring import Scored, risk
from shoal.attacks.value_assignments import TooManyError, deals, posterior
from shoal.compiled.grouping import group
from shoal.engines.local import LocalEngine
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.models import ReleaseModel, SensitiveModel
from shoal.models.size import PopulationModel
from shoal.notation import codec
from shoal.policy import Policy
from shoal.tables.frequency import Codes, Domain, FrequencyTable, Histogram, RowNumbers, packed

LARGEST = 100_000  # records; with more, dealing takes too long


class NotApplicableError(Exception):
    """The attack cannot be tried on this release."""


class UntoldError(NotApplicableError):
    """The result of the attack could not be computed."""


@dataclass(frozen=True, eq=False)
class _Finer:
    """A release one step below: the class of every record, and whether its class sizes alone forbid it."""

    class_of: RowNumbers
    codes: Codes

    @property
    def n_classes(self) -> int:
        return len(self.codes)


def minimality(original: LocalEngine, release: pa.Table, policy: Policy, *, seed: int = 0) -> list[Risk]:
    """Measure for each sensitive column how often the most likely value, given minimality, is the true one.

    Raises NotApplicableError where the release is not of the kind that can be attacked so, and UntoldError where it is
    and what follows could not be computed.
    """
    judged = [m for m in policy.models if not isinstance(m, ReleaseModel | PopulationModel)]
    if len(judged) < len(policy.models) or not any(isinstance(m, SensitiveModel) for m in judged):
        raise NotApplicableError(
            "the policy has no requirement on sensitive values, or one that needs the overall distribution"
        )
    if release.num_rows != original.table.num_rows or policy.release.entity is not None:
        raise NotApplicableError("records were suppressed, or people have several")
    if release.num_rows > LARGEST:
        raise NotApplicableError(f"more than {LARGEST} records are too many to enumerate")
    if policy.release.nulls == "wildcard":
        raise NotApplicableError("nulls match any value")
    hierarchies = original.count(policy).table.hierarchies
    levels = [level_of(h, codec.encode_texts(h.column, release[h.column]).texts) for h in hierarchies]
    if None in levels:
        raise NotApplicableError("the release is not full-domain; what its labels prove is measured by downcoding")
    node = [level for level in levels if level is not None]
    leaves = np.column_stack([_leaves(original, h) for h in hierarchies])
    whole = [(domain, _values(original, domain)) for domain in original.domains(policy).values()]
    class_of, _ = _classes(leaves, hierarchies, node)
    lower = []
    for j, level in enumerate(node):
        if level > 0:
            finer = _Finer(*_classes(leaves, hierarchies, [*node[:j], level - 1, *node[j + 1 :]]))
            if _allowed(finer, policy, [], sensitive=False):
                lower.append(finer)
    if any(_allowed(finer, policy, whole, sensitive=True) for finer in lower):
        raise NotApplicableError("a finer release would have been allowed, so its absence implies nothing")
    learned, listed = _learned(class_of, lower, whole, policy, np.random.default_rng(seed))
    risks = []
    for i, (domain, codes) in enumerate(whole):
        blind = _right(class_of, codes, _histogram(class_of, codes, len(domain.texts)))
        credits = blind if learned is None else _right(learned.group_of, codes, learned.likely[i])
        how = "" if listed else "; estimated, because not all assignments of the values could be tried"
        risks.append(
            risk(
                "minimality",
                "inference",
                Scored(credits, blind, "the most frequent value of the class", classes=class_of),
                f"An attacker who knows the algorithm and all quasi-identifiers correctly guesses the "
                f"{domain.column} of {percent_words(float(credits.mean()))} of the targets; from the classes alone, "
                f"{percent_words(float(blind.mean()))}{how}.",
                column=domain.column,
            )
        )
    return risks


def level_of(hierarchy: Hierarchy, texts: tuple[str, ...]) -> int | None:
    """Return the lowest level that has all released texts as labels; None if there is none."""
    for level, labels in enumerate(hierarchy.labels):
        if set(texts) <= set(labels):
            return level
    return None


def _leaves(original: LocalEngine, hierarchy: Hierarchy) -> Codes:
    coded = original.coded(hierarchy.column)
    leaf_of = hierarchy.encode([*coded.texts, None] if None in hierarchy.leaves else coded.texts)
    return leaf_of[coded.codes]


def _values(original: LocalEngine, domain: Domain) -> Codes:
    coded = original.coded(domain.column)
    number_of = {text: i for i, text in enumerate(domain.texts)}
    return np.array([*(number_of[text] for text in coded.texts), number_of.get(None, -1)], np.int32)[coded.codes]


def _classes(leaves: Codes, hierarchies: tuple[Hierarchy, ...], node: list[int]) -> tuple[RowNumbers, Codes]:
    codes = np.column_stack(
        [h.table[level][leaves[:, j]] for j, (h, level) in enumerate(zip(hierarchies, node, strict=True))]
    )
    class_of, firsts = group(packed(codes))
    return class_of.astype(np.int64), codes[firsts]


def _allowed(finer: _Finer, policy: Policy, dealt: list[tuple[Domain, Codes]], *, sensitive: bool) -> bool:
    """Return whether the finer release would have been allowed after suppressing its failing classes."""
    failing = _failing(finer, policy, dealt, sensitive=sensitive)
    return int(failing[finer.class_of].sum()) <= policy.allowance(len(finer.class_of))


def _failing(finer: _Finer, policy: Policy, dealt: list[tuple[Domain, Codes]], *, sensitive: bool) -> NDArray[np.bool_]:
    """Return which classes of the finer release fail."""
    table = FrequencyTable(
        policy.quasi,
        finer.codes,
        np.bincount(finer.class_of, minlength=finer.n_classes).astype(np.int64),
        {d.column: Histogram.counted(finer.class_of, codes, finer.n_classes, len(d.texts), d) for d, codes in dealt},
    )
    failing = np.zeros(finer.n_classes, np.bool_)
    for model in policy.models:
        if sensitive or not isinstance(model, SensitiveModel):
            failing |= ~model.passes(table)
    return failing


@dataclass(frozen=True, eq=False)
class _LikelyValues:
    """People whom no assignment distinguishes, and the probability of each value for them."""

    group_of: RowNumbers
    likely: tuple[NDArray[np.float64], ...]  # per sensitive column (groups, values)


def _learned(
    class_of: RowNumbers,
    lower: list[_Finer],
    whole: list[tuple[Domain, Codes]],
    policy: Policy,
    random: np.random.Generator,
) -> tuple[_LikelyValues | None, bool]:
    """Return the posterior of each group, and whether all assignments were listed.

    The posterior is None if class sizes alone refuse every finer release.
    """
    if not lower:
        return None, True
    keys = np.column_stack([class_of, *(finer.class_of for finer in lower)])
    group_of, firsts = group(packed(keys.astype(np.int32)))
    group_of = group_of.astype(np.int64)
    truths = np.column_stack([codes for _, codes in whole])
    value_of, of_value = group(packed(truths.astype(np.int32)))
    joint = truths[of_value]  # (joint values, sensitive columns)
    refused = [_refusal(finer, policy, [domain for domain, _ in whole], joint) for finer in lower]
    likely = tuple(np.zeros((len(firsts), len(domain.texts))) for domain, _ in whole)
    classes, of_class = [], []
    order = np.argsort(class_of, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(class_of[order])) + 1):
        groups, where = np.unique(group_of[members], return_inverse=True)
        values, counts = np.unique(value_of[members], return_counts=True)
        parts = [finer.class_of[firsts[groups]] for finer in lower]
        judges = [partial(judge, values) for judge in refused]
        classes.append(deals(np.bincount(where), counts.astype(np.int64), parts, judges, random))
        of_class.append((groups, values, np.bincount(where)))
    try:
        chances = posterior(classes, policy.allowance(len(class_of)))
    except TooManyError:
        raise UntoldError("too many ways to suppress records of finer releases") from None
    if chances is None:
        raise UntoldError("no assignment that was tried explains the release")
    for assignment, chance, (groups, values, sizes) in zip(classes, chances, of_class, strict=True):
        expected = np.einsum("d,dgv->gv", chance, assignment.tables) / sizes[:, None]
        for i, table in enumerate(likely):
            for v, value in enumerate(values.tolist()):
                table[groups, joint[value, i]] += expected[:, v]
    return _LikelyValues(group_of, likely), all(assignment.listed for assignment in classes)


def _refusal(
    finer: _Finer, policy: Policy, domains: list[Domain], joint: Codes
) -> Callable[[RowNumbers, int, RowNumbers], NDArray[np.bool_]]:
    """Judge the classes of a finer release by their sizes and by the joint values of their people."""
    models = [model for model in policy.models if isinstance(model, SensitiveModel)]
    too_small = _failing(finer, policy, [], sensitive=False)

    def fails(values: RowNumbers, part: int, histograms: RowNumbers) -> NDArray[np.bool_]:
        if too_small[part]:
            return np.ones(len(histograms), np.bool_)
        row, column = np.nonzero(histograms)
        n = histograms[row, column]
        sensitive = {
            domain.column: Histogram.counted(
                row, joint[values[column], i].astype(np.int32), len(histograms), len(domain.texts), domain, n
            )
            for i, domain in enumerate(domains)
        }
        codes = np.zeros((len(histograms), len(policy.quasi)), np.int32)
        table = FrequencyTable(policy.quasi, codes, histograms.sum(axis=1), sensitive)
        failing = np.zeros(len(histograms), np.bool_)
        for model in models:
            failing |= ~model.passes(table)
        return failing

    return fails


def _histogram(class_of: RowNumbers, codes: Codes, n_values: int) -> NDArray[np.float64]:
    out = np.zeros((int(class_of.max()) + 1, n_values))
    np.add.at(out, (class_of, codes), 1.0)
    return np.asarray(out / out.sum(axis=1, keepdims=True))


def _right(group_of: RowNumbers, truth: Codes, likely: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for each person the probability that a guess among the most likely values of the group is right."""
    best = likely >= likely.max(axis=1, keepdims=True) - 1e-9
    return np.where(best[group_of, truth], 1 / best.sum(axis=1)[group_of], 0.0)
