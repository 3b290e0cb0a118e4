"""The attacks on labels: downcoding, and predicate singling out (``downcoding``, ``predicates``), as risks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.attacks.confidence import spread_above
from shoal.attacks.downcoding import Downcoded, downcoded
from shoal.attacks.halves import MIN_PEOPLE, halves
from shoal.attacks.label_columns import LabelColumn, label_column
from shoal.attacks.predicates import (
    Predicates,
    chance_of_one,
    people_in_boxes,
    predicates_of,
)
from shoal.attacks.read_cache import encoded_once
from shoal.attacks.risk import Performance, Question, Risk, percent_words
from shoal.attacks.scoring import Scored, risk
from shoal.engines.local import LocalEngine
from shoal.engines.opening import rows_of
from shoal.errors import DataError, ShoalError
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.notation import codec
from shoal.policy import Policy
from shoal.tables.frequency import RowNumbers

DOWNCODING, PREDICATES = "downcoding", "predicate singling out"
WITHOUT_RELEASE = "the most that a predicate made without the release reaches"
OTHER_HALF = "the same predicates on people outside the release"
TOLERATED_EXCESS = 0.05
SURE = 1e9  # attempts; the release itself is examined, and no sample of it


@dataclass(frozen=True)
class LabelAttacks:
    """The results of the attacks on labels."""

    risks: tuple[Risk, ...] = ()
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    undecided: dict[Question, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class LabelTarget:
    """A release whose labels are attacked, and what is known about it."""

    release: pa.Table
    original: LocalEngine | None
    policy: Policy | None
    quasi: tuple[str, ...]
    control: pa.Table | None
    seed: int


def label_attacks(target: LabelTarget) -> LabelAttacks:
    """Attack the labels of a release."""
    original = None if target.original is None else target.original.table
    columns = label_columns(target.release, original, target.quasi, target.policy)
    proved = downcoded(columns)
    if not proved.n_general:
        if target.policy is None:
            return LabelAttacks(left_out=(f"{DOWNCODING}, {PREDICATES}: no quasi-identifier is generalized",))
        return LabelAttacks((_nothing(DOWNCODING, proved), _nothing(PREDICATES, proved)))
    risks = [downcoding_risk(proved)]
    if target.original is None:
        reason = "predicate singling out: needs the original, in which predicates are counted"
        return LabelAttacks(tuple(risks), (reason,), _assumptions(columns))
    try:
        tried = _predicate_singling_out(target, proved)
    except DataError:  # more pairs of people and classes than fit in memory
        tried = "too many people lie in too many boxes"
    if isinstance(tried, str):
        return LabelAttacks(tuple(risks), (f"{PREDICATES}: {tried}",), _assumptions(columns))
    predicates, missing = tried
    undecided: dict[Question, str] = {"singling out": missing} if missing else {}
    return LabelAttacks((*risks, predicates), (), _assumptions(columns), undecided)


def _nothing(name: str, proved: Downcoded) -> Risk:
    """Return the risk of a release without generalized cells: it has no labels to draw conclusions from."""
    n = len(proved.class_of)
    return Risk(name, "singling out", None, n, 0.0, None, 0.0, "No quasi-identifier is generalized.", effective=SURE)


def label_columns(
    release: pa.Table, people: pa.Table | None, quasi: Sequence[str], policy: Policy | None
) -> tuple[LabelColumn, ...]:
    """Read the quasi columns of a release; ``people`` have the values that there may be."""
    engine = None if people is None or policy is None else rows_of(people)
    return tuple(
        label_column(
            name,
            encoded_once(name, release[name]),
            None if people is None else encoded_once(name, people[name]),
            policy,
            None if engine is None or policy is None else _hierarchy(engine, name, policy),
        )
        for name in quasi
    )


def _hierarchy(engine: LocalEngine, name: str, policy: Policy) -> Hierarchy | None:
    """Return the hierarchy as the search has it; None where the people do not fit the policy."""
    try:
        return engine.hierarchy_of_release(name, policy) if name in policy.quasi else None
    except ShoalError:
        return None


def _assumptions(columns: Sequence[LabelColumn]) -> tuple[str, ...]:
    assumed = [column.name for column in columns if column.assumed]
    if not assumed:
        return ()
    names = ", ".join(map(repr, assumed))
    return (
        f"no policy says how {names} was written: its ranges and sets differ as boxes of classes do, and are taken "
        "for the smallest that cover the class",
    )


# --- downcoding ---------------------------------------------------------------------------------------------------


def downcoding_risk(proved: Downcoded) -> Risk:
    """Return the share of generalized records whose whole tuple is certain; its cells beside it."""
    right, right_tuples = _right(proved)
    whole = float(right_tuples.sum()) + proved.n_single
    n, n_cells = proved.n_general, proved.n_general_cells
    cells = float(right.sum())
    wrong = len(proved.certain) - int(right.sum())
    sentence = (
        f"Of the generalized records, {percent_words(whole / n)} get their whole original tuple back from the "
        f"texts and the rules of the algorithm alone; {percent_words(cells / n_cells)} of the generalized cells are "
        f"certain, and in {percent_words(float(proved.likelier.sum()) / n)} of the records a value is more than 5 "
        "points likelier than its label says."
    )
    if wrong:
        sentence += f" {wrong} claims were wrong: the release was not written as assumed."
    if proved.n_unsolved:
        sentence += f" For {proved.n_unsolved} cells of large classes, likelihoods were not computed."
    figures = {
        "whole tuples": Performance(whole, float(len(proved.tuples) + proved.n_single), whole / n),
        "cells": Performance(cells, float(len(proved.certain)), cells / n_cells),
        "likelier": Performance(float(proved.likelier.sum()), float(n), float(proved.likelier.sum()) / n),
    }
    return Risk(
        DOWNCODING,
        "singling out",
        None,
        n,
        whole,
        None,
        whole / n,  # everything that the texts prove was counted
        sentence,
        intruder="whole tuples",
        intruders=figures,
        claims=figures["whole tuples"].claims,
        effective=SURE,
    )


def _right(proved: Downcoded) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which certain values, and which certain tuples, somebody of the original in the class's box has."""
    if any(column.leaf_of is None for column in proved.columns):
        return np.ones(len(proved.certain), np.bool_), np.ones(len(proved.tuples), np.bool_)
    boxes = people_in_boxes(proved, None)
    sizes = [len(column.domain) for column in proved.columns]
    sides = []
    for values in (proved.certain, proved.tuples):
        claimed = Predicates("", values.class_of, values.column[:, None], values.leaf[:, None])
        sides.append(boxes.satisfying(claimed, sizes) > 0)
    return sides[0], sides[1]


