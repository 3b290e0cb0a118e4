"""How does the cost of an optimal release grow with rows, columns and distinct tuples?

    python benchmarks/scale.py [--largest ROWS] [--json FILE] [--svg FILE]

A census-like table is generated (seeded), counted and searched: k = 5, at most 2 % suppressed, arx-loss. Then a
lattice of more than a billion nodes with a time budget: the proof, or the gap that is left.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import census
import numpy as np

from shoal.models.size import KAnonymity
from shoal.search import SEARCHES, Problem
from shoal.search.cost import loss_of
from shoal.table import builders
from shoal.table.frequency import FrequencyTable, counted
from shoal.table.hierarchy import Hierarchy

K, SHARE = 5, 0.02


def hierarchies() -> tuple[Hierarchy, ...]:
    """As the policy of the generated table describes them."""
    from shoal.policy import Policy

    policy = Policy.parse(census.policy(K, SHARE))
    return tuple(
        builders.build(
            c.name, policy.columns[c.name].hierarchy, c.values, nulls=False, uncovered="error", folder=Path()
        )
        for c in census.COLUMNS
    )


def table(n: int, columns: int) -> FrequencyTable:
    """The first columns of a generated table of ``n`` rows, counted."""
    built = hierarchies()[:columns]
    place = [h.encode(c.values) for h, c in zip(built, census.COLUMNS, strict=False)]
    codes = np.concatenate(
        [np.column_stack([p[code] for p, code in zip(place, b, strict=False)]) for b in census.codes(n)]
    )
    return counted(tuple(h.column for h in built), codes.astype(np.int32), {}, None, built)[0]


def solved(counts: FrequencyTable, **terms: Any) -> dict[str, Any]:
    """Search, timed."""
    start, cpu = time.perf_counter(), time.process_time()
    limit = int(SHARE * counts.n_records)
    problem = Problem(counts, (KAnonymity(k=K),), limit=limit, objective="arx-loss", **terms)
    recoding = SEARCHES["optimal"](problem)
    parts = recoding.parts(problem.table)
    return {
        "rows": counts.n_records,
        "columns": len(counts.columns),
        "distinct": counts.n_classes,
        "nodes": recoding.n_nodes,
        "evaluated": recoding.n_evaluated,
        "wall": time.perf_counter() - start,
        "cpu": time.process_time() - cpu,
        "loss": loss_of(problem, recoding.released, parts, problem.objective_name),
        "proved": recoding.proved,
        "bound": recoding.bound,
    }


def large_lattice(seconds: float) -> dict[str, Any]:
    """Fifteen columns of four levels, 100,000 rows: 4^15 nodes."""
    rng = np.random.default_rng(0)
    n, sizes = 100_000, (100, 60, 40, 30, 20, 16, 12, 10, 8, 8, 6, 6, 5, 5, 4)
    common, codes, built = rng.normal(size=n), [], []
    for j, size in enumerate(sizes):
        rank = (0.9 * common + math.sqrt(1 - 0.81) * rng.normal(size=n)).argsort().argsort() / n
        ends = np.cumsum(1 / np.arange(1, size + 1) ** 1.5)
        codes.append(np.searchsorted(ends / ends[-1], rank).clip(0, size - 1))
        width = max(2, math.ceil(size ** (1 / 3)))
        paths = [(str(i), f"a{i // width}", f"b{i // width**2}", "*") for i in range(size)]
        built.append(Hierarchy.from_paths(f"c{j}", paths))
    counts, _ = counted(tuple(h.column for h in built), np.column_stack(codes).astype(np.int32), {}, None, tuple(built))
    return solved(counts, time_budget=seconds)


def svg(series: dict[str, list[tuple[float, float]]], x: str, y: str) -> str:
    """Lines on logarithmic axes, as a picture without a library."""
    points = [point for line in series.values() for point in line]
    low, high = ([f(p[axis] for p in points) for axis in (0, 1)] for f in (min, max))
    box = (60, 20, 560, 300)

    def at(point: tuple[float, float]) -> str:
        px, py = (math.log(point[axis] / low[axis]) / max(1e-9, math.log(high[axis] / low[axis])) for axis in (0, 1))
        return f"{box[0] + px * (box[2] - box[0]):.1f},{box[3] - py * (box[3] - box[1]):.1f}"

    colours = ("#0b6e99", "#c2571a", "#4d7c0f")
    lines = [
        f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{" ".join(map(at, line))}"/>'
        f'<text x="{box[2] + 6}" y="{at(line[-1]).split(",")[1]}" font-size="12" fill="{colour}">{name}</text>'
        for (name, line), colour in zip(series.items(), colours, strict=False)
    ]
    ticks = [_text(at((px, low[1])).split(",")[0], box[3] + 16, "middle", f"{px:.1g}") for px in {p[0] for p in points}]
    heights = (low[1], math.sqrt(low[1] * high[1]), high[1])
    ticks += [_text(box[0] - 6, at((low[0], py)).split(",")[1], "end", f"{py:.2g}") for py in heights]
    width, height = box[2] - box[0], box[3] - box[1]
    frame = f'<rect x="{box[0]}" y="{box[1]}" width="{width}" height="{height}" fill="none" stroke="#999"/>'
    labels = _text((box[0] + box[2]) / 2, box[3] + 34, "middle", x) + _text(box[0], 12, "start", y)
    body = "\n".join([frame, *sorted(ticks), labels, *lines])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 345" font-family="sans-serif">'
        f'<rect width="680" height="345" fill="white"/>\n{body}\n</svg>\n'
    )


def _text(x: object, y: object, anchor: str, text: str) -> str:
    return f'<text x="{x}" y="{y}" font-size="11" text-anchor="{anchor}">{text}</text>'


def show(rows: Sequence[dict[str, Any]]) -> None:
    """Aligned text."""
    print(f"{'rows':>12}{'columns':>9}{'distinct':>12}{'nodes':>16}{'seen':>8}{'wall s':>9}{'CPU s':>9}  loss, proof")
    for row in rows:
        proof = "proved" if row["proved"] else f"none below {row['bound']:.4f}"
        print(
            f"{row['rows']:>12,}{row['columns']:>9}{row['distinct']:>12,}{row['nodes']:>16,}{row['evaluated']:>8,}"
            f"{row['wall']:>9.2f}{row['cpu']:>9.2f}  {row['loss']:.4f}, {proof}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--largest", type=int, default=1_000_000, help="rows of the largest table")
    parser.add_argument("--budget", type=float, default=60, help="seconds for the large lattice")
    parser.add_argument("--json", type=Path, help="write everything measured to this file")
    parser.add_argument("--svg", type=Path, help="draw the curves to this file")
    asked = parser.parse_args()
    solved(table(1_000, 4))  # kernels are compiled or loaded before the clock runs
    sizes = [10**e for e in range(3, 9) if 10**e <= asked.largest]
    rows = []
    for n in sizes:
        print(f"{n:,} rows", file=sys.stderr)
        rows.append(solved(table(n, 10)))
    columns = []
    for q in range(2, 11):
        print(f"{q} columns", file=sys.stderr)
        columns.append(solved(table(100_000, q)))
    print("a large lattice", file=sys.stderr)
    large = large_lattice(asked.budget)
    show([*rows, *columns, large])
    if asked.json:
        asked.json.write_text(json.dumps({"rows": rows, "columns": columns, "large": large}, indent=2) + "\n")
    if asked.svg:
        line = [(row["rows"], max(row["cpu"], 1e-3)) for row in rows]
        distinct = [(row["distinct"], max(row["cpu"], 1e-3)) for row in rows]
        asked.svg.write_text(svg({"by rows": line, "by distinct": distinct}, "rows, distinct tuples", "CPU seconds"))


if __name__ == "__main__":
    main()
