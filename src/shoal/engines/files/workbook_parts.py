"""The parts of an .xlsx file: its size before it is unpacked, and what it holds beside the cells that are read."""

from __future__ import annotations

import re
import zipfile
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
PROPERTIES = re.compile(
    r"<(?:[a-z]+:)?(creator|lastModifiedBy|title|subject|description|keywords|category|Company|Manager)\b[^>]*>([^<]+)<"
)
OF_PROGRAMS = re.compile(r"openpyxl|pandas|shoal|XlsxWriter|Microsoft Excel|Apache POI")
# Elements of a sheet whose content is shown or kept, and is in no cell.
ELEMENTS = re.compile(
    rb"<(?:\w+:)?(dataValidation|conditionalFormatting|hyperlink|oddHeader|oddFooter|evenHeader|evenFooter|firstHeader"
    rb"|firstFooter|legacyDrawing|drawing|oleObject|control|webPublishItem|protectedRange|scenario|rPh|f)[ />]"
)
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
        yield True, "formulas, lists, links or notes of the sheet", _elements(book, first)
        yield True, "names of cells", len(re.findall(r"<(?:\w+:)?definedName[ >]", _text(book, "xl/workbook.xml")))
        properties = "".join(_text(book, f"docProps/{part}.xml") for part in ("core", "app"))
        told = [text for _, text in PROPERTIES.findall(properties) if not OF_PROGRAMS.fullmatch(text.strip())]
        yield False, "properties of the document, such as its author", len(told) + bool(book.comment)


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


def _elements(book: zipfile.ZipFile, sheet: str) -> int:
    if sheet not in book.namelist():
        return 0
    return sum(len(ELEMENTS.findall(piece)) for piece in _pieces(book, book.getinfo(sheet)))


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
