"""Functions of DuckDB that Ibis has no name for."""

from __future__ import annotations

from typing import Any

import ibis


@ibis.udf.scalar.builtin
def isfinite(number: float) -> bool:  # type: ignore[empty-body]
    """DuckDB's ``isfinite``: neither infinite nor NaN."""


@ibis.udf.scalar.builtin
def shoal_bits(number: float) -> str:  # type: ignore[empty-body]
    """A macro that is made before it is used: a number as the bits that are stored."""


def without_nan(column: Any) -> Any:
    """Replace NaN and -0.0; DuckDB infers ``isnan`` to be false from the bounds of Parquet files, which ignore NaN."""
    kind, number = column.type(), column + 0.0
    # Two cases, not one condition: only numbers that are not finite are asked whether they are infinite.
    return ibis.cases((isfinite(column), number), (column.isinf(), number), else_=ibis.null(kind)).cast(kind)


@ibis.udf.agg.builtin(name="max", signature=(("float64", "int64"), "array<float64>"))
def maxima(number: Any, n: Any) -> Any:
    """DuckDB's ``max`` with a number: the largest values, descending."""
