"""Searches: each takes a frequency table and its requirements, and returns a recoding."""

from __future__ import annotations

from collections.abc import Callable

from shoal.recoding import Recoding
from shoal.search.cells.cover import cover
from shoal.search.cells.forest import forest
from shoal.search.cells.forest_generalize import forest_generalize
from shoal.search.cells.local import local
from shoal.search.cells.mdav import mdav
from shoal.search.cells.mondrian import mondrian, mondrian_relaxed
from shoal.search.cells.suppress_cells import suppress_cells
from shoal.search.cuts.annealing import annealing
from shoal.search.cuts.genetic import genetic
from shoal.search.cuts.k_optimize import k_optimize
from shoal.search.cuts.top_down import top_down
from shoal.search.full_domain.datafly import datafly
from shoal.search.full_domain.exhaustive import exhaustive
from shoal.search.full_domain.flash import flash
from shoal.search.full_domain.incognito import incognito
from shoal.search.full_domain.k_minimal import k_minimal
from shoal.search.full_domain.local_suppression import local_suppression
from shoal.search.full_domain.mingen import mingen
from shoal.search.full_domain.ola import ola
from shoal.search.full_domain.optimal import optimal
from shoal.search.full_domain.samarati import samarati
from shoal.search.full_domain.suppress_columns import suppress_columns
from shoal.search.full_domain.suppress_records import suppress_records
from shoal.search.problem import Problem

SEARCHES: dict[str, Callable[[Problem], Recoding]] = {
    "optimal": optimal,
    "exhaustive": exhaustive,
    "mingen": mingen,
    "samarati": samarati,
    "k_minimal": k_minimal,
    "incognito": incognito,
    "ola": ola,
    "flash": flash,
    "datafly": datafly,
    "k_optimize": k_optimize,
    "top_down": top_down,
    "genetic": genetic,
    "annealing": annealing,
    "mondrian": mondrian,
    "mondrian_relaxed": mondrian_relaxed,
    "forest": forest,
    "forest_generalize": forest_generalize,
    "cover": cover,
    "local": local,
    "local_suppression": local_suppression,
    "suppress_records": suppress_records,
    "suppress_columns": suppress_columns,
    "suppress_cells": suppress_cells,
    "mdav": mdav,
}

# Searches that may separate records with equal quasi-identifiers: their table has one row per sensitive value.
PARTING: frozenset[str] = frozenset(
    {"cover", "forest", "forest_generalize", "local", "local_suppression", "mdav", "mondrian_relaxed", "suppress_cells"}
)

__all__ = ["PARTING", "SEARCHES", "Problem"]
