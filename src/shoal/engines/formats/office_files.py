"""Reading and writing Excel, SPSS and Stata files, and reading SAS files, with optional packages.

Excel distinguishes numbers from texts, so 02138 must be a text there to keep its zero. In files of statistical packages
an empty text is a missing value. The codes are the data, and their labels are the codebook.

Content that such a file cannot hold (a long integer, an empty text, a name with a blank) is rejected: the written file
is read again, and every cell must equal the released one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shoal.engines.codebook import NO_LABELS, Codebook
from shoal.engines.formats.header import numbered_names, require_header
from shoal.engines.formats.workbook import write_workbook
from shoal.engines.formats.workbook_parts import require_modest
from shoal.engines.frames import to_arrow
from shoal.errors import DataError, OutputError, ShoalError
from shoal.notation import codec

SHEETS = (".xlsx", ".xlsm")
STATISTICS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
WRITTEN = (".xlsx", ".sav", ".dta")
UNNAMED = re.compile(r"Unnamed: \d+")  # what pandas calls a column without a name
HEADER_RECORDS = 200  # that the first row is compared with
SHEET_ROWS, SHEET_COLUMNS = 1_048_576, 16_384
NAMES = {  # of variables
    ".sav": re.compile(r"[^\W\d_][\w.@#$]{0,63}"),
    ".dta": re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}"),
}


def is_foreign(path: Path) -> bool:
    """Return whether a file has one of these formats, judging by its name."""
    return path.suffix.lower() in (*SHEETS, *STATISTICS)


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────


def read_office_file(path: Path, header: bool | None = True) -> tuple[pa.Table, tuple[str, ...], Codebook]:
    """Read the table, with the assumptions made and the labels in the file.

    ``header``: whether the first row of a sheet has the column names; None raises an error if it looks like a record.
    """
    suffix = path.suffix.lower()
    if suffix in SHEETS:
        return *_sheet(path, header), NO_LABELS
    table, codebook = _statistics(path, STATISTICS[suffix])
    return table, (), codebook


def _sheet(path: Path, header: bool | None) -> tuple[pa.Table, tuple[str, ...]]:
    _needed("openpyxl", "excel")
    pandas = _needed("pandas", "excel")
    require_modest(path)
    first = None if header is False else 0
    try:
        with pandas.ExcelFile(path, engine="openpyxl") as book:
            names = book.sheet_names
            frame = pandas.read_excel(book, header=first, dtype=object, keep_default_na=False, na_values=[""])
    except MemoryError:
        raise
    except Exception:
        raise _incomplete(path) from None
    if header is False:
        frame.columns = numbered_names(frame.shape[1])
    elif header is None:
        head = ["" if UNNAMED.fullmatch(str(name)) else str(name) for name in frame.columns]
        cells = frame.head(HEADER_RECORDS).itertuples(index=False, name=None)
        require_header(path.name, head, [["" if cell != cell else str(cell) for cell in record] for record in cells])
    note = f"{path.name} has {len(names)} sheets; the first was read"
    return _with_days(to_arrow(frame)[0]), (note,) if len(names) > 1 else ()


def _statistics(path: Path, reader: str) -> tuple[pa.Table, Codebook]:
    pyreadstat = _needed("pyreadstat", "statistics")
    _needed("pandas", "statistics")
    try:
        frame, meta = getattr(pyreadstat, reader)(str(path))
    except Exception:
        raise DataError(f"{path.name} is not a complete {path.suffix} file", "save it again, or as CSV") from None
    table = to_arrow(frame)[0]
    for j, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            blank = pc.equal(table.column(j), "")
            table = table.set_column(j, field.name, pc.if_else(blank, pa.scalar(None, pa.string()), table.column(j)))
    return _with_days(table), Codebook.of(meta)


def raw_sheet(path: Path, names: Sequence[str]) -> dict[str, pa.ChunkedArray]:
    """Return columns of the first sheet as texts that tell apart what the sheet does: 1 from "1", and both from 1.0."""
    rows = _sheet_rows(path)
    header = [None if cell is None else str(cell.value) for cell in rows[0]] if rows else []
    first = 1
    if not set(header) & set(names):  # read without a row of names
        header, first = list(numbered_names(len(header))), 0
    columns = {}
    for name in names:
        if header.count(name) == 1:
            j = header.index(name)
            cells = (row[j] if j < len(row) else None for row in rows[first:])
            texts = [
                None if cell is None or cell.value is None else f"{cell.data_type}{cell.value!r}" for cell in cells
            ]
            columns[name] = pa.chunked_array([pa.array(texts, pa.large_string())])
    return columns


def _sheet_rows(path: Path) -> list[tuple[Any, ...]]:
    """Return the cells of the first sheet without the empty rows at its end, as pandas reads it."""
    openpyxl = _needed("openpyxl", "excel")
    require_modest(path)
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        try:
            sheet = book.worksheets[0]
            sheet.reset_dimensions()
            rows = list(sheet.iter_rows())
        finally:
            book.close()
    except Exception:
        raise _incomplete(path) from None
    while rows and all(cell.value is None or cell.value == "" for cell in rows[-1]):
        rows.pop()
    return rows


def raw_statistics(path: Path, names: Sequence[str]) -> dict[str, pa.ChunkedArray]:
    """Return columns with the kinds of missing values that the package tells apart, and blank texts from none."""
    pyreadstat = _needed("pyreadstat", "statistics")
    try:
        reader = getattr(pyreadstat, STATISTICS[path.suffix.lower()])
        options = {} if path.suffix.lower() == ".xpt" else {"user_missing": True}
        frame, _ = reader(str(path), usecols=list(names), disable_datetime_conversion=True, **options)
    except Exception:
        raise DataError(f"{path.name} cannot be read a second time", "did it change during the check?") from None
    columns = {}
    for name in frame.columns:
        cells = frame[name].astype(object).tolist()
        texts = [None if cell is None or cell != cell else f"{type(cell).__name__}{cell!r}" for cell in cells]
        columns[str(name)] = pa.chunked_array([pa.array(texts, pa.large_string())])
    return columns


def coded_texts(name: str, column: pa.ChunkedArray) -> tuple[str, ...]:
    """Return the distinct values of a column as the texts that labels belong to."""
    return codec.encode_texts(name, column).texts


def n_notes(path: Path) -> int:
    """Count the notes and the title that a file has beside its columns."""
    pyreadstat = _needed("pyreadstat", "statistics")
    try:
        _, meta = getattr(pyreadstat, STATISTICS[path.suffix.lower()])(str(path), metadataonly=True)
    except Exception:
        raise DataError(f"{path.name} cannot be read a second time", "did it change during the check?") from None
    return len([note for note in meta.notes or [] if str(note).strip()]) + bool((meta.file_label or "").strip())


def _incomplete(path: Path) -> DataError:
    return DataError(f"{path.name} is not a complete Excel file", "save it again as .xlsx, or as CSV")


def _with_days(table: pa.Table) -> pa.Table:
    """Convert timestamps that are all midnight to dates: most of these formats have no other dates."""
    for j, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            days = table.column(j).cast(pa.date32(), safe=False)
            if days.cast(field.type).equals(table.column(j)) and days.null_count < len(days):
                table = table.set_column(j, field.name, days)
    return table


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────


def check_packages(path: Path) -> None:
    """Raise an error if the package that writes this format is not installed."""
    package, extra = ("openpyxl", "excel") if path.suffix.lower() in SHEETS else ("pyreadstat", "statistics")
    for name in (package, "pandas"):
        _needed(name, extra, OutputError)


def write_office_file(table: pa.Table, path: Path, codebook: Codebook) -> None:
    """Write a release to an existing, empty file."""
    check_packages(path)
    _require_texts(table, path.suffix.lower())
    try:
        if path.suffix.lower() in SHEETS:
            write_workbook(table, path)
        else:
            _write_statistics(table, path, codebook)
            UNDATED[path.suffix.lower()](path)
    except (OutputError, OSError):
        raise
    except Exception as error:  # their messages may quote a cell
        raise OutputError(
            f"the release cannot be written as {path.suffix} ({type(error).__name__})", "write .parquet or .csv"
        ) from None


def _require_texts(table: pa.Table, suffix: str) -> None:
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_string(column.type) and (n := int(pc.sum(pc.equal(column, "")).as_py() or 0)):
            raise OutputError(
                f"column {name!r}: {n} texts are empty, which a {suffix} file cannot distinguish from missing values",
                "write .parquet or .csv",
            )
    if suffix in NAMES and (strange := [n for n in table.column_names if not NAMES[suffix].fullmatch(n)]):
        raise OutputError(
            f"a {suffix} file has no columns with such names: {', '.join(map(repr, strange[:10]))}",
            "rename them, or write .parquet or .csv",
        )
    if suffix in SHEETS and (len(table) >= SHEET_ROWS or table.num_columns > SHEET_COLUMNS):
        raise OutputError(f"a sheet of Excel has at most {SHEET_ROWS - 1:,} records", "write .parquet or .csv")


def _write_statistics(table: pa.Table, path: Path, codebook: Codebook) -> None:
    pyreadstat = _needed("pyreadstat", "statistics", OutputError)
    columns, values = codebook.of_release(table)
    writer = pyreadstat.write_sav
    if path.suffix.lower() == ".dta":  # where only whole numbers have labels
        writer = pyreadstat.write_dta
        values = {name: labels for name, labels in values.items() if all(map(_is_whole, labels))}
    # As objects: how pyreadstat interprets a time as a number depends on its version and that of pandas.
    frame = table.to_pandas(timestamp_as_object=True)
    writer(frame, str(path), column_labels=columns, variable_value_labels=values)


# ── the time of writing, which would make two files of one release differ ────────────────────────────────


def _undated_spss(path: Path) -> None:
    """Overwrite the date and time, which follow the first 92 bytes of the header."""
    with path.open("r+b") as file:
        file.seek(92)
        file.write(b"01 Jan 8000:00:00")


def _undated_stata(path: Path) -> None:
    """Overwrite the time in its element of the header, and its length."""
    content = path.read_bytes()
    start = content.index(b"<timestamp>") + len(b"<timestamp>")
    with path.open("r+b") as file:
        file.seek(start)
        file.write(b"\x11" + b"01 Jan 1980 00:00")


UNDATED = {".sav": _undated_spss, ".dta": _undated_stata}


def _is_whole(value: float | str) -> bool:
    return not isinstance(value, str) and float(value).is_integer()


def _needed(package: str, extra: str, error: type[ShoalError] = DataError) -> Any:
    try:
        return import_module(package)
    except ImportError:
        verb = "read" if error is DataError else "write"
        raise error(
            f"{package} is needed to {verb} this kind of file", f"python -m pip install 'shoal[{extra}]'"
        ) from None
