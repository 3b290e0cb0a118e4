"""Is what `shoal check` judges what is published? Files of every type, compared with a count of what they store.

    python benchmarks/published_bytes.py [--rounds N] [--seed N] [--json FILE]

Each file is written by pandas, pyarrow, openpyxl or pyreadstat, most with something a reader easily overlooks. What
the file stores is counted by these packages alone. A verdict is *wrongly safe* where shoal calls the table ready for
publication although fewer than five people share what the file stores of them, or although the file holds more than
the table. Plain files are there so that refusing everything does not pass.
"""

from __future__ import annotations

import argparse
import datetime
import decimal
import gzip
import json
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import openpyxl.comments
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat

import shoal
from shoal.engines.opening import opened

K = 5
QUASI = ("age", "zip")
DISEASES = ("flu", "asthma", "cold")
MISSING = ["refused", "not asked", "n/a", "unknown", "-"]


@dataclass(frozen=True)
class MadeFile:
    """A file, and what is true about it."""

    path: Path
    stored_k: int  # the fewest records with the same stored cells
    holds_extra: bool = False  # whether the file holds more than the table
    policy: dict[str, Any] | None = None

    @property
    def is_safe(self) -> bool:
        """Return whether the file may be called safe."""
        return self.stored_k >= K and not self.holds_extra


Draw = random.Random
Variant = Callable[[Path, Draw], MadeFile]
VARIANTS: dict[str, Variant] = {}


def variant(make: Variant) -> Variant:
    """Register a kind of file by the name of its function."""
    VARIANTS[make.__name__] = make
    return make


