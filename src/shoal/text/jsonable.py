"""Values as JSON can hold them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

DEEPEST = 100  # levels of plain values within one another; whoever needs more is not describing a table


def finite(value: Any) -> Any:
    """The same, with a text for an infinite figure (no c, no β suffices) and null for one that is none."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def nested_deeper(value: Any, depth: int) -> bool:
    """Whether lists and mappings lie in one another more than ``depth`` deep, so that recursion might not end well."""
    level = [value] if _holds_others(value) else []
    for _ in range(depth):
        within = (item.values() if isinstance(item, Mapping) else item for item in level)
        # By identity: what lies in several places is looked at once.
        level = list({id(inner): inner for items in within for inner in items if _holds_others(inner)}.values())
        if not level:
            return False
    return bool(level)


def _holds_others(item: Any) -> bool:
    return isinstance(item, Mapping | list | tuple)


def read_json(text: str, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """The values of a JSON text; ValueError also where they lie too deep, or a number has too many digits.

    ``pairs`` makes an object of its fields, where a dict will not do.
    """
    try:
        value = json.loads(text, object_pairs_hook=pairs)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if nested_deeper(value, DEEPEST):
        raise ValueError("nested too deep")
    return value
