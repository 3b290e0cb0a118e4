"""Convert pandas, polars and Arrow frames to one Arrow table, and results back to the type of the input.

Inside shoal a table has few types: text, integers, floats, booleans, decimals, dates, times and timestamps.
``with_plain_types`` converts any Arrow table to these. On the way back, a column whose values were kept gets its type
back. An index with a name is a column; one without a name is dropped, because row labels may be names. A frame comes
back only with the categories that occur, because others would reveal what was suppressed. A column of lists or dicts
becomes text and is marked: it can only be removed. Messages of pandas, polars and Arrow quote the cell that they
reject, so none of them is passed on.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import DataError, EmptyTableError

# Arrow's strings have int32 offsets; a quarter of that range leaves room for quotes and separators.
PIECE_BYTES = 2**29
PIECE_ROWS = 2**20

CONVERT = "convert the column to text, numbers or dates first, or split it into such columns"
# Types of pandas that differ in how they store nulls. Periods, intervals and sparse arrays are converted.
KEEPING_NULLS = (
    "String",
    "Boolean",
    "Arrow",
    "Float32",
    "Float64",
    *(f"{u}Int{n}" for u in ("", "U") for n in (8, 16, 32, 64)),
)
NESTED_OBJECTS = (list, tuple, set, frozenset, dict, np.ndarray)
NESTED = {b"shoal": b"nested"}  # metadata of a text column whose cells were lists or dicts


def to_arrow(data: object) -> tuple[pa.Table, Callable[[pa.Table], Any]]:
    """Return the rows of a frame, and a picklable function that converts back to the type of the input."""
    if isinstance(data, pa.Table):
        return with_nested_types(data), partial(_with_dictionaries, schema=data.schema)
    if isinstance(data, pa.RecordBatch):
        return with_nested_types(pa.Table.from_batches([data])), partial(_record_batch, schema=data.schema)
    if isinstance(data, pa.RecordBatchReader):
        table, back = to_arrow(data.read_all())
        return table, partial(_reader, back=back)
    import narwhals as nw

    native = nw.to_native(data, pass_through=True)
    if native is not data:
        table, back = to_arrow(native)
        return table, partial(_in_narwhals, back=back)
    if nw.dependencies.is_pandas_dataframe(data):
        frame: Any = _with_named_index(data)
        table = with_nested_types(_from_pandas(frame))
        kinds = dict(zip(table.column_names, frame.dtypes, strict=True))
        return table, partial(_to_pandas, kinds=kinds, schema=table.schema)
    try:
        wrapped = nw.from_native(data)
    except Exception:
        raise _not_a_table(data) from None
    return _through_narwhals(data, wrapped)


def with_plain_types(table: pa.Table) -> pa.Table:
    """Convert to the few types shoal works with: no dictionaries, no NaN, no -0.0."""
    names = table.column_names
    require_names(names)
    if table.num_rows == 0:
        raise EmptyTableError("the table has no rows", columns=table)
    columns = [plain_column(name, column) for name, column in zip(names, table.columns, strict=True)]
    return pa.Table.from_arrays(columns, names=names)


def with_nested_types(table: pa.Table) -> pa.Table:
    """Convert like ``with_plain_types``; columns of lists or structs become texts that ``nested_columns`` names."""
    nested = [field.name for field in table.schema if pa.types.is_nested(field.type) or field.metadata == NESTED]
    if not nested:
        return with_plain_types(table)
    require_names(table.column_names)
    for j, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        if pa.types.is_nested(column.type):
            table = table.set_column(j, name, _as_text(name, column.to_pylist()))
    plain = with_plain_types(table)
    fields = [field.with_metadata(NESTED) if field.name in nested else field for field in plain.schema]
    return pa.Table.from_arrays(plain.columns, schema=pa.schema(fields))


def nested_columns(table: pa.Table) -> list[str]:
    """Return the columns whose cells were lists or dicts."""
    return [field.name for field in table.schema if field.metadata == NESTED]


def require_names(names: Sequence[str]) -> None:
    """Require that every column has a unique name."""
    if not names:
        raise DataError("the table has no columns")
    nameless = [position for position, name in enumerate(names, 1) if not name.strip()]
    if nameless:
        raise DataError(
            f"column {nameless[0]} of {len(names)} has no name" + _and_more(len(nameless) - 1),
            "name it, or remove it if it is an exported row index",
        )
    if nul := sum("\0" in name for name in names):
        raise DataError(f"{nul} column names contain a NUL character", "rename these columns")
    often = Counter(names)
    if twice := [position for position, name in enumerate(names, 1) if often[name] > 1]:
        # By position: if a table has no header, the names are its first record.
        at = ", ".join(map(str, twice[:10])) + _and_more(len(twice) - 10)
        raise DataError(
            f"column names occur more than once (columns {at})",
            "each name, read as text, must be unique; does the table begin with a line of names?",
        )


def table_fingerprint(table: pa.Table) -> str:
    """Return the SHA-256 of names, types, values and nulls; chunking does not matter."""
    digest = hashlib.sha256(f"shoal table 1\n{table.num_rows} {table.num_columns}\n".encode())
    for name, column in zip(table.column_names, with_plain_types(table).columns, strict=True):
        # Lengths first: without them ("ab", "c") and ("a", "bc") would give the same bytes.
        for text in (name.encode(), str(column.type).encode()):
            digest.update(len(text).to_bytes(8, "little") + text)
        digest.update(column.null_count.to_bytes(8, "little"))
        for chunk in column.chunks:
            digest.update(_array_bytes(pc.is_valid(chunk).cast(pa.uint8())))
        values = [chunk.drop_null() for chunk in column.chunks]  # the bytes under a null are not content
        if pa.types.is_string(column.type):
            for chunk in values:
                digest.update(_array_bytes(pc.binary_length(chunk)))
        for chunk in values:
            digest.update(_array_bytes(chunk))
    return digest.hexdigest()


def small_slices(batch: Any) -> Iterator[Any]:
    """Split an array or record batch into slices small enough for Arrow's 32-bit offsets."""
    if len(batch) > 1 and (len(batch) > PIECE_ROWS or batch.nbytes > PIECE_BYTES):
        half = len(batch) // 2
        yield from small_slices(batch.slice(0, half))
        yield from small_slices(batch.slice(half))
    else:
        yield batch


