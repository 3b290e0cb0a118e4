"""Released ranges as columns of numbers, and read back."""

import datetime as dt
from decimal import Decimal

import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.errors import PolicyError, VerificationError
from shoal.hierarchies.bounds import ends, with_bounds
from shoal.hierarchies.dates import Dates
from shoal.notation.labels import written_range, written_set


def people(n: int = 150) -> pd.DataFrame:
    draw = np.random.default_rng(5)
    frame = pd.DataFrame({
        "age": draw.integers(18, 80, n).astype(str),
        "kg": [f"{x:.1f}" for x in draw.normal(70, 12, n)],
        "born": [(dt.date(1950, 1, 1) + dt.timedelta(int(x))).isoformat() for x in draw.integers(0, 9000, n)],
        "sex": draw.choice(["f", "m"], n),
        "ill": draw.choice(list("abc"), n),
    })  # fmt: skip
    frame.loc[3, "age"] = None
    return frame


def policy(**release: object) -> shoal.Policy:
    return shoal.Policy.of({
        "columns": {
            "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}, "cells": "range"},
            "kg": {"role": "quasi", "hierarchy": {"intervals": [5, 10]}, "cells": "range", "min_level": 1},
            "born": {"role": "quasi", "hierarchy": {"dates": ["month", "year", "decade"]}, "cells": "range"},
            "sex": {"role": "quasi"},
            "ill": {"role": "sensitive"},
        },
        "require": [{"model": "k-anonymity", "k": 5}],
        "release": {"algorithm": "mondrian", **release},
    })  # fmt: skip


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("20-29", 20, 29),
        ("35", 35, 35),
        ("[-5, 3]", -5, 3),
        ("[0.5, 1)", Decimal("0.5"), 1),
        (">=85", 85, None),
        ("<18", None, 18),
        ("<=17", None, 17),
        ("{3, 5, 9}", 3, 9),
        ("{3, >=85}", 3, None),
        ("*", None, None),
        (None, None, None),
        ("blue", None, None),
    ],
)
def test_the_ends_of_a_text(text, first, last):
    assert ends(text) == (first, last)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2001-02-03", dt.date(2001, 2, 3), dt.date(2001, 2, 3)),
        ("2001-02", dt.date(2001, 2, 1), dt.date(2001, 2, 28)),
        ("2001-Q4", dt.date(2001, 10, 1), dt.date(2001, 12, 31)),
        ("1990s", dt.date(1990, 1, 1), dt.date(1999, 12, 31)),
        ("2001-02-03/2001-05-06", dt.date(2001, 2, 3), dt.date(2001, 5, 6)),
        ("2001-02/2003", dt.date(2001, 2, 1), dt.date(2003, 12, 31)),
        ("*", None, None),
    ],
)
def test_the_ends_of_a_date(text, first, last):
    assert ends(text, Dates(dates=("month",))) == (first, last)


def test_a_format_with_slashes_is_parted_where_both_sides_are_dates():
    spec = Dates(dates=("month",), format="%d/%m/%Y")
    assert ends("03/02/2001/06/05/2001", spec) == (dt.date(2001, 2, 3), dt.date(2001, 5, 6))


numbers = st.integers(-500, 500)


@given(st.tuples(numbers, numbers).map(sorted))
def test_a_range_reads_back_as_its_ends(pair):
    assert ends(written_range(str(pair[0]), str(pair[1]))) == (pair[0], pair[1])


@given(st.lists(numbers, min_size=1, max_size=6, unique=True))
def test_a_set_reads_back_as_its_least_and_its_most(members):
    assert ends(written_set(list(map(str, members)))) == (min(members), max(members))


