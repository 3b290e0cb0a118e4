"""Identity linking: an outside register with names is joined to a table without, on the columns they share.

L. Sweeney linked a voter list to hospital discharges by birth date, sex and ZIP and found the governor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.policy import Policy
from shoal.table import builders, codec
from shoal.table.frequency import packed
from shoal.table.kernels import group


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
    columns = []
    for name in on:
        both = pa.chunked_array([*table[name].chunks, *register[name].chunks])
        coded = codec.texts(name, both)
        columns.append(coded.codes + 1)  # a null is a value of its own
    class_of, _ = group(packed(np.column_stack(columns)))
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
        spec = policy.columns[name].hierarchy
        hierarchy = builders.build(
            name, spec, sorted({*values, *coded.texts}), nulls=True, uncovered="suppress", folder=policy.folder
        )
        labels = np.array(hierarchy.labels[levels[name]], dtype=object)
        leaf = hierarchy.encode([*coded.texts, None])
        columns[name] = pa.array(labels[hierarchy.table[levels[name]][leaf[coded.codes]]], pa.string())
    return pa.table(columns)
