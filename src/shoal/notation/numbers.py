"""Exact numbers: texts to decimals, up to a size that can be written out."""

from __future__ import annotations

import re
from decimal import Context, Decimal

NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")
# Every double fits. Beyond it, 1e999999999 is a short text that would fill the memory when written out.
LARGEST = 400
# Enough digits for any number within LARGEST, so that nothing is ever rounded.
EXACT = Context(prec=4 * LARGEST)


def parse_number(text: str) -> Decimal | None:
    """Parse a text as an exact number; None if it is not a finite number of reasonable size."""
    if len(text) > LARGEST or not NUMBER.fullmatch(text):
        return None
    value = Decimal(text)
    return value if abs(value.adjusted()) <= LARGEST else None


def decimal_places(value: Decimal) -> int:
    """Return how many decimals a number is written with."""
    exponent = value.as_tuple().exponent
    return -exponent if isinstance(exponent, int) and exponent < 0 else 0


def written_decimal(scaled: int, places: int) -> str:
    """Format a whole multiple of 10^-places without trailing zeros: 1250 with two places is 12.5."""
    whole, part = divmod(abs(scaled), 10**places)
    decimals = f".{part:0{places}d}".rstrip("0") if part else ""
    return f"{'-' if scaled < 0 else ''}{whole}{decimals}"
