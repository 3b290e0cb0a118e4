"""What a workbook shows or keeps beside the cells that are read: each of it tells somebody apart or names them."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import openpyxl
import pandas as pd
import pytest
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.styles import Font, PatternFill

from shoal.engines.formats.unread_content import unread_content

PEOPLE = [("age", "town"), *[(31, "Bern"), (31, "Basel")] * 3]


def book(folder: Path, change: Callable[[openpyxl.Workbook], None] = lambda _: None) -> Path:
    made = openpyxl.Workbook()
    for row in PEOPLE:
        made.active.append(row)
    change(made)
    made.save(folder / "people.xlsx")
    return folder / "people.xlsx"


def with_part(path: Path, part: str, old: str, new: str) -> Path:
    """Change a part of a workbook as no program would."""
    with zipfile.ZipFile(path) as packed:
        parts = {name: packed.read(name).decode() for name in packed.namelist()}
    assert old in parts[part]
    with zipfile.ZipFile(path, "w") as packed:
        for name, content in parts.items():
            packed.writestr(name, content.replace(old, new) if name == part else content)
    return path


def test_plain_workbooks_have_nothing_beside_their_table(tmp_path: Path) -> None:
    assert unread_content(book(tmp_path)) == ()
    pd.DataFrame(PEOPLE[1:], columns=PEOPLE[0]).to_excel(tmp_path / "of_pandas.xlsx", index=False)
    assert unread_content(tmp_path / "of_pandas.xlsx") == ()
    pd.DataFrame([(31, None), (None, "Bern")] * 3).to_excel(tmp_path / "blanks.xlsx", index=False)
    assert unread_content(tmp_path / "blanks.xlsx") == ()


def filled(made: openpyxl.Workbook) -> None:
    made.active["A3"].fill = PatternFill("solid", fgColor="FFFF00")


def bold(made: openpyxl.Workbook) -> None:
    made.active["B4"].font = Font(bold=True)


def number_format(made: openpyxl.Workbook) -> None:
    made.active["A3"].number_format = "0.00"


def blank_filled(made: openpyxl.Workbook) -> None:
    made.active["A3"].value = None
    made.active["A3"].fill = PatternFill("solid", fgColor="FFFF00")


def hidden_row(made: openpyxl.Workbook) -> None:
    made.active.row_dimensions[3].hidden = True


def high_row(made: openpyxl.Workbook) -> None:
    made.active.row_dimensions[3].height = 44


def blank_text(made: openpyxl.Workbook) -> None:
    made.active["A2"], made.active["A3"] = "", None


def words(made: openpyxl.Workbook) -> None:
    made.active["B2"] = CellRichText("Be", TextBlock(InlineFont(b=True), "rn"))


@pytest.mark.parametrize("change", [filled, bold, number_format, blank_filled, hidden_row, high_row, blank_text, words])
def test_a_cell_or_row_that_looks_different_is_a_finding(
    change: Callable[[openpyxl.Workbook], None], tmp_path: Path
) -> None:
    (found,) = unread_content(book(tmp_path, change))
    assert found.about_people


def test_a_column_in_one_style_is_none(tmp_path: Path) -> None:
    def styled(made: openpyxl.Workbook) -> None:
        for row in range(2, len(PEOPLE) + 1):
            made.active[f"A{row}"].number_format = "0.00"
        made.active["A1"].font = Font(bold=True)

    assert unread_content(book(tmp_path, styled)) == ()


@pytest.mark.parametrize(
    ("part", "old", "new"),
    [
        ("xl/worksheets/sheet1.xml", "</worksheet>", "<!-- Anna --></worksheet>"),
        ("xl/worksheets/sheet1.xml", "</worksheet>", "<extLst><ext>Anna</ext></extLst></worksheet>"),
        ("xl/worksheets/sheet1.xml", "</worksheet>", "<customProperties/></worksheet>"),
        ("xl/worksheets/sheet1.xml", "</is>", "<rPh><t>Anna</t></rPh></is>"),
        ("docProps/core.xml", "</cp:coreProperties>", "<dc:identifier>Anna</dc:identifier></cp:coreProperties>"),
        ("docProps/app.xml", "</Properties>", "<HyperlinkBase>Anna</HyperlinkBase></Properties>"),
        ("xl/workbook.xml", 'name="Sheet"', 'name="Anna Smith"'),
    ],
)
def test_content_in_parts_that_are_read_otherwise(part: str, old: str, new: str, tmp_path: Path) -> None:
    (found,) = unread_content(with_part(book(tmp_path), part, old, new))
    assert "Anna" not in found.fact


def test_a_reading_aid_beside_shared_texts(tmp_path: Path) -> None:
    path = book(tmp_path)
    with zipfile.ZipFile(path, "a") as packed:
        packed.writestr("xl/sharedStrings.xml", "<sst><si><t>a</t><rPh><t>Anna</t></rPh></si></sst>")
    assert any("formatted words or notes" in found.fact for found in unread_content(path))


def test_an_archive_may_hold_more_than_its_files(tmp_path: Path) -> None:
    path = book(tmp_path)
    plain = path.read_bytes()
    path.write_bytes(b"Anna Smith" + plain)
    assert len(unread_content(path)) == 1
    path.write_bytes(plain + b"Anna Smith")
    assert len(unread_content(path)) == 1
    path.write_bytes(plain)
    with zipfile.ZipFile(path, "a") as packed, pytest.warns(UserWarning, match="Duplicate name"):
        packed.writestr("xl/workbook.xml", packed.read("xl/workbook.xml"))
    assert len(unread_content(path)) == 1


def test_bytes_between_the_files_of_an_archive(tmp_path: Path) -> None:
    path = book(tmp_path)
    with zipfile.ZipFile(path, "a") as packed:
        packed.fp.seek(packed.start_dir)
        packed.fp.write(b"Anna Smith, 1 Main Street, 02138")
        packed.start_dir = packed.fp.tell()
        packed._didModify = True
    assert len(unread_content(path)) == 1
