"""If these fail, a release is saved although it fails, or says something else than its rows."""

from __future__ import annotations

import csv
import hashlib
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.engines.base import Rows
from shoal.engines.formats import table_files
from shoal.errors import InfeasibleError, OutputError, PolicyError, VerificationError
from shoal.judge import judge_release, recount
from shoal.judge.recount import recounted
from shoal.policy import Policy
from shoal.release.receipt import keyed

approx = pytest.approx

# Twelve people: two in their thirties, ten in their twenties, of whom two live apart.
PEOPLE = pa.table({
    "name": [f"p{i}" for i in range(12)],
    "age": ["21", "22", "23", "24", "25", "26", "27", "28", "29", "20", "31", "38"],
    "zip": ["02138"] * 4 + ["02139"] * 4 + ["99501"] * 2 + ["02138"] * 2,
    "disease": ["flu", "hiv", "flu", "hiv"] * 3,
    "note": ["a", "b"] * 6,
})  # fmt: skip


def policy(*require: dict[str, Any], columns: dict[str, Any] | None = None, **release: Any) -> Policy:
    return Policy.of({
        "columns": {
            "name": {"role": "identifier"},
            "age": {"role": "quasi", "hierarchy": {"intervals": [10]}},
            "zip": {"role": "quasi", "hierarchy": {"mask": "right"}},
            "disease": {"role": "sensitive"},
            "note": {"role": "plain"},
            **(columns or {}),
        },
        "require": list(require) or [{"model": "k-anonymity", "k": 2}],
        "release": release,
    })  # fmt: skip


K4 = policy({"model": "k-anonymity", "k": 4}, max_suppression=0.4)


def made(asked: Policy = K4, data: Any = PEOPLE) -> shoal.Release:
    return shoal.anonymize(data, asked)


def sizes(table: pa.Table, *names: str) -> list[int]:
    return sorted(Counter(zip(*(table[name].to_pylist() for name in names), strict=True)).values())


# ── what a release says of itself ───────────────────────────────────────────────────────────────────────────


def test_a_release_has_what_the_design_promises() -> None:
    release = made()
    assert release.levels == {"age": 1, "zip": 0}
    assert release.suppressed == 4  # the two in their thirties, the two of 99501
    assert release.classes == 2
    assert sizes(release.table, "age", "zip") == [4, 4]
    assert set(release.table["age"].to_pylist()) == {"20-29"}
    assert (release.measured["k"], release.measured["l"], release.measured["records"]) == (4, 2, 8)
    assert set(release.loss) >= {
        "loss", "arx-loss", "discernibility", "average-class", "height", "precision", "entropy"
    }  # fmt: skip
    # Four records lose both cells; of the others the age is 9 years within a range of 18, the zip is kept.
    assert release.loss["loss"] == approx((4 * 2 + 8 * 9 / 18) / 24)
    assert release.loss["discernibility"] == 4**2 + 4**2 + 12 * 4
    assert release.loss["height"] == 1
    assert release.loss["precision"] == approx((4 * 2 + 8 * 1 / 2) / 24)
    assert release.loss["average-class"] == 12 / 3
    assert release.recoding.proved
    assert release.verdicts.holds
    # Notes and diseases go together, of diseases nothing is required, and all who are left are in their twenties.
    assert [finding.kind for finding in release.findings] == [
        "singled-out",
        "unprotected",
        "reveals-sensitive",
        "single-label",
    ]


def test_identifiers_are_gone_and_the_others_stay() -> None:
    release = made()
    assert release.table.column_names == ["age", "zip", "disease", "note"]
    assert "p0" not in str(release.table.to_pydict())