# --- predicate singling out ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _TriedPredicates:
    """Predicates of one kind, which of them isolate somebody, and which would by chance."""

    predicates: Predicates
    isolated: NDArray[np.bool_]
    by_chance: NDArray[np.float64]
    outside: RowNumbers | None  # how many people outside the release satisfy each


def _predicate_singling_out(target: LabelTarget, proved: Downcoded) -> tuple[Risk, str] | str:
    """Return the risk and what it leaves undecided, or why it was not measured."""
    assert target.original is not None
    everybody = target.original.table
    n = everybody.num_rows
    isolated = _on_the_release(target, proved, predicates_of(proved))
    if target.control is not None:
        people = _together(everybody, target.control, target.quasi)
        sides = np.arange(n), np.arange(n, people.num_rows)
        measured = _compared(target, target.release, people, *sides, OTHER_HALF, isolated)
        return "no predicate can be made from the release" if measured is None else (measured, "")
    reason = "nothing says how it was made"
    if target.policy is not None:
        half = halves(target.original, target.policy, target.seed)
        if not isinstance(half, str):
            of_whom = f"{OTHER_HALF}, for a release of {len(half.inside)} records under the same policy"
            measured = _compared(target, half.release, everybody, half.inside, half.outside, of_whom, isolated)
            return "a release of half of the people is not generalized" if measured is None else (measured, "")
        reason = half
    measured = _beside_any_predicate(target, proved, n)
    if measured is None:
        return f"{reason}, and its labels name no value"
    if measured.above_interval[0] > TOLERATED_EXCESS:
        return measured, ""
    if n < 2 * MIN_PEOPLE or measured.share <= TOLERATED_EXCESS:
        return f"{reason}: without people outside the release (control), success cannot be told from chance"
    share = percent_words(measured.share)
    return measured, (
        f"{share} of the predicates made from the release single somebody out, and {reason}: pass people outside the "
        "release as control"
    )


def _beside_any_predicate(target: LabelTarget, proved: Downcoded, n: int) -> Risk | None:
    """Return the risk of predicates on values that labels name, beyond the best predicate that needs no release."""
    ceiling = (1 - 1 / n) ** (n - 1) if n > 1 else 1.0
    predicates = predicates_of(proved, named=True)
    isolated = _on_the_release(target, proved, predicates)
    tried = [
        _TriedPredicates(predicate, isolates, np.full(len(predicate), ceiling), None)
        for predicate, isolates in zip(predicates, isolated, strict=True)
    ]
    return _risk(tried, isolated, WITHOUT_RELEASE) if any(len(predicate) for predicate in predicates) else None