# ── in a release ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("form", ["bounds", "midpoint"])
@pytest.mark.parametrize("algorithm", ["mondrian", "optimal"])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_release_with_bounds_is_judged_as_the_texts_are(form, algorithm, suffix, tmp_path):
    asked = policy(ranges=form, algorithm=algorithm, max_suppression=0.1)
    plain = shoal.anonymize(people(), policy(algorithm=algorithm, max_suppression=0.1))
    release = shoal.anonymize(people(), asked)
    target = tmp_path / f"release.{suffix}"
    certificate = release.save(target)
    assert certificate["policy"]["release"]["ranges"] == form
    verdicts = shoal.check(target, asked)
    assert verdicts.holds
    assert verdicts.classes == plain.classes == release.classes
    assert shoal.verify_certificate(certificate, target).holds
    assert shoal.check(target, policy(ranges=form).with_release(nulls="category")).holds
    stricter = asked.model_copy(update={"require": (asked.require[0].model_copy(update={"k": 40}),)})
    assert shoal.check(target, stricter).holds == shoal.check(plain.table, stricter).holds
    pd.testing.assert_frame_equal(release.table[plain.table.columns], plain.table)  # and in the same order


def test_bounds_hold_the_original_values():
    frame = people()
    release = shoal.anonymize(
        frame.assign(serial=range(len(frame))), policy(ranges="bounds").with_columns(serial="plain")
    )
    shown = release.table
    assert list(shown.columns[:3]) == ["age", "age_from", "age_to"]
    original = frame.loc[shown["serial"]].reset_index(drop=True)
    for name in ("age", "kg"):
        known = original[name].astype(float).to_numpy()
        first, last = (shown[f"{name}_{end}"].astype("Float64").astype(float).to_numpy() for end in ("from", "to"))
        told = ~np.isnan(first) & ~np.isnan(known)
        assert told.any()
        assert ((first <= known) & (known <= last))[told].all()
    for i, day in enumerate(original["born"]):
        if shown["born"][i] != "*":
            assert shown["born_from"][i] <= dt.date.fromisoformat(day) <= shown["born_to"][i]


def test_a_star_and_a_missing_value_have_no_bounds_and_the_text_tells_which():
    table = pa.table({"age": ["20-29", "*", None, ">=85"], "kg": ["[60, 65)"] * 4, "born": ["1990s"] * 4})
    shown = with_bounds(table.append_column("sex", pa.array(["f"] * 4)), policy(ranges="bounds"))
    assert shown.select(["age", "age_from", "age_to"]).to_pylist() == [
        {"age": "20-29", "age_from": 20, "age_to": 29},
        {"age": "*", "age_from": None, "age_to": None},
        {"age": None, "age_from": None, "age_to": None},
        {"age": ">=85", "age_from": 85, "age_to": None},
    ]


@pytest.mark.parametrize(("form", "column"), [("bounds", "age_to"), ("bounds", "born_from"), ("midpoint", "kg_mid")])
def test_bounds_that_say_something_else_are_refused(form, column, tmp_path):
    """The numbers behind the stars would tell all that the texts hide."""
    asked = policy(ranges=form)
    target = tmp_path / "release.csv"
    certificate = shoal.anonymize(people(), asked).save(target)
    changed = pd.read_csv(target, dtype=str)
    changed.loc[7, column] = "1951-03-04" if "born" in column else "33"
    changed.to_csv(target, index=False)
    for door in (lambda: shoal.check(target, asked), lambda: shoal.verify_certificate(certificate, target)):
        with pytest.raises(VerificationError, match=f"column '{column}': [0-9]+ of [0-9]+ distinct rows") as caught:
            door()
        assert "33" not in str(caught.value).replace("of 33", "")


def test_a_name_that_is_taken_is_refused():
    fields = policy().model_dump(mode="json", exclude_none=True)
    fields["columns"]["AGE_from"] = {"role": "plain"}
    with pytest.raises(PolicyError, match=r"release\.ranges: 'bounds' adds a column 'AGE_from' next to 'age'"):
        shoal.Policy.of({**fields, "release": {"ranges": "bounds"}})
    assert shoal.Policy.of({**fields, "release": {"ranges": "midpoint"}})


