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
from shoal.engines import frames
from shoal.engines.base import Groups, Query, Released, Rows
from shoal.engines.files import formats
from shoal.engines.files.formulas import Formulas
from shoal.engines.fingerprints import digest_of_counts
from shoal.engines.local import LocalEngine
from shoal.errors import OutputError, VerificationError
from shoal.judge import judged, require
from shoal.judge.figures import Figures
from shoal.judge.recount import Reference, recounted_file, recounted_groups
from shoal.models.verdict import Verdicts
from shoal.policy import Policy
from shoal.recoding import Recoding
from shoal.release.certificate import certificate_of
from shoal.release.mapping import mapping_of
from shoal.release.receipt import KEY_BYTES, new_key, receipt_of, write_receipt
from shoal.table.bounds import with_bounds
from shoal.table.frequency import FrequencyTable
from shoal.text.figures import counted
from shoal.text.log import log
from shoal.text.showing import Shown, shown

if TYPE_CHECKING:
    from shoal.alternatives.frontier import Frontier
    from shoal.engines.ibis import IbisEngine
    from shoal.judge.warning_list import Caution
    from shoal.report.pictures import Charts


@dataclass(frozen=True, eq=False)
class Release(Released, Shown):
    """A table that may be published, with the evidence that it satisfies its policy.

    A release pickles, with the original rows in it: a pickle is as private as these, and only what ``save`` writes is
    for others. The key of the digests stays out; ``with_key`` gives it back from a receipt.
    """

    rows: Rows | Query
    engine: LocalEngine | IbisEngine
    recoding: Recoding
    policy: Policy
    reference: Reference  # what the classes were compared with
    verdicts: Verdicts
    measured: Figures
    loss: Mapping[str, float]
    suppressed: int
    warnings: tuple[Caution, ...]
    attacks: Attacks | None = None  # what intruders found, where they were sent
    key: bytes = field(default_factory=new_key, repr=False)  # of the digests in the certificate; not for publication

    @property
    def _local(self) -> LocalEngine:
        if not isinstance(self.engine, LocalEngine):
            raise TypeError("the rows are not in memory")
        return self.engine

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
        rows = self.rows
        if isinstance(rows, Query):
            return certificate_of(self, digest_of_counts(rows.groups), now())
        output = frames.fingerprint(with_bounds(rows.table, self.policy))
        return certificate_of(self, output, now())

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

        return replace(self, attacks=attack(self, **given))

    def save(self, path: str | Path, *, force: bool = False, receipt: str | Path | None = None) -> dict[str, Any]:
        """Write the release to a temporary file, verify it with SQL, and rename it into place only if everything holds.

        In an engine ``path`` may be ``table:schema.name``, or a folder. ``receipt`` is a private file for what the
        certificate must not tell. Returns the certificate of what was written.
        """
        refuse_to_overwrite(self.engine.source, path)
        created = now()
        formulas = formulas_in(path, self.policy)
        if isinstance(self.rows, Rows):
            sha256 = self._write_file(self.rows, path, force, formulas)
        elif isinstance(self.engine, LocalEngine):
            raise TypeError("the rows are not in memory")
        else:
            sha256 = self.engine.write(
                self.rows, str(path), self.policy, force=force, verify=self._verify_groups, formulas=formulas
            )
        log.info("save: %d records written and verified", self.rows.n_records)
        certificate = certificate_of(self, sha256, created)
        certificate["warnings"] += [] if formulas is None else formulas.notes
        if receipt is not None:
            write_receipt(receipt_of(self, certificate), receipt, force=force)
        return certificate

    def _write_file(self, rows: Rows, path: str | Path, force: bool, formulas: Formulas | None) -> str:
        engine = self._local
        if str(path).startswith("table:"):
            raise OutputError(
                "a table in memory can only be saved to a file", "use a .csv, .parquet, .xlsx, .sav or .dta file"
            )
        rows = replace(rows, table=with_bounds(rows.table, self.policy))

        def verify(written: Path) -> None:
            self._verify(recounted_file(written, engine.dialect, rows, self.policy, self.reference, formulas))

        table = rows.table if formulas is None else formulas.escaped(rows.table)
        return formats.write(
            table, Path(path), dialect=engine.dialect, codebook=engine.codebook, force=force, verify=verify
        )

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

        ``certificate`` is what ``save`` returned; ``frontier`` is shown where it was computed, and of ``attacks`` those
        that are given, else the release's own, else those of a fixed amount of work; ``()`` runs none. ``columns``: two
        quasi columns in which the answer is drawn. The few records that the page shows before and after are invented;
        with ``show_originals`` they are of the input, and the page must stay with it.
        """
        refuse_to_overwrite(self.engine.source, path)
        page = shown(
            self,
            "page",
            certificate=certificate,
            frontier=frontier,
            attacks=attacks,
            columns=columns,
            originals=show_originals,
        )
        formats.write_text(Path(path), page, force=force)

    def charts(
        self,
        *,
        frontier: Frontier | None = None,
        attacks: Sequence[Risk] | None = None,
        columns: Sequence[str] = (),
    ) -> Charts:
        """Return the charts of the report by section, as a dict of Altair charts that a notebook displays."""
        drawn: Charts = shown(self, "charts", frontier=frontier, attacks=attacks, columns=columns)
        return drawn

    def __getstate__(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "key"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({"key": new_key()} | state)

    def __deepcopy__(self, memo: dict[int, Any]) -> Release:
        copied = object.__new__(Release)
        copied.__setstate__(deepcopy(self.__getstate__(), memo) | {"key": self.key})
        return copied

    def __repr__(self) -> str:
        asked = ", ".join(f"{each.asked} {each.outcome}" for each in self.verdicts.verdicts)
        records, classes = counted(self.verdicts.records, "record"), counted(self.verdicts.classes, "class")
        return f"<Release of {records} in {classes}: {asked}>"

    def _verify_groups(self, written: Groups) -> None:
        self._verify(recounted_groups(written, self.policy.quasi, self.reference))

    def _verify(self, table: FrequencyTable) -> None:
        """Compare the counts of the written file with the requirements and with the rows in memory."""
        left = [name for name in self.rows.columns if name in self.policy.identifiers]
        of_attacks = self.verdicts.verdicts[len(self.policy.models) :]  # on these rows, which the file repeats
        verdicts = judged(table, self.policy, limits=of_attacks, identifiers=left)
        require(verdicts)
        if not verdicts.same(self.verdicts):
            if isinstance(self.rows, Query):
                raise VerificationError(
                    "the written table does not match the expected counts; nothing was released",
                    "did the table change during the run? Try again",
                )
            raise VerificationError("the written file does not match the release in memory; nothing was published")


def formulas_in(path: str | Path, policy: Policy) -> Formulas | None:
    """Return how formulas are escaped in a file with this name; None if they may stay, as in a typed format."""
    text = not str(path).startswith("table:") and Path(path).suffix.lower() in formats.TEXT
    return Formulas() if text and policy.release.csv_formulas == "escape" else None


def refuse_to_overwrite(source: Any, target: str | Path) -> None:
    """Raise an error if the target is the input, which is never overwritten, not even with force."""
    if not isinstance(source, str | Path):
        return
    try:
        same = Path(source).samefile(target)
    except (OSError, ValueError):  # one of them is not there, or no file can have its name
        return
    if same:
        raise OutputError(f"{target} is the input itself", "write to another file")


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
