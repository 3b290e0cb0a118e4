"""Values that differ only in spelling and therefore look like several values."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from shoal.table.intervals import parse_number


def spelled_alike(texts: Sequence[str | None]) -> NDArray[np.int32]:
    """Return for each text the number of its value; texts that differ only in spelling get the same number.

    Letters of either case, blanks around and between words, the ways of Unicode to encode the same characters, ``1``
    and ``1.0``, and an empty text and a missing one are no difference.
    """
    place: dict[str | Decimal, int] = {}
    return np.array([place.setdefault(_plain(text), len(place)) for text in texts], np.int32)


def _plain(text: str | None) -> str | Decimal:
    if text is None:
        return ""
    if not text.isascii():  # compatible forms, and marks that are not seen, such as a zero-width blank
        text = "".join(c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) != "Cf")
    value = parse_number(text) if any(c.isdigit() for c in text[:4]) else None
    return " ".join(text.split()).casefold() if value is None else value
