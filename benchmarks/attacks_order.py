"""Does the order of rows give people away, and is it said so where it does and only there?

Releases are made in orders that an intruder can use (kept, turned round, kept or turned round in every class, some rows
left out, some cells suppressed) and in orders that tell nothing (random, classes one after the other, equal rows in
runs), from originals in random order and sorted ones. Prints how often each was taken for what it is not.

    python benchmarks/attacks_order.py [seeds] [records ...]
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import shoal

Rows = NDArray[np.int64]
VALUES = np.array(["flu", "gout", "asthma", "hiv", "none"])
ROLES = {"quasi": ["age", "zip"], "sensitive": ["illness"]}


class People:
    """An original and its release at k = about 5, row by row."""

    def __init__(self, n: int, random: np.random.Generator, *, by: str) -> None:
        n_zips = max(1, n // 60)
        age, zips = random.integers(20, 80, n), random.integers(0, n_zips, n)
        # Illness goes with age, as it does.
        illness = VALUES[np.minimum((random.random(n) ** (1.5 - age / 100) * len(VALUES)).astype(int), 4)]
        order = {"chance": np.arange(n), "age": np.argsort(age, kind="stable"), "illness": np.argsort(illness)}[by]
        self.age, self.zip, self.illness = age[order], zips[order], illness[order]
        self.original = pa.table({"age": self.age.astype(str), "zip": self.zip.astype(str), "illness": self.illness})
        decade = self.age // 12 * 12
        self.labels = np.array([f"{low}-{low + 11}" for low in decade])
        self.classes = np.unique(np.column_stack([decade, self.zip]), axis=0, return_inverse=True)[1].ravel()

    def release(self, rows: Rows, random: np.random.Generator, stars: float = 0.0) -> pa.Table:
        """The released records in the given order."""
        labels = np.where(random.random(len(rows)) < stars, "*", self.labels[rows])
        return pa.table({"age": labels, "zip": self.zip[rows].astype(str), "illness": self.illness[rows]})


def runs(people: People, random: np.random.Generator) -> Rows:
    """Equal rows one after the other, in an order of classes and runs that is random."""
    keys = random.random((people.classes.max() + 1, len(VALUES)))
    of_value = np.searchsorted(np.sort(VALUES), people.illness)
    return np.lexsort((random.random(len(people.age)), keys[people.classes, of_value], people.classes))


def kept_in_some(people: People, random: np.random.Generator) -> Rows:
    """Order kept in half of the classes."""
    is_kept = random.random(people.classes.max() + 1) < 0.5
    position = np.arange(len(people.age)) / len(people.age)
    return np.lexsort((np.where(is_kept[people.classes], position, random.random(len(position))), people.classes))


Order = Callable[[People, np.random.Generator], Rows]


def n_of(people: People) -> int:
    return len(people.age)


SAFE: dict[str, tuple[str, Order, float]] = {
    "random": ("chance", lambda p, r: r.permutation(n_of(p)), 0),
    "random, original by age": ("age", lambda p, r: r.permutation(n_of(p)), 0),
    "classes one after the other, original by age": ("age", lambda p, r: np.lexsort((r.random(n_of(p)), p.classes)), 0),
    "runs of equal rows": ("chance", runs, 0),
    "runs of equal rows, original by illness": ("illness", runs, 0),
    "sorted by all columns": ("chance", lambda p, r: np.lexsort((p.illness, p.classes)), 0),
    "sorted by all columns, original by age": ("age", lambda p, r: np.lexsort((p.illness, p.classes)), 0),
    "random, a fifth of the cells suppressed": ("chance", lambda p, r: r.permutation(n_of(p)), 0.2),
}
FALLS: dict[str, tuple[str, Order, float]] = {
    "kept": ("chance", lambda p, r: np.arange(n_of(p)), 0),
    "turned round": ("chance", lambda p, r: np.arange(n_of(p))[::-1], 0),
    "kept in every class": ("chance", lambda p, r: np.argsort(p.classes, kind="stable"), 0),
    "turned round in every class": ("chance", lambda p, r: np.lexsort((-np.arange(n_of(p)), p.classes)), 0),
    "kept, original by age": ("age", lambda p, r: np.arange(n_of(p)), 0),
    "kept in every class, original by illness": ("illness", lambda p, r: np.argsort(p.classes, kind="stable"), 0),
    "kept, 5 % left out": ("chance", lambda p, r: np.flatnonzero(r.random(n_of(p)) > 0.05), 0),
    "kept, a fifth of the cells suppressed": ("chance", lambda p, r: np.arange(n_of(p)), 0.2),
    "kept in half of the classes": ("chance", kept_in_some, 0),
}


def flagged_share(by: str, order: Order, stars: float, n: int, seed: int) -> tuple[float, float]:
    """What the attack tells beyond its control, and its share."""
    random = np.random.default_rng(seed)
    people = People(n, random, by=by)
    release = people.release(order(people, random), random, stars)
    risk = shoal.attack(release, original=people.original, seed=seed, **ROLES).named("unsorted matching")
    return risk.above, risk.share


def main(seeds: int = 200, sizes: tuple[int, ...] = (100, 2000)) -> None:
    for n in sizes:
        for error_kind, cases in (("false alarms", SAFE), ("misses", FALLS)):
            for name, (by, order, stars) in cases.items():
                flagged_shares = np.array([flagged_share(by, order, stars, n, seed) for seed in range(seeds)])
                wrong = (flagged_shares[:, 0] > 0).mean() if cases is SAFE else (flagged_shares[:, 0] <= 0.09).mean()
                print(
                    f"{n:5} {error_kind:12} {wrong:6.1%}  found {flagged_shares[:, 1].mean():.3f}  {name}", flush=True
                )


if __name__ == "__main__":
    arguments = [int(argument) for argument in sys.argv[1:]]
    main(*arguments[:1], *([tuple(arguments[1:])] if len(arguments) > 1 else []))
