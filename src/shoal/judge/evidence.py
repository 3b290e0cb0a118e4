"""The counts that warnings are derived from: the released table and, if known, the table it was made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from shoal.columns.telling import MISSED
from shoal.engines.base import Query, Rows
from shoal.engines.dependence import Countable, Dependence, dependence_of
from shoal.engines.local import LocalEngine
from shoal.policy import Policy
from shoal.recoding import Recoding
from shoal.table.frequency import FrequencyTable

if TYPE_CHECKING:
    from shoal.engines.ibis import IbisEngine


@dataclass(frozen=True, eq=False)
class Evidence:
    """Counts of one table and what is known about its original."""

    policy: Policy
    table: FrequencyTable  # the classes of what goes out, counted again
    published: Countable  # the rows that go out; only their plain columns are looked at
    original: Countable | None = None  # the rows before they were generalized, where they are known
    # Of each quasi column that was generalized, how far its released values tell the original ones, where it is known.
    generalized: Mapping[str, Dependence | None] = field(default_factory=dict)
    suppressed: tuple[int, int] = (0, 0)  # records that were, and of how many
    loss: float | None = None
    notes: Sequence[str] = ()  # what the engine told while it read
    unfinished: str = ""  # how far the search had come when its time ended

    @property
    def known(self) -> Countable:
        """The most informative rows: the original ones, if they are known."""
        return self.published if self.original is None else self.original

    def hidden(self, name: str, guesses: int) -> bool:
        """Return whether the release itself does not determine a column within this number of guesses."""
        released = self.generalized.get(name)
        return released is None or released.errors(guesses) > MISSED * released.records


def of_release(
    engine: LocalEngine | IbisEngine,
    rows: Rows | Query,
    recoding: Recoding,
    released: FrequencyTable,
    policy: Policy,
    loss: float,
) -> Evidence:
    """Collect the evidence for a release made from the rows that the engine counted."""
    table, _ = engine.counted
    parts = recoding.parts(table)
    kept = ~parts.suppressed
    leaves, labels, counts = table.codes[parts.row[kept]], parts.codes[kept], parts.counts[kept]
    tell = {
        name: dependence_of(labels[:, j].astype(np.int64), leaves[:, j].astype(np.int64), counts)
        for j, name in enumerate(policy.quasi)
    }
    return Evidence(
        policy,
        released,
        _published(engine, rows),
        engine,
        {name: told for name, told in tell.items() if told.errors(1)},
        (parts.n_suppressed, engine.n_records),
        loss,
        engine.notes,
        recoding.unfinished,
    )


def of_replay(
    engine: LocalEngine | IbisEngine,
    rows: Rows | Query,
    generalized: Mapping[str, Dependence],
    released: FrequencyTable,
    policy: Policy,
) -> Evidence:
    """Collect the evidence for new rows recoded like earlier ones."""
    held_back = engine.n_records - rows.n_records
    return Evidence(
        policy,
        released,
        _published(engine, rows),
        engine,
        {name: told for name, told in generalized.items() if told.errors(1)},
        (held_back, engine.n_records),
        notes=engine.notes,
    )


def of_table(
    engine: LocalEngine | IbisEngine,
    table: FrequencyTable,
    policy: Policy,
    original: LocalEngine | IbisEngine | None = None,
) -> Evidence:
    """Collect the evidence for a table as it is; with the ``original``, include what only the original shows."""
    if original is None or not {*policy.quasi, *policy.sensitive} <= set(original.columns):
        return Evidence(policy, table, engine, notes=engine.notes)
    n = int(original.frequencies(policy.quasi[0]).sum())
    return Evidence(
        policy,
        table,
        engine,
        original,
        dict.fromkeys(name for name in policy.quasi if _generalized(name, engine, original)),
        (max(0, n - table.n_records), n),
        notes=engine.notes,
    )


def _published(engine: LocalEngine | IbisEngine, rows: Rows | Query) -> LocalEngine | IbisEngine:
    """Return the rows to be published, to count unchanged columns; the input, if no record was dropped."""
    if rows.n_records == engine.n_records:
        return engine
    if isinstance(rows, Rows):
        return LocalEngine(rows.table, fingerprint="")
    return engine if isinstance(engine, LocalEngine) else type(engine)(rows.unordered, engine.place)


def _generalized(name: str, released: LocalEngine | IbisEngine, original: LocalEngine | IbisEngine) -> bool:
    """Return whether most values of a column do not occur in the original."""
    texts = set(released.texts(name))
    return 2 * len(texts - set(original.texts(name))) > len(texts)