def string_bytes(array: pa.Array) -> bytes:
    """Return the UTF-8 of all values of a string array, concatenated."""
    _, offsets, values = array.buffers()
    if len(array) == 0 or values is None:
        return b""
    ends = np.frombuffer(offsets, np.int32)
    first, last = int(ends[array.offset]), int(ends[array.offset + len(array)])
    return bytes(values.slice(first, last - first).to_pybytes())


def _array_bytes(array: pa.Array) -> bytes:
    """Return the bytes of an array without nulls."""
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    if pa.types.is_string(array.type):
        return string_bytes(array)
    if len(array) == 0:
        return b""
    width = array.type.bit_width // 8
    return bytes(array.buffers()[1].slice(array.offset * width, len(array) * width).to_pybytes())


# ── any Arrow column → a plain one ───────────────────────────────────────────────────────────────────────


def plain_column(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert a column to one of the few types."""
    try:
        chunks = [_plain_array(piece) for chunk in column.chunks for piece in small_slices(chunk)]
    except MemoryError:  # Arrow's own is an ArrowException too
        raise
    except (pa.ArrowException, ValueError, TypeError):
        raise DataError(
            f"column {name!r} of type {column.type} holds bytes that are not text, or values out of range",
            CONVERT,
        ) from None
    if any(chunk is None for chunk in chunks):
        raise DataError(
            f"column {name!r} of type {column.type} does not hold one plain value per cell",
            CONVERT,
        )
    return pa.chunked_array(chunks)


def _plain_array(array: pa.Array) -> pa.Array | None:
    """Convert an array; None if the type has no plain form."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return _plain_array(array.storage)
    if pa.types.is_dictionary(kind):
        return _plain_array(array.dictionary_decode())
    if pa.types.is_run_end_encoded(kind):
        return _plain_array(pc.run_end_decode(array))
    if pa.types.is_floating(kind):
        numbers = array.cast(pa.float32()) if pa.types.is_float16(kind) else array
        numbers = pc.if_else(pc.is_nan(numbers), pa.scalar(None, numbers.type), numbers)
        return pc.add(numbers, pa.scalar(0, numbers.type))  # -0.0 + 0.0 is 0.0
    if pa.types.is_date64(kind):
        return array.cast(pa.date32())
    if pa.types.is_decimal(kind) and not (pa.types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision):
        # As in SQL: 38 digits, some of them decimals.
        return array.cast(pa.decimal128(38, max(0, kind.scale))) if kind.scale <= 38 else None
    if _is_text(kind):
        text = array.cast(pa.string())
        text.validate(full=True)  # Parquet and buffers may contain invalid UTF-8
        return text
    return array if _is_kept(kind) else None


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    text = (types.is_null, types.is_string, types.is_large_string, types.is_string_view)
    bytes_ = (types.is_binary, types.is_large_binary, types.is_binary_view)
    return any(is_kind(kind) for is_kind in text + bytes_)


def _is_kept(kind: pa.DataType) -> bool:
    types = pa.types
    numbers = (types.is_integer, types.is_boolean, types.is_decimal)
    times = (types.is_date32, types.is_time, types.is_timestamp)
    return any(is_kind(kind) for is_kind in numbers + times)


# ── pandas ───────────────────────────────────────────────────────────────────────────────────────────────


def _from_pandas(frame: Any) -> pa.Table:
    """Convert column by column and by position, so that the index is ignored and duplicate names are noticed."""
    if frame.columns.nlevels > 1:
        levels = frame.columns.nlevels
        raise DataError(f"column names have {levels} levels (a pandas MultiIndex)", "join them into one name each")
    names = [_name(label) for label in frame.columns]
    require_names(names)
    columns = []
    for j, name in enumerate(names):
        try:
            columns.append(_pandas_column(name, frame.iloc[:, j]))
        except DataError:
            raise
        except Exception:
            raise DataError(
                f"column {name!r} of pandas type {frame.dtypes.iloc[j]} has no form in Arrow", CONVERT
            ) from None
    return pa.Table.from_arrays(columns, names=names)


def _with_named_index(frame: Any) -> Any:
    """Return a pandas frame with the levels of its index that have names as columns, before the others."""
    index = frame.index
    labels = [_name(label) for label in frame.columns]
    levels = [level for level, name in enumerate(index.names) if name is not None and _name(name) not in labels]
    if not levels or frame.columns.nlevels > 1:
        return frame
    columns = [index.get_level_values(level).to_series(index=index, name=index.names[level]) for level in levels]
    pd = sys.modules["pandas"]  # whose frame this is
    return pd.concat([*columns, frame], axis=1)


def _name(label: object) -> str:
    missing = label is None or label != label
    return "" if missing else str(label)


def _pandas_column(name: str, series: Any) -> pa.Array | pa.ChunkedArray:
    kind = str(series.dtype)
    if kind == "category":
        codes = series.cat.codes.to_numpy()
        values = _pandas_column(name, series.cat.categories.to_series())
        values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), values)
    if kind.startswith("Sparse"):
        return _pandas_column(name, series.sparse.to_dense())
    if kind == "object":
        return _objects(name, series)
    array = pa.array(series, from_pandas=True)
    # Periods and intervals are pandas' own extension types; their storage alone would lose the meaning.
    return _as_text(name, _values(series)) if isinstance(array.type, pa.BaseExtensionType) else array


