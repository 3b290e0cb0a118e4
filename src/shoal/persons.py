"""Which column tells persons apart, where one person has several records.

By its name, and by counting: within one person's records sex, race and birth stay the same, and within a random set of
records they do not. A number that rises from row to row repeats for nobody, and so tells nothing of this kind.
"""

from __future__ import annotations

from collections.abc import Sequence

from shoal import vocabulary
from shoal.roles import ENOUGH, CountTuples, Seen
from shoal.table.propose import FEW

CONSTANT = 0.99  # of the persons with several records, a trait may be wrong for one in a hundred
BY_CHANCE = 0.8  # a trait that two records in any case share says nothing


def person_key(columns: Sequence[Seen], tuples: CountTuples) -> str | None:
    """The column whose values are persons, of whom some have several records; None where there is none."""
    traits = [
        c for c in columns if c.named(vocabulary.STABLE) and 1 < c.distinct <= 50 and _shared_by_chance(c) < BY_CHANCE
    ]
    found = [c for c in columns if _may_be_key(c)]
    named = [c for c in found if c.named(vocabulary.KEYED) or c.named(vocabulary.PEOPLE)]
    for column in named:
        elsewhere = column.named(vocabulary.HOUSEHOLDS) or column.named(vocabulary.PLACES)
        if elsewhere and not column.named(vocabulary.PEOPLE):  # a household, a hospital
            continue
        own = [t for t in traits if t.name != column.name]
        if not own or any(_constant(column, trait, tuples) for trait in own):
            return column.name
        # A number that starts again in every hospital. Counting numbers takes two persons for one at times, which is
        # safe: never one person for two.
        places = [c for c in columns if c.named(vocabulary.PLACES) and 1 < c.distinct < column.distinct]
        if any(_constant_within(place, column, own, tuples) for place in places):
            return column.name
    for column in found:
        if column in named or column.private or _about_persons(column):
            continue
        own = [t for t in traits if t.name != column.name]
        if len(own) >= 2 and all(_constant(column, trait, tuples) for trait in own):
            return column.name
    return None


def household_key(columns: Sequence[Seen]) -> str | None:
    """The column whose values are households, by its name, where several records share one."""
    return next((c.name for c in columns if c.named(vocabulary.HOUSEHOLDS) and _may_be_key(c)), None)


def _may_be_key(column: Seen) -> bool:
    """Many different values, no fractions among them, some of which repeat."""
    if column.kind == "date" or column.distinct <= FEW or column.filled < ENOUGH:
        return False
    repeats = column.distinct < column.filled and column.filled <= 200 * column.distinct
    return repeats and not any("." in text for text in column.some)


def _about_persons(column: Seen) -> bool:
    """An age or a place repeats as well, and is no key."""
    return any(map(column.named, (vocabulary.WHEN, vocabulary.PERSONAL, vocabulary.PLACES, vocabulary.SAMPLING)))


def _shared_by_chance(column: Seen) -> float:
    """How often two records have the same value."""
    return float(((column.counts / max(1, column.filled)) ** 2).sum())


def _constant_within(place: Seen, key: Seen, traits: Sequence[Seen], tuples: CountTuples) -> bool:
    """Whether the values of the key are persons in each place: most have several records, and constant traits there."""
    own = [trait for trait in traits if trait.name != place.name]
    keys = tuples(place.name, key.name)
    repeated = min(keys, key.records - keys)
    return (
        bool(own)
        and 2 * repeated > keys
        and all(tuples(place.name, key.name, trait.name) - keys <= (1 - CONSTANT) * repeated for trait in own)
    )


def _constant(key: Seen, trait: Seen, tuples: CountTuples) -> bool:
    """Whether nearly every value of the key goes with one value of the trait; a null counts as one."""
    keys = key.distinct + (key.nulls > 0)
    repeated = min(keys, key.records - keys)  # no more values than that have a second record
    return repeated > 0 and tuples(key.name, trait.name) - keys <= (1 - CONSTANT) * repeated
