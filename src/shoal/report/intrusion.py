"""Attacks for a report, within an amount of work that is counted, not timed: the same release gives the same page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.attacks.risk import Attacks
from shoal.attacks.run import attack
from shoal.attacks.stories import Story, stories

if TYPE_CHECKING:
    from shoal.release import Release

PEOPLE = 10_000  # attacked at most, drawn with the policy's seed
FEWEST = 500  # of them, where a release has so many classes that fewer than all of PEOPLE are attacked
PAIRS = 100_000_000  # of people and classes that are compared at most
CELLS = 5_000_000  # that the attacks read at most: records times quasi and sensitive columns


def within_budget(release: Release) -> Attacks:
    """Run attacks, or return the reason why they were skipped if they would read too much."""
    if not release.verdicts.records:
        return Attacks((), ("all attacks: there is no record to attack",))
    if _too_many(release):
        n = release.counted.n_records
        return Attacks((), (f"all attacks: {n:,} records are too many for the report; run shoal attack",))
    return attack(release, sample=_sample(release), seed=release.policy.release.seed)


def stories_within_budget(release: Release) -> tuple[Story, ...]:
    """Return what an intruder finds about a few people before and after; none if that would read too much."""
    if not release.verdicts.records or _too_many(release):
        return ()
    return stories(release, sample=_sample(release))


def _too_many(release: Release) -> bool:
    policy = release.policy
    return release.counted.n_records * (len(policy.quasi) + len(policy.sensitive)) > CELLS


def _sample(release: Release) -> int:
    return min(PEOPLE, max(FEWEST, PAIRS // release.classes))
