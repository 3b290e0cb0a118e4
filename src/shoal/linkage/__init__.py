"""Record linkage: how many records of a release an intruder can link to a file of known people."""

from shoal.linkage.distance import DistanceLinkage, distance_linkage
from shoal.linkage.patterns import PatternCounts, pattern_counts
from shoal.linkage.probabilistic import ProbabilisticLinkage, probabilistic_linkage
from shoal.linkage.worst_distance import WorstCase, worst_case

__all__ = [
    "DistanceLinkage",
    "PatternCounts",
    "ProbabilisticLinkage",
    "WorstCase",
    "distance_linkage",
    "pattern_counts",
    "probabilistic_linkage",
    "worst_case",
]
