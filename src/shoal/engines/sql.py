"""Quoting and choosing names for SQL."""

from __future__ import annotations

from collections.abc import Sequence


def quoted(name: str) -> str:
    """Quote an identifier, whatever it contains."""
    return '"' + name.replace('"', '""') + '"'


def unused(name: str, names_in_use: Sequence[str]) -> str:
    """Return a similar name that is not in use, ignoring case."""
    lowered = {other.lower() for other in names_in_use}
    while name.lower() in lowered:
        name += "_"
    return name
