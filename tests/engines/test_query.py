"""Private queries: the statistics before noise are the same on every engine."""

import math
from typing import Any

import numpy as np
import pyarrow as pa

from benches import Bench
from shoal.results.dp.counting import counted_exactly
from shoal.results.dp.query import _opened, _QueryRequest

ASKED: dict[str, Any] = {
    "count": True, "persons": True, "sum": ["x", "far"], "mean": ["text"], "table": [["g", "x"]],
    "quantile": {"x": [0.5], "far": [0.5]}, "regression": {"x": ["text"], "far": ["x"]},
    "records_per_person": 3, "by": ["g"], "entity": "who", "contributions": 2,
    "bounds": {"x": (-1, 2), "text": (0, 50), "far": (0, 1e9)}, "categories": {"g": ["a", "b", None]}, "bins": {"x": 7},
}  # fmt: skip


def test_every_engine_counts_alike(bench: Bench) -> None:
    draw = np.random.default_rng(5)
    table = pa.table(
        {
            "who": [None if i % 17 == 0 else f"person {i // 3}" for i in range(240)],
            "g": draw.choice(np.array(["a", "b", "c", None], dtype=object), 240).tolist(),
            "x": [None if i % 11 == 0 else float(v) for i, v in enumerate(draw.normal(0, 2, 240))],
            # PostgreSQL raises an error where a number becomes too small for a double.
            "far": draw.choice([5e-324, 1e308, -math.inf, math.inf, math.nan, 3e8], 240),
            "text": draw.choice(["1", " 2.5", "-3e1", "1e999", "", "x", "49"], 240).tolist(),
        }
    )

    def asked(data: Any) -> Any:
        prepared = _opened(data, "epsilon=1", None, _QueryRequest(**ASKED))
        found = counted_exactly(
            prepared.rows, [one.statistic for one in prepared.calibrations], ASKED["by"], prepared.unit
        )
        return found.exact, found.people

    assert asked(bench.load(table)) == asked(table)
