"""Excel workbooks of one sheet, written as a stream: no temporary files, no document properties, no time of writing.

The parts are the fewest that Office Open XML requires (ECMA-376, parts 1 and 2). Texts are stored in their cells and as
texts, even if they look like a formula or an error; the same table gives the same bytes.
"""

from __future__ import annotations

import datetime
import re
import zipfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pyarrow as pa

_XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_FIXED_PARTS = {
    "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/>'
    f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{_TYPE}.worksheet+xml"/>'
    f'<Override PartName="/xl/styles.xml" ContentType="{_TYPE}.styles+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
    f'<Relationship Id="rId1" Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}">'
    '<sheets><sheet name="release" sheetId="1" r:id="rId1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
    f'<Relationship Id="rId1" Type="{_OFFICE}/worksheet" Target="worksheets/sheet1.xml"/>'
    f'<Relationship Id="rId2" Type="{_OFFICE}/styles" Target="styles.xml"/></Relationships>',
    # The four styles of cells: general, date, date with time, time of day.
    "xl/styles.xml": f'<styleSheet xmlns="{_MAIN}"><numFmts count="3">'
    '<numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd"/>'
    '<numFmt numFmtId="165" formatCode="yyyy\\-mm\\-dd\\ hh:mm:ss"/><numFmt numFmtId="166" formatCode="hh:mm:ss"/>'
    '</numFmts><fonts count="1"><font/></fonts><fills count="2"><fill><patternFill patternType="none"/></fill>'
    '<fill><patternFill patternType="gray125"/></fill>'
    '</fills><borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs><cellXfs count="4">'
    '<xf numFmtId="0"/><xf numFmtId="164" applyNumberFormat="1"/><xf numFmtId="165" applyNumberFormat="1"/>'
    '<xf numFmtId="166" applyNumberFormat="1"/></cellXfs>'
    '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>',
}
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # the first date that an archive can have
_FIRST_DAY = datetime.datetime(1899, 12, 30)
# Characters that XML cannot hold, carriage returns (which its readers turn into line feeds), and texts that would be
# read as an escaped one of these.
_ESCAPED = re.compile(r"[\x00-\x08\x0b-\x1f\ufffe\uffff\ud800-\udfff]|_(?=x[0-9A-Fa-f]{4}_)")


def write_workbook(table: pa.Table, path: Path) -> None:
    """Write a table as the only sheet of a workbook; the first row has the names of the columns."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        for name, content in _FIXED_PARTS.items():
            book.writestr(_part(name), _XML + content)
        with book.open(_part("xl/worksheets/sheet1.xml"), "w", force_zip64=True) as sheet:
            sheet.write(f'{_XML}<worksheet xmlns="{_MAIN}"><sheetData>'.encode())
            sheet.write(_row([_text_cell(name) for name in table.column_names]))
            for batch in table.to_batches(max_chunksize=2**12):
                columns = [map(_cell, column.to_pylist()) for column in batch.columns]
                sheet.write(b"".join(map(_row, zip(*columns, strict=True))))
            sheet.write(b"</sheetData></worksheet>")


def _part(name: str) -> zipfile.ZipInfo:
    part = zipfile.ZipInfo(name, _EARLIEST)
    part.compress_type = zipfile.ZIP_DEFLATED
    return part


def _row(cells: Any) -> bytes:
    return f"<row>{''.join(cells)}</row>".encode()


def _text_cell(text: str) -> str:
    safe = escape(_ESCAPED.sub(lambda match: f"_x{ord(match[0]):04X}_", text))
    return f'<c t="inlineStr"><is><t xml:space="preserve">{safe}</t></is></c>'


def _cell(value: Any) -> str:
    write = _WRITERS.get(type(value))
    if write is None:
        raise TypeError(f"a workbook has no cells for {type(value).__name__}")
    return write(value)


def _number(value: Any) -> str:
    return f"<c><v>{value!r}</v></c>"


def _whole(value: int) -> str:
    # As Excel keeps it, with 53 bits: what it would change must differ when the file is read back.
    return _number(value if abs(value) <= 2**53 else float(value))


def _real(value: float) -> str:
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError("a workbook holds finite numbers only")
    return _number(value)


def _days(moment: datetime.datetime) -> str:
    """Return the days since Excel's first day, exact to the microsecond."""
    if moment.tzinfo is not None:
        raise ValueError("a workbook knows no time zones")
    since = moment - _FIRST_DAY
    return repr(since.days + (since.seconds + since.microseconds / 1e6) / 86_400)


_WRITERS: dict[type, Callable[[Any], str]] = {
    type(None): lambda _: "<c/>",
    str: _text_cell,
    bool: lambda value: f'<c t="b"><v>{int(value)}</v></c>',
    int: _whole,
    float: _real,
    Decimal: lambda value: f"<c><v>{value}</v></c>",
    datetime.date: lambda day: f'<c s="1"><v>{(day - _FIRST_DAY.date()).days}</v></c>',
    datetime.datetime: lambda moment: f'<c s="2"><v>{_days(moment)}</v></c>',
    datetime.time: lambda time: f'<c s="3"><v>{_days(datetime.datetime.combine(_FIRST_DAY, time))}</v></c>',
}
