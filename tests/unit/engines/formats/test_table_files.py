"""If these fail, a file is read or written as something else, or left half written."""

from __future__ import annotations

import codecs
import csv
import datetime as dt
import errno
import gzip
import hashlib
import io
import os
import tempfile
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from shoal.engines.formats import csv_text, layout, table_files
from shoal.engines.formats.atomic_files import write_text
from shoal.engines.formats.layout import Dialect
from shoal.engines.formats.sql_files import sql_source
from shoal.engines.formats.table_files import check_target, read_table_file, write_table_file
from shoal.errors import DataError, OutputError, VerificationError

SECRET = "Wilhelmina-Secret"  # stands for a cell: no message may ever contain it


def fine(_: Path) -> None:
    """A verification that passes."""


def saved(folder: Path, content: bytes | str, name: str = "people.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def rows(folder: Path, content: bytes | str, name: str = "people.csv", **options: str) -> list[dict[str, str | None]]:
    return read_table_file(saved(folder, content, name), **options).table.to_pylist()


def failure(folder: Path, content: bytes | str, name: str = "people.csv", **options: str) -> str:
    with pytest.raises(DataError) as caught:
        read_table_file(saved(folder, content, name), **options)
    message = str(caught.value)
    assert SECRET not in message
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return message


# ── reading: text stays text ────────────────────────────────────────────────────────────────────────────────


def test_every_column_is_text_as_written(tmp_path: Path) -> None:
    source = read_table_file(
        saved(tmp_path, "zip,country,code,flag,gone\n02138,NO,1e5,True,NA\n  x ,null,-0,nan,N/A\n")
    )
    assert source.table.schema == pa.schema(
        [(name, pa.string()) for name in ("zip", "country", "code", "flag", "gone")]
    )
    assert source.table.to_pylist() == [
        {"zip": "02138", "country": "NO", "code": "1e5", "flag": "True", "gone": "NA"},
        {"zip": "  x ", "country": "null", "code": "-0", "flag": "nan", "gone": "N/A"},
    ]
    assert source.dialect == Dialect(",", "utf-8")
    assert source.notes == ()
    assert source.sha256 == hashlib.sha256((tmp_path / "people.csv").read_bytes()).hexdigest()


def test_an_unquoted_empty_field_is_null_and_a_quoted_one_is_empty_text(tmp_path: Path) -> None:
    assert rows(tmp_path, 'a,b\n,""\n"",\n') == [{"a": None, "b": ""}, {"a": "", "b": None}]


def test_quoted_fields_hold_newlines_separators_and_quotes(tmp_path: Path) -> None:
    assert rows(tmp_path, 'a,"b\nb"\r\n"x\r\ny","1,2"\r\n"say ""hi""",\' "\r\n') == [
        {"a": "x\r\ny", "b\nb": "1,2"},
        {"a": 'say "hi"', "b\nb": "' \""},
    ]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
def test_any_line_ending_and_a_missing_last_one(tmp_path: Path, newline: str, last: bool) -> None:
    content = newline.join(["a,b", "1,2", "3,4"]) + newline * last
    assert rows(tmp_path, content) == [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_blank_lines_are_nulls_in_one_column_and_nothing_in_several(tmp_path: Path, newline: str) -> None:
    assert rows(tmp_path, newline.join(["a", "x", "", '""', "", ""])) == [
        {"a": "x"},
        {"a": None},
        {"a": ""},
        {"a": None},
    ]
    assert rows(tmp_path, newline.join(["", "a,b", "1,2", "", "3,4", "", "", ""])) == [
        {"a": "1", "b": "2"},
        {"a": "3", "b": "4"},
    ]


def test_an_empty_field_at_the_very_end_is_null(tmp_path: Path) -> None:
    assert rows(tmp_path, 'a,b\n"x",') == [{"a": "x", "b": None}]
    assert rows(tmp_path, 'a,b\n,""') == [{"a": None, "b": ""}]


def test_a_byte_order_mark_in_the_first_cell_is_kept(tmp_path: Path) -> None:
    assert rows(tmp_path, "a\n\ufeffx\n") == [{"a": "\ufeffx"}]


def test_long_fields_and_many_blocks(tmp_path: Path) -> None:
    long = "x,\n" * 3_000_000
    assert rows(tmp_path, f'a,b\n1,"{long}"\n2,\n') == [{"a": "1", "b": long}, {"a": "2", "b": None}]
    many = [f"{i},{'y' * 50}" for i in range(150_000)]
    table = read_table_file(saved(tmp_path, "a,b\n" + "\n".join(many))).table
    assert table.num_rows == 150_000
    assert table["a"].to_pylist() == [str(i) for i in range(150_000)]


def test_long_fields_do_not_change_the_limit_of_the_csv_module(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    rows(tmp_path, "a,b\n" + "z" * 200_000 + ",1\n")
    assert csv.field_size_limit() == before


messy = st.text(st.sampled_from(list('ab ,;"\n\r\t|é€')), max_size=6)


@examples(150)
@given(st.lists(st.tuples(messy, messy), min_size=1, max_size=6), st.sampled_from(["\n", "\r\n"]))
def test_reads_what_pythons_csv_module_wrote(records: list[tuple[str, str]], newline: str) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator=newline, quoting=csv.QUOTE_ALL)
    writer.writerows([("first", "second"), *records])
    with tempfile.TemporaryDirectory() as folder:
        path = saved(Path(folder), text.getvalue())
        table = read_table_file(path, separator=",").table
    assert list(zip(*(column.to_pylist() for column in table.columns), strict=True)) == records


@examples(300)
@given(st.text(st.sampled_from(list('ab,"\n\r')), max_size=30))
def test_reads_any_text_as_pythons_strict_csv_module_or_refuses_it_too(body: str) -> None:
    try:
        strict = csv.reader(io.StringIO("h,k\n" + body, newline=""), strict=True)
        expected = [record for record in strict if record][1:]
    except csv.Error:
        expected = []
    fits = bool(expected) and all(len(record) == 2 for record in expected)
    with tempfile.TemporaryDirectory() as folder:
        try:
            table = read_table_file(saved(Path(folder), "h,k\n" + body), separator=",").table
        except DataError:
            assert not fits
        else:
            assert fits
            assert [[cell or "" for cell in row.values()] for row in table.to_pylist()] == expected


# ── reading: separators and encodings ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("separator", layout.SEPARATORS)
def test_the_separator_is_found(tmp_path: Path, separator: str) -> None:
    other = next(mark for mark in layout.SEPARATORS if mark != separator)
    lines = [("name", "city", "pay"), ("Ann", f'"a{separator}b"', f"1{other}5"), ("Bob", "", "2")]
    source = read_table_file(saved(tmp_path, "\n".join(separator.join(line) for line in lines)))
    assert source.dialect == Dialect(separator, "utf-8")
    assert source.notes == ()
    assert source.table.to_pylist()[0] == {"name": "Ann", "city": f"a{separator}b", "pay": f"1{other}5"}


def test_a_decimal_comma_is_not_the_separator(tmp_path: Path) -> None:
    assert rows(tmp_path, "a;b\n1,5;2,5\n3,5;4,5\n") == [{"a": "1,5", "b": "2,5"}, {"a": "3,5", "b": "4,5"}]


def test_an_ambiguous_separator_is_noted(tmp_path: Path) -> None:
    source = read_table_file(saved(tmp_path, "a,b;c,d\n1,2;3,4\n"))
    assert source.table.column_names == ["a", "b;c", "d"]
    assert "';'" in source.notes[0]


def test_a_tsv_prefers_tabs(tmp_path: Path) -> None:
    assert rows(tmp_path, "a,b\tc,d\n1,2\t3,4\n", "people.tsv") == [{"a,b": "1,2", "c,d": "3,4"}]


def test_the_separator_can_be_given(tmp_path: Path) -> None:
    source = read_table_file(saved(tmp_path, "a,b:c\n1,2:3\n"), separator=":")
    assert source.table.to_pylist() == [{"a,b": "1,2", "c": "3"}]
    assert source.dialect == Dialect(":", "utf-8")
    for wrong in ("", "ab", '"', "\n", "\r", "\0", "€"):
        assert "separator" in failure(tmp_path, "a,b\n1,2\n", separator=wrong)


def test_an_unknown_extension_is_tried_as_csv(tmp_path: Path) -> None:
    assert rows(tmp_path, "a,b\n1,2\n", "people.data") == [{"a": "1", "b": "2"}]


def test_gzip(tmp_path: Path) -> None:
    packed = gzip.compress(b"a,b\n1,\n")
    source = read_table_file(saved(tmp_path, packed, "people.csv.gz"))
    assert source.table.to_pylist() == [{"a": "1", "b": None}]
    assert source.sha256 == hashlib.sha256(packed).hexdigest()
    assert "gzip" in failure(tmp_path, packed[:-9], "cut.csv.gz")
    assert "gzip" in failure(tmp_path, SECRET, "not.csv.gz")


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        ("n,é\n1,ü€\n".encode(), "utf-8"),
        ("n,é\n1,ü€\n".encode("utf-8-sig"), "utf-8"),
        ("n,é\n1,ü€\n".encode("utf-16"), "utf-16"),
        (codecs.BOM_UTF16_BE + "n,é\n1,ü€\n".encode("utf-16-be"), "utf-16"),
        ("n,é\n1,ü€\n".encode("utf-32"), "utf-32"),
    ],
)
def test_unicode_is_found(tmp_path: Path, content: bytes, encoding: str) -> None:
    source = read_table_file(saved(tmp_path, content))
    assert source.table.to_pylist() == [{"n": "1", "é": "ü€"}]
    mark = content.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF32_LE))
    assert source.dialect == Dialect(",", encoding, mark)
    assert bool(source.notes) == (encoding != "utf-8")
    assert all(f"was read as {encoding.upper()}" in note for note in source.notes)