def _on_the_release(
    target: LabelTarget, proved: Downcoded, predicates: Sequence[Predicates]
) -> list[NDArray[np.bool_]]:
    """Return for each kind of predicates which isolate a person of the original."""
    assert target.original is not None
    boxes = people_in_boxes(proved, None, _persons(target, target.original.table))
    sizes = [len(column.domain) for column in proved.columns]
    return [boxes.satisfying(kind, sizes) == 1 for kind in predicates]


def _compared(
    target: LabelTarget,
    release: pa.Table,
    people: pa.Table,
    inside: RowNumbers,
    outside: RowNumbers,
    of_whom: str,
    isolated: Sequence[NDArray[np.bool_]],
) -> Risk | None:
    """Try the predicates made from a release on the people in it, and on others; None if there are none."""
    of_release = downcoded(label_columns(release, people, target.quasi, target.policy))
    persons = _persons(target, people)
    sizes = [len(column.domain) for column in of_release.columns]
    inside_boxes, outside_boxes = (
        people_in_boxes(of_release, rows, None if persons is None else persons[rows]) for rows in (inside, outside)
    )
    n, m = (len(rows) if persons is None else len(np.unique(persons[rows])) for rows in (inside, outside))
    tried = []
    for predicates in predicates_of(of_release):
        satisfying = outside_boxes.satisfying(predicates, sizes)
        tried.append(
            _TriedPredicates(
                predicates, inside_boxes.satisfying(predicates, sizes) == 1, chance_of_one(satisfying, m, n), satisfying
            )
        )
    return _risk(tried, isolated, of_whom) if any(len(trial.predicates) for trial in tried) else None


def _risk(tried: Sequence[_TriedPredicates], isolated: Sequence[NDArray[np.bool_]], of_whom: str) -> Risk:
    by_name = {
        trial.predicates.name: Scored(
            trial.isolated.astype(np.float64), trial.by_chance, of_whom, classes=trial.predicates.class_of
        )
        for trial in tried
        if len(trial.predicates)
    }
    whole = {trial.predicates.name: isolates for trial, isolates in zip(tried, isolated, strict=True)}
    light = {trial.predicates.name: share for trial in tried if (share := _lightest(trial)) is not None}

    def sentence(scored: Scored) -> str:
        name = next(name for name, trial in by_name.items() if trial is scored)
        n = len(scored.credits)
        text = (
            f"Of {n} predicates made from a release (a class and {name} of it), "
            f"{percent_words(float(scored.credits.mean()))} single out one person, and "
            f"{percent_words(scored.control_share)} by chance ({of_whom})"
        )
        text += f"; of those that nobody outside satisfies, {percent_words(light[name])}" if name in light else ""
        return text + f". On this release: {percent_words(float(whole[name].mean()) if len(whole[name]) else 0.0)}."

    measured = risk(PREDICATES, "singling out", by_name, sentence)
    best = by_name[measured.intruder]
    return replace(
        measured,
        spread=spread_above(best.credits, _blind(best), _classes(best), measured.level),
        tolerance=TOLERATED_EXCESS,
    )


def _lightest(tried: _TriedPredicates) -> float | None:
    """Return the success of predicates that no outsider satisfies: their weight is far below 1/n."""
    if tried.outside is None or not (tried.outside == 0).any():
        return None
    return float(tried.isolated[tried.outside == 0].mean())


def _blind(scored: Scored) -> NDArray[np.float64]:
    return np.zeros(len(scored.credits)) if scored.blind is None else scored.blind


def _classes(scored: Scored) -> RowNumbers:
    return np.arange(len(scored.credits)) if scored.classes is None else scored.classes


def _persons(target: LabelTarget, people: pa.Table) -> RowNumbers | None:
    entity = None if target.policy is None else target.policy.release.entity
    if entity is None or entity not in people.column_names:
        return None
    return codec.encode_texts(entity, people[entity]).codes.astype(np.int64)


def _together(inside: pa.Table, outside: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return both tables one below the other, as texts."""
    columns = {}
    for name in names:
        codes = [codec.encode_texts(name, table[name]) for table in (inside, outside)]
        texts = [pa.array([*coded.texts, None], pa.string()).take(pa.array(_last_for_null(coded))) for coded in codes]
        columns[name] = pa.chunked_array(texts)
    return pa.table(columns)


def _last_for_null(coded: codec.Coded) -> RowNumbers:
    return np.where(coded.codes < 0, len(coded.texts), coded.codes).astype(np.int64)
