"""A CSV file comes back in the dialect in which it came: separator, encoding, byte order mark, decimal mark."""

import csv
import io
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.engines.formats import dialects, table_files
from shoal.engines.formats.layout import Dialect
from shoal.errors import OutputError, VerificationError

ENCODINGS = ("utf-8", "utf-8-sig", "cp1252", "utf-16")
POLICY = """
    columns.age  = {{ role = "quasi", hierarchy = {{ intervals = [10, 20] }} }}
    columns.town = {{ role = "plain" }}
    columns.pay  = {{ role = "sensitive", decimal = "{decimal}" }}
    columns.size = {{ role = "quasi", decimal = "{decimal}", hierarchy = {{ intervals = [0.5, 1] }}, cells = "range" }}
    require      = [{{ model = "k-anonymity", k = 2 }}]
    release      = {{ algorithm = "{algorithm}", ranges = "{ranges}" }}
"""


def file_of(folder: Path, separator: str, decimal: str, encoding: str, towns: list[str]) -> Path:
    """Invented people, in a dialect."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, lineterminator="\r\n")
    writer.writerow(["age", "town", "pay", "size"])
    for i, town in enumerate(towns):
        numbers = (f"{1000 + 7 * (i % 5)}.5", f"{1 + (i // 4) * 0.25:.2f}")
        writer.writerow([20 + i % 4, town, *(number.replace(".", decimal) for number in numbers)])
    path = folder / "people.csv"
    path.write_bytes(text.getvalue().encode(encoding))
    return path


def rows_of(release: shoal.Release, names: list[str]) -> list[tuple[str, ...]]:
    """The rows of a release, every cell as text, a missing one as an empty text."""
    columns = [["" if x is None else str(x) for x in release.table[name].to_pylist()] for name in names]
    return sorted(zip(*columns, strict=True))


@settings(max_examples=8, deadline=None)
@given(
    separator=st.sampled_from(",;\t|"),
    decimal=st.sampled_from(".,"),
    encoding=st.sampled_from(ENCODINGS),
    ranges=st.sampled_from(["text", "bounds"]),
    towns=st.lists(st.sampled_from(["Köln", "Ulm", "a;b", 'say "no"', "1,5", "", "€"]), min_size=12, max_size=20),
)
def test_pandas_reads_the_release_in_the_dialect_of_the_input(
    tmp_path_factory, separator, decimal, encoding, ranges, towns
):
    folder = tmp_path_factory.mktemp("dialects")
    data = file_of(folder, separator, decimal, encoding, towns)
    policy = shoal.Policy.parse(POLICY.format(decimal=decimal, ranges=ranges, algorithm="mondrian"))
    release = shoal.anonymize(data, policy)
    target = folder / "safe.csv"
    release.save(target)
    raw = target.read_bytes()
    marks = {"utf-8-sig": b"\xef\xbb\xbf", "utf-16": (b"\xff\xfe", b"\xfe\xff")}
    assert raw.startswith(marks[encoding]) if encoding in marks else not raw.startswith(b"\xef\xbb\xbf")
    read = pd.read_csv(target, sep=separator, encoding=encoding, dtype=str, keep_default_na=False)
    names = list(read.columns)
    pay = read["pay"].str.replace(decimal, ".", regex=False)
    assert (pay.str.contains(".", regex=False)).all()
    assert decimal == "." or read["pay"].str.contains(",").all()
    assert {f"size_{end}" for end in ("from", "to")} <= set(names) if ranges == "bounds" else len(names) == 4
    typed = pd.read_csv(target, sep=separator, encoding=encoding, decimal=decimal)
    assert typed["pay"].dtype == float
    if ranges == "bounds":
        assert pd.api.types.is_numeric_dtype(typed["size_from"])
    restored = read.assign(pay=pay)
    for name in [n for n in names if n.startswith("size")]:
        plain = restored[name].str.fullmatch(r"-?\d+,\d+")
        restored.loc[plain, name] = restored.loc[plain, name].str.replace(",", ".", regex=False)
    own = [name for name in ("age", "town", "pay", "size") if name in names]
    assert sorted(restored[own].itertuples(index=False, name=None)) == rows_of(release, own)
    assert shoal.check(target, policy).holds
    lines = shoal.verify_certificate(release.certificate, target).lines
    assert [line.name for line in lines if line.holds is False] == ["output.sha256"]  # it is that of the table


@pytest.mark.parametrize("engine", ["local", "duckdb"])
def test_a_german_file_is_the_same_from_both_engines(tmp_path, engine):
    from shoal.engines.opening import opened

    data = file_of(tmp_path, ";", ",", "cp1252", ["Köln", "Ulm"] * 10)
    policy = shoal.Policy.parse(POLICY.format(decimal=",", ranges="text", algorithm="optimal"))
    release = shoal.anonymize(opened(str(data), engine=engine), policy)
    release.save(tmp_path / f"{engine}.csv")
    text = (tmp_path / f"{engine}.csv").read_bytes().decode("cp1252")
    assert "Köln" in text
    assert ";1000,5;" in text
    assert "1000.5" not in text


def test_a_plain_file_is_written_where_the_policy_says_so(tmp_path):
    data = file_of(tmp_path, ";", ",", "utf-8-sig", ["Köln", "Ulm"] * 10)
    policy = shoal.Policy.parse(POLICY.format(decimal=",", ranges="text", algorithm="optimal"))
    shoal.anonymize(data, policy.with_release(csv_dialect="plain")).save(tmp_path / "safe.csv")
    raw = (tmp_path / "safe.csv").read_bytes()
    assert raw.startswith(b"age;town;pay;size\n")
    assert b";1000.5;" in raw
    assert "Köln".encode() in raw


def test_a_character_that_the_encoding_lacks_is_an_error_and_nothing_is_written(tmp_path):
    data = file_of(tmp_path, ",", ".", "cp1252", ["Köln", "Ulm"] * 10)
    tree = {"all": ["Köln", "Ulm"]}
    policy = shoal.Policy.parse(POLICY.format(decimal=".", ranges="text", algorithm="optimal"))
    policy = policy.with_columns(town={"role": "quasi", "hierarchy": {"tree": {"Город": tree["all"]}}, "min_level": 1})
    release = shoal.anonymize(data, policy)
    with pytest.raises(OutputError, match="cp1252"):
        release.save(tmp_path / "safe.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


def test_a_published_file_that_differs_is_not_published(tmp_path, monkeypatch):
    data = file_of(tmp_path, ";", ",", "cp1252", ["Köln", "Ulm"] * 10)
    policy = shoal.Policy.parse(POLICY.format(decimal=",", ranges="text", algorithm="optimal"))
    release = shoal.anonymize(data, policy)
    write = dialects.DialectFile.write
    monkeypatch.setattr(dialects.DialectFile, "write", lambda self, b: write(self, b.replace(b"1000,5", b"1000,6")))
    with pytest.raises(VerificationError, match="differs from the release"):
        release.save(tmp_path / "safe.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


def test_windows_1252_that_reads_as_utf8_is_not_published(tmp_path):
    import pyarrow as pa

    table = pa.table({"town": ["Ã¤"]})  # these two characters are one of UTF-8
    with pytest.raises(VerificationError, match="read as UTF-8"):
        table_files.write_table_file(
            table, tmp_path / "safe.csv", dialect=Dialect(",", "cp1252"), verify=lambda path: None
        )
