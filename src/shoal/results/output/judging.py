"""Which cells of a table are unsafe and why, what must stay uncertain, and the answer.

Three quantities are judged with the same hidden cells: records, persons (where these have several records) and values.
Persons protect what several classes are together: if the total of any of them is known, there are enough persons in
it. Values of either sign are judged by their sizes, which asks for more than their signs would.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from shoal.errors import CannotTellError
from shoal.results.output.atoms import AtomTable
from shoal.results.output.boxes import LeafGrid
from shoal.results.output.checked import OutputCell, OutputCheck
from shoal.results.output.layout import (
    CellLayout,
    atoms_of_rows,
    families_of,
    hidden_before,
    merged_atoms,
    released_before,
)
from shoal.results.output.ledger import Earlier
from shoal.results.output.linear import TOLERANCE, Flags, LinearIntruder, Totals
from shoal.results.output.linked import EarlierSums, LinkedColumns, LinkedTotals, linked_totals
from shoal.results.output.possible_groups import full_groups
from shoal.results.output.request import TableRequest
from shoal.results.output.rules import CellRule, OutputRules
from shoal.results.output.suppression import Hiding, Insiders, ProtectedTotal, Puzzle, Step, suppressed
from shoal.tables.frequency import Floats

SPARE_SECONDS = 2.0  # beyond the time limit, for what is needed for any answer
MAX_PATTERNS = 50  # that are tried, each with the unions that the one before did not protect

Margins = tuple[float, float]  # how far above and below the truth a hidden total must be able to lie


@dataclass(frozen=True, eq=False)
class _Quantity:
    """The records, persons or values of a table, with the classes of their totals."""

    kind: Literal["records", "persons", "values"]
    totals: Totals
    class_of: NDArray[np.int64]
    members: list[NDArray[np.int64]]  # (classes)  the atoms of each
    hidden_before: list[NDArray[np.int64]]  # the atoms of cells that were hidden in earlier tables
    signed_totals: Totals | None = None  # values with their signs, where they are judged by their sizes

    def classes(self, atoms: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the classes of some atoms."""
        return np.unique(self.class_of[atoms])


