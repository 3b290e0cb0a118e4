"""A first line that may be a record is asked about: as names, it would show a person and be left out of counts."""

import random
from pathlib import Path

import openpyxl
import pytest

from shoal.engines.formats.table_files import Source, read_table_file
from shoal.errors import DataError

FIRST = ("Anna", "Bert", "Carla", "Dora", "Emil", "Frida", "Georg", "Hanna", "Igor", "Jana", "Karl", "Lena")
LAST = ("Smith", "Jones", "Meyer", "Rossi", "Silva", "Novak", "Dubois", "Larsen", "Kowalski", "Moretti")
TOWNS = ("Boston", "London", "Zurich", "Lyon", "Porto", "Milan", "Oslo", "Wien", "Brno", "Gdynia", "Bergen", "Graz")
COLUMNS = {
    "first_name": lambda draw: draw.choice(FIRST),
    "name": lambda draw: f"{draw.choice(FIRST)} {draw.choice(LAST)}",
    "town": lambda draw: draw.choice(TOWNS),
    "sex": lambda draw: draw.choice("fm"),
    "age": lambda draw: str(draw.randint(18, 90)),
    "zip": lambda draw: f"{draw.randint(1000, 99999):05}",
    "birth": lambda draw: f"19{draw.randint(10, 99)}-0{draw.randint(1, 9)}-1{draw.randint(0, 9)}",
    "income": lambda draw: f"{draw.uniform(900, 9000):.2f}",
    "code": lambda draw: f"{draw.choice('ABC')}{draw.randint(10, 99)}.{draw.randint(0, 9)}",
    "phone": lambda draw: f"+41 {draw.randint(10, 99)} {draw.randint(100, 999)}",
    "mail": lambda draw: f"{draw.choice(FIRST).lower()}@example.org",
    "answer": lambda draw: draw.choice(("yes", "no", "")),
}


def table_of(seed: int) -> tuple[list[str], list[list[str]]]:
    """Return the names and the records of an invented table."""
    draw = random.Random(seed)
    names = draw.sample(sorted(COLUMNS), draw.randint(1, 6))
    return names, [[COLUMNS[name](draw) for name in names] for _ in range(draw.randint(5, 60))]


def read(folder: Path, rows: list[list[str]], suffix: str, header: bool | None = None) -> Source:
    path = folder / f"people{suffix}"
    if suffix == ".csv":
        path.write_text("\n".join(",".join(row) for row in rows) + "\n")
    else:
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append([int(cell) if cell.isdecimal() and cell[0] != "0" else cell for cell in row])
        book.save(path)
    return read_table_file(path, header=header)


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_none_of_a_hundred_tables_without_a_header_is_read_without_a_question(suffix: str, tmp_path: Path) -> None:
    in_vain = 0
    for seed in range(100):
        names, records = table_of(seed)
        with pytest.raises(DataError, match="is the first line a line of column names") as raised:
            read(tmp_path, records, suffix)
        assert not any(len(cell) > 2 and cell in str(raised.value) for cell in records[0])
        try:
            assert read(tmp_path, [names, *records], suffix).table.column_names == names
        except DataError:
            in_vain += 1
    assert in_vain <= 2


def test_a_column_may_be_called_like_one_of_its_values(tmp_path: Path) -> None:
    records = [[str(20 + i), str(1000 * i), str(i % 3), ("married", "never married")[i % 2]] for i in range(20)]
    names = ["age", "earnings", "kids", "married"]
    assert read(tmp_path, [names, *records], ".csv").table.column_names == names
    with pytest.raises(DataError, match="In 1 of 2 columns"):
        read(tmp_path, [names[2:], *(record[2:] for record in records)], ".csv")


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_the_answer_decides(suffix: str, tmp_path: Path) -> None:
    _, records = table_of(1)
    table = read(tmp_path, records, suffix, header=False).table
    assert table.column_names == [f"column{j + 1}" for j in range(len(records[0]))]
    assert len(table) == len(records)
    assert read(tmp_path, [["7", "8"], ["7", "9"]], suffix, header=True).table.column_names == ["7", "8"]


@pytest.mark.parametrize(
    ("head", "values"),
    [
        ("1/86", ["2/86", "3/86", "10/86", "11/86"]),
        ("ADVISOR 32/60", ["AMDAHL 470V/7", "C.R.D. 68/10-80", "IBM 370/115"]),
        ("Argentina", ["Australia", "Austria", "Bangladesh", "Belgium"]),
        ("gout", ["flu", "cold", "asthma"]),
        ("PSPTPZ", ["QAWXRT", "LKVNEA"]),
        ("gout", ["flu"]),
    ],
)
def test_first_lines_in_which_nothing_tells_that_they_are_names(head: str, values: list[str], tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is the first line"):
        read(tmp_path, [[head], *([value] for value in values)], ".csv")


@pytest.mark.parametrize(
    ("head", "values"),
    [
        ("state", ["Ohio", "Iowa", "Utah"]),
        ("Patient", ["Anna Smith", "Bert Jones", "Cara Doe"]),
        ("answer", ["yes", "no"] * 10),
        ("NAME", ["Anna", "Bert", "Cara"]),
        ("address1", ["12 Main St", "4 Elm St", "77 High St"]),
        ("2020", ["yes", "no", "yes"]),
    ],
)
def test_first_lines_that_are_names(head: str, values: list[str], tmp_path: Path) -> None:
    assert read(tmp_path, [[head], *([value] for value in values)], ".csv").table.column_names == [head]
