"""Privacy budgets: pure ε, (ε, δ), or ρ of zero-concentrated differential privacy.

C. Dwork, A. Roth, "The Algorithmic Foundations of Differential Privacy", 2014: ε and δ of several answers add up.
M. Bun, T. Steinke, "Concentrated Differential Privacy", TCC 2016: so does ρ, and with Gaussian noise many answers are
more exact for it. Budgets are decimals, as they were written: ten answers of 0.1 are exactly one of 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context, Decimal, localcontext
from typing import Any, Literal

from shoal.errors import PolicyError
from shoal.notation.numbers import parse_number
from shoal.results.arguments import whole_argument

DIGITS = 12  # of a share of a budget, rounded down
SMALL_DELTA = Decimal("1e-6")
EXACT = Context(prec=200)  # sums of budgets are never rounded
HINT = (
    'such as {"epsilon": 1}, {"epsilon": 1, "delta": 1e-8} or {"rho": 0.5}; on the command line, epsilon=1,delta=1e-8'
)

LossKind = Literal["epsilon", "rho"]


class BudgetError(PolicyError):
    """The privacy budget is invalid, or spent; nothing was answered.

    >>> import pyarrow as pa, shoal
    >>> try:
    ...     shoal.query(pa.table({"age": [31, 34]}), budget="epsilon=0", count=True)
    ... except shoal.BudgetError as error:
    ...     print(error.message)
    epsilon must be greater than 0 and at most 10,000
    """


@dataclass(frozen=True)
class Budget:
    """A privacy loss that may be spent, or was: ``epsilon`` or ``rho``, and ``delta`` if keys are unknown.

    >>> Budget.of("epsilon=0.5,delta=1e-8")
    Budget(loss='epsilon', amount=Decimal('0.5'), delta=Decimal('1E-8'))
    """

    loss: LossKind
    amount: Decimal
    delta: Decimal = Decimal(0)

    @classmethod
    def of(cls, spec: Budget | Mapping[str, Any] | str) -> Budget:
        """Read a budget: a mapping, or a text such as ``epsilon=1,delta=1e-8``."""
        if isinstance(spec, Budget):
            return spec
        if isinstance(spec, str):
            pairs = [part.partition("=") for part in spec.split(",")]
            if len({name.strip() for name, _, _ in pairs}) < len(pairs):
                raise BudgetError("the budget names a part twice", HINT)
            spec = {name.strip(): value for name, _, value in pairs}
        if not isinstance(spec, Mapping):
            raise BudgetError("the budget has no name: is it epsilon or rho?", HINT)
        if unknown := sorted(map(repr, set(spec) - {"epsilon", "rho", "delta"})):
            raise BudgetError(f"the budget has no part {', '.join(unknown)}", HINT)
        if ("epsilon" in spec) == ("rho" in spec):
            raise BudgetError("the budget must be either epsilon or rho", HINT)
        loss: LossKind = "epsilon" if "epsilon" in spec else "rho"
        amount, delta = _decimal(loss, spec[loss]), _decimal("delta", spec.get("delta", 0))
        if not 0 < amount <= 10_000:
            raise BudgetError(f"{loss} must be greater than 0 and at most 10,000", HINT)
        if not 0 <= delta < 1:
            raise BudgetError("delta must be at least 0 and less than 1", HINT)
        return cls(loss, amount, delta)

    def __str__(self) -> str:
        main = f"{'ε' if self.loss == 'epsilon' else 'ρ'} = {_plain(self.amount)}"
        return f"{main}, δ = {_plain(self.delta)}" if self.delta else main

    def __add__(self, other: Budget) -> Budget:
        self.require_same(other)
        return Budget(self.loss, EXACT.add(self.amount, other.amount), EXACT.add(self.delta, other.delta))

    def __sub__(self, other: Budget) -> Budget:
        self.require_same(other)
        return Budget(self.loss, EXACT.subtract(self.amount, other.amount), EXACT.subtract(self.delta, other.delta))

    def covers(self, other: Budget) -> bool:
        """Return whether the other budget is no greater in any part."""
        self.require_same(other)
        return other.amount <= self.amount and other.delta <= self.delta

    def require_same(self, other: Budget) -> None:
        """Raise an error if one is an ε and the other a ρ: they do not add up."""
        if self.loss != other.loss:
            raise BudgetError(
                f"a budget in {other.loss} cannot be taken from one in {self.loss}", "use the same one for all queries"
            )

    def require_small_delta(self, people: int | None) -> None:
        """Refuse a δ that would allow to publish a few records as they are.

        The number of people is stated by the user: read from the data, the refusal would reveal it.
        """
        if people is not None:
            people = whole_argument(
                "people", people, 1, 10**12, "the public, approximate number of people in the table"
            )
        limit = SMALL_DELTA if people is None else 1 / Decimal(people)
        if self.delta >= limit and (people is not None or self.delta > limit):
            raise BudgetError(
                f"delta = {_plain(self.delta)} is too large: it must be below 1 / (number of people)",
                f"choose at most {_plain(SMALL_DELTA)}, or state how many people there are (people, taken as public)",
                option="--people",
            )

    def shares(self, weights: Sequence[int]) -> list[Decimal]:
        """Split ``amount`` in proportion to the weights, rounded down so that the parts never exceed it."""
        with localcontext(EXACT):
            shares = []
            for weight in weights:
                part = self.amount * weight / sum(weights)
                shares.append(part.quantize(Decimal(1).scaleb(part.adjusted() - DIGITS), ROUND_DOWN))
            return shares

    def as_dict(self) -> dict[str, str]:
        """Return the parts as exact decimal texts."""
        return {self.loss: _plain(self.amount)} | ({"delta": _plain(self.delta)} if self.delta else {})


def _decimal(part: str, number: object) -> Decimal:
    """Read a number as it is written: a float is the shortest decimal that gives it."""
    if isinstance(number, int | float | str | Decimal) and not isinstance(number, bool):
        value = parse_number(str(number))
        if value is not None and len(value.as_tuple().digits) <= 30 and abs(value.adjusted()) <= 60:
            return value
    raise BudgetError(f"{part} must be a number", HINT)


def _plain(value: Decimal) -> str:
    short = EXACT.normalize(value)
    return f"{short:f}" if -6 < short.adjusted() < 15 or not short else f"{short:e}"
