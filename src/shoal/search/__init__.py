"""Searches: each takes a frequency table and its requirements, and returns a recoding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from shoal.search.problem import Problem

if TYPE_CHECKING:
    from shoal.recoding import Recoding


@dataclass(frozen=True)
class Search:
    """A search by the place of its function, ``module:name`` in this folder, loaded when it is first called."""

    target: str

    def __call__(self, problem: Problem) -> Recoding:
        recoding: Recoding = self.function(problem)
        return recoding

    @cached_property
    def function(self) -> Any:
        module, _, name = self.target.partition(":")
        return getattr(import_module(f"shoal.search.{module}"), name)


SEARCHES: dict[str, Callable[[Problem], Recoding]] = {
    "optimal": Search("full_domain.optimal:optimal"),
    "exhaustive": Search("full_domain.exhaustive:exhaustive"),
    "mingen": Search("full_domain.mingen:mingen"),
    "samarati": Search("full_domain.samarati:samarati"),
    "k_minimal": Search("full_domain.k_minimal:search_k_minimal"),
    "incognito": Search("full_domain.incognito:incognito"),
    "ola": Search("full_domain.ola:ola"),
    "flash": Search("full_domain.flash:flash"),
    "datafly": Search("full_domain.datafly:datafly"),
    "k_optimize": Search("cuts.k_optimize:k_optimize"),
    "top_down": Search("cuts.top_down:top_down"),
    "genetic": Search("cuts.genetic:genetic"),
    "annealing": Search("cuts.annealing:annealing"),
    "single_dimensional": Search("cuts.single_dimensional:single_dimensional"),
    "mondrian": Search("cells.mondrian:mondrian"),
    "mondrian_relaxed": Search("cells.mondrian:mondrian_relaxed"),
    "forest": Search("cells.forest:forest"),
    "forest_generalize": Search("cells.forest_generalize:forest_generalize"),
    "cover": Search("cells.cover:cover"),
    "local": Search("local.local:local"),
    "local_suppression": Search("full_domain.local_suppression:local_suppression"),
    "suppress_records": Search("full_domain.suppress_records:suppress_records"),
    "suppress_columns": Search("full_domain.suppress_columns:suppress_columns"),
    "suppress_cells": Search("cells.suppress_cells:suppress_cells"),
    "mdav": Search("cells.mdav:mdav"),
}

# Searches that may separate records with equal quasi-identifiers: their table has one row per sensitive value.
# fmt: off
PARTING: frozenset[str] = frozenset({
    "cover", "forest", "forest_generalize", "local", "local_suppression", "mdav", "mondrian_relaxed",
    "single_dimensional", "suppress_cells",
})
# fmt: on

__all__ = ["PARTING", "SEARCHES", "Problem"]
