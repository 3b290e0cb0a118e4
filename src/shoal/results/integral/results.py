"""The results that can be checked: statistics, linear regressions, decision trees; each computed on any subset.

A result is discretized by a step that the user names: equal keys are equal results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from shoal.engines.local import LocalEngine
from shoal.errors import DataError, PolicyError
from shoal.notation.numbers import parse_number
from shoal.results.integral.trees import Examples, Tree, grown_tree, tree_leaves, tree_predictions, tree_text
from shoal.results.least_squares import solved_normal_equations
from shoal.tables.frequency import Floats

Statistic = Literal["mean", "median", "sum", "variance", "count", "regression", "tree"]
STATISTICS: tuple[str, ...] = get_args(Statistic)

EXACT_FIT = 1e-9  # of the largest value: residuals that are rounding errors

SubsetRows = NDArray[np.int64]  # the numbers of the rows in a subset


class Result(Protocol):
    """A function of some rows, discretized."""

    @property
    def title(self) -> str:
        """What is computed, as one readable line."""

    def key(self, rows: SubsetRows, drawn: float) -> Hashable | None:
        """Return the discretized result of rows drawn with probability ``drawn``; None if there is none."""

    def value(self, key: Hashable) -> Any:
        """Return the published form of a key."""

    def loss(self, key: Hashable, rows: SubsetRows) -> dict[str, float]:
        """Return how far a published result is from that of all ``rows``."""

    def full(self, key: Hashable, rows: SubsetRows) -> str:
        """Return in which way a result tells the value of everybody in all ``rows``; empty if it does not."""


@dataclass(frozen=True, eq=False)
class Number:
    """One number: its key is the multiple of ``step`` nearest to it."""

    title: str
    exact: Callable[[SubsetRows, float], float]  # rows, and the probability with which each person was drawn
    step: float
    values: Floats | None = None  # of every row of the table; None for a count
    mean: bool = False

    def key(self, rows: SubsetRows, drawn: float) -> Hashable | None:
        """Return the nearest multiple of the step."""
        figure = self.exact(rows, drawn)
        return None if math.isnan(figure) else _multiple(figure, self.step)

    def value(self, key: Hashable) -> Any:
        """Return the multiple of the step as a number."""
        return _scaled(key, self.step)

    def loss(self, key: Hashable, rows: SubsetRows) -> dict[str, float]:
        """Return the difference from the exact number, also relative to it."""
        true = self.exact(rows, 1.0)
        off = abs(_scaled(key, self.step) - true)
        return {"error": off, "relative_error": off / abs(true) if true else math.nan}

    def full(self, key: Hashable, rows: SubsetRows) -> str:
        """Return whether everybody has the same value, or a mean is the least or largest value there is."""
        if self.values is None:
            return ""
        lowest, largest = float(self.values[rows].min()), float(self.values[rows].max())
        if lowest == largest:
            return "everybody has the same value"
        ends = {_multiple(lowest, self.step), _multiple(largest, self.step)}
        if self.mean and len(ends) == 2 and key in ends:
            return "the mean is the least or the largest value, so nearly everybody has it"
        return ""


@dataclass(frozen=True, eq=False)
class Coefficients:
    """The coefficients of a linear regression by least squares, the intercept first."""

    title: str
    names: tuple[str, ...]
    design: Floats
    target: Floats
    steps: tuple[float, ...]

    def _fitted(self, rows: SubsetRows) -> Floats | None:
        if len(rows) <= len(self.names):
            return None
        design = self.design[rows]
        coefficients, rank = solved_normal_equations(design.T @ design, design.T @ self.target[rows])
        return coefficients if rank == design.shape[1] else None

    def key(self, rows: SubsetRows, drawn: float) -> Hashable | None:
        """Return the multiples of the steps."""
        fitted = self._fitted(rows)
        if fitted is None:
            return None
        return tuple(_multiple(float(coefficient), step) for coefficient, step in zip(fitted, self.steps, strict=True))

    def value(self, key: Hashable) -> Any:
        """Return the coefficients by name."""
        multiples = key if isinstance(key, tuple) else ()
        coefficients = (_scaled(coefficient, step) for coefficient, step in zip(multiples, self.steps, strict=True))
        return dict(zip(("intercept", *self.names), coefficients, strict=True))

    def loss(self, key: Hashable, rows: SubsetRows) -> dict[str, float]:
        """Return the largest difference of a coefficient, and both shares of explained variance."""
        published = np.array(list(self.value(key).values()))
        true = self._fitted(rows)
        if true is None:
            return {}
        return {
            "error": float(np.abs(published - true).max()),
            "r2_published": self._explained(published, rows),
            "r2_true": self._explained(true, rows),
        }

    def full(self, key: Hashable, rows: SubsetRows) -> str:
        """Return whether everybody's value lies on the line."""
        fitted = self._fitted(rows)
        if fitted is None:
            return ""
        left = np.abs(self.target[rows] - self.design[rows] @ fitted).max()
        on_the_line = left <= EXACT_FIT * max(float(np.abs(self.target[rows]).max()), 1e-300)
        return "everybody's value lies on the line" if on_the_line else ""

    def _explained(self, coefficients: Floats, rows: SubsetRows) -> float:
        y = self.target[rows]
        spread = float(((y - y.mean()) ** 2).sum())
        return 1 - float(((y - self.design[rows] @ coefficients) ** 2).sum()) / spread if spread else math.nan


