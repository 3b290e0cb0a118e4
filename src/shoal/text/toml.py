"""Plain values as TOML text: the standard library reads TOML but does not write it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def key(name: str) -> str:
    """Format a key, quoted only if necessary."""
    return name if _BARE.fullmatch(name) else string(name)


def string(text: str) -> str:
    """Format a basic string: JSON's escapes are valid in TOML, but TOML also forbids a bare DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


def value(item: Any) -> str:
    """Format a value on one line; a mapping becomes an inline table."""
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, str):
        return string(item)
    if isinstance(item, int | float):
        return repr(item)
    if isinstance(item, Mapping):
        inner = ", ".join(f"{key(str(k))} = {value(v)}" for k, v in item.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(item, Sequence):
        return "[" + ", ".join(value(x) for x in item) + "]"
    raise TypeError(f"TOML has no {type(item).__name__}")
