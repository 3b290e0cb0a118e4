"""The parts of an .xlsx file: its size before it is unpacked, and what it holds beside the cells that are read."""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from shoal.errors import DataError

# The sizes that reading must not exceed: in the archive's own directory, and as cells of a sheet.
PLAIN_BYTES, TIMES, MOST_BYTES = 2**26, 250, 2**32
MOST_CELLS = 50_000_000
CHUNK = 2**20

SHEET = re.compile(r"xl/worksheets/[^/]+\.xml")
EXPECTED = re.compile(
    r"\[Content_Types\]\.xml|_rels/\.rels|docProps/(app|core)\.xml|xl/(workbook|styles|sharedStrings|calcChain)\.xml"
    r"|xl/_rels/workbook\.xml\.rels|xl/theme/theme\d*\.xml|xl/worksheets/[^/]+\.xml"
)
# The texts of the two parts with properties, except those that programs write: times, versions, the names of sheets.
PROPERTIES = re.compile(r"<(?:\w+:)?(\w+)\b[^>]*>([^<]*[^<\s][^<]*)<")
OF_PROGRAMS = re.compile(r"openpyxl|pandas|shoal|XlsxWriter|Microsoft Excel|Apache POI|LibreOffice.*")
PLAIN_PROPERTIES = frozenset(
    [
        "created",
        "modified",
        "lastPrinted",
        "revision",
        "Application",
        "AppVersion",
        "DocSecurity",
        "ScaleCrop",
        "TotalTime",
        "SharedDoc",
        "HyperlinksChanged",
        "LinksUpToDate",
        "Template",
        "i4",
        "lpstr",
    ]
)
# Names of sheets that programs give: Sheet1, Tabelle1, Feuil1.
PLAIN_SHEET = re.compile(r"[^\W\d]+ ?\d*")
# Elements of a sheet that hold nothing, or the cells; whatever else is there is shown or kept, and is in no cell.
ELEMENTS = frozenset(
    b"worksheet sheetPr outlinePr pageSetUpPr tabColor dimension sheetViews sheetView pane selection sheetFormatPr cols"
    b" col sheetData row c v is t sheetCalcPr sheetProtection autoFilter sortState sortCondition mergeCells mergeCell"
    b" phoneticPr printOptions pageMargins pageSetup headerFooter rowBreaks colBreaks brk ignoredErrors ignoredError"
    b" hyperlinks dataValidations".split()
)
ELEMENTS_OF_TEXTS = frozenset((b"sst", b"si", b"t"))
_ELEMENT = re.compile(rb"<(?:\w+:)?(\w+|!--)")
_CELL_STYLE = re.compile(rb"<(?:\w+:)?c\b([^>]*?)(/?)>")
_PLACE, _STYLE = re.compile(rb'\br="([A-Z]{1,3})([0-9]+)"'), re.compile(rb'\bs="([0-9]+)"')
_ROW_LOOKS = re.compile(rb'<(?:\w+:)?row\b[^>]*?\b(?:hidden="(?:1|true)"|customFormat="|outlineLevel=")')
_ROW, _CELL = re.compile(rb"<(?:\w+:)?row[ />]"), re.compile(rb"<(?:\w+:)?c [^>]*?r=\"([A-Z]{1,3})[0-9]+\"")
_SHARED = re.compile(
    rb"<(?:\w+:)?c [^>]*?t=\"s\"[^>]*>\s*(?:<(?:\w+:)?f[^>]*>[^<]*</(?:\w+:)?f>)?<(?:\w+:)?v>([0-9]+)<"
)
_START = re.compile(rb"<(?:\w+:)?(?:row|c|si)[ />]")
_ITEM = re.compile(rb"<(?:\w+:)?si[ />]")


def require_modest(path: Path) -> None:
    """Reject an archive that unpacks to far more than it is, and a sheet with more cells than memory holds."""
    with _opened(path) as book:
        members = book.infolist()
        packed, plain = sum(m.compress_size for m in members), sum(m.file_size for m in members)
        if plain > MOST_BYTES or plain > PLAIN_BYTES + TIMES * packed:
            raise DataError(
                f"{path.name} unpacks to {plain / 2**20:,.0f} MB, {plain / max(packed, 1):,.0f} times its size: "
                "it is not read",
                "save the table as .csv or .parquet",
            )
        for member in members:
            if SHEET.fullmatch(member.filename):
                _require_few_cells(path, book, member)


def _require_few_cells(path: Path, book: zipfile.ZipFile, sheet: zipfile.ZipInfo) -> None:
    n_rows, widest = 0, 1
    for piece in _pieces(book, sheet):
        n_rows += len(_ROW.findall(piece))
        widest = max([widest, *map(_column, set(_CELL.findall(piece)))])
        if n_rows * widest > MOST_CELLS:
            raise DataError(
                f"{path.name}: a sheet has more than {MOST_CELLS:,} cells, empty ones included",
                "save the table as .csv or .parquet, and remove cells far from the table",
            )


