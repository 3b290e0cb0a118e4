"""k-concealment: which records an intruder who knows every original cannot rule out for each released record.

T. Tassa, A. Mazza, A. Gionis, "k-Concealment: an alternative model of k-type anonymity", Transactions on Data
Privacy 5(1), 2012; as global (1,k)-anonymity in "k-Anonymization revisited", ICDE 2008.
Needs  which kinds of originals and which released tuples are consistent, and how many records each stands for.
Costs  one maximum flow and one search for strongly connected components, on kinds and tuples instead of records.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, maximum_flow

from shoal.tables.frequency import Counts


def concealing(edges: csr_array, originals: Counts, released: Counts, dropped: int) -> Counts:
    """For each kind, the released records that one of its originals has in some perfect matching of all records.

    An intruder who knows every original looks for a one-to-one assignment of originals to consistent released records,
    and rules out a pair that is in none. Kinds and tuples can be used in place of records:

    1. The graph of records arises from that of kinds and tuples: kind u stands for a(u) records, tuple v for b(v),
       and an edge (u,v) for all a(u)·b(v) pairs. A perfect matching of records, counted, is a flow f with
       Σ_v f(u,v) = a(u) and Σ_u f(u,v) = b(v); and any such flow of whole numbers can be dealt out to records.
    2. Say f(u,v) ≥ 1: some x' of u is matched with some y' of v. For any x of u and y of v, exchange x with x' and
       y with y' in the matching. It stays one, as records of a kind have the same edges, and now holds (x,y).
       So each record of u has all b(v) records of v, for every v that some perfect flow pairs with u.
    3. Take one perfect flow f and the digraph with u→v for every edge and v→u where f(u,v) > 0. If f(u,v) = 0 and
       another perfect flow g has g(u,v) > 0, then g − f is a circulation in this digraph, a sum of cycles, and one
       of them has u→v. Conversely a simple cycle through u→v has more than two arcs; sending one unit along it
       keeps all sums, takes only from positive flows, and gives f(u,v) = 1. An edge lies on a cycle exactly where
       both its ends are in one strongly connected component; an edge with flow does by its own two arcs.

    If there is no perfect flow, no assignment exists: the release is not a generalization, and the result is 0.
    """
    if dropped:
        edges = _with_a_full_column(edges)
        released = np.append(released, dropped)
    n_kinds, n_tuples = edges.shape
    flow = _perfect_flow(edges, originals, released)
    if flow is None:
        return np.zeros(n_kinds, np.int64)
    back = (flow > 0).T.tocsr()
    indices = np.concatenate([n_kinds + edges.indices, back.indices])
    starts = np.concatenate([edges.indptr, edges.nnz + back.indptr[1:]])
    n_nodes = n_kinds + n_tuples
    digraph = csr_array((np.ones(len(indices), np.int8), indices, starts), shape=(n_nodes, n_nodes))
    _, component = connected_components(digraph, connection="strong")
    together = np.repeat(component[:n_kinds], np.diff(edges.indptr)) == component[n_kinds + edges.indices]
    admissible = csr_array((together, edges.indices, edges.indptr), shape=edges.shape)
    return np.asarray(admissible @ released, np.int64)


def _with_a_full_column(edges: csr_array) -> csr_array:
    """Add a released tuple for the dropped records, all ``*``, which is consistent with every original."""
    n_kinds, n_tuples = edges.shape
    indices = np.insert(edges.indices, edges.indptr[1:], n_tuples)
    starts = edges.indptr + np.arange(n_kinds + 1, dtype=np.int32)
    return csr_array((np.ones(len(indices), np.int8), indices, starts), shape=(n_kinds, n_tuples + 1))


def _perfect_flow(edges: csr_array, originals: Counts, released: Counts) -> csr_array | None:
    """Return how many records of each kind go to each tuple if all are matched; None if that is impossible."""
    n_kinds, n_tuples = edges.shape
    first = 1 + n_kinds  # node 0 is the source, then come kinds, tuples and the sink
    sink = first + n_tuples
    capacity = np.minimum(np.repeat(originals, np.diff(edges.indptr)), released[edges.indices])
    capacities = np.concatenate([originals, capacity, released]).astype(np.int32)
    indices = np.concatenate([np.arange(1, first), first + edges.indices, np.full(n_tuples, sink)]).astype(np.int32)
    after = n_kinds + edges.nnz
    starts = np.concatenate([[0], n_kinds + edges.indptr, after + np.arange(1, n_tuples + 1), [len(indices)]])
    # SciPy counts in int32. A larger flow is never as large as the table, which errs on the safe side.
    network = csr_array((capacities, indices, starts.astype(np.int32)), shape=(sink + 1, sink + 1))
    flow = maximum_flow(network, 0, sink)
    return flow.flow[1:first, first:sink] if flow.flow_value == originals.sum() else None
