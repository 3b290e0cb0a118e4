"""Figures of a table as it is: the parameters it satisfies, independently of any policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shoal.models.closeness import distance, enhanced_likeness, largest_log_ratio, likeness
from shoal.models.diversity import distinct, entropy, least_c, most_frequent
from shoal.tables.frequency import FrequencyTable, Histogram
from shoal.text.showing import Shown


@dataclass(frozen=True)
class Figures(Mapping[str, float], Shown):
    """Figures by name, for the worst class and, if there are several sensitive columns, the worst column."""

    overall: Mapping[str, float]
    columns: Mapping[str, Mapping[str, float]]  # of each sensitive column

    def __getitem__(self, name: str) -> float:
        return self.overall[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.overall)

    def __len__(self) -> int:
        return len(self.overall)

    def extended(self, added_figures: Mapping[str, float]) -> Figures:
        """Return these figures with additional ones."""
        return replace(self, overall={**self.overall, **added_figures})

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**self.overall, "columns": {name: dict(figures) for name, figures in self.columns.items()}}


# Figures of which the least over several columns is the worst.
_MINIMA = {"l", "entropy_l"}


def figures(
    table: FrequencyTable,
    *,
    l: int = 2,
    distances: Mapping[str, str] | None = None,
    attacker_view: FrequencyTable | None = None,
) -> Figures:
    """Compute all figures; ``l`` is the ℓ of ``recursive_c``, ``distances`` gives the distance of ``t`` per column.

    ``seen`` holds what takes the place of each class, if that is not the class itself (nulls that match anything).
    """
    attacker_view = attacker_view or table
    persons = attacker_view.persons
    overall: dict[str, float] = {
        "records": table.n_records,
        "classes": table.n_classes,
        "k": int(persons.min()) if len(persons) else 0,
        "uniques": int((persons == 1).sum()),
        "sample_uniqueness": float(table.counts[persons == 1].sum() / table.n_records) if len(persons) else 0.0,
        "risk_max": 1 / int(persons.min()) if len(persons) else 0.0,
        # A random record is guessed within its class: Σ_E n_E · (1/n_E) / n.
        "risk_mean": float((table.counts / persons).sum() / table.n_records) if len(persons) else 0.0,
    }
    if table.population is not None and table.n_classes:
        people = table.people
        overall["k_map"] = int(people.min())
        overall["presence"] = float(
            np.divide(table.counts, people, out=np.full(len(people), np.inf), where=people > 0).max()
        )
        overall["population_uniqueness"] = float(table.counts[people <= 1].sum() / table.n_records)
    columns = {
        name: _column(histogram, l, (distances or {}).get(name, "equal"))
        for name, histogram in attacker_view.sensitive.items()
    }
    for name in next(iter(columns.values()), {}):
        worst = min if name in _MINIMA else max
        overall[name] = worst(figures[name] for figures in columns.values())
    return Figures(overall, columns)


def _column(histogram: Histogram, l: int, metric: str) -> dict[str, float]:
    if not histogram.n_classes:
        return {}
    return {
        "l": int(distinct(histogram).min()),
        "entropy_l": float(np.exp(entropy(histogram).min())),
        "recursive_c": float(least_c(histogram, l).max()),
        "t": float(distance(histogram, metric).max()),
        "alpha": float(most_frequent(histogram).max()),
        "beta": float(likeness(histogram).max()),
        "enhanced_beta": float(enhanced_likeness(histogram).max()),
        "delta": float(largest_log_ratio(histogram).max()),
    }
