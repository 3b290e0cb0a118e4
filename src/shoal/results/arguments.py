"""Arguments that are numbers: a wrong kind, such as a text or NaN, is refused as a wrong value is."""

from __future__ import annotations

import math
import operator
from numbers import Real

from shoal.errors import PolicyError

MAX_SEED = 2**63 - 1
SMALLEST = math.ulp(0.0)  # what is above 0


def whole_argument(name: str, value: object, low: int, high: int, hint: str | None = None) -> int:
    """Return a whole number between two limits; True, 1.5 and "2" are none.

    >>> whole_argument("k", 5, 2, 100)
    5
    """
    try:
        number = low - 1 if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = low - 1
    if not low <= number <= high:
        raise PolicyError(f"{name} must be a whole number between {low:,} and {high:,}", hint)
    return number


def real_argument(name: str, value: object, wanted: str, low: float = -math.inf, high: float = math.inf) -> float:
    """Return a number between two limits; ``wanted`` says in words what is.

    >>> real_argument("confidence", 0.9, "at least 0.5 and less than 1", 0.5, math.nextafter(1, 0))
    0.9
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not low <= float(value) <= high:
        raise PolicyError(f"{name} must be {wanted}")
    return float(value)


def require_confidence(confidence: object) -> None:
    """Refuse what is no confidence of an interval."""
    real_argument("confidence", confidence, "at least 0.5 and less than 1", 0.5, math.nextafter(1, 0))
