"""Minimality: the intruder knows that the release is as fine as the policy allows, so anything finer was not.

R. C.-W. Wong, A. W.-C. Fu, K. Wang, J. Pei, "Minimality attack in privacy preserving data publishing", VLDB 2007.
Who has the raw quasi-identifiers of everybody knows how the classes one step below would look. Where their sizes do
not explain why they were refused, their sensitive values do. The values of each class are dealt to its people at
random; deals under which a finer release would have been allowed are thrown away, and what the others agree on is
learned. Needs a full-domain release of all records, the original, the policy, and a requirement on sensitive values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.attacks.risk import Risk, percent
from shoal.attacks.scoring import Scored, risk
from shoal.engines.local import LocalEngine
from shoal.models import ReleaseModel, SensitiveModel
from shoal.models.size import PopulationModel
from shoal.policy import Policy
from shoal.table import codec
from shoal.table.frequency import Codes, Domain, FrequencyTable, Histogram, packed
from shoal.table.hierarchy import Hierarchy
from shoal.table.kernels import group

Rows = NDArray[np.int64]

LARGEST = 100_000  # records; with more, dealing often enough takes too long
EFFORT = 1_000_000  # records dealt in all
DRAWS = (30, 300)  # deals, at least and at most
ENOUGH = 5  # deals that must be left to learn anything


class NotApplicableError(Exception):
    """Why the attack cannot be tried."""


@dataclass(frozen=True, eq=False)
class _Finer:
    """A release one step below: the class of every record, and whether its sizes alone forbid it."""

    class_of: Rows
    codes: Codes

    @property
    def n_classes(self) -> int:
        return len(self.codes)


def minimality(original: LocalEngine, release: pa.Table, policy: Policy, *, seed: int = 0) -> list[Risk]:
    """One Risk per sensitive column: how often the most likely value, given that nothing finer held, is the true one.

    Raises NotApplicableError where the release is not of the kind that can be attacked so.
    """
    judged = [m for m in policy.models if not isinstance(m, ReleaseModel | PopulationModel)]
    if len(judged) < len(policy.models) or not any(isinstance(m, SensitiveModel) for m in judged):
        raise NotApplicableError("the policy has no requirement on sensitive values, or one that needs the whole")
    if release.num_rows != original.table.num_rows or policy.release.entity is not None:
        raise NotApplicableError("records were left out, or persons have several")
    if release.num_rows > LARGEST:
        raise NotApplicableError(f"more than {LARGEST} records are too many to deal")
    if policy.release.nulls == "wildcard":
        raise NotApplicableError("nulls stand for anything")
    original = LocalEngine(original.table, fingerprint="")  # the one given remembers what it has counted last
    table = original.count(policy)
    hierarchies = table.hierarchies
    levels = [level_of(h, codec.texts(h.column, release[h.column]).texts) for h in hierarchies]
    if None in levels:
        raise NotApplicableError("the release is not full-domain")
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
    truths = np.column_stack([codes for _, codes in whole])
    learned = _learned(class_of, lower, truths, whole, policy, seed)
    risks = []
    for i, (domain, codes) in enumerate(whole):
        blind = _right(class_of, [codes], codes)
        found = blind if learned is None else _right(learned[0], [dealt[:, i] for dealt in learned[1]], codes)
        risks.append(
            risk(
                "minimality",
                "inference",
                Scored(found, blind, "the most frequent value of the class"),
                f"Who knows how the release was computed, and everybody's quasi-identifiers, guesses the "
                f"{domain.column} of {percent(float(found.mean()))} of the people; the classes alone give "
                f"{percent(float(blind.mean()))}.",
                column=domain.column,
            )
        )
    return risks


def level_of(hierarchy: Hierarchy, texts: tuple[str, ...]) -> int | None:
    """The least level that has all released texts as labels; None where there is none."""
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
    place = {text: i for i, text in enumerate(domain.texts)}
    return np.array([*(place[text] for text in coded.texts), place.get(None, -1)], np.int32)[coded.codes]


def _classes(leaves: Codes, hierarchies: tuple[Hierarchy, ...], node: list[int]) -> tuple[Rows, Codes]:
    codes = np.column_stack(
        [h.table[level][leaves[:, j]] for j, (h, level) in enumerate(zip(hierarchies, node, strict=True))]
    )
    class_of, firsts = group(packed(codes))
    return class_of.astype(np.int64), codes[firsts]


def _allowed(finer: _Finer, policy: Policy, dealt: list[tuple[Domain, Codes]], *, sensitive: bool) -> bool:
    """Whether the finer release would have been allowed, its failing classes suppressed within the budget."""
    table = FrequencyTable(
        policy.quasi,
        finer.codes,
        np.bincount(finer.class_of, minlength=finer.n_classes).astype(np.int64),
        {d.column: Histogram.of(finer.class_of, codes, finer.n_classes, len(d.texts), d) for d, codes in dealt},
    )
    failing = np.zeros(finer.n_classes, np.bool_)
    for model in policy.models:
        if sensitive or not isinstance(model, SensitiveModel):
            failing |= ~model.passes(table)
    return int(table.counts[failing].sum()) <= policy.allowance(len(finer.class_of))


def _learned(
    class_of: Rows,
    lower: list[_Finer],
    truths: Codes,
    whole: list[tuple[Domain, Codes]],
    policy: Policy,
    seed: int,
) -> tuple[Rows, list[Codes]] | None:
    """The group of each record, which no deal tells apart from its equals, and the deals left; None if too few are."""
    if not lower:
        return None
    random = np.random.default_rng(seed)
    keys = np.column_stack([class_of, *(finer.class_of for finer in lower)])
    group_of, _ = group(packed(keys.astype(np.int32)))
    home = np.argsort(class_of, kind="stable")
    kept = []
    for _ in range(min(max(EFFORT // len(class_of), DRAWS[0]), DRAWS[1])):
        order = np.lexsort((random.random(len(class_of)), class_of))
        dealt = np.empty_like(truths)
        dealt[home] = truths[order]
        pairs = [(domain, dealt[:, i]) for i, (domain, _) in enumerate(whole)]
        if not any(_allowed(finer, policy, pairs, sensitive=True) for finer in lower):
            kept.append(dealt)
    return (group_of.astype(np.int64), kept) if len(kept) >= ENOUGH else None


def _right(group_of: Rows, seen: list[Codes], truth: Codes) -> NDArray[np.float64]:
    """Per person, how likely a guess among the values seen most often in the group is right."""
    width = int(max(truth.max(), *(codes.max() for codes in seen))) + 1
    keys, counts = np.unique(np.concatenate([group_of * width + codes for codes in seen]), return_counts=True)
    of_key = keys // width
    most = np.zeros(int(group_of.max()) + 1, np.int64)
    np.maximum.at(most, of_key, counts)
    best = counts == most[of_key]
    n_best = np.bincount(of_key[best], minlength=len(most))
    own = group_of * width + truth
    place = np.minimum(np.searchsorted(keys, own), len(keys) - 1)
    return np.where((keys[place] == own) & best[place], 1 / n_best[group_of], 0.0)
