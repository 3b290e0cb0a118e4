"""Escape texts in CSV files that a spreadsheet would evaluate as formulas.

A spreadsheet that opens a CSV file evaluates a cell that begins with = + - or @ as a formula, quoted or not, even after
blanks. After an apostrophe the cell is a text. Numbers stay unchanged, and so does anything that consists only of
digits and signs (-5, -10--5, +39 049): without letters no function can be called.

The apostrophe can be removed again: anything that is a formula after any number of apostrophes gets one more, so that
``'=x`` becomes ``''=x``, and no two texts become equal. A column written in this way has no unescaped formula. If a
column has apostrophes before formulas and no unescaped formula, they are removed when it is read; this does not make
two texts equal either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shoal.engines.sql import quoted
from shoal.tables.frequency import Counts

MARK = "'"
RunQuery = Callable[[str], Sequence[Any]]

# Valid in both Arrow and DuckDB, which use RE2. The wide signs are those of East Asian keyboards.
_BLANKS, _SIGNS = " \t\r\n\v\f\u00a0", "=+@＝＋－＠-"
FORMULA = f"^'*(?:[\t\r]|[{_BLANKS}]*[{_SIGNS}])"
HARMLESS = f"^'*[{_BLANKS}]*(?:[{_BLANKS}{_SIGNS}]*|[+-][0-9 .,:/%*()+-]*|[+-][0-9.]+[eE][+-]?[0-9]+)$"


class Formulas:
    """Escape formulas with apostrophes, and count them."""

    def __init__(self) -> None:
        self.cells: Counter[str] = Counter()  # per column

    def escaped(self, table: pa.Table, counts: Counts | None = None) -> pa.Table:
        """Return the table with formulas escaped, including those in column names; a row may occur several times."""
        columns = [self._column(name, table[name], counts) for name in table.column_names]
        return pa.Table.from_arrays(columns, self.names(table.column_names))

    def names(self, names: Sequence[str]) -> list[str]:
        """Return the column names as written to the file."""
        return [
            MARK + name if bare or marked else name
            for name, bare, marked in zip(names, *_formula_names(names), strict=True)
        ]

    def undone(self, source: str, names: Sequence[str], *, other_names: Sequence[str] = ()) -> str:
        """Convert a DuckDB table expression for such a file to one for the table that was written.

        ``beside``: other columns of the expression, which stay as they are.
        """
        written = self.names(names)
        marked = [is_written for is_written, name in zip(written, names, strict=True) if name in self.cells]
        return _undone(source, [*written, *other_names], [*names, *other_names], marked)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on what was escaped, and how often."""
        return tuple(
            f"column {name!r}: {n} cells begin like a formula; in the file, an apostrophe is put before them "
            f'(csv_formulas = "keep" leaves them unchanged)'
            for name, n in self.cells.items()
        )

    def _column(self, name: str, column: pa.ChunkedArray, counts: Counts | None) -> pa.ChunkedArray:
        text = _text(column)
        if text is None or not pc.any(_formula(text.unique())).as_py():  # few distinct values, many cells
            return column
        formula = _formula(text)
        weighted = formula if counts is None else pc.multiply(formula.cast(pa.int64()), pa.array(counts))
        self.cells[name] += int(pc.sum(weighted).as_py() or 0)
        return pc.if_else(formula, pc.binary_join_element_wise(MARK, text, ""), text)


def unescaped(table: pa.Table) -> tuple[pa.Table, tuple[str, ...]]:
    """Restore a table that ``Formulas`` wrote to a CSV file; return notes too."""
    names = list(table.column_names)
    bare, marked = _formula_names(names)
    if not any(bare):
        names = [name[1:] if is_marked else name for name, is_marked in zip(names, marked, strict=True)]
    columns, notes = [], []
    for name, column in zip(names, table.columns, strict=True):
        plain, n = _unescaped(column)
        columns.append(plain)
        if n:
            notes.append(_read(name, n))
    return pa.Table.from_arrays(columns, names), tuple(notes)


