"""Save a recoding and replay it on new rows with the same schema.

A recoding says what every value is replaced by, or every tuple if cells were recoded individually. Replaying it on new
rows makes them comparable with the earlier release. New rows are a release of their own: someone who has the earlier
release can distinguish them from it, so they must satisfy the policy by themselves. Rows that do not are held back and
counted.

The file lists values of the data with their replacements: it is for the owners of the data, not for publication.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.attacks.run import measured
from shoal.engines.base import Groups, Query, Released, Rows, require_columns
from shoal.engines.data import Data
from shoal.engines.dependence import dependence_of
from shoal.engines.files import formats
from shoal.engines.files.formulas import Formulas
from shoal.engines.local import LocalEngine, hash_order
from shoal.engines.opening import engine_of, order_of_release, population_of
from shoal.engines.sql import unused
from shoal.errors import DataError, InfeasibleError, OutputError, PolicyError, ShoalError, VerificationError
from shoal.judge import Gaps, failing_classes, judged, require
from shoal.judge.evidence import of_replay
from shoal.judge.recount import Reference, recounted, recounted_file, recounted_groups
from shoal.judge.warning_list import warnings_of
from shoal.models.verdict import Verdicts
from shoal.policy import Policy
from shoal.recoding import Cells, Cuts, FullDomain
from shoal.release import Release, formulas_in, refuse_to_overwrite
from shoal.table import builders, codec
from shoal.table.bounds import with_bounds
from shoal.table.frequency import FrequencyTable, among, packed
from shoal.table.hierarchy import Label
from shoal.table.intervals import number
from shoal.table.kernels import group
from shoal.table.notation import read_range
from shoal.text.jsonable import read_json
from shoal.text.log import log

if TYPE_CHECKING:
    from shoal.engines.ibis import IbisEngine

SCHEMA = "shoal-recoding/1"


# ── kept ────────────────────────────────────────────────────────────────────────────────────────────────────


def described(release: Release) -> dict[str, Any]:
    """Return the recoding of a release as plain values for JSON."""
    recoding, (table, _) = release.recoding, release.engine.counted
    kept: dict[str, Any] = {"schema": SCHEMA, "policy": release.policy.model_dump(mode="json", exclude_none=True)}
    released = recoding.released
    if isinstance(recoding, Cells):
        return kept | {"tuples": _tuples(recoding, table)}
    parts = recoding.parts(_every_leaf(table))
    columns = {}
    for j, values in enumerate(released):
        leaves = values.hierarchy.leaves
        numbers = parts.codes[np.arange(len(leaves)), j]
        uncovered = values.hierarchy.uncovered
        columns[values.hierarchy.column] = {
            "level": recoding.levels[values.hierarchy.column] if isinstance(recoding, FullDomain) else None,
            "values": [
                [leaf, values.labels[n]]
                for i, (leaf, n) in enumerate(zip(leaves, numbers.tolist(), strict=True))
                if i != uncovered and _lies_in(leaf, values.labels[n])
            ],
        }
    if not isinstance(recoding, FullDomain | Cuts):
        raise TypeError(f"{type(recoding).__name__} has no suppressed tuples")
    suppressed = [[released[j].labels[n] for j, n in enumerate(codes)] for codes in recoding.suppressed.tolist()]
    return kept | {"columns": columns, "suppressed": suppressed}


def _lies_in(leaf: Label, label: Label) -> bool:
    """Return whether a number is in the range it would be released as: 39.5 is not in 30-39 of whole numbers."""
    span = None if leaf is None or label is None else read_range(label)
    value = None if leaf is None or span is None else number(leaf)
    return span is None or value is None or span.holds(value)


def _every_leaf(table: FrequencyTable) -> FrequencyTable:
    """Return a table with every leaf of every column in some row, to see what each value is replaced by."""
    sizes = [len(h.leaves) for h in table.hierarchies]
    codes = np.zeros((max(sizes), len(sizes)), np.int32)
    for j, size in enumerate(sizes):
        codes[:size, j] = np.arange(size)
    return FrequencyTable(table.columns, codes, np.ones(len(codes), np.int64), hierarchies=table.hierarchies)


def _tuples(recoding: Cells, table: FrequencyTable) -> list[list[list[Label]]]:
    """Return what most records of each tuple were released as."""
    parts = recoding.parts(table)
    order = np.lexsort((-parts.counts, parts.row))
    order = order[~parts.suppressed[order]]
    found: dict[tuple[Label, ...], list[Label]] = {}
    for i in order.tolist():
        codes = table.codes[parts.row[i]]
        tuple_ = tuple(h.leaves[leaf] for h, leaf in zip(table.hierarchies, codes.tolist(), strict=True))
        if any(h.uncovered == leaf for h, leaf in zip(table.hierarchies, codes.tolist(), strict=True)):
            continue  # the leaf stands for values that it does not name
        found.setdefault(
            tuple_, [values.labels[n] for values, n in zip(recoding.released, parts.codes[i].tolist(), strict=True)]
        )
    return [[list(tuple_), labels] for tuple_, labels in found.items()]


def save(release: Release, path: str | Path, *, force: bool = False) -> None:
    """Write the recoding of a release, to be replayed; it holds values of the data, and only its owner may read it."""
    text = json.dumps(described(release), ensure_ascii=False) + "\n"
    formats.write_text(Path(path), text, force=force, private=True)


# ── replayed ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class Replay(Released):
    """New rows recoded like earlier ones, and how many were held back."""

    rows: Rows | Query
    engine: LocalEngine | IbisEngine
    policy: Policy
    reference: Reference
    verdicts: Verdicts
    unknown: int  # records with values that the recoding has no place for
    suppressed: int  # records whose tuple was suppressed in the earlier release
    failing: int  # records in classes that would not keep the policy

    @property
    def held_back(self) -> int:
        """The number of records that are not released."""
        return self.unknown + self.suppressed + self.failing

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "records": self.rows.n_records,
            "held_back": self.held_back,
            "unknown": self.unknown,
            "suppressed": self.suppressed,
            "failing": self.failing,
            "verdicts": self.verdicts.as_dict(),
        }

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the rows to a temporary file, verify it with SQL, and rename it into place only if everything holds."""
        refuse_to_overwrite(self.engine.source, path)
        formulas = formulas_in(path, self.policy)
        if isinstance(self.rows, Rows):
            self._write_file(self.rows, Path(path), force, formulas)
        elif not isinstance(self.engine, LocalEngine):
            self.engine.write(
                self.rows,
                str(path),
                self.policy,
                force=force,
                verify=lambda groups: self._verify(recounted_groups(groups, self.policy.quasi, self.reference)),
                formulas=formulas,
            )

    def _write_file(self, rows: Rows, path: Path, force: bool, formulas: Formulas | None) -> None:
        engine = _local(self.engine)
        if str(path).startswith("table:"):
            raise OutputError(
                "a table in memory can only be saved to a file", "use a .csv, .parquet, .xlsx, .sav or .dta file"
            )
        rows = replace(rows, table=with_bounds(rows.table, self.policy))

        def verify(written: Path) -> None:
            self._verify(recounted_file(written, engine.dialect, rows, self.policy, self.reference, formulas))

        table = rows.table if formulas is None else formulas.escaped(rows.table)
        formats.write(table, path, dialect=engine.dialect, codebook=engine.codebook, force=force, verify=verify)

    def _verify(self, table: FrequencyTable) -> None:
        of_attacks = self.verdicts.verdicts[len(self.policy.models) :]  # on these rows, which the file repeats
        verdicts = judged(table, self.policy, limits=of_attacks)
        require(verdicts)
        if not verdicts.same(self.verdicts):
            raise VerificationError("the written table does not match the recoded rows; nothing was released")


