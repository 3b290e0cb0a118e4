"""Attribute disclosure as a change of belief: what an intruder believes before and after seeing the release.

α is the belief in a person's sensitive value before the table, β after its distribution in the whole table, γ after
the class of the person was found. ℓ-diversity keeps γ near α, t-closeness γ near β. Each belief is that in the value
which the record really has: a gain is what the intruder learns about the truth.
A. Machanavajjhala et al., "ℓ-diversity", ICDE 2006; N. Li, T. Li, S. Venkatasubramanian, "t-closeness", ICDE 2007.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.engines.data import Data
from shoal.errors import PolicyError
from shoal.models.diversity import shares
from shoal.risk.keys import keys_of
from shoal.tables.frequency import Floats, Histogram


@dataclass(frozen=True)
class Gain:
    """From one belief to another, over the records: difference and ratio, maximum and mean."""

    max: float
    mean: float
    max_ratio: float
    mean_ratio: float


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Beliefs in the values of one sensitive column; one entry for all records of a class that share a value."""

    column: str
    alpha: Floats  # (entries)
    beta: Floats  # (entries)
    gamma: Floats  # (entries)
    counts: NDArray[np.int64]  # (entries)  records
    entry_of: NDArray[np.int64] | None = None  # (records)  the entry of each row, where rows are known

    @property
    def gain(self) -> Gain:
        """γ against β: what finding the class adds to what the whole table shows."""
        return _gain(self.gamma, self.beta, self.counts)

    @property
    def whole_gain(self) -> Gain:
        """γ against α: what the table and the class show together."""
        return _gain(self.gamma, self.alpha, self.counts)

    @property
    def certain(self) -> int:
        """The number of records whose value the class discloses (homogeneity)."""
        return int(self.counts[self.gamma == 1].sum())

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "column": self.column,
            "gain": asdict(self.gain),
            "whole_gain": asdict(self.whole_gain),
            "certain": self.certain,
        }


def beliefs(
    data: Data, quasi: Sequence[str], sensitive: str, *, prior: Mapping[str | None, float] | None = None
) -> Beliefs:
    """Compute beliefs about the column ``sensitive``; ``prior`` is α by value, uniform by default."""
    keys = keys_of(data, quasi, sensitive=[sensitive])
    histogram = keys.table.sensitive[sensitive]
    believed = beliefs_of(histogram, prior)
    value = _values(histogram, keys.engine.coded(sensitive).texts)[keys.engine.coded(sensitive).codes]
    # Entries ascend by class and value: the place of a record is where its pair would be inserted.
    order = histogram.class_of_entry * histogram.n_values + histogram.values
    entry_of = np.searchsorted(order, keys.class_of * histogram.n_values + value)
    return replace(believed, entry_of=entry_of.astype(np.int64))


def beliefs_of(histogram: Histogram, prior: Mapping[str | None, float] | None = None) -> Beliefs:
    """Compute the same from the sensitive values of each class."""
    domain = histogram.domain
    if domain is None:
        raise TypeError("people are not sensitive values")
    alpha = np.full(len(domain.texts), 1 / max(1, len(domain.texts)))
    if prior is not None:
        if absent := sum(text not in prior for text in domain.texts):
            raise PolicyError(
                f"prior: {absent} of the {len(domain.texts)} values of column {domain.column!r} have no probability",
                "specify one for every value; use None for a null",
            )
        alpha = np.array([float(prior[text]) for text in domain.texts])
        if not ((alpha > 0).all() and sum(prior.values()) <= 1 + 1e-9):
            raise PolicyError("prior: the probabilities of occurring values must be above 0 and sum to at most 1")
    return Beliefs(
        domain.column,
        alpha[histogram.values],
        domain.shares[histogram.values],
        shares(histogram),
        histogram.counts,
    )


def _values(histogram: Histogram, texts: Sequence[str]) -> NDArray[np.int64]:
    """Map the index of each text, with the null last, to its index in the domain."""
    index_of = {} if histogram.domain is None else {text: i for i, text in enumerate(histogram.domain.texts)}
    return np.array([*(index_of[text] for text in texts), index_of.get(None, -1)], np.int64)


def _gain(after: Floats, before: Floats, counts: NDArray[np.int64]) -> Gain:
    difference, ratio = after - before, after / before
    n = counts.sum()
    return Gain(float(difference.max()), float(difference @ counts / n), float(ratio.max()), float(ratio @ counts / n))
