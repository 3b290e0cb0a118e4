"""What promises cost before one is made: a sweep around a policy, and what the tolerable risk recommends of it.

Whoever chooses k starts from the risk that can be borne: the least k whose 1/k does not exceed it. Among the releases
that were solved for and promise it, the one that loses least is recommended. A recommendation, not a rule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from shoal.engines.local import LocalEngine
from shoal.errors import PolicyError
from shoal.policy import Policy
from shoal.search.base import Progress, silent
from shoal.sweep import Frontier, Point, frontier

Sensitivity = Literal["low", "medium", "high"]
# G. Faggioli, k-anonymity, ℓ-diversity, t-closeness (lecture, University of Padua, 2025/26): k by sensitivity.
LECTURE: dict[Sensitivity, tuple[int, int]] = {"low": (3, 5), "medium": (5, 10), "high": (10, 20)}

_AROUND: dict[str, tuple[float, ...]] = {
    "k": (2, 3, 5, 10, 20),
    "max_suppression": (0.0, 0.02, 0.05),
    "l": (2, 3, 4),
    "t": (0.1, 0.2, 0.3, 0.5),
}


@dataclass(frozen=True)
class Recommendation:
    """What a tolerable risk asks for, and which release keeps it at the least loss."""

    sensitivity: Sensitivity | None
    tolerable: float
    k: int  # the least whose 1/k is tolerable
    point: int | None  # its place among the points; None where none is safe enough
    sentence: str


@dataclass(frozen=True)
class Exploration:
    """The points, which of them the policy asks for, and what is recommended."""

    frontier: Frontier
    own: int | None  # the policy as it stands, if it was among those solved for
    recommendations: tuple[Recommendation, ...]

    @property
    def chosen(self) -> int | None:
        """What a plot marks: the recommendation where one risk was named, else the policy itself."""
        return self.recommendations[0].point if len(self.recommendations) == 1 else self.own

    def chart(self) -> Any:
        """Loss against risk as an Altair chart."""
        from shoal.report.plots import exploration_chart  # Altair takes a second to load

        return exploration_chart(self)

    def _repr_html_(self) -> str:
        from shoal.report.notebook import exploration_html

        return exploration_html(self)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            **self.frontier.as_dict(),
            "own": self.own,
            "chosen": self.chosen,
            "recommendations": [asdict(each) for each in self.recommendations],
        }


def explore(
    data: Any,
    policy: Policy,
    *,
    swept: dict[str, Sequence[float]] | None = None,
    sensitivity: str | None = None,
    tolerable: float | None = None,
    progress: Progress = silent,
) -> Exploration:
    """Solve the policy for other parameters; ``swept`` names them, else those it has are varied.

    A ``tolerable`` risk, or the ``sensitivity`` of the data, decides what is recommended; without either there is a
    recommendation for each sensitivity.
    """
    asked = _risks(sensitivity, tolerable)
    engine = data if isinstance(data, LocalEngine) else LocalEngine.of(data)
    own = _own(policy)
    grids = [swept] if swept else _around(own)
    points: list[Point] = []
    for grid in grids:
        found = frontier(engine, policy, **_typed(grid), progress=progress)
        points += [point for point in found if not any(point.asked == other.asked for other in points)]
    whole = Frontier(policy.release.objective, tuple(points))
    return Exploration(whole, asked_for(policy, whole), tuple(_recommended(whole, *risk) for risk in asked))


def asked_for(policy: Policy, found: Frontier) -> int | None:
    """The place of the policy itself among the points; None where it was not solved for."""
    own = _own(policy)
    places = (i for i, point in enumerate(found) if all(own.get(n) == v for n, v in point.asked.items()))
    return next(places, None)


def _risks(sensitivity: str | None, tolerable: float | None) -> list[tuple[Sensitivity | None, float]]:
    if sensitivity is not None and tolerable is not None:
        raise PolicyError("explore: name a tolerable risk or a sensitivity, not both")
    if tolerable is not None:
        if not 0 < tolerable <= 1:
            raise PolicyError("explore: a tolerable risk lies above 0 and is at most 1", "0.2 stands for k = 5")
        return [(None, tolerable)]
    if sensitivity is not None and sensitivity not in get_args(Sensitivity):
        raise PolicyError(f"explore: no such sensitivity {sensitivity!r}", f"known: {', '.join(LECTURE)}")
    return [(name, 1 / least) for name, (least, _) in LECTURE.items() if sensitivity in (None, name)]


def _own(policy: Policy) -> dict[str, float]:
    """The parameters that can be swept, as the policy has them; not those that its requirements set differently."""
    found: dict[str, float] = {}
    for name in ("k", "l", "t"):
        values = {float(getattr(model, name)) for model in policy.require if name in type(model).model_fields}
        if len(values) == 1:
            found[name] = values.pop()
    return {**found, "max_suppression": policy.release.max_suppression}


def _around(own: dict[str, float]) -> list[dict[str, Sequence[float]]]:
    """k against suppression, then ℓ and t one by one; the policy's own values are always among them."""
    each = {name: sorted({*_AROUND[name], value}) for name, value in own.items()}
    fixed: dict[str, Sequence[float]] = {name: [value] for name, value in own.items()}
    first = {name: each[name] for name in ("k", "max_suppression") if name in own}
    return [fixed | first, *(fixed | {name: each[name]} for name in ("l", "t") if name in own)]


def _typed(grid: dict[str, Sequence[float]]) -> dict[str, Any]:
    return {name: [int(v) for v in values] if name == "k" else list(values) for name, values in grid.items()}


def _recommended(found: Frontier, sensitivity: Sensitivity | None, tolerable: float) -> Recommendation:
    k = math.ceil(1 / tolerable - 1e-9)  # 1/0.1 is a little above 10 in floats
    safe = [
        (point.loss, point.risk, i)
        for i, point in enumerate(found)
        # Larger classes than were asked for are an accident of this table: the promise must be as large.
        if point.feasible and point.asked.get("k", k) >= k
        if point.loss is not None and point.risk is not None and point.risk <= tolerable + 1e-12
    ]
    if sensitivity is None:
        start = f"A risk of at most {tolerable:.3g} asks for k = {k}"
    else:
        least, most = LECTURE[sensitivity]
        usual = f"k from {least} to {most} is usual, a risk of at most 1 in {least}"
        start = f"For data of {sensitivity} sensitivity {usual}"
    if not safe:
        return Recommendation(sensitivity, tolerable, k, None, f"{start}: none of these releases is that safe.")
    loss, risk, i = min(safe)
    named = ", ".join(f"{name} = {value:g}" for name, value in found.points[i].asked.items())
    sentence = f"{start}: of these releases {named} loses the least ({found.objective} {loss:.4f}, risk {risk:.3g})."
    return Recommendation(sensitivity, tolerable, k, i, sentence)
