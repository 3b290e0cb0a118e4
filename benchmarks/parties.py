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
    identifiers_of_party = [f"p{i}" if i < identifiers // 2 else f"p{party}-{i}" for i in range(identifiers)]
    return pa.table(
        {
            "age": rng.integers(0, 110, rows),
            "cost": np.exp(rng.normal(7, 1, rows)).round(2),  # nearly all different
            "ward": rng.choice(list("ABCDE"), rows),
            "id": [identifiers_of_party[i % identifiers] for i in range(rows)],
        }
    )


def questions(identifiers: list[int]) -> list[tuple[str, dict[str, Any]]]:
    """List what is asked, with the fields of its plan."""
    cases: list[tuple[str, dict[str, Any]]] = [
        ("mean", {"mean": ("age",)}),
        ("mean of different values", {"mean": ("cost",), "decimals": {"cost": 2}}),
        ("histogram", {"histogram": {"ward": tuple("ABCDE")}}),
        ("median", {"quantile": (("age", "0.5"),), "bounds": BOUNDS}),
        ("mean with noise", {"mean": ("age",), "bounds": BOUNDS, "epsilon": "1"}),
    ]
    return cases + [(f"intersection of {n}", {"intersection": "id", "at_most": n}) for n in identifiers]


def plain(tables: list[pa.Table], fields: dict[str, Any]) -> tuple[float, Any]:
    """Compute the same over all tables in one place; return the seconds and the figure."""
    start = time.perf_counter()
    whole = pa.concat_tables(tables)
    if "mean" in fields:
        figure: Any = float(np.mean(whole[fields["mean"][0]].to_numpy()))
    elif "histogram" in fields:
        figure = {row["values"]: row["counts"] for row in whole["ward"].value_counts().to_pylist()}
    elif "quantile" in fields:
        ages = np.sort(whole["age"].to_numpy())
        figure = int(ages[-(-len(ages) // 2) - 1])
    else:
        figure = len(set.intersection(*({*table["id"].to_pylist()} for table in tables)))
    return time.perf_counter() - start, figure


def free_ports(n: int) -> list[int]:
    """Return ports that nobody uses now."""
    opened = [socket.socket() for _ in range(n)]
    try:
        for server in opened:
            server.bind(("127.0.0.1", 0))
        return [server.getsockname()[1] for server in opened]
    finally:
        for server in opened:
            server.close()


def take_part(number: int, folder: Path, identifiers: list[int]) -> None:
    """Be one party: answer all questions one after the other, and print the seconds and figures as JSON."""
    results = []
    for name, fields in questions(identifiers):
        path = folder / f"{number}-{fields.get('at_most', 'rows')}.parquet"
        start, cpu_start = time.perf_counter(), time.process_time()
        result = smc.share(
            path, smc.SharePlan(**fields), party=number, parties=folder / "parties.toml", key=folder / f"{number}.key"
        )
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu_start
        results.append({"name": name, "seconds": seconds, "cpu": cpu, "figures": dict(result.figures)})
    print(json.dumps(results))


def main() -> None:
    """Print a line per question."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parties", type=int, default=3)
    parser.add_argument("--rows", type=int, default=100_000, help="of each party")
    parser.add_argument("--identifiers", type=int, nargs="+", default=[300, 1000])
    parser.add_argument("--take-part", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.take_part is not None:
        take_part(arguments.take_part, arguments.folder, arguments.identifiers)
        return
    numbers = range(1, arguments.parties + 1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tables: dict[str, list[pa.Table]] = {"rows": [people(i, arguments.rows, 1000) for i in numbers]}
        tables |= {str(n): [people(i, n, n) for i in numbers] for n in arguments.identifiers}
        for kind, party_table in tables.items():
            for i, table in zip(numbers, party_table, strict=True):
                parquet.write_table(table, folder / f"{i}-{kind}.parquet")
        addresses = [f"127.0.0.1:{port}" for port in free_ports(arguments.parties)]
        blocks = [smc.make_party(folder / str(i), address)[1] for i, address in zip(numbers, addresses, strict=True)]
        (folder / "parties.toml").write_text("\n".join(block.read_text() for block in blocks))
        command = [sys.executable, __file__, "--folder", str(folder), "--identifiers", *map(str, arguments.identifiers)]
        started = [
            subprocess.Popen([*command, "--take-part", str(i)], stdout=subprocess.PIPE, text=True) for i in numbers
        ]
        try:
            of_parties_all = [json.loads(process.communicate(timeout=900)[0]) for process in started]
        finally:
            for process in started:
                process.kill()
                process.wait()
    for i, (title, fields) in enumerate(questions(arguments.identifiers)):
        seconds, figure = plain(tables[str(fields.get("at_most", "rows"))], fields)
        of_parties = [party[i] for party in of_parties_all]
        first_figure = next(iter(of_parties[0]["figures"].values()))
        cpu = sum(process["cpu"] for process in of_parties) / arguments.parties
        print(
            f"{title}: {max(process['seconds'] for process in of_parties):.2f} s, {cpu:.2f} s of CPU at a party; plain "
            f"{seconds:.4f} s, {cpu / seconds:,.0f} times less; {_short(first_figure)} and {_short(figure)}",
            flush=True,
        )


def _short(figure: Any) -> str:
    if isinstance(figure, dict):
        return str({label: n for label, n in sorted(figure.items()) if n})
    return f"{figure:.6g}"


if __name__ == "__main__":
    main()
