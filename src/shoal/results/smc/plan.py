"""What is computed together: every party signs the same plan before anything about its rows leaves its computer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from itertools import pairwise
from typing import Any

from shoal.errors import PolicyError
from shoal.results.arguments import whole_argument
from shoal.results.smc.noise import PolyaNoise

MAX_ROWS = 2**32  # of all parties together; fixes how large the numbers in shares must be
FINEST = 1000  # noise has at least this many steps per sensitivity, and not many more
LEAST_ROWS = 10  # that anything exact is opened about, unless the parties agree on another number
WIDEST = 10**6  # noise of a larger scale, in its steps, would take minutes to draw
_WIDEST_BOUND = 2**64  # in units; sums of squares with noise then stay far below what shares hold
_LONGEST = 400  # digits before or after the point
_DECIMALS = 9
_PREDICTORS = 5
_PREFIX = b"shoal plan\n"


@dataclass(frozen=True)
class SharePlan:
    """Statistics of the rows of all parties together, and the conditions under which they may be opened.

    >>> from shoal import smc
    >>> plan = smc.SharePlan(mean=("age",), where={"infected": "yes"})
    >>> plan.opened
    ('sum of age', 'number of rows with age', 'whether there are at least 10 rows')
    """

    count: bool = False
    sum: tuple[str, ...] = ()
    mean: tuple[str, ...] = ()
    variance: tuple[str, ...] = ()
    histogram: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # a column and its values, or cut points
    minimum: tuple[str, ...] = ()
    maximum: tuple[str, ...] = ()
    quantile: tuple[tuple[str, str], ...] = ()  # a column and a fraction, as in ("age", "0.5")
    regression: tuple[tuple[str, ...], ...] = ()  # the target, then its predictors
    intersection: str | None = None  # a column of identifiers
    bounds: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # least and largest value of a column
    decimals: Mapping[str, int] = field(default_factory=dict)  # of a column, 0 where left out
    where: Mapping[str, str] = field(default_factory=dict)  # rows with these values only
    skip_missing: bool = False  # leave rows without a value out, instead of refusing them
    # Rows outside of any parties that may pool what they see, or nothing is opened; LEAST_ROWS without noise.
    at_least: int | None = None
    at_most: int = 1000  # distinct identifiers that a party may have, for an intersection
    epsilon: str | None = None  # differential privacy for everything that is opened together
    colluders: int | None = (
        None  # parties that may tell each other their parts of the noise; by default, fewer than half
    )
    rows_per_person: int = 1  # the most rows of one person, over all parties

    def __post_init__(self) -> None:
        if not self.statistics:
            raise PolicyError("the plan computes nothing", "ask for a mean, a sum, a count, …")
        for name in ("at_least", "at_most", "rows_per_person"):
            if (limit := getattr(self, name)) is not None:
                whole_argument(name, limit, 1, MAX_ROWS)
        for name, decimals in self.decimals.items():
            if not 0 <= decimals <= _DECIMALS:
                raise PolicyError(f"decimals of {name!r}: {decimals} is not between 0 and {_DECIMALS}")
        for name in self.bounds:
            self.limits(name)
        for name, values in self.histogram.items():
            if not values or len({*values}) < len(values):
                raise PolicyError(f"histogram of {name!r}: its cells must be different", "list values or cut points")
            self.cuts(name)
        for _, fraction in self.quantile:
            exact = fraction_in(fraction, "quantile")
            if not 0 < exact < 1:
                raise PolicyError(f"quantile {fraction}: is not between 0 and 1", "0.5 is the median")
            if exact.denominator > 10**_DECIMALS:  # its product with a number of rows must not overflow
                raise PolicyError(f"quantile {fraction}: has more than {_DECIMALS} decimals")
        for target, *predictors in self.regression:
            if not 1 <= len(predictors) <= _PREDICTORS or len({target, *predictors}) < len(predictors) + 1:
                raise PolicyError(f"regression of {target!r}: name 1 to {_PREDICTORS} different predictors")
        self._require_bounds()
        if self.epsilon is not None:
            self._check_noise()

    def _require_bounds(self) -> None:
        needed = {("minimum", name) for name in self.minimum} | {("maximum", name) for name in self.maximum}
        needed |= {("quantile", name) for name, _ in self.quantile}
        needed |= {("regression", name) for names in self.regression for name in names}
        if self.epsilon is not None:
            needed |= {(kind, name) for kind in ("sum", "mean", "variance") for name in getattr(self, kind)}
        for kind, name in sorted(needed):
            if name not in self.bounds:
                hint = "bounds are agreed beforehand and must not depend on the rows, such as 0 to 120 for an age"
                raise PolicyError(f"{kind} of {name!r} needs bounds", hint, option=f"--bounds {name}=0:120")

    def _check_noise(self) -> None:
        if self.minimum or self.maximum or self.quantile or self.regression:
            raise PolicyError(
                "noise is added to counts, sums, means, variances, histograms and intersection sizes only",
                "run the other statistics without noise, or leave them out",
            )
        if self.min_rows_opened > 1:
            raise PolicyError(
                "at_least opens an exact bit about the rows, which noise does not cover", "use one of the two"
            )
        if fraction_in(str(self.epsilon), "epsilon") <= 0:
            raise PolicyError(f"epsilon {self.epsilon}: is not above 0")
        if self.colluders is not None and self.colluders < 0:
            raise PolicyError("colluders is at least 0")
        kinds = [("count", "")] if self.counts_rows else []
        kinds += [("sum", name) for name in (*self.sum, *self.mean, *self.variance)]
        for kind, name in [*kinds, *(("square", name) for name in self.variance)]:
            epsilon, sensitivity, _ = self._spent(kind, name)
            if sensitivity > WIDEST * epsilon:
                raise PolicyError(
                    f"epsilon {self.epsilon}: the noise would be larger than any use",
                    "spend more, ask for fewer figures, or lower rows_per_person",
                )

    @property
    def min_rows_opened(self) -> int:
        """The fewest rows that anything is opened about."""
        return self.at_least if self.at_least is not None else LEAST_ROWS if self.epsilon is None else 1

    @property
    def counts_rows(self) -> bool:
        """Whether a number of rows or of identifiers is opened."""
        return bool(self.count or self.mean or self.variance or self.histogram or self.intersection is not None)

    # ── what is asked ────────────────────────────────────────────────────────────────────────────────────────

    @property
    def statistics(self) -> list[str]:
        """What is computed, in words."""
        named = ["count"] if self.count else []
        for kind in ("sum", "mean", "variance", "minimum", "maximum"):
            named += [f"{kind} of {name}" for name in getattr(self, kind)]
        named += [f"histogram of {name}" for name in self.histogram]
        named += [f"quantile {fraction} of {name}" for name, fraction in self.quantile]
        named += [f"regression of {names[0]} on {', '.join(names[1:])}" for names in self.regression]
        return named + ([f"intersection of {self.intersection}"] if self.intersection is not None else [])

    @property
    def opened(self) -> tuple[str, ...]:
        """Everything that all parties learn, in words."""
        lines = ["number of rows"] if self.count else []
        lines += [f"sum of {name}" for name in dict.fromkeys((*self.sum, *self.mean))]
        varying = self.variance if self.epsilon is None else ()
        counted = dict.fromkeys((*self.mean, *self.variance))
        lines += [f"number of rows with {name}" for name in counted]
        lines += [f"sum of squared deviations of {name} from its mean" for name in varying]
        if self.epsilon is not None:
            lines += [f"sum of {name}" for name in self.variance if name not in (*self.sum, *self.mean)]
            lines += [f"sum of squares of {name}" for name in self.variance]
        lines += [f"count in each cell of {name}" for name in self.histogram]
        lines += [f"minimum of {name}" for name in self.minimum] + [f"maximum of {name}" for name in self.maximum]
        lines += [f"quantile {fraction} of {name}" for name, fraction in self.quantile]
        lines += [f"coefficients of {names[0]} on {', '.join(names[1:])}" for names in self.regression]
        if self.intersection is not None:
            lines.append(f"number of values of {self.intersection} that all parties have")
        if self.min_rows_opened > 1:
            lines.append(f"whether there are at least {self.min_rows_opened} rows")
        return tuple(lines)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        numbers = [*self.sum, *self.mean, *self.variance, *self.minimum, *self.maximum]
        numbers += [name for name, _ in self.quantile] + [name for names in self.regression for name in names]
        numbers += [*self.histogram, *([] if self.intersection is None else [self.intersection]), *self.where]
        return tuple(dict.fromkeys(numbers))

    def scale(self, name: str) -> int:
        """How many units one is: values are computed with as whole numbers of the last decimal."""
        return int(10 ** self.decimals.get(name, 0))

    def limits(self, name: str) -> tuple[int, int]:
        """The bounds of a column in units."""
        low, high = (fraction_in(bound, f"bounds of {name!r}") * self.scale(name) for bound in self.bounds[name])
        if low >= high or low.denominator > 1 or high.denominator > 1:
            raise PolicyError(
                f"bounds of {name!r}: the first must be below the second, with at most "
                f"{self.decimals.get(name, 0)} decimals"
            )
        if max(abs(low), abs(high)) >= _WIDEST_BOUND:
            raise PolicyError(f"bounds of {name!r}: are too wide to be computed with", "agree on fewer decimals")
        return int(low), int(high)

    def cuts(self, name: str) -> tuple[Fraction, ...] | None:
        """The cut points of a histogram of numbers; None where its cells are values."""
        try:
            points = tuple(fraction_in(cell, "cut point") for cell in self.histogram[name])
        except PolicyError:
            return None
        return points if len(points) > 1 and points == tuple(sorted(points)) and name in self.bounds else None

    def cells(self, name: str) -> tuple[str, ...]:
        """The labels of the cells of a histogram; the last one has everything else."""
        values, cuts = self.histogram[name], self.cuts(name)
        if cuts is None:
            return (*values, "other")
        pairs = [f"[{low}, {high})" for low, high in pairwise(values)]
        return (*pairs[:-1], f"{pairs[-1][:-1]}]", "other")

    # ── noise ────────────────────────────────────────────────────────────────────────────────────────────────

    def noise_of(self, kind: str, name: str, parties: int) -> tuple[PolyaNoise, int] | None:
        """Return the noise of one opened figure and the unit that it is counted in; None without noise.

        One person changes a count by ``rows_per_person`` and a sum by as many times the largest absolute value. A sum
        is first rounded down to a multiple of the unit at each party, which is a thousandth of a value's bound or less.
        """
        if self.epsilon is None:
            return None
        epsilon, sensitivity, unit = self._spent(kind, name)
        return PolyaNoise(epsilon, sensitivity, self.honest(parties)), unit

    def _spent(self, kind: str, name: str) -> tuple[Fraction, int, int]:
        """Return the epsilon and the sensitivity of a figure, in units, and its unit."""
        largest = 1
        if kind in ("sum", "square"):
            largest = max(map(abs, self.limits(name))) ** {"sum": 1, "square": 2}[kind]
        unit = 10 ** max(0, len(str(largest // FINEST)) - 1) if largest > FINEST else 1
        epsilon = fraction_in(str(self.epsilon), "epsilon") / self.n_noisy
        # Rows of one person may be at different parties, each of which rounds.
        return epsilon, self.rows_per_person * -(-largest // unit), unit

    @property
    def n_noisy(self) -> int:
        """Over how many figures epsilon is divided; a histogram counts once, as each row is in one of its cells."""
        sums = len({*self.sum, *self.mean, *self.variance})
        counts = len({*self.mean, *self.variance})
        others_asked = [self.count, *self.histogram, self.intersection is not None]
        return sums + counts + len(self.variance) + sum(map(bool, others_asked))

    def honest(self, parties: int) -> int:
        """How many parties together add the full noise: those that remain if ``colluders`` reveal theirs."""
        colluders = (parties - 1) // 2 if self.colluders is None else self.colluders
        if colluders >= parties:
            raise PolicyError(f"{colluders} of {parties} parties cannot collude: at least one must be honest")
        return parties - colluders

    # ── agreed ───────────────────────────────────────────────────────────────────────────────────────────────

    def as_dict(self) -> dict[str, Any]:
        """Return all fields, as JSON represents them."""
        return dict(json.loads(json.dumps(asdict(self))))

    def canonical(self, session: Mapping[str, Any]) -> bytes:
        """Return the bytes that every party signs: the plan, and the parties and random numbers of this run."""
        document = {"plan": self.as_dict(), "session": dict(session)}
        text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return _PREFIX + text.encode()

    @property
    def digest(self) -> str:
        """A hash of the plan, to be compared by people."""
        return hashlib.sha256(self.canonical({})).hexdigest()

    def differences(self, other: Mapping[str, Any]) -> list[str]:
        """Return the fields in which another party's plan differs."""
        own_fields = self.as_dict()
        return [field.name for field in fields(self) if other.get(field.name) != own_fields[field.name]] + sorted(
            {*other} - {*own_fields}
        )


def fraction_in(text: str, subject: str) -> Fraction:
    """Read a decimal number exactly."""
    try:
        return short_fraction(Decimal(str(text).strip()))
    except (InvalidOperation, ValueError, OverflowError):
        raise PolicyError(f"{subject}: {text!r} is not a number") from None


def short_fraction(number: Decimal) -> Fraction:
    """Return a decimal number as a fraction, unless its exponent would fill the memory with digits."""
    if number.is_finite() and abs(number.adjusted()) > _LONGEST:
        raise ValueError("a number with too many digits")
    return Fraction(number)
