"""FrequencyTable: the distinct quasi-identifier tuples, with their counts and sensitive values.

It contains everything about a table that matters for anonymity; rows stay in the engines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.grouping import group, sum_by_class
from shoal.compiled.histograms import merge_histograms, take_histograms
from shoal.compiled.leaves import records_by_leaf
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.notation.same_values import numbered_meanings

Codes = NDArray[np.int32]
Counts = NDArray[np.int64]
ClassOf = NDArray[np.int64]
RowNumbers = NDArray[np.int64]
Floats = NDArray[np.float64]

SHORT = 1 << 16  # rows that NumPy sorts sooner than a loop is loaded


@dataclass(frozen=True, eq=False)
class Domain:
    """The values of a sensitive column in order, and how often each occurs in the whole table."""

    column: str
    texts: tuple[str | None, ...]
    whole: Counts
    numbers: NDArray[np.float64] | None = None  # the values as numbers, if all of them are
    hierarchy: Codes | None = None  # (levels, values) codes along the column's hierarchy, if it has one
    # How far each number is from the least, in a unit of their own: exact before it is rounded, as 2^53 + 1 is not.
    offsets: NDArray[np.float64] | None = None

    def __repr__(self) -> str:
        # Texts are values from the data, and printed objects are logged.
        return f"<Domain of {self.column!r}: {len(self.texts)} values>"

    @property
    def places(self) -> NDArray[np.float64] | None:
        """The positions of the numbers, up to origin and unit; distances are computed from these."""
        return self.numbers if self.offsets is None else self.offsets

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """q: the distribution of the whole table."""
        return np.asarray(self.whole / self.whole.sum())

    @cached_property
    def informative(self) -> Codes | None:
        """The value that each text says, and −1 for a text that says nothing; None if all say different ones."""
        values = numbered_meanings(self.texts)
        return None if (values == np.arange(len(values))).all() else values

    def restricted(self, present: NDArray[np.bool_], whole: Counts) -> Domain:
        """Return only the values ``present``, compared with another whole."""
        return Domain(
            self.column,
            tuple(text for text, is_present in zip(self.texts, present, strict=True) if is_present),
            whole[present],
            None if self.numbers is None else self.numbers[present],
            None if self.hierarchy is None else self.hierarchy[:, present],
            None if self.offsets is None else self.offsets[present],
        )


@dataclass(frozen=True, eq=False)
class Histogram:
    """Which values occur in each class, and how often: sparse rows, one per class."""

    starts: Counts  # (classes + 1)  class i owns entries starts[i] … starts[i+1]
    values: Codes  # (entries)
    counts: Counts  # (entries)
    n_values: int
    domain: Domain | None = None  # None if the values are persons, not a sensitive column

    @property
    def n_classes(self) -> int:
        """The number of rows of the histogram."""
        return len(self.starts) - 1

    @property
    def class_of_entry(self) -> ClassOf:
        """The class that each entry belongs to."""
        return np.repeat(np.arange(self.n_classes), np.diff(self.starts))

    def merged(self, class_of: ClassOf, n_classes: int) -> Histogram:
        """Return the histogram after row ``i`` joins class ``class_of[i]``; rows of class −1 are left out."""
        merged = merge_histograms(self.starts, self.values, self.counts, class_of, n_classes, self.n_values)
        return Histogram(*merged, self.n_values, self.domain)

    @cached_property
    def informative(self) -> Histogram:
        """The values that the texts say, in one spelling each; a class may have none, if its texts say nothing."""
        of_text = None if self.domain is None else self.domain.informative
        if of_text is None:
            return self
        value_of = of_text[self.values]
        is_informative = value_of >= 0
        n_values = int(of_text.max(initial=-1)) + 1
        return Histogram.counted(
            self.class_of_entry[is_informative],
            value_of[is_informative],
            self.n_classes,
            n_values,
            None,
            self.counts[is_informative],
        )

    def selected(self, rows: NDArray[np.int64]) -> Histogram:
        """Return the given rows in that order; repetitions are allowed."""
        entries = take_histograms(self.starts, self.values, self.counts, rows)
        return Histogram(*entries, self.n_values, self.domain)

    def dense(self, first: int, last: int) -> NDArray[np.float64]:
        """Return classes ``first`` … ``last`` as a matrix of counts, one column per value."""
        out = np.zeros((last - first, self.n_values))
        entries = slice(self.starts[first], self.starts[last])
        row = np.repeat(np.arange(last - first), np.diff(self.starts[first : last + 1]))
        out[row, self.values[entries]] = self.counts[entries]
        return out

    @staticmethod
    def counted(
        class_of: ClassOf,
        values: Codes,
        n_classes: int,
        n_values: int,
        domain: Domain | None,
        weights: Counts | None = None,
    ) -> Histogram:
        """Count the ``values`` of records in the classes ``class_of``; a record may represent several."""
        starts = np.arange(len(values) + 1)
        n_records = np.ones(len(values), np.int64) if weights is None else weights
        records = Histogram(starts, values, n_records, n_values, domain)
        return records.merged(class_of, n_classes)


@dataclass(frozen=True, eq=False)
class FrequencyTable:
    """Distinct quasi-identifier tuples, with their counts and sensitive values."""

    columns: tuple[str, ...]
    codes: Codes  # (classes, columns)  one row per equivalence class, codes of the hierarchy's leaves
    counts: Counts  # (classes)           records in the class
    sensitive: Mapping[str, Histogram] = field(default_factory=dict)  # per sensitive column, its values in each class
    entities: Histogram | None = None  # the persons in each class, if one person has several records
    hierarchies: tuple[Hierarchy, ...] = ()  # of each column; empty for a table of released values
    population: Counts | None = None  # per class, the people of a population with the same tuple
    absent: int = 0  # population classes without anyone in the table
    nulls: tuple[int | None, ...] = ()  # the code of the null in each column, for released values and neighbourhoods
    own_counts: Counts | None = None  # of a neighbourhood, the records of the class itself

    @property
    def n_records(self) -> int:
        """The number of records, not of classes."""
        return int(self.counts.sum())

    @property
    def n_classes(self) -> int:
        """The number of distinct tuples."""
        return len(self.counts)

    @cached_property
    def leaf_counts(self) -> list[Counts]:
        """The number of records with each leaf, per column; the columns have hierarchies."""
        return records_by_leaf(self.codes, self.counts, [len(hierarchy.leaves) for hierarchy in self.hierarchies])

    @property
    def persons(self) -> Counts:
        """The number of respondents in each class: distinct entities, or records if each is a person."""
        return self.counts if self.entities is None else np.diff(self.entities.starts)

    @property
    def people(self) -> Counts:
        """The number of people of the population with the tuple of each class."""
        if self.population is None:
            raise TypeError("no population was counted")
        return self.population

    def merged(self, class_of: ClassOf, n_classes: int, codes: Codes) -> FrequencyTable:
        """Return the table after row ``i`` joins class ``class_of[i]``, which has ``codes``."""
        return replace(
            self,
            codes=codes,
            counts=sum_by_class(self.counts, class_of, n_classes),
            sensitive={name: h.merged(class_of, n_classes) for name, h in self.sensitive.items()},
            entities=self.entities and self.entities.merged(class_of, n_classes),
            population=None if self.population is None else sum_by_class(self.population, class_of, n_classes),
        )

    def recoded(self, codes: Codes) -> FrequencyTable:
        """Return the table after row ``i`` becomes ``codes[i]``; rows that are equal then are merged."""
        class_of, firsts = group(packed(codes))
        return self.merged(class_of, len(firsts), codes[firsts])

    def selected(self, rows: NDArray[np.int64]) -> FrequencyTable:
        """Return only the given classes; the distribution of the whole table stays the reference."""
        return FrequencyTable(  # every node of a lattice does this: ``replace`` would take twice as long
            self.columns,
            self.codes[rows],
            self.counts[rows],
            {name: h.selected(rows) for name, h in self.sensitive.items()},
            self.entities and self.entities.selected(rows),
            self.hierarchies,
            None if self.population is None else self.population[rows],
            self.absent,
            self.nulls,
            None if self.own_counts is None else self.own_counts[rows],
        )


def among(codes: Codes, tuples: Codes) -> NDArray[np.bool_]:
    """Return which rows of ``codes`` are one of ``tuples``."""
    keys = packed(np.concatenate([codes, tuples]))
    return np.isin(keys[: len(codes)], keys[len(codes) :])


def unique_patterns(marked: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], ClassOf]:
    """Return the distinct rows of marks in their order, and which of them each row is."""
    _, first, pattern_of = np.unique(packed(marked), return_index=True, return_inverse=True)
    return marked[first], pattern_of


def packed(codes: Codes | NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Return one word per row; words are equal exactly if the rows are, and sort in the same order.

    Columns share the bits of the word, the first column in the highest bits; if 64 bits are not enough, the columns so
    far are replaced by their ranks, which need no more bits than there are rows.
    """
    keys = np.zeros(len(codes), np.uint64)
    n_bits = 0
    for column, bits in zip(codes.T, _bits(codes), strict=True):
        if n_bits + bits > 64:
            keys = np.unique(keys, return_inverse=True)[1].astype(np.uint64)
            n_bits = len(codes).bit_length()
        np.left_shift(keys, np.uint64(bits), out=keys)
        np.bitwise_or(keys, column, out=keys, dtype=np.uint64, casting="unsafe")
        n_bits += bits
    return keys


