"""Write released rows in one way: the written rows are recounted, and renamed into place only if the policy holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shoal.engines.base import Groups, Released, WrittenFile
from shoal.engines.formats import table_files
from shoal.engines.formats.formulas import Formulas
from shoal.errors import OutputError, VerificationError
from shoal.forbidden.mining import mine
from shoal.judge import judge_release, require
from shoal.judge.recount import Reference, recounted_written
from shoal.models.verdict import Verdicts
from shoal.policy import Policy


class Publishable(Released):
    """Released rows and the verdicts on them."""

    reference: Reference  # what the classes were compared with
    verdicts: Verdicts

    def _publish(self, path: str | Path, *, force: bool) -> tuple[str, tuple[str, ...]]:
        """Write and verify the rows; return the hash of what was written, and notes about it."""
        refuse_to_overwrite(self.engine.source, path)
        formulas = formulas_in(path, self.policy)
        written = self.engine.write(
            self.rows, str(path), self.policy, force=force, verify=self._verify, formulas=formulas
        )
        return written, () if formulas is None else formulas.notes

    def _verify(self, written: WrittenFile | Groups) -> None:
        """Compare the counts of the written file or table with the requirements and with the release."""
        table = recounted_written(written, self.policy, self.reference)
        left = [name for name in self.rows.columns if name in self.policy.identifiers]
        n, n_limits = len(self.policy.models), len(self.policy.limits)
        of_attacks = self.verdicts.verdicts[n : n + n_limits]  # on these rows, which the file repeats
        mined = mine(written, self.policy)
        verdicts = judge_release(table, self.policy, limits=of_attacks, mined=mined, identifiers=left)
        require(verdicts)
        if verdicts.same(self.verdicts):
            return
        if not self.rows.in_memory:
            raise VerificationError(
                "the written table does not match the expected counts; nothing was released",
                "did the table change during the run? Try again",
            )
        raise VerificationError("the written file does not match the release in memory; nothing was published")


def formulas_in(path: str | Path, policy: Policy) -> Formulas | None:
    """Return how formulas are escaped in a file with this name; None if they may stay, as in a typed format."""
    text = not str(path).startswith("table:") and Path(path).suffix.lower() in table_files.TEXT
    return Formulas() if text and policy.release.csv_formulas == "escape" else None


def refuse_to_overwrite(source: Any, target: str | Path) -> None:
    """Raise an error if the target is the input, which is never overwritten, not even with force."""
    if not isinstance(source, str | Path):
        return
    try:
        is_source = Path(source).samefile(target)
    except (OSError, ValueError):  # one of them does not exist, or no file can have its name
        return
    if is_source:
        raise OutputError(f"{target} is the input itself", "write to another file")
