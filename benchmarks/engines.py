"""What does a release cost whose rows do not fit in memory, and where does the time go?

    python benchmarks/engines.py [--rows 1000000 10000000] [--memory 4GB] [--folder FOLDER] [--json FILE]
    python benchmarks/engines.py --page FILE [FILE …]

A census-like table of eight columns (seeded) is written to Parquet and anonymized through DuckDB: k = 5, 3-diversity of
the job, at most 2 % suppressed. Every size runs in a process of its own, so that the peak of memory is its own. Disk is
what lay in its folder at most: spilled rows and the release.

The floor is measured directly before: DuckDB copies the same file with the same memory, once as it is and once sorted
by its own hash of the rows, and does nothing else. Then the same release with a column that is released as it is: it is
counted again with the others, as its values repeat, and once more joined and sorted, as if they did not. Up to a
million rows, the command line also anonymizes the table as CSV in memory, and a table of all ten columns of the census,
nearly every record of which is unique (k = 5, at most 2 % suppressed).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any

import census
from page import between, table

DOCS = Path(__file__).resolve().parents[1] / "docs"
COLUMNS = [column for column in census.COLUMNS if column.name not in ("zip", "country")]
SENSITIVE, PLAIN = "job", "salary"
IN_MEMORY = 1_000_000  # rows that are also anonymized in memory


def policy(*, plain: bool = False) -> str:
    """Seven quasi columns and a sensitive one, in TOML; or six, and one that is released as it is."""
    roles = {column.name: f'{{ role = "quasi", hierarchy = {column.hierarchy} }}' for column in COLUMNS}
    roles[SENSITIVE] = '{ role = "sensitive" }'
    if plain:
        roles[PLAIN] = '{ role = "plain" }'
    lines = ["[columns]", *(f"{name} = {role}" for name, role in roles.items())]
    lines += ["[[require]]", 'model = "k-anonymity"', "k = 5"]
    lines += ["[[require]]", 'model = "distinct-l-diversity"', "l = 3", "[release]", "max_suppression = 0.02"]
    return "\n".join(lines)


def measured_run(path: Path, target: Path, memory: str, *, plain: bool = False, joined: bool = False) -> dict[str, Any]:
    """Anonymize a file, step by step, with the clock running."""
    from shoal.engines import connect
    from shoal.engines.backends import duckdb
    from shoal.engines.ibis import IbisEngine
    from shoal.engines.run_length_rows import RowsInOrder, RunLengthRows
    from shoal.pipeline import anonymize
    from shoal.policy import Policy
    from shoal.search import SEARCHES

    spent: dict[str, float] = {}

    def timed(owner: Any, name: str, step_name: str) -> None:
        inner = owner[name] if isinstance(owner, dict) else getattr(owner, name)

        def run(*arguments: Any, **options: Any) -> Any:
            start = time.perf_counter()
            try:
                return inner(*arguments, **options)
            finally:
                spent[step_name] = spent.get(step_name, 0.0) + time.perf_counter() - start

        if isinstance(owner, dict):
            owner[name] = run
        else:
            setattr(owner, name, run)

    if joined:
        duckdb.DuckDB.repeats = lambda *_: False  # type: ignore[method-assign]
    kinds: list[type] = []
    write = duckdb.write_in_order

    def write_in_order(backend: duckdb.DuckDB, rows: RowsInOrder, *arguments: Any) -> str:
        kinds.append(type(rows))
        return write(backend, rows, *arguments)

    duckdb.write_in_order = write_in_order
    timed(SEARCHES, "optimal", "search")
    timed(IbisEngine, "count", "group by")
    timed(IbisEngine, "write", "join and write")
    timed(IbisEngine, "groups", "groups")
    start = time.perf_counter()
    engine = connect.from_files(path, memory=memory)
    release = anonymize(engine, Policy.parse(policy(plain=plain)), progress=print_progress)
    counted = spent["groups"]
    print_progress("joining, sorting and writing", 0)
    release.save(target, force=True)
    whole = time.perf_counter() - start
    verified = spent.pop("groups") - counted
    return {
        "rows": release.counted.n_records,
        "distinct": release.counted.rows.table.num_rows,
        "seconds": whole,
        "cpu": time.process_time(),
        "group by": spent["group by"],
        "search": spent["search"],
        "join and write": spent["join and write"] - verified,
        "verify": verified,
        "from counts": RunLengthRows in kinds,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "input": path.stat().st_size,
        "output": target.stat().st_size,
        "suppressed": release.suppressed,
        "loss": release.loss["loss"],
    }


def in_memory(path: Path, target: Path, said_policy: str) -> dict[str, Any]:
    """Run the command line on a CSV file in memory; the least of three runs counts, after one that is not counted."""
    import pyarrow.csv as arrow_csv
    import pyarrow.parquet as pq

    data, policy_path, written = (target.with_name(name) for name in ("table.csv", "policy.toml", "release.csv"))
    arrow_csv.write_csv(pq.read_table(path), data)
    policy_path.write_text(said_policy, encoding="utf-8")
    command = [sys.executable, "-m", "shoal", "anonymize", data, "-p", policy_path, "-o", written, "--force", "-q"]
    runs = []
    for _ in range(4):
        start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        runs.append({"cpu": cpu, "seconds": time.perf_counter() - start})
    fastest = min(runs[1:], key=lambda run: run["cpu"])
    return {**fastest, "peak": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024}


def rows_of(path: Path) -> int:
    """The number of rows of a Parquet file."""
    import pyarrow.parquet as pq

    return int(pq.read_metadata(path).num_rows)


def copied(path: Path, target: Path, memory: str, *, in_order: bool) -> dict[str, Any]:
    """Copy a file with DuckDB alone, sorted by a hash of its rows or as it is."""
    import duckdb

    start = time.perf_counter()
    settings = {"memory_limit": memory, "preserve_insertion_order": False, "temp_directory": str(target.parent)}
    with duckdb.connect(config=settings) as connection:
        names = ", ".join(column.name for column in COLUMNS)
        order = f"ORDER BY hash({names})" if in_order else ""
        connection.execute(
            f"COPY (SELECT * FROM read_parquet('{path}') {order}) TO '{target}' (FORMAT parquet, COMPRESSION zstd)"
        )
    return {
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time(),
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def print_progress(task: str, _: float) -> None:
    """Progress: what is being done now."""
    print(f"  {task}", file=sys.stderr, flush=True)


def watched(command: list[Any], folder: Path) -> dict[str, Any]:
    """What a process prints, and the most that lay in ``folder``, where it spills and writes."""
    peak = 0
    environment = os.environ | {"TMPDIR": str(folder)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        while process.poll() is None:
            time.sleep(0.2)
            peak = max(peak, sum(size(path) for path in folder.rglob("*")))
        printed = process.stdout.read() if process.stdout else ""
    if process.returncode:
        raise SystemExit(process.returncode)
    return {**json.loads(printed), "disk": peak}


def size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:  # gone meanwhile
        return 0


def write(path: Path, n: int) -> None:
    """The table as Parquet, with the eight columns; one batch of it is in memory at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    places = [census.COLUMNS.index(column) for column in COLUMNS]
    n_written = 0
    unfinished = path.with_suffix(".part")
    with pq.ParquetWriter(unfinished, pa.schema([(column.name, pa.string()) for column in COLUMNS])) as writer:
        for batch in census.codes(n):
            arrays = [
                pa.DictionaryArray.from_arrays(pa.array(batch[j]), pa.array(column.values)).cast(pa.string())
                for j, column in zip(places, COLUMNS, strict=True)
            ]
            writer.write_table(pa.table(arrays, names=[column.name for column in COLUMNS]))
            n_written += len(batch[0])
            print(f"\r{n_written:,} of {n:,} rows written", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    unfinished.rename(path)


def show(sizes: list[dict[str, Any]]) -> None:
    """Aligned text."""
    steps = ("group by", "search", "join and write", "verify")
    print(
        f"{'rows':>13}{'distinct':>12}{'seconds':>9}{'CPU s':>9}{'rows/s':>12}{'µs/row':>8}{'peak GB':>9}{'disk GB':>9}"
        f"{'copy s':>9}{'CPU s':>9}{'sorted s':>10}{'CPU s':>9}" + "".join(f"{s:>16}" for s in steps)
    )
    for row in sizes:
        shares = "".join(f"{row[step]:>9.1f} s {row[step] / row['seconds']:>4.0%}" for step in steps)
        print(
            f"{row['rows']:>13,}{row['distinct']:>12,}{row['seconds']:>9.1f}{row['cpu']:>9.1f}"
            f"{row['rows'] / row['seconds']:>12,.0f}"
            f"{row['seconds'] / row['rows'] * 1e6:>8.2f}{row['peak'] / 1e9:>9.2f}"
            f"{row['disk'] / 1e9:>9.2f}{row['copy']['seconds']:>9.1f}{row['copy']['cpu']:>9.1f}"
            f"{row['sorted copy']['seconds']:>10.1f}{row['sorted copy']['cpu']:>9.1f}{shares}"
        )


def figures(sizes: list[dict[str, Any]]) -> str:
    """The tables and sentences of docs/engines.md."""
    steps = ("group by", "search", "join and write", "verify")
    heads = ("rows", "distinct tuples", "seconds", "rows a second", "peak memory", "on disk", "copy", "sorted copy")
    main_table = table(
        (*heads, "times the sorted copy", "group by", "search", "sort, write", "verify"),
        [
            (
                f"{row['rows']:,}",
                f"{row['distinct']:,}",
                f"{row['seconds']:.1f}",
                f"{round(row['rows'] / row['seconds'], -4):,.0f}",
                f"{row['peak'] / 1e9:.1f} GB",
                f"{row['disk'] / 1e9:.1f} GB",
                f"{row['copy']['seconds']:.1f} s",
                f"{row['sorted copy']['seconds']:.1f} s",
                f"{row['seconds'] / row['sorted copy']['seconds']:.1f}",
                *(f"{row[step]:.1f} s, {row[step] / row['seconds']:.0%}" for step in steps),
            )
            for row in sizes
        ],
    )
    plain_column_table = table(
        ("rows", "plain column", "seconds", "CPU seconds", "times the sorted copy, CPU", "join, write", "peak memory"),
        [
            (
                f"{row['rows']:,}",
                "joined and sorted" if way == "joined" else "counted again",
                f"{row[way]['seconds']:.1f}",
                f"{row[way]['cpu']:.1f}",
                f"{row[way]['cpu'] / row['sorted copy']['cpu']:.1f}",
                f"{row[way]['join and write']:.1f} s",
                f"{row[way]['peak'] / 1e9:.1f} GB",
            )
            for row in sizes
            for way in ("plain", "joined")
            if way == "joined" or row[way]["from counts"]
        ],
    )
    cpu_sentences = [
        f"In memory, the command line anonymizes {row['rows']:,} rows of CSV with the first of these policies in "
        f"{row['in memory']['cpu']:.1f} seconds of CPU ({row['in memory']['seconds']:.1f} s), start-up included, "
        f"with a peak of {row['in memory']['peak'] / 1e9:.1f} GB."
        for row in sizes
        if "in memory" in row
    ] + [
        "With the ten columns of [performance](performance.md) and 5-anonymity, where nearly every row is distinct: "
        f"{row['in memory ten']['cpu']:.1f} seconds of CPU ({row['in memory ten']['seconds']:.1f} s) and "
        f"{row['in memory ten']['peak'] / 1e9:.1f} GB."
        for row in sizes
        if "in memory ten" in row
    ]
    cpu = "; ".join(
        f"{row['cpu']:.1f} s for {row['rows']:,} rows, where the sorted copy takes {row['sorted copy']['cpu']:.1f} s"
        for row in sizes
    )
    return "\n\n".join(
        [
            main_table,
            wrapped(f"Of CPU, all threads together: {cpu}."),
            wrapped(f"The same with `{PLAIN}` as a plain column, which was not counted with the others:"),
            plain_column_table,
            *map(wrapped, cpu_sentences),
        ]
    )


def wrapped(text: str) -> str:
    return textwrap.fill(text, 120, break_on_hyphens=False, break_long_words=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--memory", default="4GB", help="for DuckDB and Python together")
    parser.add_argument(
        "--folder",
        type=Path,
        help="where tables, release and what is spilled lie; a temporary one when left out. A hundred million rows "
        "take some 0.5 GB for the table, as much for the release, and about 20 GB for the sorted copy",
    )
    parser.add_argument("--json", type=Path, help="write everything measured to this file")
    parser.add_argument(
        "--page", type=Path, nargs="+", metavar="JSON", help="write docs/engines.md from such files, and end"
    )
    for hidden in ("--one", "--plain", "--joined", "--in-memory", "--in-memory-ten"):
        parser.add_argument(hidden, nargs=2, type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--copy", nargs=2, type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--sorted-copy", nargs=2, type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if paths := arguments.copy or arguments.sorted_copy:
        print(json.dumps(copied(*paths, arguments.memory, in_order=arguments.sorted_copy is not None)))
        return
    if arguments.in_memory:
        print(json.dumps(in_memory(*arguments.in_memory, policy())))
        return
    if arguments.in_memory_ten:
        path, target = arguments.in_memory_ten
        ten = target.with_name("ten.parquet")
        census.write(ten, rows_of(path))
        print(json.dumps(in_memory(ten, target, census.policy(5, 0.02))))
        return
    if paths := arguments.one or arguments.plain or arguments.joined:
        joined = arguments.joined is not None
        print(
            json.dumps(
                measured_run(*paths, arguments.memory, plain=joined or arguments.plain is not None, joined=joined)
            )
        )
        return
    if arguments.page:
        measured = [row for file in arguments.page for row in json.loads(file.read_text())]
        between(DOCS / "engines.md", Path(__file__).name, figures(sorted(measured, key=lambda row: int(row["rows"]))))
        return
    sizes = []
    if arguments.folder:
        arguments.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as scratch:
        folder = arguments.folder or Path(scratch)
        for n in [20_000, *arguments.rows]:  # the first compiles the loops, and is not shown
            path = folder / f"census8_{n}.parquet"
            if not path.exists():
                print(f"writing {n:,} rows", file=sys.stderr)
                write(path, n)
            measured = {}
            small = ["in-memory", "in-memory-ten"] if n <= IN_MEMORY else []
            for step in ("copy", "sorted-copy", "one", "plain", "joined", *small):
                with tempfile.TemporaryDirectory(dir=folder) as spilled:
                    target = Path(spilled) / "release.parquet"
                    command = [sys.executable, __file__, f"--{step}", path, target, "--memory", arguments.memory]
                    measured[step] = watched(command, Path(spilled))
            sizes.append(
                {
                    **measured.pop("one"),
                    **{step.replace("-", " "): step_figures for step, step_figures in measured.items()},
                }
            )
            print(f"{n:,} rows: {sizes[-1]['seconds']:.1f} s", file=sys.stderr)
    show(sizes[1:])
    if arguments.json:
        arguments.json.write_text(json.dumps(sizes[1:], indent=2) + "\n")


if __name__ == "__main__":
    main()
