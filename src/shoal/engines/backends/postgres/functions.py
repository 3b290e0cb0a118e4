"""Functions of PostgreSQL that Ibis has no name for."""

from __future__ import annotations

import decimal
from typing import Any

import ibis


@ibis.udf.scalar.builtin
def trim_scale(number: decimal.Decimal) -> decimal.Decimal:  # type: ignore[empty-body]
    """PostgreSQL's ``trim_scale``: a numeric without trailing zeros."""


def marked_text(value: Any) -> Any:
    """Return a text that tells null from every value, to join on."""
    return ibis.ifelse(value.isnull(), "", ibis.literal("=") + value.cast(str))
