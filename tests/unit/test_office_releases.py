"""Releases as Excel, SPSS and Stata files, and the codebooks of files in what inspect says and in what is written."""

import json
import zipfile
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyreadstat
import pytest
from typer.testing import CliRunner

import shoal
from shoal.cli.commands import app
from shoal.engines.formats import office_files
from shoal.engines.formats.table_files import check_target, read_table_file
from shoal.errors import OutputError, VerificationError

N = 120
DRAW = np.random.default_rng(7)
SURVEY = pd.DataFrame(
    {
        "pnr": [f"P{i:04}" for i in range(N)],
        "q17": DRAW.integers(1940, 2000, N),
        "v2": DRAW.integers(1, 3, N),
        "v3": DRAW.integers(1, 5, N),
        "q9": DRAW.integers(0, 20, N),
        "q5": DRAW.normal(3000, 500, N).round(),
    }
)
LABELS = {
    "pnr": "Respondent identifier",
    "q17": "Year of birth of respondent",
    "v3": "Region of residence",
    "q9": "Visits to a doctor in the last year",
    "q5": "Monthly income of the household",
}
CODES = {"v2": {1: "male", 2: "female"}, "v3": {1: "North", 2: "South", 3: "East", 4: "West", 9: "Atlantis"}}
WRITERS = {".sav": pyreadstat.write_sav, ".dta": pyreadstat.write_dta}
KINDS = pytest.mark.parametrize("suffix", [".xlsx", ".sav", ".dta"])


def survey(folder: Path, suffix: str) -> Path:
    path = folder / f"survey{suffix}"
    if suffix == ".xpt":  # where columns have labels and values have none
        pyreadstat.write_xport(SURVEY, str(path), column_labels=LABELS)
    elif suffix == ".xlsx":
        SURVEY.to_excel(path, index=False)
    else:
        WRITERS[suffix](SURVEY, str(path), column_labels=LABELS, variable_value_labels=CODES)
    return path


def policy(**columns) -> shoal.Policy:
    roles = {"pnr": "identifier", "q9": "sensitive", "q5": "plain", "v2": "quasi"}
    fields = {name: {"role": role} for name, role in roles.items()}
    fields["q17"] = {"role": "quasi", "hierarchy": {"intervals": [10, 20, 40]}}
    fields["v3"] = {"role": "plain"}
    return shoal.Policy.of({"columns": fields | columns, "require": [{"model": "k-anonymity", "k": 3}]})


# ── codebooks ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("suffix", [".sav", ".dta", ".xpt"])
def test_roles_are_guessed_by_labels_where_names_say_nothing(tmp_path, suffix):
    found = shoal.inspect(survey(tmp_path, suffix))
    roles = {column.name: column.role for column in found.columns}
    assert roles["q17"] == "quasi"
    assert roles["v3"] == "quasi"
    assert roles["q9"] == "sensitive"
    assert roles["q5"] == "sensitive"
    assert roles["pnr"] == "identifier"
    assert (found.entity, found.household) == (None, None)  # a respondent and a household are named in passing
    told = {column.name: column.why for column in found.columns}
    assert told["q17"].startswith("Year of birth of respondent: ")
    assert "label" in told["v3"]
    assert "Year of birth of respondent" in found.toml()
    assert "Year of birth of respondent" in found._repr_html_()
    assert found.policy.columns["q17"].role == "quasi"


@pytest.mark.parametrize("suffix", [".sav", ".dta"])
def test_labels_of_values_tell_the_role_and_stand_beside_the_column(tmp_path, suffix):
    found = shoal.inspect(survey(tmp_path, suffix))
    column = next(column for column in found.columns if column.name == "v2")
    assert column.role == "quasi"
    assert "labels of its values" in column.reason
    assert dict(column.categories) == {"1": "male", "2": "female"}
    assert "1 = male, 2 = female" in found.toml()
    assert json.dumps(found.as_dict())
    (region,) = (column for column in found.columns if column.name == "v3")
    assert region.proposal.cells == "set"  # codes of regions are no numbers


def test_without_a_codebook_the_same_columns_say_nothing(tmp_path):
    found = shoal.inspect(survey(tmp_path, ".xlsx"))
    unsure = {column.name for column in found.columns if column.sure == "unsure"}
    assert {"q17", "v2", "v3", "q9", "q5"} <= unsure


def test_a_name_that_speaks_counts_more_than_its_label(tmp_path):
    path = tmp_path / "people.sav"
    frame = pd.DataFrame({"age": DRAW.integers(20, 80, 60), "q1": DRAW.integers(0, 5, 60)})
    pyreadstat.write_sav(
        frame, str(path), column_labels={"age": "Asked of all patients with cancer", "q1": "Happiness"}
    )
    roles = {column.name: column.role for column in shoal.inspect(path).columns}
    assert roles == {"age": "quasi", "q1": "sensitive"}