def unread_parts(path: Path) -> Iterator[tuple[bool, str, int]]:
    """Yield what a workbook holds beside the cells of its first sheet: whether it may be data, what, how many."""
    with _opened(path) as book:
        names = book.namelist()
        first = _first_sheet(book)
        yield True, "further sheets", sum(bool(SHEET.fullmatch(name)) and name != first for name in names)
        own_rels = re.compile(r"xl/worksheets/_rels/[^/]+\.rels")
        others = [n for n in names if not EXPECTED.fullmatch(n) and not own_rels.fullmatch(n) and not n.endswith("/")]
        yield True, "other parts, such as comments, pictures or older data", len(others)
        yield True, "texts that no cell of the sheet shows", _unused_texts(book, first)
        elements = _elements(book, first, ELEMENTS)
        texts = _elements(book, "xl/sharedStrings.xml", ELEMENTS_OF_TEXTS)
        yield True, "formulas, lists, links, formatted words or notes of the sheet", elements + texts
        yield True, "cells or rows that look different from the others of their column", _looks(book, first)
        yield True, "pieces of other data in the archive", _pieces_of_archive(book)
        yield True, "names of cells", len(re.findall(r"<(?:\w+:)?definedName[ >]", _text(book, "xl/workbook.xml")))
        properties = "".join(_text(book, f"docProps/{part}.xml") for part in ("core", "app"))
        told = [
            text
            for name, text in PROPERTIES.findall(properties)
            if name not in PLAIN_PROPERTIES and not OF_PROGRAMS.fullmatch(text.strip())
        ]
        sheets = re.findall(r"<(?:\w+:)?sheet [^>]*?name=\"([^\"]*)\"", _text(book, "xl/workbook.xml"))
        named = sum(not PLAIN_SHEET.fullmatch(name) for name in sheets)
        what = "properties of the document, such as its author or the name of a sheet"
        yield False, what, len(told) + bool(book.comment) + named


def _first_sheet(book: zipfile.ZipFile) -> str:
    """Return the part of the first sheet, which its relation names."""
    sheets = re.search(r"<(?:\w+:)?sheet [^>]*?r:id=\"([^\"]+)\"", _text(book, "xl/workbook.xml"))
    rels = _text(book, "xl/_rels/workbook.xml.rels")
    for relation in re.findall(r"<(?:\w+:)?Relationship [^>]*>", rels):
        told = dict(re.findall(r"(\w+)=\"([^\"]*)\"", relation))
        if sheets is not None and told.get("Id") == sheets[1]:
            target = told.get("Target", "")
            return target.lstrip("/") if target.startswith("/") else f"xl/{target}"
    return "xl/worksheets/sheet1.xml"


def _unused_texts(book: zipfile.ZipFile, sheet: str) -> int:
    if "xl/sharedStrings.xml" not in book.namelist() or sheet not in book.namelist():
        return 0
    n = sum(len(_ITEM.findall(piece)) for piece in _pieces(book, book.getinfo("xl/sharedStrings.xml")))
    used: set[bytes] = set()
    for piece in _pieces(book, book.getinfo(sheet)):
        used.update(_SHARED.findall(piece))
    return max(0, n - len(used))


def _elements(book: zipfile.ZipFile, part: str, plain: frozenset[bytes]) -> int:
    """Count the elements of a part that are none of the plain ones, and comments."""
    if part not in book.namelist():
        return 0
    return sum(
        sum(name not in plain for name in _ELEMENT.findall(piece)) for piece in _pieces(book, book.getinfo(part))
    )


def _looks(book: zipfile.ZipFile, sheet: str) -> int:
    """Count the cells below the first row in a style that most of their column have not, and hidden or marked rows."""
    if sheet not in book.namelist():
        return 0
    styles: dict[bytes, Counter[tuple[bytes, bool]]] = {}
    n_rows = 0
    for piece in _pieces(book, book.getinfo(sheet)):
        n_rows += len(_ROW_LOOKS.findall(piece))
        for cell, empty in _CELL_STYLE.findall(piece):
            place, style = _PLACE.search(cell), _STYLE.search(cell)
            if place is not None and place[2] != b"1":
                styles.setdefault(place[1], Counter())[style[1] if style else b"0", bool(empty)] += 1
    n_cells = 0
    for column in styles.values():
        filled = {style: n for (style, empty), n in column.items() if not empty}
        usual = max(filled, key=lambda style: filled[style], default=b"0")
        n_cells += sum(n for (style, empty), n in column.items() if style != usual and not (empty and style == b"0"))
    return n_rows + n_cells


def _pieces_of_archive(book: zipfile.ZipFile) -> int:
    """Count what a zip archive can hold beside its files: bytes before them, comments, files that another one hides."""
    members = book.infolist()
    before = min((member.header_offset for member in members), default=0) > 0
    return before + sum(bool(member.comment) for member in members) + len(members) - len({m.filename for m in members})


def _pieces(book: zipfile.ZipFile, member: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield a part in pieces that end before a row, a cell or a text begins."""
    rest = b""
    with book.open(member) as part:
        while piece := part.read(CHUNK):
            piece = rest + piece
            end = max(
                (found.start() for found in _START.finditer(piece, max(0, len(piece) - CHUNK))), default=len(piece)
            )
            yield piece[:end]
            rest = piece[end:]
    yield rest


def _text(book: zipfile.ZipFile, name: str) -> str:
    return book.read(name).decode("utf-8", "replace") if name in book.namelist() else ""


def _column(letters: bytes) -> int:
    """Return the number of a column that a sheet calls A, B, …, AA."""
    n = 0
    for letter in letters:
        n = 26 * n + letter - 64
    return n


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile):
        raise DataError(f"{path.name} is not a complete Excel file", "save it again as .xlsx, or as CSV") from None
