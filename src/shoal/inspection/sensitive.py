"""Propose what protects sensitive columns: how coarse they are released, and what every class must satisfy.

**Coarser numbers.** Where many records have a number that hardly anybody shares, numbers are rounded, and cut at their
ends, until at least k records share each: a number then singles nobody out.

**Requirements.** A bound on what a class tells of every value (``limited-gain``) stops bets on values, on the most
frequent one and on the one that is over-represented, and classes with one value; a range of numbers in every class
(``k-e-anonymity``) stops approximate disclosure. How strict they can be depends on the table, so it is tried: the
strictest step of ``STEPS`` is taken whose search stays near the loss without it (``inspection.strictness``). Steps that
bound every value come first, as a class in which everybody has the value of most people tells it, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from shoal.inspection.roles import CROWD, RawColumn
from shoal.notation.numbers import parse_number
from shoal.notation.same_values import plain_value, says_nothing
from shoal.policy.coarsening import Coarsening

COST = 0.02  # the loss that the requirements may add
MANY_VALUES = 12  # different numbers from which on a class must have a range of them
RARE = 0.05  # of the records may have a number that fewer than k share, before numbers are rounded
# How much of the records may be cut at each end, and how many different numbers rounding must leave: of the first pair
# for which there is a rounding.
ENDS_AND_FEWEST = ((0.03, 4), (0.1, 4), (0.25, 3), (0.5, 2))

# Values that nobody minds, as ``plain_value`` returns them.
HARMLESS = ("no", "none", "never", "negative", "absent", "not present", "false", "nein", "non", "keine", "negativ")
ZERO_OFTEN = 0.5  # of the records with a 0 from which on it means "none"


@dataclass(frozen=True)
class Strictness:
    """How strict the requirements are."""

    gain: float  # the largest success of a bet above its control, for one class
    range: float  # of numbers in a class, as a share of the whole range
    common: float | None = None  # values of so many records are exempt


# The attacks tolerate 0.09 above the control, and call numbers similar within a quarter of their range. Under any gain
# below 1, no class has one value only, unless it is exempt.
STEPS = (
    Strictness(0.09, 0.26),
    Strictness(0.2, 0.26),
    Strictness(0.35, 0.26),
    Strictness(0.5, 0.26),
    Strictness(0.75, 0.15),
    Strictness(0.9, 0.05),
    Strictness(0.5, 0.15, 0.9),
    Strictness(0.6, 0.1, 0.75),
    Strictness(0.75, 0.05, 0.6),
    Strictness(0.9, 0.02, 0.5),
)
EXEMPTING = next(i for i, step in enumerate(STEPS) if step.common is not None)  # from here on, frequent values are


@dataclass(frozen=True)
class SensitiveColumn:
    """What a proposal knows about a sensitive column."""

    name: str
    released: Coarsening | None = None
    span: float | None = None  # the range of its released numbers, where a class must have a range of them
    exempt: tuple[str, ...] = ()

    def requirements(self, step: Strictness) -> Iterator[dict[str, Any]]:
        """Yield the requirements on the column, as a policy writes them."""
        bound: dict[str, Any] = {"model": "limited-gain", "column": self.name, "gain": step.gain}
        if self.exempt:
            bound["exempt"] = list(self.exempt)
        if step.common is not None:
            bound["common"] = step.common
        yield bound
        if self.span is not None:
            yield {"model": "k-e-anonymity", "column": self.name, "k": 2, "e": _two_digits(self.span * step.range)}


@dataclass(frozen=True)
class Protection:
    """The requirements on sensitive columns that a proposal contains, and what they cost."""

    columns: tuple[SensitiveColumn, ...]
    step: int | None  # of STEPS; None if none of them can be met
    before: float  # the loss without the requirements
    after: float  # and with them
    tried: int  # records
    records: int

    @property
    def requirements(self) -> tuple[dict[str, Any], ...]:
        """The requirements, as a policy writes them."""
        if self.step is None:
            return ()
        step = STEPS[self.step]
        return tuple(requirement for column in self.columns for requirement in column.requirements(step))

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the requirements do, what they cost, and what was relaxed."""
        if self.step is None:
            return (
                "No requirement on the sensitive columns could be met together with k-anonymity: records of a class "
                "may share a sensitive value. Make fewer columns quasi or sensitive, or collect more records.",
            )
        step = STEPS[self.step]
        extent = "all" if self.tried == self.records else f"{self.tried:,} of {self.records:,}"
        lines = [
            f"Sensitive columns: no class may tell of a value more than {step.gain:.0%} of what the whole table leaves "
            f"open. Cost, tried on {extent} records: a loss of {self.after:.3f} instead of {self.before:.3f}."
        ]
        if self.step:
            lines.append(
                f"This is step {self.step + 1} of {len(STEPS)}: {STEPS[0].gain:.0%}, which the attacks tolerate, would "
                f"cost more than {COST:g}. Run shoal.attack on the release to see what remains."
            )
        if step.common is not None:
            lines.append(
                f"Values that at least {step.common:.0%} of all records have are exempt: everybody guesses them."
            )
        if harmless := [column.name for column in self.columns if column.exempt]:
            lines.append(
                f"Exempt because nobody minds: 'no', 0 and the like in {', '.join(harmless)}. Remove what is not."
            )
        if coarse := [column.name for column in self.columns if column.released is not None]:
            lines.append(f"Rounded until at least {CROWD} records share each number: {', '.join(coarse)}.")
        return tuple(lines)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        columns = [
            asdict(column) | {"released": column.released and column.released.model_dump(exclude_none=True)}
            for column in self.columns
        ]
        return asdict(self) | {"columns": columns}


