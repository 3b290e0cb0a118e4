"""Dominance: which points of a frontier another point beats."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.alternatives.frontier import Frontier, Point


def beaten(frontier: Frontier) -> tuple[bool, ...]:
    """Return for each point whether another dominates it in loss, risk, ℓ and t."""
    costs = [_costs(point) for point in frontier]
    return tuple(
        mine is not None and any(other is not None and _below(other, mine) for other in costs) for mine in costs
    )


def _costs(point: Point) -> tuple[float, ...] | None:
    if point.loss is None or point.risk is None:
        return None
    return (point.loss, point.risk, -point.asked.get("l", 0), point.asked.get("t", 0))


def _below(other: tuple[float, ...], mine: tuple[float, ...]) -> bool:
    return other != mine and all(a <= b for a, b in zip(other, mine, strict=True))
