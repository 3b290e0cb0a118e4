"""What it costs the other columns that some are kept fine."""

import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import shoal
from shoal.cli.commands import app
from shoal.inspection import inspect, keeping, policy_text


def people(n: int = 400) -> pd.DataFrame:
    draw = np.random.default_rng(11)
    return pd.DataFrame({
        "age": draw.integers(18, 80, n).astype(str),
        "zip": [f"{x:05}" for x in draw.integers(10000, 10300, n)],
        "sex": draw.choice(["f", "m"], n),
        "diagnosis": draw.choice(list("abc"), n),
    })  # fmt: skip


KNOWN = ["age", "zip", "sex"]


def test_what_is_kept_gains_and_the_others_pay():
    found = shoal.inspect(people(), known=KNOWN, keep=["age"]).keeping
    assert found is not None
    (age,) = found.kept
    assert age.column == "age"
    assert age.weighted < age.without
    assert {share.column for share in found.others} == {"zip", "sex"}
    assert sum(share.weighted for share in found.others) > sum(share.without for share in found.others)
    assert found.looked_at == found.records == 400
    paid = [share.weighted - share.without for share in found.others]
    assert paid == sorted(paid, reverse=True)  # who pays most comes first


@pytest.mark.parametrize("weight", [1, inspect.KEPT])
def test_the_figures_are_those_of_a_release_by_the_same_search(weight):
    """The loss of a release is the mean over its columns, each with its weight."""
    found = shoal.inspect(people(), known=KNOWN, keep=["age"])
    policy = found.policy.with_release(algorithm="mondrian", dimension="gain").with_columns(age={"weight": weight})
    release = shoal.anonymize(people(), policy)
    assert found.keeping is not None
    shares = [*found.keeping.kept, *found.keeping.others]
    weights = [weight if share.column == "age" else 1 for share in shares]
    own = [share.without if weight == 1 else share.weighted for share in shares]
    assert np.average(own, weights=weights) == pytest.approx(release.loss["loss"])


def test_the_proposal_says_it(tmp_path):
    found = shoal.inspect(people(), known=KNOWN, keep=["age"])
    assert found.keeping is not None
    for sentence in found.keeping.sentences:
        assert f"# {sentence}" in found.toml()
    assert found.as_dict()["keeping"]["kept"][0]["column"] == "age"
    people().to_csv(tmp_path / "people.csv", index=False)
    said = CliRunner().invoke(app, ["inspect", str(tmp_path / "people.csv"), "--known", "age,zip,sex", "--keep", "age"])
    assert "In return, the mean loss of the other columns" in said.output
    assert "mondrian by gain" in said.output


def test_without_keep_nothing_is_measured():
    assert shoal.inspect(people(), known=KNOWN).keeping is None


def test_of_a_large_table_some_records_are_looked_at(monkeypatch):
    monkeypatch.setattr(keeping, "SAMPLE", 100)
    found = shoal.inspect(people(), known=KNOWN, keep=["age"]).keeping
    assert found is not None
    assert (found.looked_at, found.records) == (100, 400)
    assert "100 of 400 records" in found.sentences[-1]


def test_an_engine_gives_the_same_figures_or_a_note(monkeypatch):
    there = ibis.memtable(pa.Table.from_pandas(people()))
    here = shoal.inspect(people(), known=KNOWN, keep=["age"]).keeping
    assert shoal.inspect(there, known=KNOWN, keep=["age"]).keeping == here
    monkeypatch.setattr(keeping, "SAMPLE", 10)
    found = shoal.inspect(there, known=KNOWN, keep=["age"])
    assert found.keeping is None
    assert any("was not measured" in note for note in found.notes)


def test_a_large_table_is_told_to_be_searched_quickly(monkeypatch):
    monkeypatch.setattr(policy_text, "LARGE", 300)
    found = shoal.inspect(people(), known=KNOWN)
    assert found.policy.release.algorithm == "mondrian"
    assert found.policy.release.dimension == "gain"
    assert any("mondrian by gain" in note for note in found.notes)
