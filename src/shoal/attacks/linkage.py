"""Identity linking: an outside register with names is joined to a table without, on the columns they share.

L. Sweeney linked a voter list to hospital discharges by birth date, sex and ZIP and found the governor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.policy import Policy
from shoal.table import builders, codec
from shoal.table.frequency import packed
from shoal.table.hierarchy import Hierarchy, Label
from shoal.table.kernels import group

NOBODY = "\0"  # a label that no release has


@dataclass(frozen=True)
class Linkage:
    """How far the register got."""

    people: int  # in the register
    matched: int  # of them, people with at least one record that could be theirs
    singled_out: int  # people with exactly one such record
    named: int  # singled out, and the record is theirs
    chance: float  # the best chance that a guess among a person's candidates is right

    def as_dict(self) -> dict[str, float]:
        """Plain values, for JSON."""
        return asdict(self)


def link(table: pa.Table, register: pa.Table, on: Sequence[str], owners: Mapping[int, int] | None = None) -> Linkage:
    """Join ``register`` to ``table`` on equal values of ``on``.

    ``owners`` maps a person of the register to the row of the table that is really theirs (the referee's
    knowledge, which the intruder lacks); without it nobody counts as named.
    """
    theirs, person_class = _classes(table, register, on)
    n_classes = int(max(theirs.max(initial=-1), person_class.max(initial=-1))) + 1
    candidates = np.bincount(theirs, minlength=n_classes)[person_class]
    only = np.full(n_classes, -1)
    only[theirs] = np.arange(len(theirs))
    single = candidates == 1
    truth = owners or {}
    named = sum(truth.get(int(person)) == only[person_class[person]] for person in np.flatnonzero(single))
    matched = candidates > 0
    chance = 1 / int(candidates[matched].min()) if matched.any() else 0.0
    return Linkage(len(candidates), int(matched.sum()), int(single.sum()), int(named), chance)


def _classes(table: pa.Table, register: pa.Table, on: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The class of every row and of every person: equal where all of ``on`` are, compared as text."""
    columns = []
    for name in on:
        both = [codec.texts(name, part[name]) for part in (table, register)]
        code_of = {text: i for i, text in enumerate(sorted({*both[0].texts, *both[1].texts}), start=1)}
        # A null is a value of its own: -1 takes the last place, 0.
        codes = [np.array([*(code_of[text] for text in part.texts), 0])[part.codes] for part in both]
        columns.append(np.concatenate(codes))
    class_of, _ = group(packed(np.column_stack(columns).astype(np.int32)))
    return class_of[: table.num_rows], class_of[table.num_rows :]


def generalized(
    register: pa.Table, released: Mapping[str, Sequence[str]], policy: Policy, levels: Mapping[str, int]
) -> pa.Table:
    """The register as it would look at the levels of a release, so that its values can be compared with the labels.

    ``released`` has the distinct ground values of the released table, since some hierarchies are built from them;
    a person whose value has no place in a hierarchy matches nobody.
    """
    columns = {}
    for name, values in released.items():
        coded = codec.texts(name, register[name])
        label_of = _labels(name, values, coded.texts, policy, levels[name])
        labels = pa.array([label_of.get(text, NOBODY) for text in (*coded.texts, None)], pa.string())
        columns[name] = labels.take(pa.array(np.where(coded.codes < 0, len(coded.texts), coded.codes)))
    return pa.table(columns)


def _labels(name: str, released: Sequence[str], known: Sequence[str], policy: Policy, level: int) -> dict[Label, Label]:
    """What a release at ``level`` calls each value that the intruder knows."""
    spec = policy.columns[name].hierarchy

    def build(texts: Iterable[str]) -> Hierarchy:
        return builders.build(name, spec, sorted(set(texts)), nulls=True, uncovered="suppress", folder=policy.folder)

    own = build(released)
    if level == own.height:
        return dict.fromkeys([*known, None], own.top)
    both = build([*released, *known])
    values = [*known, None]
    # One decimal among the values known changes how intervals are written, so the words are those of the release:
    # what it calls the values that fall together with the one known.
    words = dict(
        zip(
            both.table[level][both.encode(released)],
            (own.labels[level][code] for code in own.table[level][own.encode(released)]),
            strict=True,
        )
    )
    codes = both.table[level][both.encode(values)]
    return {text: words.get(code, both.labels[level][code]) for text, code in zip(values, codes, strict=True)}