def _local(engine: LocalEngine | IbisEngine) -> LocalEngine:
    if not isinstance(engine, LocalEngine):
        raise TypeError("the rows are not in memory")
    return engine


def replay(recoding: str | Path | Mapping[str, Any], data: Data, *, folder: str | Path | None = None) -> Replay:
    """Recode ``data`` like an earlier release, and hold back rows that would violate its policy.

    ``data`` is a path, a frame, or an Ibis table, whose rows stay where they are. Files that the policy names are found
    in ``folder``: that of the recoding, or the current one, when left out.
    """
    kept = recoding if isinstance(recoding, Mapping) else _read(Path(recoding))
    if folder is None:
        folder = Path() if isinstance(recoding, Mapping) else Path(recoding).parent
    policy = _policy(kept, Path(folder))
    engine = engine_of(data, policy)
    require_columns(engine.columns, policy)
    rows = engine if isinstance(engine, LocalEngine) else engine.tallied(policy)  # or distinct ones, with numbers
    if policy.release.nulls == "forbid":
        rows.forbid_nulls(policy)
    weights = np.ones(rows.table.num_rows, np.int64) if rows.weights is None else rows.weights
    became, known = _by_tuple(kept, rows, policy) if "tuples" in kept else _by_value(kept, rows, policy)
    gone = known & _among(became, kept.get("suppressed", []))
    outside = population_of(policy)
    reference = Reference(engine.domains(policy), None if outside is None else outside.people(policy), policy.marks)
    left = np.flatnonzero(known & ~gone)
    n_left = int(weights[left].sum())
    while len(left):
        seen = _seen(rows, policy, became, left)
        table = recounted_groups(seen, policy.quasi, reference)
        bad = _failing(seen.table, table, policy)
        if not bad.any():
            break
        left = left[~bad]
    unknown, suppressed = int(weights[~known].sum()), int(weights[gone].sum())
    failing = n_left - int(weights[left].sum())
    if not len(left):
        raise InfeasibleError(
            f"all {engine.n_records} records are held back: {unknown} have values unknown to the recoding, "
            f"{suppressed} have suppressed tuples, {failing} would violate the policy",
            "collect more records before the next release",
        )
    released = _released(engine, policy, became, left)
    table = recounted(released, policy, reference)
    gaps, _ = Gaps.of(policy, engine.columns, order_of_release(engine, policy))
    verdicts = judged(table, policy, attacks=measured(released, engine, policy), gaps=gaps)
    require(verdicts)
    tell = {
        name: dependence_of(of.codes[left], rows.numbered(name)[left], weights[left])
        for name, of in zip(policy.quasi, became, strict=True)
    }
    verdicts = replace(verdicts, warnings=warnings_of(of_replay(engine, released, tell, table, policy)))
    log.info("replay: %d records recoded, %d held back", released.n_records, unknown + suppressed + failing)
    return Replay(released, engine, policy, reference, verdicts, unknown, suppressed, failing)