def test_other_bytes_are_windows_1252_and_noted(tmp_path: Path) -> None:
    source = read_table_file(saved(tmp_path, "n,m\n1,2\n3,é€\n".encode("cp1252")))
    assert source.table.to_pylist()[1] == {"n": "3", "m": "é€"}
    assert source.dialect == Dialect(",", "cp1252")
    assert "Windows-1252" in source.notes[0]
    assert "line 3" in source.notes[0]


def test_a_given_encoding_is_used(tmp_path: Path) -> None:
    source = read_table_file(saved(tmp_path, "n,m\n1,Ł\n".encode("iso8859-2")), encoding="ISO-8859-2")
    assert source.table.to_pylist() == [{"n": "1", "m": "Ł"}]
    assert source.dialect == Dialect(",", "iso8859-2")
    assert rows(tmp_path, "n,m\n1,2\n".encode("utf-8-sig"), encoding="utf-8") == [{"n": "1", "m": "2"}]
    assert rows(tmp_path, "n,m\n1,2\n".encode("utf-16-le"), encoding="utf-16-le") == [{"n": "1", "m": "2"}]


def test_characters_across_the_pieces_that_are_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "CHUNK", 3)
    for encoding in ("utf-8", "utf-16", "utf-8-sig"):
        assert rows(tmp_path, "ä,€\n𝄞,ß\n".encode(encoding)) == [{"ä": "𝄞", "€": "ß"}]
    assert "line 3" in failure(tmp_path, b"a,b\n1,2\n3,\xff\n", encoding="utf-8")
    assert "line 2" in failure(tmp_path, "a,b\n".encode("utf-16") + b"\x00\xdc,\x00", encoding="utf-16")


