"""Searches that choose a cut of each column."""
