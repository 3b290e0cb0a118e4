"""Convert values to integer codes and back, with one dictionary per column.

Text stays text. Values of other types get one text each, the same for every engine and frame: a whole float prints as
an integer (pandas converts integers with nulls to floats), ``-0.0`` is ``0``, NaN is a null, dates and times are ISO.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.errors import DataError
from shoal.notation.pandas_later import load_pandas_later

load_pandas_later()  # every conversion of this package comes after this line


@dataclass(frozen=True)
class Coded:
    """A column as codes into its sorted distinct texts; ``-1`` is a null."""

    codes: NDArray[np.int32]
    texts: tuple[str, ...]
    values: pa.Array  # one value of the column's original type for each text


def encode_texts(name: str, column: pa.ChunkedArray) -> Coded:
    """Encode ``column``; the codes do not depend on the order of its rows."""
    if pa.types.is_null(column.type):
        return Coded(np.full(len(column), -1, np.int32), (), pa.array([], pa.string()))
    encoded = _encoded(column)
    words = _as_text(name, encoded.dictionary)
    indices = encoded.indices.fill_null(-1) if encoded.indices.null_count else encoded.indices
    indices = indices.to_numpy(zero_copy_only=False)
    order = pc.sort_indices(words).to_numpy()  # UTF-8 bytes sort as code points do
    if pa.types.is_dictionary(column.type):  # which may list values that do not occur
        occurs = np.zeros(len(words) + 1, np.bool_)
        occurs[indices] = True
        order = order[occurs[order]]
    ranked = words.take(pa.array(order))
    # Two values of the column may share a text (a decimal's trailing zeros): they get one code.
    new = np.ones(len(ranked), np.bool_)
    new[1:] = pc.not_equal(ranked[1:], ranked[:-1]).to_numpy(zero_copy_only=False)
    lookup = np.full(len(words) + 1, -1, np.int32)  # index -1, for null, refers to the last entry
    lookup[order] = np.cumsum(new) - 1
    codes = lookup[indices]
    distinct = ranked.filter(pa.array(new))
    return Coded(codes, tuple(distinct.to_pylist()), encoded.dictionary.take(pa.array(order[new])))


def _encoded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """Return a column as one dictionary, which may list a value twice if it was given so."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        numbered = kind.index_type == pa.int32() and pa.types.is_string(kind.value_type) and not _lists_null(column)
        column = column.unify_dictionaries() if numbered else column.cast(kind.value_type)
    if pa.types.is_floating(column.type):
        column = _plain_floats(column)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    encoded = column.combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # the return type of combine_chunks differs between releases
        encoded = pa.concat_arrays(encoded.chunks) if encoded.num_chunks != 1 else encoded.chunk(0)
    return encoded


def _lists_null(column: pa.ChunkedArray) -> bool:
    return any(chunk.dictionary.null_count for chunk in column.chunks)


def _plain_floats(column: pa.ChunkedArray) -> pa.ChunkedArray:
    column = column.cast(pa.float64())
    column = pc.if_else(pc.is_nan(column), pa.scalar(None, pa.float64()), column)
    return pc.add(column, 0.0)  # -0.0 + 0.0 is 0.0


def _as_text(name: str, values: pa.Array) -> pa.Array:
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return values
    if pa.types.is_floating(kind):
        return pa.array([str(int(x)) if x.is_integer() else repr(x) for x in values.to_pylist()], pa.string())
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        return pa.array([_iso_time(text) for text in values.cast(pa.string()).to_pylist()], pa.string())
    try:
        return values.cast(pa.string())
    except pa.ArrowException:
        pass
    raise DataError(
        f"column {name!r}: values of type {kind} have no text form",
        "convert the column to text, numbers or dates first",
    )


# Trailing zeros of a fraction are removed; those of the UTC offset after it (+0530) are kept.
_ZERO_FRACTION = re.compile(r"\.(\d*?)0+(?=\D|$)")


def _iso_time(text: str) -> str:
    text = _ZERO_FRACTION.sub(lambda match: f".{match[1]}" if match[1] else "", text)
    return text.replace(" ", "T", 1)
