"""Records counted into classes: many as few."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.tables import frequency
from shoal.tables.frequency import count_records


@given(
    most=st.lists(st.sampled_from([0, 1, 2, 7, 2**15, 2**31 - 1]), min_size=1, max_size=5),
    n=st.integers(1, 30),
    seed=st.integers(0, 2**32),
)
def test_many_records_are_counted_as_few_are(most, n, seed):
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, each, n, endpoint=True) for each in most], axis=1).astype(np.int32)
    codes = codes[rng.integers(0, n, n)]
    distinct, class_of, counts = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    for short in (0, 1 << 16):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(frequency, "SHORT", short)
            table, found = count_records(tuple("abcde"[: len(most)]), np.asfortranarray(codes), {})
        assert table.codes.flags.c_contiguous
        assert table.codes.tolist() == distinct.tolist()
        assert table.counts.tolist() == counts.tolist()
        assert found.tolist() == class_of.ravel().tolist()