def test_suppressed_records_are_dropped_or_kept_as_stars() -> None:
    kept = made(policy({"model": "k-anonymity", "k": 4}, max_suppression=0.4, suppressed="keep"))
    assert (kept.suppressed, kept.classes, kept.table.num_rows) == (4, 3, 12)
    stars = [row for row in kept.table.to_pylist() if row["age"] == "*"]
    assert [row["zip"] for row in stars] == ["*"] * 4
    assert sizes(kept.table, "age", "zip") == [4, 4, 4]
    assert Counter(kept.table["disease"].to_pylist()) == Counter(PEOPLE["disease"].to_pylist())
    assert kept.measured["records"] == 12
    dropped = made()
    assert dropped.table.num_rows == 8
    assert "*" not in dropped.table["age"].to_pylist()


def test_stars_must_be_a_crowd_themselves() -> None:
    # Two records could be dropped; kept as stars they would be two in a crowd of three.
    data = pa.table({"q": ["a"] * 3 + ["b"] * 3 + ["c"] * 2})
    fields: dict[str, Any] = {"columns": {"q": {"role": "quasi"}}, "require": [{"model": "k-anonymity", "k": 3}]}
    dropped = made(Policy.of({**fields, "release": {"max_suppression": 0.25}}), data)
    assert (dropped.levels, dropped.suppressed) == ({"q": 0}, 2)
    kept = made(Policy.of({**fields, "release": {"max_suppression": 0.25, "suppressed": "keep"}}), data)
    assert (kept.levels, kept.suppressed) == ({"q": 1}, 0)


def test_what_cannot_be_kept_is_said_with_figures() -> None:
    with pytest.raises(InfeasibleError, match=r"13-anonymity.*at most 0 of 12 records.*12 of 12 records") as caught:
        made(policy({"model": "k-anonymity", "k": 13}))
    assert caught.value.exit_code == 1
    assert caught.value.hint is not None


@pytest.mark.parametrize("shuffle", [True, False])
def test_the_order_of_rows(shuffle: bool) -> None:
    unique = PEOPLE.set_column(4, "note", pa.array([f"n{i:02}" for i in range(12)]))
    release = made(policy({"model": "k-anonymity", "k": 1}, shuffle=shuffle), unique)
    notes = release.table["note"].to_pylist()
    assert sorted(notes) == sorted(unique["note"].to_pylist())
    assert (notes == unique["note"].to_pylist()) is not shuffle


# ── frames ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_frames_come_back_as_they_came(tmp_path: Path) -> None:
    expected = made().table
    assert isinstance(expected, pa.Table)
    pandas = made(data=PEOPLE.to_pandas()).table
    assert isinstance(pandas, pd.DataFrame)
    assert pandas.to_dict("list") == expected.to_pydict()
    polars = made(data=pl.from_arrow(PEOPLE)).table
    assert isinstance(polars, pl.DataFrame)
    assert polars.to_dict(as_series=False) == expected.to_pydict()
    path = tmp_path / "people.csv"
    PEOPLE.to_pandas().to_csv(path, index=False)
    for source in (path, str(path)):
        read = made(data=source).table
        assert isinstance(read, pa.Table)
        assert read.equals(expected)
    parquet = tmp_path / "people.parquet"
    pq.write_table(PEOPLE, parquet)
    assert made(data=parquet).table.equals(expected)


@pytest.mark.parametrize(
    "index",
    [list(range(11, -1, -1)), [7] * 12, list("abcdefghijkl"), pd.date_range("2020-01-01", periods=12)],
    ids=["reversed", "repeated", "text", "dates"],
)
def test_an_index_has_no_say(index: Any) -> None:
    frame = PEOPLE.to_pandas()
    odd = frame.set_axis(pd.Index(index, name="age"), axis=0)
    release = made(data=odd)
    pd.testing.assert_frame_equal(release.table, made(data=frame).table)
    assert release.table.index.equals(pd.RangeIndex(8))
    assert release.engine.fingerprint == made(data=frame).engine.fingerprint


def test_the_input_is_untouched() -> None:
    frame = PEOPLE.to_pandas()
    before = frame.copy(deep=True)
    made(data=frame)
    pd.testing.assert_frame_equal(frame, before)


