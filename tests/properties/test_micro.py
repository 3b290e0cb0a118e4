"""Laws of microaggregation, whatever the table."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from examples import examples
from shoal.masking import microaggregate
from shoal.notation.forms import read_range
from shoal.notation.numbers import parse_number

columns = st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 9), st.sampled_from("abc")), min_size=4, max_size=40)


@examples(60)
@given(columns, st.integers(1, 4), st.sampled_from(["mdav", "v-mdav"]), st.booleans())
def test_groups_have_k_to_2k_minus_1_records_and_keep_the_mean(rows, k, method, mixed):
    table = pa.table({name: list(column) for name, column in zip("xyc", zip(*rows, strict=True), strict=True)})
    found = microaggregate(table, ["x", "y"], k=k, method=method, categories=["c"] if mixed else [])
    sizes = Counter(zip(*(found.table[name].to_pylist() for name in ("x", "y")), strict=True))
    assert min(sizes.values()) >= k
    assert found.smallest >= k
    assert found.groups["x"] >= len(rows) // (2 * k - 1)
    for name in ("x", "y"):
        assert np.mean(found.table[name]) == pytest.approx(np.mean(table[name]), abs=1e-9)
    assert 0 <= found.loss <= 1 + 1e-12


@examples(40)
@given(columns, st.integers(1, 4))
def test_improving_and_choosing_each_column_for_itself_lose_no_more(rows, k):
    table = pa.table({name: list(column) for name, column in zip("xyc", zip(*rows, strict=True), strict=True)})
    plain = microaggregate(table, ["x", "y"], k=k).loss
    assert microaggregate(table, ["x", "y"], k=k, improve=True).loss <= plain + 1e-9
    assert microaggregate(table, ["x", "y"], k=k, method="univariate").loss <= plain + 1e-9


@examples(30)
@given(columns, st.integers(2, 4), st.sampled_from(["mean", "median", "mode", "tight-range"]))
def test_a_search_with_centres_holds_and_every_centre_lies_within_its_class(rows, k, cells):
    x, y, c = (list(column) for column in zip(*rows, strict=True))
    serial = [str(i) for i in range(len(rows))]
    policy = shoal.Policy.of({
        "columns": {
            "x": {"role": "quasi", "hierarchy": {"intervals": [10, 50]}, "cells": cells},
            "y": {"role": "quasi", "hierarchy": {"intervals": [2]}, "cells": cells},
            "c": {"role": "quasi"},
            "serial": {"role": "plain"},
        },
        "require": [{"model": "k-anonymity", "k": k}],
        "release": {"algorithm": "mdav"},
    })  # fmt: skip
    release = shoal.anonymize(pa.table({"x": x, "y": y, "c": c, "serial": serial}), policy)
    shown = release.table.to_pylist()
    assert min(Counter((row["x"], row["y"], row["c"]) for row in shown).values()) >= k
    assert len(shown) == len(rows)
    assert 0 <= release.loss["loss"] <= 1
    for name, original in (("x", x), ("y", y)):
        by_label = {}
        for row in shown:
            by_label.setdefault((row["x"], row["y"], row["c"]), []).append((row[name], original[int(row["serial"])]))
        for pairs in by_label.values():
            label, own = str(pairs[0][0]), [value for _, value in pairs]
            if cells == "tight-range" and (ends := read_range(label)) is not None:
                assert (min(own), max(own)) >= (ends[0], -np.inf)
                assert max(own) <= ends[1]
            else:
                assert min(own) <= parse_number(label) <= max(own)
