"""What users pass as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, TypeAlias


class Frame(Protocol):
    """A table in Python: a pandas, polars, pyarrow or Narwhals frame, an Ibis table, or an engine opened before."""

    @property
    def columns(self) -> Any:
        """The columns, or their names."""


Data: TypeAlias = str | Path | Frame  # a text is a path
