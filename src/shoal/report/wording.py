"""What is counted, in words: people if the policy identifies them, otherwise records."""

from __future__ import annotations

from shoal.policy import Policy
from shoal.tables.frequency import FrequencyTable


def counted_unit(policy: Policy) -> str:
    """Return what k counts in a release: a ``person`` if ``entity`` names the column of people, else a ``record``."""
    return "person" if policy.release.entity is not None else "record"


def unit_of(table: FrequencyTable) -> str:
    """Return what was counted in a checked table: the column of people may have been removed."""
    return "record" if table.entities is None else "person"
