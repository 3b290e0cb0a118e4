"""Columns that belong together: determined by a quasi-identifier or determining one, and the answers of a survey.

A column that says the same as a quasi-identifier, such as the logarithm of a town's size or the mean of a school, must
be coarsened with it, or coarsening hides nothing. Many columns with the same few values are one decision, not many.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from shoal.engines.dependence import Dependence, Spread, TellingPair
from shoal.inspection.dependencies import determined_beyond_nulls, possible
from shoal.inspection.hierarchy_proposal import FEW
from shoal.inspection.roles import ANSWER, AS_TOLD, ENOUGH, CountTuples, Guess, RawColumn
from shoal.tables.frequency import Counts

CountDependences = Callable[[Sequence[TellingPair]], Mapping[TellingPair, Dependence]]

ALIKE = 6  # columns of one kind from which they are one decision
MANY = 10  # of which the names say that they are answers
PER_VALUE = 2  # persons per value on average: with fewer a column identifies, which is another matter
PAIRS = 4_000  # of columns that are compared; beyond, those with the most values are


# ── determined by a quasi-identifier, or determining one ────────────────────────────────────────────────────


def companion_guesses(
    columns: Sequence[RawColumn],
    guesses: Mapping[str, Guess],
    n_persons: int,
    tuples: CountTuples,
    dependences: CountDependences,
) -> dict[str, Guess]:
    """Return unchanged columns that tell a quasi-identifier or are told by one: they count as known themselves.

    What is private by its name stays sensitive where a quasi-identifier tells it: then it is what must be protected.
    """
    # An unsure one is quasi already; what it has in common with a known one makes it sure.
    unsure = {name for name, guess in guesses.items() if guess.sure == "unsure"}
    quasi = [c for c in columns if guesses[c.name].role == "quasi" and c.name not in unsure]
    published_columns = [
        column
        for column in columns
        if (guesses[column.name].role in ("sensitive", "plain") or column.name in unsure)
        and guesses[column.name].role != "identifier"
        and guesses[column.name].reason != AS_TOLD
        and column.distinct > 1
    ]
    copies = {
        column.name: Guess("quasi", f"says the same as {copied.name!r}", "likely")
        for column in published_columns
        if (copied := next((known for known in quasi if _repeats(column, known, tuples)), None))
    }
    rest = [column for column in published_columns if column.name not in copies]
    pairs = _possible_pairs(rest, quasi, n_persons)
    known = {column.name for column in quasi}
    counted = dependences(pairs)
    by_name = {column.name: column for column in columns}
    determining: dict[str, Guess] = {}
    for first, second in pairs:
        if second in known:
            if any(_determines(by_name[first], by_name[second], counted[first, second], n) for n in (1, 2)):
                determining.setdefault(first, Guess("quasi", f"tells {second!r}", "likely"))
        elif _determines(by_name[first], by_name[second], counted[first, second], 1):
            determining.setdefault(second, Guess("quasi", f"told by {first!r}", "likely"))
    return copies | determining


def _determines(first: RawColumn, second: RawColumn, counted: Dependence, guesses: int) -> bool:
    return determined_beyond_nulls(counted, _frequencies(second), (first.nulls, second.nulls), guesses)


def _possible_pairs(columns: Sequence[RawColumn], quasi: Sequence[RawColumn], n_persons: int) -> list[TellingPair]:
    """Return the pairs in which one column may determine the other, judging by their values alone."""
    pairs = []
    for column in columns:
        for quasi_column in quasi:
            if _may_tell(column, quasi_column, n_persons):
                pairs.append((column, quasi_column))
            if not column.private and _may_tell(quasi_column, column, n_persons):
                pairs.append((quasi_column, column))
    pairs.sort(key=lambda pair: -min(pair[0].distinct, pair[1].distinct))
    return [(first.name, second.name) for first, second in pairs[:PAIRS]]


def _may_tell(first: RawColumn, second: RawColumn, n_persons: int) -> bool:
    if not (first.all_there and second.all_there) or PER_VALUE * first.distinct > n_persons:
        return False
    spread, frequencies = Spread(first.filled, first.distinct, 0), _frequencies(second)
    return possible(spread, frequencies) or possible(spread, frequencies, 2)


def _frequencies(column: RawColumn) -> Counts:
    counts = np.append(column.counts, column.nulls) if column.nulls else column.counts
    return np.sort(counts)[::-1].astype(np.int64)


def _repeats(column: RawColumn, other: RawColumn, tuples: CountTuples) -> bool:
    """Return whether the values of two columns correspond one to one, more often than by chance."""
    n_values = column.distinct + (column.nulls > 0)
    repeated = column.records - n_values
    surprising = repeated * (1 - int(other.counts.max(initial=0)) / max(1, other.records))
    if n_values != other.distinct + (other.nulls > 0) or repeated < column.records / 4 or surprising < ENOUGH:
        return False
    return tuples(column.name, other.name) == n_values


# ── many columns of one kind ────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Battery:
    """Columns of one kind, such as the answers of a survey: what is decided of one holds for all."""

    columns: tuple[str, ...]

    @property
    def reason(self) -> str:
        """Why the columns have the role they have."""
        return f"one of {len(self.columns)} columns of one kind, such as answers of a survey: decide on all together"


def batteries(columns: Sequence[RawColumn], guesses: Mapping[str, Guess]) -> list[Battery]:
    """Return the groups of columns about which only their values are known, and these are of one kind.

    Answers that are known as such by their names belong to them, and are a group by themselves where there are many.
    Of one kind are columns whose few values are all among those of one of them, and columns that are numbered alike:
    q1, q2 …, or ea1, ea2, ta1, ta2 …, where several things are asked at several times.
    """
    figures = [column for column in columns if column.kind in ("number", "category") and column.texts]
    unsure = [column for column in figures if guesses[column.name].sure == "unsure"]
    answers = [column for column in figures if _is_answer(column, guesses[column.name])]
    rest = [column for column in (*unsure, *answers) if column.distinct <= FEW]
    rest.sort(key=lambda column: -column.distinct)
    groups: list[list[str]] = []
    while rest:
        values = _values(rest[0])
        alike = [column.name for column in rest if values >= _values(column)]
        rest = [column for column in rest if column.name not in alike]
        if len(alike) >= MANY or sum(guesses[name].sure == "unsure" for name in alike) >= ALIKE:
            groups.append(alike)
    grouped = {name for group in groups for name in group}
    numbered: dict[str, dict[str, str]] = {}  # by stem and number
    for column in unsure:
        if column.name not in grouped and (parts := re.fullmatch(r"(.*?)[\W_]*(\d+[A-Za-z]?)", column.name)):
            numbered.setdefault(parts.group(1), {})[parts.group(2)] = column.name
    stems = {stem: list(names.values()) for stem, names in numbered.items() if len(names) >= ALIKE}
    times: dict[tuple[str, ...], list[str]] = {}  # of the same numbers, at least two
    for stem, names in numbered.items():
        if stem not in stems and len(names) > 1:
            times.setdefault(tuple(sorted(names)), []).extend(names.values())
    order = [column.name for column in columns]
    batches = (*groups, *stems.values(), *(names for names in times.values() if len(names) >= ALIKE))
    return [Battery(tuple(sorted(group, key=order.index))) for group in batches]


def _values(column: RawColumn) -> set[str]:
    """Return the values of a column; whole numbers are written with a decimal where other records have none."""
    return {text.removesuffix(".0") for text in column.texts}


def _is_answer(column: RawColumn, guess: Guess) -> bool:
    """Return whether a column holds an answer or a score, judging by its name."""
    return guess.role == "sensitive" and guess.reason != AS_TOLD and column.private == ANSWER
