"""Hierarchies of a certificate: a path in it is never opened, as its author would choose what is read."""

from __future__ import annotations

from pathlib import Path

from shoal.hierarchies.builders import File
from shoal.policy import Policy


class UnopenedFile(File):
    """A hierarchy that a certificate names as a file."""

    def _text(self, column: str, folder: Path) -> str:
        raise self._error(
            column, "is not opened, as a certificate names it", "pass a policy of your own, with its hierarchies"
        )


def with_files_of(certified: Policy, readers: Policy | None) -> Policy:
    """Return the policy of a certificate with the hierarchies that the reader has, and no other files."""
    columns = dict(certified.columns)
    for name, column in certified.columns.items():
        if isinstance(column.hierarchy, File):
            mine = None if readers is None or name not in readers.columns else readers.columns[name].hierarchy
            hierarchy = mine if isinstance(mine, File) else UnopenedFile(path=column.hierarchy.path)
            columns[name] = column.model_copy(update={"hierarchy": hierarchy})
    return certified.model_copy(update={"columns": columns} | ({} if readers is None else {"folder": readers.folder}))