def _values(series: Any) -> list[object]:
    """Return the cells of a pandas column, with None for every kind of missing value."""
    cells = zip(series.astype(object).tolist(), series.isna().tolist(), strict=True)
    return [None if missing else value for value, missing in cells]


def _objects(name: str, series: Any) -> pa.Array:
    """Convert a column of Python objects: to its own type if there is one that Arrow knows, otherwise to text."""
    values = _values(series)
    kinds = {type(value) for value in values if value is not None}
    if any(issubclass(kind, NESTED_OBJECTS) for kind in kinds):
        texts = [None if value is None else str(value) for value in values]
        return pa.array([None if text is None else [text] for text in texts], pa.list_(pa.string()))
    if len(kinds) == 1:
        try:
            return pa.array(values)
        except (pa.ArrowException, OverflowError, ValueError, TypeError):
            pass
    return _as_text(name, values)


def _as_text(name: str, values: list[object]) -> pa.Array:
    try:
        return pa.array([None if value is None else str(value) for value in values], pa.large_string())
    except Exception:
        raise DataError(f"column {name!r} holds objects that cannot be written as text") from None


def _to_pandas(table: pa.Table, kinds: Mapping[str, Any], schema: pa.Schema) -> Any:
    """Build a frame with a new RangeIndex; integers and booleans with nulls do not become floats and objects."""
    import narwhals as nw

    pd = nw.dependencies.get_pandas()
    frame = table.replace_schema_metadata(None).to_pandas()
    for j, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        if column.null_count and pa.types.is_integer(column.type):
            letter = "UInt" if pa.types.is_unsigned_integer(column.type) else "Int"
            dtype = getattr(pd, f"{letter}{column.type.bit_width}Dtype")()
        elif column.null_count and pa.types.is_boolean(column.type):
            dtype = pd.BooleanDtype()
        else:
            dtype = None
        if dtype is not None:
            frame.isetitem(j, pd.Series(dtype.__from_arrow__(column), name=name))
        if name in kinds and column.type == schema.field(name).type:
            frame.isetitem(j, _with_categories(frame.iloc[:, j], kinds[name], pd))
    return frame


def _with_categories(series: Any, kind: Any, pd: Any) -> Any:
    """Convert released values to the original pandas type of the column if it can hold them."""
    if isinstance(kind, pd.CategoricalDtype):
        present = set(series.dropna().unique())
        if not present <= set(kind.categories):
            return series  # generalized
        categories = [value for value in kind.categories if value in present]
        return series.astype(
            pd.CategoricalDtype(pd.Index(categories, dtype=kind.categories.dtype), ordered=kind.ordered)
        )
    if not isinstance(kind, tuple(getattr(pd, f"{name}Dtype") for name in KEEPING_NULLS)) or series.dtype == kind:
        return series
    try:
        return series.astype(kind)
    except (TypeError, ValueError, pa.ArrowException):
        return series


