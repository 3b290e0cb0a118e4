"""The demo: a hospital table is linked to a voter list, anonymized for two purposes, and linked again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from shoal.attacks.read_cache import shared_reads
from shoal.demo.hospital import ANALYSIS_POLICY, POLICY, hospital, voters
from shoal.demo.linkage import Linkage, link
from shoal.engines.base import Rows
from shoal.engines.formats import atomic_files, table_files
from shoal.engines.opening import engine_of
from shoal.errors import OutputError
from shoal.pipeline import anonymize
from shoal.policy import Policy
from shoal.release import Release
from shoal.release.receipt import receipt_of, write_receipt
from shoal.report.intrusion import within_budget
from shoal.search.problem import Progress, silent

LINKING_COLUMNS = ("birth", "zip", "sex")  # what the voter list and the hospital share
PATIENTS, VOTERS, POLICY_FILE, RELEASE, CERTIFICATE, RECEIPT, REPORT = (
    "hospital.csv",
    "voters.csv",
    "policy.toml",
    "release.csv",
    "certificate.json",
    "receipt.json",
    "report.html",
)
ANALYSIS_FILE, ANALYSIS = "analysis.toml", "analysis.csv"


@dataclass(frozen=True)
class Demo:
    """The results of the demo."""

    patients: int
    before: Linkage
    after: Linkage
    release: Release  # for tables: one level per column
    certificate: dict[str, Any]
    analysis: Release  # for analysis: labels and sets, class by class
    after_analysis: Linkage

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "patients": self.patients,
            "before": self.before.as_dict(),
            "after": self.after.as_dict(),
            "certificate": self.certificate,
            "analysis": {"after": self.after_analysis.as_dict(), "loss": self.analysis.loss["loss"]},
        }

    @cached_property
    def patient(self) -> dict[str, dict[str, str]]:
        """One fictitious patient as in the hospital and as in each release."""
        tables, analysis = (_places(release) for release in (self.release, self.analysis))
        row = next(row for row in sorted(tables) if row in analysis)
        table_rows = {"before": (self._hospital, row)}
        table_rows |= {"for tables": (self.release.table, tables[row])}
        table_rows |= {"for analysis": (self.analysis.table, analysis[row])}
        return {
            name: {column: str(table[column][at].as_py()) for column in self.release.policy.quasi}
            for name, (table, at) in table_rows.items()
        }

    @property
    def _hospital(self) -> pa.Table:
        return self.release.engine.table


@shared_reads()
def demo(
    folder: Path, *, seed: int = 0, progress: Progress = silent, written: Callable[[Path], None] = lambda _: None
) -> Demo:
    """Generate the tables, link, anonymize for each purpose, and link again; write everything to ``folder``.

    ``written`` is called with every file that is finished.
    """

    def write(name: str, text: str) -> None:
        atomic_files.write_text(folder / name, text, force=True)
        written(folder / name)

    claim(folder)
    patients = hospital(seed=seed)
    register = voters(patients, seed=seed + 1)
    for name, table in ((PATIENTS, patients), (VOTERS, register)):
        table_files.write_table_file(table, folder / name, force=True, verify=lambda _: None)
        written(folder / name)
    write(POLICY_FILE, POLICY)
    write(ANALYSIS_FILE, ANALYSIS_POLICY)

    policy = Policy.load(folder / POLICY_FILE)
    engine = engine_of(folder / PATIENTS)
    before = link(patients.drop_columns(["name"]), register, LINKING_COLUMNS, owners(patients, register))
    release = anonymize(engine, policy, progress=progress)
    progress("attacking", 0)
    release = release.with_attacks(within_budget(release))  # those of the report, whose results are findings, too
    certificate = release.save(folder / RELEASE, force=True)
    written(folder / RELEASE)
    write_receipt(receipt_of(release, certificate), folder / RECEIPT, force=True)
    written(folder / RECEIPT)
    write(CERTIFICATE, json.dumps(certificate, indent=2, ensure_ascii=False) + "\n")
    progress("drawing", 0)
    # Nobody in it exists, so its records may be shown.
    release.report(folder / REPORT, certificate=certificate, show_originals=True, force=True)
    written(folder / REPORT)
    after = link(release.table, register, LINKING_COLUMNS, original=engine.table, policy=policy)

    finer = Policy.load(folder / ANALYSIS_FILE)
    analysis = anonymize(engine_of(folder / PATIENTS), finer, progress=progress)
    analysis.save(folder / ANALYSIS, force=True)
    written(folder / ANALYSIS)
    after_analysis = link(analysis.table, register, LINKING_COLUMNS, original=engine.table, policy=finer)
    return Demo(patients.num_rows, before, after, release, certificate, analysis, after_analysis)


def claim(folder: Path) -> None:
    """Create the folder, or accept one that contains nothing but an earlier demo."""
    ours = {PATIENTS, VOTERS, POLICY_FILE, RELEASE, CERTIFICATE, RECEIPT, REPORT, ANALYSIS_FILE, ANALYSIS}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        strange = [entry for entry in folder.iterdir() if entry.name not in ours]
    except OSError as error:
        raise OutputError(f"cannot use {folder} as a folder ({error.strerror})") from None
    if strange:
        raise OutputError(
            f"{folder} contains {len(strange)} files that do not belong to the demo", "choose another folder"
        )


def _places(release: Release) -> dict[int, int]:
    """Return the positions of the original records in a release."""
    if not isinstance(release.rows, Rows) or release.rows.sources is None:
        raise TypeError("the demo runs in memory")
    return {row: at for at, row in enumerate(release.rows.sources.tolist())}


def owners(patients: pa.Table, register: pa.Table) -> dict[int, int]:
    """Return the true owner of each row by comparing names, which the intruder cannot do."""
    row_of = {person: row for row, person in enumerate(_people(patients))}
    return {i: row_of[person] for i, person in enumerate(_people(register)) if person in row_of}


def _people(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    return zip(*(table[name].to_pylist() for name in ("name", *LINKING_COLUMNS)), strict=True)
