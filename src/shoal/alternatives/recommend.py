"""The cost of requirements before choosing them: a frontier around a policy, and a recommendation for a risk.

The choice of k starts from the tolerable risk: the smallest k whose 1/k does not exceed it. Among the solved releases
that reach this k and satisfy the rest of the policy, the one with the smallest loss is recommended. It is a
recommendation, not a rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from shoal.alternatives.dominance import beaten
from shoal.alternatives.frontier import Frontier, Point, Start, grid_of, solve
from shoal.engines.data import Data
from shoal.errors import PolicyError
from shoal.policy import Policy, PolicySource, policy_of
from shoal.search.problem import Progress, silent
from shoal.text.showing import Shown, represent

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
    """The k that a tolerable risk requires, and the release that reaches it with the smallest loss."""

    sensitivity: Sensitivity | None
    tolerable: float
    k: int  # the least whose 1/k is tolerable
    point: int | None  # its place among the points; None where none is safe enough
    sentence: str


@dataclass(frozen=True)
class Exploration(Shown):
    """The points, which of them is the policy's own, and the recommendations."""

    frontier: Frontier
    own: int | None  # the policy as it stands, if it was among those solved for
    recommendations: tuple[Recommendation, ...]

    @property
    def chosen(self) -> int | None:
        """The point that a plot marks: the recommendation if there is only one, else the policy's own."""
        return self.recommendations[0].point if len(self.recommendations) == 1 else self.own

    def chart(self) -> Any:
        """Draw loss against risk, as a chart that a notebook displays and ``save`` writes as SVG."""
        return represent(self, "chart")

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            **self.frontier.as_dict(),
            "own": self.own,
            "chosen": self.chosen,
            "beaten": [i for i, worse in enumerate(beaten(self.frontier)) if worse],
            "recommendations": [asdict(recommendation) for recommendation in self.recommendations],
        }


def explore(
    data: Data,
    policy: PolicySource,
    *,
    swept: dict[str, Sequence[float]] | None = None,
    sensitivity: str | None = None,
    tolerable: float | None = None,
    progress: Progress = silent,
    each: Callable[[Point], None] | None = None,
) -> Exploration:
    """Solve the policy for other parameters, and recommend one of the solutions.

    No recommendation has a smaller ℓ or a larger t than the policy, nor, unless ``swept`` names it, more suppression.

    Parameters
    ----------
    data
        A path, a pandas, polars or pyarrow frame, or an Ibis table, whose rows stay in place.
    policy
        A ``Policy``, the path of a TOML file, or a dict.
    swept
        For each parameter to vary, its values; by default those that the policy has are varied.
    sensitivity
        How sensitive the data are, which decides the tolerable risk; by default one recommendation for each.
    tolerable
        The largest risk that is tolerable.
    progress
        Called with the current task and the share of it that is done.
    each
        Called with every point as soon as it is solved.

    Returns
    -------
    Exploration
        The solved points, and which of them is recommended.

    Raises
    ------
    PolicyError
        If the policy, or an argument, cannot be applied to the table.
    DataError
        If the table cannot be read, or lacks a column.

    Examples
    --------
    >>> import pyarrow as pa, shoal
    >>> people = pa.table({"age": [31, 34, 36, 38], "disease": ["flu", "flu", "hiv", "flu"]})
    >>> policy = {
    ...     "columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [10]}}, "disease": {"role": "sensitive"}},
    ...     "require": [{"model": "k-anonymity", "k": 2}],
    ... }
    >>> found = shoal.explore(people, policy, swept={"k": [2, 4]}, tolerable=0.25)
    >>> found.frontier.points[found.chosen].asked
    {'k': 4}
    """
    policy = policy_of(policy)
    tolerances = _risks(sensitivity, tolerable)
    start = Start.from_data(data, policy)
    policy_values = _policy_values(policy)
    grids = [swept] if swept else _around(policy_values)
    points: list[Point] = []
    for grid in grids:
        frontier = solve(start, policy, grid_of(_typed(grid)), progress, each)
        points += [point for point in frontier if not any(point.asked == other.asked for other in points)]
    whole = Frontier(policy.release.objective, tuple(points))
    rest = _rest(policy, "max_suppression" in (swept or ()))
    return Exploration(whole, asked_for(policy, whole), tuple(_recommended(whole, rest, *risk) for risk in tolerances))


def asked_for(policy: Policy, frontier: Frontier) -> int | None:
    """Return the index of the policy itself among the points; None if it was not solved for."""
    policy_values = _policy_values(policy)
    places = (i for i, point in enumerate(frontier) if all(policy_values.get(n) == v for n, v in point.asked.items()))
    return next(places, None)


