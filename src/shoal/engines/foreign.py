"""Tables from Excel, SPSS, Stata and SAS: read through packages that an extra brings, then as any other table.

Excel tells cells with numbers from cells with texts, so 02138 must be a text there to keep its zero. Labels of values
(1 = "female") are not read: the codes are the data.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa

from shoal.engines.frames import to_arrow
from shoal.errors import DataError

SHEETS = (".xlsx", ".xlsm")
STATISTICS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}


def is_foreign(path: Path) -> bool:
    """Whether a file is of one of these kinds, by its name."""
    return path.suffix.lower() in (*SHEETS, *STATISTICS)


def read(path: Path) -> tuple[pa.Table, tuple[str, ...]]:
    """The table, and what was assumed."""
    suffix = path.suffix.lower()
    return _sheet(path) if suffix in SHEETS else (_statistics(path, STATISTICS[suffix]), ())


def _sheet(path: Path) -> tuple[pa.Table, tuple[str, ...]]:
    _needed("openpyxl", "excel")
    pandas = _needed("pandas", "excel")
    try:
        with pandas.ExcelFile(path, engine="openpyxl") as book:
            names = book.sheet_names
            frame = pandas.read_excel(book, dtype=object, keep_default_na=False, na_values=[""])
    except Exception:
        raise DataError(f"{path.name} is not a complete Excel file", "save it again as .xlsx, or as CSV") from None
    note = f"{path.name} has {len(names)} sheets; the first was read"
    return to_arrow(frame)[0], (note,) if len(names) > 1 else ()


def _statistics(path: Path, reader: str) -> pa.Table:
    pyreadstat = _needed("pyreadstat", "statistics")
    _needed("pandas", "statistics")
    try:
        frame, _ = getattr(pyreadstat, reader)(str(path))
    except Exception:
        raise DataError(f"{path.name} is not a complete {path.suffix} file", "save it again, or as CSV") from None
    return to_arrow(frame)[0]


def _needed(package: str, extra: str) -> Any:
    try:
        return import_module(package)
    except ImportError:
        raise DataError(
            f"{package} is needed to read this kind of file", f"python -m pip install 'shoal[{extra}]'"
        ) from None
