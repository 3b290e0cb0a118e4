"""The Spark session of this process."""

from __future__ import annotations

from typing import Any

from shoal.engines.backends.connection_errors import require_master
from shoal.errors import ShoalError


def session(uri: str) -> Any:
    """Return a session on a cluster, or the existing session of this process."""
    named = uri.removeprefix("spark://")
    require_master(named)
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise ShoalError("PySpark is not installed", "python -m pip install 'shoal[spark]'; it needs Java 17") from None
    builder = SparkSession.builder.appName("shoal").master(named if named.startswith("local") else uri)
    return builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
