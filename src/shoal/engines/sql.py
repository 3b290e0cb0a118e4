"""Names as SQL writes them."""

from __future__ import annotations

from collections.abc import Sequence


def quoted(name: str) -> str:
    """An identifier, whatever it contains."""
    return '"' + name.replace('"', '""') + '"'


def unused(name: str, taken: Sequence[str]) -> str:
    """A name like this one that is no other's, also where letters of either case are the same."""
    lowered = {other.lower() for other in taken}
    while name.lower() in lowered:
        name += "_"
    return name
