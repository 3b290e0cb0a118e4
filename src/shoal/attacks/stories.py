"""Stories: a few people of the original, what an intruder who knows them finds there, and what in the release.

The people are chosen by rule, not by hand: the most exposed in the release, one who was found in the original, the one
about whom most can be inferred, one whose record was suppressed, and a typical one. Their values, and whether a guess
is right, are original data: a page that others read tells the sentences only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.attacks.candidates import CandidateView, Secret, candidate_view, secret_of
from shoal.attacks.run import released_rows
from shoal.engines.base import Released, Rows
from shoal.engines.opening import original_of
from shoal.hierarchies.hierarchy import Label
from shoal.tables.frequency import RowNumbers
from shoal.text.figures import format_count, format_number

Why = Literal["exposed", "found before", "inferred", "suppressed", "typical"]

TITLES: dict[Why, str] = {
    "exposed": "The person most exposed now",
    "found before": "A person who could be found before",
    "inferred": "The person about whom most can be inferred now",
    "suppressed": "A person whose record was suppressed",
    "typical": "A typical person",
}


@dataclass(frozen=True)
class Learned:
    """The most frequent value of a sensitive column among the records that match a person."""

    column: str
    value: Label
    records: int  # that match and have the value
    of: int  # that match
    right: bool  # whether it is the person's own value

    @property
    def certain(self) -> bool:
        """Whether every matching record has the value."""
        return self.records == self.of

    @property
    def sentence(self) -> str:
        """What the matching records show, without the value and without the truth: it says nothing about the person."""
        if self.certain:
            subject = "The record shows the" if self.of == 1 else "All of them show the same"
            return f"{subject} {self.column}."
        if self.records == 1:
            return f"Each of them shows a different {self.column}."
        frequent = (
            f"The most frequent {self.column} occurs in {format_number(self.records)} of {format_number(self.of)}"
        )
        return f"{frequent} matching records."

    @property
    def judged(self) -> str:
        """The same, and whether the most frequent value is the person's own: for who may see the original."""
        wrong = not self.right and (self.certain or self.records > 1)
        return f"{self.sentence} Theirs is another." if wrong else self.sentence


@dataclass(frozen=True)
class Matches:
    """What an intruder finds about one person in one table."""

    records: int  # that match what is known about the person
    people: int | None  # to whom these belong, if a column identifies people
    own: bool | None  # whether the person's own record is among them; None if unknown
    learned: tuple[Learned, ...]  # one for each sensitive column

    @property
    def crowd(self) -> int:
        """The number of people, or of records if people are not counted."""
        return self.records if self.people is None else self.people

    @property
    def sentence(self) -> str:
        """How many records match, without a value."""
        if not self.records:
            return "No record matches."
        matching = f"{format_count(self.records, 'record')} {'matches' if self.records == 1 else 'match'}"
        if self.own is False:
            return f"{matching}, but {'it is' if self.records == 1 else 'they are'} not theirs."
        if self.crowd == 1 and self.own is None:
            return f"{matching}."
        if self.crowd == 1:
            return f"{matching}: {'it is' if self.records == 1 else 'all of them are'} theirs."
        of_people = "" if self.people is None else f", of {format_count(self.people, 'person')}"
        return f"{matching}{of_people}: the probability of picking the right one is 1 in {format_number(self.crowd)}."

    @property
    def worst(self) -> Learned | None:
        """The sensitive column about which most is learned."""
        return max(self.learned, key=lambda one_column: one_column.records / one_column.of, default=None)


@dataclass(frozen=True)
class Story:
    """One person before and after."""

    why: Why
    row: int  # of the original
    record: int | None  # the person's own record in the release; None if suppressed or unknown
    known: Mapping[str, Label]  # what the intruder knows: original values
    before: Matches
    after: Matches

    @property
    def title(self) -> str:
        """Why this person was chosen."""
        return TITLES[self.why]


