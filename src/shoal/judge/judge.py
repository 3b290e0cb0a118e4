"""Judge every requirement of a policy; all entry points use ``judge_release``.

A requirement holds, fails, or cannot be determined from the data given. If partial evidence decides it, it is decided:
there are never more people than records, so a class with too few records has too few people.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shoal.errors import CannotTellError, LimitExceededError, VerificationError
from shoal.models import PopulationModel, PrivacyModel, ReleaseModel, SensitiveModel
from shoal.models.base import TOLERANCE
from shoal.models.closeness import COMPARED, TCloseness
from shoal.models.forbidden import Minable
from shoal.models.measured import LinkageRisk, MeasuredLimit
from shoal.models.size import AlphaK, PSensitive
from shoal.models.verdict import Outcome, Verdict, Verdicts
from shoal.policy import Policy
from shoal.tables.frequency import Counts, FrequencyTable, Histogram
from shoal.tables.wildcard import neighbourhoods

if TYPE_CHECKING:
    from shoal.attacks.risk import Attacks
    from shoal.original.owners import Owners, PersonBounds


@dataclass(frozen=True)
class Gaps:
    """What a table cannot show by itself, and what would be needed; each field is empty if nothing is missing."""

    persons: str = ""  # the persons behind the records
    between: PersonBounds | None = None  # the number of persons of each class, as far as it is known
    whole: str = ""  # the distribution of the values before records were dropped
    dropped: int = 0  # at most this many
    population: str = ""  # the population that the records are a sample of
    hierarchies: Mapping[str, str] = field(default_factory=dict)  # of sensitive columns, by name
    order: str = ""  # of the rows

    @classmethod
    def of(cls, policy: Policy, columns: Sequence[str], order: str = "") -> tuple[Gaps, Policy]:
        """Return what a table with these columns cannot show, and the policy with which the rest is counted."""
        entity = policy.release.entity
        if entity is None or entity in columns:
            return cls(order=order), policy
        options = policy.release.model_copy(update={"entity": None})
        persons = f"needs the original, whose column {entity!r} identifies people"
        return cls(persons, order=order), policy.model_copy(update={"release": options})

    def known(self, owners: Owners, table: FrequencyTable) -> Gaps:
        """Return what is still missing once the original has identified people as far as possible."""
        between = owners.between
        if between is not None and not np.array_equal(between.tuples, table.codes):
            between = None  # of other classes
        return replace(self, persons=owners.missing, between=between)

    def of_model(self, model: PrivacyModel, sensitive: Sequence[str]) -> str:
        """Return what is missing to judge a requirement on these sensitive columns."""
        if isinstance(model, PopulationModel):
            return self.population
        if isinstance(model, COMPARED):
            covered = [model.column] if model.column else sensitive
            of_hierarchy = (self.hierarchies[name] for name in covered if name in self.hierarchies)
            return self.whole or (next(of_hierarchy, "") if isinstance(model, TCloseness) else "")
        return self.persons if counts_persons(model) else ""

    def of_limit(self, limit: MeasuredLimit) -> str:
        """Return information that the attacks lacked and that could have made them more successful."""
        return self.persons or (self.order if isinstance(limit, LinkageRisk) else "")


NO_GAPS = Gaps()


def counts_persons(model: PrivacyModel) -> bool:
    """Return whether a requirement depends on the number of people in a class."""
    if isinstance(model, PopulationModel):
        return False
    return not isinstance(model, SensitiveModel) or isinstance(model, PSensitive | AlphaK)


def judge_release(
    table: FrequencyTable,
    policy: Policy,
    *,
    attacks: Attacks | None = None,
    limits: Sequence[Verdict] | None = None,
    mined: Minable | None = None,
    identifiers: Sequence[str] = (),
    gaps: Gaps = NO_GAPS,
) -> Verdicts:
    """Judge every requirement of the policy on a release: on its classes, on attacks, and on what can be mined.

    ``attacks`` are those on these rows, scored with the original; if these rows were judged before, ``limits`` are the
    verdicts on them. Without either, limits on attacks cannot be determined; nor can forbidden results without
    ``mined``, these rows as a miner reads them.
    """
    attacker_view = as_attackers_see(table, policy)
    of_classes = tuple(
        _verdict(model, attacker_view, table, gaps, gaps.of_model(model, policy.sensitive)) for model in policy.models
    )
    of_attacks = [limit.judge(attacks, gaps.of_limit(limit)) for limit in policy.limits] if limits is None else limits
    return Verdicts(
        (*of_classes, *judge_coarseness(table, policy), *of_attacks, *judge_results(policy, mined)),
        tuple(identifiers),
        table.n_records,
        table.n_classes,
    )


def judge_coarseness(table: FrequencyTable, policy: Policy) -> list[Verdict]:
    """Judge whether sensitive values are as coarse as the policy releases them."""
    verdicts = []
    for name, released in policy.coarsened.items():
        histogram = table.sensitive[name]
        texts = () if histogram.domain is None else histogram.domain.texts
        finer = np.array(released.finer(name, texts, policy.columns[name].hierarchy, policy.folder), np.bool_)
        entries = finer[histogram.values]
        n_records = int(histogram.counts[entries].sum())
        n_classes = len(np.unique(histogram.class_of_entry[entries]))
        outcome: Outcome = "fails" if n_records else "holds"
        requirement = f"{name} released: {released.asked}"
        verdicts.append(Verdict(requirement, outcome, "finer_values", float(n_records), n_classes, n_records))
    return verdicts


def judge_results(policy: Policy, mined: Minable | None) -> list[Verdict]:
    """Judge whether a forbidden result comes out; the line says which of the policy's entries it is."""
    verdicts = (result.judge(mined) for result in policy.forbid)
    return [replace(verdict, asked=f"forbid.{i}: {verdict.asked}") for i, verdict in enumerate(verdicts)]


