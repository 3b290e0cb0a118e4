"""Forest, generalizing: join every record with its nearest, cut the trees, release each as its common ancestors.

G. Aggarwal, T. Feder, K. Kenthapadi, R. Motwani, R. Panigrahy, D. Thomas, A. Zhu, "Anonymizing tables", ICDT 2005;
"Approximation algorithms for k-anonymity", Journal of Privacy Technology, 2005.
Needs  models that are judged class by class; what is said of them in ``forest`` holds here.
Finds  a partition into classes of k to max(2k−1, 3k−5) records. A cell costs the level of the nearest common ancestor
       of its class over the height of the hierarchy, times the column's weight: all cells together cost at most
       max(2k−1, 3k−5) times the least that any partition into classes of k costs. The claim names a smaller factor
       where the answer shows one.
Costs  as ``forest``.

The procedure is that of ``forest``; an edge weighs what the class of its two records would cost. In a tree of edges the
common ancestor of a column is no higher than the highest along the edges, so its cost is at most their sum, and the
proof is the same.
"""

from __future__ import annotations

from shoal.recoding import Recoding
from shoal.search.cells.classes import require_class_by_class
from shoal.search.cells.forest import of_trees
from shoal.search.problem import Problem


def forest_generalize(problem: Problem) -> Recoding:
    """The published algorithm for cells on levels of their own."""
    require_class_by_class(problem, "forest_generalize")
    return of_trees(problem, "forest_generalize", "generalizes at most {} times as many levels as necessary")
