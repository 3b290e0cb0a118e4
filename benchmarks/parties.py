"""How long does a joint computation take, beside the same over one table?

    python benchmarks/parties.py [--parties N] [--rows N] [--identifiers N ...]

Real processes on this computer, over TLS, with invented people. A joint run is told without the start of the processes
and the imports, which every command pays; CPU seconds are those of one party, on average.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from shoal import smc

BOUNDS = {"age": ("0", "120")}


def people(party: int, rows: int, identifiers: int) -> pa.Table:
    """Invent the table of a party; half of its first identifiers are those of everybody."""
    rng = np.random.default_rng(party)
    known = [f"p{i}" if i < identifiers // 2 else f"p{party}-{i}" for i in range(identifiers)]
    return pa.table(
        {
            "age": rng.integers(0, 110, rows),
            "cost": np.exp(rng.normal(7, 1, rows)).round(2),  # nearly all different
            "ward": rng.choice(list("ABCDE"), rows),
            "id": [known[i % identifiers] for i in range(rows)],
        }
    )


def questions(identifiers: list[int]) -> list[tuple[str, dict[str, Any]]]:
    """List what is asked, with the fields of its plan."""
    asked: list[tuple[str, dict[str, Any]]] = [
        ("mean", {"mean": ("age",)}),
        ("mean of different values", {"mean": ("cost",), "decimals": {"cost": 2}}),
        ("histogram", {"histogram": {"ward": tuple("ABCDE")}}),
        ("median", {"quantile": (("age", "0.5"),), "bounds": BOUNDS}),
        ("mean with noise", {"mean": ("age",), "bounds": BOUNDS, "epsilon": "1"}),
    ]
    return asked + [(f"intersection of {n}", {"intersection": "id", "at_most": n}) for n in identifiers]


def plain(tables: list[pa.Table], fields: dict[str, Any]) -> tuple[float, Any]:
    """Compute the same over all tables in one place; return the seconds and the figure."""
    start = time.perf_counter()
    whole = pa.concat_tables(tables)
    if "mean" in fields:
        found: Any = float(np.mean(whole[fields["mean"][0]].to_numpy()))
    elif "histogram" in fields:
        found = {row["values"]: row["counts"] for row in whole["ward"].value_counts().to_pylist()}
    elif "quantile" in fields:
        ages = np.sort(whole["age"].to_numpy())
        found = int(ages[-(-len(ages) // 2) - 1])
    else:
        found = len(set.intersection(*({*table["id"].to_pylist()} for table in tables)))
    return time.perf_counter() - start, found


def free_ports(n: int) -> list[int]:
    """Return ports that nobody uses now."""
    opened = [socket.socket() for _ in range(n)]
    try:
        for each in opened:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in opened]
    finally:
        for each in opened:
            each.close()


def take_part(number: int, folder: Path, identifiers: list[int]) -> None:
    """Be one party: answer all questions one after the other, and print the seconds and figures as JSON."""
    told = []
    for name, fields in questions(identifiers):
        path = folder / f"{number}-{fields.get('at_most', 'rows')}.parquet"
        start, used = time.perf_counter(), time.process_time()
        found = smc.share(
            path, smc.SharePlan(**fields), party=number, parties=folder / "parties.toml", key=folder / f"{number}.key"
        )
        seconds, cpu = time.perf_counter() - start, time.process_time() - used
        told.append({"name": name, "seconds": seconds, "cpu": cpu, "figures": dict(found.figures)})
    print(json.dumps(told))


def main() -> None:
    """Print a line per question."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parties", type=int, default=3)
    parser.add_argument("--rows", type=int, default=100_000, help="of each party")
    parser.add_argument("--identifiers", type=int, nargs="+", default=[300, 1000])
    parser.add_argument("--take-part", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.take_part is not None:
        take_part(given.take_part, given.folder, given.identifiers)
        return
    numbers = range(1, given.parties + 1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tables: dict[str, list[pa.Table]] = {"rows": [people(i, given.rows, 1000) for i in numbers]}
        tables |= {str(n): [people(i, n, n) for i in numbers] for n in given.identifiers}
        for kind, made in tables.items():
            for i, table in zip(numbers, made, strict=True):
                parquet.write_table(table, folder / f"{i}-{kind}.parquet")
        addresses = [f"127.0.0.1:{port}" for port in free_ports(given.parties)]
        blocks = [smc.make_party(folder / str(i), address)[1] for i, address in zip(numbers, addresses, strict=True)]
        (folder / "parties.toml").write_text("\n".join(block.read_text() for block in blocks))
        command = [sys.executable, __file__, "--folder", str(folder), "--identifiers", *map(str, given.identifiers)]
        started = [
            subprocess.Popen([*command, "--take-part", str(i)], stdout=subprocess.PIPE, text=True) for i in numbers
        ]
        try:
            told = [json.loads(each.communicate(timeout=900)[0]) for each in started]
        finally:
            for each in started:
                each.kill()
                each.wait()
    for i, (asked, fields) in enumerate(questions(given.identifiers)):
        seconds, figure = plain(tables[str(fields.get("at_most", "rows"))], fields)
        of_parties = [party[i] for party in told]
        shown = next(iter(of_parties[0]["figures"].values()))
        cpu = sum(each["cpu"] for each in of_parties) / given.parties
        print(
            f"{asked}: {max(each['seconds'] for each in of_parties):.2f} s, {cpu:.2f} s of CPU at a party; plain "
            f"{seconds:.4f} s, {cpu / seconds:,.0f} times less; {_short(shown)} and {_short(figure)}",
            flush=True,
        )


def _short(figure: Any) -> str:
    if isinstance(figure, dict):
        return str({label: n for label, n in sorted(figure.items()) if n})
    return f"{figure:.6g}"


if __name__ == "__main__":
    main()
