"""``check_output``: group, judge every cell, hide what is unsafe and what would give it away, and say what is left."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from shoal.engines.base import Engine
from shoal.engines.data import Data
from shoal.engines.grouping import groupable
from shoal.errors import CannotTellError, DataError, PolicyError
from shoal.output.asked import AskedTable
from shoal.output.atoms import AtomTable, atoms_of
from shoal.output.changes import changed_figures, linear_figures
from shoal.output.checked import OutputCell, OutputCheck
from shoal.output.layout import CellKey, CellLayout, laid_out, merged_atoms, released_before, with_empty_cells
from shoal.output.ledger import Earlier, read_ledger
from shoal.output.linear import TOLERANCE, Flags, Intruder, Totals
from shoal.output.quantiles import quantiles_of, too_similar
from shoal.output.rules import CellRule, OutputRules, Zeros
from shoal.output.suppression import ProtectedTotal, Puzzle, Step, suppressed
from shoal.table.frequency import Floats

Margins = tuple[float, float]  # how far above and below the truth a hidden total must be able to lie


def check_output(
    data: Data | Engine,
    *,
    by: Sequence[str | Sequence[str]] = (),
    value: str | None = None,
    statistics: Sequence[str] = ("count",),
    where: Sequence[str] = (),
    bands: Mapping[str, Sequence[float]] | None = None,
    entity: str | None = None,
    sensitive: Sequence[str] | None = None,
    min_count: int = 10,
    dominance: tuple[int, float] | None = (2, 90.0),
    p: float | None = 10.0,
    zeros: Zeros = "show",
    protection: float = 10.0,
    ledger: str | Path | None = None,
    total: str = "Total",
    progress: Step = lambda what, share: None,
) -> OutputCheck:
    """Check a table of counts, sums, means or quantiles before it is published, together with all released before.

    ``by`` are the columns to group by; ``"region > town"`` nests towns in regions, ``bands`` cuts numbers into groups.
    All totals are part of the table. ``where`` restricts it to records, as in ``["age >= 18"]``. ``entity`` is the
    column that identifies persons; without it, every record is a person. ``sensitive`` are the columns of ``by`` where
    everybody in one group is a disclosure; by default all.

    >>> import pyarrow as pa, shoal
    >>> rows = pa.table({"town": ["A"] * 40 + ["B"] * 30 + ["C"] * 3})
    >>> found = shoal.check_output(rows, by=["town"])
    >>> found.outcome, found.hidden
    ('fails', 2)
    """
    rules = OutputRules(min_count, dominance, p, zeros, protection)
    asked = AskedTable.of(by, bands, where, value, statistics)
    if unknown := [name for name in sensitive or () if name not in asked.names]:
        raise PolicyError(f"{', '.join(map(repr, unknown))} is sensitive, but not grouped by")
    earlier = read_ledger(ledger)
    rows = groupable(data)
    features = list(dict.fromkeys(f for table in (asked, *(e.asked for e in earlier)) for f in table.features))
    rows.require([name for f in features for name in f.columns] + ([] if entity is None else [entity]))
    if value is not None and rows.table[value].type().is_temporal():
        raise DataError(f"column {value!r} has dates, not numbers")
    progress("grouping", 0.0)
    atoms = atoms_of(rows, features, value, entity, rules.n_largest)
    # Who sees a sum or a mean of a group knows that the group is not empty.
    occupied = value is not None or any(each.asked.value is not None for each in earlier)
    if not occupied and set(features) == set(asked.features):
        atoms = with_empty_cells(asked, atoms)
    layout = laid_out(asked, atoms)
    if not layout.cells:
        raise DataError(
            "no record satisfies the conditions, or the value is missing everywhere", "check the conditions"
        )
    if total in {label for key, _ in layout.cells for label in key}:
        raise PolicyError("a group has the name of the totals", "choose another name for them", option="--total")
    judge = _Judge(
        rules, asked, atoms, layout, earlier, occupied, tuple(asked.names if sensitive is None else sensitive)
    )
    judge.changed += changed_figures(rows, earlier, rules)
    figures = linear_figures(asked, layout, atoms)
    quantiles = quantiles_of(rows, asked, layout, atoms, entity, rules)
    for name, (found, failing) in quantiles.items():
        figures[name] = found
        for i in failing:
            judge.fail(i, "quantile")
    for i in too_similar(asked, layout, atoms, earlier, rules):
        judge.fail(i, "differencing")
    return judge.checked(figures, ledger, total, progress)


@dataclass(frozen=True, eq=False)
class _Quantity:
    """The counts or the sums of a table, with the classes of their totals."""

    totals: Totals
    class_of: NDArray[np.int64]
    members: list[NDArray[np.int64]]  # (classes)  the atoms of each


class _Judge:
    """One table and what is known besides: which cells are unsafe and why, and what must stay uncertain."""

    def __init__(
        self,
        rules: OutputRules,
        asked: AskedTable,
        atoms: AtomTable,
        layout: CellLayout,
        earlier: list[Earlier],
        occupied: bool,
        sensitive: tuple[str, ...],
    ) -> None:
        self.rules, self.asked, self.atoms, self.layout, self.earlier = rules, asked, atoms, layout, earlier
        self.occupied, self.sensitive = occupied, sensitive
        self.changed: list[str] = []  # what shows that the data are not those of earlier releases
        self.shrunk = False  # whether a published count changed by too few persons
        published = [self._published(each) for each in earlier]
        empty = csr_array((0, len(atoms.keys)))
        same = [
            rows
            for rows, each in zip(published, earlier, strict=True)
            if each.asked.value == asked.value and each.asked.sums
        ]
        self.quantities = [self._quantity(atoms.records.astype(float), vstack([empty, *published]).tocsr(), count=True)]
        if asked.sums:
            self.quantities.append(self._quantity(atoms.sums, vstack([empty, *same]).tocsr(), count=False))
        self.why: dict[int, list[CellRule]] = {}
        for i in range(len(layout.cells)):
            found = [self._rules_failed(q, layout.atoms_in(i)) for q in range(len(self.quantities))]
            if failed := [rule for each in found for rule in each]:
                self.why[i] = list(dict.fromkeys(failed))
        for i in self._full():
            self.fail(i, "full")

    def fail(self, i: int, rule: CellRule) -> None:
        """Note that a cell fails a rule."""
        if rule not in self.why.setdefault(i, []):
            self.why[i].append(rule)

    def _published(self, earlier: Earlier) -> csr_array:
        """Return the published cells of an earlier table over the atoms, and note where it no longer agrees."""
        members, figures, gone = released_before(earlier, self.atoms)
        counts = members @ self.atoms.records.astype(float)
        then = np.array([shown.get("count", np.nan) for shown in figures])
        moved = np.abs(counts - then)
        if gone or (moved > 0).any():
            self.changed.append("count")
            self.shrunk |= bool(gone or ((moved > 0) & (moved < self.rules.min_count)).any())
        return members

    def _quantity(self, values: Floats, published: csr_array, *, count: bool) -> _Quantity:
        cells, published, class_of = merged_atoms(self.layout.members, published)
        n = cells.shape[1]
        sums = np.bincount(class_of, values, minlength=n).astype(float)
        records = np.bincount(class_of, self.atoms.records, minlength=n)
        if count:
            floors = np.where(records > 0, 1.0, 0.0) if self.occupied else np.zeros(n)
        else:
            floors = np.full(n, -np.inf if self.atoms.negative else 0.0)
        nested = sum(len(dimension) > 1 for dimension in self.asked.dimensions)
        network = len(self.asked.dimensions) <= 2 and nested <= 1 and published.shape[0] == 0
        order = np.argsort(class_of, kind="stable")
        members = np.split(order, np.cumsum(np.bincount(class_of, minlength=n))[:-1])
        return _Quantity(Totals(sums, floors, cells, published, count, network), class_of, members)

    def _rules_failed(self, q: int, atoms: NDArray[np.int64]) -> dict[CellRule, Margins]:
        """Return the rules that some atoms fail as one cell, with the distances that each asks for in a quantity.

        Where persons have several records, a count of records is a sum: everybody contributes their number of records.
        """
        found: dict[CellRule, Margins] = {}
        persons, largest, size = self.atoms.contributions(atoms, records=q == 0)
        magnitude = q > 0 or size > persons
        if self.rules.count_fails(persons):
            share = self.rules.protection / 100 * size if magnitude else 0.0
            # Whether these are enough persons, or even fewer, must stay open.
            few = (self.rules.min_count - persons, 1) if q == 0 else (0, 0)
            found["least count"] = max(few[0], share), max(few[1], share)
        if magnitude:
            found |= {rule: (level, level) for rule, level in self.rules.failing(largest, size).items()}
        if q and size == 0 and persons:  # a sum of 0 tells what everybody contributes
            level = self.rules.protection / 100 * self._mean_size * persons
            found["zero"] = level, level
        if persons == 0 and self.rules.zeros == "hide":
            found["zero"] = 1.0, 0.0
        return found

    @property
    def _mean_size(self) -> float:
        return float(self.atoms.sizes.sum() / max(1, self.atoms.records.sum()))

    def _full(self) -> list[int]:
        """Return the cells with everybody of a total over a sensitive column, where it has several groups."""
        counts = self.layout.members @ self.atoms.records
        place = {key: i for i, key in enumerate(self.layout.cells)}
        found: list[int] = []
        start = 0
        for dimension in self.asked.dimensions:
            stop = start + len(dimension)
            groups = {key[start:stop] for key, kept in self.layout.cells if kept[stop - 1]}
            if len(groups) > 1 and set(dimension) & set(self.sensitive):
                for i, (key, kept) in enumerate(self.layout.cells):
                    above = place.get(_summed(key, kept, start, stop)) if kept[start] else None
                    if above is not None and counts[i] > 0 and counts[i] == counts[above]:
                        found.append(i)
            start = stop
        return found

    # ── what must stay uncertain ─────────────────────────────────────────────────────────────────────────────

    def targets(self) -> list[ProtectedTotal]:
        """Return the cells and classes whose totals must stay uncertain, each once."""
        found: dict[tuple[int, bytes], ProtectedTotal] = {}

        def add(q: int, atoms: NDArray[np.int64], why: dict[CellRule, Margins]) -> None:
            target = self._target(q, atoms, why)
            if target is not None:
                found[q, target.classes.tobytes()] = target

        for q, quantity in enumerate(self.quantities):
            for members in quantity.members:
                add(q, members, self._rules_failed(q, members))
            for i, rules in self.why.items():
                atoms = self.layout.atoms_in(i)
                full: dict[CellRule, Margins] = {"full": (0.0, 1.0)} if q == 0 and "full" in rules else {}
                add(q, atoms, self._rules_failed(q, atoms) | full)
        return list(found.values())

    def _target(self, q: int, atoms: NDArray[np.int64], why: Mapping[CellRule, Margins]) -> ProtectedTotal | None:
        quantity = self.quantities[q]
        classes = np.unique(quantity.class_of[atoms])
        above = max((distance[0] for distance in why.values()), default=0.0)
        below = max((distance[1] for distance in why.values()), default=0.0)
        if q == 0:
            above, below = math.ceil(above - TOLERANCE), math.ceil(below - TOLERANCE)
        below = min(below, float(quantity.totals.slack[classes].sum()))
        if above <= 0 and below <= 0:
            return None
        insider = 0.0
        if len(classes) == 1 and (q or self._several):
            truth = float(quantity.totals.values[classes].sum())
            _, largest, _ = self.atoms.contributions(atoms, records=q == 0)
            insider = max(0.0, (1 + self.rules.closeness) * float(largest[0]) - abs(truth))
        return ProtectedTotal(q, classes, above, below, insider)

    @property
    def _several(self) -> bool:
        """Whether some person has several records."""
        return self.atoms.parts is not None or bool((self.atoms.records > self.atoms.persons).any())

    def _own(self, q: int) -> Floats | None:
        """Return how far each class can fall below its value in the eyes of its largest contributor.

        Somebody who is alone in a class knows all of it; the others know their own part.
        """
        if q == 0 and not self._several:
            return None
        quantity = self.quantities[q]
        own = np.empty(len(quantity.members))
        for j, members in enumerate(quantity.members):
            persons, largest, size = self.atoms.contributions(members, records=q == 0)
            own[j] = 0.0 if persons <= 1 else max(0.0, size - float(largest[0]))
        return own

    # ── the answer ───────────────────────────────────────────────────────────────────────────────────────────

    def checked(self, figures: dict[str, Floats], ledger: str | Path | None, total: str, progress: Step) -> OutputCheck:
        """Hide what has to be hidden, compute what an intruder can tell of it, and put the answer together."""
        counts = np.asarray(self.layout.members @ self.atoms.records.astype(float))
        unsafe = np.zeros(len(self.layout.cells), np.bool_)
        unsafe[list(self.why)] = True
        missing, pattern, reason = "", None, ""
        puzzle = Puzzle(
            [quantity.totals for quantity in self.quantities],
            self.targets(),
            unsafe,
            1 + np.log2(1 + counts),
            [self._own(q) for q in range(len(self.quantities))],
        )
        if self.changed:
            missing = "the data changed since earlier releases, so their differences cannot be judged"
            reason = f"published figures are different today: {', '.join(dict.fromkeys(self.changed))}"
        else:
            try:
                pattern = suppressed(puzzle, progress)
            except CannotTellError as error:
                missing = error.message
            if pattern is None and not missing:
                reason = "earlier releases alone already give away too much about some records"
        more = pattern is None or bool((pattern.hidden & ~unsafe).any())
        fails = bool(unsafe.any()) or self.shrunk or (not missing and more)
        hidden = np.ones(len(unsafe), np.bool_) if pattern is None else pattern.hidden
        ranges = self._ranges(hidden, progress) if pattern is not None else {}
        cells = [
            OutputCell(
                key,
                kept,
                bool(hidden[i]),
                {name: float(column[i]) for name, column in figures.items()},
                tuple(self.why.get(i, ())),
                ranges.get(i, {}),
            )
            for i, (key, kept) in enumerate(self.layout.cells)
        ]
        return OutputCheck(
            asked=self.asked,
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

    def _ranges(self, hidden: Flags, progress: Step) -> dict[int, dict[str, tuple[float, float]]]:
        """Return what an intruder can tell of every hidden cell: the least and the largest possible figure."""
        found: dict[int, dict[str, tuple[float, float]]] = {}
        places = np.flatnonzero(hidden)
        for q, quantity in enumerate(self.quantities):
            intruder = Intruder(quantity.totals, hidden)
            for n, i in enumerate(places):
                progress("computing ranges", n / len(places))
                classes = np.unique(quantity.class_of[self.layout.atoms_in(int(i))])
                truth = float(quantity.totals.values[classes].sum())
                scale = max(abs(truth), 1.0)
                low = truth - intruder.reach(classes, -1, scale)[0]
                high = truth + intruder.reach(classes, 1, scale)[0]
                found.setdefault(int(i), {})["sum" if q else "count"] = (low, high)
        return found


def _summed(key: tuple[str | None, ...], kept: tuple[bool, ...], start: int, stop: int) -> CellKey:
    """Return the cell that sums over one dimension."""
    over = [None if start <= j < stop else label for j, label in enumerate(key)]
    return tuple(over), tuple(keep and not start <= j < stop for j, keep in enumerate(kept))
