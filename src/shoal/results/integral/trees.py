"""Small decision trees in a canonical form, so that equal trees are equal values.

Needs  few distinct values per column: numbers are cut at multiples of a step that the user names, never of the data.
Finds  greedily the split with the least Gini impurity, down to a depth. Ties go to the first column, then the lowest
       cut. A split whose two leaves predict the same is merged, so two trees that predict alike by the same tests are
       the same nested tuple.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Leaf = tuple[int]  # the predicted class
Split = tuple[int, int, "Tree", "Tree"]  # column, cut, and the subtrees for values at most the cut and above it
Tree = Leaf | Split


@dataclass(frozen=True, eq=False)
class Examples:
    """Columns as ranks of their distinct values, and the class of each record."""

    columns: tuple[NDArray[np.int64], ...]
    ordered: tuple[bool, ...]  # numbers are cut into at most and above; categories into one value and the rest
    sizes: tuple[int, ...]
    classes: NDArray[np.int64]
    n_classes: int


def grown_tree(examples: Examples, rows: NDArray[np.int64], depth: int) -> Tree:
    """Grow a tree on some rows."""
    counts = np.bincount(examples.classes[rows], minlength=examples.n_classes)
    majority = int(counts.argmax())
    if depth == 0 or counts[majority] == len(rows):
        return (majority,)
    split = _best_split(examples, rows, counts)
    if split is None:
        return (majority,)
    column, cut = split
    left = _goes_left(examples, column, cut, rows)
    low, high = grown_tree(examples, rows[left], depth - 1), grown_tree(examples, rows[~left], depth - 1)
    return low if low == high else (column, cut, low, high)


def tree_predictions(examples: Examples, grown: Tree) -> NDArray[np.int64]:
    """Return the class that a tree predicts for every record."""
    out = np.empty(len(examples.classes), np.int64)
    waiting: list[tuple[Tree, NDArray[np.int64]]] = [(grown, np.arange(len(out)))]
    while waiting:
        part, rows = waiting.pop()
        if len(part) == 1:
            out[rows] = part[0]
            continue
        column, cut, low, high = part
        left = _goes_left(examples, column, cut, rows)
        waiting += [(low, rows[left]), (high, rows[~left])]
    return out


def tree_leaves(examples: Examples, grown: Tree, rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the rows in each leaf of a tree."""
    if len(grown) == 1:
        return [rows]
    column, cut, low, high = grown
    left = _goes_left(examples, column, cut, rows)
    return [*tree_leaves(examples, low, rows[left]), *tree_leaves(examples, high, rows[~left])]


def tree_text(grown: Tree, names: Sequence[str], values: Sequence[Sequence[str]], classes: Sequence[str]) -> str:
    """Return a tree as text: ``age <= 40 ? flu : hiv``."""
    if len(grown) == 1:
        return classes[grown[0]]
    column, cut, low, high = grown
    inner = [tree_text(part, names, values, classes) for part in (low, high)]
    inner = [text if len(part) == 1 else f"({text})" for text, part in zip(inner, (low, high), strict=True)]
    return f"{names[column]} {values[column][cut]} ? {inner[0]} : {inner[1]}"


def _goes_left(examples: Examples, column: int, cut: int, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    values = examples.columns[column][rows]
    return np.asarray(values <= cut if examples.ordered[column] else values == cut)


def _best_split(examples: Examples, rows: NDArray[np.int64], counts: NDArray[np.int64]) -> tuple[int, int] | None:
    """Return the column and cut with the least impurity; None if no split lowers it."""
    # Σ n_c² / n per side, larger is purer. Compared as floats with a margin, so that ties stay ties in any order.
    best, candidates = float((counts**2).sum()) / len(rows) * (1 + 1e-12), None
    classes = examples.classes[rows]
    for column, values in enumerate(examples.columns):
        size = examples.sizes[column]
        flat = np.bincount(values[rows] * examples.n_classes + classes, minlength=size * examples.n_classes)
        left = flat.reshape(size, examples.n_classes).astype(np.float64)
        if examples.ordered[column]:
            left = left.cumsum(axis=0)
        right = counts - left
        n_left, n_right = left.sum(axis=1), right.sum(axis=1)
        usable = (n_left > 0) & (n_right > 0)
        purity = np.full(size, -np.inf)
        purity[usable] = (left[usable] ** 2).sum(axis=1) / n_left[usable]
        purity[usable] += (right[usable] ** 2).sum(axis=1) / n_right[usable]
        at = int(purity.argmax())
        at = int(np.flatnonzero(purity >= purity[at] * (1 - 1e-12))[0]) if np.isfinite(purity[at]) else at
        if purity[at] > best * (1 + 1e-12):
            best, candidates = float(purity[at]), (column, at)
    return candidates
