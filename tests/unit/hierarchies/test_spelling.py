"""If these fail, a number or a missing value is read as another one."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.engines.cells import read_table
from shoal.hierarchies.spelling import MARKS, Spelling, guess, missing_texts

GERMAN = Spelling((), ",", ".")


@pytest.mark.parametrize(
    ("spelling", "text", "read"),
    [
        (GERMAN, "1.234,5", "1234.5"),
        (GERMAN, "-1.234.567", "-1234567"),
        (GERMAN, "1.234", "1234"),
        (GERMAN, "0,5", "0.5"),
        (GERMAN, "123,456", "123.4560"),  # 123.456 would be 123456 the next time
        (GERMAN, "0,123", "0.123"),
        (GERMAN, "1234,567", "1234.567"),
        (GERMAN, "12.5", "12.5"),  # no group of three: left alone
        (GERMAN, "1.23,4", "1.23,4"),
        (GERMAN, "02138", "02138"),
        (GERMAN, "[1.000, 2.000]", "[1.000, 2.000]"),
        (GERMAN, "1.234\n", "1.234\n"),
        (Spelling((), ","), "1,5", "1.5"),
        (Spelling((), ","), "1,234", "1.234"),
        (Spelling((), ","), "1.234,5", "1.234,5"),
        (Spelling((), ".", ","), "1,234.50", "1234.50"),
        (Spelling((), ".", ","), "1,23", "1,23"),
        (Spelling((), ",", " "), "1\u202f234,5", "1234.5"),
        (Spelling((), ".", "'"), "1’234", "1234"),
        (Spelling(("NA", "-")), " NA\t", None),
        (Spelling(("NA", "-")), "na", "na"),
        (Spelling(("",)), "  ", None),
        (Spelling(("",)), "x ", "x "),
        (Spelling(()), "NA", "NA"),
    ],
)
def test_what_a_text_says(spelling: Spelling, text: str, read: str | None) -> None:
    assert spelling.read(text) == read
    column = pa.chunked_array([pa.array([text, None], pa.string())])
    assert read_table(pa.table({"x": column}), {"x": spelling})["x"].to_pylist() == [read, None]


spellings = st.builds(
    Spelling,
    st.lists(st.sampled_from(["NA", "-", ".", "", "1", "1.234"]), max_size=2).map(tuple),
    st.sampled_from([".", ","]),
    st.sampled_from([None, *MARKS]),
).filter(lambda spelling: spelling.decimal != spelling.thousands)
texts = st.from_regex(r"[-+]?[0-9]{1,4}([., '][0-9]{1,4}){0,3}", fullmatch=True) | st.text(
    "01,. '\u00a0-NA\n", max_size=8
)


@given(spellings, st.lists(texts, max_size=6))
def test_what_is_read_once_is_read_alike_again_and_in_arrow(spelling: Spelling, column: list[str]) -> None:
    read = [spelling.read(text) for text in column]
    assert [spelling.read(text) for text in read] == read
    table = pa.table({"x": pa.array(column, pa.string())})
    assert read_table(table, {"x": spelling})["x"].to_pylist() == read


def test_numbers_that_are_no_texts() -> None:
    table = pa.table({"n": pa.array([999, 1, None]), "x": [999.0, -1.5, 2.0], "b": [True, False, None]})
    codes = dict.fromkeys(table.column_names, Spelling(("999", "-1.5", "NA")))
    assert read_table(table, codes).to_pydict() == {
        "n": [None, 1, None],
        "x": [None, None, 2.0],
        "b": [True, False, None],
    }


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (["1", "2", "NA", "-", "."], Spelling(("-", ".", "NA"))),
        (["2020-01-01", "2021-02-03", "n/a"], Spelling(("n/a",))),
        (["NO", "NA", "DE"], Spelling()),  # Namibia
        (["yes", "no", "NA", "N/A"], Spelling(("N/A", "NA"))),
        (["+", "-"], Spelling()),
        (["good", "bad", "-"], Spelling(("-",))),
        (["Null", "NULL", "None"], Spelling()),  # they are names, too
        (["x", " "], Spelling(("",))),
        (["02138", "02139"], Spelling()),
        (["1,5", "2", "10,25"], Spelling((), ",")),
        (["1.234,5", "2,0", "NA"], Spelling(("NA",), ",", ".")),
        (["1.234.567", "1.000", "12"], Spelling((), ",", ".")),
        (["1.234", "12.345", "5"], Spelling()),  # decimals, as far as anybody can tell
        (["1,234", "12,345", "5"], Spelling((), ".", ",")),
        (["1,234.5", "12", "1,000,000"], Spelling((), ".", ",")),
        (["1 234,5", "12 345,6", "7"], Spelling((), ",", " ")),
        (["1'234.5", "12"], Spelling((), ".", "'")),
        (["123 456 789", "987 654 321"], Spelling()),  # codes, all of one length
        (["1.5", "2.25"], Spelling()),
        (["a,b", "1,5"], Spelling()),
        ([], Spelling()),
    ],
)
def test_what_is_guessed(column: list[str], expected: Spelling) -> None:
    assert guess(column) == expected


def test_a_text_that_is_missing_in_one_column_and_a_value_in_another() -> None:
    columns = {"land": ["NO", "NA"], "age": ["1", "NA"], "zip": ["1", "2"]}
    guessed = {name: guess(texts) for name, texts in columns.items()}
    assert missing_texts(guessed, columns) == (("NA",), {"land"})
