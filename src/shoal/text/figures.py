"""Numbers and names formatted for readers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence


def format_number(value: float) -> str:
    """Format a number with as many digits as a reader needs."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if abs(value) >= 1e15:  # nobody counts the commas
        digits, _, power = f"{value:.2e}".partition("e")
        return f"{digits} × 10^{int(power)}"
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:.4f}" if abs(value) < 1000 else f"{value:,.1f}"


def format_share(part: float, whole: float) -> str:
    """Format a percentage; never 0 % for a positive share, nor 100 % for less than all."""
    percent = 100 * part / whole if whole else 0.0
    if 0 < percent < 0.1:
        return "<0.1 %"
    if 99.9 < percent < 100:
        return ">99.9 %"
    return f"{percent:.1f} %"


def format_count(n: int, word: str) -> str:
    """Format a count with its noun in the singular or plural."""
    return f"{format_number(n)} {word if n == 1 else word + ('es' if word.endswith('s') else 's')}"


def format_interval(ends: tuple[float, float]) -> str:
    """Format an interval in percent, rounded outwards so that it still contains the original one."""
    low, high = ends
    return f"{math.floor(1000 * low) / 10:.1f}–{math.ceil(1000 * high) / 10:.1f} %"


def format_list(names: Sequence[str], max_names: int = 0) -> str:
    """Join names with commas and *and*; beyond ``max_names`` names (0: no limit), the rest is counted."""
    if max_names and len(names) > max_names:
        names = [*names[: max_names - 1], f"{len(names) - max_names + 1} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def quoted_names(names: Iterable[str]) -> str:
    """Format names for a message, each in quotes."""
    return ", ".join(map(repr, names))


# Control characters other than tab and line feed, marks that change the text direction, and invalid characters.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def visible(text: str) -> str:
    """Replace control characters, which could affect a terminal, a page or a chart, by visible symbols."""
    return _UNSEEN.sub(lambda match: chr(0x2400 + ord(match[0])) if match[0] < " " else "\ufffd", text)
