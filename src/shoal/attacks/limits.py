"""The attacks whose success a policy limits; without such a limit nothing is attacked, and SciPy is not loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.engines.base import Groups, Query, Rows
from shoal.engines.data import Data
from shoal.policy import Policy

if TYPE_CHECKING:
    from shoal.attacks.risk import Attacks


def measured(rows: Rows | Query | Groups, original: Data, policy: Policy) -> Attacks | None:
    """Return what attacks on finished rows find, if the policy limits it. Attacks everybody of the original."""
    if not policy.limits:
        return None
    from shoal.attacks.run import attack_everybody

    return attack_everybody(rows, original, policy)