@dataclass(frozen=True, eq=False)
class Classifier:
    """A decision tree of some depth; its key is the tree itself."""

    title: str
    examples: Examples
    depth: int
    names: tuple[str, ...]
    tests: tuple[tuple[str, ...], ...]  # per column, what each cut reads as
    labels: tuple[str, ...]

    def key(self, rows: SubsetRows, drawn: float) -> Hashable | None:
        """Return the tree grown on the rows."""
        return grown_tree(self.examples, rows, self.depth) if len(rows) else None

    def value(self, key: Hashable) -> Any:
        """Return the tree as text."""
        return tree_text(_tree(key), self.names, self.tests, self.labels)

    def loss(self, key: Hashable, rows: SubsetRows) -> dict[str, float]:
        """Return the accuracy on all rows of the published tree and of the tree grown on them."""
        truth = self.examples.classes[rows]
        grown = grown_tree(self.examples, rows, self.depth)
        accuracies = [
            float((tree_predictions(self.examples, prediction)[rows] == truth).mean())
            for prediction in (_tree(key), grown)
        ]
        return {"error": accuracies[1] - accuracies[0], "accuracy": accuracies[0], "accuracy_true": accuracies[1]}

    def full(self, key: Hashable, rows: SubsetRows) -> str:
        """Return whether everybody in a leaf has what the leaf says."""
        leaves = tree_leaves(self.examples, _tree(key), rows)
        pure = sum(len(np.unique(self.examples.classes[part])) == 1 for part in leaves if len(part))
        return f"everybody in {pure} of {len(leaves)} leaves has what the leaf says" if pure else ""


def integral_result(
    statistic: str, rows: LocalEngine, column: str | None, on: Sequence[str], steps: Sequence[float], depth: int
) -> tuple[Result, NDArray[np.bool_]]:
    """Return what is computed, and which rows have all the values that it needs."""
    if statistic == "count":
        counted = Number("count", lambda part, drawn: len(part) / drawn, steps[0])
        return counted, np.ones(rows.n_records, np.bool_)
    if column is None:
        raise PolicyError(f"{statistic}: name the column", 'integral_privacy(data, "mean", "income", step=100)')
    if statistic == "tree":
        return _classifier(rows, column, on, steps, depth)
    y = _numbers(rows, column)
    if statistic == "regression":
        design = np.column_stack([np.ones(len(y)), *(_numbers(rows, name) for name in on)])
        usable = ~np.isnan(y) & ~np.isnan(design).any(axis=1)
        title = f"regression of {column} on {', '.join(on)}"
        return Coefficients(title, tuple(on), design, y, _per_term(steps, len(on) + 1)), usable
    exact: dict[str, Callable[[SubsetRows, float], float]] = {
        "mean": lambda part, drawn: float(y[part].mean()) if len(part) else math.nan,
        "median": lambda part, drawn: float(np.median(y[part])) if len(part) else math.nan,
        "variance": lambda part, drawn: float(y[part].var(ddof=1)) if len(part) > 1 else math.nan,
        "sum": lambda part, drawn: float(y[part].sum()) / drawn,
    }
    name = f"{statistic} of {column}"
    return Number(name, exact[statistic], steps[0], y, statistic == "mean"), ~np.isnan(y)


def _classifier(
    rows: LocalEngine, column: str, on: Sequence[str], steps: Sequence[float], depth: int
) -> tuple[Result, NDArray[np.bool_]]:
    label = rows.coded(column)
    usable = label.codes >= 0
    columns, ordered, sizes, tests = [], [], [], []
    for name in on:
        coded = rows.coded(name)
        usable &= coded.codes >= 0
        read = [parse_number(text) for text in coded.texts]
        if all(value is not None for value in read) and read:
            cells = np.array([math.floor(float(value or 0) / steps[0]) for value in read], np.int64)
            values, ranks = np.unique(cells, return_inverse=True)
            columns.append(np.where(coded.codes >= 0, ranks[coded.codes], 0).astype(np.int64))
            tests.append(tuple(f"< {_scaled(int(value) + 1, steps[0]):g}" for value in values))
        else:
            columns.append(np.maximum(coded.codes, 0).astype(np.int64))
            tests.append(tuple(f"= {text}" for text in coded.texts))
        ordered.append(tests[-1][0].startswith("<"))
        sizes.append(len(tests[-1]))
    examples = Examples(
        tuple(columns), tuple(ordered), tuple(sizes), np.maximum(label.codes, 0).astype(np.int64), len(label.texts)
    )
    title = f"decision tree of {column} on {', '.join(on)}, depth {depth}"
    return Classifier(title, examples, depth, tuple(on), tuple(tests), label.texts), usable


def _numbers(rows: LocalEngine, name: str) -> Floats:
    """Return a column as numbers; NaN for a missing value."""
    coded = rows.coded(name)
    read = [parse_number(text) for text in coded.texts]
    if strange := sum(value is None for value in read):
        raise DataError(f"column {name!r}: {strange} of {len(read)} distinct values are not numbers")
    values = np.array([*(float(value or 0) for value in read), np.nan])
    return np.asarray(values[coded.codes])


def _per_term(steps: Sequence[float], n: int) -> tuple[float, ...]:
    if len(steps) not in (1, n):
        raise PolicyError(f"step: give one step, or {n}: one for the intercept and one per column")
    return tuple(steps) * n if len(steps) == 1 else tuple(steps)


def _multiple(value: float, step: float) -> int:
    return math.floor(value / step + 0.5)


def _scaled(key: Hashable, step: float) -> float:
    # By way of a division where the step is 1 / n: 3 · 0.1 is not 0.3.
    n = int(str(key))
    return n / round(1 / step) if step < 1 and abs(1 / step - round(1 / step)) < 1e-9 else n * step


def _tree(key: Hashable) -> Tree:
    if not isinstance(key, tuple):
        raise TypeError("not a tree")
    return key
