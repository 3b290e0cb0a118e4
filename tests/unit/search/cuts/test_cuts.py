"""Rows that are recoded and grouped in one loop, against the same step by step."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from shoal.search.cuts import cuts
from shoal.search.cuts.cuts import RowsToGroup
from shoal.tables.frequency import Domain, count_records


def counted(rng, sizes, n, *, sensitive, persons):
    codes = np.column_stack([rng.integers(0, size, n) for size in sizes]).astype(np.int32)
    values = rng.integers(0, 3, n).astype(np.int32)
    held = {Domain("s", ("a", "b", "c"), np.bincount(values, minlength=3)): values} if sensitive else {}
    names = tuple(f"c{j}" for j in range(len(sizes)))
    entities = rng.integers(0, max(1, n // 2), n).astype(np.int32) if persons else None
    return count_records(names, codes, held, entities)[0]


def same_histograms(one, other):
    return all(np.array_equal(getattr(one, of), getattr(other, of)) for of in ("starts", "values", "counts"))


@examples(800)
@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.sampled_from([1, 2, 3, 7, 300, 2**16]), min_size=1, max_size=5),
    st.integers(1, 60),
    st.booleans(),
    st.booleans(),
)
def test_the_classes_are_those_of_the_recoded_table(seed, sizes, n, sensitive, persons):
    rng = np.random.default_rng(seed)
    table = counted(rng, sizes, n, sensitive=sensitive, persons=persons)
    pieces = [rng.integers(0, min(size, 4), size).astype(np.int32) for size in sizes]
    rows = RowsToGroup(table, table.codes, sizes)
    assert rows._fits == (sum((size - 1).bit_length() for size in sizes) <= 64)
    found = rows.classes(pieces)
    expected = table.recoded(np.column_stack([of[table.codes[:, j]] for j, of in enumerate(pieces)]).astype(np.int32))
    assert found.codes.dtype == expected.codes.dtype
    np.testing.assert_array_equal(found.codes, expected.codes)
    np.testing.assert_array_equal(found.counts, expected.counts)
    for name in table.sensitive:
        assert same_histograms(found.sensitive[name], expected.sensitive[name])
    if persons:
        assert same_histograms(found.entities, expected.entities)


@pytest.mark.parametrize("fits", [True, False])
def test_a_word_that_is_too_short_changes_nothing(fits, monkeypatch):
    rng = np.random.default_rng(4)
    table = counted(rng, (5, 6), 40, sensitive=True, persons=False)
    rows = RowsToGroup(table, table.codes, (5, 6))
    monkeypatch.setattr(rows, "_fits", fits)
    monkeypatch.setattr(cuts, "derive", cuts.derive if fits else None)
    found = rows.classes([np.zeros(5, np.int32), np.arange(6, dtype=np.int32) // 2])
    assert found.codes.tolist() == [[0, first] for first in dict.fromkeys((table.codes[:, 1] // 2).tolist())]
    assert found.counts.sum() == 40
