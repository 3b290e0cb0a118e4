"""Who is counted, in words: persons where the policy tells them apart, records where it does not."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.policy import Policy
from shoal.table.frequency import FrequencyTable


def unit(policy: Policy) -> str:
    """What k counts in a release: a ``person`` where ``entity`` names the column of persons, else a ``record``."""
    return "person" if policy.release.entity is not None else "record"


def unit_of(table: FrequencyTable) -> str:
    """What was counted in a table that was checked: the column of persons may be gone, whatever the policy names."""
    return "record" if table.entities is None else "person"


def listed(names: Sequence[str], most: int = 0) -> str:
    """Names with commas and an *and*; of more than ``most`` (0: any number) the rest is counted."""
    if most and len(names) > most:
        names = [*names[: most - 1], f"{len(names) - most + 1} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
