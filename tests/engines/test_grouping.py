"""One GROUP BY, the same on every engine."""

from typing import Any

import pyarrow as pa

from benches import Bench, nasty
from shoal.engines.grouping import groupable

TEXTS = ["1", " 2.5", "-3e1", "1e999", "1e-99", "NaN", "", None, "x", ".5", "7\n"] * 3


def test_groups_and_numbers_are_those_of_the_rows_in_memory(bench: Bench) -> None:
    table = pa.table({"key": ["a", "b", None] * 11, "x": TEXTS})

    def asked(data: Any) -> dict[Any, Any]:
        rows = groupable(data)
        x = rows.number("x")
        found = rows.fetch(rows.table.group_by("key").agg(n=rows.table.count(), filled=x.count(), total=x.sum()))
        return {row["key"]: (row["n"], row["filled"], row["total"]) for row in found.to_pylist()}

    assert asked(bench.load(table)) == asked(table)


def test_nasty_values_are_grouped_alike(bench: Bench) -> None:
    table = nasty().select(["zip", "weight", "paid", "alive"])

    def asked(data: Any) -> dict[Any, Any]:
        rows = groupable(data)
        paid = rows.number("paid").cast("float64").sum()
        found = rows.fetch(rows.table.group_by("zip", "weight").agg(n=rows.table.count(), paid=paid))
        return {(row["zip"], row["weight"]): (row["n"], round(row["paid"] or 0, 9)) for row in found.to_pylist()}

    assert asked(bench.load(table)) == asked(table)
