"""Every attack on a release, with what an intruder is taken to know."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.attacks.background import exclusion, relative
from shoal.attacks.candidates import CandidateView, Secret, candidate_view, secret_of
from shoal.attacks.complementary import complementary_release
from shoal.attacks.external import external_knowledge
from shoal.attacks.homogeneity import homogeneity
from shoal.attacks.identity import identity
from shoal.attacks.inference import inference
from shoal.attacks.labels import LabelAttacks, LabelTarget, label_attacks
from shoal.attacks.minimality import NotApplicableError, UntoldError, minimality
from shoal.attacks.read_cache import shared_reads
from shoal.attacks.risk import TOLERANCES, Attacks, Question, Risk
from shoal.attacks.similarity import meaning, similarity
from shoal.attacks.singling_out import singling_out
from shoal.attacks.skewness import skewness
from shoal.attacks.tolerances import tolerances
from shoal.attacks.unsorted_matching import MOST_PEOPLE, unsorted_matching
from shoal.attacks.values import values_of
from shoal.engines.base import Engine, Groups, Query, Released, Rows
from shoal.engines.data import Data
from shoal.engines.local import LocalEngine
from shoal.engines.opening import engine_of, original_of
from shoal.errors import DataError, PolicyError, no_column
from shoal.hierarchies import builders
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.notation import codec
from shoal.policy import Policy, PolicySource, policy_of
from shoal.tables.frequency import RowNumbers
from shoal.text.figures import quoted_names
from shoal.text.log import log


@dataclass(frozen=True, eq=False)
class Intruder:
    """What an intruder knows and has besides the release.

    Parameters
    ----------
    knows
        The quasi-identifiers that the intruder knows of people; all of them when left out.
    register
        A table of people with names, who are linked instead of the people of the original.
    previous
        An earlier release of the same people.
    excludes
        How many sensitive values the intruder can rule out for a person.
    excluded
        Or, for each sensitive column, which values.
    level
        The level of a sensitive column's hierarchy on which values mean the same.
    within
        The share of a range within which numbers mean the same.

    Examples
    --------
    >>> import pyarrow as pa, shoal
    >>> people = pa.table({"age": [31, 34, 36, 38], "zip": [1, 1, 2, 2]})
    >>> neighbour = shoal.Intruder(knows=["zip"])
    >>> shoal.attack(people, quasi=["age", "zip"], intruder=neighbour).named("identity linking").share
    0.5
    """

    knows: Sequence[str] = ()
    register: Data | None = None
    previous: Data | Released | None = None
    excludes: int = 1
    excluded: Mapping[str, Sequence[str]] | None = None
    level: int = 1
    within: float = 0.25


def attack(
    release: Data | Released,
    *,
    original: Data | None = None,
    policy: PolicySource | None = None,
    quasi: Sequence[str] = (),
    sensitive: Sequence[str] = (),
    intruder: Intruder | None = None,
    control: Data | None = None,
    id: str | None = None,
    sample: int | None = 10_000,
    seed: int = 0,
) -> Attacks:
    """Attack a release, or any table, as an intruder would.

    Parameters
    ----------
    release
        What ``shoal.anonymize`` returned, or a path or frame, also from another tool.
    original
        The table that it was made from: its people are attacked, and its values are the truth. Without it the rows of
        the table attack themselves, as when raw data are judged.
    policy
        A policy that names quasi-identifiers, sensitive columns and hierarchies.
    quasi, sensitive
        The columns with these roles, if there is no policy.
    intruder
        What the intruder knows and has; by default all quasi-identifiers of everybody.
    control
        People who are not in the release: what can be said of them, the release did not disclose.
    id
        A column of release and original that identifies people, read by the referee alone.
    sample
        How many people are attacked at most, drawn at random; None for all.
    seed
        Repeats what is drawn.

    Returns
    -------
    Attacks
        The risks, one for each attack and sensitive column, what was left out, and notes for the reader.

    Raises
    ------
    PolicyError
        If no quasi-identifier is named, or a column that the intruder knows is none.
    DataError
        If a column does not exist, ``id`` is not unique, or a number is out of its range.

    Examples
    --------
    >>> import pyarrow as pa, shoal
    >>> people = pa.table({"age": [31, 34, 36, 38], "disease": ["flu", "flu", "hiv", "flu"]})
    >>> found = shoal.attack(people, quasi=["age"], sensitive=["disease"])
    >>> [(risk.name, risk.successes, risk.attempts) for risk in found][:2]
    [('singling out', 4.0, 4), ('identity linking', 4.0, 4)]
    """
    given_policy = None if policy is None else policy_of(policy)
    intruder = intruder or Intruder()
    target = _opened(release, original, given_policy, quasi, sensitive)
    on = _known_columns(target, intruder.knows)
    if id is not None and target.original is None:
        raise PolicyError(
            "id: identifies people in release and original, but there is no original",
            "pass the original, or omit id: without an original, the owner of each row is known",
        )
    if sample is not None and sample < 1:
        raise DataError("sample: must be at least 1")
    if intruder.excludes < 1:
        raise DataError("excludes: must be at least 1")
    attacks = _Session(target, on, intruder, id, sample, seed).run(control)
    log.info("attack: %d attacks run, %d skipped", len(tuple(attacks)), len(attacks.left_out))
    return attacks


# ── What is given ───────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class _Target:
    """A release and its roles."""

    release: pa.Table
    original: LocalEngine | None
    policy: Policy | None
    quasi: tuple[str, ...]
    sensitive: tuple[str, ...]
    persons: RowNumbers | None
    sources: RowNumbers | None  # the row of the original that each record was made of, where shoal made it
    ordered: bool  # whether both tables have a row order; rows that an engine grouped have none

    @property
    def people(self) -> pa.Table:
        """The targets: the people of the original, or without one those of the table itself."""
        return self.release if self.original is None else self.original.table


def attack_everybody(rows: Rows | Query | Groups, original: Data, policy: Policy) -> Attacks:
    """Attack everybody of the original, given finished rows."""
    names = [*policy.quasi, *policy.sensitive]
    table, persons = released_rows(rows, _joined_groups(rows, engine_of(original), policy))
    truth, ordered = _people(original, [*names, *_plain_columns(table, policy)], policy)
    if absent := [name for name in names if name not in truth.columns]:
        raise no_column("the original", absent, truth.columns)
    ordered = ordered and isinstance(rows, Rows)
    sources = rows.sources if isinstance(rows, Rows) else None  # only the referee may know
    target = _Target(table, truth, policy, policy.quasi, policy.sensitive, persons, sources, ordered)
    return _Session(target, policy.quasi, Intruder(), None, None, policy.release.seed).run(None)


def _opened(
    release: Data | Released,
    original: Data | None,
    policy: Policy | None,
    quasi: Sequence[str],
    sensitive: Sequence[str],
) -> _Target:
    persons = sources = None
    if isinstance(release, Released):
        policy = policy or release.policy
        if original is None and isinstance(release.rows, Rows):
            sources = release.rows.sources  # only the referee may know
        original = release.engine if original is None else original
        table, persons = released_rows(release.rows, _joined_groups(release.rows, release.engine, release.policy))
        ordered = isinstance(release.rows, Rows)
    else:
        table, ordered = _rows(release, [*quasi, *sensitive], policy)
    if policy is not None:
        quasi, sensitive = tuple(quasi) or policy.quasi, tuple(sensitive) or policy.sensitive
    if not quasi:
        raise PolicyError("quasi: specify at least one column that an attacker could know", "or pass a policy")
    engine = None
    if original is not None:
        engine, in_order = _people(original, [*quasi, *sensitive, *_plain_columns(table, policy)], policy)
        ordered = ordered and in_order
    for table_name, names in (("release", table.column_names), ("original", engine.columns if engine else None)):
        absent = [] if names is None else [name for name in (*quasi, *sensitive) if name not in names]
        if absent:
            raise no_column(f"the {table_name}", absent, names or ())
    if repeated := set(quasi) & set(sensitive):
        raise PolicyError(f"column {quoted_names(sorted(repeated))} is both a quasi-identifier and sensitive")
    return _Target(table, engine, policy, tuple(quasi), tuple(sensitive), persons, sources, ordered)


def _plain_columns(release: pa.Table, policy: Policy | None) -> list[str]:
    """Return the columns of a release that the policy publishes as they are: they may single people out, too."""
    return [] if policy is None else [name for name in policy.having("plain") if name in release.column_names]


def _joined_groups(rows: Rows | Query | Groups, engine: Engine, policy: Policy) -> Groups | None:
    """Count the released rows of an engine with their plain columns; None if it has counted all there is."""
    plain = policy.having("plain")
    if not isinstance(rows, Query) or not plain:
        return None
    person = rows.groups.person
    names = [*policy.quasi, *policy.sensitive, *plain, *([] if person is None else [person])]
    return replace(engine.released(rows, person).groups(list(dict.fromkeys(names))), person=person)


def released_rows(rows: Rows | Query | Groups, joined: Groups | None = None) -> tuple[pa.Table, RowNumbers | None]:
    """Return the released rows and their owners; for rows in an engine, as many of each kind as it counted.

    ``joined`` are the counts of an engine that include its plain columns.
    """
    if not isinstance(rows, Rows):
        groups = joined or (rows.groups if isinstance(rows, Query) else rows)
        table = _expanded(groups)
        person = groups.person
        if person is None:
            return table, None
        return table.drop_columns([person]), codec.encode_texts(person, table[person]).codes.astype(np.int64)
    return rows.table, None if rows.persons is None else rows.persons.astype(np.int64)


def _expanded(groups: Groups) -> pa.Table:
    n = np.asarray(groups.table[groups.weight]).astype(np.int64)
    return groups.table.drop_columns([groups.weight]).take(pa.array(np.repeat(np.arange(len(n)), n)))


def _rows(data: Data, names: Sequence[str], policy: Policy | None) -> tuple[pa.Table, bool]:
    engine, ordered = _engine(data, names, policy)
    return engine.table, ordered


def _people(data: Data, names: Sequence[str], policy: Policy | None) -> tuple[LocalEngine, bool]:
    """Return the rows of people who are attacked, or compared with these: their values as coarse as released ones."""
    if policy is None:
        return _engine(data, names, policy)
    return original_of(data, policy).listed(names or [*policy.quasi, *policy.sensitive])


def _engine(data: Data, names: Sequence[str], policy: Policy | None) -> tuple[LocalEngine, bool]:
    """Return the rows in memory, and whether they are in their original order.

    Of a table in another engine these are the columns that matter: the rows of a file, else as many of each kind as
    it counts.
    """
    return engine_of(data, policy).listed(names or ([] if policy is None else [*policy.quasi, *policy.sensitive]))


def _known_columns(target: _Target, names: Sequence[str]) -> tuple[str, ...]:
    if strange := [name for name in names if name not in target.quasi]:
        raise PolicyError(
            f"knows: {quoted_names(strange)} is not a quasi-identifier",
            f"quasi-identifiers: {', '.join(map(repr, target.quasi))}",
        )
    return tuple(dict.fromkeys(names)) or target.quasi


# ── The attacks ─────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class _Session:
    """One intruder attacking one release."""

    target: _Target
    on: tuple[str, ...]
    intruder: Intruder
    id: str | None
    sample: int | None
    seed: int

    @shared_reads()
    def run(self, control: Data | None) -> Attacks:
        target, register, previous = self.target, self.intruder.register, self.intruder.previous
        everybody = target.people
        rows = self._drawn(everybody.num_rows)
        people = everybody if rows is None else everybody.take(pa.array(rows))
        n_absent = max(0, everybody.num_rows - target.release.num_rows)
        owner = self._owners(people, rows)
        absent = 0 if owner is not None else math.ceil(n_absent * people.num_rows / max(1, everybody.num_rows))
        view = self._view(people, owner=owner, says=None if owner is not None else self._says(people), absent=absent)
        notes, left_out = self._notes(view, n_absent), []
        masked = self._masked(view, n_absent, everybody.num_rows)
        if masked:
            notes.append(
                f"{view.unmatched} of {view.n_people} targets match no record although at most {n_absent} were "
                "suppressed: the values were perturbed, so the nearest records are used instead"
            )
            view = self._nearest(view, people)
        outside = None if control is None else self._outside(control, masked)
        linked = view if register is None else self._register(register, masked, notes)
        strangers = None if outside is None else outside[0]
        plain, unread_plain = ((), ()) if register is not None or masked else self._plain(people)
        wide = linked if not plain else self._view(people, on=(*self.on, *plain), owner=owner, absent=absent)
        risks = [singling_out(wide, None if plain else strangers), identity(linked, strangers)]
        if target.original is None:
            left_out.append("unsorted matching: there is no original whose order could have been kept")
        elif not target.ordered:
            left_out.append("unsorted matching: the rows are in an engine, which keeps them in no order")
        else:
            risks.append(self._unsorted(n_absent, masked))
        if not target.sensitive:
            left_out.append("attacks on attributes: there is no sensitive column")
        unread: dict[str, float] = {}
        for name in target.sensitive:
            secret = self._secret(view, name, target.release, people)
            if secret.unread_share:
                unread[name] = secret.unread_share
            outside_secret = None
            if outside is not None and name in outside[1].column_names:
                outside_secret = self._secret(outside[0], name, target.release, outside[1])
            self._attributes(secret, outside_secret, risks, left_out)
            if previous is not None:
                risks.append(self._complementary(secret, previous, people, name))
        if previous is None:
            left_out.append("complementary release: no other release of the same people was given")
        untried = self._minimality(risks, left_out)
        if unread_plain:
            untried["singling out"] = f"{quoted_names(unread_plain)} was not read, which is released as it is"
        labels = self._labels(control)
        risks += labels.risks
        left_out += labels.left_out
        notes += labels.notes
        if outside is None:
            notes.append(
                "no control group was given: the controls are guesses that do not use the classes of the release"
            )
        return Attacks(
            tuple(risks),
            tuple(left_out),
            tuple(notes),
            unread=self._unread(view),
            unread_values=unread,
            undecided={**labels.undecided, **untried},
            owners_known=view.owner is not None,
            everybody=people.num_rows == everybody.num_rows,
            tolerances=TOLERANCES if target.policy is None else tolerances(target.policy),
        )

    def _plain(self, people: pa.Table) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the columns that are released as they are, and those of them that were not read.

        An intruder who knows all quasi-identifiers may know these, too.
        """
        policy, release = self.target.policy, self.target.release
        if policy is None or self.on != self.target.quasi:
            return (), ()
        plain = policy.having("plain")
        read = tuple(name for name in plain if name in release.column_names and name in people.column_names)
        return read, tuple(name for name in plain if name not in read)

    def _unread(self, view: CandidateView) -> dict[str, float]:
        """Return the share of cells that could not be interpreted, for each column that has any."""
        shares = {column.name: column.unread_share for column in view.columns}
        return {name: share for name, share in shares.items() if share > 0}

    def _says(self, people: pa.Table) -> tuple[RowNumbers, RowNumbers] | None:
        """Number what people and records have in their sensitive columns: equal ones may belong together."""
        release, mine, theirs = self.target.release, None, None
        for name in self.target.sensitive:
            of_people, released = codec.encode_texts(name, people[name]), codec.encode_texts(name, release[name])
            ground = of_people if people is self.target.people else codec.encode_texts(name, self.target.people[name])
            read = values_of(name, released, of_people, ground, self.target.policy)
            person_values, of_record, n = read.of_person, read.of_record, len(read.texts) + 1
            if mine is None or theirs is None:
                mine, theirs = person_values, of_record
                continue
            mine = np.where((mine < 0) | (person_values < 0), -1, mine * n + person_values)
            pairs = np.unique(theirs * n + of_record)  # numbered anew: products soon grow too large
            theirs = np.searchsorted(pairs, theirs * n + of_record)
            position = np.minimum(np.searchsorted(pairs, mine), len(pairs) - 1)
            mine = np.where((mine >= 0) & (pairs[position] == mine), position, -1)
        return None if mine is None or theirs is None else (mine, theirs)

    def _drawn(self, n: int) -> RowNumbers | None:
        if self.sample is None or n <= self.sample:
            return None
        return np.sort(np.random.default_rng(self.seed).choice(n, self.sample, replace=False))

    def _view(
        self, people: pa.Table, release: pa.Table | None = None, on: tuple[str, ...] | None = None, **options: Any
    ) -> CandidateView:
        attacked_release = release is None
        return candidate_view(
            people,
            self.target.release if release is None else release,
            self.on if on is None else on,
            ground=self.target.people,
            policy=self.target.policy,
            persons=self.target.persons if attacked_release else None,
            **options,
        )

    def _secret(self, view: CandidateView, name: str, release: pa.Table, truth: pa.Table) -> Secret:
        return secret_of(view, name, release, truth, ground=self.target.people, policy=self.target.policy)

    def _nearest(self, view: CandidateView, people: pa.Table) -> CandidateView:
        return view.with_nearest(people, self.target.release, self.target.policy, self.target.people)

    def _masked(self, view: CandidateView, n_absent: int, n: int) -> bool:
        """Return whether more people match no record than suppression or sampling can explain."""
        expected = n_absent * view.n_people / n
        slack = 4 * np.sqrt(expected) if view.n_people < n else 0.0
        return bool(view.unmatched > expected + slack)

    def _notes(self, view: CandidateView, n_absent: int) -> list[str]:
        policy = self.target.policy
        notes = [
            f"column {column.name!r}: {column.unread} released texts match no value of the original; they are "
            "assumed to mean all values without a text of their own (a policy with the hierarchy would resolve this)"
            for column in view.columns
            if column.unread
        ]
        if n_absent and view.owner is None:
            notes.append(
                f"{n_absent} records of the original are not in the release, and it is unknown which: a matching "
                "person is assumed to be the owner of the record, so linkage may be overestimated"
            )
        if policy is not None and policy.release.entity is not None and self.target.persons is None:
            notes.append(f"column {policy.release.entity!r} is not in the release: records are counted, not people")
        return notes

    def _owners(self, people: pa.Table, rows: RowNumbers | None) -> RowNumbers | None:
        if self.target.original is None:
            return np.arange(people.num_rows) if rows is None else rows
        if self.id is None:
            sources = self.target.sources
            if sources is None:
                return None
            record_of = np.full(self.target.people.num_rows, -1, np.int64)
            record_of[sources] = np.arange(len(sources))
            return record_of if rows is None else record_of[rows]
        for table_name, table in (("release", self.target.release), ("original", people)):
            if self.id not in table.column_names:
                raise no_column(f"id: the {table_name}", [self.id], table.column_names)
        mine, theirs = (
            codec.encode_texts(self.id, people[self.id]),
            codec.encode_texts(self.id, self.target.release[self.id]),
        )
        if len(theirs.texts) < len(theirs.codes):
            raise DataError(f"column {self.id!r}: is not unique in the release")
        record = {theirs.texts[code]: i for i, code in enumerate(theirs.codes)}
        return np.array([*(record.get(text, -1) for text in mine.texts), -1], np.int64)[mine.codes]

    def _outside(self, control: Data, masked: bool) -> tuple[CandidateView, pa.Table]:
        people = self._table("control", control)
        # Nobody of them is there; but the intruder does not know that, and links them all the same.
        view = self._view(people)
        return (self._nearest(view, people) if masked else view), people

    def _table(self, table_name: str, data: Data) -> pa.Table:
        table = _people(data, [*self.on, *self.target.sensitive], self.target.policy)[0].table
        if absent := [name for name in self.on if name not in table.column_names]:
            raise PolicyError(
                f"the {table_name} has no column {quoted_names(absent)}", "list the columns that it shares in knows"
            )
        rows = self._drawn(table.num_rows)
        return table if rows is None else table.take(pa.array(rows))

    def _register(self, register: Data, masked: bool, notes: list[str]) -> CandidateView:
        people = self._table("register", register)
        view = self._view(people, present=self._present(people, notes))
        return self._nearest(view, people) if masked else view

    def _present(self, people: pa.Table, notes: list[str]) -> NDArray[np.bool_] | None:
        """Return which people of a register are in the original, by comparing names, which the intruder cannot do."""
        target = self.target
        if target.original is None:
            notes.append(
                "without the original it is unknown who of the register is in the release: everyone who matches a "
                "record is assumed to be, so singling out and linking are upper bounds"
            )
            return None
        everybody = target.original.table
        # Without a policy, every other common column identifies people. If there is none, it is only known
        # that people with values that nobody in the original has are not there.
        names = everybody.column_names if target.policy is None else target.policy.identifiers
        roles = {*target.quasi, *target.sensitive}
        shared = [n for n in names if n in people.column_names and n in everybody.column_names and n not in roles]
        if not shared:
            notes.append(
                "register and original share no column that identifies people: people with equal values are assumed to "
                "be the same, so singling out and linking are upper bounds"
                + ("" if target.policy is None else " (give a column of both the role identifier)")
            )
        # The register may write a name or a number otherwise, or tell a decade only: its texts are read as a release's.
        view = candidate_view(everybody, people, [*shared, *self.on], policy=target.policy)
        has_people = np.bincount(view.kind_of, minlength=view.fits.shape[0]) > 0
        return np.asarray(view.fits.T @ has_people.astype(np.int64) > 0)[view.tuple_of]

    def _unsorted(self, n_absent: int, masked: bool) -> Risk:
        people = self.target.people.slice(0, MOST_PEOPLE)
        owner = self._owners(people, np.arange(people.num_rows))
        view = self._view(people, owner=owner, says=self._says(people))
        if masked:
            view = self._nearest(view, people)
        return unsorted_matching(view, n_absent=n_absent, seed=self.seed)

    def _attributes(self, secret: Secret, outside: Secret | None, risks: list[Risk], left_out: list[str]) -> None:
        knows = self.intruder
        named = tuple((knows.excluded or {}).get(secret.column, ()))
        risks += [
            homogeneity(secret, outside),
            exclusion(secret, outside, excludes=knows.excludes, excluded=named),
            relative(secret, outside),
            external_knowledge(secret),
            skewness(secret, outside),
            inference(secret, outside),
        ]
        means = meaning(secret, self._hierarchy(secret.column), level=knows.level, within=knows.within)
        if means is None:
            left_out.append(
                f"similarity on {secret.column}: needs numbers or a hierarchy with more than one step to "
                "say which values are similar"
            )
        else:
            risks.append(similarity(secret, means, outside))

    def _labels(self, control: Data | None) -> LabelAttacks:
        """Attack the labels of all records; what the intruder knows of people plays no part."""
        target = self.target
        quasi = tuple(name for name in target.quasi if name in self.on)
        outside = None
        if control is not None:
            table, _ = _rows(control, quasi, target.policy)
            outside = table if set(quasi) <= set(table.column_names) else None
        return label_attacks(LabelTarget(target.release, target.original, target.policy, quasi, outside, self.seed))

    def _hierarchy(self, name: str) -> Hierarchy | None:
        policy = self.target.policy
        if policy is None or name not in policy.columns or policy.columns[name].hierarchy is None:
            return None
        texts = codec.encode_texts(name, self.target.people[name]).texts
        return builders.build(
            name, policy.columns[name].hierarchy, texts, nulls=True, uncovered="suppress", folder=policy.folder
        )

    def _complementary(self, secret: Secret, previous: Data | Released, people: pa.Table, name: str) -> Risk:
        names = [*self.on, name]
        if isinstance(previous, Released):
            table = released_rows(previous.rows)[0]
        else:
            table, _ = _rows(previous, names, self.target.policy)
        if absent := [column for column in names if column not in table.column_names]:
            raise no_column("the previous release", absent, table.column_names)
        return complementary_release(secret, self._secret(self._view(people, table), name, table, people))

    def _minimality(self, risks: list[Risk], left_out: list[str]) -> dict[Question, str]:
        """Add the result of the minimality attack, or why it was skipped; return what stays undetermined."""
        target = self.target
        if target.policy is None or target.original is None:
            left_out.append("minimality: needs the original and the policy")
            return {}
        try:
            risks.extend(minimality(target.original, target.release, target.policy, seed=self.seed))
        except UntoldError as reason:
            left_out.append(f"minimality: cannot be determined: {reason}")
            return {"inference": f"the consequences of minimality were not determined: {reason}"}
        except NotApplicableError as reason:
            left_out.append(f"minimality: {reason}")
        return {}
