"""SUDA2: special uniques, records that a few columns are enough to identify.

M. J. Elliot, A. M. Manning, R. W. Ford, "A computational algorithm for handling the special uniques problem",
International Journal of Uncertainty, Fuzziness and Knowledge-Based Systems 10(5), 2002; A. M. Manning, D. J. Haglin,
J. A. Keane, "A recursive search algorithm for statistical disclosure assessment", Data Mining and Knowledge Discovery
16, 2008; M. J. Elliot, "Integrating file and record level disclosure risk assessment", 2002 (DIS-SUDA).
Finds  all minimal sample uniques (MSU): sets of columns on which a record is alone, and on no part of which it is.
Costs  one grouping for each set of columns on which some record could still become unique for the first time.

Sets go by size, each built on those one smaller. A record that is alone on a part of a set is alone on the set, and
cannot keep anybody company there: it is left out. So is a class in which nobody can ever become unique. What is left
over and stands alone is alone for the first time, which is what minimal means; nothing has to be compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.grouping import group
from shoal.engines.data import Data
from shoal.errors import PolicyError
from shoal.risk.keys import keys_of, matched
from shoal.tables.frequency import ClassOf, Floats, FrequencyTable, RowNumbers, packed
from shoal.tables.wildcard import Nulls


@dataclass(frozen=True, eq=False)
class SpecialUniques:
    """Scores of the classes; 0 for all but sample uniques."""

    columns: tuple[str, ...]
    scores: Floats  # (classes)
    dis: Floats  # (classes)  DIS-SUDA: the chance that a unique match is right
    contributions: Floats  # (classes, columns)  the share of the score from MSU with the column
    sizes: NDArray[np.int64]  # (classes, columns)  how many MSU have 1, 2, … columns
    table: FrequencyTable
    class_of: ClassOf | None = None  # (records)  the class of each row, where rows are known
    texts: tuple[tuple[str | None, ...], ...] = ()  # of each column, the values by code

    @property
    def n_special(self) -> int:
        """The number of records with an MSU."""
        return int((self.scores > 0).sum())

    @property
    def msu(self) -> int:
        """The number of minimal sample uniques."""
        return int(self.sizes.sum())

    @property
    def by_column(self) -> Mapping[str, float]:
        """The share of all scores from MSUs with the column; an MSU has several columns, so the sum exceeds 1."""
        total = self.scores.sum()
        of_column = self.scores @ self.contributions
        return {name: float(part / total) if total else 0.0 for name, part in zip(self.columns, of_column, strict=True)}

    def by_value(self, column: str) -> Mapping[str | None, float]:
        """The distribution of a column's contribution over its values; these are values of the data."""
        j = self.columns.index(column)
        parts = np.bincount(self.table.codes[:, j], self.scores * self.contributions[:, j])
        total = parts.sum()
        return {self.texts[j][code]: float(parts[code] / total) for code in np.flatnonzero(parts)}

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "records": self.table.n_records,
            "special": self.n_special,
            "msu": self.msu,
            "msu_by_size": {str(size): int(n) for size, n in enumerate(self.sizes.sum(axis=0), start=1) if n},
            "max_score": float(self.scores.max(initial=0.0)),
            "max_dis": float(self.dis.max(initial=0.0)),
            "by_column": dict(self.by_column),
        }


def suda(
    data: Data,
    quasi: Sequence[str],
    *,
    max_size: int | None = None,
    sampling_fraction: float = 0.01,
    nulls: Nulls = "category",
) -> SpecialUniques:
    """Find the special uniques of a table, with MSUs of at most ``max_size`` columns (default: all).

    ``sampling_fraction`` is what DIS needs. With ``nulls="wildcard"`` a null keeps everybody company.
    """
    keys = keys_of(data, quasi)
    texts = tuple((*keys.engine.coded(name).texts, None) for name in keys.table.columns)
    uniques = special_uniques(keys.table, max_size=max_size, sampling_fraction=sampling_fraction, nulls=nulls)
    return replace(uniques, class_of=keys.class_of, texts=texts)


