"""A counter for each combination of labels, against grouping the rows anew."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.search.full_domain import cells_of_node as module
from shoal.search.full_domain.cells_of_node import cells_of_node, count_cells
from shoal.search.full_domain.rollup import KeyLayout


@st.composite
def coarsenings(draw):
    """Codes of rows, their counts, and for each column how many labels there are and which of them a code becomes."""
    n_here = draw(st.lists(st.integers(1, 9) | st.sampled_from([17, 300, 5000, 2**33]), min_size=1, max_size=6))
    n_there = [draw(st.integers(1, min(n, 7))) for n in n_here]
    n_rows = draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    known = [min(n, 5000) for n in n_here]  # a wide column of which few codes occur
    codes = np.stack([rng.integers(0, n, n_rows) for n in known], axis=1)
    onto = [rng.integers(0, n, m) for n, m in zip(n_there, known, strict=True)]
    return n_here, known, n_there, codes, onto, rng.integers(1, 2**40, n_rows)


@pytest.mark.parametrize("inner", [1, 4, 1 << 11])
@given(case=coarsenings(), with_classes=st.booleans())
def test_cells_with_any_rows_are_the_groups_of_recoded_rows(inner, case, with_classes):
    n_here, known, n_there, codes, onto, counts = case
    place = KeyLayout(n_here)
    offsets = np.concatenate([[0], np.cumsum(known)])[:-1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "INNER", inner)
        cells = cells_of_node(place, np.concatenate(onto).astype(np.uint64), offsets, known, n_there)
    keys, sums, class_of = count_cells(place.packed(codes), counts, cells, with_classes)
    recoded = np.stack([step[column] for step, column in zip(onto, codes.T, strict=True)], axis=1)
    distinct, group_of = np.unique(recoded, axis=0, return_inverse=True)
    expected = np.zeros(len(distinct), np.int64)
    np.add.at(expected, group_of.ravel(), counts)
    found = place.codes(keys)
    order = np.lexsort(found.T[::-1])
    assert (found[order] == distinct).all()
    assert sums[order].tolist() == expected.tolist()
    if with_classes:
        assert (found[class_of] == recoded).all()
    else:
        assert len(class_of) == 0