def require(verdicts: Verdicts) -> None:
    """Raise an error unless every requirement holds."""
    if verdicts.identifiers:
        raise VerificationError(
            f"the release still contains identifier columns: {', '.join(map(repr, verdicts.identifiers))}"
        )
    for verdict in verdicts.verdicts:
        if verdict.outcome == "fails" and verdict.asked.startswith("forbid."):
            raise VerificationError(
                f"{verdict.asked}: it comes out of the finished release; nothing was written",
                "use a stricter policy, such as a larger k, or generalize a column that it names",
            )
        if verdict.outcome == "fails" and not verdict.classes:  # a limit on attacks: no class is responsible
            raise LimitExceededError(
                f"{verdict.asked}: the attack on the finished release reached {verdict.worst:.4g}, above the "
                "limit; nothing was written",
                "use a stricter policy, such as a larger k, ℓ-diversity or t-closeness, or let aim = true under "
                "[release] look for one",
            )
        if verdict.outcome == "fails":
            raise VerificationError(
                f"{verdict.asked} does not hold: {verdict.classes} of {verdicts.classes} classes "
                f"with {verdict.records} records fail; nothing was written"
            )
    for verdict in verdicts.verdicts:
        if verdict.outcome == "unknown":
            raise CannotTellError(
                f"{verdict.asked}: cannot be determined ({verdict.missing}); nothing was written",
                'suppress the records that leave it open, or set doubt = "accept" if doubt is protection enough'
                if verdict.asked.startswith("forbid.")
                else None,
            )


def as_attackers_see(table: FrequencyTable, policy: Policy) -> FrequencyTable:
    """Return what an intruder cannot distinguish: the classes, or all records that a record is compatible with."""
    return neighbourhoods(table, table.nulls) if policy.release.nulls == "wildcard" else table


def failing_classes(table: FrequencyTable, policy: Policy) -> NDArray[np.bool_]:
    """Return the classes to suppress so that the others satisfy the policy; call again for classes that fail then.

    As in a search, classes that fail by themselves are suppressed first. If the release as a whole exceeds a limit, the
    smallest classes are suppressed, as many as necessary.
    """
    attacker_view = as_attackers_see(table, policy)
    failing = np.zeros(table.n_classes, np.bool_)
    for model in policy.models:
        if not isinstance(model, ReleaseModel):
            failing |= ~model.passes(attacker_view)
    if not failing.any():
        for model in policy.models:
            if isinstance(model, ReleaseModel):
                failing, _ = model.enforced(attacker_view, failing)
    return failing


def _verdict(
    model: PrivacyModel, attacker_view: FrequencyTable, table: FrequencyTable, gaps: Gaps, missing: str
) -> Verdict:
    if missing and not counts_persons(model):
        return _told_without_the_rest(model, attacker_view, gaps, missing)
    if missing:
        attacker_view = _with_most(attacker_view, gaps)
    passes = model.passes(attacker_view)
    scores = model.scores(attacker_view)
    worst = float(scores.min() if model.lowest_is_worst else scores.max()) if len(scores) else np.nan
    failing = ~passes
    outcome: Outcome = "holds" if passes.all() else "fails"
    if missing and outcome == "holds" and not model.passes(_with_fewest(attacker_view, gaps)).all():
        outcome = "unknown"
    return Verdict(
        model.summary,
        outcome,
        model.figure,
        worst,
        int(failing.sum()),
        int(table.counts[failing].sum()),
        missing if outcome == "unknown" else "",
    )


def _told_without_the_rest(model: PrivacyModel, attacker_view: FrequencyTable, gaps: Gaps, missing: str) -> Verdict:
    """Judge a requirement although the population, the overall distribution or a hierarchy is missing.

    With all values equally far apart, d dropped records out of n + d shift the overall distribution by at most d / (n +
    d), and therefore also the distance of a class from it.
    """
    outcome: Outcome = "unknown"
    if (
        isinstance(model, TCloseness)
        and model.distance == "equal"
        and missing == gaps.whole
        and attacker_view.n_classes
    ):
        n = int(attacker_view.counts.sum() if attacker_view.own_counts is None else attacker_view.own_counts.sum())
        moved = gaps.dropped / (n + gaps.dropped)
        t = float(model.scores(attacker_view).max())
        outcome = "fails" if t - moved > model.t + TOLERANCE else "holds" if t + moved <= model.t else "unknown"
    return Verdict(model.summary, outcome, model.figure, np.nan, 0, 0, missing if outcome == "unknown" else "")


def _with_most(table: FrequencyTable, gaps: Gaps) -> FrequencyTable:
    """Return the same classes with the largest possible numbers of people, at most one per record."""
    if gaps.between is None:
        return table
    n = gaps.between.most
    return _with_persons(table, n, np.arange(int(n.sum())))


def _with_fewest(table: FrequencyTable, gaps: Gaps) -> FrequencyTable:
    """Return the same classes with the smallest possible numbers of people, at least one per class."""
    n = np.ones(table.n_classes, np.int64) if gaps.between is None else gaps.between.fewest
    return _with_persons(table, n, np.arange(int(n.sum())) - np.repeat(np.cumsum(n) - n, n))


def _with_persons(table: FrequencyTable, n: Counts, persons: NDArray[np.int64]) -> FrequencyTable:
    starts = np.concatenate([[0], np.cumsum(n)])
    n_persons = int(persons.max(initial=0)) + 1
    records_each = np.ones(len(persons), np.int64)
    return replace(table, entities=Histogram(starts, persons.astype(np.int32), records_each, n_persons))