def _read(path: Path) -> dict[str, Any]:
    try:
        kept = read_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        kept = None
    if not isinstance(kept, dict) or kept.get("schema") != SCHEMA:
        raise DataError(
            f"{path} is not a recoding", "write one with shoal.release.replay.save", option="shoal anonymize --recoding"
        )
    return kept


def _policy(kept: Mapping[str, Any], folder: Path) -> Policy:
    """Return the policy of a recoding, after checking that the rest of the recoding matches it."""
    try:
        policy = Policy.of(kept.get("policy", {}), folder)
    except PolicyError as error:
        raise DataError(f"the recoding contains no valid policy: {error.message}", error.hint) from None
    n = len(policy.quasi)
    if "tuples" in kept:
        fits = _are(kept["tuples"], lambda pair: _are(pair, lambda labels: _are_labels(labels, n), 2))
    else:
        columns = kept.get("columns")
        fits = isinstance(columns, Mapping) and all(_is_column(columns.get(name)) for name in policy.quasi)
    if not fits or not _are(kept.get("suppressed", []), lambda labels: _are_labels(labels, n)):
        raise DataError(
            "the recoding does not cover the quasi-identifiers of its policy",
            "was it modified? Write it again",
            option="shoal anonymize --recoding",
        )
    return policy


def _is_column(given: Any) -> bool:
    if not isinstance(given, Mapping) or not _are(given.get("values"), lambda pair: _are_labels(pair, 2)):
        return False
    level = given.get("level", "")
    return level is None or (isinstance(level, int) and not isinstance(level, bool) and level >= 0)


