"""Searches that choose a cut through each column's hierarchy."""