def test_a_label_cannot_break_the_policy(tmp_path):
    path = tmp_path / "people.sav"
    frame = pd.DataFrame({"q1": DRAW.integers(20, 80, 60)})
    label = 'Age\n[release]\nentity = "x" # \x07'
    pyreadstat.write_sav(frame, str(path), column_labels={"q1": label}, variable_value_labels={"q1": {20: "a\nb = 1"}})
    found = shoal.inspect(path)
    assert found.policy.columns.keys() == {"q1"}
    assert found.policy.release.entity is None


@pytest.mark.parametrize("suffix", [".sav", ".dta"])
def test_labels_go_along_for_what_is_released(tmp_path, suffix):
    shoal.anonymize(survey(tmp_path, ".sav"), policy()).save(tmp_path / f"release{suffix}")
    reader = pyreadstat.read_sav if suffix == ".sav" else pyreadstat.read_dta
    frame, meta = reader(str(tmp_path / f"release{suffix}"))
    assert "pnr" not in frame.columns
    assert "pnr" not in meta.column_names_to_labels
    assert meta.column_names_to_labels["q17"] == LABELS["q17"]
    assert meta.variable_value_labels["v3"] == {1: "North", 2: "South", 3: "East", 4: "West"}  # nobody is in Atlantis


def test_ranges_and_sets_of_codes_are_told_in_words_in_spss(tmp_path):
    tree = {"*": {"{1, 2}": ["1", "2"], "3-4": ["3", "4"]}}
    coarse = policy(v3={"role": "quasi", "hierarchy": {"tree": tree}, "min_level": 1, "max_level": 1})
    shoal.anonymize(survey(tmp_path, ".sav"), coarse).save(tmp_path / "release.sav")
    _, meta = pyreadstat.read_sav(str(tmp_path / "release.sav"))
    assert meta.variable_value_labels["v3"] == {"{1, 2}": "North or South", "3-4": "East or West"}
    shoal.anonymize(survey(tmp_path, ".sav"), coarse).save(tmp_path / "release.dta")  # where texts have no labels
    _, meta = pyreadstat.read_dta(str(tmp_path / "release.dta"))
    assert "v3" not in meta.variable_value_labels


# ── releases ─────────────────────────────────────────────────────────────────────────────────────────────


@KINDS
def test_round_trip(tmp_path, suffix):
    release = shoal.anonymize(survey(tmp_path, suffix), policy())
    certificate = release.save(tmp_path / f"release{suffix}")
    found = read_table_file(tmp_path / f"release{suffix}").table
    assert found.column_names == release.table.column_names
    assert [found[name].to_pylist() for name in found.column_names] == [
        release.table[name].to_pylist() for name in found.column_names
    ]
    assert shoal.check(tmp_path / f"release{suffix}", policy()).holds
    assert shoal.verify_certificate(certificate, tmp_path / f"release{suffix}").outcome == "holds"


@KINDS
def test_the_command_line(tmp_path, suffix, monkeypatch):
    monkeypatch.chdir(tmp_path)
    survey(tmp_path, suffix)
    policy().save("policy.toml")
    out = f"release{suffix}"

    def run(*arguments: str) -> str:
        done = CliRunner().invoke(app, list(arguments))
        assert done.exit_code == 0, done.output
        return done.output

    run("inspect", f"survey{suffix}", "-o", "proposal.toml")
    run(
        "anonymize",
        f"survey{suffix}",
        "-p",
        "policy.toml",
        "-o",
        out,
        "--certificate",
        "c.json",
        "--recoding",
        "r.json",
    )
    run("check", out, "-p", "policy.toml")
    run("verify", "c.json", out)
    run("attack", out, "--original", f"survey{suffix}", "-p", "policy.toml")
    run("apply", "r.json", f"survey{suffix}", "-o", f"again{suffix}")
    assert read_table_file(Path(out)).table.equals(read_table_file(Path(f"again{suffix}")).table)


@KINDS
def test_a_file_that_was_changed_is_noticed(tmp_path, suffix):
    release = shoal.anonymize(survey(tmp_path, suffix), policy())
    certificate = release.save(tmp_path / f"release{suffix}")
    frame = read_table_file(tmp_path / f"release{suffix}").table.to_pandas()
    frame.loc[0, "q17"] = "1900-1901"
    if suffix == ".xlsx":
        frame.to_excel(tmp_path / f"release{suffix}", index=False)
    else:
        WRITERS[suffix](frame, str(tmp_path / f"release{suffix}"))
    assert shoal.verify_certificate(certificate, tmp_path / f"release{suffix}").outcome == "fails"


