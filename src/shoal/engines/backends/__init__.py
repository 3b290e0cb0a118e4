"""The databases and clusters that rows may stay in, through Ibis: a file for each, and a line here.

Nothing of Ibis is imported before it is needed: that takes a second.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.engines.backends.base import IbisPlace

# By the name that Ibis gives a backend: the module and class that know it, and what its URIs begin with.
BACKENDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "postgres": ("shoal.engines.backends.postgres:PostgreSQL", ("postgresql", "postgres")),
    "duckdb": ("shoal.engines.backends.duckdb:DuckDB", ("duckdb",)),
    "pyspark": ("shoal.engines.backends.spark:Spark", ("spark",)),
}


def schemes() -> dict[str, str]:
    """What URIs may begin with, and the backend behind each."""
    return {scheme: name for name, (_, own) in BACKENDS.items() for scheme in own}


def place_class(name: str) -> type[IbisPlace]:
    """The class that knows a backend, by the name that Ibis gives it."""
    module, _, cls = BACKENDS[name][0].partition(":")
    found: type[IbisPlace] = getattr(import_module(module), cls)
    return found