# ── reading: what is refused ────────────────────────────────────────────────────────────────────────────────


def test_files_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="does not exist"):
        read_table_file(tmp_path / "none.csv")
    with pytest.raises(DataError, match="is a directory"):
        read_table_file(tmp_path)
    path = saved(tmp_path, "a\n1\n")

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(DataError, match="cannot be read: Permission denied"):
        read_table_file(path)


@pytest.mark.parametrize(
    "content", [b"", b"\n", b" \r\n\n", codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF8 + b"\n"]
)
def test_empty_files(tmp_path: Path, content: bytes) -> None:
    assert "is empty" in failure(tmp_path, content)


@pytest.mark.parametrize("content", ["a,b", "a,b\n", "a,b\r\n\r\n\r\n", "a", "a\n"])
def test_a_header_alone(tmp_path: Path, content: str) -> None:
    assert "no rows" in failure(tmp_path, content)


def test_names(tmp_path: Path) -> None:
    message = failure(tmp_path, f"b,a,b,a,c\n{SECRET},2,3,4,5\n")
    assert "more than once (columns 1, 2, 3, 4)" in message  # no names: without a header they are data
    assert "column 2 of 3 has no name" in failure(tmp_path, f"a,,b\n0,{SECRET},1\n")
    assert "column 1 of 1 has no name" in failure(tmp_path, f'""\n{SECRET}\n')
    assert "column 3 of 3 has no name" in failure(tmp_path, f'a,b," "\n0,{SECRET},1\n')


def test_a_first_column_without_a_name_is_the_index_of_pandas(tmp_path: Path) -> None:
    source = read_table_file(saved(tmp_path, ",a\n0,x\n1,y\n"))
    assert source.table.to_pydict() == {"Unnamed: 0": ["0", "1"], "a": ["x", "y"]}
    assert "the first column has no name" in source.notes[0]
    assert "more than once" in failure(tmp_path, ",Unnamed: 0\n0,x\n")


