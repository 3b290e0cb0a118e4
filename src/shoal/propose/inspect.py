"""Inspect an unknown table: the role of each column, the columns that identify people, and a policy to start from.

Roles are guessed from names, value formats and counts, by what an outsider could know; each guess has a confidence, and
the most important decisions come first. How well a set of columns identifies people is counted, not guessed. The
result contains no value from the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from shoal.columns.persons import household_key, person_key
from shoal.columns.roles import AS_TOLD, CROWD, Guess, Kind, RawColumn, Sure, all_numbers, repeating, roles_of
from shoal.columns.uniqueness import STRONGEST, KeyNumbers, Separation, Tuples, ranked, separation_rank, separations
from shoal.engines.base import Engine
from shoal.engines.cells import Spellings, read_table
from shoal.engines.codebook import Codebook
from shoal.engines.data import Data
from shoal.engines.local_columns import is_text
from shoal.engines.opening import engine_of
from shoal.errors import DataError, PolicyError
from shoal.policy import Policy
from shoal.policy.column import Role
from shoal.table import codec
from shoal.table.frequency import packed
from shoal.table.kernels import group
from shoal.table.propose import HIDDEN_OR_SETS, Proposal, propose
from shoal.table.spelling import Spelling, guess, missing_texts
from shoal.text import toml
from shoal.text.log import log
from shoal.text.showing import Shown

if TYPE_CHECKING:
    from shoal.propose.keeping import Keeping

Purpose = Literal["analysis", "tables"]

MANY = 2_000_000  # distinct values of a column that come from an engine; of more,
SOME = 1_000  # so many are looked at
TUPLES = 5_000_000  # distinct tuples of the strongest columns that come from it; more are counted there, set by set
LARGE = 200_000  # records from which the proposal asks for mondrian: local would take minutes
CODES = 6  # of a codebook that the policy repeats beside a column
NEEDED = 5  # quasi columns above which the proposal for tables wants to know which ones matter
KEPT = 10  # times as much a column counts that a study needs


@dataclass(frozen=True)
class InspectedColumn:
    """The contents of a column and its guessed role."""

    name: str
    kind: Kind
    distinct: int
    nulls: int
    role: Role
    reason: str
    sure: Sure
    proposal: Proposal | None = None  # for quasi columns
    weight: float = 1.0
    missing: tuple[str, ...] | None = None  # where not all of the table's texts for missing values are some here
    decimal: str = "."
    thousands: str | None = None
    label: str = ""  # in the codebook of the file
    categories: tuple[tuple[str, str], ...] = ()  # labels of its values there

    @property
    def why(self) -> str:
        """The reason, after what the codebook says about the column."""
        return f"{self.label}: {self.reason}" if self.label else self.reason

    def fields(self, purpose: Purpose) -> dict[str, Any]:
        """The column as a policy writes it."""
        fields: dict[str, Any] = {"role": self.role}
        if self.proposal is not None:
            fields |= (self.proposal if purpose == "analysis" else self.proposal.for_one_cut()).fields()
        if self.weight != 1:
            fields["weight"] = self.weight
        if self.missing is not None:
            fields["missing"] = self.missing
        if self.decimal != ".":
            fields["decimal"] = self.decimal
        if self.thousands is not None:
            fields["thousands"] = self.thousands
        return fields


@dataclass(frozen=True)
class Decision:
    """A guess worth reviewing, with the number of unique records that depends on it."""

    column: str
    role: Role
    known: int  # unique records where others know the column
    unknown: int  # and where they do not

    @property
    def sentence(self) -> str:
        """The decision as a sentence."""
        guess = "outsiders know it" if self.role == "quasi" else "outsiders do not know it"
        return (
            f"{self.column}: assumed that {guess}. With it, {self.known:,} records are unique; without it, "
            f"{self.unknown:,}."
        )


@dataclass(frozen=True)
class Inspection(Shown):
    """The result of an inspection; ``policy`` can be run, ``toml`` is the same as text to edit."""

    records: int
    columns: tuple[InspectedColumn, ...]
    separations: tuple[Separation, ...]  # single quasi columns, pairs, triples; of each the strongest first
    entity: str | None = None  # the column that identifies people, if some have several records
    household: str | None = None  # the column that tells households apart
    decisions: tuple[Decision, ...] = ()  # the guesses that matter most, first
    purpose: Purpose = "analysis"
    missing: tuple[str, ...] = ()  # texts that seem to stand for missing values; the figures count them so
    keeping: Keeping | None = None  # what it costs the others that some columns are kept fine

    def having(self, role: Role) -> tuple[str, ...]:
        """Return the columns with this role."""
        return tuple(column.name for column in self.columns if column.role == role)

    @property
    def notes(self) -> tuple[str, ...]:
        """How cells were read, what columns were read as, and which search suits the size; the policy says so too."""
        notes = []
        if self.purpose == "analysis" and self.records > LARGE:
            notes.append(
                f"more than {LARGE:,} records: the policy uses mondrian by gain, which is fast; local has a "
                "smaller loss but would take minutes"
            )
        quasi = self.having("quasi")
        if self.purpose == "tables" and len(quasi) > NEEDED and all(column.weight == 1 for column in self.columns):
            notes.append(
                f"the same bins for {len(quasi)} columns are coarse: say which columns the tables need (keep), and "
                "give columns that they do not need the role identifier, which removes them"
            )
        if self.keeping is None and any(column.weight != 1 for column in self.columns):
            notes.append(
                "what it costs the other columns that some are kept fine was not measured: too many tuples in the "
                "engine, or no quick answer"
            )
        if self.missing:
            texts = ", ".join(repr(text) if text else "blanks" for text in self.missing)
            notes.append(f"read as missing values, as the policy proposes: {texts}")
        for column in self.columns:
            if column.proposal is not None and column.proposal.told:
                notes.append(f"column {column.name!r}: read as {column.proposal.told}")
            marks = [f"decimal {column.decimal!r}"] if column.decimal != "." else []
            marks += [f"thousands {column.thousands!r}"] if column.thousands else []
            if marks:
                notes.append(f"column {column.name!r}: numbers are written with {' and '.join(marks)}")
        return tuple(notes)

    def strongest(self, size: int, limit: int = 5) -> tuple[Separation, ...]:
        """Return the sets of ``size`` columns that identify the most people."""
        return tuple(s for s in self.separations if len(s.columns) == size)[:limit]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        columns = [
            {**asdict(replace(column, proposal=None)), "proposal": column.proposal and column.proposal.fields()}
            for column in self.columns
        ]
        return {
            "records": self.records,
            "missing": list(self.missing),
            "columns": columns,
            "separations": [separation.as_dict() for separation in self.separations],
            "entity": self.entity,
            "household": self.household,
            "decisions": [asdict(decision) for decision in self.decisions],
            "keeping": self.keeping and self.keeping.as_dict(),
        }

    @property
    def policy(self) -> Policy:
        """The proposal, to be run or edited in code."""
        return Policy.parse(self.toml())

    def toml(self) -> str:
        """The proposal as TOML, with the reason for each role."""
        if not self.having("quasi"):
            raise DataError(
                "no column can be published: all of them look like identifiers",
                "write a policy by hand, with roles for the columns that are not identifiers",
            )
        lines = [
            "# Proposed from names, shapes and counts of the columns: read it before you trust it.",
            "# Roles: identifier (removed), quasi (an outsider may know it: generalized),",
            "# sensitive (must not be learned: kept), plain (kept as it is).",
            *self._strongest(),
            *self._decide(),
            *(f"# {sentence}" for sentence in (self.keeping.sentences if self.keeping else ())),
            "",
            *([f"missing = {toml.value(self.missing)}  # read as missing values", ""] if self.missing else []),
            "[columns]",
            *(_line(column, self.purpose) for column in self.columns),
            "",
            "[[require]]",
            'model = "k-anonymity"',
            f"k = {max(1, min(CROWD, self.records))}",
            *self._advice(),
            "",
            "[release]",
            *self._search(),
            'objective = "loss"',
            'nulls = "category"         # a missing value is a value of its own',
            "seed = 0",
            *self._entity(),
        ]
        return "\n".join(lines) + "\n"

    def _search(self) -> list[str]:
        if self.purpose == "tables":
            return [
                'algorithm = "single_dimensional"   # the same bins everywhere, for tables and joins; where a class',
                "                           # would be too small, single cells are hidden",
            ]
        if self.records > LARGE:
            return [
                f'algorithm = "mondrian"     # "local" has a smaller loss, but takes minutes beyond {LARGE:,} records',
                'dimension = "gain"',
            ]
        return ['algorithm = "local"        # each class is generalized separately, as little as possible']

    def _entity(self) -> list[str]:
        """The lines that name the entity: if people have several records, k must count people."""
        persons = "counts people: some have several records"
        homes = "also reports household risk"
        keys = {"entity": (self.entity, persons), "household": (self.household, homes)}
        return [f"{key} = {toml.string(name)}    # {why}" for key, (name, why) in keys.items() if name is not None]

    def _strongest(self) -> list[str]:
        lines = []
        for size in (1, 2, 3):
            for best in self.strongest(size, 1):
                names = ", ".join(map(toml.string, best.columns))
                lines.append(f"# Unique by {names}: {best.unique_ratio:.1%} of the records.")
        return lines

    def _decide(self) -> list[str]:
        if not self.decisions:
            return []
        return ["# Decide these first:", *(f"#   {toml.string(d.sentence)[1:-1]}" for d in self.decisions[:3])]

    def _advice(self) -> list[str]:
        if not self.having("sensitive"):
            return []
        return [
            "",
            "# Records that look alike can share a sensitive value; to prevent it, uncomment and name a column:",
            "# [[require]]",
            '# model = "distinct-l-diversity"',
            f"# column = {toml.string(self.having('sensitive')[0])}",
            "# l = 2",
        ]


def inspect(
    data: Data,
    *,
    known: Sequence[str] = (),
    sensitive: Sequence[str] = (),
    keep: Sequence[str] = (),
    purpose: str = "analysis",
) -> Inspection:
    """Guess the roles of the columns of a table, and count who stands out; in an engine its rows stay there.

    ``known`` names columns that outsiders know, ``sensitive`` those that nobody should learn; the others are guessed.
    ``keep`` names columns that a study needs as fine as possible. ``purpose`` is ``"analysis"``, where every group of
    records is coarsened for itself, or ``"tables"``, with the same bins in the whole column.

    >>> import pyarrow as pa, shoal
    >>> people = pa.table({"age": [31, 34, 36, 38], "disease": ["flu", "flu", "hiv", "flu"]})
    >>> found = shoal.inspect(people)
    >>> {column.name: column.role for column in found.columns}
    {'age': 'quasi', 'disease': 'sensitive'}
    """
    if purpose not in ("analysis", "tables"):
        raise PolicyError(f"purpose: unknown purpose {purpose!r}", "purposes: analysis, tables")
    engine = engine_of(data)
    source: _InMemory | _InEngine = _InMemory(engine.table, engine.codebook) if engine.in_memory else _InEngine(engine)
    seen = source.seen()
    _require_columns(seen, known, sensitive, keep)
    texts = {column.name: column.texts for column in seen if column.name in source.text_columns}
    spellings = {name: guess(found) for name, found in texts.items()}
    missing, apart = missing_texts(spellings, texts)
    if strange := {name: spelling for name, spelling in spellings.items() if not spelling.is_plain}:
        source = source.spelled(strange)
        again = {column.name: column for column in source.seen(list(strange))}
        seen = [again.get(column.name, column) for column in seen]
    entity, household = person_key(seen, source.tuples), household_key(seen)
    guesses = roles_of([column for column in seen if column.name not in {*known, *sensitive}], any_quasi=bool(known))
    guessed = iter(guesses)
    told = {name: Guess("quasi", AS_TOLD, "sure") for name in known}
    told |= {name: Guess("sensitive", AS_TOLD, "sure") for name in sensitive}
    found = {c.name: told[c.name] if c.name in told else next(guessed) for c in seen}
    found |= _keys({entity: "persons", household: "households"}, told)
    found |= repeating(seen, found, source.tuples)
    columns = tuple(
        _column(column, found[column.name], keep, spellings.get(column.name), column.name in apart) for column in seen
    )
    quasi = [column for column in seen if found[column.name].role == "quasi"]
    log.info("inspect: %d columns, %d of them quasi", len(seen), len(quasi))
    proposal = Inspection(
        seen[0].records if seen else 0,
        columns,
        source.separations(quasi),
        entity if entity not in told else None,
        household if household not in told else None,
        source.decisions(columns),
        "tables" if purpose == "tables" else "analysis",
        missing,
    )
    if not keep or not quasi:
        return proposal
    from shoal.propose.keeping import cost_of_keeping  # the searches are not needed elsewhere

    return replace(proposal, keeping=cost_of_keeping(engine, proposal.policy))


def policy_for(
    data: Data, *, k: int, quasi: Sequence[str], sensitive: Sequence[str] = (), purpose: Purpose = "analysis"
) -> Policy:
    """Propose a policy with these roles: of the other columns, identifiers are removed and the rest is kept."""
    found = inspect(data, known=quasi, sensitive=sensitive, purpose=purpose)
    named = {*quasi, *sensitive}
    columns = {
        column.name: column.fields(purpose)
        if column.name in named or column.role == "identifier"
        else {"role": "plain"}
        for column in found.columns
    }
    proposed = found.policy
    fields: dict[str, Any] = {
        "columns": columns,
        "require": [{"model": "k-anonymity", "k": k}],
        "release": proposed.release.model_dump(mode="json", exclude_none=True),
    }
    return Policy.of(fields | ({"missing": list(found.missing)} if found.missing else {}))


def _require_columns(
    seen: Sequence[RawColumn], known: Sequence[str], sensitive: Sequence[str], keep: Sequence[str]
) -> None:
    names = {column.name for column in seen}
    for what, given in (("known", known), ("sensitive", sensitive), ("keep", keep)):
        if isinstance(given, str):
            raise PolicyError(f"{what}: expected a list of columns, not a single text")
        if absent := [name for name in given if name not in names]:
            raise PolicyError(f"{what}: the table has no column {', '.join(map(repr, absent))}")
    if both := set(known) & set(sensitive):
        raise PolicyError(f"column {min(both)!r} is listed as known and as sensitive", "choose one")


def _keys(found: dict[str | None, str], told: dict[str, Guess]) -> dict[str, Guess]:
    return {
        name: Guess("identifier", f"identifies {what}: several records share a value", "likely")
        for name, what in reversed(found.items())
        if name is not None and name not in told
    }


def _column(
    column: RawColumn, guessed: Guess, keep: Sequence[str], spelling: Spelling | None, missing_apart: bool
) -> InspectedColumn:
    proposal = None
    if guessed.role == "quasi":
        proposal = propose(column.name, column.texts, column.counts) if column.all_there else HIDDEN_OR_SETS
        if column.labelled and proposal.cells == "range":
            proposal = replace(proposal, cells="set")  # of codes: what lies between two of them means nothing
    return InspectedColumn(
        column.name,
        column.kind,
        column.distinct,
        column.nulls,
        guessed.role,
        guessed.reason,
        guessed.sure,
        proposal,
        KEPT if column.name in keep and guessed.role == "quasi" else 1,
        spelling.missing if spelling is not None and missing_apart else None,
        "." if spelling is None else spelling.decimal,
        None if spelling is None else spelling.thousands,
        column.label,
        tuple(column.categories.items()),
    )


# ── where the table is ──────────────────────────────────────────────────────────────────────────────────────


class _InMemory:
    """A table in memory."""

    def __init__(self, table: pa.Table, codebook: Codebook) -> None:
        self._codebook = codebook
        if len(set(table.column_names)) < table.num_columns:
            raise DataError("two columns of the table have the same name", "rename one of them")
        self._table = table
        self._coded = {name: codec.encode_texts(name, table[name]) for name in table.column_names}

    @property
    def text_columns(self) -> list[str]:
        return [field.name for field in self._table.schema if is_text(field.type)]

    def spelled(self, spellings: Spellings) -> _InMemory:
        table = self._table
        for name in spellings:
            table = table.set_column(table.schema.get_field_index(name), name, table[name].cast(pa.string()))
        return _InMemory(read_table(table, spellings), self._codebook)

    def seen(self, names: Sequence[str] | None = None) -> list[RawColumn]:
        return [
            RawColumn(
                name,
                coded.texts,
                _counts(coded, None),
                len(coded.codes),
                len(coded.texts),
                _numbers_rows(coded),
                label=self._codebook.columns.get(name, ""),
                categories=self._codebook.values.get(name, {}),
            )
            for name, coded in self._coded.items()
            if names is None or name in names
        ]

    def tuples(self, *names: str) -> int:
        codes = {name: self._coded[name].codes.astype(np.int64) + 1 for name in names}
        return Tuples(codes, None)(names).distinct

    def decisions(self, columns: Sequence[InspectedColumn]) -> tuple[Decision, ...]:
        """Count the unique records with and without each column whose guess is uncertain."""
        quasi = [column.name for column in columns if column.role == "quasi"]
        doubtful = [c for c in columns if c.sure == "unsure" and c.role in ("quasi", "sensitive")]
        found = []
        for column in doubtful:
            others = [name for name in quasi if name != column.name]
            known, unknown = self._uniques([*others, column.name]), self._uniques(others)
            found.append(Decision(column.name, column.role, known, unknown))
        return tuple(sorted(found, key=lambda d: d.unknown - d.known))

    def _uniques(self, names: Sequence[str]) -> int:
        if not names:
            return 0
        codes = np.column_stack([self._coded[name].codes + 1 for name in names]).astype(np.int32)
        return int((np.bincount(group(packed(codes))[0]) == 1).sum())

    def separations(self, columns: Sequence[RawColumn]) -> tuple[Separation, ...]:
        codes = {column.name: self._coded[column.name].codes.astype(np.int64) + 1 for column in columns}
        return separations(codes, columns[0].records if columns else 0)


class _InEngine:
    """A table whose rows stay in their engine: only its values and the tuples of its strongest columns are fetched."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def text_columns(self) -> list[str]:
        return self._engine.text_columns

    def spelled(self, spellings: Spellings) -> _InEngine:
        return _InEngine(self._engine.spelled(spellings))

    def seen(self, names: Sequence[str] | None = None) -> list[RawColumn]:
        distinct = self._engine.n_distinct(names or self._engine.columns)
        return [self._many(name, n) if n > MANY else self._few(name) for name, n in distinct.items()]

    def _few(self, name: str) -> RawColumn:
        groups = self._engine.groups([name])
        coded = codec.encode_texts(name, groups.table[name])
        n = groups.table[groups.weight].to_numpy().astype(np.int64)
        counts, records, distinct = _counts(coded, n), int(n.sum()), len(coded.texts)
        return RawColumn(name, coded.texts, counts, records, distinct, _may_number_rows(coded.texts, records))

    def _many(self, name: str, distinct: int) -> RawColumn:
        """Inspect a column with too many values to fetch: a sample is read, and all are counted."""
        values, filled, records = self._engine.some_values(name, SOME)
        texts = codec.encode_texts(name, values).texts
        return RawColumn(name, texts, np.array([filled], np.int64), records, distinct, False, all_there=False)

    def tuples(self, *names: str) -> int:
        return self._engine.n_tuples(names)

    def decisions(self, columns: Sequence[InspectedColumn]) -> tuple[Decision, ...]:
        """Count the same in the engine."""
        quasi = [column.name for column in columns if column.role == "quasi"]
        found = []
        for column in columns:
            if column.sure == "unsure" and column.role in ("quasi", "sensitive"):
                others = [name for name in quasi if name != column.name]
                known = self._asked((*others, column.name)).unique
                found.append(
                    Decision(column.name, column.role, known, self._asked(tuple(others)).unique if others else 0)
                )
        return tuple(sorted(found, key=lambda d: d.unknown - d.known))

    def separations(self, columns: Sequence[RawColumn]) -> tuple[Separation, ...]:
        if not columns:
            return ()
        single = [
            Separation.of((column.name,), np.append(column.counts, [column.nulls] if column.nulls else []))
            if column.all_there
            else self._asked((column.name,))
            for column in columns
        ]
        strong = [s.columns[0] for s in sorted(single, key=separation_rank)[:STRONGEST]]
        records = columns[0].records
        if self._engine.n_tuples(strong) > TUPLES:
            return ranked(single, records, self._asked)
        rows = self._engine.tally(strong)
        codes = {name: rows.coded(name).codes.astype(np.int64) + 1 for name in strong}
        return ranked(single, records, Tuples(codes, rows.weights))

    def _asked(self, columns: tuple[str, ...]) -> Separation:
        return Separation(columns, *self._engine.crowds(columns))


