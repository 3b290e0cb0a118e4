"""Loops over all columns at once, against NumPy column by column."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.compiled.jit import CompiledLoop
from shoal.compiled.leaves import add_by_leaf, recode_leaves, recoded_leaves, records_by_leaf


@st.composite
def leaves_and_counts(draw):
    """Leaves of rows, how many leaves each column has, and the records of each row."""
    n_leaves = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    n_rows = draw(st.integers(0, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    leaves = np.array([rng.integers(0, n, n_rows) for n in n_leaves], np.int32).T
    most = draw(st.sampled_from([1, 3, 2**10, 2**31 - 1]))
    of_leaf = [rng.integers(0, most, n, endpoint=draw(st.booleans())) for n in n_leaves]
    return leaves, n_leaves, rng.integers(0, 2**40, n_rows), of_leaf


@given(case=leaves_and_counts())
def test_records_of_each_leaf_are_those_of_its_rows(case):
    leaves, n_leaves, counts, _ = case
    found = records_by_leaf(leaves, counts, n_leaves)
    for column, n, sums in zip(leaves.T, n_leaves, found, strict=True):
        assert sums.tolist() == [int(counts[column == leaf].sum()) for leaf in range(n)]


@given(case=leaves_and_counts())
def test_leaves_become_what_their_column_says_and_words_tell_rows_apart(case):
    leaves, _, _, of_leaf = case
    codes, keys = recoded_leaves(leaves, of_leaf)
    expected = [of[column] for of, column in zip(of_leaf, leaves.T, strict=True)]
    assert codes.T.tolist() == [column.tolist() for column in expected]
    bits = sum(int(of.max()).bit_length() for of in of_leaf)
    assert (keys is None) == (bits > 64)
    if keys is not None:
        rows = [tuple(row) for row in codes.tolist()]
        pairs = [(a, b) for a in range(len(rows)) for b in range(a)]
        assert all((rows[a] == rows[b]) == (keys[a] == keys[b]) for a, b in pairs)


@pytest.mark.parametrize("loop", [add_by_leaf, recode_leaves])
def test_compiled_and_interpreted_loops_do_the_same(loop: CompiledLoop):
    rng = np.random.default_rng(4)
    leaves, starts = rng.integers(0, 3, (50, 4)).astype(np.int32), np.arange(0, 15, 3)
    results = []
    for run in (loop.py_func, loop.dispatcher()):
        if loop is add_by_leaf:
            made = [np.zeros(12, np.int64)]
            run(leaves, np.arange(50), starts, *made)
        else:
            made = [np.empty((50, 4), np.int32), np.empty(50, np.uint64)]
            run(leaves, np.arange(12, dtype=np.int32), starts, np.full(4, 4, np.uint64), *made)
        results.append([array.tolist() for array in made])
    assert results[0] == results[1]