def test_ragged_records(tmp_path: Path) -> None:
    message = failure(tmp_path, f'a,b\n1,"x\ny"\n{SECRET},2,3\n4,5\n{SECRET}\n')
    assert "2 record(s)" in message
    assert "line 4" in message  # the quoted line break counts
    assert "3 found, 2 expected" in message
    assert "line 2: 2 found, 1 expected" in failure(tmp_path, f"a\n{SECRET},2\n")


def test_nul_bytes(tmp_path: Path) -> None:
    assert "NUL byte (first in line 3)" in failure(tmp_path, f"a,b\n1,2\n{SECRET},\0\n")
    assert "NUL byte" in failure(tmp_path, f"a,b\n{SECRET},2\n".encode("utf-16-le"))
    assert "NUL byte (first in line 2)" in failure(tmp_path, f"a,b\n\0,{SECRET}\n".encode("utf-16"))


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (f'a,b\n1,2\n3,"{SECRET}\n4,5\n', 3),
        (f'a,b\n1,2\n"{SECRET}', 3),
        (f'a,b\n1,"{SECRET}""\n', 2),
        (f'"a,b\n{SECRET},2\n', 1),
        (f'a,"b\n{SECRET},2', 1),
        ('a\nx\n"\n', 3),
        ('a\nx\n"', 3),
    ],
)
def test_an_open_quote(tmp_path: Path, content: str, line: int) -> None:
    message = failure(tmp_path, content)
    assert "never closed" in message
    assert f"line {line}" in message


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (f'a,b\n1,"x"y\n2,{SECRET}\n3,"z"\n', 2),
        (f'a,b\n1,"x" \n2,{SECRET}\n', 2),
        (f'a,b\n1,2\n3,"x\n4,{SECRET}\n5,"y,6\n', 5),
        (f'"a" ,b\n1,{SECRET}\n', 1),
        (f'a,"b\n1,"{SECRET}"\n', 2),
    ],
)
def test_text_behind_a_closing_quote(tmp_path: Path, content: str, line: int) -> None:
    message = failure(tmp_path, content)
    assert f"text follows a closing quote in line {line}" in message


def test_a_quote_within_an_unquoted_field_is_a_letter(tmp_path: Path) -> None:
    assert rows(tmp_path, 'a,b\n5\'11",x"y"z\n "p, q"\n') == [
        {"a": "5'11\"", "b": 'x"y"z'},
        {"a": ' "p', "b": ' q"'},
    ]


def test_lines_that_a_quoted_value_swallows_are_noted(tmp_path: Path) -> None:
    source = read_table_file(saved(tmp_path, f'a,b\n1,"x\n2,{SECRET}\n3,{SECRET}\n4,y"\n5,z\n'))
    assert source.table.num_rows == 2
    assert "2 lines within quoted values look like records of their own (first in line 3)" in source.notes[0]
    assert SECRET not in source.notes[0]
    assert read_table_file(saved(tmp_path, 'a,b\n1,"dear sir,\nthank you\nbye"\n')).notes == ()


def test_the_first_fault_is_told(tmp_path: Path) -> None:
    assert "1 record(s)" in failure(tmp_path, f'a,b\n1\n2,"{SECRET}\n')
    assert "first in line 2: 1 found" in failure(tmp_path, f'a,b\n1\n2,"x"{SECRET}\n')
    assert "NUL byte (first in line 2)" in failure(tmp_path, f'a,b\n\0,1\n2\n"{SECRET}')


def test_a_record_longer_than_any_reader_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = "a,b\n1,2\n" + '3,"' + SECRET + "x" * 2**28 + '"\n4,5\n'
    message = failure(tmp_path, content)
    assert "the record that starts in line 3 is longer than 256 MiB" in message


def test_a_reader_that_loses_records_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = table_files.arrow_csv.read_csv
    monkeypatch.setattr(table_files.arrow_csv, "read_csv", lambda *given: whole(*given).slice(0, 2))
    assert "3 records were counted but 1 were read" in failure(tmp_path, "a,b\n1,2\n3,4\n5,6\n")


def test_what_our_own_readers_would_refuse_is_not_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = iter([b"a,b\n", b'1,"2\n'])
    monkeypatch.setattr(csv_text, "csv_lines", lambda batch, separator: next(lines))
    with pytest.raises(VerificationError, match="never closed"):
        write_table_file(pa.table({"a": ["1"], "b": ["2"]}), tmp_path / "safe.csv", verify=fine)
    monkeypatch.setattr(csv_text, "csv_lines", lambda batch, separator: b"a,b\n" * 2)
    with pytest.raises(VerificationError, match="columns or rows of the written file differ"):
        write_table_file(pa.table({"a": ["1"], "b": ["2"]}), tmp_path / "safe.csv", verify=fine)
    assert list(tmp_path.iterdir()) == []