def special_uniques(
    table: FrequencyTable,
    *,
    max_size: int | None = None,
    sampling_fraction: float = 0.01,
    nulls: Nulls = "category",
) -> SpecialUniques:
    """Compute the same from a frequency table."""
    M = len(table.columns)
    if max_size is not None and max_size < 1:
        raise PolicyError("max_size: must be at least 1")
    if not 0 < sampling_fraction < 1:
        raise PolicyError("sampling_fraction: must be above 0 and below 1")
    sizes = np.zeros((table.n_classes, M), np.int64)
    parts = np.zeros((table.n_classes, M))
    shared = matched(table, table.counts[None].astype(float), nulls=nulls)[0]
    for columns, rows in minimal_uniques(table, shared == 1, max_size or M, nulls):
        sizes[rows, len(columns) - 1] += 1
        parts[np.ix_(rows, np.array(columns))] += factorial(M - len(columns))
    scores = sizes @ np.array([float(factorial(M - size)) for size in range(1, M + 1)])
    contributions = np.divide(parts, scores[:, None], out=np.zeros_like(parts), where=scores[:, None] > 0)
    # Where nulls match anything two records may share a key with each other and with a third; pairs are then those
    # records that share their key with one other.
    in_pairs = int(table.counts[shared == 2].sum())
    dis = _dis(scores, in_pairs, M, sampling_fraction)
    return SpecialUniques(table.columns, scores, dis, contributions, sizes, table)


def _dis(scores: Floats, in_pairs: int, M: int, fraction: float) -> Floats:
    """1 / (1 + [2 n₂ (1−d)/d] / (scoreᵠ Σ score⁻ᵠ)) with q = 1 + (8−M)/20 and n₂ pairs of records with the same key."""
    special = scores > 0
    power = scores[special] ** (1 + (8 - M) / 20)
    out = np.zeros(len(scores))
    out[special] = 1 / (1 + in_pairs * (1 - fraction) / fraction / (power * (1 / power).sum()))
    return out


def minimal_uniques(
    table: FrequencyTable, unique: NDArray[np.bool_], max_size: int, nulls: Nulls = "category"
) -> Iterator[tuple[tuple[int, ...], RowNumbers]]:
    """Return sets of columns and the classes of which each is an MSU; ``unique`` classes are unique overall.

    Bits, one per class, hold who is left of each set of the last size.
    """
    n = table.n_classes
    left: dict[tuple[int, ...], NDArray[np.uint8]] = {(): np.packbits(np.ones(n, np.bool_))}
    for size in range(1, min(max_size, len(table.columns)) + 1):
        smaller, left = left, {}
        for columns in combinations(range(len(table.columns)), size):
            bits = [smaller[part] for part in combinations(columns, size - 1) if part in smaller]
            if len(bits) < size:
                continue  # no class is left for some subset
            rows = np.flatnonzero(np.unpackbits(np.bitwise_and.reduce(bits), count=n))
            if not unique[rows].any():
                continue
            alone, remaining = _split_by_uniqueness(table, rows, columns, unique, nulls)
            if len(alone):
                yield columns, alone
            if len(remaining):
                mask = np.zeros(n, np.bool_)
                mask[remaining] = True
                left[columns] = np.packbits(mask)


def _split_by_uniqueness(
    table: FrequencyTable, rows: RowNumbers, columns: tuple[int, ...], unique: NDArray[np.bool_], nulls: Nulls
) -> tuple[RowNumbers, RowNumbers]:
    """Return the classes that are unique on ``columns``, and those that are not but share with one that can be."""
    codes = table.codes[rows][:, columns]
    counts = np.stack([table.counts[rows], unique[rows]]).astype(float)
    if nulls == "category":
        class_of, firsts = group(packed(codes))
        records, hopeful = (np.bincount(class_of, part, minlength=len(firsts))[class_of] for part in counts)
    else:
        part = FrequencyTable(
            tuple(table.columns[j] for j in columns),
            codes,
            table.counts[rows],
            nulls=tuple(table.nulls[j] for j in columns),
        )
        records, hopeful = matched(part, counts, nulls=nulls)
    return rows[records == 1], rows[(records > 1) & (hopeful > 0)]
