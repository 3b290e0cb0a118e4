"""Counts of numbered values, in pieces or at once."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.engines import dependence
from shoal.engines.dependence import Spread, spread_of, tallied_with_nulls

NUMBERS = st.lists(st.tuples(st.integers(-1, 6), st.integers(1, 3)), max_size=12)


@pytest.mark.parametrize("few", [0, 4, 100])
@given(NUMBERS, st.booleans(), st.sampled_from([np.int32, np.int64]))
def test_every_record_is_counted_with_its_number(
    few: int, records: list[tuple[int, int]], weighed: bool, kind: type
) -> None:
    values = np.array([value for value, _ in records], kind)
    weights = np.array([n for _, n in records], np.int64) if weighed else None
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(dependence, "PIECE", 5)
        patched.setattr(dependence, "FEW_VALUES", few)
        counts, spread = tallied_with_nulls(values, weights), spread_of(values, weights)
    expected: Counter[int] = Counter()
    for value, n in records:
        expected[value] += n if weighed else 1
    assert {value - 1: n for value, n in enumerate(counts.tolist()) if n} == expected
    filled = [n for value, n in expected.items() if value >= 0]
    assert spread == Spread(sum(filled), len(filled), filled.count(1))
