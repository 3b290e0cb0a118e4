"""Released rows in memory that are kept as their distinct rows and counts: a release repeats few rows many times.

They are judged, and written to files, by these counts. Whoever asks for the rows themselves gets them counted again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.engines import scratch
from shoal.engines.base import Groups, Rows
from shoal.engines.coded_rows import order_of_classes
from shoal.engines.run_length_rows import RunLengthRows
from shoal.engines.sql import quoted, unused
from shoal.errors import VerificationError
from shoal.tables.frequency import ClassOf


@dataclass(frozen=True, eq=False)
class Origins:
    """The rows of the original that released rows were made from."""

    rows: NDArray[np.int64]  # of the original
    rank_of: ClassOf  # for each of them, which distinct released row it became, in the order of the release
    seed: int

    def ordered(self) -> NDArray[np.int64]:
        """Return the row of the original behind each released row."""
        return self.rows[order_of_classes(self.rank_of, self.seed)]


class CountedRows(Rows):
    """Released rows that are made only if they are asked for."""

    def __init__(self, repeated: RunLengthRows, origins: Origins) -> None:
        vars(self).update(repeated=repeated, origins=origins, persons=None, notes=())

    repeated: RunLengthRows
    origins: Origins

    def __reduce__(self) -> Any:
        return CountedRows, (self.repeated, self.origins)

    @cached_property
    def table(self) -> pa.Table:
        """All rows, counted again: they must be the distinct rows, each as often as it was judged."""
        rows = pa.concat_tables([self.repeated.schema.empty_table(), *self.repeated.pieces(max(1, self.n_records))])
        _require_same(rows, self.counted)
        return rows

    @cached_property
    def sources(self) -> NDArray[np.int64]:
        """The row of the original behind each released row."""
        return self.origins.ordered()

    @cached_property
    def counted(self) -> Groups:
        """The distinct rows and their counts."""
        weight = unused("records", self.columns)
        return Groups(self.repeated.distinct.append_column(weight, pa.array(self.repeated.counts)), weight)

    @property
    def columns(self) -> list[str]:
        """The names of the released columns."""
        return list(self.repeated.names)

    @property
    def schema(self) -> pa.Schema:
        """The types of the released columns."""
        return self.repeated.schema

    @property
    def n_records(self) -> int:
        """The number of released records."""
        return int(self.repeated.counts.sum())


def _require_same(rows: pa.Table, counted: Groups) -> None:
    """Raise an error unless the rows are those that were counted."""
    names = ", ".join(map(quoted, rows.column_names))
    with scratch.connect() as connection:
        connection.register("made", rows)
        connection.register("counted", counted.table)
        ((differing,),) = connection.sql(
            f"SELECT count(*) FROM (SELECT {names}, count(*) FROM made GROUP BY ALL EXCEPT "
            f"SELECT {names}, CAST(sum({quoted(counted.weight)}) AS BIGINT) FROM counted GROUP BY {names})"
        ).fetchall()
    if differing or len(rows) != int(np.asarray(counted.table[counted.weight]).sum()):
        raise VerificationError("the rows do not match the counts that were judged; nothing was released")
