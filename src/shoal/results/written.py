"""Tables of results as files: formulas escaped, written whole or not at all, and read back before they count."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from shoal.engines.formats.formulas import Formulas
from shoal.engines.formats.table_files import TEXT, read_table_file, separator_of, write_table_file
from shoal.errors import VerificationError


def write_results(table: pa.Table, path: Path, *, force: bool) -> None:
    """Write a table of texts and numbers as CSV or Parquet; every figure that is read back must be the same."""
    if path.suffix.lower() in TEXT:
        table = Formulas().escaped(table)  # a label must not be run by a spreadsheet
    write_table_file(table, path, force=force, verify=lambda written: _require_same(written, table))


def _require_same(written: Path, table: pa.Table) -> None:
    separator = separator_of(written, None) if written.suffix.lower() in TEXT else None
    read_back = read_table_file(written, separator=separator).table
    if read_back.column_names != table.column_names or len(read_back) != len(table):
        raise VerificationError("the written table does not have its columns and rows; nothing was released")
    wrong = 0
    for field, column, expected in zip(table.schema, read_back.columns, table.columns, strict=True):
        if pa.types.is_string(field.type):
            pairs = zip(column.to_pylist(), expected.to_pylist(), strict=True)
            wrong += sum((text or "") != (label or "") for text, label in pairs)
        elif not pa.types.is_boolean(field.type):
            figures = [None if figure in (None, "") else float(figure) for figure in column.to_pylist()]
            wrong += sum(a != b for a, b in zip(figures, expected.to_pylist(), strict=True))
    if wrong:
        raise VerificationError(f"{wrong} written figures or labels are not those of the result; nothing was released")
