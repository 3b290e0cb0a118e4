"""List every k-minimal generalization of a table."""

from __future__ import annotations

from shoal.engines.data import Data
from shoal.engines.opening import original_of, population_of
from shoal.policy import PolicySource, policy_of
from shoal.search.full_domain.k_minimal import Minimal, minimal_nodes
from shoal.search.problem import Problem


def k_minimal(data: Data, policy: PolicySource) -> list[Minimal]:
    """List all generalizations that keep the policy and lie above no other that does, the lowest first.

    Parameters
    ----------
    data
        A path, a pandas, polars or pyarrow frame, or an Ibis table, whose rows stay in place.
    policy
        A ``Policy``, the path of a TOML file, or a dict.

    Returns
    -------
    list of Minimal
        Each with its distance vector, absolute and relative distance, classes and suppressed records, by which
        ``shoal.search.full_domain.k_minimal.preferred`` chooses.

    Raises
    ------
    PolicyError
        If verdicts are not monotone.
    DataError
        If the table cannot be read, or lacks a column.

    Examples
    --------
    >>> import pyarrow as pa, shoal
    >>> people = pa.table({"age": [31, 34, 36, 38], "disease": ["flu", "flu", "hiv", "flu"]})
    >>> policy = {
    ...     "columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [10]}}, "disease": {"role": "sensitive"}},
    ...     "require": [{"model": "k-anonymity", "k": 2}],
    ... }
    >>> [(found.node, found.classes) for found in shoal.k_minimal(people, policy)]
    [((1,), 1)]
    """
    policy = policy_of(policy)
    outside = population_of(policy)
    table = original_of(data, policy).count(policy, outside).table
    population = None if outside is None else outside.people(policy, table.hierarchies)
    return minimal_nodes(Problem.of(table, policy, population=population))