class Judge:
    """One table and what is known besides: which cells are unsafe and why, and what must stay uncertain."""

    def __init__(
        self,
        rules: OutputRules,
        request: TableRequest,
        atoms: AtomTable,
        layout: CellLayout,
        earlier: list[Earlier],
        sensitive: tuple[str, ...],
        linked: LinkedColumns | None = None,
    ) -> None:
        self.rules, self.request, self.atoms, self.layout, self.earlier = rules, request, atoms, layout, earlier
        self.changed: list[str] = []  # what shows that the data are not those of earlier releases
        self.shrunk = False  # whether a published count changed by too few persons
        published = [self._published(release) for release in earlier]
        hidden = [hidden_before(release, atoms) for release in earlier]
        empty = csr_array((0, len(atoms.codes)))

        def joined(parts: list[csr_array]) -> csr_array:
            return vstack([empty, *parts]).tocsr()

        self.quantities = [self._quantity("records", joined(published), joined(hidden))]
        if self._several:
            self.quantities.append(self._quantity("persons", joined(published), joined(hidden)))
        self.linked: tuple[LinkedColumns, LinkedTotals] | None = None
        if request.sums:
            sums = [
                EarlierSums(str(release.request.value), published_sums, hidden_sums)
                for release, published_sums, hidden_sums in zip(earlier, published, hidden, strict=True)
                if release.request.sums
            ]
            same_column = [release for release in sums if release.value == request.value]
            published_sums, hidden_sums = (
                joined([release.published for release in same_column]),
                joined([release.hidden for release in same_column]),
            )
            self.quantities.append(self._quantity("values", published_sums, hidden_sums))
            if linked is not None:
                self.linked = linked, linked_totals(linked, layout.members, sums)
        self.failed_rules: dict[int, list[CellRule]] = {}
        self.full: list[NDArray[np.int64]] = []  # possible groups that must not be known to be empty
        for i in range(len(layout.cells)):
            for quantity in self.quantities:
                for rule in self._rules_failed(quantity, layout.atoms_in(i), cell=True):
                    self.fail(i, rule)
        self._find_full(sensitive)

    def fail(self, i: int, rule: CellRule) -> None:
        """Note that a cell fails a rule."""
        if rule not in self.failed_rules.setdefault(i, []):
            self.failed_rules[i].append(rule)

    def _published(self, earlier: Earlier) -> csr_array:
        """Return the published cells of an earlier table over the atoms, and note where it no longer agrees."""
        members, figures, vanished = released_before(earlier, self.atoms)
        counts = members @ self.atoms.records.astype(float)
        published_counts = np.array([figures_of_cell.get("count", np.nan) for figures_of_cell in figures])
        moved = np.abs(counts - published_counts)
        if vanished or (moved > 0).any():
            self.changed.append("count")
            self.shrunk |= bool(vanished or ((moved > 0) & (moved < self.rules.min_count)).any())
        return members

    # ── quantities ───────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def _several(self) -> bool:
        """Whether some person has several records."""
        return self.atoms.parts is not None or bool((self.atoms.records > self.atoms.persons).any())

    def _quantity(
        self, kind: Literal["records", "persons", "values"], published: csr_array, hidden: csr_array
    ) -> _Quantity:
        n_published, before = published.shape[0], atoms_of_rows(hidden)
        cells, rows, class_of = merged_atoms(self.layout.members, vstack([published, hidden]).tocsr())
        published = rows[:n_published]  # what was hidden only tells classes apart
        n = cells.shape[1]
        order = np.argsort(class_of, kind="stable")
        members = np.split(order, np.cumsum(np.bincount(class_of, minlength=n))[:-1])
        nested = sum(len(dimension) > 1 for dimension in self.request.dimensions)
        network = len(self.request.dimensions) <= 2 and nested <= 1 and published.shape[0] == 0 and not self.request.on

        def summed(column: Floats) -> Floats:
            return np.bincount(class_of, column, minlength=n).astype(np.float64)

        zero = np.zeros(n)
        if kind == "records":
            records = summed(self.atoms.records.astype(float))
            totals = Totals(records, self._listed(cells, records), cells, published, integer=True, network=network)
            return _Quantity(kind, totals, class_of, members, before)
        if kind == "persons":
            totals = Totals(self._person_weights(class_of, n), zero, cells, published, integer=False)
            return _Quantity(kind, totals, class_of, members, before)
        totals = Totals(summed(self.atoms.sizes), zero, cells, published, integer=False)
        signed = None
        if self.atoms.negative:
            signed = Totals(summed(self.atoms.sums), np.full(n, -np.inf), cells, published, integer=False)
        return _Quantity(kind, totals, class_of, members, before, signed)

    def _listed(self, cells: csr_array, records: Floats) -> Floats:
        """Return what an intruder knows each class to have at least: a group is in the list because somebody is in it.

        That is so where the table has one dimension and is about all records; of two, every combination is listed.
        """
        floors = np.zeros(len(records))
        about_all = self.layout.members.sum() == len(self.atoms.codes) * (1 + sum(map(len, self.request.dimensions)))
        if len(self.request.dimensions) == 1 and about_all:
            for i, (_, kept_columns) in enumerate(self.layout.cells):
                if all(kept_columns):
                    classes = cells.indices[cells.indptr[i] : cells.indptr[i + 1]]
                    if len(classes) == 1 and records[classes[0]] > 0:
                        floors[classes[0]] = 1.0
        return floors

    def _person_weights(self, class_of: NDArray[np.int64], n: int) -> Floats:
        """Return how many persons each class has; a person in several classes is divided among them."""
        parts = self.atoms.parts
        if parts is None:
            return np.bincount(class_of, self.atoms.persons, minlength=n).astype(float)
        pairs = np.unique(np.column_stack([parts.person, class_of[parts.atom]]), axis=0)
        _, person = np.unique(pairs[:, 0], return_inverse=True)
        return np.bincount(pairs[:, 1], 1 / np.bincount(person)[person], minlength=n).astype(np.float64)

    # ── the rules ────────────────────────────────────────────────────────────────────────────────────────────

    def _rules_failed(
        self, quantity: _Quantity, atoms: NDArray[np.int64], *, cell: bool = False, table: AtomTable | None = None
    ) -> dict[CellRule, Margins]:
        """Return the rules that some atoms fail as one cell, with the distances that each asks for in a quantity.

        Where persons have several records, a count of records is a sum: everybody contributes their number of records.
        ``table`` has the values of a linked column.
        """
        failed: dict[CellRule, Margins] = {}
        counting = quantity.kind == "records"
        table = self.atoms if table is None else table
        persons, largest, size = table.contributions(atoms, records=quantity.kind != "values")
        too_few = self.rules.count_fails(persons)
        if quantity.kind == "persons":
            weight = float(quantity.totals.values[quantity.classes(atoms)].sum()) if too_few else 0.0
            return {"least count": (self.rules.min_count - weight, 0.0)} if too_few else {}
        magnitude = not counting or size > persons
        share = self.rules.protection / 100 * size if magnitude else 0.0
        if too_few:
            # Whether these are enough persons, or even fewer, must stay open.
            enough = (self.rules.min_count - persons, 1) if counting else (0, 0)
            failed["least count"] = max(enough[0], share), max(enough[1], share)
        if magnitude:
            levels = {rule: max(level, share) for rule, level in self.rules.failing(largest, size).items()}
            failed |= {rule: (level, level) for rule, level in levels.items()}
        if not counting and persons:
            level = self.rules.protection / 100 * table.mean_size * persons
            if size == 0:  # a sum of 0 tells what everybody contributes
                failed["zero"] = level, level
            elif not too_few and self._all_alike(atoms, table):
                failed["full"] = level, level
        if cell and counting and persons == 0 and self.rules.zeros == "hide":
            failed["zero"] = 1.0, 0.0
        return failed

    def _all_alike(self, atoms: NDArray[np.int64], table: AtomTable) -> bool:
        """Return whether all contribute the largest or all the least value of the table: their mean tells it."""
        ends = table.ends[atoms[table.records[atoms] > 0]]
        everybody = table.ends[self._present]
        low, high = float(everybody[:, 0].min(initial=np.inf)), float(everybody[:, 1].max(initial=-np.inf))
        return bool(low < high and len(ends) and (ends[:, 0].min() == high or ends[:, 1].max() == low))

    @cached_property
    def _present(self) -> Flags:
        return np.asarray(np.asarray(abs(self.layout.members).sum(axis=0)).ravel() * self.atoms.records > 0)

    def _find_full(self, sensitive: tuple[str, ...]) -> None:
        """Find groups with everybody of a larger group, here and in earlier tables, and hide those seen at a glance."""
        index_of = {key: i for i, key in enumerate(self.layout.cells)}
        for full in full_groups(self.request, self.atoms, sensitive):
            self.full.append(full.empty_atoms)
            if full.whole is not None:
                self.fail(index_of[full.key], "full")
        for release in self.earlier:
            groups = full_groups(release.request, self.atoms, sensitive)
            self.full += [full.empty_atoms for full in groups if full.key in release.figures]

    # ── what must stay uncertain ─────────────────────────────────────────────────────────────────────────────

    def targets(self) -> list[ProtectedTotal]:
        """Return the cells and classes whose totals must stay uncertain, each once.

        Cells that were hidden in earlier tables are among them: what is published later must not narrow them down.
        """
        targets: dict[tuple[int, bytes], ProtectedTotal] = {}

        def add(target: ProtectedTotal | None) -> None:
            if target is not None:
                key = target.quantity, target.classes.tobytes()
                targets[key] = target.joined(targets[key]) if key in targets else target

        cells = [self.layout.atoms_in(i) for i in self.failed_rules]
        for q, quantity in enumerate(self.quantities):
            for members in quantity.members:
                add(self._target(q, quantity, quantity.classes(members), members))
            for atoms in (*cells, *quantity.hidden_before):
                add(self._target(q, quantity, quantity.classes(atoms), atoms, cell=True))
        for target in self._linked_targets():
            add(target)
        records = self.quantities[0]
        for empty_atoms in self.full:
            classes = records.classes(empty_atoms)
            if not records.totals.values[classes].any():  # otherwise somebody may be there for all that is told apart
                add(ProtectedTotal(0, classes, 1.0, 0.0))
        return list(targets.values())

    def unprotected(self, puzzle: Puzzle, hidden: Flags) -> list[ProtectedTotal]:
        """Return the sums over several hidden cells that can be worked out although they fail a rule.

        Two cells may be safe while two persons dominate what they are together: a shown total tells that sum, if the
        other parts of it are shown.
        """
        judged = {(target.quantity, target.classes.tobytes()) for target in puzzle.targets}
        failing: dict[tuple[int, bytes], ProtectedTotal] = {}
        for q, quantity in enumerate(self.quantities):
            if quantity.kind == "persons" or (quantity.kind == "records" and not self._several):
                continue  # unions have enough persons, whatever is hidden
            for classes in self._unions(
                quantity.totals.cells, quantity.totals.published, hidden, len(quantity.members)
            ):
                atoms = np.concatenate([quantity.members[j] for j in classes])
                target = self._target(q, quantity, classes, atoms, cell=True)
                if target is not None and (q, classes.tobytes()) not in judged:
                    failing[q, classes.tobytes()] = target
        if self.linked is not None:
            linked, sums = self.linked
            q, n = len(self.quantities), len(sums.members)
            quantity = _Quantity("values", sums.totals, sums.class_of, sums.members, [])
            for union in self._unions(sums.totals.cells, sums.released, hidden, n):
                column = int(union[0]) // n
                atoms = np.concatenate([sums.members[j - column * n] for j in union])
                table = linked.atoms[column]
                target = self._target(q, quantity, union, atoms, cell=True, table=table)
                if target is not None and (q, union.tobytes()) not in judged:
                    failing[q, union.tobytes()] = target
        return [attack.target for attack in puzzle.exposed(hidden, failing.values())]

    def _unions(self, cells: csr_array, released: csr_array, hidden: Flags, n: int) -> Iterator[NDArray[np.int64]]:
        """Yield what shown totals leave of hidden cells, and what no shown total tells apart, as sets of classes.

        ``n`` is the number of classes of a column, of several that are linked.
        """
        for parent, children in self._families:
            hidden_children = [i for i in children if hidden[i]]
            if len(hidden_children) > 1 and not hidden[parent]:
                yield np.unique(cells[hidden_children].indices).astype(np.int64)
        visible = vstack([cells[np.flatnonzero(~hidden)], released]).tocsc()
        visible.sort_indices()
        by_rows: dict[tuple[int, bytes], list[int]] = {}
        for j in range(visible.shape[1]):
            rows = visible.indices[visible.indptr[j] : visible.indptr[j + 1]]
            by_rows.setdefault((j // n, rows.tobytes()), []).append(j)
        yield from (np.array(classes, np.int64) for classes in by_rows.values() if len(classes) > 1)

    @cached_property
    def _families(self) -> list[tuple[int, list[int]]]:
        """The totals of the table, and the cells that each is the sum of; a regression has none."""
        if self.request.on:
            return []
        return families_of(self.layout.cells, [len(dimension) for dimension in self.request.dimensions])

    def _linked_targets(self) -> Iterator[ProtectedTotal | None]:
        """Yield the sums of linked columns that must stay uncertain: of classes, and of all cells of the table."""
        if self.linked is None:
            return
        linked, sums = self.linked
        every = [*sums.members, *sums.cells_before, *(self.layout.atoms_in(i) for i in range(len(self.layout.cells)))]
        for column, table in enumerate(linked.atoms):
            quantity = _Quantity("values", sums.totals, sums.class_of, sums.members, [])
            for atoms in every:
                classes = sums.classes(atoms, column)
                yield self._target(len(self.quantities), quantity, classes, atoms, cell=True, table=table)

    def _target(
        self,
        q: int,
        quantity: _Quantity,
        classes: NDArray[np.int64],
        atoms: NDArray[np.int64],
        *,
        cell: bool = False,
        table: AtomTable | None = None,
    ) -> ProtectedTotal | None:
        failed = self._rules_failed(quantity, atoms, cell=cell, table=table)
        above = max((distance[0] for distance in failed.values()), default=0.0)
        below = max((distance[1] for distance in failed.values()), default=0.0)
        if quantity.kind == "records":
            above, below = math.ceil(above - TOLERANCE), math.ceil(below - TOLERANCE)
        below = min(below, float(quantity.totals.slack[classes].sum()))
        if above <= 0 and below <= 0:
            return None
        insider = 0.0
        if len(classes) == 1 and (quantity.kind == "values" or (quantity.kind == "records" and self._several)):
            table = self.atoms if table is None else table
            _, largest, size = table.contributions(atoms, records=quantity.kind == "records")
            insider = max(0.0, (1 + self.rules.closeness) * float(largest[0]) - size)
        return ProtectedTotal(q, classes, above, below, insider)

    def _insiders(self, quantity: _Quantity) -> Insiders | None:
        """Return how far each class can be from its value in the eyes of its largest contributor.

        Somebody who is alone in a class knows all of it; the others know their own part.
        """
        if quantity.kind == "persons" or (quantity.kind == "records" and not self._several):
            return None
        return Insiders(*self._own_parts(self.atoms, quantity.members, records=quantity.kind == "records"))

    def _own_parts(
        self, table: AtomTable, classes: list[NDArray[np.int64]], *, records: bool = False
    ) -> tuple[Floats, Floats]:
        falls, rises = np.zeros(len(classes)), np.full(len(classes), np.inf)
        for j, members in enumerate(classes):
            persons, largest, size = table.contributions(members, records=records)
            if persons == 1:
                rises[j] = 0.0
            elif persons:
                falls[j] = max(0.0, size - float(largest[0]))
        return falls, rises

    def _linked_insiders(self) -> list[Insiders]:
        if self.linked is None:
            return []
        linked, sums = self.linked
        parts = [self._own_parts(table, sums.members) for table in linked.atoms]
        falls = [
            np.where(table.negative & (rises > 0), np.inf, falls)
            for table, (falls, rises) in zip(linked.atoms, parts, strict=True)
        ]
        return [Insiders(np.concatenate(falls), np.concatenate([rises for _, rises in parts]), len(parts))]

    def _grid(self) -> LeafGrid | None:
        """Return the leaves of the table, if it is judged by itself and every combination of labels is one."""
        if self.earlier or self.request.on or not self.request.dimensions:
            return None
        class_of = self.quantities[0].class_of
        leaves = [i for i, (_, kept_columns) in enumerate(self.layout.cells) if all(kept_columns)]
        class_of_leaf = {i: int(class_of[self.layout.atoms_in(i)[0]]) for i in leaves}
        return LeafGrid.of_cells(self.layout.cells, list(map(len, self.request.dimensions)), class_of_leaf)

    def puzzle(self, unsafe: Flags) -> Puzzle:
        """Return what has to be hidden and protected; cells that many are in are hidden last."""
        counts = np.asarray(self.layout.members @ self.atoms.records.astype(float))
        return Puzzle(
            [quantity.totals for quantity in self.quantities]
            + ([] if self.linked is None else [self.linked[1].totals]),
            self.targets(),
            unsafe,
            1 + np.log2(1 + counts),
            [*(self._insiders(quantity) for quantity in self.quantities), *self._linked_insiders()],
            self._grid(),
        )

    # ── the answer ───────────────────────────────────────────────────────────────────────────────────────────

    def checked(
        self, figures: dict[str, Floats], ledger: str | Path | None, total: str, progress: Step, time_limit: float
    ) -> OutputCheck:
        """Hide what has to be hidden, compute what an intruder can tell of it, and put the answer together."""
        end = time.monotonic() + time_limit
        unsafe = np.zeros(len(self.layout.cells), np.bool_)
        unsafe[list(self.failed_rules)] = True
        missing, pattern, reason = "", None, ""
        puzzle = self.puzzle(unsafe)
        ranges: dict[int, dict[str, tuple[float, float]]] = {}
        if self.changed:
            missing = "the data changed since earlier releases, so their differences cannot be judged"
            reason = f"published figures are different today: {', '.join(dict.fromkeys(self.changed))}"
        else:
            try:
                puzzle = replace(puzzle, deadline=end + 0.1 * time_limit + SPARE_SECONDS)
                pattern = self._pattern(puzzle, progress, 0.7 * time_limit)
                ranges = {} if pattern is None else self._ranges(pattern.hidden, progress, end)
            except CannotTellError as error:
                missing, pattern = error.message, None
            if pattern is None and not missing:
                reason = "earlier releases alone already give away too much about some records"
        extra_hidden = pattern is None or bool((pattern.hidden & ~unsafe).any())
        fails = bool(unsafe.any()) or self.shrunk or (not missing and extra_hidden)
        hidden = np.ones(len(unsafe), np.bool_) if pattern is None else pattern.hidden
        cells = [
            OutputCell(
                key,
                kept_columns,
                bool(hidden[i]),
                {name: float(column[i]) for name, column in figures.items()},
                tuple(self.failed_rules.get(i, ())),
                ranges.get(i, {}),
            )
            for i, (key, kept_columns) in enumerate(self.layout.cells)
        ]
        return OutputCheck(
            request=self.request,
            rules=self.rules,
            cells=tuple(cells),
            verdict="fails" if fails else "unknown" if missing else "holds",
            safe=pattern is not None and not hidden.all(),
            proved=pattern is not None and pattern.proved,
            missing=missing,
            reason=reason,
            ledger=None if ledger is None else Path(ledger),
            earlier=tuple(self.earlier),
            total=total,
        )

    def _pattern(self, puzzle: Puzzle, progress: Step, time_limit: float) -> Hiding | None:
        """Return a pattern that protects the unions of its hidden cells too."""
        start, first = time.monotonic(), None
        for _ in range(MAX_PATTERNS):
            pattern = suppressed(puzzle, progress, max(0.0, start + time_limit - time.monotonic()), first)
            exposed_unions = [] if pattern is None else self.unprotected(puzzle, pattern.hidden)
            if not exposed_unions:
                return pattern
            first = None if pattern is None else pattern.hidden
            puzzle = replace(puzzle, targets=[*puzzle.targets, *exposed_unions])
        raise CannotTellError("no choice of hidden cells was found that protects what several are together")

    def _ranges(self, hidden: Flags, progress: Step, end: float) -> dict[int, dict[str, tuple[float, float]]]:
        """Return what an intruder can tell of the hidden cells: the least and the largest possible figure.

        Cells that fail a rule are first; where time is up, the others have none.
        """
        range_of_cell: dict[int, dict[str, tuple[float, float]]] = {}
        places = sorted(map(int, np.flatnonzero(hidden)), key=lambda i: i not in self.failed_rules)
        for quantity in self.quantities:
            if quantity.kind == "persons":  # of which nothing is published
                continue
            totals, class_of = quantity.signed_totals or quantity.totals, quantity.class_of
            if quantity.kind == "values" and self.linked is not None:
                totals, class_of = self.linked[1].totals, self.linked[1].class_of
            intruder = LinearIntruder(totals, hidden, end)
            for n, i in enumerate(places):
                if time.monotonic() > end:
                    break
                progress("computing ranges", n / len(places))
                classes = np.unique(class_of[self.layout.atoms_in(i)])
                truth = float(totals.values[classes].sum())
                scale = max(abs(truth), 1.0)
                try:
                    low = truth - intruder.reach(classes, -1, scale)[0]
                    high = truth + intruder.reach(classes, 1, scale)[0]
                except CannotTellError:
                    if time.monotonic() > end:
                        break
                    raise
                range_of_cell.setdefault(i, {})["sum" if quantity.kind == "values" else "count"] = (low, high)
        return range_of_cell