def _are_labels(given: Any, n: int) -> bool:
    return _are(given, lambda label: label is None or isinstance(label, str), n)


def _are(given: Any, fits: Callable[[Any], bool], n: int | None = None) -> bool:
    """Return whether a list has ``n`` items that all pass a test."""
    return isinstance(given, list | tuple) and (n is None or len(given) == n) and all(map(fits, given))


@dataclass(frozen=True, eq=False)
class Became:
    """What the values of a quasi-identifier are replaced by: a label for every row, by its number."""

    codes: NDArray[np.int64]
    labels: tuple[Label, ...]
    same: bool  # whether all that are known stay what they are

    @classmethod
    def of(cls, class_of: NDArray[Any], labels: Sequence[Label], same: bool) -> Became:
        """Build it from the class of each row and the label of each class."""
        place = {label: i for i, label in enumerate(dict.fromkeys(labels))}
        return cls(np.array([place[label] for label in labels], np.int64)[class_of], tuple(place), same)

    @property
    def column(self) -> pa.Array:
        """The labels of the rows."""
        return pa.array(self.labels, pa.string()).take(pa.array(self.codes))


Known = NDArray[np.bool_]  # whether the recoding tells what becomes of a row


def _by_value(kept: Mapping[str, Any], rows: LocalEngine, policy: Policy) -> tuple[list[Became], Known]:
    """Recode value by value; with levels, values that did not occur before can be recoded too."""
    columns = []
    known = np.ones(rows.table.num_rows, np.bool_)
    for name in policy.quasi:
        coded = rows.coded(name)
        became: dict[Label, Label] = dict(kept["columns"][name]["values"])
        texts = [*coded.texts, None]
        strange = [text for text in texts if text not in became and (text is not None or (coded.codes < 0).any())]
        if strange and kept["columns"][name]["level"] is not None:
            became |= _grown(name, kept["columns"][name], strange, policy)
        has = np.array([text in became for text in texts], np.bool_)
        known &= has[coded.codes]  # a null, -1, takes the last
        same = all(became.get(text, text) == text for text in texts)
        columns.append(Became.of(coded.codes, [became.get(text) for text in texts], same))
    return columns, known


def _grown(name: str, kept: Mapping[str, Any], strange: Sequence[Label], policy: Policy) -> dict[Label, Label]:
    """Recode new values at the level of a column if its hierarchy can be extended without changing old labels."""
    column = policy.columns[name]
    before: dict[Label, Label] = dict(kept["values"])
    texts = sorted({text for text in (*before, *strange) if text is not None})
    nulls = None in before or None in strange
    try:
        hierarchy = builders.build(
            name, column.hierarchy, texts, nulls=nulls, uncovered=column.uncovered, folder=policy.folder
        )
        leaves = [*before, *strange]
        level = kept["level"]
        labels = [hierarchy.labels[level][code] for code in hierarchy.table[level][hierarchy.encode(leaves)]]
    except (ShoalError, IndexError):
        return {}
    if labels[: len(before)] != list(before.values()):
        return {}
    return dict(zip(strange, labels[len(before) :], strict=True))


