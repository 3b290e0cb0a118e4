"""Release: the recoded rows, their measured figures, and a certificate of both."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from shoal.attacks.risk import Attacks, Risk
from shoal.engines.base import Counted, Engine, Query, Rows
from shoal.engines.formats import atomic_files
from shoal.engines.formats.parquet_parts import part_digests
from shoal.errors import OutputError
from shoal.findings import finding, with_attacks
from shoal.judge.figures import Figures
from shoal.judge.recount import Reference
from shoal.models.finding import Finding, Publication
from shoal.models.verdict import Verdicts
from shoal.policy import Policy
from shoal.recoding import Recoding
from shoal.release.certificate import certificate_of
from shoal.release.mapping import mapping_of
from shoal.release.publish import Publishable, refuse_to_overwrite
from shoal.release.receipt import KEY_BYTES, new_key, receipt_of, write_receipt
from shoal.text.figures import format_count
from shoal.text.log import log
from shoal.text.showing import Shown, represent

if TYPE_CHECKING:
    from shoal.alternatives.frontier import Frontier
    from shoal.report.pictures import Charts


@dataclass(frozen=True, eq=False)
class Release(Publishable, Shown):
    """A table that may be published, with the evidence that it satisfies its policy.

    A release can be pickled, with the original rows in it: a pickle is as private as these, and only what ``save``
    writes is for others. The key of the digests is left out; ``with_key`` restores it from a receipt.

    >>> import tempfile, pyarrow as pa, shoal
    >>> release = shoal.anonymize(pa.table({"age": [31, 34, 36, 38, 51, 53, 57, 58]}), k=2, quasi=["age"])
    >>> release.classes, release.suppressed
    (2, 0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     release.save(f"{folder}/release.csv")["output"]["records"]
    8
    """

    rows: Rows | Query
    engine: Engine
    counted: Counted  # the counts of the engine's rows, which the recoding solves
    recoding: Recoding
    policy: Policy
    reference: Reference  # what the classes were compared with
    verdicts: Verdicts
    measured: Figures
    loss: Mapping[str, float]
    suppressed: int
    attacks: Attacks | None = None  # the results of attacks, if any were run
    key: bytes = field(default_factory=new_key, repr=False)  # of the digests in the certificate; not for publication

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the publisher should know, the gravest first; docs/findings.md explains each kind."""
        return self.verdicts.findings

    @property
    def publication(self) -> Publication:
        """Whether the release may be published: ready, decide first, or do not publish."""
        return self.verdicts.publication

    @property
    def headline(self) -> str:
        """The publication verdict as a sentence with its first reason."""
        return self.verdicts.headline

    @property
    def levels(self) -> dict[str, int | None]:
        """The level of each quasi-identifier; None if its cells are not all at the same level."""
        return self.recoding.levels

    @cached_property
    def mapping(self) -> dict[str, pa.Table]:
        """For each quasi-identifier, what each released value covers and how often it occurs; not for publication."""
        return mapping_of(self.recoding, self.rows)

    @property
    def classes(self) -> int:
        """The number of equivalence classes of the release."""
        return self.verdicts.classes

    @property
    def certificate(self) -> dict[str, Any]:
        """The certificate: the policy, the results and digests of the files; plain values for JSON."""
        return certificate_of(self, self.engine.digest(self.rows, self.policy), now())

    @property
    def receipt(self) -> dict[str, Any]:
        """The receipt: details that the certificate must not disclose; keep it with the original."""
        return receipt_of(self, self.certificate)

    def with_key(self, key: bytes) -> Release:
        """Return the release with the key of an earlier receipt, so that equal inputs have equal digests."""
        if len(key) != KEY_BYTES:
            raise OutputError(
                f"a key must have {KEY_BYTES} bytes, not {len(key)}", "use shoal.release.receipt.new_key to create one"
            )
        return replace(self, key=key)

    def attacked(self, **given: Any) -> Release:
        """Return the release with the results of ``shoal.attack``, which its certificate then includes."""
        from shoal.attacks.run import attack  # SciPy, which writing a release does not need

        return self.with_attacks(attack(self, **given))

    def with_attacks(self, attacks: Attacks) -> Release:
        """Return the release with the results of attacks on it, and what they mean for its publication."""
        findings = with_attacks(self.findings, attacks, self.policy)
        return replace(self, attacks=attacks, verdicts=replace(self.verdicts, findings=findings))

    def save(self, path: str | Path, *, force: bool = False, receipt: str | Path | None = None) -> dict[str, Any]:
        """Write the release to a temporary file, verify it with SQL, and rename it into place only if everything holds.

        In an engine ``path`` may be ``table:schema.name``, or a folder. ``receipt`` is the path of a private file for
        details that the certificate must not disclose. Returns the certificate of the written release.
        """
        created = now()
        sha256, notes = self._publish(path, force=force)
        log.info("save: %d records written and verified", self.rows.n_records)
        certificate = certificate_of(self, sha256, created)
        certificate["findings"] += [finding("writing", note, "").as_dict() for note in notes]
        if not str(path).startswith("table:") and Path(path).is_dir():
            certificate["output"]["files"] = part_digests(Path(path))
        if receipt is not None:
            write_receipt(receipt_of(self, certificate), receipt, force=force)
        return certificate

    def report(
        self,
        path: str | Path,
        *,
        certificate: Mapping[str, Any] | None = None,
        frontier: Frontier | None = None,
        attacks: Sequence[Risk] | None = None,
        columns: Sequence[str] = (),
        show_originals: bool = False,
        force: bool = False,
    ) -> None:
        """Write the report, one HTML file that needs no network and contains no record of the input.

        ``certificate`` is the value that ``save`` returned; ``frontier`` is shown if it is given. ``attacks`` are the
        results to show; by default those of the release, otherwise a fixed amount of attacks is run, and ``()`` runs
        none. ``columns``: two quasi-identifiers in which the solution is drawn. The few records that the page shows
        before and after are invented; with ``show_originals`` they are taken from the input, and the page must be kept
        as private as the input.
        """
        refuse_to_overwrite(self.engine.source, path)
        page = represent(
            self,
            "page",
            certificate=certificate,
            frontier=frontier,
            attacks=attacks,
            columns=columns,
            originals=show_originals,
        )
        atomic_files.write_text(Path(path), page, force=force)

    def charts(
        self,
        *,
        frontier: Frontier | None = None,
        attacks: Sequence[Risk] | None = None,
        columns: Sequence[str] = (),
    ) -> Charts:
        """Return the charts of the report by section: a dict of SVG charts that a notebook displays."""
        drawn: Charts = represent(self, "charts", frontier=frontier, attacks=attacks, columns=columns)
        return drawn

    def __getstate__(self) -> dict[str, Any]:
        return {part.name: getattr(self, part.name) for part in fields(self) if part.name != "key"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({"key": new_key()} | state)

    def __deepcopy__(self, memo: dict[int, Any]) -> Release:
        copied = object.__new__(Release)
        copied.__setstate__(deepcopy(self.__getstate__(), memo) | {"key": self.key})
        return copied

    def __repr__(self) -> str:
        requirements = ", ".join(f"{verdict.asked} {verdict.outcome}" for verdict in self.verdicts.verdicts)
        records, classes = format_count(self.verdicts.records, "record"), format_count(self.verdicts.classes, "class")
        return f"<Release of {records} in {classes}: {self.publication}; {requirements}>"


def now() -> str:
    """Return the current time, or the one that a reproducible build specifies."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        moment = (
            datetime.datetime.fromtimestamp(int(epoch), datetime.UTC) if epoch else datetime.datetime.now(datetime.UTC)
        )
    except (ValueError, OverflowError, OSError):
        raise OutputError("SOURCE_DATE_EPOCH must be a number of seconds", "unset or correct it") from None
    return moment.isoformat(timespec="seconds")
