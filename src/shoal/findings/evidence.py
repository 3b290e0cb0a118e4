"""The counts that findings are derived from: the released table and, if known, the table it was made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from shoal.attacks.risk import Attacks
from shoal.attacks.tolerances import required_size
from shoal.engines.base import Counted, Engine, Query, Rows
from shoal.engines.dependence import Countable, Dependence, SmallClasses, Spread, TellingPair, dependence_of
from shoal.engines.formats.unread_content import UnreadContent, unread_content
from shoal.engines.local import LocalEngine
from shoal.engines.opening import rows_of, tallied_release
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.inspection.dependencies import MISSED, Telling
from shoal.inspection.persons import repeated
from shoal.judge import as_attackers_see
from shoal.policy import Policy
from shoal.recoding import Parts, Recoding, UniformParts
from shoal.tables.frequency import Counts, FrequencyTable

LabelEvidence = tuple[LocalEngine, Mapping[str, Hierarchy], Mapping[str, Counts]]


@dataclass(frozen=True, eq=False)
class Evidence:
    """Counts of one table and what is known about its original."""

    policy: Policy
    table: FrequencyTable  # the classes of the released rows, recounted
    released: Callable[[], Countable]  # the released rows; only their plain columns are used
    original: Countable | None = None  # the rows before generalization, if they are known
    # For each generalized quasi column, how far its released values determine the original ones, if known.
    generalized: Mapping[str, Dependence | None] = field(default_factory=dict)
    suppressed: tuple[int, int] = (0, 0)  # suppressed records, and the number of all records
    left_out: int = 0  # original records that the released rows lack, if all others are original ones
    loss: float | None = None
    notes: Sequence[str] = ()  # notes of the engine about reading
    unfinished: str = ""  # the progress of the search when its time ended
    beside: tuple[UnreadContent, ...] = ()  # what a published file holds beside its table
    spelled: tuple[str, ...] = ()  # quasi columns of a published file whose spellings tell people apart
    # The released rows with all columns, and with the one that identifies people if the rows it is given to have it.
    joined: Callable[[str | None], Countable] | None = None
    counted: LocalEngine | None = None  # the distinct released tuples of some columns, if an engine counted them
    attacks: Attacks | None = None  # the results of attacks, if any were run
    # The released tuples, and per column its hierarchy and the records with each leaf; None if labels were not written
    # for these records, or the values before are unknown.
    labels: Callable[[], LabelEvidence] | None = None

    @cached_property
    def published(self) -> Countable:
        """The released rows; an engine joins them for this."""
        return self.released()

    @property
    def known(self) -> Countable:
        """The most informative rows: the original ones, if they are known."""
        return self.published if self.original is None else self.original

    @cached_property
    def k(self) -> int:
        """The number of persons that every class should hold."""
        return required_size(self.policy)

    @cached_property
    def repeating(self) -> tuple[str, Spread] | None:
        """The column by which people seem to have several records, if the policy names none."""
        return repeated(self.known, self.policy)

    @cached_property
    def _known_person(self) -> str | None:
        """The column that identifies people, declared or recognised, whether the release has it or not."""
        declared = self.policy.release.entity
        return declared if declared is not None or self.repeating is None else self.repeating[0]

    @cached_property
    def _countable(self) -> tuple[Countable, str | None]:
        """The released rows, and the column in them that identifies people."""
        person = self._known_person
        rows = self.published if self.joined is None else self.joined(person)
        return rows, person if person in rows.columns else None

    @property
    def person(self) -> str | None:
        """The column by which persons are counted; None if only records can be counted."""
        return None if self._known_person is None else self._countable[1]

    @property
    def unit(self) -> str:
        """What is counted: persons, or records."""
        return "record" if self.person is None else "person"

    @cached_property
    def people(self) -> int:
        """The number of persons in the release; of records, if no column identifies people."""
        return self.small_classes(self.policy.quasi[:1]).people

    def small_classes(self, names: Sequence[str]) -> SmallClasses:
        """Count the persons who share the values of some released columns with fewer than k."""
        person = self.person
        needed = {*names, *([] if person is None else [person])}
        if self.counted is not None and needed <= set(self.counted.columns):
            return self.counted.small_classes(names, person, self.k)  # without making a query of the rows
        return self._countable[0].small_classes(names, person, self.k)

    @cached_property
    def linkable(self) -> list[str]:
        """The quasi-identifiers by which records can be told apart.

        If a null matches every value, columns with nulls are left out: equal values are not all that matches.
        """
        if self.policy.release.nulls != "wildcard":
            return list(self.policy.quasi)
        table = self.table
        return [
            name for j, name in enumerate(table.columns) if table.nulls[j] is None and (table.codes[:, j] >= 0).all()
        ]

    @cached_property
    def plain_classes(self) -> dict[str, SmallClasses]:
        """The classes that each plain column forms by itself."""
        columns = self._countable[0].columns if self.policy.having("plain") else []
        return {name: self.small_classes([name]) for name in self.policy.having("plain") if name in columns}

    @cached_property
    def sensitive_classes(self) -> dict[str, SmallClasses]:
        """The classes that each sensitive column forms by itself."""
        return {name: self.small_classes([name]) for name in self.policy.sensitive}

    @cached_property
    def as_attackers_see(self) -> FrequencyTable:
        """The classes as a reader of the release sees them."""
        return as_attackers_see(self.table, self.policy)

    @cached_property
    def telling(self) -> Telling:
        """Which unchanged columns reveal generalized quasi-identifiers, and which known ones reveal sensitive ones."""
        policy, rows = self.policy, self.known
        plain = [name for name in policy.having("plain") if name in rows.columns]
        pairs: dict[TellingPair, tuple[int, ...]] = {
            (name, quasi): (1, 2) for quasi in self.generalized for name in (*plain, *policy.sensitive)
        }
        if self.original is None:  # what the values were cannot be told: what tells a label and is finer tells more
            pairs |= {(name, quasi): (1,) for quasi in policy.quasi for name in plain}
        pairs |= {(name, other): (1,) for name in (*plain, *policy.quasi) for other in policy.sensitive}
        return Telling.of(rows, pairs, self.hidden)

    def may_be_published(self, names: Sequence[str], possible: Callable[[Spread, int], bool]) -> list[str]:
        """Return the columns that may have some property in the release, as far as the original rows tell.

        ``possible`` returns whether a column may have it after that many records were left out. Asking the original is
        cheaper: the released rows must be joined first.
        """
        if self.original is None or not self.left_out:
            return list(names)
        spreads = self.original.spreads(names)
        return [name for name in names if possible(spreads[name], self.left_out)]

    def hidden(self, name: str, guesses: int) -> bool:
        """Return whether the release itself does not determine a column within this number of guesses."""
        released = self.generalized.get(name)
        return released is None or released.errors(guesses) > MISSED * released.records


def of_release(
    engine: Engine,
    counted: Counted,
    rows: Rows | Query,
    recoding: Recoding,
    released: FrequencyTable,
    policy: Policy,
    loss: float,
    attacks: Attacks | None = None,
) -> Evidence:
    """Collect the evidence for a release made from one count of the engine's rows."""
    table, original = counted.table, engine.knowing(counted.rows, counted.raised)
    parts = recoding.parts(table)
    complete = rows.n_records == counted.n_records or not policy.having("plain")  # of the columns that are asked for
    return Evidence(
        policy,
        released,
        lambda: original if complete else engine.released(rows),
        original,
        {
            name: determines
            for name, determines in zip(policy.quasi, _determined(parts, table), strict=True)
            if determines.errors(1)
        },
        (parts.n_suppressed, counted.n_records),
        counted.n_records - rows.n_records,
        loss,
        (*engine.notes, *counted.notes, *rows.notes),
        recoding.unfinished,
        joined=lambda person: engine.released(rows, person),
        counted=tallied_release(rows),
        attacks=attacks,
        labels=lambda: _labels(rows, recoding, table),
    )


