"""Utility: what a release still offers to an analyst: counts, statistics, regressions, and a classifier."""

from shoal.utility.bundle import utility
from shoal.utility.classifier import classification
from shoal.utility.numbers import il1
from shoal.utility.queries import query_error
from shoal.utility.regression import coefficients_kept
from shoal.utility.statistics import statistics_kept

__all__ = ["classification", "coefficients_kept", "il1", "query_error", "statistics_kept", "utility"]
