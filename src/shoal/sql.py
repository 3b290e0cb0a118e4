"""Names as SQL writes them."""

from __future__ import annotations


def quoted(name: str) -> str:
    """An identifier, whatever it contains."""
    return '"' + name.replace('"', '""') + '"'