def _labels(rows: Rows | Query, recoding: Recoding, table: FrequencyTable) -> LabelEvidence:
    """Return the released tuples, and the hierarchies with the records of each leaf."""
    tally = rows_of(rows.table) if isinstance(rows, Rows) else tallied_release(rows)
    if tally is None:
        raise TypeError("rows that an engine counted have a tally")
    hierarchies = {hierarchy.column: hierarchy for hierarchy in recoding.hierarchies}
    return tally, hierarchies, dict(zip(table.columns, table.leaf_counts, strict=True))


def _determined(parts: Parts, table: FrequencyTable) -> list[Dependence]:
    """Return how far the released values of each column determine its leaves, among records that are not suppressed."""
    if isinstance(parts, UniformParts):  # each leaf has one released value
        leaves_of = [np.flatnonzero(counts) for counts in parts.kept_leaves]
        return [
            dependence_of(label_of[leaves].astype(np.int64), leaves, counts[leaves])
            for label_of, leaves, counts in zip(parts.of_leaf, leaves_of, parts.kept_leaves, strict=True)
        ]
    released = ~parts.suppressed
    leaves, labels, counts = table.codes[parts.row[released]], parts.codes[released], parts.counts[released]
    return [
        dependence_of(labels[:, j].astype(np.int64), leaves[:, j].astype(np.int64), counts)
        for j in range(len(table.columns))
    ]