def _counts(coded: codec.Coded, weights: KeyNumbers | None) -> KeyNumbers:
    """Return the number of records with each text."""
    there = coded.codes >= 0
    counts = np.bincount(coded.codes[there], None if weights is None else weights[there], len(coded.texts))
    return np.asarray(counts).astype(np.int64)


def _may_number_rows(texts: Sequence[str], records: int) -> bool:
    """Return whether the values are 1, 2, 3 … or 0, 1, 2 …, in any order: rows in an engine have none."""
    if records < 3 or len(texts) != records or not all_numbers(texts):
        return False
    numbers = np.sort(np.array(texts, dtype=np.float64))
    return numbers[0] in (0, 1) and bool((np.diff(numbers) == 1).all())


def _numbers_rows(coded: codec.Coded) -> bool:
    """Return whether the values number the rows in their order."""
    if len(coded.codes) < 3 or len(coded.texts) != len(coded.codes) or not all_numbers(coded.texts):
        return False
    rows = np.array(coded.texts, dtype=np.float64)[coded.codes]
    return rows[0] in (0, 1) and bool((np.diff(rows) == 1).all())


def _line(column: InspectedColumn, purpose: Purpose) -> str:
    fields = column.fields(purpose)
    taken = column.proposal.told if column.proposal else ""
    told = f"; read as {taken}" if taken else ""
    said = toml.string(f"{column.why}{_doubt(column)}{told}{_codes(column)}")[1:-1]
    return f"{toml.key(column.name)} = {toml.value(fields)}  # {said}"


def _codes(column: InspectedColumn) -> str:
    """List what the first codes mean according to the codebook."""
    told = [f"{code} = {label}" for code, label in column.categories[:CODES]]
    return f"; {', '.join([*told, *['…'][: len(column.categories) > CODES]])}" if told else ""


def _doubt(column: InspectedColumn) -> str:
    return " (unsure)" if column.sure == "unsure" else ""
