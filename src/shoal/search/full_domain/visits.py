"""The nodes that a search evaluated, recorded for charts.

A node that satisfies the policy is described as it would be released, with its failing records suppressed; any other as
it stands, with nothing suppressed, because it cannot be released at all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from shoal.search.full_domain.lattice import Node

if TYPE_CHECKING:
    from shoal.search.problem import Evaluation, Problem

MAX_VISITS = 2_000  # nodes recorded: a picture cannot distinguish more


@dataclass(frozen=True)
class Visit:
    """A node that a search evaluated."""

    node: Node
    feasible: bool
    barren: bool  # whether the evaluation proves that neither this node nor any below it is feasible
    suppressed: int  # records that must be suppressed there
    risk: float  # one in the smallest class
    loss: float  # the objective as published


class Visits:
    """A recorder for ``Problem``: the first ``MAX_VISITS`` nodes, each once, and the number of evaluations."""

    def __init__(self) -> None:
        self.of: dict[Node, Visit] = {}
        self.n_evaluated = 0

    def clear(self) -> None:
        """Start again: another search begins, possibly with other hierarchies."""
        self.of, self.n_evaluated = {}, 0

    def add(self, problem: Problem, evaluation: Evaluation) -> None:
        """Count an evaluation, and keep the node if there is room."""
        self.n_evaluated += 1
        if evaluation.node not in self.of and len(self.of) < MAX_VISITS:
            self.of[evaluation.node] = _described(problem, evaluation)

    @property
    def best(self) -> Visit | None:
        """The feasible node with the smallest loss so far."""
        return min((visit for visit in list(self.of.values()) if visit.feasible), key=lambda v: v.loss, default=None)


def _described(problem: Problem, evaluation: Evaluation) -> Visit:
    table, failing = evaluation.table, evaluation.failing
    if not evaluation.feasible:
        failing = np.zeros_like(failing)
    persons = table.counts if problem.table.entities is None else problem.frequency(table).persons
    smallest = int(persons[~failing].min(initial=problem.n_records))
    final_evaluation = replace(
        evaluation, failing=failing, n_suppressed=evaluation.n_suppressed if evaluation.feasible else 0
    )
    loss = float(problem.objective.published_figure(problem.objective.value(final_evaluation)))
    return Visit(
        evaluation.node,
        evaluation.feasible,
        problem.rules_out_below(evaluation),
        evaluation.n_suppressed,
        1 / max(1, smallest),
        loss,
    )
