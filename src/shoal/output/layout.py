"""The cells of a table with all its totals, as sets of atoms, and the classes that no cell tells apart."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from shoal.errors import PolicyError
from shoal.output.asked import AskedTable, Key
from shoal.output.atoms import AtomTable
from shoal.output.ledger import Earlier

MOST_CELLS = 50_000

CellKey = tuple[Key, tuple[bool, ...]]  # labels (None where the column is summed over), and which columns are kept


@dataclass(frozen=True, eq=False)
class CellLayout:
    """Cells and the atoms that each is the sum of."""

    cells: list[CellKey]
    members: csr_array  # (cells, atoms)

    def atoms_in(self, i: int) -> NDArray[np.int64]:
        """Return the atoms of a cell."""
        return np.asarray(self.members.indices[self.members.indptr[i] : self.members.indptr[i + 1]], dtype=np.int64)


def leaves(asked: AskedTable, atoms: AtomTable) -> tuple[list[Key], NDArray[np.bool_]]:
    """Return the labels of each atom in the columns to group by, and which atoms the table is about."""
    labels = [atoms.column(asked.feature(name)) for name in asked.names]
    keys: list[Key] = [*zip(*labels, strict=True)] if labels else [()] * len(atoms.keys)
    if asked.inside is None:
        return keys, np.ones(len(keys), np.bool_)
    return keys, np.array([label == "1" for label in atoms.column(asked.inside)], np.bool_)


def laid_out(asked: AskedTable, atoms: AtomTable) -> CellLayout:
    """Return every cell that has atoms: each group, each total over a dimension or a nested column, the grand total."""
    keys, inside = leaves(asked, atoms)
    places: dict[CellKey, list[int]] = {}
    for depth in asked.depths:
        kept = tuple(asked.kept(depth))
        for i in np.flatnonzero(inside):
            key = tuple(label if keep else None for label, keep in zip(keys[i], kept, strict=True))
            places.setdefault((key, kept), []).append(int(i))
    if len(places) > MOST_CELLS:
        raise PolicyError(f"the table has {len(places)} cells, too many to judge", "group by fewer columns")
    sizes = [len(members) for members in places.values()]
    columns = np.array([i for members in places.values() for i in members], np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    members = csr_array((np.ones(len(columns)), columns, starts), shape=(len(places), len(keys)))
    return CellLayout(list(places), members)


def with_empty_cells(asked: AskedTable, atoms: AtomTable) -> AtomTable:
    """Add an empty atom for every group of a table of counts that has no records: its 0 is published too."""
    keys, inside = leaves(asked, atoms)
    there = {key for key, there in zip(keys, inside, strict=True) if there}
    if not there:
        return atoms
    dimensions: list[list[Key]] = []
    start = 0
    for dimension in asked.dimensions:
        stop = start + len(dimension)
        dimensions.append(list(dict.fromkeys(key[start:stop] for key in there)))  # only nestings that occur
        start = stop
    n = int(np.prod([len(labels) for labels in dimensions], dtype=float))
    if n > MOST_CELLS:
        raise PolicyError(f"the table has {n} cells, too many to judge", "group by fewer columns")
    empty = [key for parts in product(*dimensions) if (key := tuple(x for part in parts for x in part)) not in there]
    order = [asked.features.index(feature) for feature in atoms.features]
    return atoms.with_empty([tuple((*key, "1")[j] for j in order) for key in empty])


def released_before(earlier: Earlier, atoms: AtomTable) -> tuple[csr_array, list[dict[str, float]], int]:
    """Return the published cells of an earlier table over the atoms, their figures, and how many no longer exist."""
    layout = laid_out(earlier.asked, atoms)
    place = {key: i for i, key in enumerate(layout.cells)}
    found = [(place[key], shown) for key, shown in earlier.figures.items() if key in place]
    # A published zero of a group without records says nothing about the atoms that there are.
    gone = sum(1 for key, shown in earlier.figures.items() if key not in place and any(shown.values()))
    return layout.members[[i for i, _ in found]], [shown for _, shown in found], gone


def merged_atoms(cells: csr_array, published: csr_array) -> tuple[csr_array, csr_array, NDArray[np.int64]]:
    """Merge atoms that are in the same cells: return both matrices over the classes, and the class of each atom."""
    both = vstack([cells, published]).tocsc()
    both.sort_indices()
    classes: dict[bytes, int] = {}
    class_of = np.empty(both.shape[1], np.int64)
    for j in range(both.shape[1]):
        signature = both.indices[both.indptr[j] : both.indptr[j + 1]].tobytes()
        class_of[j] = classes.setdefault(signature, len(classes))
    first = np.unique(class_of, return_index=True)[1]
    return cells.tocsc()[:, first].tocsr(), published.tocsc()[:, first].tocsr(), class_of