# ── one column ──────────────────────────────────────────────────────────────────────────────────────────────


def sensitive_column(column: RawColumn, *, in_memory: bool = True) -> SensitiveColumn:
    """Return what a proposal needs to know about a sensitive column; rows in an engine cannot be rounded there."""
    exempt = _harmless(column)
    numbers = None if not column.all_there else _numbers(column)
    if numbers is None or len(numbers[0]) <= MANY_VALUES:
        return SensitiveColumn(column.name, exempt=exempt)
    values, counts = numbers
    released = _rounding(values, counts) if in_memory else None
    if released is not None:
        texts = released.coarse(column.name, [str(value) for value in values], None, Path())
        values = [Decimal(text) for text in texts if text is not None]
    span = float(max(values) - min(values))
    return SensitiveColumn(column.name, released, None if "0" in exempt or not span else span, exempt)


def _harmless(column: RawColumn) -> tuple[str, ...]:
    """Return the exempt values: words for no, and 0 where it means none; none if only some values were counted."""
    if not column.all_there:
        return ()
    said_values = {plain_value(text): int(count) for text, count in zip(column.texts, column.counts, strict=True)}
    words = tuple(word for word in HARMLESS if word in said_values)
    zero, two = said_values.get(Decimal(0), 0), len(said_values) == 2
    means_none = zero and (set(said_values) <= {Decimal(0), Decimal(1)} if two else zero >= ZERO_OFTEN * column.records)
    return (*words, "0") if means_none else words


def _numbers(column: RawColumn) -> tuple[list[Decimal], list[int]] | None:
    """Return the numbers of a column in order and their counts; None if it has other texts."""
    counts: dict[Decimal, int] = {}
    for text, count in zip(column.texts, column.counts, strict=True):
        number = parse_number(text)
        if number is None and not says_nothing(text):
            return None
        if number is not None:
            counts[number] = counts.get(number, 0) + int(count)
    values = sorted(counts)
    return values, [counts[value] for value in values]


def _rounding(values: Sequence[Decimal], counts: Sequence[int]) -> Coarsening | None:
    """Return the finest rounding with at least k records for each number; None if nearly all are shared anyway."""
    total = sum(counts)
    if sum(n for n in counts if n < CROWD) <= RARE * total:
        return None
    binnings = {step: _binned(values, counts, step) for step in _steps(values[-1] - values[0])}
    for ends, fewest in ENDS_AND_FEWEST:
        if coarsening := _finest(binnings, total, ends, fewest):
            return coarsening
    return None


def _binned(values: Sequence[Decimal], counts: Sequence[int], step: Decimal) -> dict[int, int]:
    """Return the records of each multiple of a step, to which values are rounded."""
    binned: dict[int, int] = {}
    for value, n in zip(values, counts, strict=True):
        multiple = int((value / step).to_integral_value(rounding="ROUND_HALF_UP"))
        binned[multiple] = binned.get(multiple, 0) + n
    return binned


def _finest(binnings: Mapping[Decimal, dict[int, int]], total: int, ends: float, fewest: int) -> Coarsening | None:
    """Return the finest rounding that cuts at most a share at each end and leaves so many different numbers."""
    for step, binned in binnings.items():
        cut = _cut(binned, ends * total)
        if cut is None:
            continue
        bottom, top = cut
        if sum(bottom <= multiple <= top for multiple in binned) < fewest:
            return None
        first, last = min(binned), max(binned)
        return Coarsening(
            round=float(step),
            bottom=float(bottom * step) if bottom > first else None,
            top=float(top * step) if top < last else None,
        )
    return None


def _cut(binned: dict[int, int], end_limit: float) -> tuple[int, int] | None:
    """Return where to cut the ends so that each number has k records; None if numbers between have fewer.

    An end takes the records beyond it, so it has k of them; more than ``most`` only where k need it.
    """
    multiples = sorted(binned)
    lows, highs = _ends(multiples, binned, end_limit), _ends(multiples[::-1], binned, end_limit)
    rare = [multiple for multiple in multiples if binned[multiple] < CROWD]
    below = [multiple for multiple in rare if multiple <= lows[-1]]
    above = [multiple for multiple in rare if multiple > lows[-1]]
    if above and above[0] < highs[-1]:
        return None
    bottom = next(multiple for multiple in lows if not below or multiple >= below[-1])
    top = next(multiple for multiple in highs if not above or multiple <= above[0])
    return (bottom, top) if bottom < top else None


def _ends(multiples: Sequence[int], binned: dict[int, int], end_limit: float) -> list[int]:
    """Return the multiples at which an end can be cut, from the outermost on; at least one."""
    beyond = 0
    ends: list[int] = []
    for multiple in multiples:
        beyond += binned[multiple]
        if beyond >= CROWD and (not ends or beyond <= end_limit):
            ends.append(multiple)
    return ends or [multiples[-1]]


def _steps(span: Decimal) -> Iterator[Decimal]:
    """Yield round steps, from a ten-thousandth of the span to a quarter of it."""
    exponent = span.adjusted() - 4
    while True:
        for digit in (1, 2, 5):
            step = Decimal(digit).scaleb(exponent)
            if step > span / 4:
                return
            if step >= span / 10_000:
                yield step
        exponent += 1


def _two_digits(number: float) -> float:
    """Return a number with two digits, not below it."""
    rounded = float(f"{number:.2g}")
    return rounded if rounded >= number else float(f"{number * 1.05:.2g}")
