"""Columns that reveal others: a column that nearly determines another one discloses its values.

Approximate functional dependencies, measured by the records that break them (J. Kivinen, H. Mannila, "Approximate
inference of functional dependencies from relations", TCS 149(1), 1995: g3), here in proportion to what guessing
without the column would miss, so that neither a frequent value nor a column of unique values seems to be told.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from shoal.engines.dependence import Countable, Dependence, Spread, TellingPair
from shoal.tables.frequency import Counts

# A column tells another where guessing by it misses at most this share of what guessing without it would miss …
MISSED = 0.05
# … and by chance there would be at least so many misses: e^-5 is below 1 %.
EVIDENCE = 5
# Where fewer of the records share their value with another, the column identifies rather than tells …
SHARED = 0.5
# … and where fewer of all records have a value, it is nearly empty.
FILLED = 0.2


def determined(dependence: Dependence, frequencies: Counts, guesses: int = 1) -> bool:
    """Return whether one column determines another, up to exceptions and ``guesses`` values, and not by chance.

    Without it the most frequent values are guessed, and miss a share of the records. It can only be told by records
    that share their value: a column that is different everywhere tells nothing about others, it identifies.
    """
    shared = dependence.told(guesses)
    expected = shared * _missed(frequencies, guesses)
    filled = dependence.records >= FILLED * frequencies.sum()
    enough = filled and expected >= EVIDENCE and dependence.told(1) >= SHARED * dependence.records
    return enough and dependence.errors(guesses) <= MISSED * expected


def determined_beyond_nulls(
    dependence: Dependence, frequencies: Counts, nulls: tuple[int, int], guesses: int = 1
) -> bool:
    """Return whether one column determines another, and not only where the other has nulls.

    Groups are formed of the records with a value in the first, of which an unknown number has a null in the second: of
    two forms of a questionnaire, an answer in one goes with a null in the other. It must hold for both extremes.
    ``nulls`` are those of both columns, and the frequencies of the second include its own.
    """
    if not determined(dependence, frequencies, guesses):
        return False
    first, second = nulls
    filled = np.delete(frequencies, np.flatnonzero(frequencies == second)[:1])
    if not (first and second and len(filled)):
        return True

    def among_records(n_nulls: int) -> Counts:
        shares = filled / filled.sum() * (dependence.records - n_nulls)
        return np.sort(np.append(np.rint(shares), n_nulls))[::-1].astype(np.int64)

    extremes = {max(0, second - first), min(second, dependence.records)}
    return all(determined(dependence, among_records(n_nulls), guesses) for n_nulls in extremes)


def possible(spread: Spread, frequencies: Counts, guesses: int = 1) -> bool:
    """Return whether a column may determine another, judging by their numbers of values: few cannot determine many."""
    shared = spread.records - spread.distinct
    expected = shared * _missed(frequencies, guesses)
    errors = spread.records - int(frequencies[: guesses * spread.distinct].sum())
    filled = spread.records >= FILLED * frequencies.sum()
    return filled and expected >= EVIDENCE and shared >= SHARED * spread.records and errors <= MISSED * expected


def _missed(frequencies: Counts, guesses: int) -> float:
    """Return the share of records that do not have one of the most frequent values."""
    return 1 - int(frequencies[:guesses].sum()) / int(frequencies.sum())


@dataclass(frozen=True, eq=False)
class Telling:
    """The pairs of columns in which the first determines the second."""

    dependences: Mapping[TellingPair, Dependence]
    guesses: Mapping[TellingPair, int]  # one value, or two where one would not do; only pairs that tell

    @classmethod
    def of(
        cls, rows: Countable, pairs: Mapping[TellingPair, Iterable[int]], hidden: Callable[[str, int], bool]
    ) -> Telling:
        """Count the ``pairs`` that are possible, each for the number of guesses it names.

        ``hidden``: whether so many guesses miss a column, and it is news what tells it.
        """
        spreads = rows.spreads(list(dict.fromkeys(name for pair in pairs for name in pair)))
        often = {name: rows.frequencies(name) for name in dict.fromkeys(other for _, other in pairs)}
        possible_pairs = {
            (name, other): open_
            for (name, other), guesses in pairs.items()
            if (open_ := [n for n in guesses if hidden(other, n) and possible(spreads[name], often[other], n)])
        }
        dependences = rows.dependences(list(possible_pairs))

        def fewest(pair: TellingPair, guesses: Sequence[int]) -> int:
            records = int(often[pair[1]].sum())
            nulls = records - spreads[pair[0]].records, records - spreads[pair[1]].records
            counted = dependences[pair], often[pair[1]], nulls
            return min((n for n in guesses if determined_beyond_nulls(*counted, n)), default=0)

        fewest_guesses = {pair: fewest(pair, guesses) for pair, guesses in possible_pairs.items()}
        return cls(dependences, {pair: n for pair, n in fewest_guesses.items() if n})

    def by(self, name: str, targets: Iterable[str]) -> list[str]:
        """List the columns that one column determines, each with the share of records for which it does."""
        return [f"{other!r} ({self._extent((name, other))})" for other in targets if (name, other) in self.guesses]

    def _extent(self, pair: TellingPair) -> str:
        dependence, guesses = self.dependences[pair], self.guesses[pair]
        part = whole_percent((dependence.records - dependence.errors(guesses)) / dependence.records)
        return f"{'up to two values, ' if guesses == 2 else ''}for {part} of the records"


def whole_percent(part: float) -> str:
    """Format whole percents, rounded down: more digits would disclose something about unreleased records."""
    return f"{math.floor(100 * part + 1e-9)} %"
