"""Sensitive values of people and records in any notation: 23.0 is 23, and 1,500 is 1500.

Texts are read by ``hierarchies.reader``. A text that covers a single value of the original is that value; one that
covers several, such as a range, is a value of its own, held by those whom no other text covers. If another does, or if
a text covers nothing, it cannot be determined what it discloses: these cells are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shoal.attacks.column_matching import as_in, behind_of
from shoal.hierarchies.reader import unread_cells
from shoal.notation.codec import Coded
from shoal.policy import Policy
from shoal.tables.frequency import RowNumbers


@dataclass(frozen=True, eq=False)
class SensitiveValues:
    """A sensitive column of a release and of people; equal numbers mean equal values."""

    texts: tuple[str, ...]  # as the original has them, where it does; a null is the number after the last
    of_record: RowNumbers
    of_person: RowNumbers  # -1 for a value that the release does not have
    unread_share: float  # of the released cells, those that cannot be interpreted


def values_of(name: str, released: Coded, of_people: Coded, ground: Coded, policy: Policy | None) -> SensitiveValues:
    """Read a sensitive column for the known people; ``ground`` has the values of the original."""
    value_texts, shared, unread = _read(name, released, ground.texts, policy)
    theirs = as_in(ground.texts, name, of_people.texts, policy)  # who are not in the original may write otherwise
    number_of = {
        text: i for i, text in enumerate(sorted(set(value_texts)))
    }  # the same numbers however values are written
    number = [number_of[text] for text in value_texts]
    labels = {value: number_of[label] for value, label in shared.items()}
    person_values = [number_of.get(text, labels.get(text, -1)) for text in theirs]
    return SensitiveValues(
        tuple(number_of),
        np.array([*number, len(number_of)], np.int64)[released.codes],  # a null, -1, takes the last place
        np.array([*person_values, len(number_of)], np.int64)[of_people.codes],
        unread / len(released.codes) if len(released.codes) else 0.0,
    )


def _read(name: str, coded: Coded, base: Sequence[str], policy: Policy | None) -> tuple[list[str], dict[str, str], int]:
    """Return the value of each text, the label of values that only a label covers, and the undetermined cells."""
    base_values = frozenset(base)
    strange = [text for text in coded.texts if text not in base_values]
    if not strange:
        return list(coded.texts), {}, 0
    behind = behind_of(name, strange, base, policy)
    value_of = {text: values[0] for text, values in zip(strange, behind, strict=True) if len(values) == 1}
    occurring = set(coded.texts)
    texts_of = {value: {value} if value in occurring else set[str]() for value in base}
    for text, values in zip(strange, behind, strict=True):
        for value in values:
            texts_of[value].add(value_of.get(text, text))
    determined = base_values.union(value_of)
    determined |= {
        text
        for text, values in zip(strange, behind, strict=True)
        if values and all(texts_of[value] == {text} for value in values)
    }
    labels = {value: next(iter(texts)) for value, texts in texts_of.items() if len(texts) == 1}
    unread = unread_cells(np.array([text in determined for text in coded.texts], np.bool_), coded)
    return [value_of.get(text, text) for text in coded.texts], labels, unread
