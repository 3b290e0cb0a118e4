"""Which released texts of a column cover which known values, for a release of any program.

The texts are read by ``hierarchies.reader``. Known values that are covered by the same texts are one kind.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.attacks.read_cache import cached_read, spec_key, texts_key
from shoal.hierarchies import builders
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.hierarchies.reader import Reader, unread_cells
from shoal.notation.codec import Coded
from shoal.notation.forms import DecimalMark
from shoal.policy import Policy
from shoal.tables.frequency import RowNumbers


@dataclass(frozen=True, eq=False)
class KnownColumn:
    """A column shared by intruder and release: which released texts cover which kind of known value.

    Known values for which the same texts stand are one kind. A null is the last known value and the last text.
    """

    name: str
    kind_of: RowNumbers  # (known values)  -1 where no released text stands for the value
    n_kinds: int
    kinds: RowNumbers  # (pairs)  a kind …
    texts: RowNumbers  # (pairs)  … and a text that stands for it; sorted by kind, then text
    n_texts: int
    unread: int  # released texts that were not understood
    unread_cells: int  # cells with such a text
    n_cells: int  # all released cells

    @property
    def unread_share(self) -> float:
        """The share of released cells that could not be interpreted."""
        return self.unread_cells / self.n_cells if self.n_cells else 0.0

    def stand(self, kinds: RowNumbers, texts: RowNumbers) -> NDArray[np.bool_]:
        """Return whether each text covers the given kind."""
        keys = self.kinds * self.n_texts + self.texts
        wanted = kinds * self.n_texts + texts
        position = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return keys[position] == wanted if len(keys) else np.zeros(len(wanted), np.bool_)


def read_known_column(
    name: str, of_people: Coded, released: Coded, ground: Coded | None, policy: Policy | None, *, wildcard: bool = False
) -> KnownColumn:
    """Read a released column for the known values; ``ground`` has the original's, which the hierarchy is built on.

    A word that cannot be read covers all values of the original that no other text covers, as a patient intruder
    would conclude.
    """

    def key() -> Hashable:
        whole = None if ground is None else (texts_key(ground.texts), bool((ground.codes < 0).any()))
        cells = texts_key(released.texts), hashlib.sha256(released.codes.tobytes()).digest()
        return "column", spec_key(name, policy), texts_key(of_people.texts), cells, whole, wildcard

    return cached_read(lambda: _read_column(name, of_people, released, ground, policy, wildcard), key)


def _read_column(
    name: str, of_people: Coded, released: Coded, ground: Coded | None, policy: Policy | None, wildcard: bool
) -> KnownColumn:
    base = of_people if ground is None else ground
    values = as_in(base.texts, name, of_people.texts, policy)
    hierarchies = hierarchies_of(name, base.texts, values, policy)
    reader = Reader(released.texts, base.texts, hierarchies, freely=ground is not None, mark=mark_of(name, policy))
    texts_of_value = reader.covering(values)
    # Without the original, a text that matches no known value may be the value of an unknown person.
    strange = [] if ground is None else np.flatnonzero(~reader.understood).tolist()
    null = len(released.texts)
    silent = list(reader.everything)
    if strange and null == 1:  # one word in all records tells nothing
        silent, strange = strange, []
    of_null = [null] if (released.codes < 0).any() else []
    # A null where the original has none can only have been suppressed, as some tools write it.
    suppressed = of_null if ground is not None and not (ground.codes < 0).any() else []
    everything = [*silent, *([null] if wildcard else suppressed)]
    stand = [sorted({*(covering or strange), *everything}) for covering in texts_of_value]
    stand.append(list(range(null + 1)) if wildcard else sorted({*of_null, *everything}))
    number_of: dict[tuple[int, ...], int] = {}
    kind_of = [number_of.setdefault(tuple(texts), len(number_of)) if texts else -1 for texts in stand]
    lengths = [len(texts) for texts in number_of]
    return KnownColumn(
        name,
        np.array(kind_of, np.int64),
        len(number_of),
        np.repeat(np.arange(len(lengths)), lengths),
        np.fromiter((text for texts in number_of for text in texts), np.int64, sum(lengths)),
        null + 1,
        len(strange),
        unread_cells(reader.understood, released) if strange else 0,
        len(released.codes),
    )


def as_in(base: Sequence[str], name: str, texts: Sequence[str], policy: Policy | None) -> list[str]:
    """Return the texts of a column as the original writes them, if they equal one of its values: 23 for 23.0."""
    base_texts = frozenset(base)
    strange = [text for text in texts if text not in base_texts]
    if not strange:
        return list(texts)

    def equal_values() -> dict[str, str]:
        behind = zip(strange, behind_of(name, strange, base, policy), strict=True)
        return {text: values[0] for text, values in behind if len(values) == 1}

    value_of = cached_read(equal_values, lambda: ("equal", spec_key(name, policy), texts_key(strange), texts_key(base)))
    return [value_of.get(text, text) for text in texts]


def behind_of(name: str, strange: Sequence[str], base: Sequence[str], policy: Policy | None) -> list[list[str]]:
    """Return the original values covered by each of some texts that are not values themselves."""
    hierarchies = hierarchies_of(name, base, base, policy)
    reader = Reader(strange, base, hierarchies, freely=False, mark=mark_of(name, policy))
    out: list[list[str]] = [[] for _ in strange]
    for value, covering in zip(base, reader.covering(base), strict=True):
        for i in covering:
            out[i].append(value)
    return out


def mark_of(name: str, policy: Policy | None) -> DecimalMark | None:
    """Return the decimal mark that the policy specifies for a column, if any."""
    return None if policy is None else policy.marks.get(name)


def hierarchies_of(
    name: str, base: Sequence[str], known_texts: Sequence[str], policy: Policy | None
) -> list[Hierarchy]:
    """Return the hierarchy of the release, and one that includes the values of people who are not in it."""
    column = None if policy is None else policy.columns.get(name)
    if policy is None or column is None or column.hierarchy is None:
        return []

    def build(texts: Sequence[str]) -> Hierarchy:
        folder = policy.folder
        return cached_read(
            lambda: builders.build(name, column.hierarchy, texts, nulls=True, uncovered="suppress", folder=folder),
            lambda: ("hierarchy", spec_key(name, policy), texts_key(texts)),
        )

    hierarchy = build(base)
    strangers = set(known_texts).difference(base)
    return [hierarchy, build(sorted({*base, *strangers}))] if strangers else [hierarchy]
