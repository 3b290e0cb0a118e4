"""A recoding kept, and replayed on new rows of the same schema.

A recoding says what became of every value, or of every tuple where cells were recoded one by one. Replayed on new rows
it makes them comparable with what was released before. New rows are a release of their own: whoever has the former one
can tell them apart from it, so they must keep the policy by themselves. Rows that do not are held back, and counted.

The file lists values of the data beside what they became: it is for those who hold the data, not for publication.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.engines import files
from shoal.engines.base import Rows, require_columns
from shoal.engines.local import LocalEngine, hash_order
from shoal.errors import DataError, InfeasibleError, ShoalError, VerificationError
from shoal.pipeline import population_of
from shoal.policy import Policy
from shoal.recoding import Cells, FullDomain
from shoal.release import Release, refuse_to_overwrite
from shoal.table import builders, codec
from shoal.table.frequency import FrequencyTable, packed
from shoal.table.hierarchy import Label
from shoal.table.kernels import group
from shoal.verify import Reference, Verdicts, as_seen, judged, recounted, recounted_file, require

SCHEMA = "shoal-recoding/1"


# ── kept ────────────────────────────────────────────────────────────────────────────────────────────────────


def described(release: Release) -> dict[str, Any]:
    """The recoding of a release as plain values, for JSON."""
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
                if i != uncovered
            ],
        }
    gone = recoding.suppressed.tolist()  # type: ignore[attr-defined]
    suppressed = [[released[j].labels[n] for j, n in enumerate(codes)] for codes in gone]
    return kept | {"columns": columns, "suppressed": suppressed}


def _every_leaf(table: FrequencyTable) -> FrequencyTable:
    """A table with every leaf of every column in some row: what became of values, whether or not they occurred."""
    sizes = [len(h.leaves) for h in table.hierarchies]
    codes = np.zeros((max(sizes), len(sizes)), np.int32)
    for j, size in enumerate(sizes):
        codes[:size, j] = np.arange(size)
    return FrequencyTable(table.columns, codes, np.ones(len(codes), np.int64), hierarchies=table.hierarchies)


def _tuples(recoding: Cells, table: FrequencyTable) -> list[list[list[Label]]]:
    """What most records of each tuple became."""
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
    """Write the recoding of a release, to be replayed; it holds values of the data."""
    files.write_text(Path(path), json.dumps(described(release), ensure_ascii=False) + "\n", force=force)


# ── replayed ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class Replay:
    """New rows, recoded as earlier ones were, and how many had to stay behind."""

    rows: Rows
    engine: LocalEngine
    policy: Policy
    reference: Reference
    verdicts: Verdicts
    unknown: int  # records with values that the recoding has no place for
    suppressed: int  # records whose tuple was suppressed in the earlier release
    failing: int  # records in classes that would not keep the policy

    @property
    def held_back(self) -> int:
        """All records that are not released."""
        return self.unknown + self.suppressed + self.failing

    @cached_property
    def table(self) -> Any:
        """The released rows, as the kind of frame that came in."""
        return self.engine.back(self.rows.table)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "records": self.rows.n_records,
            "held_back": self.held_back,
            "unknown": self.unknown,
            "suppressed": self.suppressed,
            "failing": self.failing,
            "verdicts": self.verdicts.as_dict(),
        }

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the rows; the written file is counted again by SQL first, and only a file that holds appears."""
        refuse_to_overwrite(self.engine.source, path)

        def verify(written: Path) -> None:
            table = recounted_file(written, self.engine.dialect, self.rows, self.policy, self.reference)
            verdicts = judged(table, self.policy)
            require(verdicts)
            if not verdicts.same(self.verdicts):
                raise VerificationError("the written file does not count as the rows in memory did")

        files.write(self.rows.table, Path(path), dialect=self.engine.dialect, force=force, verify=verify)


def replay(recoding: str | Path | Mapping[str, Any], data: Any) -> Replay:
    """Recode ``data``, a path or a frame, as an earlier release was, and hold back what would break its policy."""
    kept = recoding if isinstance(recoding, Mapping) else _read(Path(recoding))
    folder = Path() if isinstance(recoding, Mapping) else Path(recoding).parent
    policy = Policy.of(dict(kept["policy"]), folder)
    engine = data if isinstance(data, LocalEngine) else LocalEngine.of(data)
    require_columns(engine.columns, policy)
    if policy.release.nulls == "forbid":
        engine.forbid_nulls(policy)
    labels, known = _by_tuple(kept, engine, policy) if "tuples" in kept else _by_value(kept, engine, policy)
    gone = known & _among(labels, kept.get("suppressed", []))
    unknown, suppressed = int((~known).sum()), int(gone.sum())
    left = np.flatnonzero(known & ~gone)
    outside = population_of(policy)
    reference = Reference(engine.domains(policy), None if outside is None else outside.people(policy))
    rows = _rows(engine, policy, labels, left)
    failing = 0
    while rows.n_records:
        bad = _failing(rows, recounted(rows, policy, reference), policy)
        if not bad.any():
            break
        failing += int(bad.sum())
        left = left[~bad]
        rows = _rows(engine, policy, labels, left)
    if not rows.n_records:
        raise InfeasibleError(
            f"all {engine.n_records} records are held back: {unknown} have values that the recoding does not know, "
            f"{suppressed} tuples that it suppresses, {failing} would break the policy",
            "collect more records before the next release",
        )
    if policy.release.shuffle:
        order = hash_order(rows.table, policy.release.seed)
        persons = None if rows.persons is None else rows.persons[order]
        rows = Rows(rows.table.take(pa.array(order)), persons)
    verdicts = judged(recounted(rows, policy, reference), policy)
    require(verdicts)
    return Replay(rows, engine, policy, reference, verdicts, unknown, suppressed, failing)


