"""What PostgreSQL opens and compares."""

from __future__ import annotations

import atexit
from typing import Any

import ibis

from shoal.engines.backends.postgres.functions import marked_text, trim_scale
from shoal.engines.backends.postgres.writing import PostgreSQLWriter


class PostgreSQL(PostgreSQLWriter):
    """A PostgreSQL server; the release is written and verified in one transaction."""

    name = "PostgreSQL"

    @classmethod
    def reached(cls, uri: str, memory: str | None, read_only: bool) -> PostgreSQL:
        """Open a connection that is closed at the end; both spellings of the scheme are accepted."""
        backend = ibis.connect(uri.replace("postgres://", "postgresql://", 1))
        atexit.register(backend.disconnect)
        return cls(backend)

    def folded(self, name: str) -> str:
        """Return the name unchanged: quoted names are case-sensitive."""
        return name

    def plain(self, column: Any, *, key: bool) -> Any:
        """Convert numbers without a fixed scale, which Arrow has no type for, to text when they are keys."""
        kind = column.type()
        if kind.is_string():
            return column + ""  # char(n), padded with blanks, becomes text
        if key and kind.is_decimal() and kind.precision is None:
            return trim_scale(column).cast(str)
        return super().plain(column, key=key)

    def is_same(self, left: Any, right: Any) -> Any:
        """Avoid IS NOT DISTINCT FROM, which PostgreSQL cannot hash: it would compare every row with every tuple."""
        return marked_text(left) == marked_text(right)

    def integers(self, query: str) -> list[tuple[int, ...]]:
        """Ask within a transaction, which the driver would leave open otherwise."""
        with self.reading(), self.transaction() as run:
            return list(run(query).fetchall())
