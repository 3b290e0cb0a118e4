"""Find the column that identifies people if a person can have several records.

A column whose values repeat and that looks like an identifier, by its name or its values, is the person, unless
something that cannot change contradicts it: within the records of one person, sex, race and birth are constant.
Counting too few persons is safe, counting one person as several is not. A number that increases from row to row never
repeats, so it cannot show this.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from shoal.engines.dependence import Countable, Dependence, Spread, TellingPair
from shoal.inspection import vocabulary
from shoal.inspection.dependencies import MISSED, determined
from shoal.inspection.hierarchy_proposal import FEW
from shoal.inspection.roles import ENOUGH, CountTuples, RawColumn, called
from shoal.policy import Policy
from shoal.tables.frequency import Counts

FRACTION = re.compile(r"-?\d*\.\d*[1-9]\d*")
MAX_FRACTIONS = 0.1  # share of a key's values that may have one, such as 17.1 for a second person with the number 17
CONSTANT = 0.99  # of the persons with several records, a trait may be wrong for one in a hundred
# Recognised values of which one person has one or a few, unlike the addresses of pages.
KINDS_OF_PERSONS = {
    *("e-mail addresses", "handles", "device addresses", "universal identifiers", "bank account numbers"),
    *("payment card numbers", "national identity numbers", "phone numbers", "IP addresses"),
}
BY_CHANCE = 0.8  # a trait that two records in any case share says nothing


def person_key(columns: Sequence[RawColumn], tuples: CountTuples) -> str | None:
    """Return the column that identifies people, some of whom have several records; None if there is none."""
    traits = [
        c for c in columns if c.named(vocabulary.STABLE) and 1 < c.distinct <= 50 and _shared_by_chance(c) < BY_CHANCE
    ]
    candidates = [c for c in columns if _may_be_key(c)]
    looking_like_keys = sorted((c for c in candidates if _likelihood(c)), key=_likelihood, reverse=True)
    for column in looking_like_keys:
        contradicting = [t for t in traits if t.name != column.name]
        if not contradicting or any(_constant(column, trait, tuples) for trait in contradicting):
            return column.name
        # A number that starts again in every hospital. Counting numbers takes two persons for one at times, which is
        # safe: never one person for two.
        places = [c for c in columns if c.named(vocabulary.PLACES) and 1 < c.distinct < column.distinct]
        if any(_constant_within(place_column, column, contradicting, tuples) for place_column in places):
            return column.name
    for column in candidates:
        if column in looking_like_keys or column.private or _about_persons(column):
            continue
        constant = [t for t in traits if t.name != column.name]
        if len(constant) >= 2 and all(_constant(column, trait, tuples) for trait in constant):
            return column.name
    return None


def _likelihood(column: RawColumn) -> int:
    """Return how much a column looks like a key of persons, 0 if not: by its name first, then by its values."""
    if column.named(vocabulary.PEOPLE) and (column.named(vocabulary.KEYED) or not _about_persons(column)):
        return 3
    if any(map(column.named, (vocabulary.HOUSEHOLDS, vocabulary.PLACES, vocabulary.TECHNICAL))):  # a hospital, a visit
        return 0
    if column.named(vocabulary.KEYED):
        return 2
    values = column.recognised
    return int(values is not None and not values.inside and not values.place and values.kind in KINDS_OF_PERSONS)


def repeated(rows: Countable, policy: Policy) -> tuple[str, Spread] | None:
    """Return the column by which people seem to have several records, if the policy names no entity.

    An identifier that repeats, unless sex, birth or the like change within its values: then these are names that
    different people share. A column with another role must be called as keys of persons are, and such a trait must stay
    the same within its values.
    """
    if policy.release.entity is not None:
        return None
    present = [name for name in policy.columns if name in rows.columns]
    identifiers = [name for name in present if name in policy.identifiers]
    keys = [name for name in present if _called_key(name)]
    spreads = rows.spreads(list(dict.fromkeys([*identifiers, *keys])))
    repeating = [name for name, spread in spreads.items() if spread.distinct < spread.records]
    traits = [name for name in present if name not in spreads and called(name, vocabulary.STABLE)]
    for name in sorted(repeating, key=lambda name: (name not in identifiers, -spreads[name].distinct)):
        if _persons_in(name, spreads, traits, rows, policy):
            return name, spreads[name]
    return None


def _called_key(name: str) -> bool:
    if called(name, vocabulary.PEOPLE):
        return True
    return called(name, vocabulary.KEYED) and not any(
        called(name, words) for words in (vocabulary.HOUSEHOLDS, vocabulary.PLACES)
    )


def _persons_in(
    name: str, spreads: Mapping[str, Spread], traits: Sequence[str], rows: Countable, policy: Policy
) -> bool:
    """Return whether the repeated values of a column are people, judging by the other columns."""
    constant = [
        _stays(dependence, rows.frequencies(trait)) for (_, trait), dependence in _within(name, traits, rows).items()
    ]
    if name not in policy.identifiers:
        return spreads[name].distinct > FEW and any(constant)
    if constant and not _called_key(name):
        return all(constant)
    if constant:
        return any(constant) or _starts_again(spreads[name], policy)
    if all(
        spread.distinct < spread.records for identifier, spread in spreads.items() if identifier in policy.identifiers
    ):
        return True  # nothing speaks against it
    # Another identifier is different in every record: those who share this one must be alike in most quasi columns.
    alike = [
        determined(dependence, rows.frequencies(quasi))
        for (_, quasi), dependence in _within(name, policy.quasi, rows).items()
    ]
    return 2 * sum(alike) > len(alike)


def _starts_again(spread: Spread, policy: Policy) -> bool:
    """Return whether person numbers may restart in every place: most of them repeat, and there are places."""
    return 2 * (spread.records - spread.distinct) > spread.distinct and any(
        called(name, vocabulary.PLACES) for name in policy.columns
    )


def _within(name: str, targets: Sequence[str], rows: Countable) -> Mapping[TellingPair, Dependence]:
    return rows.dependences([(name, other) for other in targets])


def _stays(dependence: Dependence, frequencies: Counts) -> bool:
    """Return whether a trait is constant within the values of a key, with few exceptions."""
    by_chance = 1 - int(frequencies[:1].sum()) / int(frequencies.sum())
    return dependence.errors(1) <= MISSED * dependence.told(1) * by_chance


def household_key(columns: Sequence[RawColumn]) -> str | None:
    """Return the column that identifies households, judging by its name, if several records share a value."""
    return next((c.name for c in columns if c.named(vocabulary.HOUSEHOLDS) and _may_be_key(c)), None)


def _may_be_key(column: RawColumn) -> bool:
    """Return whether a column is filled and has many different values, few with fractions, some of them repeated."""
    if column.kind == "date" or column.distinct <= FEW or column.filled < ENOUGH or column.nulls:
        return False
    repeats = column.distinct < column.filled and column.filled <= 200 * column.distinct
    fractions = sum(1 for text in column.some if FRACTION.fullmatch(text))
    return repeats and fractions <= MAX_FRACTIONS * len(column.some)


def _about_persons(column: RawColumn) -> bool:
    """Return whether a column is an age or a place, which repeats as well but is not a key."""
    return any(map(column.named, (vocabulary.WHEN, vocabulary.PERSONAL, vocabulary.PLACES, vocabulary.SAMPLING)))


def _shared_by_chance(column: RawColumn) -> float:
    """Return the probability that two records have the same value."""
    return float(((column.counts / max(1, column.filled)) ** 2).sum())


def _constant_within(place_column: RawColumn, key: RawColumn, traits: Sequence[RawColumn], tuples: CountTuples) -> bool:
    """Return whether the key identifies people within each place: most have several records and constant traits."""
    other_traits = [trait for trait in traits if trait.name != place_column.name]
    keys = tuples(place_column.name, key.name)
    repeated = min(keys, key.records - keys)
    return (
        bool(other_traits)
        and 2 * repeated > keys
        and all(
            tuples(place_column.name, key.name, trait.name) - keys <= (1 - CONSTANT) * repeated
            for trait in other_traits
        )
    )


def _constant(key: RawColumn, trait: RawColumn, tuples: CountTuples) -> bool:
    """Return whether nearly every value of the key has a single value of the trait; a null counts as a value."""
    keys = key.distinct + (key.nulls > 0)
    repeated = min(keys, key.records - keys)  # no more values than that have a second record
    return repeated > 0 and tuples(key.name, trait.name) - keys <= (1 - CONSTANT) * repeated