def test_data_that_is_no_table() -> None:
    with pytest.raises(shoal.ShoalError, match="cannot read a table"):
        made(data=42)


# ── saving ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_saved_release_counted_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "release.csv"
    made().save(path)
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["age", "zip", "disease", "note"]
    classes = Counter((row["age"], row["zip"]) for row in rows)
    assert classes == {("20-29", "02138"): 4, ("20-29", "02139"): 4}
    for each in classes:
        assert len({row["disease"] for row in rows if (row["age"], row["zip"]) == each}) == 2


def test_text_stays_text_in_a_saved_file(tmp_path: Path) -> None:
    texts = ["02138", "NO", "1e5", " leading", "trailing ", "", None, "é漢😀", 'q"uote', "a,b", "two\nlines", "NaN"]
    data = pa.table({"q": pa.array(texts * 2), "s": pa.array(texts * 2), "p": pa.array(texts * 2)})
    asked = Policy.of({
        "columns": {"q": {"role": "quasi"}, "s": {"role": "sensitive"}, "p": {"role": "plain"}},
        "require": [{"model": "k-anonymity", "k": 2}],
    })  # fmt: skip
    release = made(asked, data)
    for name in ("release.csv", "release.tsv", "release.parquet"):
        release.save(tmp_path / name)
        back = table_files.read_table_file(tmp_path / name).table
        for column in ("q", "s", "p"):
            assert Counter(back[column].to_pylist()) == Counter(data[column].to_pylist())


def test_every_kind_of_file_counts_alike(tmp_path: Path) -> None:
    release = made()
    outputs = []
    for name in ("release.csv", "release.tsv", "release.txt", "release.parquet", "release.pq"):
        outputs.append(release.save(tmp_path / name))
        assert table_files.read_table_file(tmp_path / name).table.equals(release.table)
        assert shoal.check(tmp_path / name, K4) == release.verdicts
    assert len({json.dumps({**output, "output": None, "created": None}) for output in outputs}) == 1


def nothing_but(folder: Path, *names: str) -> bool:
    return sorted(entry.name for entry in folder.iterdir()) == sorted(names)


def test_a_file_is_not_overwritten_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "release.csv"
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(OutputError, match="already exists and was not overwritten"):
        made().save(path)
    assert path.read_text(encoding="utf-8") == "mine"
    made().save(path, force=True)
    assert path.read_text(encoding="utf-8").startswith("age,zip")
    assert nothing_but(tmp_path, "release.csv")


def test_the_input_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    PEOPLE.to_pandas().to_csv(path, index=False)
    before = path.read_bytes()
    release = made(data=path)
    link = tmp_path / "link.csv"
    link.symlink_to(path)
    hard = tmp_path / "hard.csv"
    hard.hardlink_to(path)
    for target in (path, tmp_path / "." / "people.csv", link, hard):
        with pytest.raises(OutputError, match="is the input itself"):
            release.save(target, force=True)
    assert path.read_bytes() == before


def wrong_rows(table: pa.Table) -> pa.Table:
    """One record too few in the first class."""
    return table.slice(1)


def wrong_values(table: pa.Table) -> pa.Table:
    """A record of another class: somebody stands alone."""
    ages = table["age"].to_pylist()
    return table.set_column(0, "age", pa.array(["31", *ages[1:]]))


def wrong_columns(table: pa.Table) -> pa.Table:
    """An identifier that came back."""
    return table.append_column("name", pa.array([f"p{i}" for i in range(len(table))]))


def strange_values(table: pa.Table) -> pa.Table:
    """A disease that nobody has."""
    return table.set_column(2, "disease", pa.array(["ebola", *table["disease"].to_pylist()[1:]]))


