"""Sets as shares or dummies, and the codebook of a release."""

import csv
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import shoal
from shoal.cli.commands import app

CELLS = ["{Asian, Black}", "White", "*", None, '{"a, b", White}']
PEOPLE = pa.table({
    "age": [21, 23, 24, 24, 31, 33, 33, 38, 41],
    "race": ["Asian", "Black", "Asian", "White", "White", "White", "Black", "White", "White"],
    "ill": list("abcabcabc"),
})  # fmt: skip
POLICY = """
    columns.age  = { role = "quasi", hierarchy = { intervals = [5, 10, 20] }, cells = "range" }
    columns.race = { role = "quasi", cells = "set" }
    columns.ill  = { role = "sensitive" }
    require      = [{ model = "k-anonymity", k = 3 }]
    release      = { algorithm = "local" }
"""


def test_members_share_a_cell() -> None:
    found = shoal.read_sets(CELLS)
    assert found == {
        "Asian": [0.5, 0.0, 0.25, None, 0.0],
        "Black": [0.5, 0.0, 0.25, None, 0.0],
        "White": [0.0, 1.0, 0.25, None, 0.5],
        "a, b": [0.0, 0.0, 0.25, None, 0.5],
    }
    assert all(sum(row) == 1 for row in zip(*found.values(), strict=True) if None not in row)


def test_dummies_and_given_members() -> None:
    found = shoal.read_sets(CELLS, members=["Black", "White", "Other"], dummies=True)
    assert found == {
        "Black": [1.0, 0.0, 1.0, None, 0.0],
        "White": [0.0, 1.0, 1.0, None, 1.0],
        "Other": [0.0, 0.0, 1.0, None, 0.0],
    }


@pytest.mark.parametrize("kind", [pd.Series, pl.Series, lambda cells: pa.chunked_array([cells])])
def test_shares_come_in_the_kind_of_frame_that_was_given(kind: object) -> None:
    found = shoal.read_sets(kind(CELLS[:3]))  # type: ignore[operator]
    assert type(found).__module__.partition(".")[0] in ("pandas", "polars", "pyarrow")
    assert list(found["Black"].to_list() if kind is pl.Series else found["Black"].to_numpy()) == [0.5, 0.0, 1 / 3]


def test_a_codebook_has_every_text_of_a_release_once() -> None:
    release = shoal.anonymize(PEOPLE, shoal.Policy.parse(POLICY))
    lines = pd.DataFrame(shoal.codebook(release))
    assert set(lines["column"]) == {"age", "race"}
    for name in ("age", "race"):
        own = lines[lines["column"] == name].set_index("text")
        assert own["records"].to_dict() == release.table[name].to_pandas().value_counts().to_dict()
    ages = lines[(lines["column"] == "age") & (lines["kind"] == "range")]
    assert len(ages) > 0
    assert (ages["from"] < ages["to"]).all()


def test_kinds_of_texts() -> None:
    texts = ["34", "20-29", "{a, b}", "*", None, "Western Europe", "2001-02"]
    lines = shoal.codebook(pa.table({"x": texts}), ["x"])
    kinds = dict(zip(lines["text"], lines["kind"], strict=True))
    assert kinds == {
        "34": "value", "20-29": "range", "{a, b}": "set", "*": "any value", None: "missing",
        "Western Europe": "label", "2001-02": "range",
    }  # fmt: skip
    with pytest.raises(shoal.DataError, match="which columns"):
        shoal.codebook(pa.table({"x": texts}))


@pytest.mark.parametrize("engine", ["local", "duckdb"])
def test_midpoints_and_codebook_on_request(tmp_path: Path, engine: str) -> None:
    data, policy, out, book = (tmp_path / name for name in ("people.csv", "policy.toml", "release.csv", "book.csv"))
    PEOPLE.to_pandas().to_csv(data, index=False)
    policy.write_text(POLICY)
    given = [str(data), "-p", str(policy), "-o", str(out), "--engine", engine]
    done = CliRunner().invoke(app, ["anonymize", *given, "--midpoints", "--codebook", str(book)])
    assert done.exit_code == 0, done.output
    assert "age_mid" in out.read_text().splitlines()[0].split(",")
    lines = list(csv.DictReader(book.read_text().splitlines()))
    assert sum(int(line["records"]) for line in lines if line["column"] == "age") == PEOPLE.num_rows
    assert {line["column"] for line in lines} == {"age", "race"}
    refused = CliRunner().invoke(app, ["anonymize", *given, "--midpoints", "--ranges", "bounds", "--force"])
    assert refused.exit_code == 2
