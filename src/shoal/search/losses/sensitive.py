"""The loss of sensitive columns that are released coarser than they are, by the definition of ``loss`` for cells.

A label of a hierarchy costs what it would cost in a quasi-identifier; a number costs the span of the values that it
stands for, as a share of the span of the column; the cell of a record that is not released costs 1.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from shoal.hierarchies import builders
from shoal.notation.codec import Coded
from shoal.notation.numbers import parse_number
from shoal.policy import Policy
from shoal.tables.frequency import FrequencyTable

Label = str | None


class Original(Protocol):
    """The columns of a table before they are coarsened."""

    def coded(self, name: str, /) -> Coded:
        """Return the texts of a column."""


def sensitive_losses(
    original: Original, released: FrequencyTable, policy: Policy, n_records: int, loss: float
) -> dict[str, float]:
    """Return the mean loss of the sensitive cells, and of all cells; nothing if none is coarsened.

    ``loss`` is the mean of the quasi-identifiers, which stays what it was; ``with-sensitive`` is the mean over the
    columns of both roles.
    """
    if not policy.coarsened:
        return {}
    n_suppressed = n_records - released.n_records
    means = []
    for name in policy.sensitive:
        histogram = released.sensitive[name]
        texts: tuple[Label, ...] = () if histogram.domain is None else histogram.domain.texts
        price = _prices(original, name, policy) if name in policy.coarsened else {}
        of_value = np.array([price.get(text, 0.0) for text in texts])
        means.append((float(histogram.counts @ of_value[histogram.values]) + n_suppressed) / max(1, n_records))
    sensitive = float(np.mean(means))
    n_quasi, n_sensitive = len(policy.quasi), len(policy.sensitive)
    together = (loss * n_quasi + sensitive * n_sensitive) / (n_quasi + n_sensitive)
    return {"sensitive": sensitive, "with-sensitive": together}


def _prices(original: Original, name: str, policy: Policy) -> dict[Label, float]:
    """Return the price of each released value of a column."""
    column, texts = policy.columns[name], original.coded(name).texts
    if column.released is None:
        return {}
    coarse = column.released.coarse(name, texts, column.hierarchy, policy.folder)
    if column.released.level is not None:
        hierarchy = builders.build(
            name, column.hierarchy, texts, nulls=False, uncovered=column.uncovered, folder=policy.folder
        )
        shares = hierarchy.shares[column.released.level]
        codes = hierarchy.table[column.released.level, hierarchy.encode(texts)]
        return dict(zip(coarse, shares[codes].tolist(), strict=True))
    behind: dict[Label, list[float]] = {}
    for text, label in zip(texts, coarse, strict=True):
        if (number := parse_number(text)) is not None:
            behind.setdefault(label, []).append(float(number))
    numbers = [number for group in behind.values() for number in group]
    span = max(numbers) - min(numbers) if numbers else 0.0
    return {label: (max(group) - min(group)) / span if span else 0.0 for label, group in behind.items()}
