"""How many records share a key, with and without nulls."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from shoal.errors import DataError, PolicyError
from shoal.risk import frequencies

approx = pytest.approx

FRAME = pd.DataFrame({"a": ["x", "x", None, "y"], "b": ["1", "2", "1", None], "w": [10.0, 20, 30, 40]})


def shared(**options):
    found = frequencies(FRAME, ["a", "b"], weight="w", **options)
    return found.sample.tolist(), found.population.tolist()


def test_a_null_matches_anything():
    # (x,1) and (∅,1) match; (y,∅) and (∅,1) match; (x,2) matches nobody.
    assert shared() == ([2, 1, 3, 2], [40, 20, 80, 70])


def test_a_match_by_the_nulls_of_others_counts_alpha():
    sample, population = shared(alpha=0.25)
    assert sample == approx([1.25, 1, 2.25, 1.25])
    assert population == approx([10 + 7.5, 20, 30 + 10 + 10, 40 + 7.5])


def test_without_alpha_only_what_is_known_of_others_counts():
    assert shared(alpha=0)[0] == [1, 1, 2, 1]


def test_a_null_can_be_a_value_like_others():
    assert shared(nulls="category")[0] == [1, 1, 1, 1]


def test_a_key_of_nulls_only_could_be_everybody():
    frame = pd.DataFrame({"a": [None, "x", "y"], "b": [None, "1", None]})
    assert frequencies(frame, ["a", "b"], alpha=0).sample.tolist() == [3, 1, 1]


def test_the_same_from_every_frame():
    table = pa.Table.from_pandas(FRAME)
    for data in (table, pl.from_arrow(table)):
        assert frequencies(data, ["a", "b"], weight="w").population.tolist() == [40, 20, 80, 70]


def test_weights_may_be_written_as_text(tmp_path):
    path = tmp_path / "t.csv"
    FRAME.to_csv(path, index=False)
    assert frequencies(path, ["a", "b"], weight="w").population.tolist() == [40, 20, 80, 70]


def test_figures_of_the_whole():
    found = frequencies(FRAME, ["a", "b"])
    assert (found.uniques, found.below(3)) == (1, 3)
    assert json.loads(json.dumps(found.as_dict())) == {"records": 4, "uniques": 1, "least": 1.0}


@pytest.mark.parametrize("weight", [0.0, -1.0, np.nan, np.inf])
def test_a_weight_that_stands_for_nobody_is_refused_without_telling_it(weight):
    with pytest.raises(DataError, match=r"column 'w': 1 of 4 sampling weights"):
        frequencies(FRAME.assign(w=[weight, 1, 1, 1]), ["a"], weight="w")


def test_a_column_of_words_is_no_weight():
    with pytest.raises(DataError, match=r"column 'a': 2 of its 2 distinct values") as caught:
        frequencies(FRAME, ["b"], weight="a")
    assert "x" not in str(caught.value).replace("expected", "")


def test_bounds_of_alpha_and_names_of_nulls():
    with pytest.raises(PolicyError, match="alpha"):
        frequencies(FRAME, ["a"], alpha=1.5)
    with pytest.raises(PolicyError, match="nulls"):
        frequencies(FRAME, ["a"], nulls="forbid")
