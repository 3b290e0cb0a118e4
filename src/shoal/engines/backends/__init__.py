"""The databases and clusters that Ibis connects to: one file for each, and one line here.

Ibis is imported only when it is needed, because that takes a second.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.engines.backends.base import Backend

# By Ibis's name of the backend: the module and class that implement it, and its URI schemes.
BACKENDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "postgres": ("shoal.engines.backends.postgres.backend:PostgreSQL", ("postgresql", "postgres")),
    "duckdb": ("shoal.engines.backends.duckdb.backend:DuckDB", ("duckdb",)),
    "pyspark": ("shoal.engines.backends.spark.backend:Spark", ("spark",)),
}


def schemes() -> dict[str, str]:
    """Return the URI schemes, each with its backend."""
    return {scheme: name for name, (_, uri_schemes) in BACKENDS.items() for scheme in uri_schemes}


def backend_class(name: str) -> type[Backend]:
    """Return the class that implements a backend, given Ibis's name of the backend."""
    module, _, cls = BACKENDS[name][0].partition(":")
    backend: type[Backend] = getattr(import_module(module), cls)
    return backend
