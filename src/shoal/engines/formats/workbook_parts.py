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
DESCRIPTORS = (0, 12, 16, 20, 24)  # bytes after a file of an archive that repeat its size and checksum

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
_CELL_NAME, _STYLE = re.compile(rb'\br="([A-Z]{1,3})([0-9]+)"'), re.compile(rb'\bs="([0-9]+)"')
_TYPE = re.compile(rb'\bt="')
_ROW_TAG = re.compile(rb"<(?:\w+:)?row\b([^>]*)>")
_ROW_LOOKS = re.compile(
    rb'\b(?:hidden="(?:1|true)"|customFormat="|outlineLevel="|collapsed="|thickTop="|thickBot="|ph=")'
)
_OWN_HEIGHT, _HEIGHT = re.compile(rb'\bcustomHeight="(?:1|true)"'), re.compile(rb'\bht="([^"]*)"')
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
        unknown_parts = [
            n for n in names if not EXPECTED.fullmatch(n) and not own_rels.fullmatch(n) and not n.endswith("/")
        ]
        yield True, "other parts, such as comments, pictures or older data", len(unknown_parts)
        yield True, "texts that no cell of the sheet shows", _unused_texts(book, first)
        elements = _elements(book, first, ELEMENTS)
        texts = _elements(book, "xl/sharedStrings.xml", ELEMENTS_OF_TEXTS)
        yield True, "formulas, lists, links, formatted words or notes of the sheet", elements + texts
        yield True, "cells or rows that look different from the others of their column", _looks(book, first)
        yield True, "pieces of other data in the archive", _pieces_of_archive(book)
        yield True, "names of cells", len(re.findall(r"<(?:\w+:)?definedName[ >]", _text(book, "xl/workbook.xml")))
        properties = "".join(_text(book, f"docProps/{part}.xml") for part in ("core", "app"))
        properties_of_people = [
            text
            for name, text in PROPERTIES.findall(properties)
            if name not in PLAIN_PROPERTIES and not OF_PROGRAMS.fullmatch(text.strip())
        ]
        sheets = re.findall(r"<(?:\w+:)?sheet [^>]*?name=\"([^\"]*)\"", _text(book, "xl/workbook.xml"))
        named = sum(not PLAIN_SHEET.fullmatch(name) for name in sheets)
        content = "properties of the document, such as its author or the name of a sheet"
        yield False, content, len(properties_of_people) + bool(book.comment) + named


def _first_sheet(book: zipfile.ZipFile) -> str:
    """Return the part of the first sheet, which its relation names."""
    sheets = re.search(r"<(?:\w+:)?sheet [^>]*?r:id=\"([^\"]+)\"", _text(book, "xl/workbook.xml"))
    rels = _text(book, "xl/_rels/workbook.xml.rels")
    for relation in re.findall(r"<(?:\w+:)?Relationship [^>]*>", rels):
        attributes = dict(re.findall(r"(\w+)=\"([^\"]*)\"", relation))
        if sheets is not None and attributes.get("Id") == sheets[1]:
            target = attributes.get("Target", "")
            return target.lstrip("/") if target.startswith("/") else f"xl/{target}"
    return "xl/worksheets/sheet1.xml"


def _unused_texts(book: zipfile.ZipFile, sheet: str) -> int:
    if "xl/sharedStrings.xml" not in book.namelist() or sheet not in book.namelist():
        return 0
    n = sum(len(_ITEM.findall(piece)) for piece in _pieces(book, book.getinfo("xl/sharedStrings.xml")))
    texts_of_cells: set[bytes] = set()
    for piece in _pieces(book, book.getinfo(sheet)):
        texts_of_cells.update(_SHARED.findall(piece))
    return max(0, n - len(texts_of_cells))


def _elements(book: zipfile.ZipFile, part: str, plain: frozenset[bytes]) -> int:
    """Count the elements of a part that are none of the plain ones, and comments."""
    if part not in book.namelist():
        return 0
    return sum(
        sum(name not in plain for name in _ELEMENT.findall(piece)) for piece in _pieces(book, book.getinfo(part))
    )


def _looks(book: zipfile.ZipFile, sheet: str) -> int:
    """Count the cells below the first row in a style that most of their column have not, and hidden or marked rows.

    Of the blank cells of a column, some may be stored as an empty text and others not at all.
    """
    if sheet not in book.namelist():
        return 0
    styles: dict[bytes, Counter[tuple[bytes, bool]]] = {}
    typed_blanks: Counter[bytes] = Counter()
    heights: Counter[bytes] = Counter()
    n_different = 0
    for piece in _pieces(book, book.getinfo(sheet)):
        for row in _ROW_TAG.findall(piece):
            n_different += bool(_ROW_LOOKS.search(row))
            height = _HEIGHT.search(row) if _OWN_HEIGHT.search(row) else None
            heights[b"" if height is None else height[1]] += b'r="1"' not in row.split()
        for cell, empty in _CELL_STYLE.findall(piece):
            name, style = _CELL_NAME.search(cell), _STYLE.search(cell)
            if name is not None and name[2] != b"1":
                styles.setdefault(name[1], Counter())[style[1] if style else b"0", bool(empty)] += 1
                typed_blanks[name[1]] += bool(empty and _TYPE.search(cell))
    n_rows = heights.total()
    n_different += n_rows - max(heights.values(), default=0)
    for letters, column in styles.items():
        filled = {style: n for (style, empty), n in column.items() if not empty}
        usual = max(filled, key=lambda style: filled[style], default=b"0")
        n_different += sum(
            n for (style, empty), n in column.items() if style != usual and not (empty and style == b"0")
        )
        n_blanks = n_rows - sum(filled.values())
        n_different += min(typed_blanks[letters], n_blanks - typed_blanks[letters])
    return n_different


def _pieces_of_archive(book: zipfile.ZipFile) -> int:
    """Count what a zip archive can hold beside its files: other bytes, comments, files that another one hides."""
    members = book.infolist()
    hidden = len(members) - len({member.filename for member in members})
    return _n_gaps(book) + hidden + sum(bool(member.comment) for member in members)


def _n_gaps(book: zipfile.ZipFile) -> int:
    """Count the places with bytes before, between and after the files of an archive and its directory."""
    if book.fp is None:
        return 0
    n_gaps = end = 0
    for member in sorted(book.infolist(), key=lambda member: member.header_offset):
        n_gaps += member.header_offset - end not in (DESCRIPTORS if end else (0,))
        book.fp.seek(member.header_offset + 26)
        lengths = book.fp.read(4)
        n_name, n_extra = int.from_bytes(lengths[:2], "little"), int.from_bytes(lengths[2:], "little")
        end = member.header_offset + 30 + n_name + n_extra + member.compress_size
    n_gaps += book.start_dir - end not in DESCRIPTORS
    size = book.fp.seek(0, 2)
    book.fp.seek(max(0, size - 2**17))
    tail = book.fp.read()
    return n_gaps + (len(tail) - tail.rfind(b"PK\5\6") > 22 + len(book.comment))


def _pieces(book: zipfile.ZipFile, member: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield a part in pieces that end before a row, a cell or a text begins."""
    rest = b""
    with book.open(member) as part:
        while piece := part.read(CHUNK):
            piece = rest + piece
            end = max(
                (start.start() for start in _START.finditer(piece, max(0, len(piece) - CHUNK))), default=len(piece)
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
