"""Boxes of cells: a way to move the records of a table without any program.

Take a second label in some of the dimensions. The classes at the corners of the box between both rise and fall in turn
by the same amount, so every total over one of these dimensions stays as it is. A box of which all cells that change are
hidden proves that its first class is uncertain; one of which few are not is a cheap way to protect it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shoal.results.output.layout import CellKey
from shoal.tables.frequency import Floats

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]
LeafPrices = Mapping[tuple[int, ...], Floats]  # by depth: the price of hiding the cell above every leaf


@dataclass(frozen=True, eq=False)
class CellBox:
    """A move: by how much each class changes, the cells that change by it, and what hiding these would cost."""

    classes: Numbers
    amounts: Floats
    cells: Numbers
    cost: float


@dataclass(frozen=True, eq=False)
class LeafGrid:
    """A table of which every leaf is a class: the classes by their labels, and the cells by those of their ancestors.

    A dimension has a depth of 0 where a cell is summed over it, and one more for each nested column.
    """

    classes: Numbers  # (leaves of the first dimension, of the second, …)
    ancestors: tuple[tuple[Numbers, ...], ...]  # per dimension and depth: the number of the ancestor of each leaf
    cells: Mapping[tuple[int, ...], Numbers]  # per depth of each dimension: cells by numbers of ancestors

    @classmethod
    def of_cells(
        cls, cells: Sequence[CellKey], sizes: Sequence[int], class_of_leaf: Mapping[int, int]
    ) -> LeafGrid | None:
        """Return the grid of a table whose dimensions have so many columns; None if some combination has no cell."""
        starts = np.concatenate([[0], np.cumsum(sizes)]).tolist()
        numbers: list[list[dict[tuple[str | None, ...], int]]] = [[{} for _ in range(size + 1)] for size in sizes]
        depths, places = [], []
        for labels, kept_columns in cells:
            depth = tuple(sum(kept_columns[a:b]) for a, b in itertools.pairwise(starts))
            paths = [labels[a : a + d] for a, d in zip(starts, depth, strict=False)]
            path_numbers = [
                numbers[j][d].setdefault(p, len(numbers[j][d]))
                for j, (d, p) in enumerate(zip(depth, paths, strict=True))
            ]
            depths.append(depth)
            places.append(tuple(path_numbers))
        ancestors = tuple(
            tuple(np.array([of_depth[d][path[:d]] for path in of_depth[-1]], np.int64) for d in range(len(of_depth)))
            for of_depth in numbers
        )
        arrays = {
            depth: np.full([len(numbers[j][d]) for j, d in enumerate(depth)], -1, np.int64)
            for depth in itertools.product(*(range(size + 1) for size in sizes))
        }
        for i, (depth, position) in enumerate(zip(depths, places, strict=True)):
            arrays[depth][position] = i
        leaves = arrays[tuple(sizes)]
        if not leaves.size or any((array < 0).any() for array in arrays.values()):
            return None
        classes = np.array([class_of_leaf[int(i)] for i in leaves.ravel()], np.int64).reshape(leaves.shape)
        return cls(classes, ancestors, arrays)

    @cached_property
    def place_of_class(self) -> dict[int, tuple[int, ...]]:
        """Where each class is a leaf."""
        return {int(c): tuple(map(int, position)) for position, c in np.ndenumerate(self.classes)}

    @cached_property
    def _cells_above(self) -> dict[tuple[int, ...], Numbers]:
        """The cell of each depth above every leaf."""
        return {
            depth: cells[np.ix_(*(numbers[d] for numbers, d in zip(self.ancestors, depth, strict=True)))]
            for depth, cells in self.cells.items()
        }

    def leaf_prices(self, prices: Floats) -> LeafPrices:
        """Return the price of the cell of each depth above every leaf."""
        return {depth: prices[cells] for depth, cells in self._cells_above.items()}

    def cheapest_box(
        self, targets: Numbers, up: float, falls: Floats, rising: Flags, down: float, slack: Floats, prices: LeafPrices
    ) -> CellBox | None:
        """Return the cheapest box that moves the sum of the target classes up by ``up`` and down by ``down``.

        Upwards, no class may fall by more than ``falls``, and only ``rising`` ones may rise; downwards, none may fall
        by more than its ``slack``. ``prices`` are those of hiding each cell, 0 for hidden ones.
        """
        starts = [c for c in targets if int(c) in self.place_of_class]
        if not starts:
            return None
        start = self.place_of_class[int(max(starts, key=lambda c: slack[c]))]
        outside = np.ones(len(slack), np.bool_)
        outside[targets] = False
        can_fall, can_rise = (falls >= up) & outside, (slack >= down) & rising & outside
        if slack[self.classes[start]] < down:
            return None
        cheapest: CellBox | None = None
        for turned in self._dimension_sets():
            box = self._box(start, turned, can_fall, can_rise, prices)
            if box is not None and (cheapest is None or box.cost < cheapest.cost):
                cheapest = box
            if cheapest is not None and cheapest.cost == 0:
                break
        return cheapest

    def _dimension_sets(self) -> Iterator[tuple[int, ...]]:
        """Yield the dimensions in which a box has two labels: all of them first, then fewer."""
        n = self.classes.ndim
        for size in range(n, -1, -1):
            if n <= 4 or size in (n, 1, 0):
                yield from itertools.combinations(range(n), size)

    def _box(
        self, start: tuple[int, ...], turned: tuple[int, ...], can_fall: Flags, can_rise: Flags, prices: LeafPrices
    ) -> CellBox | None:
        """Return the cheapest box from a leaf with a second label in some dimensions; None if none can move."""
        shape = tuple(n if j in turned else 1 for j, n in enumerate(self.classes.shape))
        # The far ends of each dimension: itself only, or all of its labels.
        choices = [((False, True) if j in turned else (False,)) for j in range(len(shape))]
        corners = [
            (sum(far) % 2, tuple(slice(None) if f else slice(s, s + 1) for f, s in zip(far, start, strict=True)))
            for far in itertools.product(*choices)
        ]
        possible = np.ones(shape, np.bool_)
        for j in turned:  # the second label is another one
            possible[(slice(None),) * j + (start[j],)] = False
        for odd, corner in corners[1:]:
            possible &= (can_fall if odd else can_rise)[self.classes[corner]]
        if not possible.any():
            return None
        cost = np.zeros(shape)
        for depth, price in prices.items():
            if all(depth[j] for j in turned):
                differs = self._differs(start, turned, depth)
                cost = cost + sum(price[corner] for _, corner in corners) * differs
        second = tuple(map(int, np.unravel_index(int(np.argmin(np.where(possible, cost, np.inf))), shape)))
        far_end = tuple(e if j in turned else s for j, (s, e) in enumerate(zip(start, second, strict=True)))
        leaves = [*itertools.product(*((s, far_end[j]) if j in turned else (s,) for j, s in enumerate(start)))]
        moved = {
            int(cells[leaf])
            for depth, cells in self._cells_above.items()
            if all(
                depth[j] and self.ancestors[j][depth[j]][start[j]] != self.ancestors[j][depth[j]][far_end[j]]
                for j in turned
            )
            for leaf in leaves
        }
        return CellBox(
            np.array([self.classes[leaf] for leaf in leaves], np.int64),
            np.array([-1.0 if odd else 1.0 for odd, _ in corners]),
            np.array(sorted(moved), np.int64),
            float(cost[second]),
        )

    def _differs(self, start: tuple[int, ...], turned: tuple[int, ...], depth: tuple[int, ...]) -> Flags:
        """Return for which second labels the cells of a depth change: a cell above both labels has all of the box."""
        differs = np.ones((1,) * len(depth), np.bool_)
        for j in turned:
            ancestor = self.ancestors[j][depth[j]]
            differs_here = (ancestor != ancestor[start[j]]).reshape([-1 if i == j else 1 for i in range(len(depth))])
            differs = differs & differs_here
        return differs
