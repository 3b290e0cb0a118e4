"""Searches: a frequency table and what must hold go in, a recoding comes out."""

from __future__ import annotations

from collections.abc import Callable

from shoal.recoding import Recoding
from shoal.search.base import Problem
from shoal.search.datafly import datafly
from shoal.search.exhaustive import exhaustive
from shoal.search.optimal import optimal

SEARCHES: dict[str, Callable[[Problem], Recoding]] = {
    "optimal": optimal,
    "exhaustive": exhaustive,
    "datafly": datafly,
}

# Searches that may part records with equal quasi-identifiers: they get a table with one row per sensitive value.
PARTING: frozenset[str] = frozenset()

__all__ = ["PARTING", "SEARCHES", "Problem"]
