"""The rules for one cell: how few persons, how large a part of one contributor, how close a guess may come.

The (n,k) rule and the p % rule: A. Hundepool et al., "Statistical Disclosure Control", Wiley 2012, chapter 4; the
distances that hidden cells need: D. A. Robertson and R. Ethier, "Cell suppression: experience and theory", 2002.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from shoal.errors import PolicyError
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
        if not isinstance(self.min_count, int) or self.min_count < 1:
            raise PolicyError("min_count must be a whole number of at least 1", "10 is a common choice")
        if self.dominance is not None and not (self.dominance[0] >= 1 and 0 < self.dominance[1] <= 100):
            raise PolicyError("dominance is n,k with n of at least 1 and k in percent, such as 2,90")
        if self.p is not None and not 0 < self.p <= 1000:
            raise PolicyError("p must be a percentage above 0, such as 10")
        if not 0 < self.protection <= 1000:
            raise PolicyError("protection must be a percentage above 0, such as 10")
        if not 0 < self.leverage <= 1:
            raise PolicyError("leverage must be a share above 0 and at most 1", "0.5 is a common choice")
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
