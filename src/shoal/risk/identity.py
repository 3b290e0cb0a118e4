"""Identity disclosure by counting: prosecutor, journalist and marketer risk.

The prosecutor knows that the person is in the table and guesses among the n_E records of the class; the journalist
does not, and guesses among the N_E people of the population with the same key; the marketer tries everybody and
counts how many guesses are right.
K. El Emam, "Guide to the De-Identification of Personal Health Information", CRC Press 2013.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.engines.data import Data
from shoal.errors import PolicyError
from shoal.risk.keys import keys_of
from shoal.tables.frequency import ClassOf, Floats, FrequencyTable

THRESHOLDS = (0.01, 0.02, 0.05, 0.1, 0.2, 1 / 3, 0.5, 1.0)


@dataclass(frozen=True)
class Band:
    """Records whose risk lies in (``above``, ``upto``]."""

    above: float
    upto: float
    records: int
    share: float


@dataclass(frozen=True)
class Chance:
    """One intruder's probability of being right about a record."""

    max: float  # the record most at risk
    mean: float  # over all records: the share of right guesses where everybody is tried
    bands: tuple[Band, ...]  # from the least risk to 1


@dataclass(frozen=True, eq=False)
class IdentityRisk:
    """The probability that a record is re-identified."""

    records: int
    classes: int
    uniques: int  # records alone with their key
    prosecutor: Chance
    marketer: float  # classes ÷ records
    journalist: Chance | None  # None without a population
    prosecutor_risks: Floats  # (classes)  1/n_E
    journalist_risks: Floats | None  # (classes)  1/N_E
    counts: NDArray[np.int64]  # (classes)
    class_of: ClassOf | None = None  # (records)  the class of each row, where rows are known

    def at_risk(self, threshold: float) -> float:
        """Return the share of records whose prosecutor risk is above ``threshold``."""
        return float(self.counts[self.prosecutor_risks > threshold].sum() / self.records)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "records": self.records,
            "classes": self.classes,
            "uniques": self.uniques,
            "prosecutor": asdict(self.prosecutor),
            "marketer": self.marketer,
            "journalist": None if self.journalist is None else asdict(self.journalist),
        }


def identity_risk(
    data: Data,
    quasi: Sequence[str],
    *,
    population: Data | None = None,
    entity: str | None = None,
    thresholds: Sequence[float] = THRESHOLDS,
) -> IdentityRisk:
    """Compute the risks of a table; ``entity`` names the column that identifies people with several records."""
    keys = keys_of(data, quasi, entity=entity, population=population)
    return replace(table_identity_risk(keys.table, thresholds), class_of=keys.class_of)


def table_identity_risk(table: FrequencyTable, thresholds: Sequence[float] = THRESHOLDS) -> IdentityRisk:
    """Compute the same from a frequency table, with its population if it has one."""
    edges = sorted({0.0, *thresholds, 1.0})
    if edges[0] < 0 or edges[-1] > 1:
        raise PolicyError("thresholds: a risk must be between 0 and 1")
    prosecutor = 1 / table.persons
    # The key occurs in the sample but not in the population: the population is not complete, and
    # the only one known is the record itself.
    journalist = None if table.population is None else 1 / np.maximum(table.people, 1)
    return IdentityRisk(
        table.n_records,
        table.n_classes,
        int(table.counts[table.persons == 1].sum()),
        _guess(prosecutor, table.counts, edges),
        table.n_classes / table.n_records if table.n_records else 0.0,
        None if journalist is None else _guess(journalist, table.counts, edges),
        prosecutor,
        journalist,
        table.counts,
    )


def _guess(risks: Floats, counts: NDArray[np.int64], edges: Sequence[float]) -> Chance:
    n = int(counts.sum())
    upto = np.array([int(counts[risks <= edge].sum()) for edge in edges])
    bands = tuple(
        Band(low, high, int(records), float(records / n) if n else 0.0)
        for (low, high), records in zip(pairwise(edges), np.diff(upto), strict=True)
    )
    return Chance(float(risks.max(initial=0.0)), float(risks @ counts / n) if n else 0.0, bands)