def of_replay(
    engine: Engine,
    seen: LocalEngine,
    rows: Rows | Query,
    generalized: Mapping[str, Dependence],
    released: FrequencyTable,
    policy: Policy,
    attacks: Attacks | None = None,
) -> Evidence:
    """Collect the evidence for new rows recoded like earlier ones; ``seen`` is their tally before recoding."""
    held_back, original = seen.n_records - rows.n_records, engine.knowing(seen)
    return Evidence(
        policy,
        released,
        lambda: engine.released(rows) if held_back else original,
        original,
        {name: determines for name, determines in generalized.items() if determines.errors(1)},
        (held_back, seen.n_records),
        held_back,
        notes=(*engine.notes, *rows.notes),
        joined=lambda person: engine.released(rows, person),
        counted=tallied_release(rows),
        attacks=attacks,
    )


def of_table(
    engine: Engine,
    seen: LocalEngine,
    table: FrequencyTable,
    policy: Policy,
    original: Engine | None = None,
    spelled: tuple[str, ...] = (),
    attacks: Attacks | None = None,
) -> Evidence:
    """Collect the evidence for a table, ``seen`` as a tally; with the ``original``, include what only it shows."""
    published, extras = engine.knowing(seen), unread_content(engine.source)
    if original is None or not {*policy.quasi, *policy.sensitive} <= set(original.columns):
        return Evidence(
            policy, table, lambda: published, notes=engine.notes, beside=extras, spelled=spelled, attacks=attacks
        )
    n = int(original.frequencies(policy.quasi[0]).sum())
    return Evidence(
        policy,
        table,
        lambda: published,
        original,
        dict.fromkeys(name for name in policy.quasi if _generalized(name, published, original)),
        (max(0, n - table.n_records), n),
        notes=engine.notes,
        beside=extras,
        spelled=spelled,
        attacks=attacks,
        labels=lambda: _labels_of_table(seen, original, policy),
    )


def _labels_of_table(seen: LocalEngine, original: Engine, policy: Policy) -> LabelEvidence:
    """Return the same for a table whose original is known: what the policy says about its labels is taken as true."""
    originals = original.tally(policy.quasi)
    hierarchies = {name: originals.hierarchy_of_release(name, policy) for name in policy.quasi}
    leaf_counts = {}
    for name, hierarchy in hierarchies.items():
        coded = originals.coded(name)
        leaf_of = hierarchy.encode([*coded.texts, None] if None in hierarchy.leaves else coded.texts)
        leaf_counts[name] = np.bincount(leaf_of[coded.codes], minlength=len(hierarchy.leaves)).astype(np.int64)
    return seen, hierarchies, leaf_counts


def _generalized(name: str, released: Countable, original: Countable) -> bool:
    """Return whether most values of a column do not occur in the original."""
    texts = set(released.texts(name))
    return 2 * len(texts - set(original.texts(name))) > len(texts)
