"""Numbers as people read them."""

from __future__ import annotations

import math


def number(value: float) -> str:
    """As many digits as a reader needs."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:.4f}" if abs(value) < 1000 else f"{value:,.1f}"


def share(part: float, whole: float) -> str:
    """A percentage; never 0 % for something, nor 100 % for less than all."""
    percent = 100 * part / whole if whole else 0.0
    if 0 < percent < 0.1:
        return "<0.1 %"
    if 99.9 < percent < 100:
        return ">99.9 %"
    return f"{percent:.1f} %"