def test_an_open_quote_in_a_large_file(tmp_path: Path) -> None:
    assert "line 3" in failure(tmp_path, 'a,b\n1,2\n"x,2\n' + "1,2\n" * 2_500_000)


def test_encodings_that_do_not_fit(tmp_path: Path) -> None:
    assert "neither UTF-8 nor Windows-1252: undecodable bytes in line 2" in failure(tmp_path, b"a,b\n1,\x81\n")
    assert "not utf-8: undecodable bytes in line 3" in failure(tmp_path, b"a,b\n1,2\n1,\xe9\n", encoding="utf8")
    assert "not ascii" in failure(tmp_path, f"a,b\n1,ü{SECRET}\n", encoding="ascii")
    for unknown in ("klingon", "rot13", "base64", "\0"):
        assert "unknown encoding" in failure(tmp_path, "a,b\n1,2\n", encoding=unknown)


# ── Parquet in ──────────────────────────────────────────────────────────────────────────────────────────────


def test_parquet_keeps_its_types(tmp_path: Path) -> None:
    table = pa.table({
        "n": pa.array([1, None], pa.int16()), "x": [float("nan"), -0.0], "s": pa.array(["a", ""]).dictionary_encode(),
    })  # fmt: skip
    path = tmp_path / "people.parquet"
    pq.write_table(table, path)
    source = read_table_file(path)
    assert source.dialect is None
    assert source.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert source.table.schema == pa.schema([("n", pa.int16()), ("x", pa.float64()), ("s", pa.string())])
    assert source.table.to_pydict() == {"n": [1, None], "x": [None, 0.0], "s": ["a", ""]}


def test_a_saved_index_is_noted(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    path = tmp_path / "people.pq"
    pd.DataFrame({"a": [1, 2]}, index=[7, 8]).to_parquet(path)
    source = read_table_file(path)
    assert "'__index_level_0__'" in source.notes[0]
    assert source.table.schema.metadata is None


def test_parquet_that_is_refused(tmp_path: Path) -> None:
    whole = io.BytesIO()
    pq.write_table(pa.table({"a": [SECRET] * 3}), whole)
    assert "Parquet" in failure(tmp_path, whole.getvalue()[:-20], "cut.parquet")
    assert "Parquet" in failure(tmp_path, SECRET, "text.parquet")
    assert "is empty" in failure(tmp_path, b"", "nothing.parquet")
    for table, expected in [
        (pa.table({"a": pa.array([], pa.string())}), "no rows"),
        (pa.table({"a": [1], "tags": [[SECRET]]}), "'tags'"),
        (pa.table({"a": [1], "where": [{"city": SECRET}]}), "'where'"),
        (pa.table([[1], [2]], names=["same", "same"]), "(columns 1, 2)"),
        (pa.table({"raw": [b"\xff\xfe"]}), "'raw'"),
    ]:
        buffer = io.BytesIO()
        pq.write_table(table, buffer)
        assert expected in failure(tmp_path, buffer.getvalue(), "people.parquet")


def test_parquet_text_that_is_not_utf8(tmp_path: Path) -> None:
    broken = pa.array([b"\xff" + SECRET.encode()]).view(pa.string())
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"name": broken}), path)
    with pytest.raises(DataError, match="'name'") as caught:
        read_table_file(path)
    assert SECRET not in str(caught.value)


# ── writing ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_csv_is_spelled_plainly(tmp_path: Path) -> None:
    table = pa.table({
        "text": ['a"b', "x,y", "", None, " lead ", "=1+1", "a\nb", "c\rd", "NULL", "é;|"],
        "n": pa.array([1, -2, None, 0, 2**63 - 1, 5, 6, 7, 8, 9]),
        "x": [1.0, 0.1, None, -0.0, float("nan"), 1e300, 5e-324, -2.5, 1e16, 123456.75],
        "yes": [True, False, None, *[True] * 7],
    })  # fmt: skip
    path = tmp_path / "safe.csv"
    digest = write_table_file(table, path, verify=fine)
    assert path.read_bytes().decode() == (
        'text,n,x,yes\n"a""b",1,1,true\n"x,y",-2,0.1,false\n"",,,\n,0,0,true\n lead ,9223372036854775807,,true\n'
        '=1+1,5,1e+300,true\n"a\nb",6,5e-324,true\n"c\rd",7,-2.5,true\nNULL,8,1e+16,true\né;|,9,123456.75,true\n'
    )
    assert digest == hashlib.sha256(path.read_bytes()).hexdigest()


