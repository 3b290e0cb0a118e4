"""Save a recoding and replay it on new rows with the same schema.

A recoding says what every value is replaced by, or every tuple if cells were recoded individually. Replaying it on new
rows makes them comparable with the earlier release. New rows are a release of their own: someone who has the earlier
release can distinguish them from it, so they must satisfy the policy by themselves. Rows that do not are held back and
counted.

The file lists values of the data with their replacements: it is for the owners of the data, not for publication.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from shoal.attacks.limits import measured
from shoal.engines.base import Engine, Query, Rows, require_columns
from shoal.engines.data import Data
from shoal.engines.dependence import dependence_of
from shoal.engines.formats import atomic_files
from shoal.engines.opening import order_of_release, original_of, population_of
from shoal.errors import DataError, InfeasibleError, PolicyError
from shoal.findings import findings_of
from shoal.findings.evidence import of_replay
from shoal.forbidden.mining import mine
from shoal.hierarchies.hierarchy import Label
from shoal.judge import Gaps, judge_release, require
from shoal.judge.recount import Reference, recounted, recounted_groups
from shoal.models.verdict import Verdicts
from shoal.notation.forms import read_range
from shoal.notation.numbers import parse_number
from shoal.policy import Policy
from shoal.recoding import Cells, Cuts, FullDomain
from shoal.release.publish import Publishable
from shoal.release.release import Release
from shoal.release.replay_map import by_tuple, by_value, expected, failing, is_among
from shoal.tables.frequency import FrequencyTable
from shoal.text.bounded import read_bounded
from shoal.text.jsonable import read_json
from shoal.text.log import log

SCHEMA = "shoal-recoding/1"


# ── kept ────────────────────────────────────────────────────────────────────────────────────────────────────


def described(release: Release) -> dict[str, Any]:
    """Return the recoding of a release as plain values for JSON."""
    recoding, table = release.recoding, release.counted.table
    saved: dict[str, Any] = {"schema": SCHEMA, "policy": release.policy.model_dump(mode="json", exclude_none=True)}
    released = recoding.released
    if isinstance(recoding, Cells):
        return saved | {"tuples": _tuples(recoding, table)}
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
    return saved | {"columns": columns, "suppressed": suppressed}


def _lies_in(leaf: Label, label: Label) -> bool:
    """Return whether a number is in the range it would be released as: 39.5 is not in 30-39 of whole numbers."""
    span = None if leaf is None or label is None else read_range(label)
    value = None if leaf is None or span is None else parse_number(leaf)
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
    labels_of: dict[tuple[Label, ...], list[Label]] = {}
    for i in order.tolist():
        codes = table.codes[parts.row[i]]
        tuple_ = tuple(h.leaves[leaf] for h, leaf in zip(table.hierarchies, codes.tolist(), strict=True))
        if any(h.uncovered == leaf for h, leaf in zip(table.hierarchies, codes.tolist(), strict=True)):
            continue  # the leaf represents values that it does not name
        labels_of.setdefault(
            tuple_, [values.labels[n] for values, n in zip(recoding.released, parts.codes[i].tolist(), strict=True)]
        )
    return [[list(tuple_), labels] for tuple_, labels in labels_of.items()]


def save_recoding(release: Release, path: str | Path, *, force: bool = False) -> None:
    """Write the recoding of a release for replay; it contains values from the data, and only its owner may read it."""
    text = json.dumps(described(release), ensure_ascii=False) + "\n"
    atomic_files.write_text(Path(path), text, force=force, private=True)


# ── replayed ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class Replay(Publishable):
    """New rows recoded like earlier ones, and how many were held back."""

    rows: Rows | Query
    engine: Engine
    policy: Policy
    reference: Reference
    verdicts: Verdicts
    unknown: int  # records with values that the recoding does not cover
    suppressed: int  # records whose tuple was suppressed in the earlier release
    failing: int  # records in classes that would violate the policy

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
        self._publish(path, force=force)


def replay(
    recoding: str | Path | Mapping[str, Any], data: Data, *, folder: str | Path | None = None, strict: bool = False
) -> Replay:
    """Recode a table like an earlier release, and hold back rows that would violate its policy.

    Parameters
    ----------
    recoding
        The recoding that was saved, as a path or as plain values.
    data
        A path, a pandas, polars or pyarrow frame, or an Ibis table, whose rows stay in place.
    folder
        Where files that the policy names are; by default the folder of the recoding, or the current one.
    strict
        Refuse rows that must not be published.

    Returns
    -------
    Replay
        The recoded rows, and how many are held back and why.

    Raises
    ------
    PublicationError
        With ``strict``, if the rows must not be published.
    DataError
        If the recoding is not valid, or the table cannot be read or lacks a column.
    InfeasibleError
        If so many rows are held back that the policy cannot hold.

    Examples
    --------
    >>> import pyarrow as pa, shoal
    >>> people = pa.table({"age": [31, 34, 36, 38], "disease": ["flu", "flu", "hiv", "flu"]})
    >>> policy = {
    ...     "columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [10]}}, "disease": {"role": "sensitive"}},
    ...     "require": [{"model": "k-anonymity", "k": 2}],
    ... }
    >>> from shoal.release.replay import described
    >>> recoding = described(shoal.anonymize(people, policy))
    >>> done = shoal.replay(recoding, pa.table({"age": [33, 37, 51], "disease": ["flu", "flu", "hiv"]}))
    >>> done.table["age"].to_pylist(), done.held_back
    (['30-39', '30-39'], 1)
    """
    saved = recoding if isinstance(recoding, Mapping) else _read(Path(recoding))
    if folder is None:
        folder = Path() if isinstance(recoding, Mapping) else Path(recoding).parent
    policy = _policy(saved, Path(folder))
    engine = original_of(data, policy)
    require_columns(engine.columns, policy)
    rows = engine.tallied(policy)
    if policy.release.nulls == "forbid":
        rows.forbid_nulls(policy)
    weights = np.ones(rows.table.num_rows, np.int64) if rows.weights is None else rows.weights
    maps, is_covered = by_tuple(saved, rows, policy) if "tuples" in saved else by_value(saved, rows, policy)
    is_suppressed = is_covered & is_among(maps, saved.get("suppressed", []))
    outside = population_of(policy)
    reference = Reference(rows.domains(policy), None if outside is None else outside.people(policy), policy.marks)
    left = np.flatnonzero(is_covered & ~is_suppressed)
    n_left = int(weights[left].sum())
    while len(left):
        groups = expected(rows, policy, maps, left)
        table = recounted_groups(groups, policy.quasi, reference)
        bad = failing(groups.table, table, policy)
        if not bad.any():
            break
        left = left[~bad]
    unknown, suppressed = int(weights[~is_covered].sum()), int(weights[is_suppressed].sum())
    breaking = n_left - int(weights[left].sum())
    if not len(left):
        raise InfeasibleError(
            f"all {rows.n_records} records are held back: {unknown} have values that the recoding does not know, "
            f"{suppressed} tuples that it suppresses, {breaking} would break the policy",
            "collect more records before the next release",
        )
    stays = np.zeros(rows.table.num_rows, np.bool_)
    stays[left] = True
    changed = {
        name: column_map.column
        for name, column_map in zip(policy.quasi, maps, strict=True)
        if not column_map.is_unchanged
    }
    released = engine.recoded(rows, changed, stays, policy)
    table = recounted(released, policy, reference)
    gaps, _ = Gaps.of(policy, engine.columns, order_of_release(engine, policy))
    attacks = measured(released, engine, policy)
    verdicts = judge_release(table, policy, attacks=attacks, mined=mine(released, policy), gaps=gaps)
    require(verdicts)
    dependences = {
        name: dependence_of(column_map.codes[left], rows.numbered(name)[left], weights[left])
        for name, column_map in zip(policy.quasi, maps, strict=True)
    }
    verdicts = replace(
        verdicts, findings=findings_of(of_replay(engine, rows, released, dependences, table, policy, attacks))
    )
    if strict:
        verdicts.require_publishable()
    log.info("replay: %d records recoded, %d held back", released.n_records, unknown + suppressed + breaking)
    return Replay(released, engine, policy, reference, verdicts, unknown, suppressed, breaking)


def _read(path: Path) -> dict[str, Any]:
    try:
        saved = read_json(read_bounded(path).decode())
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        saved = None
    if not isinstance(saved, dict) or saved.get("schema") != SCHEMA:
        raise DataError(
            f"{path} is not a recoding",
            "write one with shoal.release.replay.save_recoding",
            option="shoal anonymize --recoding",
        )
    return saved


def _policy(saved: Mapping[str, Any], folder: Path) -> Policy:
    """Return the policy of a recoding, after checking that the rest of the recoding matches it."""
    try:
        policy = Policy.of(saved.get("policy", {}), folder)
    except PolicyError as error:
        raise DataError(f"the recoding contains no valid policy: {error.message}", error.hint) from None
    n = len(policy.quasi)
    if "tuples" in saved:
        fits = _are(saved["tuples"], lambda pair: _are(pair, lambda labels: _are_labels(labels, n), 2))
    else:
        columns = saved.get("columns")
        fits = isinstance(columns, Mapping) and all(_is_column(columns.get(name)) for name in policy.quasi)
    if not fits or not _are(saved.get("suppressed", []), lambda labels: _are_labels(labels, n)):
        raise DataError(
            "the recoding does not cover the quasi-identifiers of its policy",
            "was it modified? Write it again",
            option="shoal anonymize --recoding",
        )
    return policy


def _is_column(column: Any) -> bool:
    if not isinstance(column, Mapping) or not _are(column.get("values"), lambda pair: _are_labels(pair, 2)):
        return False
    level = column.get("level", "")
    return level is None or (isinstance(level, int) and not isinstance(level, bool) and level >= 0)


def _are_labels(labels: Any, n: int) -> bool:
    return _are(labels, lambda label: label is None or isinstance(label, str), n)


def _are(items: Any, fits: Callable[[Any], bool], n: int | None = None) -> bool:
    """Return whether a list has ``n`` items that all pass a test."""
    return isinstance(items, list | tuple) and (n is None or len(items) == n) and all(map(fits, items))