def _by_tuple(kept: Mapping[str, Any], rows: LocalEngine, policy: Policy) -> tuple[list[Became], Known]:
    """Recode tuple by tuple: cells were recoded individually, so only tuples that occurred are known."""
    became = {tuple(leaves): labels for leaves, labels in kept["tuples"]}
    coded = [rows.coded(name) for name in policy.quasi]
    codes = np.column_stack([column.codes + 1 for column in coded]).astype(np.int32)
    class_of, firsts = group(packed(codes))
    texts = [(None, *column.texts) for column in coded]
    tuples = [tuple(of[c] for of, c in zip(texts, row, strict=True)) for row in codes[firsts].tolist()]
    known = np.array([tuple_ in became for tuple_ in tuples], np.bool_)
    columns = []
    for j in range(len(coded)):
        labels = [became[tuple_][j] if tuple_ in became else None for tuple_ in tuples]
        same = all(label == tuple_[j] for label, tuple_ in zip(labels, tuples, strict=True) if tuple_ in became)
        columns.append(Became.of(class_of, labels, same))
    return columns, known[class_of]


def _among(became: Sequence[Became], tuples: Sequence[Sequence[Label]]) -> Known:
    """Return the rows whose labels are one of the ``tuples``."""
    places = [{label: i for i, label in enumerate(column.labels)} for column in became]
    found = [[of.get(label, -1) for of, label in zip(places, tuple_, strict=True)] for tuple_ in tuples]
    found = [codes for codes in found if -1 not in codes]
    codes = np.column_stack([column.codes for column in became]).astype(np.int32)
    return among(codes, np.array(found, np.int32).reshape(-1, len(became)))


def _recoded(table: pa.Table, names: Sequence[str], policy: Policy, became: Sequence[Became]) -> pa.Table:
    """Return the recoded columns; an unchanged column keeps its type."""
    of = dict(zip(policy.quasi, became, strict=True))
    return pa.table({name: of[name].column if name in of and not of[name].same else table[name] for name in names})


def _seen(rows: LocalEngine, policy: Policy, became: Sequence[Became], left: NDArray[np.int64]) -> Groups:
    """Return the classes of the rows that are ``left``, row by row."""
    names = [*policy.quasi, *policy.sensitive]
    table, persons = _recoded(rows.table, names, policy, became), rows.persons(policy)
    weight, person = unused("n", names), unused("person", names)
    table = table.append_column(
        weight, pa.array(np.ones(len(table), np.int64) if rows.weights is None else rows.weights)
    )
    if persons is not None:
        table = table.append_column(person, pa.array(persons))
    return Groups(table.take(pa.array(left)), weight, None if persons is None else person)


def _released(
    engine: LocalEngine | IbisEngine, policy: Policy, became: Sequence[Became], left: NDArray[np.int64]
) -> Rows | Query:
    """Return the rows that are ``left``, recoded and sorted by a hash."""
    if not isinstance(engine, LocalEngine):
        kept = np.zeros(engine.last_groups.table.num_rows, np.bool_)
        kept[left] = True
        changed = {name: of.column for name, of in zip(policy.quasi, became, strict=True) if not of.same}
        return engine.recoded(changed, kept, policy)
    names = [name for name in engine.columns if policy.columns[name].role != "identifier"]
    table, persons = _recoded(engine.table, names, policy, became).take(pa.array(left)), engine.persons(policy)
    if policy.release.shuffle:
        order = hash_order(table, policy.release.seed)
        table, left = table.take(pa.array(order)), left[order]
    return Rows(table, None if persons is None else persons[left], sources=left)


def _failing(rows: pa.Table, table: FrequencyTable, policy: Policy) -> NDArray[np.bool_]:
    """Return the rows to hold back so that the others satisfy the policy, by the rule of ``failing_classes``."""
    passing = ~failing_classes(table, policy)
    if passing.all():
        return np.zeros(len(rows), np.bool_)
    coded = [codec.texts(name, rows[name]) for name in policy.quasi]
    codes = np.column_stack([np.where(of.codes < 0, len(of.texts), of.codes) for of in coded]).astype(np.int32)
    keys = packed(np.concatenate([table.codes, codes]))
    classes, records = keys[: table.n_classes], keys[table.n_classes :]
    order = np.argsort(classes)
    return np.asarray(~passing[order[np.searchsorted(classes[order], records)]])
