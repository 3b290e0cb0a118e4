"""Problem: a table, what must hold, what may be suppressed, what is to be least. Every search gets one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InfeasibleError
from shoal.models import PrivacyModel
from shoal.models.size import KAnonymity, PSensitive
from shoal.recoding import Recoding
from shoal.search.lattice import Lattice, Node
from shoal.search.loss import LOSSES, Loss
from shoal.search.rollup import NodeTable, Rollup
from shoal.table.frequency import FrequencyTable, among
from shoal.table.wildcard import neighbourhoods

Progress = Callable[[str, float], None]  # what is being done, and how much of it is (0 … 1)


def silent(_what: str, _share: float) -> None:
    """Progress for nobody."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What one look at a node tells."""

    table: NodeTable
    failing: NDArray[np.bool_]  # (classes)  classes that must be suppressed
    lost: NDArray[np.int64]  # (classes)  records of the class that are suppressed on every lower node, at the least
    n_suppressed: int  # records in failing classes
    n_lost: int  # Σ lost
    feasible: bool

    @property
    def node(self) -> Node:
        """Where."""
        return self.table.node


class Problem:
    """A search takes one and answers with a Recoding."""

    def __init__(
        self,
        table: FrequencyTable,
        models: tuple[PrivacyModel, ...],
        *,
        limit: int = 0,
        objective: str = "loss",
        wildcard: bool = False,
        keep_suppressed: bool = False,
        progress: Progress = silent,
    ) -> None:
        self.table = table
        self.models = models
        self.limit = limit
        self.wildcard = wildcard
        self.keep_suppressed = keep_suppressed
        self.progress = progress
        self.lattice = Lattice(tuple(h.height for h in table.hierarchies))
        self.rollup = Rollup(table)
        self.objective: Loss = LOSSES[objective](self)
        self.n_evaluated = 0

    @cached_property
    def absorbing(self) -> tuple[PrivacyModel, ...]:
        """The models under which a record that fails at a node fails at every node below."""
        return tuple(m for m in self.models if m.merging == "absorbing")

    @cached_property
    def convex(self) -> tuple[PrivacyModel, ...]:
        """The models of which only unions of passing classes are known to pass."""
        return tuple(m for m in self.models if m.merging == "convex")

    @cached_property
    def monotone(self) -> bool:
        """Whether a node with too many failing records has none below it that has fewer."""
        if not self.convex:
            return True
        # Convex models: the union of passing classes passes, so where nothing may be suppressed a failing node
        # has no passing node below. With wildcards classes overlap, and a union is no longer a sum.
        return self.limit == 0 and not self.wildcard

    @cached_property
    def least_class_size(self) -> int:
        """No class that is kept has fewer records."""
        if self.wildcard:
            return 1
        return max([m.k for m in self.models if isinstance(m, KAnonymity | PSensitive)], default=1)

    def evaluate(self, node: Node) -> Evaluation:
        """Group the records at ``node`` and judge the classes."""
        self.n_evaluated += 1
        table = self.rollup.at(node)
        if self.wildcard:
            return self.judged(table, *self._judged_with_wildcards(table))
        failing = self._failing(table, self.absorbing)
        lost = np.where(failing, table.counts, 0)
        if self.convex:
            if self.limit:
                lost = np.maximum(lost, self._cannot_stay(table))
            failing |= self._failing(table, self.convex)
        return self.judged(table, failing, lost)

    def judged(self, table: NodeTable, failing: NDArray[np.bool_], lost: NDArray[np.int64]) -> Evaluation:
        """What it means to suppress the ``failing`` classes of a node."""
        n_lost = int(lost.sum())
        n_suppressed = int(table.counts[failing].sum())
        feasible = n_suppressed <= self.limit and n_suppressed < self.table.n_records
        if feasible and n_suppressed and self.keep_suppressed:
            feasible = self._holds_together(table, failing)
        return Evaluation(table, failing, lost, n_suppressed, n_lost, feasible)

    def rules_out_below(self, seen: Evaluation) -> bool:
        """Whether this look proves that no node below is feasible (nor this one)."""
        if seen.n_lost > self.limit or seen.n_lost == self.table.n_records:
            return True
        return self.monotone and seen.n_suppressed > self.limit

    def _cannot_stay(self, table: NodeTable) -> NDArray[np.int64]:
        """Per class, the records that no lower node can keep under the convex models.

        Whatever a lower node keeps of a class is a union of passing classes, so it passes: as many must go as
        stand between the class and its largest part that could pass. A part below the least size cannot stay at all.
        """
        most = table.counts.astype(np.float64)
        for model in self.convex:
            most = np.minimum(most, model.most_kept(table.frequency))
        stay = np.floor(most + 1e-6).astype(np.int64)  # a count: rounding must not lose a record that may stay
        return table.counts - np.where(stay < self.least_class_size, 0, stay)

    def _failing(self, table: NodeTable, models: tuple[PrivacyModel, ...]) -> NDArray[np.bool_]:
        failing = np.zeros(len(table.counts), np.bool_)
        for model in models:
            if isinstance(model, KAnonymity) and self.table.entities is None:
                failing |= table.counts < model.k  # no histogram is needed, and none is merged
            else:
                failing |= ~model.passes(table.frequency)
        return failing

    def _judged_with_wildcards(self, table: NodeTable) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        failing = _unsupported(self.table, table, self.absorbing, np.zeros(len(table.counts), np.bool_))
        lost = np.where(failing, table.counts, 0)
        return _unsupported(self.table, table, self.models, failing) if self.convex else failing, lost

    def _holds_together(self, table: NodeTable, failing: NDArray[np.bool_]) -> bool:
        """Whether the suppressed records, released as one class of stars, pass as a class."""
        stars = table.frequency.taken(np.flatnonzero(failing))
        one = stars.merged(np.zeros(stars.n_classes, np.int64), 1, stars.codes[:1])
        return all(bool(model.passes(one).all()) for model in self.models)

    def recoding(self, seen: Evaluation, algorithm: str, *, proved: bool) -> Recoding:
        """The search's answer as data."""
        return Recoding(
            self.table.hierarchies,
            seen.node,
            seen.table.codes[seen.failing],
            algorithm=algorithm,
            proved=proved,
            n_evaluated=self.n_evaluated,
            n_nodes=len(self.lattice),
        )

    def chosen(self, recoding: Recoding) -> Evaluation:
        """The evaluation that a recoding stands for."""
        table = self.rollup.at(recoding.node)
        failing = among(table.codes, recoding.suppressed)
        return self.judged(table, failing, np.zeros_like(table.counts))

    def infeasible(self) -> InfeasibleError:
        """Why there is no answer, with what would help."""
        top = self.evaluate(self.lattice.top)
        n = self.table.n_records
        asked = ", ".join(m.asked for m in self.models)
        return InfeasibleError(
            f"no generalization of {', '.join(self.table.columns)} satisfies {asked} "
            f"with at most {self.limit} of {n} records suppressed: "
            f"even with every column fully generalized {top.n_suppressed} of {n} records fail",
            "ask for less, or give the table more records",
        )


def _unsupported(
    ground: FrequencyTable, table: NodeTable, models: tuple[PrivacyModel, ...], failing: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Classes that fail where a null matches anything.

    A record that is suppressed no longer backs the records it matched, so judging repeats until nobody falls.
    """
    nulls = [null_codes(ground, j, level) for j, level in enumerate(table.node)]
    while True:
        left = np.flatnonzero(~failing)
        rest = table.frequency.taken(left)
        near = neighbourhoods(rest, nulls)
        passing = np.ones(rest.n_classes, np.bool_)
        for model in models:
            passing &= model.passes(near)
        if passing.all():
            return failing
        failing[left[~passing]] = True


def null_codes(table: FrequencyTable, j: int, level: int) -> int | None:
    """The code of the null at a level of column ``j``, where the column has one."""
    labels = table.hierarchies[j].labels[level]
    return labels.index(None) if None in labels else None
