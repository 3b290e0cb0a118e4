"""Forest, generalizing: join every record with its nearest, cut the trees, release each as its common ancestors.

G. Aggarwal, T. Feder, K. Kenthapadi, R. Motwani, R. Panigrahy, D. Thomas, A. Zhu, "Anonymizing tables", ICDT 2005;
"Approximation algorithms for k-anonymity", Journal of Privacy Technology, 2005.
Needs  models that are judged class by class, with the same restriction as in ``forest``.
Finds  a partition into classes of k to max(2k−1, 3k−5) records. A cell costs the level of the nearest common ancestor
       of its class over the height of the hierarchy, times the column's weight. All cells together cost at most
       max(2k−1, 3k−5) times the minimum over all partitions into classes of at least k. The claim names a smaller
       factor if the solution proves one.
Costs  as ``forest``.

The procedure is that of ``forest``; the weight of an edge is the cost of a class of its two records. In a tree,
the common ancestor of a column is no higher than the highest along the edges, so its cost is at most their sum, and the
proof is the same.
"""

from __future__ import annotations

from shoal.recoding import Recoding
from shoal.search.cells.classes import require_class_by_class
from shoal.search.cells.forest import of_trees
from shoal.search.problem import Problem


def forest_generalize(problem: Problem) -> Recoding:
    """Run the published algorithm for cells that have their own levels."""
    require_class_by_class(problem, "forest_generalize")
    return of_trees(problem, "forest_generalize", "generalizes at most {} times as many levels as necessary")
