"""Problem: a table, its requirements, the suppression limit and the objective. Every search takes one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.grouping import group
from shoal.compiled.nodes import lose_classes, too_small
from shoal.errors import InfeasibleError, OutOfTimeError
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.models import PrivacyModel, ReleaseModel
from shoal.models.size import KAnonymity, PSensitive
from shoal.recoding import FullDomain
from shoal.search.full_domain.lattice import Lattice, Node
from shoal.search.full_domain.rollup import NodeTable, Rollup
from shoal.search.losses.definitions import LOSSES, WITH_LABEL
from shoal.search.losses.lattice import CellLoss, ClassLoss
from shoal.tables.frequency import Counts, Floats, FrequencyTable, Histogram, RowNumbers, packed
from shoal.tables.wildcard import neighbourhoods

if TYPE_CHECKING:
    from shoal.policy import Policy
    from shoal.search.full_domain.visits import Visits

Progress = Callable[[str, float], None]  # the current task, and the share of it that is done (0 … 1)


def silent(_what: str, _share: float) -> None:
    """Ignore progress: the default."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The result of evaluating one node."""

    table: NodeTable
    failing: NDArray[np.bool_]  # (classes)  classes that must be suppressed
    lost: Counts  # (classes)  lower bound on the records of the class that are suppressed on every lower node
    n_suppressed: int  # records in failing classes
    n_lost: int  # lower bound on all of them: Σ lost, or more if the release as a whole is limited
    all_lost: bool  # whether all failing records are lost
    feasible: bool

    @property
    def node(self) -> Node:
        """The node that was evaluated."""
        return self.table.node


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What a search is given besides the models: the suppression limit, the objective and its options."""

    limit: int = 0  # records that may be suppressed
    objective: str = "loss"
    label: str | None = None  # the sensitive column that a classifier predicts
    wildcard: bool = False  # a null matches anything
    matches: str = "original"  # what a record with hidden cells must match: records as they were, or as released
    keep_suppressed: bool = False  # suppressed records stay in the release as one class of stars
    weights: Sequence[float] | None = None  # weights of the columns in losses of cells
    cells: Sequence[str] | None = None  # how cells on mixed levels are written
    after: Sequence[tuple[int, int]] = ()  # (a, b): column b is generalized only if a is at its highest level
    dimension: str = "range"  # which column is split first, if it is chosen class by class
    preference: str = "least-absolute"  # the preference among k-minimal generalizations
    seed: int = 0  # for randomized searches
    time_budget: float | None = None  # seconds

    @classmethod
    def from_policy(cls, policy: Policy, n_records: int) -> Terms:
        """Return the terms of a policy for a table with ``n_records`` records."""
        release = policy.release
        column_of = {name: j for j, name in enumerate(policy.quasi)}
        columns = [policy.columns[name] for name in policy.quasi]
        return cls(
            limit=policy.allowance(n_records),
            objective=release.objective,
            label=release.label,
            wildcard=release.nulls == "wildcard",
            matches=release.matches,
            keep_suppressed=release.suppressed == "keep",
            weights=[column.weight for column in columns],
            cells=[column.cells for column in columns],
            after=[(column_of[column.after], j) for j, column in enumerate(columns) if column.after],
            dimension=release.dimension,
            preference=release.preference,
            seed=release.seed,
            time_budget=release.time_budget,
        )


NO_TERMS = Terms()


class Problem:
    """The input of a search, which returns a Recoding."""

    def __init__(
        self,
        table: FrequencyTable,
        models: tuple[PrivacyModel, ...],
        terms: Terms = NO_TERMS,
        *,
        population: FrequencyTable | None = None,
        rollup: Rollup | None = None,
        hints: Sequence[Node] = (),
        progress: Progress = silent,
        visits: Visits | None = None,
    ) -> None:
        self.table = table
        self.asked = models
        self.models = tuple(component for model in models for component in model.components())
        self.terms = terms
        self.limit = terms.limit
        self.label = terms.label
        self.wildcard = terms.wildcard
        self.keep_suppressed = terms.keep_suppressed
        self.weights = tuple(terms.weights or (1.0,) * len(table.columns))
        self.cells = tuple(terms.cells or ("hierarchy",) * len(table.columns))
        self.after = tuple(terms.after)
        self.time_budget = terms.time_budget
        self.hints = tuple(hints)  # nodes worth evaluating: solutions of similar problems
        self.progress = progress
        self.visits = visits  # records the evaluated nodes, for charts
        self.lattice = Lattice(tuple(h.height for h in table.hierarchies))
        self.rollup = rollup or Rollup(table)
        self.people = None if population is None else Rollup(population)
        self.objective_name = terms.objective
        self.objective: CellLoss | ClassLoss = (LOSSES | WITH_LABEL)[terms.objective](self)
        self.n_evaluated = 0
        self._deadline = None if terms.time_budget is None else time.monotonic() + terms.time_budget

    @classmethod
    def of(
        cls,
        table: FrequencyTable,
        policy: Policy,
        *,
        population: FrequencyTable | None = None,
        rollup: Rollup | None = None,
        hints: Sequence[Node] = (),
        progress: Progress = silent,
        visits: Visits | None = None,
    ) -> Problem:
        """Build the problem that a policy poses."""
        return cls(
            table,
            policy.models,
            Terms.from_policy(policy, table.n_records),
            population=population,
            rollup=rollup,
            hints=hints,
            progress=progress,
            visits=visits,
        )

    @property
    def sees_labels(self) -> bool:
        """Whether the objective uses the column to predict."""
        return self.objective_name in WITH_LABEL

    def labels(self, classes: FrequencyTable) -> Histogram | None:
        """Return the column to predict in these classes if the objective uses it."""
        return classes.sensitive[self.label] if self.label is not None and self.sees_labels else None

    @property
    def out_of_time(self) -> bool:
        """Whether the time budget is used up."""
        return self.seconds_left < 0

    @property
    def seconds_left(self) -> float:
        """The seconds left of the time budget; infinite without one."""
        return math.inf if self._deadline is None else self._deadline - time.monotonic()

    def given(self, seconds: float | None) -> Problem:
        """Return the same problem with ``seconds`` from now on, or without a time limit."""
        limited = copy(self)
        limited._deadline = None if seconds is None or math.isinf(seconds) else time.monotonic() + seconds
        return limited

    @cached_property
    def n_records(self) -> int:
        """The number of records in the table."""
        return self.table.n_records

    @cached_property
    def absorbing(self) -> tuple[PrivacyModel, ...]:
        """The models under which a record that fails at a node also fails at every node below."""
        return tuple(m for m in self.models if m.merging == "absorbing")

    @cached_property
    def convex(self) -> tuple[PrivacyModel, ...]:
        """The models for which only unions of passing classes are known to pass."""
        return tuple(m for m in self.models if m.merging == "convex")

    @cached_property
    def of_release(self) -> tuple[ReleaseModel, ...]:
        """The models that limit the release as a whole."""
        return tuple(m for m in self.models if isinstance(m, ReleaseModel))

    @cached_property
    def monotone(self) -> bool:
        """Whether no node below a node with too many failing records has fewer of them."""
        if self.of_release:  # a rule chooses the classes to suppress, and it is not minimal at every node
            return False
        # Convex models: the union of passing classes passes, so if nothing may be suppressed, no node below a failing
        # node passes. With wildcards, classes overlap and a union is no longer a sum.
        if self.limit > 0 or self.wildcard:
            return not self.convex
        return all(model.unions_pass for model in self.convex)

    @cached_property
    def suppresses_least(self) -> bool:
        """Whether suppressing exactly the classes that fail at a node is the cheapest choice there.

        Limits on the release as a whole are satisfied by a fixed rule. If suppressed records stay as a class of stars,
        suppressing more records may let that class pass. If records support each other through wildcards, convex models
        can be satisfied in several ways.
        """
        if self.limit == 0:
            return True
        return not (self.of_release or self.keep_suppressed or (self.cascades and self.convex))

    @property
    def rule(self) -> str:
        """The rule that chooses the suppressed records if there is a choice."""
        if self.of_release:
            return "with the smallest classes suppressed first where the release as a whole exceeds a limit"
        return "with no records suppressed but those that fail"

    @cached_property
    def cascades(self) -> bool:
        """Whether suppressing a record can make other records fail that matched it."""
        return self.wildcard or not all(model.class_by_class for model in self.models)

    @cached_property
    def sizes_decide(self) -> bool:
        """Whether class sizes alone decide, so that nothing else has to be examined."""
        plain = all(isinstance(m, KAnonymity) and not m.columns for m in self.models)
        return plain and self.table.entities is None and not self.wildcard

    @cached_property
    def least_class_size(self) -> int:
        """The smallest possible size of a kept class."""
        if self.wildcard:
            return 1
        sizes = [m.k for m in self.models if isinstance(m, PSensitive) or (isinstance(m, KAnonymity) and not m.columns)]
        return max(sizes, default=1)

    def evaluate(self, node: Node, *, bounded: bool = False) -> Evaluation:
        """Group the records at ``node`` and judge the equivalence classes.

        ``bounded``: stop if the small classes alone have more records than may be suppressed; the evaluation then
        tells of these only.
        """
        evaluation = self.evaluated(node, bounded=bounded and self.visits is None)
        self.count_visit(evaluation)
        return evaluation

    def count_visit(self, evaluation: Evaluation) -> None:
        """Count a node as evaluated."""
        self.n_evaluated += 1
        if self.visits is not None:
            self.visits.add(self, evaluation)

    def branch(self) -> Problem:
        """Return the same problem for one part of the work, while other parts evaluate other nodes (``Rollup``)."""
        copied = copy(self)
        copied.rollup = self.rollup.branch()
        copied.people = None if self.people is None else self.people.branch()
        return copied

    def join(self, branch: Problem) -> None:
        """Keep the tables that a branch has derived."""
        self.rollup.join(branch.rollup)
        if self.people is not None and branch.people is not None:
            self.people.join(branch.people)

    def evaluated(self, node: Node, *, bounded: bool = False) -> Evaluation:
        """Evaluate a node without counting it."""
        table = self.rollup.at(node)
        if self.sizes_decide or bounded:
            failing, lost, n_lost = too_small(table.counts, self.least_class_size)
            if self.sizes_decide or n_lost > self.limit:
                return self._weighed(table, failing, lost, n_lost, n_lost, True)
        if self.cascades or self.of_release or self.people is not None:
            return self._evaluate_release(table)
        return self._evaluate_classes(table)

    def _evaluate_classes(self, table: NodeTable) -> Evaluation:
        """Judge each class by itself; histograms are merged only for classes that are large enough."""
        large, rest = table.large(self.least_class_size)
        stays = np.ones(len(large), np.bool_)  # no lower node is known to lose it
        for model in self.absorbing:
            if not (isinstance(model, KAnonymity) and rest.entities is None):  # whose classes are large enough
                stays &= model.passes(rest)
        passing = stays
        for model in self.convex:
            passing = passing & model.passes(rest)
        torn = (stays > passing).nonzero()[0]  # a lower node may still keep a part of these
        max_kept = self._max_kept(rest, torn) if self.limit else rest.counts[torn].astype(np.float64)
        judged = lose_classes(table.counts, large, stays, passing, max_kept, self.least_class_size)
        failing, lost, n_suppressed, n_lost = judged
        return self._weighed(table, failing, lost, n_suppressed, n_lost, n_suppressed == n_lost)

    def _evaluate_release(self, table: NodeTable) -> Evaluation:
        """Judge classes that depend on each other, on a population, or on limits on the release as a whole."""
        failing = self._failing(table, self.absorbing, np.zeros(len(table.counts), np.bool_))
        lost = np.where(failing, table.counts, 0)
        n_lost = int(lost.sum())
        for model in self.of_release:
            n_lost = max(n_lost, int(lost.sum()) + model.enforced(self._counted_release(table, failing), failing)[1])
        if self.convex:
            if self.limit and not self.wildcard:
                torn = np.flatnonzero(~failing)
                max_kept, stays = self._max_kept(self.frequency(table), torn), np.ones(len(torn), np.bool_)
                lost = lose_classes(table.counts, torn, stays, ~stays, max_kept, self.least_class_size)[1]
                n_lost = max(n_lost, int(lost.sum()))
            failing = self._failing(table, (*self.absorbing, *self.convex), failing)
        if self.of_release:
            failing = self._held_to_limits(table, failing)
        return self.judged(table, failing, lost, n_lost)

    def judged(self, table: NodeTable, failing: NDArray[np.bool_], lost: Counts, n_lost: int) -> Evaluation:
        """Evaluate suppressing the ``failing`` classes of a node."""
        n_suppressed = int(table.counts[failing].sum())
        # Lost records fail, so equal sums mean the same records.
        return self._weighed(table, failing, lost, n_suppressed, n_lost, n_suppressed == int(lost.sum()))

    def _weighed(
        self,
        table: NodeTable,
        failing: NDArray[np.bool_],
        lost: Counts,
        n_suppressed: int,
        n_lost: int,
        all_lost: bool,
    ) -> Evaluation:
        """Return the evaluation of a node whose ``failing`` classes have ``n_suppressed`` records."""
        feasible = n_suppressed <= self.limit and n_suppressed < self.n_records and self.admits(table.node)
        if feasible and self.people is not None:
            feasible = all(m.possible(self.frequency(table), n_suppressed) for m in self.models)
        if feasible and n_suppressed and self.keep_suppressed:
            feasible = self._holds_together(table, failing)
        return Evaluation(table, failing, lost, n_suppressed, n_lost, all_lost, feasible)

    def admits(self, node: Node) -> bool:
        """Return whether the columns are generalized in the required order."""
        return all(node[b] == 0 or node[a] == self.lattice.heights[a] for a, b in self.after)

    def frequency(self, table: NodeTable) -> FrequencyTable:
        """Return the classes of a node with everything that models use."""
        if self.people is None:
            return table.frequency
        outside = self.people.at(table.node)
        class_of, firsts = group(packed(np.concatenate([table.codes, outside.codes])))
        ours, theirs = class_of[: len(table.counts)], class_of[len(table.counts) :]
        people = np.zeros(len(firsts), np.int64)
        people[theirs] = outside.counts
        absent = len(firsts) - len(ours)  # classes are distinct, so the others occur only in the population
        return replace(table.frequency, population=people[ours], absent=absent)

    def rules_out_below(self, evaluation: Evaluation) -> bool:
        """Return whether this evaluation proves that neither this node nor any below it is feasible."""
        if evaluation.n_lost > self.limit or evaluation.n_lost == self.n_records:
            return True
        return self.monotone and evaluation.n_suppressed > self.limit

    def _max_kept(self, table: FrequencyTable, rows: RowNumbers) -> Floats:
        """Return, for each class of ``rows``, the records that a lower node can keep at most under the convex models.

        The records of a class that a lower node keeps are a union of passing classes and therefore pass: all records
        beyond the largest part that could pass must be suppressed.
        """
        bounds = [model.max_passing(table, rows) for model in self.convex]
        return reduce(np.minimum, bounds, table.counts[rows].astype(np.float64))

    def _failing(
        self, table: NodeTable, models: tuple[PrivacyModel, ...], failing: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Return the failing classes, including those already ``failing``."""
        if self.cascades:
            return self._unsupported(table, models, failing)
        failing = failing.copy()
        for model in models:
            if isinstance(model, KAnonymity) and self.table.entities is None:
                failing |= table.counts < model.k  # avoids merging histograms
            else:
                failing |= ~model.passes(self.frequency(table))
        return failing

    def _unsupported(
        self, table: NodeTable, models: tuple[PrivacyModel, ...], failing: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """The same if suppressed records no longer support others: judge repeatedly until no further class fails."""
        failing = failing.copy()
        nulls = self._nulls(table.node)
        while True:
            left = np.flatnonzero(~failing)
            rest = self.frequency(table).selected(left)
            if self.wildcard:
                rest = neighbourhoods(rest, nulls)
            passing = np.ones(len(left), np.bool_)
            for model in models:
                passing &= model.passes(rest)
            if passing.all():
                return failing
            failing[left[~passing]] = True

    def _counted_release(self, table: NodeTable, failing: NDArray[np.bool_]) -> FrequencyTable:
        """Return the classes as limits on the release see them: with wildcards, neighbourhoods of the kept classes."""
        classes = self.frequency(table)
        if not self.wildcard:
            return classes
        left = np.flatnonzero(~failing)
        counts = classes.counts.copy()
        counts[left] = neighbourhoods(classes.selected(left), self._nulls(table.node)).counts
        return replace(classes, counts=counts, own_counts=classes.counts)

    def _nulls(self, node: Node) -> list[int | None]:
        """Return the code of the null in each column at a node."""
        return [null_code(h, level) for h, level in zip(self.table.hierarchies, node, strict=True)]

    def _held_to_limits(self, table: NodeTable, failing: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Suppress the smallest classes, and those that fail as a result, until the limits on the release hold."""
        while True:
            before = failing
            for model in self.of_release:
                failing, _ = model.enforced(self._counted_release(table, failing), failing)
            if self.cascades:
                failing = self._unsupported(table, (*self.absorbing, *self.convex), failing)
            if (failing == before).all():
                return failing

    def released(self, table: NodeTable, failing: NDArray[np.bool_]) -> FrequencyTable:
        """Return the released classes; suppressed records that stay come last, as one class of stars."""
        classes = self.frequency(table)
        kept_classes = np.flatnonzero(~failing)
        if not (self.keep_suppressed and failing.any()):
            return classes.selected(kept_classes)
        class_of = np.where(failing, len(kept_classes), np.cumsum(~failing) - 1)
        return classes.merged(class_of, len(kept_classes) + 1, classes.codes[np.append(kept_classes, failing.argmax())])

    def _holds_together(self, table: NodeTable, failing: NDArray[np.bool_]) -> bool:
        """Return whether the suppressed records pass as one class of stars, and the release including it."""
        released = self.released(table, failing)
        stars = released.selected(np.array([released.n_classes - 1]))
        return all(bool(m.passes(released if isinstance(m, ReleaseModel) else stars).all()) for m in self.models)

    def recoding(
        self, evaluation: Evaluation, algorithm: str, *, proved: bool, bound: float | None = None, claim: str = ""
    ) -> FullDomain:
        """Return the solution as a recoding; ``bound`` is a lower bound on the loss if optimality is not proved."""
        return FullDomain(
            hierarchies=self.table.hierarchies,
            node=evaluation.node,
            suppressed=evaluation.table.codes[evaluation.failing],
            algorithm=algorithm,
            proved=proved,
            claim=claim,
            n_evaluated=self.n_evaluated,
            n_nodes=self.lattice.n_nodes,
            bound=None if bound is None else self.objective.published_figure(bound),
        )

    def best_node(
        self, evaluation: Evaluation, algorithm: str, *, proved: bool, bound: float | None = None, claim: str = ""
    ) -> FullDomain:
        """Return the solution of a search that suppresses exactly the failing classes; claims only what that proves."""
        as_it_is = (
            evaluation.node == self.lattice.ground and not evaluation.n_suppressed
        )  # no solution has a smaller loss
        if self.suppresses_least or as_it_is:
            return self.recoding(evaluation, algorithm, proved=proved, bound=bound, claim=claim)
        claim = claim or ("no generalization has a smaller loss" if proved else "")
        if bound is not None:
            bound = self.cost_of_ground  # a rejected node may be feasible with other records suppressed
        return self.recoding(evaluation, algorithm, proved=False, bound=bound, claim=claim and f"{claim}, {self.rule}")

    @property
    def cost_of_ground(self) -> float:
        """The cost of the lowest levels without suppression, a lower bound in the objective's own unit."""
        return float(self.objective.floor()[:, 0].sum())

    def unfinished(self) -> OutOfTimeError:
        """Return the error for a search without a solution when its time, or its default amount of work, is used up."""
        time_clause = "" if self.time_budget is None else f" within {self.time_budget:g} seconds"
        return OutOfTimeError(
            f"no solution was found{time_clause}, after {self.n_evaluated} nodes",
            "increase time_budget, or use algorithm 'datafly'",
        )

    def infeasible(self) -> InfeasibleError:
        """Return the error that explains why there is no solution and what would help."""
        top = self.evaluate(self.lattice.top)
        n = self.table.n_records
        requirements = ", ".join(m.summary for m in self.asked)
        rule = "" if self.suppresses_least else f", {self.rule}"
        return InfeasibleError(
            f"no generalization of {', '.join(self.table.columns)} satisfies {requirements} "
            f"with at most {self.limit} of {n} records suppressed{rule}: "
            f"even with every column at its highest level {top.n_suppressed} of {n} records fail",
            "relax the requirements, or add records to the table",
        )


def null_code(hierarchy: Hierarchy, level: int) -> int | None:
    """Return the code of the null at a level if the column has one."""
    labels = hierarchy.labels[level]
    return labels.index(None) if None in labels else None