def test_texts_stay_texts_in_excel(tmp_path):
    people = pa.table({"age": ["31", "31"], "said": ["=1+1", "#N/A"], "zip": ["02138", "-5"]})
    asked = {"columns": {"age": {"role": "quasi"}, "said": {"role": "plain"}, "zip": {"role": "plain"}}}
    release = shoal.anonymize(people, asked | {"require": [{"model": "k-anonymity", "k": 2}]})
    release.save(tmp_path / "release.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "release.xlsx").active
    cells = [cell for row in sheet.iter_rows(min_row=2) for cell in row]
    assert {cell.data_type for cell in cells} <= {"s", "inlineStr"}
    assert sorted(cell.value for cell in cells) == sorted(["31", "31", "=1+1", "#N/A", "02138", "-5"])


def of_plain(values: pa.Array) -> shoal.Release:
    people = pa.table({"age": ["31"] * len(values), "other": values})
    asked = {"columns": {"age": {"role": "quasi"}, "other": {"role": "plain"}}}
    return shoal.anonymize(people, asked | {"require": [{"model": "k-anonymity", "k": 2}]})


@KINDS
@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pa.array(["", "a"]), "column 'other': 1 texts are empty"),
        (pa.array([2**60 + 1, 2**60 + 3]), "column 'other'"),
    ],
)
def test_what_a_file_cannot_keep_is_refused_and_nothing_is_left(tmp_path, suffix, values, message):
    with pytest.raises((OutputError, VerificationError), match=message):
        of_plain(values).save(tmp_path / f"release{suffix}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", [".sav", ".dta"])
def test_names_that_a_file_cannot_have(tmp_path, suffix):
    people = pa.table({"age in years": ["31", "31"]})
    release = shoal.anonymize(
        people, {"columns": {"age in years": {"role": "quasi"}}, "require": [{"model": "k-anonymity", "k": 2}]}
    )
    with pytest.raises(OutputError, match="'age in years'"):
        release.save(tmp_path / f"release{suffix}")


@KINDS
@pytest.mark.parametrize(
    "values",
    [
        pa.array([True, None]),
        pa.array([1.5, None]),
        pa.array([3, 4]),
        pa.array(["2024-02-29", "2024-03-01"]).cast(pa.date32()),
        pa.array(["2024-02-29T10:00:00", None]).cast(pa.timestamp("s")),
        pa.array(["é", "日本"]),
    ],
    ids=str,
)
def test_kinds_of_values_come_back(tmp_path, suffix, values):
    release = of_plain(values)
    release.save(tmp_path / f"release{suffix}")
    found = read_table_file(tmp_path / f"release{suffix}").table["other"].cast(values.type)
    assert found.to_pylist() == release.table["other"].to_pylist()


@pytest.mark.parametrize(
    ("suffix", "package", "extra"), [(".xlsx", "openpyxl", "excel"), (".sav", "pyreadstat", "statistics")]
)
def test_a_missing_package_is_named_before_the_long_work(tmp_path, monkeypatch, suffix, package, extra):
    imported = office_files.import_module

    def without(name: str):
        if name == package:
            raise ImportError(name)
        return imported(name)

    release = of_plain(pa.array(["a", "b"]))
    monkeypatch.setattr(office_files, "import_module", without)
    with pytest.raises(OutputError, match=rf"{package} is needed to write.*\n.*pip install 'shoal\[{extra}\]'"):
        release.save(tmp_path / f"release{suffix}")
    with pytest.raises(OutputError, match=package):
        check_target(tmp_path / f"release{suffix}")  # which the command line asks before it reads anything


@KINDS
def test_engines_say_that_they_write_no_such_files(tmp_path, suffix):
    SURVEY.to_parquet(tmp_path / "survey.parquet")
    policy().save(tmp_path / "policy.toml")
    out = tmp_path / f"release{suffix}"
    arguments = ["anonymize", str(tmp_path / "survey.parquet"), "-p", str(tmp_path / "policy.toml"), "-o", str(out)]
    done = CliRunner().invoke(app, [*arguments, "--engine", "duckdb"])
    assert done.exit_code == 2
    assert f"DuckDB writes no {suffix} files" in done.output
    assert "(--engine local)" in done.output


@KINDS
def test_a_file_does_not_tell_when_it_was_written(tmp_path: Path, suffix: str) -> None:
    # Or two files of one release would differ.
    path = tmp_path / f"release{suffix}"
    shoal.anonymize(SURVEY, policy()).save(path)
    if suffix == ".xlsx":
        with zipfile.ZipFile(path) as book:
            assert {part.date_time for part in book.infolist()} == {(1980, 1, 1, 0, 0, 0)}
            assert [part for part in book.namelist() if "docProps" in part or "comments" in part] == []
    elif suffix == ".sav":
        assert path.read_bytes()[92:109] == b"01 Jan 8000:00:00"
    else:
        assert b"<timestamp>\x1101 Jan 1980 00:00</timestamp>" in path.read_bytes()
    assert len(read_table_file(path).table) == N
    assert [entry.name for entry in tmp_path.iterdir() if "undated" in entry.name] == []
