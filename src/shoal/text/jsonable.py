"""Conversion to values that JSON can represent."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

DEEPEST = 100  # levels of nesting; a description of a table never needs more


def finite(value: Any) -> Any:
    """Replace infinite figures by texts and NaN by null."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def nested_deeper(value: Any, depth: int) -> bool:
    """Return whether lists and mappings are nested more than ``depth`` levels deep, which could exhaust recursion."""
    level = [value] if _holds_others(value) else []
    for _ in range(depth):
        containers = (item.values() if isinstance(item, Mapping) else item for item in level)
        # By identity: an object that occurs in several places is visited once.
        level = list({id(inner): inner for items in containers for inner in items if _holds_others(inner)}.values())
        if not level:
            return False
    return bool(level)


def _holds_others(item: Any) -> bool:
    return isinstance(item, Mapping | list | tuple)


def read_json(text: str, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """Parse JSON; raise ValueError also for values nested too deep or numbers with too many digits.

    ``pairs`` builds an object from its fields, if a dict is not suitable.
    """
    try:
        value = json.loads(text, object_pairs_hook=pairs)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if nested_deeper(value, DEEPEST):
        raise ValueError("nested too deep")
    return value
