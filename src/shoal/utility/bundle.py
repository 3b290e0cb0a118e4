"""All utility measures at once, as plain values."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from shoal.engines.base import Released
from shoal.engines.data import Data
from shoal.policy import PolicySource, policy_of
from shoal.text.jsonable import finite
from shoal.utility.classifier import classification
from shoal.utility.queries import workload_error
from shoal.utility.reading import Pair
from shoal.utility.regression import regressions
from shoal.utility.statistics import kept_statistics


def utility(
    original: Data, release: Data | Released, policy: PolicySource, *, queries: int = 1000, seed: int = 0
) -> dict[str, Any]:
    """Measure queries, statistics, regressions and, if the policy names a label, a classifier; for JSON.

    The classifier is left out where scikit-learn is not installed.
    """
    policy = policy_of(policy)
    learned = None
    if policy.release.label is not None and find_spec("sklearn") is not None:
        learned = classification(original, release, policy, seed=seed)
    pair = Pair.from_tables(original, release, policy)
    measures = {
        "query_error": workload_error(
            Pair.from_tables(original, release, policy, policy.quasi), queries=queries, seed=seed
        ),
        "statistics": kept_statistics(pair),
        "regression": regressions(pair, policy.sensitive),
        "classification": learned,
    }
    return {name: finite(value) for name, value in measures.items()}
