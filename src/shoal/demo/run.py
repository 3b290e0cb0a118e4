"""The demo: a hospital table is linked to a voter list, made safe, and linked again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from shoal.attacks.linkage import Linkage, link
from shoal.demo.hospital import POLICY, hospital, voters
from shoal.engines import files
from shoal.engines.local import LocalEngine
from shoal.errors import OutputError
from shoal.pipeline import anonymize
from shoal.policy import Policy
from shoal.release import Release
from shoal.search.base import Progress, silent

KNOWN = ("birth", "zip", "sex")  # what the voter list and the hospital share
PATIENTS, VOTERS, POLICY_FILE, RELEASE, CERTIFICATE, RECEIPT, REPORT = (
    "hospital.csv",
    "voters.csv",
    "policy.toml",
    "release.csv",
    "certificate.json",
    "receipt.json",
    "report.html",
)


@dataclass(frozen=True)
class Demo:
    """What happened."""

    patients: int
    before: Linkage
    after: Linkage
    release: Release
    certificate: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "patients": self.patients,
            "before": self.before.as_dict(),
            "after": self.after.as_dict(),
            "certificate": self.certificate,
        }


def demo(folder: Path, *, seed: int = 0, progress: Progress = silent) -> Demo:
    """Make the tables, link, anonymize, link again; leave everything in ``folder``."""
    claim(folder)
    patients = hospital(seed=seed)
    register = voters(patients, seed=seed + 1)
    _write(folder / PATIENTS, patients)
    _write(folder / VOTERS, register)
    files.write_text(folder / POLICY_FILE, POLICY, force=True)

    policy = Policy.load(folder / POLICY_FILE)
    engine = LocalEngine.of(folder / PATIENTS)
    before = link(patients.drop_columns(["name"]), register, KNOWN, owners(patients, register))
    release = anonymize(engine, policy, progress=progress)
    certificate = release.save(folder / RELEASE, receipt=folder / RECEIPT, force=True)
    proof = json.dumps(certificate, indent=2, ensure_ascii=False) + "\n"
    files.write_text(folder / CERTIFICATE, proof, force=True)
    progress("drawing", 0)
    release.report(folder / REPORT, certificate=certificate, force=True)

    after = link(release.table, register, KNOWN, original=engine.table, policy=policy)
    return Demo(patients.num_rows, before, after, release, certificate)


def claim(folder: Path) -> None:
    """Make the folder, or take one that holds nothing but an earlier demo."""
    ours = {PATIENTS, VOTERS, POLICY_FILE, RELEASE, CERTIFICATE, RECEIPT, REPORT}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        strange = [entry for entry in folder.iterdir() if entry.name not in ours]
    except OSError as error:
        raise OutputError(f"{folder}: cannot be used as a folder ({error.strerror})") from None
    if strange:
        raise OutputError(f"{folder}: holds {len(strange)} files that are not the demo's", "name another folder")


def owners(patients: pa.Table, register: pa.Table) -> dict[int, int]:
    """Which row is really whose: the referee compares names, which the intruder cannot."""
    row_of = {person: row for row, person in enumerate(_people(patients))}
    return {i: row_of[person] for i, person in enumerate(_people(register)) if person in row_of}


def _people(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    return zip(*(table[name].to_pylist() for name in ("name", *KNOWN)), strict=True)


def _write(path: Path, table: pa.Table) -> None:
    files.write(table, path, force=True, verify=lambda _: None)