def _bits(codes: Codes | NDArray[np.bool_]) -> list[int]:
    """Return how many bits the largest code of each column has."""
    return [int(column.max(initial=0)).bit_length() for column in codes.T]


def _sorted_classes(keys: NDArray[np.uint64]) -> tuple[ClassOf, NDArray[np.int64]]:
    """Number equal keys alike, in the order of the keys; return the class of each key, and a key of each class."""
    if len(keys) < SHORT:  # not worth a compiled loop
        _, firsts, class_of = np.unique(keys, return_index=True, return_inverse=True)
        return class_of, firsts
    class_of, firsts = group(keys)
    order = np.argsort(keys[firsts])
    rank = np.empty(len(firsts), np.int64)
    rank[order] = np.arange(len(firsts))
    return rank[class_of], firsts[order]


def count_records(
    columns: tuple[str, ...],
    codes: Codes,
    sensitive: Mapping[Domain, Codes],
    entities: Codes | None = None,
    hierarchies: tuple[Hierarchy, ...] = (),
    *,
    separately: bool = False,
    weights: Counts | None = None,
) -> tuple[FrequencyTable, ClassOf]:
    """Count records into a frequency table, and return the class of each record.

    Classes come sorted by their codes, so that nothing downstream depends on the order of the records. ``separately``:
    records that differ in a sensitive value or a person are counted apart, so that a row has one of each.
    ``weights``: how many equal records each one represents, if an engine has counted them already.
    """
    separating = [*sensitive.values(), *([] if entities is None else [entities])] if separately else []
    keys = packed(np.column_stack([codes, *separating]) if separating else codes)  # which sort as the rows of codes do
    class_of, firsts = _sorted_classes(keys)
    n_classes = len(firsts)
    histogram = partial(Histogram.counted, class_of, n_classes=n_classes, weights=weights)
    table = FrequencyTable(
        columns,
        np.ascontiguousarray(codes[firsts], np.int32),
        np.bincount(class_of, minlength=n_classes) if weights is None else sum_by_class(weights, class_of, n_classes),
        {d.column: histogram(v, n_values=len(d.texts), domain=d) for d, v in sensitive.items()},
        None if entities is None else histogram(entities, n_values=int(entities.max()) + 1, domain=None),
        hierarchies,
    )
    return table, class_of
