"""Recoding: a search's answer as data, to be shown, applied and replayed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.table.frequency import Codes
from shoal.table.hierarchy import Hierarchy


@dataclass(frozen=True, eq=False)
class Recoding:
    """Full-domain generalization: one level per column, and the released tuples that are suppressed."""

    hierarchies: tuple[Hierarchy, ...]
    node: tuple[int, ...]
    suppressed: Codes  # (tuples, columns): codes at the node's levels
    algorithm: str
    proved: bool  # whether the search showed that nothing costs less
    n_evaluated: int  # nodes looked at
    n_nodes: int  # of so many
    bound: float | None = None  # no answer costs less; where it was not proved that none does

    @property
    def levels(self) -> dict[str, int]:
        """The level of each column."""
        return {h.column: h.number(level) for h, level in zip(self.hierarchies, self.node, strict=True)}

    @property
    def fingerprints(self) -> dict[str, str]:
        """A hash of each hierarchy that a file or tree lists: with the levels it pins what every value became.

        The leaves of the others are the data's own values. A hash of these would let anyone who can guess the rest
        test whether one rare value is among them, so they are left out; the policy describes them wholly.
        """
        return {h.column: h.fingerprint for h in self.hierarchies if h.leaf_order == "given"}

    def recoded(self, codes: Codes) -> Codes:
        """Codes of leaves to codes of the released level."""
        columns = [
            h.table[level][codes[:, j]] for j, (h, level) in enumerate(zip(self.hierarchies, self.node, strict=True))
        ]
        return np.column_stack(columns).astype(np.int32)
