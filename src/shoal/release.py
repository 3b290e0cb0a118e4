"""Release: the recoded rows, what was measured on them, and a certificate of both."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from shoal import __version__
from shoal.engines import files, frames
from shoal.engines.base import Rows
from shoal.engines.local import LocalEngine
from shoal.errors import OutputError, VerificationError
from shoal.figures import Figures
from shoal.plain import finite
from shoal.policy import Policy
from shoal.presets import PRESETS
from shoal.recoding import Recoding
from shoal.verify import Reference, Verdicts, judged, recounted_file, require

SCHEMA = "shoal-certificate/1"


@dataclass(frozen=True, eq=False)
class Release:
    """What may be published, and why."""

    rows: Rows
    engine: LocalEngine
    recoding: Recoding
    policy: Policy
    reference: Reference  # what the classes were compared with
    verdicts: Verdicts
    measured: Figures
    loss: Mapping[str, float]
    suppressed: int
    warnings: tuple[str, ...]

    @cached_property
    def table(self) -> Any:
        """The released rows, as the kind of frame that came in (pyarrow for a path)."""
        return self.engine.back(self.rows.table)

    @property
    def levels(self) -> dict[str, int | None]:
        """The level of each quasi column; None where its cells are not all on one."""
        return self.recoding.levels

    @property
    def classes(self) -> int:
        """Equivalence classes of the release."""
        return self.verdicts.classes

    @property
    def certificate(self) -> dict[str, Any]:
        """What was asked, what was found, and what it was found on; plain values, for JSON."""
        return self._certificate(frames.fingerprint(self.rows.table), _now())

    def _certificate(self, output: str, created: str) -> dict[str, Any]:
        recoding = self.recoding
        certificate = {
            "schema": SCHEMA,
            "policy": self.policy.model_dump(mode="json", exclude_none=True),
            "input": {"sha256": self.engine.fingerprint, "records": self.engine.table.num_rows},
            "output": {"sha256": output, "records": self.rows.table.num_rows, "suppressed": self.suppressed},
            "requirements": [vars(verdict) for verdict in self.verdicts.verdicts],
            "measured": self.measured.as_dict(),
            "loss": dict(self.loss),
            "levels": self.levels,
            "hierarchies": recoding.fingerprints,
            "search": {
                "algorithm": recoding.algorithm,
                "proved": recoding.proved,
                "nodes": recoding.n_nodes,
                "evaluated": recoding.n_evaluated,
                "bound": recoding.bound,
                "claim": recoding.claim,
            },
            "preset": self._preset,
            "seed": self.policy.release.seed,
            "warnings": list(self.warnings),
            "versions": {"python": platform.python_version()}
            | {"shoal": __version__}
            | {name: version(name) for name in _PARTS},
            "created": created,
        }
        return {name: finite(value) for name, value in certificate.items()}

    @property
    def _preset(self) -> dict[str, str] | None:
        """Which rule was asked for by name, and where it is written."""
        if self.policy.preset is None:
            return None
        preset = PRESETS[self.policy.preset]
        return {"name": self.policy.preset, "citation": preset.citation, "note": preset.note}

    def save(self, path: str | Path, *, force: bool = False) -> dict[str, Any]:
        """Write the release; the written file is counted again by SQL first, and only a file that holds appears.

        Returns the certificate of the file.
        """
        target = Path(path)
        refuse_to_overwrite(self.engine.source, target)
        created = _now()
        sha256 = files.write(self.rows.table, target, dialect=self.engine.dialect, force=force, verify=self._verify)
        return self._certificate(sha256, created)

    def _verify(self, written: Path) -> None:
        """Count the written file, and compare with what was promised and measured."""
        table = recounted_file(written, self.engine.dialect, self.rows, self.policy, self.reference)
        left = [name for name in self.rows.table.column_names if name in self.policy.identifiers]
        verdicts = judged(table, self.policy, identifiers=left)
        require(verdicts)
        if not verdicts.same(self.verdicts):
            raise VerificationError("the written file does not count as the release in memory did; nothing was written")


_PARTS = ("numpy", "numba", "pyarrow", "duckdb")


def refuse_to_overwrite(source: Any, target: str | Path) -> None:
    """What is read is never overwritten, not even with force."""
    if not isinstance(source, str | Path):
        return
    try:
        same = Path(source).samefile(target)
    except OSError:  # one of them is not there
        return
    if same:
        raise OutputError(f"{target} is the input itself", "write to another file")


def _now() -> str:
    """The time, or the one that a reproducible build asks for."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        moment = (
            datetime.datetime.fromtimestamp(int(epoch), datetime.UTC) if epoch else datetime.datetime.now(datetime.UTC)
        )
    except (ValueError, OverflowError, OSError):
        raise OutputError("SOURCE_DATE_EPOCH is not a number of seconds", "unset it, or set it to one") from None
    return moment.isoformat(timespec="seconds")
