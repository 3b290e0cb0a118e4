"""Attacks for a report, within an amount of work that is counted, not timed: the same release gives the same page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.attacks.risk import Attacks
from shoal.attacks.run import attack

if TYPE_CHECKING:
    from shoal.release import Release

PEOPLE = 10_000  # attacked at most, drawn with the policy's seed
FEWEST = 500  # of them, where a release has so many classes that fewer than all of PEOPLE are attacked
PAIRS = 100_000_000  # of people and classes that are compared at most
CELLS = 5_000_000  # that the attacks read at most: records times quasi and sensitive columns


def within_budget(release: Release) -> Attacks:
    """Run attacks, or return the reason why they were skipped if they would read too much."""
    policy = release.policy
    columns = len(policy.quasi) + len(policy.sensitive)
    n = release.counted.n_records
    if not release.verdicts.records:
        return Attacks((), ("all attacks: there is no record to attack",))
    if n * columns > CELLS:
        return Attacks((), (f"all attacks: {n:,} records are too many for the report; run shoal attack",))
    sample = min(PEOPLE, max(FEWEST, PAIRS // release.classes))
    return attack(release, sample=sample, seed=policy.release.seed)
