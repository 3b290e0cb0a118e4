"""Fuzzing of whole tables: random tables, policies and entry points, against a brute force that shares no code.

    python tests/fuzz/tables.py --tables 100000 --seed 0        # or --seconds 28800, for a night

Every table is judged as it stands (``check``), and some are anonymized by an algorithm drawn at random, saved, read
back by Python's ``csv``, verified with their certificate, verified with a forged one, and replayed on new rows. The
brute force of ``definitions`` judges each of these again, record by record, in exact fractions.

Wrong:  a verdict other than the brute force's; an optimum that is none; a release, a file or a replay that does not
        keep its policy; "infeasible" where a solution exists; a forged certificate that holds.
Also:   an exception that is no ShoalError (a traceback), and a message or finding that shows a value of the table:
        every value of the generated tables contains one of ``MARKS``, which occur nowhere else.
"""

from __future__ import annotations

import argparse
import copy
import csv
import json
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a program, the tests' own modules are one folder up

import shoal
from definitions import DISTANCES, Case, Column, Label, Sensitive, best, passes
from shoal.engines.opening import opened
from shoal.errors import InfeasibleError, OutOfTimeError, PolicyError, ShoalError
from shoal.release.replay import replay, save_recoding

MARKS = ("zq", "731")  # of every text, and of every number
SUPPRESSING = {"suppress_records", "suppress_columns", "suppress_cells"}
EXACT = ("optimal", "exhaustive")
ALGORITHMS = (
    *EXACT * 4,
    "samarati",
    "incognito",
    "ola",
    "flash",
    "mingen",
    "k_minimal",
    "datafly",
    "top_down",
    "mondrian",
    "mondrian_relaxed",
    "forest",
    "forest_generalize",
    "cover",
    "local",
    "local_suppression",
    "suppress_records",
    "suppress_columns",
    "suppress_cells",
    "mdav",
)


# ── a table and what is asked of it ─────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Drawn:
    """A table with a serial number per record, a policy for it, and the same as the brute force takes it."""

    case: Case
    fields: dict[str, Any]  # the policy
    folder: Path  # where its hierarchy files are
    serials: tuple[str, ...]

    @property
    def quasi(self) -> list[str]:
        return [column.name for column in self.case.columns]

    def rows(self) -> list[dict[str, Label]]:
        """The table, a dict per record."""
        case = self.case
        return [
            dict(zip(self.quasi, case.rows[i], strict=True))
            | {name: column.values[i] for name, column in case.sensitive.items()}
            | {"serial": self.serials[i]}
            | ({} if case.persons is None else {"person": f"zqp{case.persons[i]}"})
            for i in range(case.n)
        ]


SHAPES = (
    ("01", "00"),
    ("012", "001", "000"),
    ("012", "000"),
    ("0123", "0011", "0000"),
    ("01", "01", "00"),
    ("01234", "00112", "00001", "00000"),
    ("0", "0"),
)


def draw(rng: random.Random, folder: Path) -> Drawn:
    """A table of up to sixteen records and a policy that such a table sometimes keeps."""
    n = rng.randint(1, 16)
    wildcard = rng.random() < 0.2
    persons = None if wildcard or rng.random() < 0.7 else tuple(rng.randrange(1, 7) for _ in range(n))
    columns = tuple(_column(rng, name, folder) for name in "abc"[: rng.randint(1, 3)])
    sensitive = {name: _sensitive(rng, name, n, folder) for name in ("s", "u")[: rng.randint(1, 2)]}
    rows = tuple(
        tuple(None if rng.random() < 0.08 * (1 + wildcard) else rng.choice([*column.paths]) for column in columns)
        for _ in range(n)
    )
    columns = tuple(_with_null(column, any(row[j] is None for row in rows)) for j, column in enumerate(columns))
    asked = tuple(_requirement(rng, list(sensitive), [c.name for c in columns]) for _ in range(rng.randint(1, 3)))
    if any(column.values.count(None) for column in sensitive.values()):
        asked = tuple(model for model in asked if model.get("distance") != "numeric") or (_k(rng),)
    limit = rng.choice((0.0, 0.0, 0.1, 0.3, 1.0))
    case = Case(
        columns,
        rows,
        asked,
        sensitive,
        persons,
        limit=int(Fraction(str(limit)) * n),
        keep=not wildcard and rng.random() < 0.2,
        wildcard=wildcard,
    )
    fields: dict[str, Any] = {
        "columns": {
            **{c.name: {"role": "quasi", "hierarchy": f"{c.name}.csv"} for c in columns},
            **{name: {"role": "sensitive", "hierarchy": f"{name}.csv"} for name in sensitive},
            "serial": {"role": "plain"},
        },
        "require": [dict(model) for model in asked],
        "release": {
            "max_suppression": limit,
            "suppressed": "keep" if case.keep else "drop",
            "nulls": "wildcard" if wildcard else "category",
            "seed": rng.randrange(1000),
        },
    }
    if persons is not None:
        fields["columns"]["person"] = {"role": "identifier"}
        fields["release"]["entity"] = "person"
    return Drawn(case, fields, folder, tuple(f"zqr{i:03}" for i in range(n)))


