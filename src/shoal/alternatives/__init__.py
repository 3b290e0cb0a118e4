"""Alternatives: the results of other requirements, algorithms and limits."""
