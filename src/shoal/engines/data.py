"""The types of table that users can pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, TypeAlias


class Frame(Protocol):
    """A table in Python: a pandas, polars, pyarrow or Narwhals frame, an Ibis table, or an opened engine."""

    @property
    def columns(self) -> Any:
        """The columns, or their names."""


class ReleasedTable(Frame, Protocol):
    """Released rows in the kind of frame that came in: pandas, polars, pyarrow (also for a path), or an Ibis table."""

    def __getitem__(self, key: Any, /) -> Any:
        """Return the values of one column, or what else the kind of frame returns for a key."""


Data: TypeAlias = str | Path | Frame  # a text is a path