def _risks(sensitivity: str | None, tolerable: float | None) -> list[tuple[Sensitivity | None, float]]:
    if sensitivity is not None and tolerable is not None:
        raise PolicyError("explore: specify a tolerable risk or a sensitivity, not both")
    if tolerable is not None:
        if not 0 < tolerable <= 1:
            raise PolicyError("explore: a tolerable risk must be above 0 and at most 1", "0.2 means k = 5")
        return [(None, tolerable)]
    if sensitivity is not None and sensitivity not in get_args(Sensitivity):
        raise PolicyError(f"explore: unknown sensitivity {sensitivity!r}", f"known: {', '.join(LECTURE)}")
    return [(name, 1 / min_class_size) for name, (min_class_size, _) in LECTURE.items() if sensitivity in (None, name)]


def _policy_values(policy: Policy) -> dict[str, float]:
    """Return the parameters of the policy that can be varied, except those its requirements set differently."""
    parameter_values: dict[str, float] = {}
    for name in ("k", "l", "t"):
        values = {float(getattr(model, name)) for model in policy.require if name in type(model).model_fields}
        if len(values) == 1:
            parameter_values[name] = values.pop()
    return {**parameter_values, "max_suppression": policy.release.max_suppression}


def _around(policy_values: dict[str, float]) -> list[dict[str, Sequence[float]]]:
    """Vary k against suppression, then ℓ and t one by one; always include the policy's own values."""
    varied = {name: sorted({*_AROUND[name], value}) for name, value in policy_values.items()}
    fixed: dict[str, Sequence[float]] = {name: [value] for name, value in policy_values.items()}
    first = {name: varied[name] for name in ("k", "max_suppression") if name in policy_values}
    return [fixed | first, *(fixed | {name: varied[name]} for name in ("l", "t") if name in policy_values)]


def _typed(grid: dict[str, Sequence[float]]) -> dict[str, Any]:
    return {name: [int(v) for v in values] if name == "k" else list(values) for name, values in grid.items()}


@dataclass(frozen=True)
class _Rest:
    """The part of the policy that a recommendation must not relax."""

    k: float  # where it is not swept
    l: float
    t: float
    max_suppression: float

    def promised_by(self, point: Point, k: int) -> bool:
        point_parameters = point.asked
        return (
            point_parameters.get("k", self.k) >= k
            and point_parameters.get("l", self.l) >= self.l
            and point_parameters.get("t", self.t) <= self.t
        )

    def allows(self, point: Point) -> bool:
        return point.asked.get("max_suppression", 0.0) <= self.max_suppression


def _rest(policy: Policy, any_suppression: bool) -> _Rest:
    def limits_of(name: str) -> list[float]:
        return [float(getattr(model, name)) for model in policy.require if name in type(model).model_fields]

    max_suppression = math.inf if any_suppression else policy.release.max_suppression
    # Without a required k, judge by the released classes.
    return _Rest(
        max(limits_of("k"), default=math.inf),
        max(limits_of("l"), default=0.0),
        min(limits_of("t"), default=math.inf),
        max_suppression,
    )


def _recommended(frontier: Frontier, rest: _Rest, sensitivity: Sensitivity | None, tolerable: float) -> Recommendation:
    k = math.ceil(1 / tolerable - 1e-9)  # 1/0.1 is a little above 10 in floats
    safe = [
        (point.loss, point.risk, i)
        for i, point in enumerate(frontier)
        # Classes larger than required are an accident of this table: the required k must be as large.
        if point.feasible and rest.promised_by(point, k)
        if point.loss is not None and point.risk is not None and point.risk <= tolerable + 1e-12
    ]
    allowed = [candidate for candidate in safe if rest.allows(frontier.points[candidate[2]])]
    if sensitivity is None:
        start = f"A risk of at most {tolerable:.3g} requires k = {k}"
    else:
        min_usual_k, max_usual_k = LECTURE[sensitivity]
        usual = f"k between {min_usual_k} and {max_usual_k} is usual, a risk of at most 1 in {min_usual_k}"
        start = f"For data of {sensitivity} sensitivity, {usual}"
    if not allowed:
        refusal = "none of these releases is that safe and satisfies the rest of the policy"
        return Recommendation(sensitivity, tolerable, k, None, f"{start}: {refusal}.{_dearer(frontier, safe)}")
    loss, risk, i = min(allowed)
    named = ", ".join(f"{name} = {value:g}" for name, value in frontier.points[i].asked.items())
    lost = f"{frontier.objective} {loss:.4f}, risk 1 in {round(1 / risk)}"
    sentence = f"{start}: of the releases that satisfy the rest of the policy, {named} has the smallest loss ({lost})."
    return Recommendation(sensitivity, tolerable, k, i, sentence + _dearer(frontier, safe, loss))


def _dearer(frontier: Frontier, safe: list[tuple[float, float, int]], than: float = math.inf) -> str:
    """Describe what more suppression than the policy allows would achieve."""
    loss, _, i = min(safe, default=(math.inf, 0.0, 0))
    if loss >= than:
        return ""
    return f" If {frontier.points[i].asked['max_suppression']:.3g} of the records may be suppressed: {loss:.4f}."