def test_csv_spells_dates_and_decimals(tmp_path: Path) -> None:
    moment = dt.datetime(2020, 7, 1, 3, 4, 5)
    table = pa.table({
        "day": [dt.date(2020, 2, 29), None],
        "moment": pa.array([moment, moment.replace(microsecond=50)], pa.timestamp("us")),
        "instant": pa.array([moment, None], pa.timestamp("ms", "Europe/Berlin")),
        "clock": [dt.time(1, 2, 3), dt.time(1, 2, 3, 4)],
        "money": pa.array([Decimal("0.00000001"), Decimal("-12.50000000")], pa.decimal128(20, 8)),
        "kind": pa.array(["u", "v"]).dictionary_encode(),
    })  # fmt: skip
    path = tmp_path / "safe.csv"
    write_table_file(table, path, verify=fine)
    assert path.read_text() == (
        "day,moment,instant,clock,money,kind\n"
        "2020-02-29,2020-07-01T03:04:05,2020-07-01T03:04:05Z,01:02:03,0.00000001,u\n"
        ",2020-07-01T03:04:05.000050,,01:02:03.000004,-12.50000000,v\n"
    )


def test_the_separator_follows_the_dialect_and_the_extension(tmp_path: Path) -> None:
    table = pa.table({"a": ["1;2"], "b": ["x,y"]})
    for name, dialect, expected in [
        ("one.csv", None, 'a,b\n1;2,"x,y"\n'),
        ("two.csv", Dialect(";", "cp1252"), 'a;b\n"1;2";x,y\n'),
        ("three.tsv", Dialect(";", "utf-8"), "a\tb\n1;2\tx,y\n"),
        ("four.TXT", Dialect("|", "utf-8"), "a|b\n1;2|x,y\n"),
    ]:
        write_table_file(table, tmp_path / name, dialect=dialect, verify=fine)
        assert (tmp_path / name).read_bytes().decode() == expected


cell = st.none() | st.sampled_from(
    ["", "NULL", '"', '""', "\r", "\n", "\r\n", " ", "\ufeff", "#", "\\", "\\N", "'", "-"]
)
cell |= st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
cell |= st.text(st.sampled_from(list('a ",;|\t\n\r\\')), max_size=6)
name = st.text(st.sampled_from(list("aä \"',;\t|{}:\ufeff€")), max_size=5).filter(str.strip)
name |= st.sampled_from(["a\nb", "a\rb", "\r\na", '"\n', "ä\n\nb"])  # with a separator too they would be rows
no_case_clash = {"unique_by": lambda text: text.encode().lower()}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    names = draw(st.lists(name, min_size=1, max_size=3, **no_case_clash))  # type: ignore[call-overload]
    n_rows = draw(st.integers(1, 5))
    column = st.lists(cell, min_size=n_rows, max_size=n_rows)
    return pa.table({name: pa.array(draw(column), pa.string()) for name in names})


@examples(300)
@given(tables(), st.sampled_from(layout.SEPARATORS))
def test_nasty_text_comes_back_by_both_paths(table: pa.Table, separator: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, dialect = Path(folder) / "safe.csv", Dialect(separator, "utf-8")
        write_table_file(table, path, dialect=dialect, verify=fine)
        assert read_table_file(path, separator=separator).table.equals(table)
        result = duckdb.sql(f"SELECT * FROM {sql_source(path, dialect, table.column_names)}")
        assert result.columns == table.column_names
        assert result.fetchall() == [tuple(row.values()) for row in table.to_pylist()]


@pytest.mark.parametrize(
    "cells", [[None], [""], [None, None], ["x", None], [None, "x"], ["", None, "", None], ["x,y", "NULL"]]
)
def test_one_column_keeps_its_nulls(tmp_path: Path, cells: list[str | None]) -> None:
    path, table = tmp_path / "safe.csv", pa.table({"a": pa.array(cells, pa.string())})
    write_table_file(table, path, verify=fine)
    assert read_table_file(path).table.equals(table)
    assert duckdb.sql(f"SELECT * FROM {sql_source(path, None, ['a'])}").fetchall() == [(cell,) for cell in cells]


@examples(100)
@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=20), st.sampled_from([pa.float32(), pa.float64()]))
def test_floats_read_back_equal(numbers: list[float], kind: pa.DataType) -> None:
    column = pa.array(numbers, pa.float64()).cast(kind)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "safe.csv"
        write_table_file(pa.table({"x": column}), path, verify=fine)
        text = read_table_file(path).table["x"]
    assert [pa.scalar(float(cell), kind) for cell in text.to_pylist()] == list(column)
    assert "-0" not in text.to_pylist()


