"""Parse cells as the policy spells them, in memory and in engines: see ``hierarchies.spelling``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from shoal.hierarchies.spelling import BLANKS, INFINITE, Spelling
from shoal.notation.codec import Coded
from shoal.notation.numbers import parse_number
from shoal.policy.column import Column

if TYPE_CHECKING:
    from ibis.expr import types as ir

Spellings = Mapping[str, Spelling]


def read_table(table: pa.Table, spellings: Spellings) -> pa.Table:
    """Parse the cells of a table in memory."""
    for j, name in enumerate(table.column_names):
        if name in spellings and not spellings[name].is_plain:
            table = table.set_column(j, name, _read_column(table.column(j), spellings[name]))
    return table


def _read_column(column: pa.ChunkedArray, spelling: Spelling) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_integer(kind):
        codes = pa.array(_whole(spelling.missing), pa.int64())
        return pc.if_else(pc.is_in(column, codes.cast(kind, safe=False)), pa.scalar(None, kind), column)
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers = pa.array(_numbers(spelling.missing), pa.float64())
        is_missing = pc.is_in(column.cast(pa.float64(), safe=False), numbers)
        return pc.if_else(is_missing, pa.scalar(None, kind), column)
    if not pa.types.is_string(kind):
        return column
    column = _without_missing(column, spelling)
    if spelling.numeral is None:
        return column
    plain = column
    for mark in spelling.dropped:
        plain = pc.replace_substring(plain, mark, "")
    plain = pc.replace_substring(plain, spelling.decimal, ".")
    if spelling.ambiguous is not None:
        longer = pc.binary_join_element_wise(plain, "0", "")
        plain = pc.if_else(pc.match_substring_regex(plain, spelling.ambiguous), longer, plain)
    is_text = pc.and_not(pc.match_substring_regex(column, spelling.numeral), pc.match_substring(column, "\n"))
    return _without_missing(pc.if_else(is_text, plain, column), spelling)


def _without_missing(column: pa.ChunkedArray, spelling: Spelling) -> pa.ChunkedArray:
    """Replace texts that mean a missing value by null."""
    if not spelling.missing:
        return column
    is_missing = pc.is_in(pc.utf8_trim(column, BLANKS), pa.array(spelling.missing, pa.string()))
    return pc.if_else(is_missing, pa.scalar(None, pa.string()), column)


def coarsened_table(
    table: pa.Table, coded: Mapping[str, Coded], columns: Mapping[str, Column], folder: Path
) -> pa.Table:
    """Replace sensitive columns by what a policy releases of them; numbers keep their type where it can hold them."""
    for name, column in columns.items():
        assert column.released is not None
        values = coded[name]
        coarse = pa.array(column.released.coarse(name, values.texts, column.hierarchy, folder), pa.string())
        cells = coarse.take(pa.array(values.codes, pa.int32(), mask=values.codes < 0))
        j = table.schema.get_field_index(name)
        table = table.set_column(j, name, pa.chunked_array([_of_kind(cells, table.schema.field(j).type)]))
    return table


def _of_kind(cells: pa.Array, kind: pa.DataType) -> pa.Array:
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return cells
    for wanted in (kind, pa.float64()):
        try:
            return cells.cast(wanted)
        except pa.ArrowInvalid:
            continue
    return cells


def read_expression(table: ir.Table, spellings: Spellings) -> ir.Table:
    """Parse the cells of a table in an engine."""
    changed = {
        name: _expression(table[name], spellings[name])
        for name in table.columns
        if name in spellings and not spellings[name].is_plain
    }
    return table.mutate(**changed) if changed else table


def _expression(column: Any, spelling: Spelling) -> Any:
    import ibis

    kind = column.type()
    nothing = ibis.null(kind)
    if kind.is_integer() or kind.is_floating() or kind.is_decimal():
        codes = _whole(spelling.missing) if kind.is_integer() else _numbers(spelling.missing)
        number = column.cast("int64" if kind.is_integer() else "float64")
        return ibis.ifelse(number.isin(codes), nothing, column).cast(kind) if codes else column
    if not kind.is_string():
        return column

    def without_marks(text: Any) -> Any:
        if not spelling.missing:
            return text
        return ibis.ifelse(text.strip().isin(list(spelling.missing)), ibis.null("string"), text)

    text = without_marks(column + "")  # char(n), padded with blanks, becomes text
    if spelling.numeral is None:
        return text
    plain = text
    for mark in spelling.dropped:
        plain = plain.replace(mark, "")
    plain = plain.replace(spelling.decimal, ".")
    if spelling.ambiguous is not None:
        plain = ibis.ifelse(plain.re_search(spelling.ambiguous), plain + "0", plain)
    return without_marks(ibis.ifelse(text.re_search(spelling.numeral) & ~text.contains("\n"), plain, text))


def _numbers(missing: Sequence[str]) -> list[float]:
    """Return those of the texts that are numbers, such as the code 999 for a missing value, or infinity."""
    infinite = [float(text) for text in missing if text in INFINITE]
    return [float(x) for x in map(parse_number, missing) if x is not None] + infinite


def _whole(missing: Sequence[str]) -> list[int]:
    numbers = [x for x in map(parse_number, missing) if x is not None and x == x.to_integral_value()]
    return [int(x) for x in numbers if abs(x) < 2**31]
