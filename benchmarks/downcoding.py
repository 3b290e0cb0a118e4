"""What do the labels of a release give back, and do they single people out?

    python benchmarks/downcoding.py [--data ADULT_CSV] [--k 2 5 10] [--labels fixed tight] --json adult.json
    python benchmarks/downcoding.py --tables 30 --k 5 --json tables.json
    python benchmarks/downcoding.py --page adult.json tables.json  # writes docs/local.md and docs/attacks.md

Adult, or a public table of ``newcomer.py``, is split into two halves. A release is made of one of them, with the
proposed policy unedited: with its labels, which are fixed before classes are formed; with the tightest ones
(``tight-range``, ``tight-set``); and with labels of the hierarchies that come with the table. The attacker reads the
file of the release and its policy, and knows, which is more than the release says, which values each column has and how
often. Nothing here uses the package but to make the releases: labels are read, and the rule of the windows is applied,
by this program alone.

Downcoding (A. Cohen, "Attacks on deidentification's defenses", USENIX Security 2022): for each class the attacker lists
everything that could have been written as its label; a value that occurs in all of these is certain. The tuple of a
record is, if one column of its class is generalized and the value there is certain. A value is also certain if the
table is known to have it, and the labels of one class alone contain it.

Singling out (A. Cohen, K. Nissim, PNAS 2020): "in the box of this class, and at this end of the range, or equal to this
member of the set", for each class, each generalized column, each end and member. A try succeeds if that is true of
exactly one person of the half the release is about. The control is the other half, of which the release says nothing.
An end is the outermost value; with ``cell``, the outermost part of the range: as many values as windows of its size are
moved by. A value that one person alone has singles that person out without any release, for an attacker who knows how
often values occur; with ``shared``, such values are not tried.

Releases of other tools are attacked in the same way: ``--labels anjana`` (PyPI) and ``arx`` (SHOAL_ARX_CLASSPATH names
a compiled one) with one level per column along the hierarchies and up to 5 % of the records suppressed, ``arx-local``
with its local recoding, and ``sdcMicro`` (an R package) with its local suppression of the columns as they are.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from page import between
from page import table as markdown

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "adult" / "adult.csv"
DOCS = Path(__file__).resolve().parents[1] / "docs"
LABELS = ("fixed", "tight", "hierarchies")
PEERS = ("anjana", "arx", "arx-local", "sdcMicro")
SUPPRESSED = 0.05  # of the records, at most, where another tool may suppress some
MIN_RECORDS = 200  # records of a table
RANGE = re.compile(r"(-?[0-9.]+)-([0-9.]+)|\[(-?[0-9.e+-]+), (-?[0-9.e+-]+)([\])])")
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Result:
    """What an attack on one release achieves."""

    table: str
    labels: str
    k: int
    n_people: int
    loss: float
    generalized: int  # records with a generalized cell
    certain_cells: int
    certain_tuples: int
    tries: int
    value: float  # share of successful tries among the people of the release, with the outermost value as end
    value_control: float
    cell: float
    cell_control: float
    shared: float = float("nan")  # the same as value, for values that several people of the release have
    shared_control: float = float("nan")
    shared_tries: int = 0


# ── The attacker's own reading of labels ────────────────────────────────────────────────────────────────────


class Column:
    """What the attacker knows about a column: its values, in the order of the published rule, and their numbers."""

    def __init__(self, cells: str, texts: Sequence[str], levels: Sequence[Sequence[str]] = ()) -> None:
        counts = Counter(texts)
        self.cells = cells
        self.numeric = cells.endswith("range") and all(_number(text) is not None for text in counts if text)
        if self.numeric:
            self.values = sorted((text for text in counts if text), key=lambda text: (float(text), text))
        else:
            self.values = sorted((text for text in counts if text), key=lambda text: (-counts[text], text))
        self.counts = counts
        self.windows = _windows(len(self.values), skipped=cells == "range")
        self.below: dict[str, tuple[str, ...]] = {}  # by label of a hierarchy
        self.children: dict[str, set[str]] = {}
        for line in levels:
            if line[0] in counts:
                for child, label in pairwise(line):
                    self.below[label] = tuple(dict.fromkeys((*self.below.get(label, ()), line[0])))
                    if child != label:
                        self.children.setdefault(label, set()).add(child)
        self._certain: dict[tuple[str, ...], frozenset[str]] = {}

    def covered(self, label: str) -> tuple[str, ...]:
        """The values that a label covers, in order; one if it is a value itself."""
        if label in self.counts:
            return (label,)
        if label == "*":
            return tuple(self.values)
        if label in self.below:
            return self.below[label]
        if label.startswith("{"):
            members = {
                json.loads(m) if m.startswith('"') else m
                for m in re.findall(r'"(?:[^"\\]|\\.)*"|[^,{} ][^,{}]*', label)
            }
            return tuple(value for value in self.values if value in members)
        if self.numeric and (match := RANGE.fullmatch(label)):
            low, high = (float(match[1] or match[3]), float(match[2] or match[4]))
            open_end = match[5] == ")"
            return tuple(
                v for v in self.values if low <= float(v) and (float(v) < high if open_end else float(v) <= high)
            )
        return tuple(self.values)

    def certain(self, label: str) -> frozenset[str]:
        """The values that every class has that could be written like this."""
        covered = self.covered(label)
        if self.cells == "hierarchy":  # the lowest label of all: of two children, both occur
            children = self.children.get(label, set())
            return frozenset(children) if len(children) == 2 and children <= set(covered) else frozenset()
        if len(covered) < 2 or self.cells == "levels":
            return frozenset()
        if covered not in self._certain:
            self._certain[covered] = self._certain_in(covered)
        return self._certain[covered]

    def _certain_in(self, covered: tuple[str, ...]) -> frozenset[str]:
        if self.cells == "tight-set":
            return frozenset(covered)
        if self.cells == "tight-range":
            return frozenset((covered[0], covered[-1]))
        if len(self.values) == 2:
            return frozenset()  # half of the classes that are written so have one value
        first, last = self.values.index(covered[0]), self.values.index(covered[-1])
        certain = None
        for low in range(first, last):
            for high in range(low + 1, last + 1):  # any class of at least two values has such a lowest and highest
                if self.window(low, high) == (first, last):
                    certain = {low, high} if certain is None else certain & {low, high}
        return frozenset(self.values[i] for i in certain or ())

    def window(self, low: int, high: int) -> tuple[int, int]:
        """The published rule: of the smallest windows that contain both, the one in whose middle they are."""
        for size, listed in self.windows:
            fitting = [w for w in listed if w[0] <= low and high <= w[1]]
            if fitting:
                return min(fitting, key=lambda w: (abs(2 * w[0] + size - 1 - low - high), -w[0]))
        return 0, len(self.values) - 1

    def ends(self, label: str, kind: str) -> Iterator[tuple[str, ...]]:
        """What a try looks for: the ends of a range, or each member of a set."""
        covered = self.covered(label)
        if not self.numeric:
            yield from ((value,) for value in covered)
            return
        n = 1
        if kind == "cell":
            n = _step(len(covered)) if self.cells == "range" else 1
        yield covered[:n]
        yield covered[-n:]


def _step(n_covered: int) -> int:
    """By how many positions windows are moved that have about as many."""
    size = 3
    while 2 * size - 1 <= n_covered:
        size = 2 * size - 1
    return max(2, size // 4)


def _windows(n: int, *, skipped: bool) -> list[tuple[int, list[tuple[int, int]]]]:
    """The windows over n values, by size; without those of 9, if these are skipped."""
    listed = []
    size = 3
    while size <= n:
        step = max(2, size // 4)
        starts = [start for start in range(0, n, step) if start + size <= n]
        windows = [(start, n - 1 if start == starts[-1] else start + size - 1) for start in starts]
        if not (skipped and size == 9):
            listed.append((size, [window for window in windows if window != (0, n - 1)]))
        size = 2 * size - 1
    return listed


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


# ── The attack ──────────────────────────────────────────────────────────────────────────────────────────────


def attacked(table: str, labels: str, k: int, loss: float, folder: Path) -> Result:
    """Attack the release in a folder, of the people in people.csv, with others.csv as the control."""
    policy = tomllib.loads((folder / "policy.toml").read_text(encoding="utf-8"))
    quasi = [name for name, column in policy["columns"].items() if column["role"] == "quasi"]
    release, people, control = (_read(folder / name) for name in ("release.csv", "people.csv", "others.csv"))
    columns = [
        Column(
            "levels" if labels in PEERS else policy["columns"][name].get("cells", "hierarchy"),
            people[name].tolist(),
            _levels(folder / f"{name}.csv"),
        )
        for name in quasi
    ]
    classes = release.groupby(quasi, sort=False, dropna=False).size()
    labels_of = [key if isinstance(key, tuple) else (key,) for key in classes.index]
    sizes = classes.to_numpy()
    spread = np.array([[len(c.covered(label)) > 1 for c, label in zip(columns, key, strict=True)] for key in labels_of])
    alone = _alone(columns, labels_of)
    n_cells = n_tuples = 0
    for i, key in enumerate(labels_of):
        for j in np.flatnonzero(spread[i]).tolist():
            certain = columns[j].certain(key[j]) | alone.get((i, j), frozenset())
            n_cells += min(len(certain), int(sizes[i]))
            n_tuples += min(len(certain), int(sizes[i])) if spread[i].sum() == 1 else 0
    tries: dict[str, list[int]] = {kind: [0, 0, 0] for kind in ("value", "cell", "shared")}
    inside = [_Inside(columns, quasi, frame) for frame in (people, control)]
    for i, key in enumerate(labels_of):
        rows = [half_rows.rows(key) for half_rows in inside]
        for j in np.flatnonzero(spread[i]).tolist():
            for kind, counted in tries.items():
                for wanted in columns[j].ends(key[j], kind):
                    if kind == "shared" and columns[j].counts[wanted[0]] < 2:
                        continue
                    counted[0] += 1
                    for half, half_rows in enumerate(inside):
                        counted[1 + half] += half_rows.matching(rows[half], j, wanted) == 1
    shares = [tries[kind][1 + half] / max(1, tries[kind][0]) for kind in tries for half in (0, 1)]
    return Result(
        table,
        labels,
        k,
        len(people),
        loss,
        int(sizes[spread.any(axis=1)].sum()),
        n_cells,
        n_tuples,
        tries["value"][0],
        *shares,
        tries["shared"][0],
    )


def _levels(path: Path) -> list[list[str]]:
    """The lines of a hierarchy."""
    return [line.split(";") for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def _alone(columns: Sequence[Column], labels_of: Sequence[Sequence[str]]) -> dict[tuple[int, int], frozenset[str]]:
    """Values that the table is known to have, and that the label of one class alone contains."""
    out: dict[tuple[int, int], frozenset[str]] = {}
    for j, column in enumerate(columns):
        rows_of_value: dict[str, list[int]] = {value: [] for value in column.values}
        for i, key in enumerate(labels_of):
            for value in column.covered(key[j]):
                rows_of_value[value].append(i)
        for value, classes in rows_of_value.items():
            if len(classes) == 1 and len(column.covered(labels_of[classes[0]][j])) > 1:
                at = (classes[0], j)
                out[at] = out.get(at, frozenset()) | {value}
    return out


class _Inside:
    """People, and which of them are in a box."""

    def __init__(self, columns: Sequence[Column], quasi: Sequence[str], frame: pd.DataFrame) -> None:
        self.columns = columns
        self.texts = [frame[name].to_numpy() for name in quasi]
        self._masks: dict[tuple[int, str], Mask] = {}

    def rows(self, key: Sequence[str]) -> NDArray[np.int64]:
        rows = np.arange(len(self.texts[0]))
        for j, label in enumerate(key):
            if (j, label) not in self._masks:
                self._masks[j, label] = np.isin(self.texts[j], self.columns[j].covered(label)) | (label == "*")
            rows = rows[self._masks[j, label][rows]]
        return rows

    def matching(self, rows: NDArray[np.int64], j: int, wanted: Sequence[str]) -> int:
        return sum(self.texts[j][row] in wanted for row in rows.tolist())


def _read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype=str, keep_default_na=False)


# ── The releases ────────────────────────────────────────────────────────────────────────────────────────────


def released(people: pd.DataFrame, labels: str, k: int, folder: Path, hierarchies: Path | None = None) -> float:
    """Write a release and its policy, with nothing edited but k and the kind of labels; return its loss."""
    import shoal

    people.to_csv(folder / "people.csv", index=False)
    proposed = shoal.inspect(folder / "people.csv").policy
    fields = proposed.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    fields["require"] = [{"model": "k-anonymity", "k": k}]
    for name, column in fields["columns"].items():
        if column["role"] != "quasi":
            continue
        if labels == "tight" and column.get("cells") in ("range", "set"):
            column["cells"] = f"tight-{column['cells']}"
        if labels in ("hierarchies", *PEERS) and hierarchies is not None:
            column |= {"cells": "hierarchy", "hierarchy": f"{name}.csv"}
            shutil.copy(hierarchies / f"adult_hierarchy_{name}.csv", folder / f"{name}.csv")
    policy = shoal.Policy.of(fields, folder)
    (folder / "policy.toml").write_text(policy.to_toml(), encoding="utf-8")
    if labels in PEERS:
        return by_peer(labels, people, policy.quasi, k, folder)
    release = shoal.anonymize(folder / "people.csv", policy)
    release.save(folder / "release.csv", force=True)
    return float(release.loss["loss"])


def by_peer(tool: str, people: pd.DataFrame, quasi: Sequence[str], k: int, folder: Path) -> float:
    """Write a release by another tool; return its loss, with a suppressed record counting as 1."""
    sizes = {}
    for name in quasi:
        lines = {line[0]: line for line in _levels(folder / f"{name}.csv")}
        values = people[name].unique()
        labels = (label for at in range(len(lines[values[0]])) for label in {lines[value][at] for value in values})
        sizes[name] = dict.fromkeys(labels, 0) | {"*": len(values)}
        for value in values:
            for label in {value, *lines[value]} - {"*"}:
                sizes[name][label] = sizes[name].get(label, 0) + 1
    if tool == "anjana":
        _by_anjana(people, quasi, k, folder)
    elif tool == "sdcMicro":
        _by_sdcmicro(people, quasi, k, folder)
    else:
        driver = Path(__file__).parent / "arx" / "Release.java"
        recoding = "local" if tool == "arx-local" else "global"
        command = ["java", "-cp", os.environ["SHOAL_ARX_CLASSPATH"], driver, folder, k, SUPPRESSED, recoding, *quasi]
        subprocess.run(list(map(str, command)), check=True, capture_output=True)
    release = _read(folder / "release.csv")
    cells = [release[name].map(sizes[name]).sub(1).div(people[name].nunique() - 1).sum() for name in quasi]
    n_suppressed = len(people) - len(release)
    return float((sum(cells) / len(quasi) + n_suppressed) / len(people))


def _by_anjana(people: pd.DataFrame, quasi: Sequence[str], k: int, folder: Path) -> None:
    from anjana.anonymity import k_anonymity

    hierarchies = {}
    for name in quasi:
        lines = {line[0]: line for line in _levels(folder / f"{name}.csv")}
        levels = range(len(lines[people[name].iloc[0]]))
        hierarchies[name] = {at: np.array([lines[value][at] for value in people[name]]) for at in levels}
    with pd.option_context("future.infer_string", False):  # anjana takes lists and NumPy arrays only
        plain = people[list(quasi)].astype(object)
        release = k_anonymity(plain, [], list(quasi), k, 100 * SUPPRESSED, hierarchies)
    release.to_csv(folder / "release.csv", index=False)


def _by_sdcmicro(people: pd.DataFrame, quasi: Sequence[str], k: int, folder: Path) -> None:
    """Suppress cells of the columns as they are; a suppressed one is written as a star."""
    people[list(quasi)].to_csv(folder / "keys.csv", index=False)
    script = f"""
        suppressMessages(library(sdcMicro))
        keys <- read.csv("{folder}/keys.csv", colClasses = "factor")
        done <- localSuppression(keys, keyVars = seq_along(keys), k = {k})
        out <- sapply(done$xAnon, as.character)
        out[is.na(out)] <- "*"
        colnames(out) <- strsplit("{"|".join(quasi)}", "|", fixed = TRUE)[[1]]
        write.csv(out, "{folder}/release.csv", row.names = FALSE, quote = TRUE)
    """
    subprocess.run(["Rscript", "-e", script], check=True, capture_output=True)


def halves(table: pd.DataFrame) -> list[pd.DataFrame]:
    """Two halves of a table, drawn at random."""
    order = np.random.default_rng(0).permutation(len(table))
    return [table.iloc[np.sort(part)].reset_index(drop=True) for part in np.array_split(order, 2)]


def tried(name: str, table: pd.DataFrame, labels: str, k: int, hierarchies: Path | None = None) -> Result:
    """Release one half of a table, and attack it."""
    inside, outside = halves(table)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        outside.to_csv(folder / "others.csv", index=False)
        loss = released(inside, labels, k, folder, hierarchies)
        return attacked(name, labels, k, loss, folder)


def adult(path: Path, ks: Sequence[int], kinds: Sequence[str]) -> Iterator[Result]:
    """Adult in two halves."""
    table = pd.read_csv(path, sep=";", dtype=str, keep_default_na=False)
    for k in ks:
        for labels in kinds:
            yield tried("Adult", table, labels, k, path.parent)


def public(n_tables: int, ks: Sequence[int], kinds: Sequence[str]) -> Iterator[Result]:
    """Public tables in which every record is a person."""
    from newcomer import APART, PERSONS, TRIED, loaded

    n_accepted = 0
    for name in dict.fromkeys(name for name in (*TRIED, *APART) if name not in PERSONS):
        table = loaded(name)
        if n_accepted == n_tables or len(table) < MIN_RECORDS:
            continue
        with tempfile.TemporaryDirectory() as folder:  # its texts, as they are in a file
            table.to_csv(Path(folder) / "table.csv", index=False)
            table = _read(Path(folder) / "table.csv")
        try:
            results = [tried(name, table, labels, k) for k in ks for labels in kinds]
        except Exception as error:  # such as no quasi-identifier in the proposal
            print(f"{name}: {type(error).__name__}", flush=True)
            continue
        n_accepted += 1
        yield from results


# ── The pages ───────────────────────────────────────────────────────────────────────────────────────────────


def of_adult(results: Sequence[Result]) -> str:
    """The table about Adult."""
    head = ("k, labels", "loss", "certain tuples", "certain cells", "singled out", "control", "excess")
    rows = [
        (
            f"{r.k}, {NAMES.get(r.labels, r.labels)}",
            f"{r.loss:.4f}",
            f"{r.certain_tuples:,} of {r.generalized:,}",
            f"{r.certain_cells:,}",
            *_shares(r.value, r.value_control),
        )
        for r in sorted(results, key=lambda r: (r.k, r.labels in PEERS, -r.loss))
    ]
    return markdown(head, rows)


def of_tables(results: Sequence[Result]) -> str:
    """The table about public tables, and all of them together."""
    head = (
        "table",
        "people",
        "loss",
        "certain tuples",
        "tries",
        "singled out",
        "control",
        "excess",
        "without unique values",
    )
    fixed = sorted((r for r in results if r.labels == "fixed"), key=lambda r: r.table)
    rows = [
        (
            r.table.replace("statsmodels:", ""),
            f"{r.n_people:,}",
            f"{r.loss:.4f}",
            str(r.certain_tuples),
            f"{r.tries:,}",
            *_shares(r.value, r.value_control),
            _shares(r.shared, r.shared_control)[2] if r.shared_tries else "",
        )
        for r in fixed
    ]
    n, n_shared = sum(r.tries for r in fixed), sum(r.shared_tries for r in fixed)
    all_tries = [sum(getattr(r, name) * r.tries for r in fixed) / n for name in ("value", "value_control")]
    of_shared = [
        sum(getattr(r, name) * r.shared_tries for r in fixed if r.shared_tries) / max(1, n_shared)
        for name in ("shared", "shared_control")
    ]
    together = (
        f"{len(fixed)} tables, all tries together",
        f"{sum(r.n_people for r in fixed):,}",
        f"{sum(r.loss for r in fixed) / len(fixed):.4f}",
        str(sum(r.certain_tuples for r in fixed)),
        f"{n:,}",
        *_shares(*all_tries),
        _shares(*of_shared)[2],
    )
    return markdown(head, [*rows, together])


def _shares(inside: float, outside: float) -> tuple[str, str, str]:
    """Write the success inside, outside and the difference in percent."""
    return f"{100 * inside:.1f} %", f"{100 * outside:.1f} %", f"{100 * (inside - outside):.1f}"


NAMES = {
    "fixed": "windows",
    "tight": "tight",
    "hierarchies": "of a hierarchy",
    "arx": "ARX, one level per column",
    "arx-local": "ARX, local recoding",
    "anjana": "anjana, one level per column",
    "sdcMicro": "sdcMicro, local suppression",
}
TABLES = "Public tables, each split into two halves, one of them released with the unedited proposal (windows):"


def main() -> None:
    """Attack, and print what was achieved."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--k", type=int, nargs="*", default=[2, 5, 10])
    parser.add_argument("--labels", nargs="*", choices=[*LABELS, *PEERS])
    parser.add_argument("--tables", type=int, default=0, help="this many public tables instead of Adult")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--page", type=Path, nargs="*", help="write the documentation from such files; measure nothing")
    arguments = parser.parse_args()
    if arguments.page:
        results = [Result(**fields) for path in arguments.page for fields in json.loads(path.read_text())]
        adults, tables = ([r for r in results if (r.table == "Adult") == is_adult] for is_adult in (True, False))
        if adults:
            between(DOCS / "local.md", "downcoding.py", of_adult([r for r in adults if r.labels not in PEERS]))
        if adults and tables:
            between(DOCS / "attacks.md", "downcoding.py", f"{of_adult(adults)}\n\n{TABLES}\n\n{of_tables(tables)}")
        return
    results = []
    kinds = arguments.labels or LABELS
    measured = (
        public(arguments.tables, arguments.k, kinds) if arguments.tables else adult(arguments.data, arguments.k, kinds)
    )
    for result in measured:
        results.append(result)
        print(
            f"{result.table} {result.labels} k={result.k}: loss {result.loss:.4f}; certain: "
            f"{result.certain_tuples} tuples of {result.generalized} records, {result.certain_cells} cells; "
            f"singled out, value {100 * result.value:.1f} / {100 * result.value_control:.1f} %, "
            f"cell {100 * result.cell:.1f} / {100 * result.cell_control:.1f} %, "
            f"shared {100 * result.shared:.1f} / {100 * result.shared_control:.1f} % of {result.shared_tries}",
            flush=True,
        )
        if arguments.json:
            arguments.json.write_text(json.dumps([asdict(result) for result in results], indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
