"""The cells of a table with all its totals, as sets of atoms, and the classes that no cell tells apart."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from shoal.errors import PolicyError
from shoal.results.output.atoms import AtomTable
from shoal.results.output.ledger import Earlier
from shoal.results.output.linear import Flags
from shoal.results.output.request import Key, TableRequest

MAX_CELLS = 50_000

CellKey = tuple[Key, tuple[bool, ...]]  # labels (None where the column is summed over), and which columns are kept


@dataclass(frozen=True, eq=False)
class CellLayout:
    """Cells and the atoms that each is the sum of."""

    cells: list[CellKey]
    members: csr_array  # (cells, atoms)

    def atoms_in(self, i: int) -> NDArray[np.int64]:
        """Return the atoms of a cell."""
        return np.asarray(self.members.indices[self.members.indptr[i] : self.members.indptr[i + 1]], dtype=np.int64)


def inside(request: TableRequest, atoms: AtomTable, dropped: Collection[str] = ()) -> Flags:
    """Return which atoms a table is about; ``without`` are columns whose conditions are dropped."""
    holds = np.ones(len(atoms.codes), np.bool_)
    for feature in request.insides:
        if feature.present or feature.non_null or feature.source not in dropped:
            holds &= atoms.holds(feature)
    return holds


def group_numbers(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a number for each row, the same for equal rows, in their order."""
    numbers = np.zeros(len(codes), np.int64)
    for column in codes.T:
        numbers = np.unique(numbers * (int(column.max(initial=0)) + 1) + column, return_inverse=True)[1]
    return numbers


def laid_out(request: TableRequest, atoms: AtomTable) -> CellLayout:
    """Return every cell that has atoms: each group, each total over a dimension or a nested column, the grand total."""
    about = np.flatnonzero(inside(request, atoms))
    columns = [atoms.features.index(request.feature(name)) for name in request.names]
    cells: list[CellKey] = []
    rows: list[NDArray[np.int64]] = []
    for depth in request.depths if len(about) else ():
        kept_columns = tuple(request.kept_columns(depth))
        chosen = [j for j, keep in zip(columns, kept_columns, strict=True) if keep]
        group = group_numbers(atoms.codes[about][:, chosen])
        rows.append(group + len(cells))
        first = np.unique(group, return_index=True)[1]
        if len(cells) + len(first) > MAX_CELLS:
            raise PolicyError(f"the table has over {MAX_CELLS} cells, too many to judge", "group by fewer columns")
        named = [
            [atoms.labels[j][i] if keep else None for i in atoms.codes[about[first], j]]
            for j, keep in zip(columns, kept_columns, strict=True)
        ]
        cells += [(key, kept_columns) for key in (zip(*named, strict=True) if named else [()])]
    where = np.concatenate(rows) if rows else np.zeros(0, np.int64)
    entries = (np.ones(len(where)), (where, np.tile(about, len(rows))))
    members = csr_array(entries, shape=(len(cells), len(atoms.codes)))
    members.sort_indices()
    return CellLayout(cells, members)


def released_before(earlier: Earlier, atoms: AtomTable) -> tuple[csr_array, list[dict[str, float]], int]:
    """Return the published cells of an earlier table over the atoms, their figures, and how many no longer exist."""
    layout = laid_out(earlier.request, atoms)
    index_of = {key: i for i, key in enumerate(layout.cells)}
    present = [(index_of[key], published) for key, published in earlier.figures.items() if key in index_of]
    # A published zero of a group that is not even possible any more says nothing about the others.
    vanished = sum(1 for key, published in earlier.figures.items() if key not in index_of and any(published.values()))
    members, figures = [layout.members[[i for i, _ in present]]], [published for _, published in present]
    for table in earlier.request.implied[1:]:
        finer = laid_out(table, atoms)
        inner = [
            i
            for i, (key, kept_columns) in enumerate(finer.cells)
            if all(kept_columns) and (key[:-1], kept_columns[:-1]) in index_of
        ]
        inner = [i for i in inner if (finer.cells[i][0][:-1], finer.cells[i][1][:-1]) in earlier.figures]
        members.append(finer.members[inner])
        figures += [{} for _ in inner]
    return vstack(members).tocsr(), figures, vanished


def families_of(cells: Sequence[CellKey], sizes: Sequence[int]) -> list[tuple[int, list[int]]]:
    """Return each cell that others add up to, with these, for every dimension that tells them apart.

    ``sizes`` are the numbers of columns of the dimensions.
    """
    index = {key: i for i, key in enumerate(cells)}
    families: dict[tuple[int, int], list[int]] = {}
    for i, (labels, kept_columns) in enumerate(cells):
        start = 0
        for size in sizes:
            depth = sum(kept_columns[start : start + size])
            if depth:
                last = start + depth - 1
                wider = tuple(keep and j != last for j, keep in enumerate(kept_columns))
                total = tuple(None if j == last else label for j, label in enumerate(labels))
                families.setdefault((start, index[total, wider]), []).append(i)
            start += size
    return [(parent, children) for (_, parent), children in families.items()]


def hidden_before(earlier: Earlier, atoms: AtomTable) -> csr_array:
    """Return the cells of an earlier table that were hidden over the atoms: they must stay as uncertain as they were.

    So must what a published total shows of several of them together. Of regressions, hidden groups have no figures
    that could have been told.
    """
    if earlier.request.on:
        return csr_array((0, len(atoms.codes)))
    layout = laid_out(earlier.request, atoms)
    hidden = [i for i, key in enumerate(layout.cells) if key not in earlier.figures]
    rows = [layout.members[hidden]]
    for parent, children in families_of(layout.cells, [len(dimension) for dimension in earlier.request.dimensions]):
        together = [i for i in children if layout.cells[i] not in earlier.figures]
        if len(together) > 1 and layout.cells[parent] in earlier.figures:
            rows.append(csr_array(layout.members[together].sum(axis=0).reshape(1, -1)))
    return vstack(rows).tocsr()


def atoms_of_rows(cells: csr_array) -> list[NDArray[np.int64]]:
    """Return the atoms of each cell that has some."""
    if not cells.nnz:
        return []
    return [atoms for atoms in np.split(cells.indices.astype(np.int64), cells.indptr[1:-1]) if len(atoms)]


def merged_atoms(cells: csr_array, published: csr_array) -> tuple[csr_array, csr_array, NDArray[np.int64]]:
    """Merge atoms that are in the same cells: return both matrices over the classes, and the class of each atom."""
    stacked = vstack([cells, published]).tocsc()
    stacked.sort_indices()
    classes: dict[bytes, int] = {}
    class_of = np.empty(stacked.shape[1], np.int64)
    for j in range(stacked.shape[1]):
        signature = stacked.indices[stacked.indptr[j] : stacked.indptr[j + 1]].tobytes()
        class_of[j] = classes.setdefault(signature, len(classes))
    first = np.unique(class_of, return_index=True)[1]
    return cells.tocsc()[:, first].tocsr(), published.tocsc()[:, first].tocsr(), class_of