def test_without_ranges_there_is_nothing_beside():
    asked = shoal.Policy.of({
        "columns": {"sex": {"role": "quasi"}},
        "require": [{"model": "k-anonymity", "k": 2}],
        "release": {"ranges": "bounds"},
    })  # fmt: skip
    release = shoal.anonymize(pd.DataFrame({"sex": ["f", "f", "m", "m"]}), asked)
    assert list(release.table.columns) == ["sex"]


@pytest.mark.parametrize("form", ["bounds", "midpoint"])
def test_duckdb_writes_the_same(form, tmp_path):
    source = tmp_path / "people.parquet"
    pq.write_table(pa.Table.from_pandas(people()), source)
    asked = policy(ranges=form)
    here = shoal.anonymize(source, asked)
    there = shoal.anonymize(ibis.duckdb.connect().read_parquet(str(source)), asked)
    here.save(tmp_path / "here.csv")
    certificate = there.save(tmp_path / "there.csv")
    assert (tmp_path / "here.csv").read_text() == (tmp_path / "there.csv").read_text()
    assert list(there.table.columns) == list(pd.read_csv(tmp_path / "there.csv").columns)
    back = ibis.duckdb.connect().read_csv(str(tmp_path / "there.csv"), all_varchar=True)
    assert shoal.check(back, asked).holds
    assert shoal.verify_certificate(certificate, tmp_path / "there.csv").holds


# ── read by analysts ────────────────────────────────────────────────────────────────────────────────────────

CELLS = ["20-29", "35", ">=90", "*", None, "{3, 7}"]


@pytest.mark.parametrize("kind", [pd.Series, pl.Series, lambda cells: pa.chunked_array([cells])])
def test_ranges_are_read_from_columns_of_any_kind(kind):
    found = shoal.read_ranges(kind(CELLS))
    columns = {name: [None if x is None or x != x else x for x in pd.Series(list(_values(found, name)))]
               for name in ("from", "to", "mid")}  # fmt: skip
    assert columns == {
        "from": [20, 35, 90, None, None, 3],
        "to": [29, 35, None, None, None, 7],
        "mid": [24.5, 35, None, None, None, 5],
    }
    assert list(_values({"x": shoal.may_be(kind(CELLS), 25)}, "x")) == [True, False, False, True, False, False]


def _values(frame, name):
    return frame[name].to_pylist() if isinstance(frame[name], pa.ChunkedArray) else frame[name].to_list()


def test_the_index_of_pandas_stays():
    cells = pd.Series(["20-29", "*"], index=[7, 3])
    assert list(shoal.read_ranges(cells).index) == [7, 3]
    assert list(shoal.may_be(cells, 22).index) == [7, 3]


def test_dates_are_read_as_dates():
    found = shoal.read_ranges(["1990s", "2001-02-03/2001-05-06", "*"], dates=True)
    assert found["from"] == [dt.date(1990, 1, 1), dt.date(2001, 2, 3), None]
    assert found["to"] == [dt.date(1999, 12, 31), dt.date(2001, 5, 6), None]
    assert shoal.may_be(["1990s", "2001-02", "*"], dt.date(2001, 2, 3)) == [False, True, True]


def test_what_a_cell_may_be():
    assert shoal.may_be(["{low, medium}", "high", "*", "low"], "low") == [True, False, True, True]
    assert shoal.may_be(["351**", "35138", "36***", "*"], "35138") == [True, True, False, True]
    assert shoal.may_be(["[0.5, 1)", "[1, 2)"], 1) == [False, True]


def test_a_whole_table_is_no_column():
    with pytest.raises(shoal.ShoalError, match="cells must be a pandas, polars or pyarrow column"):
        shoal.read_ranges(pd.DataFrame({"age": ["20-29"]}))


@given(st.lists(st.tuples(numbers, numbers).map(sorted), min_size=1, max_size=8), numbers)
def test_a_cell_may_be_what_lies_between_its_bounds(pairs, value):
    cells = [written_range(str(first), str(last)) for first, last in pairs]
    assert shoal.may_be(cells, value) == [first <= value <= last for first, last in pairs]
