"""Columns whose sums follow from each other, such as income = wages + capital: found in the data, judged together.

A hidden sum falls out by subtraction if the other columns of such an equation are published for the same group. So the
columns of the ledger, and those of the data that are made of them, are regressed on each other; where nothing is left
over, and the coefficients are simple numbers, the equation is one that an intruder knows as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement

import ibis
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_diag, csr_array, hstack, vstack

from shoal.engines.grouping import Groupable
from shoal.results.least_squares import solved_normal_equations
from shoal.results.output.atoms import AtomTable, atoms_of
from shoal.results.output.layout import atoms_of_rows, merged_atoms
from shoal.results.output.ledger import Earlier
from shoal.results.output.linear import Totals
from shoal.results.output.possible_groups import with_possible
from shoal.results.output.request import Feature, TableRequest
from shoal.tables.frequency import Floats

MAX_COLUMNS = 60  # of numbers in the data, besides those of the ledger: wider tables are compared in part
MAX_DENOMINATOR = 1_000  # of a coefficient: thousands of a unit, months of a year
ROUNDING = 1e-3  # of the size of a column: what rounding may leave over in an equation
MIN_SPARE_RECORDS = 10  # more than there are columns, so that no equation holds by chance


@dataclass(frozen=True, eq=False)
class LinkedColumns:
    """Columns linked by equations, the value of the table first, with the groups of records of each."""

    names: tuple[str, ...]
    atoms: tuple[AtomTable, ...]
    relations: Floats  # (equations, columns)  coefficients
    constants: Floats  # (equations)  what they add up to in every record


def linked_columns(
    rows: Groupable,
    request: TableRequest,
    earlier: Sequence[Earlier],
    features: Sequence[Feature],
    entity: str | None,
    n_largest: int,
) -> LinkedColumns | None:
    """Return the columns whose sums tell something of those of a table, given what was released; None if none do."""
    if request.value is None or not request.sums:
        return None
    released = [
        release.request.value for release in earlier if release.request.value is not None and release.request.sums
    ]
    names = list(dict.fromkeys([request.value, *released]))
    if len(names) < 2:
        return None
    unreleased = [name for name in _number_columns(rows) if name not in (*names, entity)]
    names, relations, constants = _connected([*_equations(rows, names, unreleased[:MAX_COLUMNS])], request.value)
    if len(names) < 2:
        return None
    tables = [request, *(table for release in earlier for table in release.request.implied)]
    atoms = (with_possible(atoms_of(rows, features, name, entity, n_largest), tables) for name in names)
    return LinkedColumns(tuple(names), tuple(atoms), relations, constants)


Equation = tuple[dict[str, float], float]  # the coefficients of columns, and what they add up to


def _number_columns(rows: Groupable) -> list[str]:
    return [name for name in rows.columns if rows.table[name].type().is_numeric()]


def _equations(rows: Groupable, names: Sequence[str], unreleased: Sequence[str]) -> Iterator[Equation]:
    """Yield the equations among the released columns, then those that give another column of the data."""
    products, n_records = _products(rows, names, unreleased)
    basis = [0]  # the constant, then columns that are independent
    for j, name in enumerate((*names, *unreleased), start=1):
        size = float(products[j, j])
        if size <= 0:
            continue
        combination = _combination(products, basis, j) if n_records > len(basis) + MIN_SPARE_RECORDS else None
        if combination is None:
            if j <= len(names):
                basis.append(j)
            continue
        coefficients = {names[i - 1]: -c for i, c in zip(basis[1:], combination[1:], strict=True) if c}
        # A multiple of one column is protected as that is, and a constant tells nothing.
        if j <= len(names) or len(coefficients) > 1 or (coefficients and combination[0]):
            yield coefficients | {name: 1.0}, float(combination[0])


def _products(rows: Groupable, names: Sequence[str], unreleased: Sequence[str]) -> tuple[Floats, int]:
    """Return the sums of products of the columns, a column of ones first, over records with all released columns."""
    columns = {"c0": ibis.literal(1.0)}
    columns |= {f"c{j}": rows.number(name).cast("float64") for j, name in enumerate((*names, *unreleased), start=1)}
    table = rows.table.select(**columns)
    for j in range(1, len(names) + 1):
        table = table.filter(table[f"c{j}"].notnull())
    values = [table[name].fill_null(0.0) for name in columns]
    pairs = [
        (i, j)
        for i, j in combinations_with_replacement(range(len(values)), 2)
        if i <= len(names) or i == j  # columns that were not released are never compared with each other
    ]
    sums = {f"s{i}_{j}": (values[i] * values[j]).sum() for i, j in pairs}
    fetched = rows.fetch(table.agg(n=table.count(), **sums)).to_pylist()[0]
    products = np.zeros((len(values), len(values)))
    for i, j in pairs:
        products[i, j] = products[j, i] = float(fetched[f"s{i}_{j}"] or 0.0)
    return products, int(fetched["n"] or 0)


def _combination(products: Floats, basis: Sequence[int], j: int) -> Floats | None:
    """Return the simple coefficients with which the columns of the basis make up column j; None if they do not."""
    scale = np.sqrt(np.diag(products))
    coefficients, _ = solved_normal_equations(products[np.ix_(basis, basis)], products[basis, j])
    simple = [float(Fraction(float(c)).limit_denominator(MAX_DENOMINATOR)) for c in coefficients[1:]]
    simple = [
        c if abs(c) * size > 2 * ROUNDING * scale[j] else 0.0 for c, size in zip(simple, scale[basis[1:]], strict=True)
    ]
    rounded = np.array([_without_noise(float(coefficients[0]), scale, j, products), *simple])
    whole = [*basis, j]
    difference = np.array([*-rounded, 1.0])
    left_over = float(difference @ products[np.ix_(whole, whole)] @ difference)
    smallest = min([float(scale[j]), *(abs(c) * float(scale[i]) for i, c in zip(basis[1:], simple, strict=True) if c)])
    return rounded if left_over <= (ROUNDING * smallest) ** 2 else None


def _without_noise(constant: float, scale: Floats, j: int, products: Floats) -> float:
    return constant if abs(constant) * np.sqrt(products[0, 0]) > ROUNDING * scale[j] else 0.0


def _connected(equations: Sequence[Equation], value: str) -> tuple[list[str], Floats, Floats]:
    """Return the columns that equations connect with a value, which is first, and these equations as a matrix."""
    names, size = [value], 0
    while size < len(names):
        size = len(names)
        for coefficients, _ in equations:
            if set(coefficients) & set(names):
                names += [name for name in coefficients if name not in names]
    chosen = [(coefficients, constant) for coefficients, constant in equations if set(coefficients) & set(names)]
    matrix = np.array([[coefficients.get(name, 0.0) for name in names] for coefficients, _ in chosen])
    return names, matrix.reshape(len(chosen), len(names)), np.array([constant for _, constant in chosen])


@dataclass(frozen=True, eq=False)
class EarlierSums:
    """The cells of an earlier table from which sums of a column can be worked out, over the atoms."""

    value: str
    published: csr_array
    hidden: csr_array


@dataclass(frozen=True, eq=False)
class LinkedTotals:
    """The sums of all linked columns as one quantity: its classes are pairs of a column and a class of records."""

    totals: Totals
    class_of: NDArray[np.int64]  # of each atom
    members: list[NDArray[np.int64]]  # (classes)  the atoms of each
    cells_before: list[NDArray[np.int64]]  # the atoms of the cells of earlier tables of any of these columns
    released: csr_array  # the published totals without the equations

    def classes(self, atoms: NDArray[np.int64], column: int) -> NDArray[np.int64]:
        """Return the classes of some atoms in a column."""
        return np.unique(self.class_of[atoms]) + column * len(self.members)


def linked_totals(linked: LinkedColumns, cells: csr_array, earlier: Sequence[EarlierSums]) -> LinkedTotals:
    """Return what is known of linked columns: what was published of each, and the equations within each class.

    The cells of the table show the first column.
    """
    empty = csr_array((0, cells.shape[1]))
    rows = [vstack([empty, *(e.published for e in earlier if e.value == name)]).tocsr() for name in linked.names]
    hidden = vstack([empty, *(release.hidden for release in earlier if release.value in linked.names)]).tocsr()
    before = vstack([*rows, hidden]).tocsr()
    merged, _, class_of = merged_atoms(cells, before)
    n = merged.shape[1]
    first = np.unique(class_of, return_index=True)[1]
    order = np.argsort(class_of, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(class_of, minlength=n))[:-1])
    sums = np.array([np.bincount(class_of, table.sums, minlength=n) for table in linked.atoms])
    sizes = np.array([np.bincount(class_of, table.sizes, minlength=n) for table in linked.atoms])
    counts = np.bincount(class_of, linked.atoms[0].records, minlength=n)
    equations = [block_diag([part.tocsc()[:, first] for part in rows], format="csr")]
    for row, constant in zip(linked.relations, linked.constants, strict=True):
        # Records with missing values may leave an equation open.
        near = 2 * ROUNDING * np.max(np.where(row[:, None] != 0, np.abs(row[:, None]) * sizes, 0.0), axis=0)
        holds = np.flatnonzero(np.abs(row @ sums - constant * counts) <= near)
        chosen = csr_array((np.ones(len(holds)), (np.arange(len(holds)), holds)), shape=(len(holds), n))
        equations.append(hstack([chosen * c for c in row], format="csr"))
    floors = np.concatenate([np.full(n, -np.inf if table.negative else 0.0) for table in linked.atoms])
    wide = hstack([merged, csr_array((merged.shape[0], n * (len(linked.names) - 1)))], format="csr")
    everything = vstack(equations).tocsr()
    everything.eliminate_zeros()
    totals = Totals(sums.ravel(), floors, csr_array(wide), csr_array(everything), integer=False, linked=True)
    return LinkedTotals(totals, class_of, members, atoms_of_rows(before), csr_array(equations[0]))
