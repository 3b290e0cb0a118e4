"""Uniqueness: is a sample unique also unique in the population?

C. J. Skinner, M. J. Elliot, "A measure of disclosure risk for microdata", JRSS B 64(4), 2002. With a table of the
population it is counted: P(PU | SU) for the file, 1/F for a record. Without one it is estimated from how many classes
of each size the sample has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.engines.data import Data
from shoal.errors import PolicyError
from shoal.risk import superpopulation
from shoal.risk.keys import keys_of
from shoal.risk.superpopulation import SizeCounts
from shoal.tables.frequency import ClassOf, Floats, FrequencyTable


@dataclass(frozen=True, eq=False)
class CountedUniqueness:
    """Sample uniques looked up in the population."""

    sample_uniques: int
    population_uniques: int  # of the sample uniques, those alone in the population
    absent: int  # of the sample uniques, those that the population lacks; counted as alone
    risks: Floats  # (classes)  1/F
    class_of: ClassOf | None = None  # (records)  the class of each row, where rows are known

    @property
    def share(self) -> float:
        """P(PU | SU): the file-level risk."""
        return self.population_uniques / self.sample_uniques if self.sample_uniques else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "sample_uniques": self.sample_uniques,
            "population_uniques": self.population_uniques,
            "absent": self.absent,
            "share": self.share,
        }


@dataclass(frozen=True)
class EstimatedUniqueness:
    """The number of population uniques by several models; None if a model has no solution."""

    records: int
    sample_uniques: int
    sampling_fraction: float
    population_size: float
    zayatz: float
    pitman: float | None
    snb: float | None
    model: str  # the one that Dankar's rule chooses
    uniques: float  # its estimate

    @property
    def share(self) -> float:
        """Unique people as a share of the population; the same share of the sample is expected to be unique."""
        return self.uniques / self.population_size

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**asdict(self), "share": self.share}


def population_uniqueness(
    data: Data,
    quasi: Sequence[str],
    *,
    population: Data | None = None,
    sampling_fraction: float | None = None,
    population_size: float | None = None,
    weight: str | None = None,
) -> CountedUniqueness | EstimatedUniqueness:
    """Count in a table of the ``population``, or estimate.

    For an estimate say how large the sample is: as a fraction, by the size of the population, or by the column of
    sampling ``weight``, whose sum is that size.
    """
    if population is not None:
        keys = keys_of(data, quasi, population=population)
        return replace(counted_uniqueness(keys.table), class_of=keys.class_of)
    keys = keys_of(data, quasi)
    size = float(keys.weights(weight).sum()) if weight is not None else population_size
    return estimated_uniqueness(keys.table.counts, fraction_of(keys.n_records, sampling_fraction, size))


def fraction_of(n_records: int, fraction: float | None, size: float | None) -> float:
    """Return the sampling fraction, given directly or by the size of the population."""
    if (fraction is None) == (size is None):
        raise PolicyError("specify the sample size with one of: sampling_fraction, population_size, weight")
    sampling_fraction = fraction if fraction is not None else n_records / size if size else 0.0
    if not 0 < sampling_fraction <= 1:
        raise PolicyError(
            "the sampling fraction must be above 0 and at most 1",
            "the population cannot be smaller than the sample",
        )
    return sampling_fraction


def counted_uniqueness(table: FrequencyTable) -> CountedUniqueness:
    """Count in a frequency table with its population."""
    alone = table.counts == 1
    return CountedUniqueness(
        int(alone.sum()),
        int((table.people[alone] <= 1).sum()),
        int((table.people[alone] == 0).sum()),
        1 / np.maximum(table.people, 1),
    )


def estimated_uniqueness(counts: NDArray[np.int64], fraction: float) -> EstimatedUniqueness:
    """Estimate from the number of records of each class of a sample."""
    sample = SizeCounts.from_counts(counts, fraction)
    singles = sample.of_size(1)
    if fraction == 1 or not singles:  # the sample is the population; or not even the sample has a unique
        zayatz: float = singles
        pitman: float | None = singles
        snb: float | None = singles
    else:
        zayatz = superpopulation.zayatz(sample)
        pitman = superpopulation.pitman(sample)
        snb = superpopulation.slide_negative_binomial(sample)
    model, uniques = superpopulation.dankar(fraction, pitman, zayatz, snb)
    return EstimatedUniqueness(
        int(sample.n), int(singles), fraction, sample.population, zayatz, pitman, snb, model, uniques
    )
