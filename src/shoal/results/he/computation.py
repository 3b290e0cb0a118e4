"""What is computed on ciphertexts, and what follows for every slot: its bound, its probes, its error.

Rows are packed by column: slot i of a ciphertext is row i. Sums add ciphertexts, so that slot i of the result is the
sum over the rows that share this slot; whoever decrypts adds up the slots. This needs no rotation of slots.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any

from shoal.errors import PolicyError
from shoal.results.he.parameters import LARGEST, PROBES, SCALE_BITS, EncryptionParameters
from shoal.results.smc.local import exact_fraction

MAX_DECIMALS = 15

# A sign, then a number with or without a column, or a column alone.
_NUMBER = r"[0-9]{1,40}(?:[.][0-9]{0,40})?(?:[eE][+-]?[0-9]{1,2})?"
_TERM = re.compile(rf"\s*([+-]?)\s*(?:({_NUMBER})\s*(?:\*\s*([^-+*]+)|(?=[-+]|$))|([^-+*0-9.\s][^-+*]*))")


@dataclass(frozen=True)
class NumberColumn:
    """An encrypted column: its bounds and decimals, which are public, and the probes that follow from them."""

    name: str
    low: Fraction
    high: Fraction
    decimals: int = 0

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> NumberColumn:
        """Return the column in the header of a file."""
        decimals = int(fields["decimals"])
        if not 0 <= decimals <= MAX_DECIMALS:
            raise ValueError
        return cls(str(fields["name"]), fraction_of_text(fields["low"]), fraction_of_text(fields["high"]), decimals)

    @property
    def scale(self) -> int:
        """How many units are 1."""
        return int(10**self.decimals)

    @property
    def magnitude(self) -> int:
        """The largest absolute value within the bounds, in units."""
        return max(1, math.ceil(max(abs(self.low), abs(self.high)) * self.scale))

    @property
    def probes(self) -> list[int]:
        """Known values for the last slots of every ciphertext, in units: up to the magnitude, of both signs."""
        m = self.magnitude
        return [m, -m, m // 2, -(m // 3), 1, -1, 0, m - m // 5]

    def as_dict(self) -> dict[str, Any]:
        """Return the column as JSON represents it."""
        return {"name": self.name, "low": str(self.low), "high": str(self.high), "decimals": self.decimals}


@dataclass(frozen=True)
class LinearScore:
    """A weighted sum of columns and an intercept, row by row: a score, or the predictions of a linear model."""

    weights: Mapping[str, Any]
    intercept: Any = 0

    @classmethod
    def parsed(cls, text: str) -> LinearScore:
        """Read a formula.

        >>> LinearScore.parsed("0.5*age + 2*stay - 3").as_dict()
        {'weights': {'age': '1/2', 'stay': '2'}, 'intercept': '-3'}
        """
        weights: dict[str, Fraction] = {}
        intercept, start = Fraction(0), 0
        while start < len(text):
            term = _TERM.match(text, start)
            if term is None or (start and not term[1]):
                hint = "write it as 0.5*age+2*stay-3; in Python, columns may have any name"
                raise PolicyError("the formula of a score cannot be read", hint)
            number = exact_fraction(term[2] or "1") * (-1 if term[1] == "-" else 1)
            if column := (term[3] or term[4] or "").strip():
                weights[column] = weights.get(column, Fraction(0)) + number
            else:
                intercept += number
            start = term.end()
        return cls(weights, intercept)

    @cached_property
    def exact(self) -> tuple[dict[str, Fraction], Fraction]:
        """The numbers as they are written: 0.1 is one tenth."""
        try:
            weights = {str(name): _written(weight) for name, weight in self.weights.items()}
            return weights, _written(self.intercept)
        except (ValueError, ArithmeticError):
            raise PolicyError("the weights of a score must be numbers") from None

    def multiples(self, columns: Mapping[str, NumberColumn]) -> tuple[dict[str, int], int, int]:
        """Return whole multiples of the units of the columns, the whole intercept, and the denominator of all."""
        weights, intercept = self.exact
        parts = {name: weight / columns[name].scale for name, weight in weights.items()}
        denominator = math.lcm(intercept.denominator, *(part.denominator for part in parts.values()))
        whole = {name: int(part * denominator) for name, part in parts.items()}
        return whole, int(intercept * denominator), denominator

    def as_dict(self) -> dict[str, Any]:
        """Return the score as JSON represents it."""
        weights, intercept = self.exact
        return {"weights": {name: str(weight) for name, weight in weights.items()}, "intercept": str(intercept)}


@dataclass(frozen=True)
class Item:
    """One thing that is computed: the total of a column or of a product of two, or a score for every row."""

    columns: tuple[str, ...]
    score: LinearScore | None = None
    label: str = ""


@dataclass(frozen=True)
class Computation:
    """What is asked of the encrypted columns.

    >>> from shoal import he
    >>> he.Computation(mean=("age",), regression=(("cost", "age"),)).opened
    ('sum of age', 'sum of cost', 'sum of cost·age', 'sum of age·age')
    """

    sum: tuple[str, ...] = ()
    mean: tuple[str, ...] = ()
    score: Mapping[str, LinearScore] = field(default_factory=dict)
    regression: tuple[tuple[str, ...], ...] = ()  # target first

    def __post_init__(self) -> None:
        if not (self.sum or self.mean or self.score or self.regression):
            raise PolicyError("nothing is asked for", "sum, mean, score or regression")
        for name, score in self.score.items():
            if not score.weights or not all(score.exact[0].values()):
                raise PolicyError(f"score {name!r} needs columns with weights that are not 0")
        for names in self.regression:
            if len(names) < 2 or len({*names}) < len(names):
                raise PolicyError("a regression needs a target and other columns, each once", "such as cost=age,stay")

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> Computation:
        """Return the computation in the header of a file."""
        return cls(
            tuple(map(str, fields["sum"])),
            tuple(map(str, fields["mean"])),
            {
                str(name): LinearScore(
                    {str(column): fraction_of_text(weight) for column, weight in score["weights"].items()},
                    fraction_of_text(score["intercept"]),
                )
                for name, score in fields["score"].items()
            },
            tuple(tuple(map(str, names)) for names in fields["regression"]),
        )

    @cached_property
    def totals(self) -> tuple[Item, ...]:
        """The totals that are needed, each once."""
        single = dict.fromkeys([*self.sum, *self.mean, *(name for names in self.regression for name in names)])
        # Without the square of the target, which coefficients do not need.
        pairs = [pair for names in self.regression for pair in [*combinations_with_replacement(names, 2)][1:]]
        different: dict[tuple[str, ...], Item] = {}
        for pair in pairs:
            different.setdefault(tuple(sorted(pair)), Item(pair))
        return (*(Item((name,)) for name in single), *different.values())

    @cached_property
    def scores(self) -> tuple[Item, ...]:
        """The scores that are asked for."""
        return tuple(Item(tuple(score.exact[0]), score, name) for name, score in self.score.items())

    @property
    def opened(self) -> tuple[str, ...]:
        """What the holder of the secret key learns."""
        totals = [f"sum of {'·'.join(item.columns)}" for item in self.totals]
        return (*totals, *(f"{item.label} of every row" for item in self.scores))

    @property
    def needed(self) -> list[str]:
        """The columns that are used."""
        return list(dict.fromkeys(name for item in (*self.totals, *self.scores) for name in item.columns))

    def as_dict(self) -> dict[str, Any]:
        """Return the computation as JSON represents it."""
        return {
            "sum": list(self.sum),
            "mean": list(self.mean),
            "score": {name: score.as_dict() for name, score in self.score.items()},
            "regression": [list(names) for names in self.regression],
        }


@dataclass(frozen=True)
class Packing:
    """The columns and rows of the encrypted tables; what must come out of a computation on them."""

    parameters: EncryptionParameters
    columns: Mapping[str, NumberColumn]
    n_rows: tuple[int, ...]  # of each table

    @property
    def n_chunks(self) -> int:
        """How many ciphertexts of a column are added up."""
        return sum(map(self.parameters.n_chunks, self.n_rows))

    def require_columns(self, names: Sequence[str]) -> None:
        """Raise an error that lists the columns that are not encrypted."""
        if absent := [name for name in names if name not in self.columns]:
            raise PolicyError(
                f"column {', '.join(map(repr, absent))} is not in the encrypted table",
                f"its columns: {', '.join(self.columns)}",
            )

    def require_room(self, item: Item, *, masked: bool) -> None:
        """Raise an error if a result could be too large to be decrypted correctly."""
        if item.score is not None:
            weights, intercept, _ = item.score.multiples(self.columns)
            largest = sum(abs(w) * self.columns[name].magnitude for name, w in weights.items()) + abs(intercept)
            amount, hint = f"score {item.label!r}", "round the weights"
        else:
            times = sum(self.n_rows) if masked else self.n_chunks
            largest = times * math.prod(self.columns[name].magnitude for name in item.columns)
            amount, hint = f"the sum of {'·'.join(item.columns)}", "encrypt with narrower bounds or fewer decimals"
            if masked:
                hint += ", or leave the mask out if the owner of the secret key may see the rows"
        option = "--no-mask" if masked and item.score is None else None
        if self.parameters.exact and 2 * largest >= self.parameters.plain_modulus:
            digits = len(str(self.parameters.plain_modulus // 2)) - 1
            raise PolicyError(f"{amount} could have more than {digits} digits, and overflow", hint, option=option)
        if not self.parameters.exact and self.slot_size(item) >= LARGEST:
            raise PolicyError(f"{amount} could be too large for this scheme", "encrypt with narrower bounds")
        smallest = min(map(abs, item.score.exact[0].values())) if item.score is not None else Fraction(1)
        if not self.parameters.exact and smallest < Fraction(1, 2**20):
            raise PolicyError(f"{amount} has a weight that is too small for this scheme", "multiply all weights alike")

    # ── CKKS ─────────────────────────────────────────────────────────────────────────────────────────────────

    def slot_size(self, item: Item) -> float:
        """Return the largest absolute value in a slot of the result, in numbers of the table."""
        if item.score is not None:
            weights, intercept = item.score.exact
            return float(sum(abs(w) * self._size(name) for name, w in weights.items()) + abs(intercept))
        return float(self.n_chunks * math.prod(self._size(name) for name in item.columns))

    def slot_error(self, item: Item) -> float:
        """Return a bound on the error of a slot of the result."""
        fresh = {name: self.parameters.fresh_error(float(self._size(name))) for name in item.columns}
        rounding = self.slot_size(item) * 2.0**-44  # decoding in floating-point numbers
        if item.score is not None:
            weights, intercept = item.score.exact
            encoded = 2.0 ** -(SCALE_BITS + 1)  # a weight is rounded to a multiple of 2**-40
            error = sum(
                abs(float(w)) * fresh[name] + (float(self._size(name)) + fresh[name]) * encoded
                for name, w in weights.items()
            )
            unit_error = self.parameters.fresh_error(1.0)  # the intercept is a multiple of an encrypted 1
            return error + abs(float(intercept)) * unit_error + (1 + unit_error) * encoded + rounding
        sizes = [float(self._size(name)) for name in item.columns]
        errors = [fresh[name] for name in item.columns]
        if len(sizes) == 1:
            return self.n_chunks * errors[0] + rounding
        return self.n_chunks * (sizes[0] * errors[1] + sizes[1] * errors[0] + errors[0] * errors[1]) + rounding

    def total_error(self, item: Item) -> float:
        """Return a bound on the error of a total: that of every slot that has rows."""
        return self.slot_error(item) * min(self.parameters.rows, max(1, *self.n_rows))

    def _size(self, name: str) -> Fraction:
        return Fraction(self.columns[name].magnitude, self.columns[name].scale)

    # ── probes ───────────────────────────────────────────────────────────────────────────────────────────────

    def probes(self, item: Item) -> list[Fraction]:
        """Return what the last slots of a result must contain: in units for BFV, in numbers for CKKS."""
        parts = {name: self.columns[name].probes for name in item.columns}
        exact = self.parameters.exact
        if item.score is not None:
            weights, intercept, denominator = item.score.multiples(self.columns)
            units = [sum(w * parts[name][i] for name, w in weights.items()) + intercept for i in range(PROBES)]
            return [Fraction(n, 1 if exact else denominator) for n in units]
        scale = 1 if exact else math.prod(self.columns[name].scale for name in item.columns)
        units = [self.n_chunks * math.prod(parts[name][i] for name in item.columns) for i in range(PROBES)]
        return [Fraction(n, scale) for n in units]


def _written(value: Any) -> Fraction:
    return value if isinstance(value, Fraction) else exact_fraction(value)


def fraction_of_text(text: Any) -> Fraction:
    """Return a fraction in the header of a file; an exponent, which could make it gigantic, is not accepted."""
    if not isinstance(text, str) or not re.fullmatch(r"-?[0-9]{1,60}(/[0-9]{1,60})?", text):
        raise ValueError("not a fraction")
    return Fraction(text)