def stories(release: Released, *, sample: int = 10_000) -> tuple[Story, ...]:
    """Return what an intruder who knows all quasi-identifiers finds about a few people, before and after.

    ``sample``: how many people they are chosen from, drawn with the policy's seed.

    >>> import pyarrow as pa, shoal
    >>> people = pa.table({"age": [31, 34, 36, 38], "disease": ["flu", "flu", "hiv", "flu"]})
    >>> columns = {"age": {"role": "quasi", "hierarchy": {"flat": True}}, "disease": {"role": "sensitive"}}
    >>> made = shoal.anonymize(people, {"columns": columns, "require": [{"model": "k-anonymity", "k": 2}]})
    >>> found = stories(made)[0]
    >>> found.before.sentence, found.after.crowd
    ('1 record matches: it is theirs.', 4)
    """
    policy = release.policy
    on, sensitive = policy.quasi, policy.sensitive
    entity = () if policy.release.entity is None else (policy.release.entity,)
    truth, _ = original_of(release.engine, policy).listed(list(dict.fromkeys([*on, *sensitive, *entity])))
    original = truth.table
    table, persons = released_rows(release.rows)
    rows = np.arange(original.num_rows)
    if len(rows) > sample:
        rows = np.sort(np.random.default_rng(policy.release.seed).choice(len(rows), sample, replace=False))
    people = original.take(pa.array(rows))
    counted = truth.persons(policy)
    owners = None if counted is None else counted.astype(np.int64)
    before = candidate_view(people, original, on, ground=original, policy=policy, persons=owners)
    after = candidate_view(people, table, on, ground=original, policy=policy, persons=persons)
    secrets = [
        [secret_of(view, name, rows_of, people, ground=original, policy=policy) for name in sensitive]
        for view, rows_of in ((before, original), (after, table))
    ]
    owner = _owners(release, original.num_rows)
    mine = None if owner is None else owner[rows]
    chosen = []
    for reason, i in _chosen(before, after, secrets[1], mine):
        record = -1 if mine is None else int(mine[i])
        chosen.append(
            Story(
                reason,
                int(rows[i]),
                None if record < 0 else record,
                {name: _text(people[name][i].as_py()) for name in on},
                _matches_of(before, secrets[0], i, own_matches=True),
                _matches_of(after, secrets[1], i, own_matches=None if mine is None else record >= 0),
            )
        )
    return tuple(chosen)


def _owners(release: Released, n: int) -> RowNumbers | None:
    """Return the released record of each row of the original, -1 if it was suppressed; None if unknown."""
    if not isinstance(release.rows, Rows) or release.rows.sources is None:
        return None
    record_of = np.full(n, -1, np.int64)
    record_of[release.rows.sources] = np.arange(len(release.rows.sources))
    return record_of


def _chosen(
    before: CandidateView, after: CandidateView, secrets: Sequence[Secret], owner: RowNumbers | None
) -> list[tuple[Why, int]]:
    """Choose people by rule, each at most once."""
    crowd_before, crowd_after = before.crowd[before.kind_of], after.crowd[after.kind_of]
    present = (crowd_after > 0) if owner is None else (owner >= 0)
    chosen: dict[int, Why] = {}

    def choose(
        reason: Why, able: NDArray[np.bool_], *ranks: NDArray[np.float64] | RowNumbers, middle: bool = False
    ) -> None:
        left = np.flatnonzero(able & ~np.isin(np.arange(len(crowd_after)), list(chosen)))
        if len(left):
            order = left[np.lexsort([rank[left] for rank in reversed(ranks)])]
            chosen[int(order[len(order) // 2 if middle else 0])] = reason

    choose("exposed", present, crowd_after, crowd_before)
    choose("found before", present & (crowd_before == 1), crowd_after, middle=True)
    if secrets:
        share = np.zeros(len(crowd_after))
        for secret in secrets:
            matching = np.maximum(after.candidates[after.kind_of], 1)
            share = np.maximum(share, secret.share_of_truth(secret.matching) / matching)
        choose("inferred", present, -share, crowd_after)
    if owner is not None:
        choose("suppressed", owner < 0, crowd_before)
    choose("typical", present, crowd_after, middle=True)
    return [(reason, i) for i, reason in chosen.items()]


def _matches_of(view: CandidateView, secrets: Sequence[Secret], i: int, *, own_matches: bool | None) -> Matches:
    kind = int(view.kind_of[i])
    records = int(view.candidates[kind])
    people = None if view.persons is None else int(view.crowd[kind])
    learned = []
    for secret in secrets if records else ():
        start, end = secret.matching.indptr[kind], secret.matching.indptr[kind + 1]
        values, counts = secret.matching.indices[start:end], secret.matching.data[start:end]
        frequent = int(counts.argmax())
        value = int(values[frequent])
        right = value == int(secret.truth[i])
        learned.append(Learned(secret.column, secret.values[value], int(counts[frequent]), records, right))
    return Matches(records, people, own_matches, tuple(learned))


def _text(value: object) -> Label:
    return None if value is None else str(value)
