"""Searches that choose one level per column."""