# ── the rest ─────────────────────────────────────────────────────────────────────────────────────────────


def _through_narwhals(data: object, frame: Any) -> tuple[pa.Table, Callable[[pa.Table], Any]]:
    import narwhals as nw

    lazy = isinstance(frame, nw.LazyFrame)
    backend = frame.implementation
    if lazy and backend.is_duckdb():
        return with_plain_types(_collected(frame)), _relation
    if lazy and not backend.is_polars():
        raise _not_a_table(data)
    if lazy:
        frame = _collected(frame)
    table = _from_pandas(frame.to_pandas()) if backend.is_pandas_like() else _by_column(frame)
    kinds = {name: kind for name, kind in frame.schema.items() if isinstance(kind, nw.Enum | nw.Categorical)}
    return with_nested_types(table), partial(_from_arrow, backend=backend, kinds=kinds, lazy=lazy)


def _from_arrow(released: pa.Table, *, backend: Any, kinds: Mapping[str, Any], lazy: bool) -> Any:
    import narwhals as nw

    eager = nw.from_arrow(released, backend=backend)
    eager = eager.with_columns(*(_category(eager, name, kind) for name, kind in kinds.items() if name in eager.columns))
    return (eager.lazy() if lazy else eager).to_native()


def _in_narwhals(released: pa.Table, *, back: Callable[[pa.Table], Any]) -> Any:
    import narwhals as nw

    return nw.from_native(back(released))


def _reader(released: pa.Table, *, back: Callable[[pa.Table], Any]) -> Any:
    return back(released).to_reader()


def _collected(frame: Any) -> Any:
    """Return an eager frame, from Arrow if the lazy one is DuckDB's."""
    try:
        return frame.collect().to_native() if frame.implementation.is_duckdb() else frame.collect()
    except Exception as error:
        failure = f"the lazy frame could not be collected ({type(error).__name__})"
        raise DataError(failure, "collect it yourself to see what went wrong") from None


def _relation(table: pa.Table) -> Any:
    """Return a relation of DuckDB's default connection."""
    import duckdb

    return duckdb.from_arrow(table)


def _category(frame: Any, name: str, kind: Any) -> Any:
    """Return a categorical column if the categories can be released: an Enum holds only the values that it lists."""
    import narwhals as nw

    column = frame.get_column(name)
    if not isinstance(kind, nw.Enum):
        return column.cast(nw.Categorical)
    present = set(column.drop_nulls().unique().to_list())
    categories = [value for value in kind.categories if value in present]
    return column.cast(nw.Enum(categories)) if len(categories) == len(present) else column


def _by_column(frame: Any) -> pa.Table:
    columns = []
    for name in frame.columns:
        try:
            columns.append(frame.get_column(name).to_arrow())
        except Exception:
            kind = type(frame.schema[name]).__name__  # not its text: an Enum would list its values
            raise DataError(f"column {name!r} of type {kind} has no form in Arrow", CONVERT) from None
    return pa.Table.from_arrays(columns, names=list(frame.columns))


def _with_dictionaries(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Convert columns that were dictionaries back to dictionaries, of released values only."""
    for j, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        kind = schema.field(name).type if name in schema.names else column.type
        # The order of an ordered one is lost; there may be more labels than a narrow index can number.
        if pa.types.is_dictionary(kind) and column.type == kind.value_type and not kind.ordered:
            with contextlib.suppress(pa.ArrowInvalid):
                encoded = pa.concat_arrays([pa.array([], column.type), *column.chunks]).dictionary_encode()
                narrow = pa.DictionaryArray.from_arrays(encoded.indices.cast(kind.index_type), encoded.dictionary)
                table = table.set_column(j, name, narrow)
    return table


def _record_batch(table: pa.Table, *, schema: pa.Schema) -> pa.RecordBatch:
    table = _with_dictionaries(table, schema)
    empty = [pa.array([], column.type) for column in table.columns]  # a table without rows may have no chunks
    columns = [
        pa.concat_arrays([empty_chunk, *column.chunks])
        for empty_chunk, column in zip(empty, table.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


def _not_a_table(data: object) -> DataError:
    return DataError(
        f"cannot read a table from {type(data).__module__}.{type(data).__qualname__}",
        "pass a pandas or polars DataFrame, a pyarrow Table, or the path of a CSV or Parquet file",
    )


def _and_more(n: int) -> str:
    return f", and {n} more" if n > 0 else ""
