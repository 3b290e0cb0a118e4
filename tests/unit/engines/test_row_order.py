"""The order of released rows: what they say decides, and equal rows do not stand as they stood."""

import numpy as np
import pyarrow as pa
import pytest

from shoal.engines.row_order import hash_order


@pytest.mark.parametrize("seed", [0, 1, 10**50])
def test_equal_rows_do_not_keep_their_order(seed: int) -> None:
    order = hash_order(pa.table({"a": ["x"] * 200}), seed)
    assert sorted(order.tolist()) == list(range(200))
    assert abs(np.corrcoef(order, np.arange(200))[0, 1]) < 0.3


def test_what_rows_say_decides_wherever_they_stood() -> None:
    rows = pa.table({"a": [str(i % 7) for i in range(50)], "b": [str(i % 3) for i in range(50)]})
    turned = rows.take(np.arange(50)[::-1])
    assert rows.take(hash_order(rows, 5)) == turned.take(hash_order(turned, 5))