def _column(rng: random.Random, name: str, folder: Path) -> Column:
    shape = rng.choice(SHAPES)
    height = len(shape) - 1
    paths: dict[Label, tuple[Label, ...]] = {}
    for leaf, codes in enumerate(zip(*shape, strict=True)):
        own = f"zq{name}{leaf}" + rng.choice(("", " ", "é", ",", '"', "\n", "'", "=")) * (rng.random() < 0.1)
        above = tuple("*" if level == height else f"zq{name}{level}{c}x" for level, c in enumerate(codes))
        paths[own] = (own, *above[1:]) if height else (own,)
    _hierarchy(folder / f"{name}.csv", paths)
    return Column(name, paths)


def _with_null(column: Column, nulls: bool) -> Column:
    """A null is a leaf that stays a null up to the top."""
    if not nulls:
        return column
    return Column(column.name, {**column.paths, None: (None,) * column.height + (column.top,)})


def _hierarchy(path: Path, paths: dict[Label, tuple[Label, ...]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=";").writerows(paths.values())


TREE: dict[Label, tuple[Label, ...]] = {
    "73130": ("73130", "731many", "731any"),
    "73104": ("73104", "731few", "731any"),
    "73102": ("73102", "731few", "731any"),
    "73111": ("73111", "731many", "731any"),
}


def _sensitive(rng: random.Random, name: str, n: int, folder: Path) -> Sensitive:
    order: list[Label] = list(TREE)[: rng.randint(1, 4)]
    paths = dict(TREE)
    if rng.random() < 0.15:
        order.append(None)
        paths[None] = (None, None, "731any")
    weights = [rng.choice((1, 1, 3)) for _ in order]
    _hierarchy(folder / f"{name}.csv", TREE)
    return Sensitive(name, tuple(rng.choices(order, weights, k=n)), (*TREE, None), paths)


def _k(rng: random.Random) -> dict[str, Any]:
    return {"model": "k-anonymity", "k": rng.randint(1, 4)}


def _requirement(rng: random.Random, sensitive: Sequence[str], quasi: Sequence[str]) -> dict[str, Any]:
    makers = {
        "k-anonymity": lambda: (
            {"k": rng.randint(1, 4)}
            | ({"columns": sorted(rng.sample(quasi, rng.randint(1, len(quasi))))} if rng.random() < 0.2 else {})
        ),
        "maximum-risk": lambda: {"max": rng.choice((0.2, 0.25, 0.34, 0.5, 1.0))},
        "average-risk": lambda: {"max": rng.choice((0.1, 0.25, 0.4, 0.5, 0.75))},
        "sample-uniqueness": lambda: {"max": rng.choice((0.0, 0.1, 0.25, 0.5))},
        "p-sensitive": lambda: {"p": rng.randint(1, 3), "k": rng.randint(3, 4)},
        "distinct-l-diversity": lambda: {"l": rng.randint(1, 3)},
        "entropy-l-diversity": lambda: {"l": rng.choice((1, 1.2, 1.5, 2, 2.5, 3))},
        "recursive-l-diversity": lambda: {"c": rng.choice((0.5, 1, 1.5, 2, 3)), "l": rng.randint(1, 3)},
        "t-closeness": lambda: {
            "t": rng.choice((0, 0.1, 0.2, 0.25, 0.375, 0.5, 0.7, 1)),
            "distance": rng.choice(list(DISTANCES)),
        },
        "alpha-k-anonymity": lambda: {"alpha": rng.choice((0.3, 0.5, 0.6, 0.75, 1)), "k": rng.randint(1, 3)},
        "basic-beta-likeness": lambda: {"beta": rng.choice((0.1, 0.5, 1, 2))},
        "enhanced-beta-likeness": lambda: {"beta": rng.choice((0.1, 0.5, 1, 2))},
        "delta-disclosure": lambda: {"delta": rng.choice((0.2, 0.5, 1, 1.5)), "absent": rng.choice(("fail", "ignore"))},
    }
    model = rng.choice(["k-anonymity", *makers])
    found = {"model": model, **makers[model]()}
    if model not in SIZES and rng.random() < 0.5:
        found["column"] = rng.choice(sensitive)
    return found


SIZES = {"k-anonymity", "maximum-risk", "average-risk", "sample-uniqueness"}
WHOLE = {"average-risk", "sample-uniqueness"}  # judged on the release as a whole


# ── the brute force ─────────────────────────────────────────────────────────────────────────────────────────


def holds(case: Case, model: dict[str, Any], tuples: dict[int, tuple[Label, ...]]) -> bool:
    """Whether records, released as ``tuples`` by their number, satisfy one requirement."""
    names = [column.name for column in case.columns]
    chosen = [j for j, name in enumerate(names) if name in model.get("columns", names)]
    shown = {i: tuple(told[j] for j in chosen) for i, told in tuples.items()}
    alike: dict[tuple[Label, ...], list[int]] = {}
    for mine in set(shown.values()):
        if case.wildcard:
            alike[mine] = [
                i
                for i, told in shown.items()
                if all(a == b or a is None or b is None for a, b in zip(mine, told, strict=True))
            ]
        else:
            alike[mine] = [i for i, told in shown.items() if told == mine]

    def crowd(mine: tuple[Label, ...]) -> int:
        return len(alike[mine]) if case.persons is None else len({case.persons[i] for i in alike[mine]})

    match model["model"]:
        case "maximum-risk":
            return all(Fraction(1, crowd(mine)) <= Fraction(str(model["max"])) for mine in alike)
        case "average-risk":
            risks = [Fraction(1, crowd(mine)) for mine in shown.values()]
            return not risks or sum(risks) / len(risks) <= Fraction(str(model["max"]))
        case "sample-uniqueness":
            alone = sum(crowd(mine) == 1 for mine in shown.values())
            return not shown or Fraction(alone, len(shown)) <= Fraction(str(model["max"]))
    return all(passes(case, model, members) for members in alike.values())


# ── what was found ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Tally:
    """Counts of what was compared, and the cases that went wrong."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def compare(self, what: str, found: object, expected: object, case: str) -> None:
        self.counts[what] += 1
        if found != expected:
            self.wrong.append(f"{what}: found {found}, expected {expected} ({case})")

    def silent(self, text: str, case: str) -> None:
        """A text for people must not show a value."""
        self.counts["messages read"] += 1
        if any(mark in text for mark in MARKS):
            self.wrong.append(f"a message shows a value ({case})")

    def crashed(self, case: str) -> None:
        self.wrong.append(f"traceback ({case}):\n{traceback.format_exc()}")


def run_case(seed: int, number: int, tally: Tally, every: int = 5) -> None:
    """One table through the entry points, which its own seed decides; one in ``every`` is released too."""
    rng = random.Random(f"{seed}/{number}")
    name = f"seed {seed}, table {number}"
    with tempfile.TemporaryDirectory() as scratch:
        drawn = draw(rng, Path(scratch))
        tally.counts["tables"] += 1
        try:
            policy = shoal.Policy.of(copy.deepcopy(drawn.fields), drawn.folder)
            _check_as_it_stands(rng, drawn, policy, tally, name)
            if number % every == 0:
                _anonymized(rng, drawn, tally, name)
        except ShoalError as error:
            tally.silent(str(error), name)
            tally.wrong.append(f"refused ({name}): {type(error).__name__}: {error}")
        except Exception:
            tally.crashed(name)


def _frame(rng: random.Random, drawn: Drawn, *, kind: str | None = None) -> Any:
    """The table as one of the kinds that a user may have, its rows in any order."""
    rows = drawn.rows()
    rng.shuffle(rows)
    names = list(rows[0])
    columns = {name: pa.array([row[name] for row in rows], pa.string()) for name in names}
    kind = kind or rng.choice((*("arrow",) * 12, *("pandas",) * 4, *("parquet",) * 3, "duckdb"))
    if kind == "pandas":
        frame = pd.DataFrame({name: pd.array(column.to_pylist(), dtype="string") for name, column in columns.items()})
        return frame.set_index(pd.Index(rng.sample(range(100), len(frame))))
    if kind == "arrow":
        return pa.table(columns)
    path = drawn.folder / "table.parquet"
    pq.write_table(pa.table(columns), path)
    return path if kind == "parquet" else opened(str(path), engine="duckdb")


def _check_as_it_stands(rng: random.Random, drawn: Drawn, policy: shoal.Policy, tally: Tally, name: str) -> None:
    verdicts = shoal.check(_frame(rng, drawn), policy)
    tuples = dict(enumerate(drawn.case.rows))
    expected = [holds(drawn.case, dict(model), tuples) for model in drawn.case.asked]
    for verdict, truth in zip(verdicts.verdicts, expected, strict=True):
        tally.compare("verdicts of check", verdict.holds, truth, f"{name}, {verdict.asked}")
    left = drawn.case.persons is not None  # the identifier is still there
    tally.compare("answers of check", verdicts.holds, all(expected) and not left, name)
    for finding in verdicts.findings:
        tally.silent(str(finding), name)


def _tuples(drawn: Drawn, rows: Iterator[dict[str, Label]]) -> dict[int, tuple[Label, ...]]:
    """Released rows by the number of their record."""
    place = {serial: i for i, serial in enumerate(drawn.serials)}
    return {place[str(row["serial"])]: tuple(row[name] for name in drawn.quasi) for row in rows}


def _anonymized(rng: random.Random, drawn: Drawn, tally: Tally, name: str) -> None:
    algorithm = rng.choice(ALGORITHMS)
    name = f"{name}, {algorithm}"
    fields = copy.deepcopy(drawn.fields)
    fields["release"]["algorithm"] = algorithm
    policy = shoal.Policy.of(fields, drawn.folder)
    try:
        release = shoal.anonymize(_frame(rng, drawn), policy)
    except (PolicyError, InfeasibleError, OutOfTimeError) as error:
        tally.silent(str(error), name)
        if isinstance(error, InfeasibleError) and algorithm in EXACT and not _of_release(drawn):
            tally.compare("infeasible", best(_plain(drawn.case), "loss") is None, True, name)
        tally.counts["declined"] += isinstance(error, PolicyError)
        return
    rows = _as_arrow(release.table).to_pylist()
    case, tuples = drawn.case, _tuples(drawn, iter(rows))
    for model in case.asked:
        tally.compare("requirements of releases", holds(case, dict(model), tuples), True, f"{name}, {model['model']}")
    limit = case.limit if not case.keep else 0
    tally.compare("records of releases", len(tuples) >= case.n - limit, True, name)
    tally.compare("identifiers gone", "person" in rows[0], False, name)
    for finding in release.findings:
        tally.silent(str(finding), name)
    if algorithm in EXACT and not _of_release(drawn):
        answer = best(_plain(case), "loss")
        tally.compare("optimum exists", answer is not None, True, name)
        if answer is not None and release.recoding.proved:
            tally.compare("optima", abs(release.loss["loss"] - answer.value) < 1e-9, True, name)
    _saved(rng, drawn, release, tally, name)
    _replayed(rng, drawn, release, tally, name)


def _plain(case: Case) -> Case:
    """The same with maximum risk written as k, which the brute force's lattice knows."""
    asked = tuple(
        {"model": "k-anonymity", "k": -(-1 // Fraction(str(model["max"])))}
        if model["model"] == "maximum-risk"
        else model
        for model in case.asked
    )
    return Case(case.columns, case.rows, asked, case.sensitive, case.persons, case.limit, case.keep, case.wildcard)


def _of_release(drawn: Drawn) -> bool:
    return any(model["model"] in WHOLE for model in drawn.case.asked)


def _as_arrow(table: Any) -> pa.Table:
    if isinstance(table, pa.Table):
        return table
    if isinstance(table, pd.DataFrame):
        return pa.Table.from_pandas(table, preserve_index=False)
    return table.to_pyarrow()


def _saved(rng: random.Random, drawn: Drawn, release: shoal.Release, tally: Tally, name: str) -> None:
    """What the file holds is judged by its texts; its certificate must hold, and a forged one must not."""
    path = drawn.folder / "release.csv"
    certificate = release.save(path)
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, strict=True))
    unescaped = [
        {k: v.removeprefix("'") if v.startswith("'=") else (v or None) for k, v in row.items()} for row in rows
    ]
    tuples = _tuples(drawn, iter(unescaped))
    for model in drawn.case.asked:
        tally.compare("requirements of files", holds(drawn.case, dict(model), tuples), True, name)
    tally.silent(json.dumps(certificate["findings"], ensure_ascii=False), name)
    try:
        found = shoal.verify_certificate(certificate, path)
        tally.compare("certificates contradicted", found.outcome == "fails", False, name)
        forged = copy.deepcopy(certificate)
        forged["policy"]["require"] = [{"model": "k-anonymity", "k": len(rows) + 1}]
        forged["requirements"] = [
            {
                **forged["requirements"][0],
                "asked": f"{len(rows) + 1}-anonymity",
                "figure": "k",
                "worst": len(rows) + 1.0,
            }
        ]
        tally.compare("forged certificates that hold", shoal.verify_certificate(forged, path).holds, False, name)
    except ShoalError as error:
        tally.silent(str(error), name)
        tally.wrong.append(f"verify refused ({name}): {type(error).__name__}: {error}")


def _replayed(rng: random.Random, drawn: Drawn, release: shoal.Release, tally: Tally, name: str) -> None:
    """New rows of the same columns, recoded as these were, keep the policy by themselves."""
    n = rng.randint(1, drawn.case.n)
    rows = tuple(rng.choice(drawn.case.rows) for _ in range(n))
    persons = None if drawn.case.persons is None else tuple(rng.randrange(1, 7) for _ in range(n))
    sensitive = {
        key: Sensitive(key, tuple(rng.choice(column.values) for _ in range(n)), column.order, column.paths)
        for key, column in drawn.case.sensitive.items()
    }
    case = Case(drawn.case.columns, rows, drawn.case.asked, sensitive, persons, wildcard=drawn.case.wildcard)
    new = Drawn(case, drawn.fields, drawn.folder, drawn.serials[:n])
    kept = drawn.folder / "recoding.json"
    save_recoding(release, kept, force=True)
    try:
        found = replay(kept, _frame(rng, new, kind="arrow"))
    except (InfeasibleError, PolicyError) as error:
        tally.silent(str(error), name)
        return
    tuples = _tuples(new, iter(_as_arrow(found.table).to_pylist()))
    for model in case.asked:
        tally.compare("requirements of replays", holds(case, dict(model), tuples), True, f"{name}, {model['model']}")


def fuzz(
    tables: int,
    seed: int = 0,
    *,
    seconds: float | None = None,
    first: int = 0,
    every: int = 5,
    progress: bool = False,
) -> Tally:
    """Many tables, or as many as the time allows."""
    tally, start = Tally(), time.monotonic()
    for number in range(first, first + tables):
        if seconds is not None and time.monotonic() - start > seconds:
            break
        run_case(seed, number, tally, every)
        if progress and (number + 1) % 1000 == 0:
            print(
                f"{number + 1 - first} tables, {len(tally.wrong)} wrong, {time.monotonic() - start:.0f} s", flush=True
            )
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tables", type=int, default=10**9)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first table, to repeat one")
    parser.add_argument(
        "--every", type=int, default=5, help="one table in so many is anonymized, saved, verified, replayed"
    )
    asked = parser.parse_args()
    if asked.tables == 10**9 and asked.seconds is None:
        parser.error("say how many --tables, or how many --seconds")
    tally = fuzz(asked.tables, asked.seed, seconds=asked.seconds, first=asked.first, every=asked.every, progress=True)
    for line in tally.wrong[:20]:
        print(line)
    for what, count in sorted(tally.counts.items()):
        print(f"{count:>12,}  {what}")
    print(f"{len(tally.wrong):>12,}  wrong")
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