@pytest.mark.parametrize("extension", ["csv", "parquet"])
def test_equal_tables_give_equal_bytes(tmp_path: Path, extension: str) -> None:
    whole = pa.table({"a": [str(i % 7) for i in range(5000)], "x": [None if i % 3 else i / 8 for i in range(5000)]})
    cut = pa.concat_tables([whole.slice(0, 1), whole.slice(1, 0), whole.slice(1, 2999), whole.slice(3000)])
    encoded = cut.set_column(0, "a", cut["a"].dictionary_encode()).replace_schema_metadata({"pandas": "{}"})
    digests = {
        write_table_file(table, tmp_path / f"{i}.{extension}", verify=fine)
        for i, table in enumerate([whole, whole, cut, encoded])
    }
    assert len(digests) == 1


def test_pieces_of_any_size_give_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"a": ["x" * i for i in range(50)], "b": ["é,"] * 50})
    whole = write_table_file(table, tmp_path / "whole.csv", verify=fine)
    monkeypatch.setattr("shoal.engines.frames.PIECE_BYTES", 100)
    assert write_table_file(table, tmp_path / "pieces.csv", verify=fine) == whole


def test_parquet_is_plain_and_readable_by_sql(tmp_path: Path) -> None:
    table = pa.table({
        "kind": pa.array(["u", None, ""]).dictionary_encode(), "n": pa.array([1, 2, None], pa.int32()),
    }).replace_schema_metadata({"pandas": "{}"})  # fmt: skip
    path = tmp_path / "safe.parquet"
    digest = write_table_file(table, path, verify=fine)
    stored = pq.read_table(path)
    assert stored.schema.equals(pa.schema([("kind", pa.string()), ("n", pa.int32())]), check_metadata=True)
    assert digest == hashlib.sha256(path.read_bytes()).hexdigest()
    expected = [("u", 1), (None, 2), ("", None)]
    assert duckdb.sql(f"SELECT * FROM {sql_source(path, None, ['kind', 'n'])}").fetchall() == expected
    assert [tuple(row.values()) for row in read_table_file(path).table.to_pylist()] == expected


def test_sql_takes_a_path_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "year=2020" / "it's [a] *?"
    folder.mkdir(parents=True)
    for other in ("a", "it's a xy"):  # what the path would match if it were a pattern
        (tmp_path / "year=2020" / other).mkdir()
        write_table_file(pa.table({"a": ["wrong"]}), tmp_path / "year=2020" / other / "safe.csv", verify=fine)
    for extension in ("csv", "parquet"):
        path = folder / f"safe.{extension}"
        write_table_file(pa.table({"a": ["right"]}), path, verify=fine)
        result = duckdb.sql(f"SELECT * FROM {sql_source(path, None, ['a'])}")
        assert result.columns == ["a"]
        assert result.fetchall() == [("right",)]


def test_sql_reads_long_fields_and_many_line_breaks(tmp_path: Path) -> None:
    table = pa.table(
        {"a": ["x\n" * 3_000_000, "", *["one\ntwo"] * 60_000], "b": pa.array([None, "y", *["z"] * 60_000])}
    )
    path = tmp_path / "safe.csv"
    write_table_file(table, path, verify=fine)
    query = f"SELECT a, b, count(*) FROM {sql_source(path, None, ['a', 'b'])} GROUP BY a, b ORDER BY length(a)"
    assert duckdb.sql(query).fetchall() == [("", "y", 1), ("one\ntwo", "z", 60_000), ("x\n" * 3_000_000, None, 1)]
    assert read_table_file(path).table.equals(table)


def test_sql_refuses_names_it_cannot_tell_apart(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="'id', 'ID'"):
        sql_source(tmp_path / "safe.csv", None, ["id", "x", "ID"])
    write_table_file(pa.table({"ä": ["1"], "Ä": ["2"]}), tmp_path / "safe.csv", verify=fine)
    result = duckdb.sql(f"SELECT Ä, ä FROM {sql_source(tmp_path / 'safe.csv', None, ['ä', 'Ä'])}")
    assert result.fetchall() == [("2", "1")]


# ── writing: what is refused, and what stays behind ─────────────────────────────────────────────────────────

TABLE = pa.table({"a": ["1"]})


