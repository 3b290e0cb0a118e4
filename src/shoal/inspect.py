"""Look at an unknown table: what each column is, which columns single people out, and a policy to start from.

Roles are guessed from names, shapes and counts, and guessed on the safe side: what is not clearly harmless
is taken for something an outsider may know. How well a set of columns tells people apart is counted, not
guessed. No value of the data gets into the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from shoal import toml
from shoal.engines.cells import Spellings, read_table
from shoal.errors import DataError
from shoal.roles import CROWD, PERSON_KEY, Kind, Role, Seen, all_numbers, roles_of
from shoal.separation import STRONGEST, Keys, Separation, Tuples, rank, ranked, separations
from shoal.table import codec
from shoal.table.builders import Flat, Mask
from shoal.table.dates import Dates
from shoal.table.intervals import Intervals
from shoal.table.propose import Proposal, propose
from shoal.table.spelling import guess, shared

if TYPE_CHECKING:
    from shoal.engines.ibis import IbisEngine

MAX_NODES = 2_000_000  # of the lattice that a proposed policy makes the optimal search walk
MANY = 2_000_000  # distinct values of a column that come from an engine; of more,
SOME = 1_000  # so many are looked at
TUPLES = 5_000_000  # distinct tuples of the strongest columns that come from it; more are counted there, set by set


@dataclass(frozen=True)
class Column:
    """What a column holds, and what it may be to an intruder."""

    name: str
    kind: Kind
    distinct: int
    nulls: int
    role: Role
    reason: str
    hierarchy: Proposal | None  # for quasi columns
    levels: int = 1  # of the hierarchy, ground and top among them
    missing: tuple[str, ...] | None = None  # where not all of the table's texts for missing values are some here
    decimal: str = "."
    thousands: str | None = None


@dataclass(frozen=True)
class Inspection:
    """What was found; ``policy`` turns it into something to run, and to edit."""

    records: int
    columns: tuple[Column, ...]
    separations: tuple[Separation, ...]  # single quasi columns, pairs, triples; of each the strongest first
    missing: tuple[str, ...] = ()  # texts that seem to stand for missing values; the figures count them so

    def having(self, role: Role) -> tuple[str, ...]:
        """The columns with this role."""
        return tuple(column.name for column in self.columns if column.role == role)

    @property
    def notes(self) -> tuple[str, ...]:
        """How cells were read: the policy says it too, and without it they are texts as they stand."""
        notes = []
        if self.missing:
            texts = ", ".join(repr(text) if text else "blanks" for text in self.missing)
            notes.append(f"taken for missing values, as the policy proposes: {texts}")
        for column in self.columns:
            marks = [f"decimal {column.decimal!r}"] if column.decimal != "." else []
            marks += [f"thousands {column.thousands!r}"] if column.thousands else []
            if marks:
                notes.append(f"column {column.name!r}: numbers are written with {' and '.join(marks)}")
        return tuple(notes)

    def strongest(self, size: int, limit: int = 5) -> tuple[Separation, ...]:
        """The sets of ``size`` columns that tell most people apart."""
        return tuple(s for s in self.separations if len(s.columns) == size)[:limit]

    @property
    def nodes(self) -> int:
        """Size of the lattice that the proposed hierarchies span."""
        return prod(column.levels for column in self.columns)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        columns = []
        for column in self.columns:
            spec = _written(column.hierarchy)
            columns.append({**asdict(replace(column, hierarchy=None)), "hierarchy": spec})
        return {
            "records": self.records,
            "missing": list(self.missing),
            "columns": columns,
            "separations": [separation.as_dict() for separation in self.separations],
        }

    def policy(self) -> str:
        """A policy in TOML that runs on this table as it is, with the reason for each role beside it."""
        if not self.having("quasi"):
            raise DataError(
                "no column is left to publish: all of them look like identifiers",
                "write a policy by hand and give the columns that are not identifiers their roles",
            )
        search = "optimal" if self.nodes <= MAX_NODES else "datafly"  # which needs no lattice
        lines = [
            "# Proposed from names, shapes and counts of the columns: read it before you trust it.",
            "# Roles: identifier (removed), quasi (an outsider may know it: generalized),",
            "# sensitive (must not be learned: kept), plain (kept as it is).",
            *self._warnings(),
            "",
            *([f"missing = {toml.value(self.missing)}  # read as missing values", ""] if self.missing else []),
            "[columns]",
            *(_line(column) for column in self.columns),
            "",
            "[[require]]",
            'model = "k-anonymity"',
            f"k = {max(1, min(CROWD, self.records))}",
            *self._advice(),
            "",
            "[release]",
            f'algorithm = "{search}"',
            'objective = "loss"',
            "max_suppression = 0.05     # share of records that may be hidden altogether",
            'nulls = "category"         # a missing value is a value of its own',
            "seed = 0",
            *self._entity(),
        ]
        return "\n".join(lines) + "\n"

    def _entity(self) -> list[str]:
        """Five records of one person are no crowd: where a key of persons repeats, say how to count persons."""
        return [
            f"# entity = {toml.string(column.name)}    # uncomment to count persons: some have several records"
            for column in self.columns
            if column.reason == PERSON_KEY and column.distinct < self.records - column.nulls
        ][:1]

    def _warnings(self) -> list[str]:
        lines = []
        for size in (1, 2, 3):
            for best in self.strongest(size, 1):
                names = ", ".join(map(toml.string, best.columns))
                lines.append(f"# Alone with their {names}: {best.unique_ratio:.1%} of the records.")
        return lines

    def _advice(self) -> list[str]:
        if not self.having("sensitive"):
            return []
        return [
            "",
            "# Crowds can share a secret; to prevent it, uncomment and name one of the sensitive columns:",
            "# [[require]]",
            '# model = "distinct-l-diversity"',
            f"# column = {toml.string(self.having('sensitive')[0])}",
            "# l = 2",
        ]


def inspect(table: pa.Table | IbisEngine) -> Inspection:
    """Guess the roles of the columns of a table, and count who stands out; in an engine its rows stay there."""
    source: _InMemory | _InEngine = _InMemory(table) if isinstance(table, pa.Table) else _InEngine(table)
    seen = source.seen()
    texts = {column.name: column.texts for column in seen if column.name in source.text_columns}
    spellings = {name: guess(found) for name, found in texts.items()}
    missing, apart = shared(spellings, texts)
    if strange := {name: spelling for name, spelling in spellings.items() if not spelling.is_plain}:
        source = source.spelled(strange)
        again = {column.name: column for column in source.seen(list(strange))}
        seen = [again.get(column.name, column) for column in seen]
    roles = roles_of(seen)
    specs = {
        column.name: propose(column.name, column.texts, column.counts) if column.all_there else Flat()
        for column, (role, _) in zip(seen, roles, strict=True)
        if role == "quasi"
    }
    width = {column.name: max(map(len, column.texts), default=0) for column in seen if column.name in specs}
    specs = _thinned(specs, width)
    columns = tuple(
        Column(
            column.name,
            column.kind,
            column.distinct,
            column.nulls,
            role,
            reason,
            specs.get(column.name),
            _levels(specs[column.name], width[column.name]) if role == "quasi" else 1,
            spellings[column.name].missing if column.name in apart else None,
            spellings[column.name].decimal if column.name in spellings else ".",
            spellings[column.name].thousands if column.name in spellings else None,
        )
        for column, (role, reason) in zip(seen, roles, strict=True)
    )
    quasi = [column for column in seen if column.name in specs]
    return Inspection(seen[0].records if seen else 0, columns, source.separations(quasi), missing)


# ── where the table is ──────────────────────────────────────────────────────────────────────────────────────


class _InMemory:
    """A table in memory."""

    def __init__(self, table: pa.Table) -> None:
        if len(set(table.column_names)) < table.num_columns:
            raise DataError("two columns of the table have the same name", "rename one of them")
        self._table = table
        self._coded = {name: codec.texts(name, table[name]) for name in table.column_names}

    @property
    def text_columns(self) -> list[str]:
        return [field.name for field in self._table.schema if _is_text(field.type)]

    def spelled(self, spellings: Spellings) -> _InMemory:
        table = self._table
        for name in spellings:
            table = table.set_column(table.schema.get_field_index(name), name, table[name].cast(pa.string()))
        return _InMemory(read_table(table, spellings))

    def seen(self, names: Sequence[str] | None = None) -> list[Seen]:
        return [
            Seen(name, coded.texts, _counts(coded, None), len(coded.codes), len(coded.texts), _numbers_rows(coded))
            for name, coded in self._coded.items()
            if names is None or name in names
        ]

    def separations(self, columns: Sequence[Seen]) -> tuple[Separation, ...]:
        codes = {column.name: self._coded[column.name].codes.astype(np.int64) + 1 for column in columns}
        return separations(codes, columns[0].records if columns else 0)


class _InEngine:
    """A table whose rows stay in their engine: its values come here, and the tuples of its strongest columns."""

    def __init__(self, engine: IbisEngine) -> None:
        self._engine = engine

    @property
    def text_columns(self) -> list[str]:
        kinds = self._engine.expression.schema()
        return [name for name, kind in kinds.items() if kind.is_string()]

    def spelled(self, spellings: Spellings) -> _InEngine:
        return _InEngine(self._engine.spelled(spellings))

    def seen(self, names: Sequence[str] | None = None) -> list[Seen]:
        distinct = self._engine.n_distinct(names or self._engine.columns)
        return [self._many(name, n) if n > MANY else self._few(name) for name, n in distinct.items()]

    def _few(self, name: str) -> Seen:
        groups = self._engine.groups([name])
        coded = codec.texts(name, groups.table[name])
        n = groups.table[groups.weight].to_numpy().astype(np.int64)
        counts, records, distinct = _counts(coded, n), int(n.sum()), len(coded.texts)
        return Seen(name, coded.texts, counts, records, distinct, _may_number_rows(coded.texts, records))

    def _many(self, name: str, distinct: int) -> Seen:
        """Its values are too many to come here: some are looked at, and all are counted."""
        values, filled, records = self._engine.some_values(name, SOME)
        texts = codec.texts(name, values).texts
        return Seen(name, texts, np.array([filled], np.int64), records, distinct, False, all_there=False)

    def separations(self, columns: Sequence[Seen]) -> tuple[Separation, ...]:
        if not columns:
            return ()
        single = [
            Separation.of((column.name,), np.append(column.counts, [column.nulls] if column.nulls else []))
            if column.all_there
            else self._asked((column.name,))
            for column in columns
        ]
        strong = [s.columns[0] for s in sorted(single, key=rank)[:STRONGEST]]
        records = columns[0].records
        if self._engine.n_tuples(strong) > TUPLES:
            return ranked(single, records, self._asked)
        rows = self._engine.tally(strong)
        codes = {name: rows.coded(name).codes.astype(np.int64) + 1 for name in strong}
        return ranked(single, records, Tuples(codes, rows.weights))

    def _asked(self, columns: tuple[str, ...]) -> Separation:
        return Separation(columns, *self._engine.crowds(columns))


def _is_text(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _counts(coded: codec.Coded, weights: Keys | None) -> Keys:
    """Records with each text."""
    there = coded.codes >= 0
    counts = np.bincount(coded.codes[there], None if weights is None else weights[there], len(coded.texts))
    return np.asarray(counts).astype(np.int64)


def _may_number_rows(texts: Sequence[str], records: int) -> bool:
    """Whether the values are 1, 2, 3 … or 0, 1, 2 …, in any order: rows in an engine have none."""
    if records < 3 or len(texts) != records or not all_numbers(texts):
        return False
    numbers = np.sort(np.array(texts, dtype=np.float64))
    return numbers[0] in (0, 1) and bool((np.diff(numbers) == 1).all())


def _numbers_rows(coded: codec.Coded) -> bool:
    """Whether the values are these in their order."""
    if len(coded.codes) < 3 or len(coded.texts) != len(coded.codes) or not all_numbers(coded.texts):
        return False
    rows = np.array(coded.texts, dtype=np.float64)[coded.codes]
    return rows[0] in (0, 1) and bool((np.diff(rows) == 1).all())


def _thinned(specs: Mapping[str, Proposal], width: Mapping[str, int]) -> dict[str, Proposal]:
    """Fewer levels, one at a time where there are most, until the lattice is small or nothing is left."""
    thin = dict(specs)
    while prod(_levels(spec, width[name]) for name, spec in thin.items()) > MAX_NODES:
        # Masks cannot lose a level, only all: they come when every other column has one step left.
        loosest = max(
            thin,
            key=lambda name: (
                _steps(thin[name]) > 1,
                isinstance(thin[name], Mask),
                _levels(thin[name], width[name]),
            ),
        )
        if isinstance(thin[loosest], Flat):
            break
        thin[loosest] = _thinner(thin[loosest])
    return thin


def _steps(spec: Proposal) -> int:
    match spec:
        case Intervals():
            return len(spec.intervals)
        case Dates():
            return len(spec.dates)
    return 0


def _thinner(spec: Proposal) -> Proposal:
    # Of four steps the second goes, of three the first, of two the last: 5 10 20 40, 5 20 40, 20 40, 20.
    gone = {2: 1, 3: 0}.get(_steps(spec), 1)
    match spec:
        case Intervals() if _steps(spec) > 1:
            return Intervals(intervals=spec.intervals[:gone] + spec.intervals[gone + 1 :])
        case Dates() if _steps(spec) > 1:
            kept = spec.dates[:gone] + spec.dates[gone + 1 :]
            return Dates(dates=kept, format=spec.format, pivot=spec.pivot)
    return Flat()


def _levels(spec: Proposal, longest: int) -> int:
    """Levels of the hierarchy that will be built, ground and top among them."""
    return longest + 1 if isinstance(spec, Mask) else _steps(spec) + 2


def _written(spec: Proposal | None) -> Any:
    return None if spec is None else spec.model_dump(mode="json", exclude_defaults=True)


def _line(column: Column) -> str:
    fields: dict[str, Any] = {"role": column.role}
    if column.hierarchy is not None:
        fields["hierarchy"] = _written(column.hierarchy)
    if column.missing is not None:
        fields["missing"] = column.missing
    if column.decimal != ".":
        fields["decimal"] = column.decimal
    if column.thousands is not None:
        fields["thousands"] = column.thousands
    return f"{toml.key(column.name)} = {toml.value(fields)}  # {column.reason}"