@pytest.mark.parametrize("spoil", [wrong_rows, wrong_values, wrong_columns, strange_values])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_wrong_file_never_appears(
    spoil: Callable[[pa.Table], pa.Table], suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = made()
    for name in ("_write_csv", "_write_parquet"):
        write = getattr(table_files, name)
        monkeypatch.setattr(table_files, name, lambda tables, *rest, write=write: write(map(spoil, tables), *rest))
    target = tmp_path / f"release{suffix}"
    with pytest.raises(VerificationError):
        release.save(target)
    assert nothing_but(tmp_path)
    target.write_text("mine", encoding="utf-8")
    with pytest.raises(VerificationError):
        release.save(target, force=True)
    assert target.read_text(encoding="utf-8") == "mine"
    assert nothing_but(tmp_path, target.name)


def test_a_file_that_holds_and_counts_otherwise_never_appears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # One record more in a class breaks no promise, but it is not what was measured.
    release = made()
    write = table_files._write_csv
    monkeypatch.setattr(
        table_files,
        "_write_csv",
        lambda tables, *rest: write((pa.concat_tables([t, t.slice(0, 1)]) for t in tables), *rest),
    )
    with pytest.raises(VerificationError, match="does not match the release in memory"):
        release.save(tmp_path / "release.csv")
    assert nothing_but(tmp_path)


def test_a_count_that_says_otherwise_is_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = made()
    count = recount.recounted_file

    def lying(*arguments: Any) -> Any:
        table = count(*arguments)
        return replace(table, counts=table.counts - 1)

    monkeypatch.setattr(recount, "recounted_file", lying)
    with pytest.raises(VerificationError, match="4-anonymity does not hold: 2 of 2 classes with 6 records fail"):
        release.save(tmp_path / "release.csv")
    assert nothing_but(tmp_path)


def test_an_identifier_among_the_rows_is_found_before_anything_appears(tmp_path: Path) -> None:
    release = made()
    names = pa.array([f"p{i}" for i in range(8)])
    broken = replace(release, rows=Rows(release.rows.table.append_column("name", names)))
    with pytest.raises(VerificationError, match="the release still contains identifier columns: 'name'"):
        broken.save(tmp_path / "release.csv")
    assert nothing_but(tmp_path)


def test_rows_that_break_the_promise_are_no_release(monkeypatch: pytest.MonkeyPatch) -> None:
    from shoal.engines.local import LocalEngine

    apply = LocalEngine.apply

    def careless(self: LocalEngine, *arguments: Any) -> Rows:
        rows = apply(self, *arguments)
        return Rows(wrong_values(rows.table), rows.persons)

    monkeypatch.setattr(LocalEngine, "apply", careless)
    with pytest.raises(VerificationError, match="4-anonymity does not hold"):
        made()


def test_an_error_while_writing_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = made()

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(table_files, "_write_csv", interrupted)
    with pytest.raises(KeyboardInterrupt):
        release.save(tmp_path / "release.csv")
    assert nothing_but(tmp_path)


def test_targets_that_are_refused(tmp_path: Path) -> None:
    release = made()
    for target, words in (
        (tmp_path / "release.ods", "unknown extension"),
        (tmp_path / "none" / "release.csv", "does not exist"),
    ):
        with pytest.raises(OutputError, match=words):
            release.save(target)
    assert nothing_but(tmp_path)


# ── persons ─────────────────────────────────────────────────────────────────────────────────────────────────

VISITS = pa.table({
    "who": ["a", "a", "a", "b", "c", "d", "e", "e"],
    "age": ["21", "21", "21", "31", "31", "32", "32", "33"],
    "disease": ["flu", "hiv"] * 4,
})  # fmt: skip
PERSONS = Policy.of({
    "columns": {
        "who": {"role": "identifier"},
        "age": {"role": "quasi", "hierarchy": {"intervals": [10]}},
        "disease": {"role": "sensitive"},
    },
    "require": [{"model": "k-anonymity", "k": 3}],
    "release": {"entity": "who", "max_suppression": 0.5},
})  # fmt: skip


def test_three_records_of_one_person_are_no_crowd(tmp_path: Path) -> None:
    release = shoal.anonymize(VISITS, PERSONS)
    assert release.levels == {"age": 1}
    assert release.suppressed == 3  # all of a
    assert set(release.table["age"].to_pylist()) == {"30-39"}
    assert (release.measured["k"], release.measured["records"]) == (4, 5)
    for suffix in (".csv", ".parquet"):
        release.save(tmp_path / f"release{suffix}")
    assert "who" not in release.table.column_names


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_persons_are_counted_again_beside_the_file(suffix: str, tmp_path: Path) -> None:
    release = shoal.anonymize(VISITS, PERSONS)
    assert release.rows.persons is not None
    one = np.zeros_like(release.rows.persons)
    broken = replace(release, rows=Rows(release.rows.table, one))
    assert not judge_release(recounted(broken.rows, PERSONS, release.reference), PERSONS).holds
    with pytest.raises(VerificationError, match="3-anonymity does not hold: 1 of 1 classes with 5 records"):
        broken.save(tmp_path / f"release{suffix}")
    assert nothing_but(tmp_path)


# ── the certificate ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_certificate_tells_the_whole_story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    source = tmp_path / "people.csv"
    PEOPLE.to_pandas().to_csv(source, index=False)
    release = made(data=source)
    output = tmp_path / "release.csv"
    certificate = release.save(output)
    assert json.loads(json.dumps(certificate, allow_nan=False)) == certificate
    assert certificate["schema"] == "shoal-certificate/3"
    assert certificate["created"] == "2023-11-14T22:13:20+00:00"
    sha256 = hashlib.sha256(source.read_bytes()).hexdigest()
    assert certificate["input"] == {"hmac_sha256": keyed(release.key, "input", sha256), "records": 12}
    assert sha256 not in json.dumps(certificate)
    assert certificate["output"] == {
        "sha256": hashlib.sha256(output.read_bytes()).hexdigest(),
        "records": 8,
        "suppressed": 4,
    }
    assert Policy.of(certificate["policy"]) == K4
    assert certificate["requirements"] == [
        {
            "asked": "4-anonymity",
            "holds": True,
            "outcome": "holds",
            "figure": "k",
            "worst": 4.0,
            "classes": 0,
            "records": 0,
            "missing": "",
        }
    ]
    assert certificate["measured"]["k"] == 4
    assert certificate["measured"]["columns"]["disease"]["l"] == 2
    assert certificate["loss"] == {
        "loss": float(f"{release.loss['loss']:.2g}"),
        "discernibility": release.loss["discernibility"],
        "average-class": release.loss["average-class"],
    }
    assert certificate["levels"] == {"age": 1, "zip": 0}
    assert certificate["search"]["algorithm"] == "optimal"
    assert certificate["search"]["proved"] is True
    assert certificate["seed"] == 0
    assert certificate["findings"] == [finding.as_dict() for finding in release.findings]
    assert set(certificate["search"]) == {"algorithm", "proved", "bound", "claim"}
    assert set(certificate["versions"]) == {"python", "shoal", "numpy", "numba", "pyarrow", "duckdb"}
    assert certificate["versions"]["shoal"] == shoal.__version__
    # No value of the data but what the policy itself says.
    assert not any(text in json.dumps(certificate) for text in ("02138", "flu", "p11"))


def test_the_same_run_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    for suffix in (".csv", ".parquet"):
        runs = []
        for run, order in enumerate((list(range(12)), list(range(12)), list(range(11, -1, -1)))):
            path = tmp_path / f"run{run}{suffix}"
            certificate = made(data=PEOPLE.take(order)).save(path)
            certificate["input"] = None  # the order of the rows is part of the input
            runs.append((path.read_bytes(), json.dumps(certificate)))
        assert runs[0] == runs[1] == runs[2]


def test_a_figure_that_is_infinite_has_its_word() -> None:
    asked = policy({"model": "k-anonymity", "k": 2}, {"model": "recursive-l-diversity", "c": 1000, "l": 1})
    data = PEOPLE.set_column(3, "disease", pa.array([f"d{i}" for i in range(12)]))
    certificate = made(asked, data).certificate
    assert certificate["measured"]["delta"] == "inf"
    json.dumps(certificate, allow_nan=False)


def test_a_release_in_memory_has_a_certificate_too() -> None:
    release = made()
    certificate = release.certificate
    assert certificate["input"]["hmac_sha256"] == keyed(release.key, "input", release.engine.fingerprint)
    assert len(certificate["output"]["sha256"]) == 64
    assert certificate["output"]["sha256"] == made(data=PEOPLE.to_pandas()).certificate["output"]["sha256"]


def test_a_time_that_is_none_is_told_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = made()
    for epoch in ("yesterday", "1e9", "9" * 30):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
        with pytest.raises(OutputError, match="SOURCE_DATE_EPOCH"):
            release.save(tmp_path / "release.csv")
    assert nothing_but(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "")
    release.save(tmp_path / "release.csv")


# ── findings ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_plain_column_that_tells_everybody_apart() -> None:
    unique = PEOPLE.set_column(4, "note", pa.array([f"n{i}" for i in range(12)]))
    release = made(data=unique)
    assert str(release.findings[0]) == (
        "Column 'note' (8 of 8 records) is plain but nearly unique: it identifies people to anyone who "
        'knows it. Set role = "quasi" if outsiders may know the values, or role = "identifier" to remove them.'
    )
    assert release.certificate["findings"] == [finding.as_dict() for finding in release.findings]
    with_null = PEOPLE.set_column(4, "note", pa.array([None, *(f"n{i}" for i in range(11))]))
    kept = made(policy({"model": "k-anonymity", "k": 1}), with_null)
    assert "Column 'note' (12 of 12 records) is plain but nearly unique" in kept.findings[0].fact  # a null is a value


def test_closeness_that_holds_only_against_the_table_before_suppression() -> None:
    data = pa.table({
        "q": ["a"] * 4 + ["b"] * 4 + ["c"] * 12,
        "s": ["hiv"] * 1 + ["flu"] * 3 + ["flu"] * 4 + ["hiv"] * 9 + ["flu"] * 3,
    })  # fmt: skip
    fields: dict[str, Any] = {
        "columns": {"q": {"role": "quasi"}, "s": {"role": "sensitive"}},
        "require": [{"model": "t-closeness", "t": 0.25}],
    }
    release = made(Policy.of({**fields, "release": {"max_suppression": 0.2}}), data)
    # hiv is 10/20 in the whole: a and c are 1/4 away, b is 1/2 away and goes. Among the others hiv is 10/16, and
    # from there to the 1/4 of a it is 3/8.
    assert (release.levels, release.suppressed) == ({"q": 0}, 4)
    assert release.measured["t"] == approx(1 / 4)
    [finding] = release.findings
    assert finding.fact.startswith("0.25-closeness (equal) holds compared with the table before suppression")
    assert "t is 0.375" in finding.fact
    assert not shoal.check(release.table, release.policy).holds  # the release alone, as its readers see it
    assert shoal.check(release.table, release.policy, original=data).holds
    kept = made(Policy.of({**fields, "release": {"max_suppression": 0.2, "suppressed": "keep"}}), data)
    assert [finding.kind for finding in kept.findings] == ["single-label", "half-lost"]  # all of q is hidden
    assert shoal.check(kept.table, kept.policy).holds


@pytest.mark.parametrize(
    ("run", "given"),
    [(run, given) for run in (shoal.anonymize, shoal.check) for given in (5, ["policy.toml"])] + [(shoal.check, None)],
)
def test_what_is_no_policy_is_refused_with_how_to_get_one(run, given):
    told = r"must be a shoal.Policy, the path of a TOML file or a dict, not (NoneType|int|list)\nHint: use Policy.load"
    with pytest.raises(PolicyError, match=told):
        run(pa.table({"age": ["1"]}), given)
