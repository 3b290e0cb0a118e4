"""The rules for one cell: how few persons, how large a part of one contributor, how close a guess may come.

The (n,k) rule and the p % rule: A. Hundepool et al., "Statistical Disclosure Control", Wiley 2012, chapter 4; the
distances that hidden cells need: D. A. Robertson and R. Ethier, "Cell suppression: experience and theory", 2002.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from shoal.errors import PolicyError
from shoal.results.arguments import SMALLEST, real_argument, whole_argument
from shoal.tables.frequency import Floats

Zeros = Literal["show", "hide"]
CellRule = Literal["least count", "dominance", "p %", "zero", "full", "quantile", "differencing"]
ModelRule = Literal[CellRule, "degrees of freedom", "category", "leverage", "influence", "exact fit", "collinear"]


@dataclass(frozen=True)
class OutputRules:
    """What a cell must satisfy to be published, and how uncertain a hidden one must stay."""

    min_count: int = 10  # persons
    dominance: tuple[int, float] | None = (2, 90.0)  # n contributors with more than k % of the total are too many
    p: float | None = 10.0  # the second largest contributor must not estimate the largest to within p %
    zeros: Zeros = "show"
    protection: float = 10.0  # percent of a hidden sum that must stay possible on both sides
    leverage: float = 0.5  # the largest share of anybody's values in what a regression says about them

    def __post_init__(self) -> None:
        whole_argument("min_count", self.min_count, 1, 10**9, "10 is a common choice")
        if self.dominance is not None:
            if not isinstance(self.dominance, tuple) or len(self.dominance) != 2:
                raise PolicyError("dominance is n,k with n of at least 1 and k in percent, such as 2,90")
            whole_argument("n of dominance", self.dominance[0], 1, 1000, "dominance is n,k such as 2,90")
            real_argument("k of dominance", self.dominance[1], "a percentage above 0", SMALLEST, 100)
        if self.p is not None:
            real_argument("p", self.p, "a percentage above 0, such as 10", SMALLEST, 1000)
        real_argument("protection", self.protection, "a percentage above 0, such as 10", SMALLEST, 1000)
        real_argument("leverage", self.leverage, "a share above 0 and at most 1, such as 0.5", SMALLEST, 1)
        if self.zeros not in ("show", "hide"):
            raise PolicyError("zeros is 'show' or 'hide'")

    @property
    def n_largest(self) -> int:
        """How many of the largest contributions to a cell the rules look at."""
        return max(2, self.dominance[0] if self.dominance else 0)

    @property
    def closeness(self) -> float:
        """The share of its value to which a contribution must not be estimated."""
        return max(self.p or 0.0, self.protection) / 100

    def count_fails(self, persons: int) -> bool:
        """Return whether there are persons, but too few."""
        return 0 < persons < self.min_count

    def failing(self, largest: Sequence[float] | Floats, total: float) -> dict[CellRule, float]:
        """Return the rules on magnitudes that fail, each with the distance that a hidden total needs.

        >>> OutputRules(p=10, dominance=None).failing([100, 40, 5], 145)  # 145 - 40 is within 10 % of 100
        {'p %': 5.0}
        """
        levels: dict[CellRule, float] = {}
        if total <= 0:
            return levels
        if self.dominance is not None:
            n, k = self.dominance
            part = float(sum(largest[:n]))
            if part > k / 100 * total * (1 + 1e-12):
                levels["dominance"] = part * 100 / k - total
        if self.p is not None and len(largest):
            first, rest = float(largest[0]), total - float(sum(largest[:2]))
            if rest < self.p / 100 * first * (1 - 1e-12):
                levels["p %"] = self.p / 100 * first - max(rest, 0.0)
        return levels

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)
