"""Integral privacy: every engine gives the results that rows in memory give, before and after a change."""

from typing import Any

import numpy as np
import pyarrow as pa

import shoal
from benches import Bench


def test_every_engine_finds_the_same_results(bench: Bench) -> None:
    draw = np.random.default_rng(3)
    table = pa.table(
        {
            "who": [f"person {i // 2}" for i in range(60)],
            "ward": draw.choice(["a", "b"], 60).tolist(),
            "age": [None if i % 13 == 0 else int(x) for i, x in enumerate(draw.integers(20, 80, 60))],
            "cost": draw.normal(100, 20, 60).round(2).tolist(),
            "ill": draw.choice(["yes", "no"], 60).tolist(),
        }
    )
    moved = pa.concat_tables([table.slice(2), table.slice(10, 4)])
    mean: dict[str, Any] = {"statistic": "mean", "column": "age", "step": 5, "by": "ward", "entity": "who"}
    tree: dict[str, Any] = {"statistic": "tree", "column": "ill", "on": ["age", "ward", "cost"], "step": 20, "depth": 1}
    there, there_after = bench.load(table), bench.load(moved)
    for given, before, after in ((mean, there, there_after), (tree, there, None)):
        local = {"after": None if after is None else moved}
        found = shoal.integral_privacy(before, **given, k=2, subsets=60, after=after)
        expected = shoal.integral_privacy(table, **given, k=2, subsets=60, **local)
        assert [one.as_dict() for one in found] == [one.as_dict() for one in expected]
