"""Top-down specialization: start at the top, and take the step with the best ratio of information to anonymity lost.

B. C. M. Fung, K. Wang, P. S. Yu, "Top-down specialization for information and privacy preservation", ICDE 2005.
Needs  models that are judged class by class, and a top that satisfies.
Finds  a cut that no single specialization can improve; neither the paper nor this module claims more.
Costs  one grouping per candidate and step; if verdicts survive generalization, a candidate that fails once is dropped.

A label of a tree is replaced by its children; in a column with cells = "range", an interval is cut in two at the value
with the best score. The score is gain / (anonymity lost + 1), where anonymity is the size of the smallest kept class.
If the policy names a label, the gain is the information gain on it, as in the paper: the decrease in entropy of the
labels in the interval, averaged over its parts. Without a label, it is the decrease of the objective.
A step is taken only if all requirements hold after it and no more records are suppressed than allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InfeasibleError
from shoal.recoding import Recoding
from shoal.search.cells.classes import require_class_by_class
from shoal.search.cuts.choices import Choices, EvaluatedChoice
from shoal.search.cuts.cuts import recoding_of_cuts
from shoal.search.cuts.ordered import Axis, Chosen, OrderedDomain
from shoal.search.problem import Problem
from shoal.tables.frequency import Histogram


class Step(NamedTuple):
    """A specialization of a column's interval, given by the places where the parts after the first start."""

    column: int
    first: int
    last: int
    starts: tuple[int, ...]


def top_down(problem: Problem) -> Recoding:
    """Take the step with the best score until no step helps."""
    require_class_by_class(problem, "top_down")
    choices = Choices(problem)
    axis = choices.axis
    labels = None if problem.label is None else Labels(problem.table.sensitive[problem.label], axis)
    chosen: Chosen = np.zeros(axis.n_values, np.bool_)
    evaluated = choices.evaluated(chosen)
    if not evaluated.feasible:
        raise problem.infeasible() if problem.monotone else _no_beginning(problem)
    steps = [s for j, d in enumerate(axis.domains) for s in _steps(d, j, problem.cells[j], 0, d.n_values - 1)]
    while steps and not problem.out_of_time:
        best_step: tuple[float, Step, Chosen, EvaluatedChoice] | None = None
        for step in tuple(steps):
            finer = chosen.copy()
            finer[axis.listed[step.column][np.array(step.starts) - 1]] = True
            after = choices.evaluated(finer)
            if not after.feasible:
                if problem.monotone and problem.suppresses_least:  # stars that stay may pass once there are more
                    steps.remove(step)
                continue
            gain = evaluated.value - after.value if labels is None else labels.gain(step)
            score = gain / (max(0, _anonymity(evaluated) - _anonymity(after)) + 1)
            if (labels is not None or _helps(evaluated, after)) and (best_step is None or score > best_step[0]):
                best_step = score, step, finer, after
        if best_step is None:
            break
        _, step, chosen, evaluated = best_step
        domain = axis.domains[step.column]
        steps = [s for s in steps if (s.column, s.first) != (step.column, step.first)]
        for first, last in _parts(step):
            steps += _steps(domain, step.column, problem.cells[step.column], first, last)
        problem.progress("specializing", float(chosen.mean()))
    return recoding_of_cuts(problem, axis.pieces(chosen), "top_down", n_evaluated=choices.n_evaluated)


class Labels:
    """The labels of the records, by column and place."""

    def __init__(self, histogram: Histogram, axis: Axis) -> None:
        places = axis.places[histogram.class_of_entry]
        self.counts = []
        for j, domain in enumerate(axis.domains):
            counts = np.zeros((domain.n_values, histogram.n_values), np.int64)
            np.add.at(counts, (places[:, j], histogram.values), histogram.counts)
            self.counts.append(counts)

    def gain(self, step: Step) -> float:
        """Return I(interval) − Σ over its parts of their share × I(part)."""
        whole = self.counts[step.column][step.first : step.last + 1]
        parts = np.add.reduceat(whole, [0, *(start - step.first for start in step.starts)], axis=0)
        shares = parts.sum(axis=1) / parts.sum()
        return _bits(parts.sum(axis=0)) - float(sum(s * _bits(part) for s, part in zip(shares, parts, strict=True)))


def _bits(counts: NDArray[np.int64]) -> float:
    """Return the entropy I = −Σ p log2 p."""
    p = counts[counts > 0] / counts.sum()
    return float(-(p @ np.log2(p)))


def _steps(domain: OrderedDomain, j: int, cells: str, first: int, last: int) -> Iterator[Step]:
    """Yield the possible specializations of an interval."""
    if cells in ("range", "tight-range") and not domain.whole:
        for start in range(first + 1, last + 1):
            yield Step(j, first, last, (start,))
    elif starts := _children(domain, first, last):
        yield Step(j, first, last, starts)


def _children(domain: OrderedDomain, first: int, last: int) -> tuple[int, ...]:
    """Return where the child labels start, on the highest level at which the interval has more than one label."""
    leaves = np.array([group[0] for group in domain.values[first : last + 1]])
    for codes in domain.hierarchy.table[::-1]:
        starts = np.flatnonzero(np.diff(codes[leaves]))
        if len(starts):
            return tuple((first + 1 + starts).tolist())
    return ()


def _parts(step: Step) -> Iterator[tuple[int, int]]:
    """Yield the intervals that a step produces."""
    firsts = (step.first, *step.starts)
    yield from zip(firsts, (*(start - 1 for start in step.starts), step.last), strict=True)


def _helps(before: EvaluatedChoice, after: EvaluatedChoice) -> bool:
    """Return whether the objective falls; a step that adds detail at no cost and suppresses no record helps too."""
    slack = 1e-11 * max(1.0, abs(before.value))
    if after.n_suppressed <= before.n_suppressed:
        return after.value <= before.value + slack
    return after.value < before.value - slack


def _anonymity(evaluated: EvaluatedChoice) -> int:
    """Return the number of respondents in the smallest kept class."""
    persons: NDArray[np.int64] = evaluated.classes.persons[~evaluated.failing]
    return int(persons.min())


def _no_beginning(problem: Problem) -> InfeasibleError:
    """Return the error; if failing at the top proves nothing about the cuts below, it claims no more than that."""
    return InfeasibleError(
        f"algorithm 'top_down' found no release with at most {problem.limit} of {problem.table.n_records} records "
        "suppressed: it begins with every column at its top, and there the requirements fail",
        "use algorithm 'optimal', which misses no answer",
    )
