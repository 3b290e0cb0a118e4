"""Identity linking: a register with names is joined to a table without names on their common columns.

L. Sweeney linked a voter list to hospital discharges by birth date, sex and ZIP and identified the governor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa

from shoal.attacks.candidates import candidate_view
from shoal.policy import Policy


@dataclass(frozen=True)
class Linkage:
    """The results of linking the register."""

    people: int  # in the register
    matched: int  # of them, people with at least one record that could be theirs
    singled_out: int  # people with exactly one such record
    named: int  # singled out, and the record is theirs
    chance: float  # the best chance that a guess among a person's candidates is right

    def as_dict(self) -> dict[str, float]:
        """Return plain values for JSON."""
        return asdict(self)


def link(
    table: pa.Table,
    register: pa.Table,
    on: Sequence[str],
    owners: Mapping[int, int] | None = None,
    *,
    original: pa.Table | None = None,
    policy: Policy | None = None,
) -> Linkage:
    """Join ``register`` to the records of ``table`` that match its people in all columns ``on``.

    ``original`` is what a released table was made from, with its ``policy``: they tell what its labels stand for.
    ``owners`` maps a person of the register to the row of the table that is really theirs (the referee's
    knowledge, which the intruder lacks); without it nobody counts as named.
    """
    view = candidate_view(register, table, on, ground=table if original is None else original, policy=policy)
    candidates = view.candidates[view.kind_of]
    single, matched = candidates == 1, candidates > 0
    row_of = np.full(len(view.tuples), -1, np.int64)
    row_of[view.tuple_of] = np.arange(view.n_records)
    truth = owners or {}
    alone = np.flatnonzero(single)
    only = view.fits.indices[view.fits.indptr[view.kind_of[alone]]]
    named = sum(truth.get(person) == row for person, row in zip(alone.tolist(), row_of[only].tolist(), strict=True))
    chance = 1 / int(candidates[matched].min()) if matched.any() else 0.0
    return Linkage(len(candidates), int(matched.sum()), int(single.sum()), int(named), chance)