def policy(columns: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    """Return the policy of a file: five people with the same cells, and two diseases among them."""
    return {
        "columns": {name: {"role": "quasi"} for name in QUASI} | {"disease": {"role": "sensitive"}} | (columns or {}),
        "require": [{"model": "k-anonymity", "k": K}, {"model": "distinct-l-diversity", "l": 2}],
    } | options


def people(draw: Draw, ages: list[Any] | None = None, zips: list[Any] | None = None) -> dict[str, list[Any]]:
    """Invent people: every combination of an age and a zip code occurs at least five times, with two diseases."""
    ages = ages or draw.sample(range(20, 90), draw.randint(2, 4))
    zips = zips or [f"{z:05}" for z in draw.sample(range(100, 99_999), 2)]
    rows = []
    for age in ages:
        for code in zips:
            n = draw.randint(6, 9)
            rows += [(age, code, DISEASES[i % 3]) for i in range(n)]
    draw.shuffle(rows)
    return {name: [row[j] for row in rows] for j, name in enumerate((*QUASI, "disease"))}


def smallest(*columns: list[Any]) -> int:
    """Count the fewest records with the same cells."""
    return min(Counter(zip(*columns, strict=True)).values())


def bits(value: Any) -> Any:
    """Return a cell so that only what is stored alike is equal."""
    if isinstance(value, float | np.floating):
        return type(value).__name__, np.asarray(value).tobytes()
    return type(value).__name__, str(value)


# ── CSV ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def of_csv(path: Path, fields: dict[str, Any] | None = None, *, holds_extra: bool = False, **options: Any) -> MadeFile:
    """Count a CSV file as pandas reads it, with every cell as text."""
    frame = pd.read_csv(path, dtype=str, keep_default_na=False, **options)
    return MadeFile(path, smallest(*(list(frame[name]) for name in QUASI)), holds_extra, fields or policy())


def csv_of(table: dict[str, list[Any]], separator: str = ",", end: str = "\n", names: bool = True) -> str:
    """Return the text of a file."""
    lines = [separator.join(table)] if names else []
    lines += [separator.join(map(str, row)) for row in zip(*table.values(), strict=True)]
    return end.join(lines) + end


@variant
def csv_plain(folder: Path, draw: Draw) -> MadeFile:
    path = folder / draw.choice(["t.csv", "t.txt"])
    separator = draw.choice(",;|")
    path.write_text(csv_of(people(draw), separator, draw.choice(["\n", "\r\n"])), newline="")
    return of_csv(path, sep=separator)


@variant
def csv_marked(folder: Path, draw: Draw) -> MadeFile:
    path = folder / "t.tsv"
    encoding = draw.choice(["utf-8-sig", "utf-16", "utf-8"])
    path.write_text(csv_of(people(draw), "\t"), encoding=encoding)
    return of_csv(path, sep="\t", encoding=encoding)


@variant
def csv_one_apart(folder: Path, draw: Draw) -> MadeFile:
    table, path = people(draw), folder / "t.csv"
    i = draw.randrange(len(table["age"]))
    table["zip"][i] = draw.choice(["{} ", " {}", "{}\u200b", "{}.0", "+{}", "{}\u00a0"]).format(table["zip"][i])
    path.write_text(csv_of(table), encoding="utf-8")
    return of_csv(path)


@variant
def csv_wide_digits(folder: Path, draw: Draw) -> MadeFile:
    table, path = people(draw), folder / "t.csv"
    i = draw.randrange(len(table["age"]))
    table["age"][i] = str(table["age"][i]).translate({48 + d: 0xFF10 + d for d in range(10)})
    path.write_text(csv_of(table), encoding="utf-8")
    return of_csv(path)


@variant
def csv_kinds_of_missing(folder: Path, draw: Draw) -> MadeFile:
    table, path = people(draw), folder / "t.csv"
    for j, i in enumerate(draw.sample(range(len(table["age"])), 5)):
        table["age"][i] = MISSING[j]
        table["zip"][i] = table["zip"][0]
    path.write_text(csv_of(table))
    return of_csv(path, policy(missing=MISSING))


@variant
def csv_spaces_around_missing(folder: Path, draw: Draw) -> MadeFile:
    table, path = people(draw), folder / "t.csv"
    for j, i in enumerate(draw.sample(range(len(table["age"])), 5)):
        table["age"][i] = " " * j + "n/a"
        table["zip"][i] = table["zip"][0]
    path.write_text(csv_of(table))
    return of_csv(path, policy(missing=MISSING))


@variant
def csv_one_missing_spelling(folder: Path, draw: Draw) -> MadeFile:
    path = folder / "t.csv"
    path.write_text(csv_of(people(draw, ages=["31", "n/a"])))
    return of_csv(path, policy(missing=MISSING))


@variant
def csv_marks_of_numbers(folder: Path, draw: Draw) -> MadeFile:
    table, path = people(draw, ages=["1.234,5", "987,5"]), folder / "t.csv"
    for i in draw.sample(range(len(table["age"])), 2):
        table["age"][i] = table["age"][i].replace("1.234", "1234")
    path.write_text(csv_of(table, ";"))
    number = {"age": {"role": "quasi", "decimal": ",", "thousands": "."}}
    return of_csv(path, policy(number), sep=";")


@variant
def csv_without_header(folder: Path, draw: Draw) -> MadeFile:
    path = folder / "t.csv"
    table = people(draw)
    path.write_text(csv_of(table, names=False))
    first = [str(table[name][0]) for name in table]
    roles = [{"role": "quasi"}, {"role": "quasi"}, {"role": "sensitive"}]
    policy_fields = policy() | {"columns": dict(zip(first, roles, strict=True))}
    return MadeFile(path, 0, True, policy_fields)  # the first person is the line of names


@variant
def csv_empty_and_null(folder: Path, draw: Draw) -> MadeFile:
    table, path = people(draw, zips=["", "02138"]), folder / "t.csv"
    path.write_text(csv_of(table))
    return of_csv(path)


@variant
def csv_gzip(folder: Path, draw: Draw) -> MadeFile:
    path, name = folder / "t.csv.gz", draw.choice(["", "Anna Smith.csv"])
    with path.open("wb") as raw, gzip.GzipFile(name, "wb", fileobj=raw) as file:
        file.write(csv_of(people(draw)).encode())
    return of_csv(path, holds_extra=bool(name))


# ── Parquet ──────────────────────────────────────────────────────────────────────────────────────────────────────


def of_parquet(path: Path, fields: dict[str, Any] | None = None, *, holds_extra: bool = False) -> MadeFile:
    """Count a Parquet file as pyarrow reads it."""
    table = pq.read_table(path)
    columns = []
    for name in QUASI:
        cells = table[name]
        if pa.types.is_timestamp(cells.type):
            cells = cells.cast(pa.int64())
        columns.append([bits(cell) for cell in cells.to_pylist()])
    return MadeFile(path, smallest(*columns), holds_extra, fields or policy())


def parquet_of(folder: Path, table: dict[str, Any], name: str = "t.parquet") -> Path:
    """Write a table with pyarrow."""
    pq.write_table(pa.table(table), folder / name)
    return folder / name


@variant
def parquet_plain(folder: Path, draw: Draw) -> MadeFile:
    kind = draw.choice([pa.int8(), pa.int64(), pa.float32(), pa.string()])
    table = people(draw)
    ages = [str(age) for age in table["age"]] if kind == pa.string() else table["age"]
    return of_parquet(parquet_of(folder, table | {"age": pa.array(ages, kind)}))


@variant
def parquet_pandas(folder: Path, draw: Draw) -> MadeFile:
    path = folder / "t.parquet"
    pd.DataFrame(people(draw)).to_parquet(path, index=False)
    return of_parquet(path)


@variant
def parquet_nan_among_nulls(folder: Path, draw: Draw) -> MadeFile:
    table = people(draw, ages=[None, 31.0])
    i = table["age"].index(None)
    table["age"][i] = float("nan")
    kind = draw.choice([pa.float32(), pa.float64()])
    return of_parquet(parquet_of(folder, table | {"age": pa.array(table["age"], kind)}))


@variant
def parquet_kinds_of_nan(folder: Path, draw: Draw) -> MadeFile:
    """R marks a missing number by a NaN of its own."""
    table = people(draw, ages=[0, 31])
    kind, nan = draw.choice([(np.uint64, 0x7FF8000000000000), (np.uint32, 0x7FC00000)])
    ages = np.array([nan if age == 0 else 0 for age in table["age"]], kind)
    ages[table["age"].index(0)] += 1954 - 1800
    numbers = ages.view(np.float64 if kind is np.uint64 else np.float32)
    return of_parquet(parquet_of(folder, table | {"age": pa.array(numbers, from_pandas=False)}))


@variant
def parquet_negative_zero(folder: Path, draw: Draw) -> MadeFile:
    table = people(draw, ages=[0.0, 31.0])
    table["age"][table["age"].index(0.0)] = -0.0
    return of_parquet(parquet_of(folder, table | {"age": pa.array(table["age"], pa.float64())}))


@variant
def parquet_nanoseconds(folder: Path, draw: Draw) -> MadeFile:
    table = people(draw, ages=[10**18, 2 * 10**18])
    table["age"][0] += draw.randint(1, 999)
    zone = draw.choice([None, "UTC"])
    return of_parquet(parquet_of(folder, table | {"age": pa.array(table["age"], pa.timestamp("ns", zone))}))


@variant
def parquet_unused_category(folder: Path, draw: Draw) -> MadeFile:
    table = people(draw)
    name = draw.choice(["zip", "disease"])
    listed = [*sorted(set(table[name])), "Anna Smith"]
    codes = pa.array([listed.index(text) for text in table[name]], pa.int32())
    return of_parquet(
        parquet_of(folder, table | {name: pa.DictionaryArray.from_arrays(codes, pa.array(listed))}), holds_extra=True
    )


@variant
def parquet_metadata(folder: Path, draw: Draw) -> MadeFile:
    table = pa.table(people(draw))
    if draw.random() < 0.5:
        table = table.replace_schema_metadata({"source": "Anna Smith"})
    else:
        fields = [field.with_metadata({"note": "Anna Smith"}) for field in table.schema]
        table = table.cast(pa.schema(fields))
    pq.write_table(table, folder / "t.parquet")
    return of_parquet(folder / "t.parquet", holds_extra=True)


@variant
def parquet_attributes(folder: Path, draw: Draw) -> MadeFile:
    frame = pd.DataFrame(people(draw))
    frame.attrs["who"] = "Anna Smith"
    frame.to_parquet(folder / "t.parquet", index=False)
    return of_parquet(folder / "t.parquet", holds_extra=True)


# ── folders ──────────────────────────────────────────────────────────────────────────────────────────────────────


def of_folder(path: Path, *, holds_extra: bool = False) -> MadeFile:
    """Count a folder file by file: a cell is what its own file stores."""
    rows: list[tuple[Any, ...]] = []
    for part in sorted(path.rglob("*.parquet")):
        table = pq.ParquetFile(part).read()
        columns = [
            [bits(cell) for cell in table[name].to_pylist()] if name in table.column_names else [None] * len(table)
            for name in (*QUASI, *sorted(set(table.column_names) - {*QUASI, "disease"}))
        ]
        rows += [(str(table.schema.field("age").type), *row) for row in zip(*columns, strict=True)]
    return MadeFile(path, min(Counter(rows).values()), holds_extra, policy())


def folder_of(folder: Path, *tables: dict[str, Any], names: list[str] | None = None) -> Path:
    """Write a folder with pyarrow."""
    path = folder / "t"
    path.mkdir()
    for i, table in enumerate(tables):
        parquet_of(path, table, names[i] if names else f"part-{i:05}.parquet")
    return path


@variant
def folder_plain(folder: Path, draw: Draw) -> MadeFile:
    table = people(draw)
    return of_folder(folder_of(folder, table, table))


TWO_TYPES: list[tuple[Any, Any]] = [
    (pa.array([1]), pa.array([1.4])),
    (pa.array([1.5], pa.float32()), pa.array([1.5000000001], pa.float64())),
    (pa.array([datetime.date(2020, 1, 1)]), pa.array([datetime.datetime(2020, 1, 1, 12)])),
    (pa.array([decimal.Decimal("1.0")]), pa.array([decimal.Decimal("1.04")])),
    (pa.array([True]), pa.array([7])),
    (pa.array([0], pa.timestamp("us")), pa.array([0], pa.timestamp("us", "UTC"))),
    (pa.array([1], pa.int32()), pa.array(["Anna Smith"])),
    (pa.array([0], pa.timestamp("ms")), pa.array([1], pa.timestamp("us"))),
]


@variant
def folder_of_two_types(folder: Path, draw: Draw) -> MadeFile:
    first, second = draw.choice(TWO_TYPES)
    table = people(draw, ages=[0])
    n = len(table["age"])
    first_part = {"age": pa.concat_arrays([first] * n), "zip": ["02138"] * n, "disease": table["disease"]}
    two = {"age": second, "zip": ["02138"], "disease": ["flu"]}
    tables = (first_part, two) if draw.random() < 0.5 else (two, first_part)
    return of_folder(folder_of(folder, *tables))


@variant
def folder_with_another_column(folder: Path, draw: Draw) -> MadeFile:
    table = people(draw)
    with_names = table | {"name": [f"Anna {i}" for i in range(len(table["age"]))]}
    return of_folder(
        folder_of(folder, *((table, with_names) if draw.random() < 0.5 else (with_names, table))), holds_extra=True
    )


@variant
def folder_of_partitions(folder: Path, draw: Draw) -> MadeFile:
    path, table = folder / "t", people(draw)
    for code in ("02138", "94110"):
        (path / f"street={code}").mkdir(parents=True)
        parquet_of(path / f"street={code}", table, "part-00000.parquet")
    return of_folder(path, holds_extra=True)


@variant
def folder_with_other_files(folder: Path, draw: Draw) -> MadeFile:
    path = folder_of(folder, people(draw))
    (path / draw.choice(["notes.txt", "t.PARQUET", "names.csv", ".hidden", "_metadata"])).write_text("Anna Smith")
    return of_folder(path, holds_extra=True)


@variant
def folder_with_names(folder: Path, draw: Draw) -> MadeFile:
    return of_folder(
        folder_of(folder, people(draw), people(draw), names=["anna.parquet", "bert.parquet"]), holds_extra=True
    )


# ── workbooks ────────────────────────────────────────────────────────────────────────────────────────────────────


def book_of(draw: Draw, table: dict[str, list[Any]] | None = None) -> openpyxl.Workbook:
    """Return a workbook with a table."""
    book = openpyxl.Workbook()
    sheet = book.active
    table = table or people(draw)
    sheet.append(list(table))
    for row in zip(*table.values(), strict=True):
        sheet.append(row)
    return book


def of_workbook(path: Path, *, holds_extra: bool = False) -> MadeFile:
    """Count the first sheet as openpyxl reads it."""
    rows = list(openpyxl.load_workbook(path, data_only=True).worksheets[0].iter_rows())
    names = [cell.value for cell in rows[0]]
    columns = [
        [(row[names.index(name)].data_type, bits(row[names.index(name)].value)) for row in rows[1:]] for name in QUASI
    ]
    return MadeFile(path, smallest(*columns), holds_extra, policy())


@variant
def workbook_plain(folder: Path, draw: Draw) -> MadeFile:
    path = folder / "t.xlsx"
    if draw.random() < 0.5:
        pd.DataFrame(people(draw)).to_excel(path, index=False)
    else:
        book_of(draw).save(path)
    return of_workbook(path)


@variant
def workbook_numbers_and_texts(folder: Path, draw: Draw) -> MadeFile:
    age = draw.choice([1, True, datetime.datetime(2020, 1, 1)])
    table = people(draw, ages=[age, 50 if age == 1 else age])
    table["age"][0] = str(age) if age is not True else "True"
    book_of(draw, table).save(folder / "t.xlsx")
    return of_workbook(folder / "t.xlsx")


@variant
def workbook_errors_and_blanks(folder: Path, draw: Draw) -> MadeFile:
    table = people(draw, ages=[None, 40])
    table["age"][table["age"].index(None)] = draw.choice(["#N/A", "#REF!", "#DIV/0!"])
    book_of(draw, table).save(folder / "t.xlsx")
    return of_workbook(folder / "t.xlsx")


def _hidden_sheet(book: openpyxl.Workbook) -> None:
    sheet = book.create_sheet("codes")
    sheet["A1"] = "Anna Smith"
    sheet.sheet_state = "hidden"


def _comment(book: openpyxl.Workbook) -> None:
    book.active["A2"].comment = openpyxl.comments.Comment("Anna Smith", "me")


def _author(book: openpyxl.Workbook) -> None:
    book.properties.lastModifiedBy = "Anna Smith"


def _link(book: openpyxl.Workbook) -> None:
    book.active["A2"].hyperlink = "https://example.org/anna-smith"


def _footer(book: openpyxl.Workbook) -> None:
    book.active.oddFooter.center.text = "Anna Smith"


def _list_of_values(book: openpyxl.Workbook) -> None:
    rule = openpyxl.worksheet.datavalidation.DataValidation(type="list", formula1='"Anna Smith,Bert"')
    rule.add("A2")
    book.active.add_data_validation(rule)


def _name(book: openpyxl.Workbook) -> None:
    book.defined_names["Anna_Smith"] = openpyxl.workbook.defined_name.DefinedName("Anna_Smith", attr_text="Sheet!$A$2")


def _color(book: openpyxl.Workbook) -> None:
    book.active["A3"].fill = openpyxl.styles.PatternFill("solid", fgColor="FFFF00")


def _hidden_row(book: openpyxl.Workbook) -> None:
    book.active.row_dimensions[3].hidden = True


MORE_OF_A_BOOK = (_hidden_sheet, _comment, _author, _link, _footer, _list_of_values, _name, _color, _hidden_row)


@variant
def workbook_with_more(folder: Path, draw: Draw) -> MadeFile:
    book = book_of(draw)
    draw.choice(MORE_OF_A_BOOK)(book)
    book.save(folder / "t.xlsx")
    return of_workbook(folder / "t.xlsx", holds_extra=True)


# ── statistical packages ─────────────────────────────────────────────────────────────────────────────────────────


def of_statistics(path: Path, *, holds_extra: bool = False) -> MadeFile:
    """Count a file as pyreadstat reads it, with the missing values of users."""
    reader = pyreadstat.read_sav if path.suffix == ".sav" else pyreadstat.read_dta
    frame, _ = reader(str(path), user_missing=True)
    return MadeFile(path, smallest(*([bits(cell) for cell in frame[name]] for name in QUASI)), holds_extra, policy())


@variant
def statistics_plain(folder: Path, draw: Draw) -> MadeFile:
    path, frame = folder / draw.choice(["t.sav", "t.dta"]), pd.DataFrame(people(draw))
    writer = pyreadstat.write_sav if path.suffix == ".sav" else pyreadstat.write_dta
    writer(frame, str(path), variable_value_labels={"age": {int(age): "years" for age in set(frame["age"])}})
    return of_statistics(path)


@variant
def statistics_kinds_of_missing(folder: Path, draw: Draw) -> MadeFile:
    table = people(draw, ages=[31.0, 97.0])
    for j, i in enumerate([i for i, age in enumerate(table["age"]) if age == 97.0]):
        table["age"][i] = 97.0 + j % 3
    frame, path = pd.DataFrame(table), folder / "t.sav"
    pyreadstat.write_sav(frame, str(path), missing_ranges={"age": [{"lo": 97, "hi": 99}]})
    return of_statistics(path)


@variant
def statistics_letters_of_missing(folder: Path, draw: Draw) -> MadeFile:
    table: dict[str, list[Any]] = people(draw, ages=[31, "a"])
    for j, i in enumerate([i for i, age in enumerate(table["age"]) if age == "a"]):
        table["age"][i] = "abc"[j % 3]
    frame, path = pd.DataFrame(table), folder / "t.dta"
    frame["age"] = frame["age"].astype(object)
    pyreadstat.write_dta(frame, str(path), missing_user_values={"age": ["a", "b", "c"]})
    return of_statistics(path)


@variant
def statistics_with_more(folder: Path, draw: Draw) -> MadeFile:
    frame, path = pd.DataFrame(people(draw)), folder / draw.choice(["t.sav", "t.dta"])
    writer: Any = pyreadstat.write_sav if path.suffix == ".sav" else pyreadstat.write_dta
    if draw.random() < 0.5:
        writer(frame, str(path), variable_value_labels={"age": {150: "Anna Smith"}})
    else:
        writer(frame, str(path), file_label="Anna Smith")
    return of_statistics(path, holds_extra=True)


# ── the comparison ───────────────────────────────────────────────────────────────────────────────────────────────


def verdict_of(file: MadeFile, engine: str) -> str:
    """Return what shoal says: the publication verdict, or that it refuses."""
    try:
        rows = opened(str(file.path), engine=engine)
        return shoal.check(rows, file.policy or policy()).publication
    except shoal.ShoalError:
        return "refused"


def engines_of(path: Path) -> tuple[str, ...]:
    """Return the engines that read a file."""
    if path.is_dir():
        return ("duckdb",)
    return ("local", "duckdb") if path.suffix in (".csv", ".txt", ".tsv", ".gz", ".parquet") else ("local",)


def compared(rounds: int, seed: int) -> Iterator[tuple[str, str, bool, str]]:
    """Yield the variant, the engine, whether the file may be called safe, and the verdict, for every file."""
    for name, make in VARIANTS.items():
        for i in range(rounds):
            with tempfile.TemporaryDirectory() as folder:
                file = make(Path(folder), random.Random(f"{seed} {name} {i}"))
                for engine in engines_of(file.path):
                    yield name, engine, file.is_safe, verdict_of(file, engine)


def main() -> None:
    """Write all files, and print what was said of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=16, help="files of each variant")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    counts: Counter[tuple[str, str, bool, str]] = Counter(compared(options.rounds, options.seed))
    for (name, engine, safe, verdict), n in sorted(counts.items()):
        ready = verdict == "ready"
        mark = "WRONGLY SAFE" if ready and not safe else "in vain" if safe and not ready else ""
        print(f"{name:32} {engine:7} {'safe' if safe else 'unsafe':7} {verdict:16} {n:4}  {mark}")
    wrong = sum(n for (_, _, safe, verdict), n in counts.items() if verdict == "ready" and not safe)
    vain = sum(n for (_, _, safe, verdict), n in counts.items() if verdict != "ready" and safe)
    result = {
        "files": options.rounds * len(VARIANTS),
        "verdicts": sum(counts.values()),
        "wrongly_safe": wrong,
        "safe_and_not_ready": vain,
    }
    print(result)
    if options.json is not None:
        options.json.write_text(json.dumps(result))


if __name__ == "__main__":
    main()
