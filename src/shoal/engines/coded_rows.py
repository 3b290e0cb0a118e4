"""Rows as codes into the values of their columns: few distinct rows are hashed and sorted instead of all rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.compiled.grouping import group
from shoal.engines.row_order import hash_order, order_of_distinct, place_hashes
from shoal.tables.frequency import ClassOf, packed

SAMPLE = 2**13  # rows that show whether codes pay


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """A column as codes; code 0 is null."""

    values: pa.Array  # null, then the values that other codes refer to
    codes: NDArray[np.int32]

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> CodedColumn:
        """Number the distinct values of a column."""
        encoded = pa.concat_arrays([pa.array([], column.type), *column.chunks]).dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return cls.numbered(encoded.dictionary, codes)

    @classmethod
    def numbered(cls, values: pa.Array, codes: NDArray[np.int32]) -> CodedColumn:
        """Number the values from 1 on; their codes start at 0, and -1 is null."""
        return cls(pa.concat_arrays([pa.nulls(1, values.type), values]), codes.astype(np.int32) + np.int32(1))

    def take(self, rows: NDArray[np.int64]) -> CodedColumn:
        """Return the column of some rows."""
        return CodedColumn(self.values, self.codes[rows])

    def decoded(self) -> pa.Array:
        """Return the values of the rows."""
        return self.values.take(pa.array(self.codes))


def is_worth_coding(column: pa.ChunkedArray) -> bool:
    """Return whether the values of a column repeat, as far as its first rows show."""
    sample = column.slice(0, SAMPLE)
    return 2 * len(sample.unique()) <= len(sample)


def decoded_table(columns: Mapping[str, CodedColumn]) -> pa.Table:
    """Return the rows of coded columns."""
    return pa.table({name: column.decoded() for name, column in columns.items()})


def order_of_codes(columns: Mapping[str, CodedColumn], seed: int) -> NDArray[np.int64]:
    """Return the order of ``hash_order``, for which only the distinct rows are hashed."""
    class_of, firsts = group(packed(np.stack([column.codes for column in columns.values()]).T))
    if 2 * len(firsts) > len(class_of):
        return hash_order(decoded_table(columns), seed)
    distinct = decoded_table({name: column.take(firsts) for name, column in columns.items()})
    rank = np.empty(len(firsts), np.int64)
    rank[order_of_distinct(distinct, seed)] = np.arange(len(firsts))
    return order_of_classes(rank[class_of], seed)


def order_of_classes(class_of: ClassOf, seed: int) -> NDArray[np.int64]:
    """Return the order of rows by their class; those of a class are in the order of a hash of their positions."""
    hashed = place_hashes(len(class_of), seed)
    scattered = np.argsort(hashed)
    ranked = hashed[scattered]
    if (ranked[1:] == ranked[:-1]).any():
        scattered = np.argsort(hashed, kind="stable")
    order, classes = scattered, class_of[scattered]
    for shift in range(0, max(1, int(class_of.max(initial=0)).bit_length()), 16):  # NumPy sorts 16 bits by counting
        digits = ((classes >> shift) & 0xFFFF).astype(np.uint16)
        moved = np.argsort(digits, kind="stable")
        order, classes = order[moved], classes[moved]
    return order