def unescaped_source(run_query: RunQuery, source: str, names: Sequence[str]) -> tuple[str, tuple[str, ...], int]:
    """Restore a DuckDB table expression for a CSV file, with the number of rows; ``ask`` runs a one-row query."""
    bare, marked = _formula_names(names)
    plain = list(names)
    if not any(bare):
        plain = [name[1:] if is_marked else name for name, is_marked in zip(names, marked, strict=True)]
    figures = ["count(*)", *(f"bool_or({_starts(quoted(name))})" for name in names)]
    n_rows, *starts = run_query(f"SELECT {', '.join(figures)} FROM {source}")
    is_marked: dict[str, int] = {}
    if suspects := [name for name, starts_so in zip(names, starts, strict=True) if starts_so]:
        counts = [
            f"count(*) FILTER ({_formula_in(column)} AND {mark} {_starts(column)})"
            for column in map(quoted, suspects)
            for mark in ("NOT", "")
        ]
        answer = iter(run_query(f"SELECT {', '.join(counts)} FROM {source}"))
        is_marked = {
            name: n
            for name, (n_others, n) in zip(suspects, zip(answer, answer, strict=True), strict=True)
            if n and not n_others
        }
    notes = tuple(
        _read(name, is_marked[name_written])
        for name_written, name in zip(names, plain, strict=True)
        if name_written in is_marked
    )
    return _undone(source, names, plain, list(is_marked)), notes, int(n_rows)


def _read(name: str, n: int) -> str:
    return f"column {name!r}: {n} cells have an apostrophe before a formula, and were read without it"


def _undone(source: str, written: Sequence[str], names: Sequence[str], marked: Sequence[str]) -> str:
    """Return a table expression with these names, and without the apostrophes of columns that have them."""
    if not marked and list(written) == list(names):
        return source
    columns = [
        f"{_plain(quoted(is_written)) if is_written in marked else quoted(is_written)} AS {quoted(name)}"
        for name, is_written in zip(names, written, strict=True)
    ]
    return f"(SELECT {', '.join(columns)} FROM {source})"


def _plain(column: str) -> str:
    return f"CASE WHEN {_starts(column)} AND {_formula_in(column)} THEN substr({column}, 2) ELSE {column} END"


def _starts(column: str) -> str:
    return f"starts_with({column}, '{MARK * 2}')"


def _formula_in(column: str) -> str:
    formula, harmless = (pattern.replace("'", "''") for pattern in (FORMULA, HARMLESS))
    return f"(regexp_matches({column}, '{formula}') AND NOT regexp_matches({column}, '{harmless}'))"


def _unescaped(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, int]:
    text = _text(column)
    if text is None or not pc.any(pc.starts_with(text, MARK)).as_py():
        return column, 0
    distinct = text.unique()
    formula, starts = _formula(distinct), pc.starts_with(distinct, MARK)
    if pc.any(pc.and_not(formula, starts)).as_py():  # unescaped: another program wrote it, and means it
        return column, 0
    marked = pc.and_(_formula(text), pc.starts_with(text, MARK))
    return pc.if_else(marked, pc.utf8_slice_codeunits(text, 1), text), int(pc.sum(marked).as_py() or 0)


def _text(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        return None
    return column.cast(pa.string())


def _formula(text: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    return pc.and_not(pc.match_substring_regex(text, FORMULA), pc.match_substring_regex(text, HARMLESS))


def _formula_names(names: Sequence[str]) -> tuple[list[bool], list[bool]]:
    """Find the names that are unescaped formulas, and those that are escaped ones."""
    formula = _formula(pa.array(names, pa.string())).to_pylist()
    marked = [is_formula and name.startswith(MARK) for name, is_formula in zip(names, formula, strict=True)]
    return [is_formula and not mark for is_formula, mark in zip(formula, marked, strict=True)], marked