def test_targets_that_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder.csv").mkdir()
    saved(tmp_path, "old", "there.csv")
    (tmp_path / "dangling.csv").symlink_to(tmp_path / "nowhere")
    for name, expected in [
        ("safe.ods", "unknown extension"),
        ("safe", "unknown extension"),
        ("safe.csv.gz", "unknown extension"),
        ("folder.csv", "is a directory"),
        ("no/safe.csv", "does not exist"),
        ("there.csv", "already exists and was not overwritten"),
        ("dangling.csv", "already exists and was not overwritten"),
    ]:
        with pytest.raises(OutputError, match=expected):
            check_target(tmp_path / name, False)
        with pytest.raises(OutputError, match=expected):
            write_table_file(TABLE, tmp_path / name, verify=fine)
    check_target(tmp_path / "there.csv", True)
    check_target(tmp_path / "new.PARQUET", False)
    with pytest.raises(OutputError, match="is a directory"):
        check_target(tmp_path / "folder.csv", True)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(OutputError, match="not writable"):
        check_target(tmp_path / "new.csv", False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dangling.csv", "folder.csv", "there.csv"]
    assert (tmp_path / "there.csv").read_text() == "old"


def test_force_overwrites(tmp_path: Path) -> None:
    path = saved(tmp_path, "old", "there.csv")
    write_table_file(TABLE, path, force=True, verify=fine)
    assert path.read_text() == "a\n1\n"
    assert list(tmp_path.iterdir()) == [path]


def test_the_file_is_judged_before_it_has_its_name(tmp_path: Path) -> None:
    path, seen = tmp_path / "safe.csv", []

    def verify(hidden: Path) -> None:
        assert not path.exists()
        assert hidden.parent == path.parent
        assert hidden.name.startswith(".")
        assert hidden.suffix == ".csv"
        assert hidden.read_text() == "a\n1\n"
        seen.append(hidden.name)

    write_table_file(TABLE, path, verify=verify)
    assert list(tmp_path.iterdir()) == [path]
    path.unlink()
    write_table_file(TABLE, path, verify=verify)
    assert len(set(seen)) == 2


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, OSError, SystemExit])
@pytest.mark.parametrize("force", [True, False])
def test_a_failed_verification_leaves_everything_as_it_was(
    tmp_path: Path, error: type[BaseException], force: bool
) -> None:
    path = tmp_path / "safe.csv"
    if force:
        path.write_text("old")

    def verify(_: Path) -> None:
        raise error

    with pytest.raises(error):
        write_table_file(TABLE, path, force=force, verify=verify)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == ([("safe.csv", "old")] if force else [])


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_appears_meanwhile_is_not_overwritten(
    tmp_path: Path, links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "safe.csv"
    if not links:
        _forbid_links(monkeypatch)
    with pytest.raises(OutputError, match="already exists and was not overwritten"):
        write_table_file(TABLE, path, verify=lambda _: path.write_text("theirs") and None)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("safe.csv", "theirs")]


def _forbid_links(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refused)


def test_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _forbid_links(monkeypatch)
    path = tmp_path / "safe.csv"
    write_table_file(TABLE, path, verify=fine)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("safe.csv", "a\n1\n")]
    path.unlink()

    def refused(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Path, "replace", refused)
    with pytest.raises(OutputError, match="Input/output error"):
        write_table_file(TABLE, path, verify=fine)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("extension", ["csv", "parquet"])
def test_a_full_disk_is_an_output_error(tmp_path: Path, extension: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match="No space left"):
        write_table_file(TABLE, tmp_path / f"safe.{extension}", verify=fine)
    assert list(tmp_path.iterdir()) == []


def test_tables_that_are_refused(tmp_path: Path) -> None:
    for table, expected in [
        (pa.table({"a": pa.array([], pa.string())}), "no rows"),
        (pa.table({"a": ["x"], "b": [f"{SECRET}\0"]}), "'b' holds NUL"),
        (pa.table([["x"], ["y"]], names=["same", "same"]), r"\(columns 1, 2\)"),
        (pa.table({"tags": [[SECRET]]}), "'tags'"),
    ]:
        with pytest.raises((OutputError, DataError), match=expected) as caught:
            write_table_file(table, tmp_path / "safe.csv", verify=fine)
        assert SECRET not in str(caught.value)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_what_is_no_regular_file_is_never_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "out.csv"
    os.mkfifo(pipe)
    for put in (lambda: check_target(pipe, force=True), lambda: write_text(pipe, "x", force=True)):
        with pytest.raises(OutputError, match="not a regular file"):
            put()
    assert pipe.is_fifo()
    with pytest.raises(OutputError, match="not a regular file"):
        write_text(Path(os.devnull), "x", force=True)