def _read(path: Path) -> dict[str, Any]:
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        kept = None
    if not isinstance(kept, dict) or kept.get("schema") != SCHEMA:
        raise DataError(f"{path} is not a recoding", "write one with shoal anonymize --recoding")
    return kept


Texts = list[list[Label]]  # per quasi column, what each record becomes


def _by_value(kept: Mapping[str, Any], engine: LocalEngine, policy: Policy) -> tuple[Texts, NDArray[np.bool_]]:
    """Every value became the same everywhere; of levels it is known what values become that did not occur."""
    labels: Texts = []
    known = np.ones(engine.n_records, np.bool_)
    for name in policy.quasi:
        coded = engine.coded(name)
        became: dict[Label, Label] = dict(kept["columns"][name]["values"])
        texts = [*coded.texts, None]
        strange = [text for text in texts if text not in became and (text is not None or (coded.codes < 0).any())]
        if strange and kept["columns"][name]["level"] is not None:
            became |= _grown(name, kept["columns"][name], strange, policy)
        has = np.array([text in became for text in texts], np.bool_)
        known &= has[coded.codes]  # a null, -1, takes the last
        of_text = [became.get(text) for text in texts]
        labels.append([of_text[code] for code in coded.codes.tolist()])
    return labels, known


def _grown(name: str, kept: Mapping[str, Any], strange: Sequence[Label], policy: Policy) -> dict[Label, Label]:
    """What new values become on the level of a column, where its hierarchy grows without changing the old ones."""
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


def _by_tuple(kept: Mapping[str, Any], engine: LocalEngine, policy: Policy) -> tuple[Texts, NDArray[np.bool_]]:
    """Cells were recoded one by one: only tuples that occurred are known."""
    became = {tuple(leaves): labels for leaves, labels in kept["tuples"]}
    coded = [engine.coded(name) for name in policy.quasi]
    codes = np.column_stack([column.codes + 1 for column in coded]).astype(np.int32)
    class_of, firsts = group(packed(codes))
    texts = [(None, *column.texts) for column in coded]
    found = [became.get(tuple(of[c] for of, c in zip(texts, row, strict=True))) for row in codes[firsts].tolist()]
    known = np.array([labels is not None for labels in found], np.bool_)
    each = [labels or [None] * len(coded) for labels in found]
    return [[each[i][j] for i in class_of.tolist()] for j in range(len(coded))], known[class_of]


def _among(labels: Texts, tuples: Sequence[Sequence[Label]]) -> NDArray[np.bool_]:
    gone = {tuple(labels) for labels in tuples}
    return np.array([row in gone for row in zip(*labels, strict=True)], np.bool_)


def _rows(engine: LocalEngine, policy: Policy, labels: Texts, left: NDArray[np.int64]) -> Rows:
    """The rows that are ``left``, recoded; a column that nothing was done to keeps its type."""
    became = dict(zip(policy.quasi, labels, strict=True))
    columns = {}
    for name in engine.columns:
        if name in became:
            coded = engine.coded(name)
            texts = [*coded.texts, None]
            same = all(label == texts[code] for label, code in zip(became[name], coded.codes.tolist(), strict=True))
            columns[name] = engine.table[name] if same else pa.array(became[name], pa.string())
        elif policy.columns[name].role != "identifier":
            columns[name] = engine.table[name]
    persons = engine.persons(policy)
    return Rows(pa.table(columns).take(pa.array(left)), None if persons is None else persons[left])


def _failing(rows: Rows, table: FrequencyTable, policy: Policy) -> NDArray[np.bool_]:
    """The records of classes that some requirement fails."""
    seen = as_seen(table, policy)
    passing = np.ones(table.n_classes, np.bool_)
    for model in policy.models:
        passing &= model.passes(seen)
    if passing.all():
        return np.zeros(rows.n_records, np.bool_)
    coded = [codec.texts(name, rows.table[name]) for name in policy.quasi]
    codes = np.column_stack([np.where(of.codes < 0, len(of.texts), of.codes) for of in coded]).astype(np.int32)
    keys = packed(np.concatenate([table.codes, codes]))
    classes, records = keys[: table.n_classes], keys[table.n_classes :]
    order = np.argsort(classes)
    return np.asarray(~passing[order[np.searchsorted(classes[order], records)]])
